#include "service/session/producer.h"

#include <stdlib.h>
#include <string.h>

#include "protos/fields.h"
#include "service/ingest/arrivals.h"
#include "service/ingest/commit.h"
#include "service/ingest/former_ids.h"
#include "service/ingest/losses.h"
#include "service/ingest/quota.h"
#include "service/ingest/writers.h"
#include "service/model/producer_walk.h"
#include "service/session/flush.h"
#include "service/session/instance.h"
#include "service/session/session.h"
#include "service/session/session_events.h"
#include "service/session/session_internal.h"
#include "service/settings/settings.h"
#include "transport/base/log.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_reader.h"

static size_t
descriptor_bytes(const struct producer *p)
{
	const struct data_source *ds;
	size_t n = 0;

	TAILQ_FOREACH(ds, &p->data_sources, link)
		n += ds->descriptor.len;
	return n;
}

static void
data_source_free(struct data_source *ds)
{
	if (ds == NULL)
		return;
	source_descriptor_done(&ds->descriptor);
	free(ds);
}

/*
 * Gives p an id and its place: the list is in the order of the ids.  Ids are
 * counted up, and begin again (after years) when traces could not hold more;
 * then ids that are still in use are left out.
 */
static void
enter_in_order(struct service *s, struct producer *p)
{
	struct producer *before = TAILQ_LAST(&s->producers, producer_list);
	struct producer *after;

	if (++s->last_producer_id > SERVICE_PRODUCER_IDS)
		s->last_producer_id = 1;
	while (before != NULL && before->id > s->last_producer_id)
		before = TAILQ_PREV(before, producer_list, link);
	/* The id is taken: skips to the end of the run of ids in use. */
	while (before != NULL && before->id == s->last_producer_id) {
		s->last_producer_id++;
		after = TAILQ_NEXT(before, link);
		if (after != NULL && after->id == s->last_producer_id)
			before = after;
	}
	p->id = s->last_producer_id;
	if (before != NULL)
		TAILQ_INSERT_AFTER(&s->producers, before, p, link);
	else
		TAILQ_INSERT_HEAD(&s->producers, p, link);
}

static void
resume_cb(void *arg)
{
	struct producer *p = arg;

	p->ops->resume(p->port);
}

static struct producer *
admit(struct service *s, const struct producer_hello *hello,
    const struct producer_ops *ops, void *port, const char **why)
{
	struct producer *p = NULL;
	const char *refused;

	*why = "out of memory";
	if (strlen(hello->name) > s->settings->limits.max_name_bytes) {
		*why = "producer_name is longer than limits.max_name_bytes";
		return NULL;
	}
	if (s->n_producers >= s->settings->limits.max_producers) {
		*why = "limits.max_producers is reached";
		return NULL;
	}
	if ((p = calloc(1, sizeof(*p))) == NULL)
		return NULL;
	TAILQ_INIT(&p->data_sources);
	TAILQ_INIT(&p->instances);
	if ((p->name = strdup(hello->name)) == NULL)
		goto fail;
	if (hello->sdk_version != NULL && hello->sdk_version[0] != '\0' &&
	    (p->sdk_version = strdup(hello->sdk_version)) == NULL)
		goto fail;
	/* A producer cannot name the host. */
	if (hello->machine_name != NULL && hello->machine->id != 0 &&
	    (p->machine_name = strndup(hello->machine_name,
	    MACHINE_NAME_MAX)) == NULL)
		goto fail;
	if (hello->elsewhere && (p->arrivals = arrival_watch_new()) == NULL)
		goto fail;
	p->service = s;
	p->ops = ops;
	p->port = port;
	p->at_gate.wake = resume_cb;
	p->at_gate.arg = p;
	p->machine = hello->machine;
	if ((refused = quota_admit_producer(p)) != NULL) {
		*why = refused;
		goto fail;
	}
	machine_ref(p->machine);
	p->machine->n_producers++;
	machine_account(p->machine)->n_producers++;
	p->peer = hello->peer;
	p->uid = hello->uid;
	p->pid = hello->pid;
	p->own = hello->own;
	p->linked = hello->linked;
	p->scrape = hello->scrape;
	p->shm_size_hint = hello->shm_size_hint;
	p->page_size_hint = hello->page_size_hint;
	p->shm = hello->shm;
	p->memory = hello->emulated ? MEMORY_EMULATED :
	    hello->shm != NULL ? MEMORY_PROVIDED : MEMORY_OURS;
	enter_in_order(s, p);
	s->n_producers++;
	s->counters.producers_seen++;
	return p;

fail:
	arrival_watch_free(p->arrivals);
	free(p->name);
	free(p->sdk_version);
	free(p->machine_name);
	free(p);
	return NULL;
}

struct producer *
producer_new(struct service *s, const struct producer_hello *hello,
    const struct producer_ops *ops, void *port, const char **why)
{
	struct producer *p = admit(s, hello, ops, port, why);

	if (p == NULL)
		refusals_count(&s->refusals, *why);
	return p;
}

