/* Commands of the service, which come through GetAsyncCommand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/library/commit_batch.h"
#include "client/library/producer_internal.h"
#include "protos/fields.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_client.h"
#include "transport/wire/pb_reader.h"

/* ---- commits ---- */

static void
send_commit(void *arg, const uint8_t *msg, size_t len)
{
	struct producer *p = arg;

	rpc_invoke(p->rpc, "CommitData", msg, len, NULL, NULL);
	/*
	 * Writes to the socket even inside a callback that goes on writing
	 * packets: the service can free chunks meanwhile.
	 */
	rpc_client_push(p->rpc);
}

static void
push_commits(void *arg)
{
	struct producer *p = arg;

	rpc_client_push(p->rpc);
}

static bool
may_send_commit(void *arg)
{
	struct producer *p = arg;

	return rpc_client_queued(p->rpc) < PRODUCER_QUEUED_PAUSE;
}

static void
commit_later(void *arg)
{
	struct producer *p = arg;

	commit_batch_send(p->batch);
}

static void
wake_commit(void *arg)
{
	struct producer *p = arg;

	loop_defer(p->loop, &p->commit_call, commit_later, p);
}

static const struct commit_ops commit_ops = {
	.send = send_commit,
	.push = push_commits,
	.may_send = may_send_commit,
	.wake = wake_commit,
};

/* ---- commands ---- */

static const struct producer_source *
find_source(const struct producer *p, const uint8_t *name, size_t len)
{
	size_t i;

	for (i = 0; i < p->n_sources; i++)
		if (strlen(p->sources[i]->name) == len &&
		    memcmp(p->sources[i]->name, name, len) == 0)
			return p->sources[i];
	return NULL;
}

/* false: no shared memory could be had, and the connection was ended. */
static bool
setup_tracing(struct producer *p, const uint8_t *msg, size_t len, int fd)
{
	struct pb_reader r;
	struct pb_field f;
	size_t page = 0, size;
	char err[200] = "no memory";

	if (p->shm != NULL) {
		log_warn("the service set up tracing twice");
		if (fd >= 0)
			close(fd);
		return true;
	}
	PB_FOREACH(&f, &r, msg, len)
		if (f.number == SetupTracing_shared_buffer_page_size_kb &&
		    f.wire == PB_VARINT && f.value <= SHM_PAGE_MAX / 1024)
			page = (size_t)f.value * 1024;
	if (p->emulated) {
		shm_valid_sizes(p->shm_bytes, page, &size, &page);
		p->shm = shm_new(size, page);
	} else if (fd < 0) {
		snprintf(err, sizeof(err), "the service passed no memory");
	} else if ((p->shm = shm_adopt(fd, page, err, sizeof(err))) != NULL) {
		fd = -1;
	}
	if (fd >= 0)
		close(fd);
	if (p->shm != NULL)
		p->batch = commit_batch_new(p->shm, p->emulated, &commit_ops,
		    p);
	if (p->batch != NULL)
		return true;
	producer_reconnect(p, err);
	return false;
}

struct setup {
	uint64_t id;
	const uint8_t *config;
	size_t config_len;
	const uint8_t *name;
	size_t name_len;
	uint32_t buffer;
	uint64_t session;
};

/* SetupDataSource and StartDataSource have the same fields. */
static void
read_setup(struct setup *s, const uint8_t *msg, size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	memset(s, 0, sizeof(*s));
	PB_FOREACH(&f, &r, msg, len) {
		if (f.number == SetupDataSource_new_instance_id &&
		    f.wire == PB_VARINT)
			s->id = f.value;
		else if (f.number == SetupDataSource_config &&
		    f.wire == PB_BYTES) {
			s->config = f.data;
			s->config_len = f.len;
		}
	}
	if (s->config == NULL)
		return;
	PB_FOREACH(&f, &r, s->config, s->config_len) {
		if (f.number == DataSourceConfig_name && f.wire == PB_BYTES) {
			s->name = f.data;
			s->name_len = f.len;
		}
		if (f.number == DataSourceConfig_target_buffer &&
		    f.wire == PB_VARINT)
			s->buffer = (uint32_t)f.value;
		if (f.number == DataSourceConfig_tracing_session_id &&
		    f.wire == PB_VARINT)
			s->session = f.value;
	}
}

