#include "service/collector/service.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "service/config/config_guard.h"
#include "service/link/link.h"
#include "service/onlookers/onlookers.h"
#include "service/ring_memory/populator.h"
#include "service/session/shutdown.h"
#include "service/session/thread_priority.h"
#include "service/session/trigger.h"
#include "service/settings/settings.h"
#include "transport/clock/system_info.h"
#include "transport/clock/this_machine.h"
#include "transport/wire/pb_writer.h"

/* The host's SystemInfo does not change: it is asked for and encoded once. */
static int
describe_host(struct service *s)
{
	struct system_info info;
	struct pb_writer w;

	system_info_collect(&info, s->settings->machine_name);
	pb_writer_init(&w);
	system_info_encode(&w, &info);
	if (w.failed) {
		pb_writer_done(&w);
		return -1;
	}
	s->system_info = w.data;
	s->system_info_len = w.len;
	return 0;
}

struct service *
service_new(struct loop *l, const struct settings *settings, int trace_dirfd)
{
	struct service *s;

	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	s->loop = l;
	s->settings = settings;
	s->observers = onlookers;
	this_machine_clocks(s->clocks, sizeof(s->clocks));
	s->trace_dirfd = -1; /* the caller's until nothing can fail */
	TAILQ_INIT(&s->producers);
	TAILQ_INIT(&s->sessions);
	if ((s->buffers = calloc(TRANSPORT_BUFFER_IDS, sizeof(*s->buffers))) ==
	    NULL)
		goto fail;
	if ((s->machines = machine_table_new()) == NULL)
		goto fail;
	if ((s->host.name = strdup(settings->machine_name)) == NULL)
		goto fail;
	if (describe_host(s) != 0)
		goto fail;
	if ((s->links = links_new(s)) == NULL)
		goto fail;
	if ((s->triggers = trigger_state_new()) == NULL)
		goto fail;
	if ((s->guard_book = guard_book_new()) == NULL ||
	    (s->priority = thread_priority_new(NULL)) == NULL ||
	    (s->populator = populator_new()) == NULL)
		goto fail;
	s->trace_dirfd = trace_dirfd;
	return s;

fail:
	service_free(s);
	return NULL;
}

void
service_begin_ids(struct service *s)
{
	uint32_t some[2] = { 0 };

	if (getrandom(some, sizeof(some), 0) != sizeof(some))
		return;
	s->last_instance_id = (uint64_t)some[0] << 16;
	s->last_flush_id = (uint64_t)some[1] << 16;
}

void
service_free(struct service *s)
{
	if (s == NULL)
		return;
	shutdown_free(s);
	links_free(s->links); /* with their producers */
	machine_table_free(s->machines);
	machine_done(&s->host);
	trigger_state_free(s->triggers);
	guard_book_free(s->guard_book);
	thread_priority_free(s->priority);
	populator_free(s->populator);
	free(s->system_info);
	free(s->buffers);
	source_order_done(&s->sources);
	per_peer_count_done(&s->consumers);
	per_peer_count_done(&s->data_sources);
	if (s->trace_dirfd != -1)
		close(s->trace_dirfd);
	free(s);
}