const char *
producer_machine_name(const struct producer *p)
{
	return p->machine_name != NULL ? p->machine_name : p->machine->name;
}

void
producer_set_state(struct producer *p, enum producer_state state)
{
	p->state = state;
	switch (state) {
	case PRODUCER_CONNECTED:
		p->back_ms = loop_now_ms();
		break;
	case PRODUCER_CUT:
		break;
	case PRODUCER_GONE:
		p->service->n_gone++;
		break;
	}
}

/* ---- the end ---- */

static void
silent_id(void *port, uint64_t id)
{
}

static void
silent_config(void *port, uint64_t id, const uint8_t *config, size_t len)
{
}

static void
silent_setup(void *port, struct shm *shm, size_t page_size)
{
}

static void
silent_flush(void *port, uint64_t request_id, const uint64_t *ids, size_t n,
    uint64_t flags)
{
}

static void
silent_clear(void *port, const uint64_t *ids, size_t n)
{
}

static void
silent_resume(void *port)
{
}

/* Calls to a producer without a connection do nothing. */
static const struct producer_ops silent_ops = {
	.setup_tracing = silent_setup,
	.setup_data_source = silent_config,
	.start_data_source = silent_config,
	.stop_data_source = silent_id,
	.flush = silent_flush,
	.clear_incremental_state = silent_clear,
	.resume = silent_resume,
};

static void
producer_finish(struct producer *p)
{
	struct service *s = p->service;
	struct ds_instance *i;

	/*
	 * Must come before a session ends, which reads what can be read of its
	 * data.
	 */
	if (p->lacks_patches)
		sessions_give_up_patches(s, p->id);
	/* Starts over each time: a session may free others as it ends. */
	while ((i = TAILQ_FIRST(&p->instances)) != NULL)
		instance_producer_gone(i);
	sessions_producer_gone(s, p->id);
	if (p->state == PRODUCER_GONE)
		s->n_gone--;
	session_events_producer_leaves(p);
	producer_walks_leave(s, p);
	TAILQ_REMOVE(&s->producers, p, link);
	s->n_producers--;
	writers_free(p);
	former_ids_free(p);
	quota_producer_gone(p);
	losses_free(p);
	arrival_watch_free(p->arrivals);
	shm_free(p->shm);
	p->machine->n_producers--;
	machine_account(p->machine)->n_producers--;
	machine_unref(p->machine);
	free(p->name);
	free(p->sdk_version);
	free(p->machine_name);
	free(p);
}

/*
 * Counts all its instances as stopped, as no acknowledgement comes any more.  A
 * session that ends with that frees its instances, several of which may be of
 * this producer: none may end before the walk is over.
 */
static void
stop_all_instances(struct producer *p)
{
	struct ds_instance *i;
	struct session *s;
	bool holds_end;

	TAILQ_FOREACH(i, &p->instances, of_producer) {
		holds_end = i->session->holds_end;
		i->session->holds_end = true;
		instance_ack_stopped(i);
		i->session->holds_end = holds_end;
	}
	TAILQ_FOREACH(s, &p->service->sessions, link)
		session_instance_gone(s);
}

static void
data_source_drop(struct data_source *ds)
{
	struct producer *p = ds->producer;

	session_events_source_leaves(ds);
	source_order_remove(&p->service->sources, ds);
	TAILQ_REMOVE(&p->data_sources, ds, link);
	p->n_data_sources--;
	p->machine->n_data_sources--;
	machine_account(p->machine)->n_data_sources--;
	p->service->n_data_sources--;
	per_peer_count_give(&p->service->data_sources, p->peer, 1);
	data_source_free(ds);
}

void
producer_gone(struct producer *p)
{
	struct data_source *ds;

	fair_queue_leave(&p->at_gate);
	while ((ds = TAILQ_FIRST(&p->data_sources)) != NULL) {
		data_source_drop(ds);
	}
	p->ops = &silent_ops;
	p->port = NULL;
	/* Data in its memory that it did not commit is the last there is. */
	if (commit_scrape(p, NULL, false)) {
		flush_producer_gone(p->service, p);
		producer_finish(p);
		return;
	}
	/* A file has to catch up first: its memory stays until it has. */
	producer_set_state(p, PRODUCER_GONE);
	stop_all_instances(p);
	flush_producer_gone(p->service, p);
}

void
producers_reap(struct service *s)
{
	struct producer *p, *next;

	if (s->n_gone == 0)
		return;
	TAILQ_FOREACH_SAFE(p, &s->producers, link, next)
		if (p->state == PRODUCER_GONE && commit_scrape(p, NULL, false))
			producer_finish(p);
}

struct data_source *
producer_find_data_source(struct producer *p, const char *name, size_t len)
{
	struct data_source *ds;

	TAILQ_FOREACH(ds, &p->data_sources, link)
		if (source_descriptor_is_named(&ds->descriptor, name, len))
			return ds;
	return NULL;
}

struct ds_instance *
producer_find_instance(struct producer *p, uint64_t id)
{
	struct ds_instance *i;

	TAILQ_FOREACH(i, &p->instances, of_producer)
		if (i->id == id)
			return i;
	return NULL;
}