static struct producer_instance *
setup_data_source(struct producer *p, const struct setup *s)
{
	const struct producer_source *src;
	struct producer_instance *i;
	char name[128];

	if (s->name == NULL || producer_instance_find(p, s->id) != NULL)
		return NULL;
	if ((src = find_source(p, s->name, s->name_len)) == NULL ||
	    p->n_instances == PRODUCER_INSTANCES_MAX ||
	    (i = calloc(1, sizeof(*i))) == NULL) {
		log_warn("cannot set up data source %s", log_escape(name,
		    sizeof(name), (const char *)s->name, s->name_len));
		return NULL;
	}
	i->producer = p;
	i->source = src;
	i->id = s->id;
	i->session = s->session;
	i->buffer = s->buffer;
	LIST_INIT(&i->writers);
	LIST_INSERT_HEAD(&p->instances, i, link);
	p->n_instances++;
	i->ctx = src->setup(src->arg, i, s->config, s->config_len);
	return i;
}

static void
start_data_source(struct producer *p, const struct setup *s)
{
	struct producer_instance *i = producer_instance_find(p, s->id);

	/* An old service starts instances without SetupDataSource. */
	if (i == NULL)
		i = setup_data_source(p, s);
	if (i != NULL && !i->started) {
		i->started = true;
		if (i->ctx != NULL && i->source->start != NULL)
			i->source->start(i->ctx);
	}
	/* Also for a refused instance, so that the session does not wait. */
	producer_tell_id(p, "NotifyDataSourceStarted", s->id);
}

/*
 * Calls fn for every instance that Flush or ClearIncrementalState names; the
 * repeated field of ids may be packed or not.
 */
static void
for_each_named(struct producer *p, const uint8_t *msg, size_t len,
    void (*fn)(struct producer_instance *i))
{
	struct producer_instance *i;
	struct pb_reader r;
	struct pb_field f;
	const uint8_t *v, *end;
	uint64_t id;

	PB_FOREACH(&f, &r, msg, len) {
		if (f.number != Flush_data_source_ids)
			continue;
		if (f.wire == PB_VARINT &&
		    (i = producer_instance_find(p, f.value)) != NULL)
			fn(i);
		if (f.wire != PB_BYTES)
			continue;
		end = f.data + f.len;
		for (v = f.data; v != NULL && v < end;) {
			v = pb_varint(v, end, &id);
			if (v != NULL &&
			    (i = producer_instance_find(p, id)) != NULL)
				fn(i);
		}
	}
}

static void
flush_one(struct producer_instance *i)
{
	if (i->ctx != NULL && i->started && i->source->flush != NULL)
		i->source->flush(i->ctx);
	producer_instance_flush_writers(i);
}

static void
clear_one(struct producer_instance *i)
{
	if (i->ctx != NULL && i->source->clear_incremental_state != NULL)
		i->source->clear_incremental_state(i->ctx);
}

static void
flush(struct producer *p, const uint8_t *msg, size_t len)
{
	struct pb_reader r;
	struct pb_field f;
	uint64_t request_id = 0;

	for_each_named(p, msg, len, flush_one);
	PB_FOREACH(&f, &r, msg, len)
		if (f.number == Flush_request_id && f.wire == PB_VARINT)
			request_id = f.value;
	if (p->batch != NULL) {
		commit_batch_send_all(p->batch, request_id);
		return;
	}
	pb_writer_reset(&p->scratch);
	pb_put_uint(&p->scratch, CommitDataRequest_flush_request_id,
	    request_id);
	producer_tell(p, "CommitData");
}

static void
stop_data_source(struct producer *p, const uint8_t *msg, size_t len)
{
	struct producer_instance *i;
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, msg, len) {
		if (f.number != StopDataSource_instance_id ||
		    f.wire != PB_VARINT)
			continue;
		if ((i = producer_instance_find(p, f.value)) != NULL)
			producer_instance_stop(i);
		else
			producer_tell_id(p, "NotifyDataSourceStopped", f.value);
	}
}

void
producer_command(struct producer *p, const uint8_t *msg, size_t len,
    int fd)
{
	struct pb_reader r;
	struct pb_field f;
	struct setup s;

	PB_FOREACH(&f, &r, msg, len) {
		if (f.wire != PB_BYTES)
			continue;
		switch (f.number) {
		case GetAsyncCommandResponse_setup_tracing:
			if (!setup_tracing(p, f.data, f.len, fd))
				return;
			fd = -1;
			break;
		case GetAsyncCommandResponse_setup_data_source:
			read_setup(&s, f.data, f.len);
			setup_data_source(p, &s);
			break;
		case GetAsyncCommandResponse_start_data_source:
			read_setup(&s, f.data, f.len);
			start_data_source(p, &s);
			break;
		case GetAsyncCommandResponse_stop_data_source:
			stop_data_source(p, f.data, f.len);
			break;
		case GetAsyncCommandResponse_flush:
			flush(p, f.data, f.len);
			break;
		case GetAsyncCommandResponse_clear_incremental_state:
			for_each_named(p, f.data, f.len, clear_one);
			break;
		default: /* a service newer than we are */
			break;
		}
	}
	if (fd >= 0)
		close(fd);
}
