#include "service/session/service.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/session/packet_system.h"
#include "service/session/settings.h"
#include "service/session/trigger.h"
#include "transport/pb_writer.h"

/* The host's SystemInfo does not change: it is asked for and encoded once. */
static int
describe_host(struct service *s)
{
	struct packet_system info;
	struct pb_writer w;

	packet_system_collect(&info, s->settings->machine_name);
	pb_writer_init(&w);
	packet_system_encode(&w, &info);
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
	s->trace_dirfd = -1; /* the caller's until nothing can fail */
	TAILQ_INIT(&s->machines);
	TAILQ_INIT(&s->producers);
	TAILQ_INIT(&s->sessions);
	if ((s->buffers = calloc(SERVICE_BUFFER_IDS, sizeof(*s->buffers))) ==
	    NULL)
		goto fail;
	if ((s->host.name = strdup(settings->machine_name)) == NULL)
		goto fail;
	if (describe_host(s) != 0)
		goto fail;
	if ((s->triggers = trigger_state_new()) == NULL)
		goto fail;
	s->trace_dirfd = trace_dirfd;
	return s;

fail:
	service_free(s);
	return NULL;
}

static void
machine_done(struct machine *m)
{
	free(m->name);
	free(m->system_info);
	free(m->clock_sync);
}

void
service_free(struct service *s)
{
	struct machine *m;

	if (s == NULL)
		return;
	shutdown_free(s);
	while ((m = TAILQ_FIRST(&s->machines)) != NULL) {
		TAILQ_REMOVE(&s->machines, m, link);
		machine_done(m);
		free(m);
	}
	machine_done(&s->host);
	trigger_state_free(s->triggers);
	free(s->system_info);
	free(s->buffers);
	peer_quota_done(&s->consumers);
	peer_quota_done(&s->data_sources);
	if (s->trace_dirfd != -1)
		close(s->trace_dirfd);
	free(s);
}

struct machine *
service_find_machine(struct service *s, uint32_t id)
{
	struct machine *m;

	if (id == 0)
		return &s->host;
	TAILQ_FOREACH (m, &s->machines, link)
		if (m->id == id)
			return m;
	return NULL;
}

/* The newest name wins: a relay was restarted under another one. */
static int
rename_machine(struct machine *m, const char *name)
{
	char *copy;

	if (m->name != NULL && strcmp(m->name, name) == 0)
		return 0;
	if ((copy = strndup(name, SERVICE_MACHINE_NAME_MAX)) == NULL)
		return -1;
	free(m->name);
	m->name = copy;
	return 0;
}

struct machine *
service_machine(struct service *s, uint32_t id, const char *name)
{
	struct machine *m;

	if ((m = service_find_machine(s, id)) == &s->host)
		return m;
	if (m != NULL)
		return rename_machine(m, name) == 0 ? m : NULL;
	if (s->n_machines >= SERVICE_MACHINES_MAX)
		return NULL;
	if ((m = calloc(1, sizeof(*m))) == NULL)
		return NULL;
	m->id = id;
	if (rename_machine(m, name) != 0) {
		free(m);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&s->machines, m, link);
	s->n_machines++;
	return m;
}

/* Replaces *slot by a copy of data. */
static int
replace_bytes(uint8_t **slot, size_t *slot_len, const uint8_t *data,
    size_t len)
{
	uint8_t *copy;

	if (len > SERVICE_MACHINE_INFO_MAX)
		return -1;
	if ((copy = malloc(len == 0 ? 1 : len)) == NULL)
		return -1;
	if (len > 0)
		memcpy(copy, data, len);
	free(*slot);
	*slot = copy;
	*slot_len = len;
	return 0;
}

int
machine_set_system_info(struct machine *m, const uint8_t *data, size_t len)
{
	return replace_bytes(&m->system_info, &m->system_info_len, data, len);
}

int
machine_set_clock_sync(struct machine *m, const uint8_t *data, size_t len)
{
	if (replace_bytes(&m->clock_sync, &m->clock_sync_len, data, len) != 0)
		return -1;
	m->clock_sync_generation++;
	return 0;
}
