/* Commands of the service, which come through GetAsyncCommand. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/tracing/port/port_internal.h"
#include "protos/fields.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_reader.h"

static struct tributary_instance *
find_instance(struct port *p, uint64_t id)
{
	struct tributary_instance *i;

	LIST_FOREACH(i, &p->instances, link)
		if (i->id == id)
			return i;
	return NULL;
}

static void
setup_tracing(struct port *p, const uint8_t *data, size_t len)
{
	struct pb_reader r;
	struct pb_field f;
	char err[200] = "the service passed no memory";
	size_t page = SHM_PAGE_UNIT;
	struct shm *shm = NULL;
	int fd = port_wire_take_fd(&p->wire);

	if (p->memory != NULL) {
		/* The service uses ours, or does not see it (emulation). */
		if (fd >= 0)
			close(fd);
		return;
	}
	pb_init(&r, data, len);
	while (pb_next(&r, &f))
		if (f.number == SetupTracing_shared_buffer_page_size_kb &&
		    f.wire == PB_VARINT && f.value <= SHM_PAGE_MAX / 1024)
			page = (size_t)f.value * 1024;
	if (fd >= 0 && (shm = shm_adopt(fd, page, err, sizeof(err))) == NULL)
		close(fd);
	if (shm == NULL)
		port_disconnect(p, err);
	else if (!port_use_memory(p, shm))
		port_disconnect(p, "there is no memory");
}

/* ---- Instances ---- */

struct setup {
	uint64_t id;
	const uint8_t *config;
	size_t config_len;
	const char *name;
	size_t name_len;
	uint64_t buffer, session, policy;
};

/* SetupDataSource and StartDataSource have the same fields. */
static void
read_setup(struct setup *s, const uint8_t *data, size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	memset(s, 0, sizeof(*s));
	pb_init(&r, data, len);
	while (pb_next(&r, &f)) {
		if (f.number == SetupDataSource_new_instance_id &&
		    f.wire == PB_VARINT)
			s->id = f.value;
		if (f.number == SetupDataSource_config && f.wire == PB_BYTES) {
			s->config = f.data;
			s->config_len = f.len;
		}
	}
	pb_init(&r, s->config, s->config_len);
	while (pb_next(&r, &f)) {
		if (f.number == DataSourceConfig_name && f.wire == PB_BYTES) {
			s->name = (const char *)f.data;
			s->name_len = f.len;
		}
		if (f.wire != PB_VARINT)
			continue;
		if (f.number == DataSourceConfig_target_buffer)
			s->buffer = f.value;
		if (f.number == DataSourceConfig_tracing_session_id)
			s->session = f.value;
		if (f.number == DataSourceConfig_buffer_exhausted_policy)
			s->policy = f.value;
	}
}

/* DataSourceConfig.BufferExhaustedPolicy */
static enum tributary_full_policy
full_policy(uint64_t policy)
{
	switch (policy) {
	case DataSourceConfig_BUFFER_EXHAUSTED_DROP:
		return TRIBUTARY_FULL_DROP;
	case DataSourceConfig_BUFFER_EXHAUSTED_STALL_THEN_ABORT:
		return TRIBUTARY_FULL_ABORT;
	case DataSourceConfig_BUFFER_EXHAUSTED_STALL_THEN_DROP:
		return TRIBUTARY_FULL_STALL;
	default:
		return TRIBUTARY_FULL_DEFAULT;
	}
}

static bool
was_refused(const struct port *p, uint64_t id)
{
	unsigned i;

	for (i = 0; i < PORT_REFUSED && i < p->n_refused; i++)
		if (p->refused[i] == id)
			return true;
	return false;
}

static struct tributary_instance *
set_up(struct port *p, const struct setup *s)
{
	struct instance_setup setup = { .endpoint = &p->endpoint,
	    .memory = p->memory, .id = s->id, .session = s->session,
	    .buffer = (uint32_t)s->buffer, .full = full_policy(s->policy),
	    .config = s->config, .config_len = s->config_len };
	struct tributary_instance *i;
	struct tributary_source *source;

	if (p->memory == NULL || s->name == NULL ||
	    find_instance(p, s->id) != NULL || was_refused(p, s->id))
		return NULL;
	registry_lock();
	source = registry_find(s->name, s->name_len);
	registry_unlock();
	if (source == NULL)
		return NULL;
	if ((i = instance_new(source, &setup)) == NULL) {
		p->refused[p->n_refused++ % PORT_REFUSED] = s->id;
		port_log(p, TRIBUTARY_LOG_WARNING, "An instance of the data "
		    "source %s was refused, or %d of it are there.",
		    source->name, TRIBUTARY_INSTANCES_MAX);
		return NULL;
	}
	LIST_INSERT_HEAD(&p->instances, i, link);
	return i;
}

static void
start(struct port *p, const struct setup *s)
{
	struct tributary_instance *i = find_instance(p, s->id);

	/* An old service starts instances without SetupDataSource. */
	if (i == NULL)
		i = set_up(p, s);
	if (i != NULL)
		instance_start(i);
	/* Also for a refused one, so that the session does not wait for it. */
	port_call_id(p, PORT_STARTED, s->id);
}

void
port_end_instance(struct port *p, struct tributary_instance *i)
{
	uint64_t id = i->id;

	LIST_REMOVE(i, link);
	instance_free(i);
	/* The service is not to hear of the end before the last data. */
	port_commit(p, true);
	port_call_id(p, PORT_STOPPED, id);
}