static const char *
register_source(struct producer *p, const uint8_t *descriptor, size_t len)
{
	struct service *s = p->service;
	const struct limits *lim = &s->settings->limits;
	struct data_source *ds;
	const char *why;

	if (p->n_data_sources >= lim->max_data_sources_per_producer)
		return "too many data sources: "
		       "limits.max_data_sources_per_producer is reached";
	if (s->n_data_sources >= lim->max_data_sources)
		return "too many data sources of all producers: "
		       "limits.max_data_sources is reached";
	if ((why = quota_admit_data_source(p)) != NULL)
		return why;
	if (descriptor_bytes(p) + len > SOURCE_DESCRIPTORS_BYTES_MAX)
		return "the descriptors of this producer are too long together";
	if ((ds = calloc(1, sizeof(*ds))) == NULL)
		return "out of memory";
	ds->producer = p;
	if (source_descriptor_read(&ds->descriptor, descriptor, len) != 0) {
		data_source_free(ds);
		return pb_well_formed(descriptor, len) ?
		    "data_source_descriptor does not parse, or there is no "
		    "memory for it" : "data_source_descriptor does not parse";
	}
	if (ds->descriptor.name[0] == '\0' ||
	    strlen(ds->descriptor.name) > lim->max_name_bytes) {
		data_source_free(ds);
		return "data source name is empty or longer than "
		       "limits.max_name_bytes";
	}
	if (!per_peer_count_take(&s->data_sources, p->peer,
		lim->max_data_sources_per_peer)) {
		data_source_free(ds);
		if (per_peer_count_has(&s->data_sources, p->peer) <
		    lim->max_data_sources_per_peer)
			return "out of memory";
		return "too many data sources of this user, certificate or "
		       "address: limits.max_data_sources_per_peer is reached";
	}
	if (source_order_add(&s->sources, ds) != 0) {
		per_peer_count_give(&s->data_sources, p->peer, 1);
		data_source_free(ds);
		return "out of memory";
	}
	/*
	 * Two registrations of one name are legal: Chromium has some, and each
	 * gets its own instance.
	 */
	TAILQ_INSERT_TAIL(&p->data_sources, ds, link);
	p->n_data_sources++;
	p->machine->n_data_sources++;
	machine_account(p->machine)->n_data_sources++;
	s->n_data_sources++;
	s->counters.data_sources_seen++;
	sessions_data_source_added(s, ds);
	return NULL;
}

const char *
producer_register(struct producer *p, const uint8_t *descriptor, size_t len)
{
	const char *why = register_source(p, descriptor, len);

	if (why != NULL)
		refusals_count(&p->service->refusals, why);
	return why;
}

void
producer_update(struct producer *p, const uint8_t *descriptor, size_t len)
{
	struct data_source *ds = NULL;
	const char *name;
	size_t n;

	name = source_descriptor_name(descriptor, len, &n);
	if (name != NULL)
		ds = producer_find_data_source(p, name, n);
	if (ds != NULL && descriptor_bytes(p) - ds->descriptor.len + len <=
	    SOURCE_DESCRIPTORS_BYTES_MAX &&
	    source_descriptor_read(&ds->descriptor, descriptor, len) != 0)
		log_limited(&p->service->memory_log, loop_now_ms(),
		    LOG_LEVEL_ERROR,
		    "producer %u: no memory for a data source update",
		    p->id);
}

static struct ds_instance *
find_instance_of(struct producer *p, const struct data_source *ds)
{
	struct ds_instance *i;

	TAILQ_FOREACH(i, &p->instances, of_producer)
		if (strcmp(i->name, ds->descriptor.name) == 0)
			return i;
	return NULL;
}

void
producer_unregister(struct producer *p, const char *name, size_t len)
{
	struct data_source *ds = producer_find_data_source(p, name, len);
	struct ds_instance *i;

	if (ds == NULL)
		return;
	/*
	 * Looks again each time: the end of an instance may be the end of
	 * others.
	 */
	while ((i = find_instance_of(p, ds)) != NULL)
		instance_producer_gone(i);
	data_source_drop(ds);
}

int
producer_set_up_tracing(struct producer *p, uint32_t want_shm_kb,
    uint32_t want_page_kb)
{
	size_t size, page, want_size, want_page;

	if (p->tracing_set_up)
		return 0;
	want_size = want_shm_kb != 0 ? (size_t)want_shm_kb * 1024 :
	    p->shm_size_hint;
	want_page = want_page_kb != 0 ? (size_t)want_page_kb * 1024 :
	    p->page_size_hint;
	shm_valid_sizes(want_size, want_page, &size, &page);
	if (size / 1024 > p->service->settings->limits.max_shm_kb)
		size = SHM_SIZE_DEFAULT;
	if (p->shm != NULL)
		page = shm_page_size(p->shm);
	else if (p->memory == MEMORY_OURS &&
	    (p->shm = shm_new(size, page)) == NULL)
		return -1;
	p->tracing_set_up = true;
	p->ops->setup_tracing(p->port, p->shm, page);
	return 0;
}