static void
stop(struct port *p, const uint8_t *data, size_t len)
{
	struct tributary_instance *i;
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, data, len);
	while (pb_next(&r, &f)) {
		if (f.number != StopDataSource_instance_id ||
		    f.wire != PB_VARINT)
			continue;
		if ((i = find_instance(p, f.value)) == NULL)
			port_call_id(p, PORT_STOPPED, f.value);
		else if (i->state != INSTANCE_STOPPING && instance_stop(i))
			port_end_instance(p, i);
	}
}

/*
 * Calls fn for every instance that Flush or ClearIncrementalState names (their
 * field 1, packed or not).
 */
static void
each_named(struct port *p, const uint8_t *data, size_t len,
    void (*fn)(struct tributary_instance *i, void *arg), void *arg)
{
	struct tributary_instance *i;
	struct pb_reader r;
	struct pb_field f;
	const uint8_t *at;
	uint64_t id;

	pb_init(&r, data, len);
	while (pb_next(&r, &f)) {
		if (f.number != Flush_data_source_ids)
			continue;
		if (f.wire == PB_VARINT &&
		    (i = find_instance(p, f.value)) != NULL)
			fn(i, arg);
		for (at = f.data; f.wire == PB_BYTES && at < f.data + f.len;) {
			if ((at = pb_varint(at, f.data + f.len, &id)) == NULL)
				break;
			if ((i = find_instance(p, id)) != NULL)
				fn(i, arg);
		}
	}
}

static void
flush_one(struct tributary_instance *i, void *arg)
{
	struct port_flush *flush = arg;

	if (!instance_flush(i, flush->request))
		flush->waits_for++;
}

static void
finish_flush(struct port *p, struct port_flush *flush)
{
	TAILQ_REMOVE(&p->flushes, flush, link);
	port_commit_flush(p, flush->request);
	free(flush);
}

static void
flush(struct port *p, const uint8_t *data, size_t len)
{
	struct port_flush *flush;
	struct pb_reader r;
	struct pb_field f;

	if ((flush = calloc(1, sizeof(*flush))) == NULL) {
		port_disconnect(p, "there is no memory");
		return;
	}
	pb_init(&r, data, len);
	while (pb_next(&r, &f))
		if (f.number == Flush_request_id && f.wire == PB_VARINT)
			flush->request = f.value;
	TAILQ_INSERT_TAIL(&p->flushes, flush, link);
	each_named(p, data, len, flush_one, flush);
	if (flush->waits_for == 0)
		finish_flush(p, flush);
}

static void
clear_one(struct tributary_instance *i, void *arg)
{
	instance_clear_state(i);
}

/* ---- Notes of other threads ---- */

static void
add_note(struct endpoint *e, struct tributary_instance *i, uint64_t flush_id)
{
	struct port *p = (struct port *)e;
	struct port_note *n;

	/* Without memory the service's own time-out ends the wait. */
	if ((n = calloc(1, sizeof(*n))) == NULL)
		return;
	n->instance = i;
	n->flush_id = flush_id;
	registry_lock();
	STAILQ_INSERT_TAIL(&p->notes, n, link);
	registry_unlock();
	port_wake(p);
}

void
port_stop_done(struct endpoint *e, struct tributary_instance *i)
{
	add_note(e, i, 0);
}

void
port_flush_done(struct endpoint *e, struct tributary_instance *i,
    uint64_t flush_id)
{
	add_note(e, i, flush_id);
}

static bool
is_here(struct port *p, const struct tributary_instance *of)
{
	struct tributary_instance *i;

	LIST_FOREACH(i, &p->instances, link)
		if (i == of)
			return true;
	return false;
}

static void
flush_is_done(struct port *p, struct tributary_instance *i, uint64_t request)
{
	struct port_flush *flush;

	TAILQ_FOREACH(flush, &p->flushes, link)
		if (flush->request == request)
			break;
	if (flush == NULL || flush->waits_for == 0)
		return;
	instance_hand_over(i);
	if (--flush->waits_for == 0)
		finish_flush(p, flush);
}

void
port_take_notes(struct port *p)
{
	struct port_note *n;

	for (;;) {
		registry_lock();
		if ((n = STAILQ_FIRST(&p->notes)) != NULL)
			STAILQ_REMOVE_HEAD(&p->notes, link);
		registry_unlock();
		if (n == NULL)
			return;
		if (is_here(p, n->instance) && n->flush_id != 0)
			flush_is_done(p, n->instance, n->flush_id);
		else if (is_here(p, n->instance) &&
		    n->instance->state == INSTANCE_STOPPING)
			port_end_instance(p, n->instance);
		free(n);
	}
}

void
port_command(struct port *p, const uint8_t *data, size_t len)
{
	struct pb_reader r;
	struct pb_field f;
	struct setup s;

	pb_init(&r, data, len);
	while (p->state == PORT_READY && pb_next(&r, &f)) {
		if (f.wire != PB_BYTES)
			continue;
		switch (f.number) {
		case GetAsyncCommandResponse_setup_tracing:
			setup_tracing(p, f.data, f.len);
			break;
		case GetAsyncCommandResponse_setup_data_source:
			read_setup(&s, f.data, f.len);
			(void)set_up(p, &s);
			break;
		case GetAsyncCommandResponse_start_data_source:
			read_setup(&s, f.data, f.len);
			start(p, &s);
			break;
		case GetAsyncCommandResponse_stop_data_source:
			stop(p, f.data, f.len);
			break;
		case GetAsyncCommandResponse_flush:
			flush(p, f.data, f.len);
			break;
		case GetAsyncCommandResponse_clear_incremental_state:
			each_named(p, f.data, f.len, clear_one, NULL);
			break;
		default: /* of a service newer than this */
			break;
		}
	}
}
