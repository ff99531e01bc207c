#include "client/producer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/commit_batch.h"
#include "client/producer_internal.h"
#include "transport/log.h"
#include "transport/loop.h"
#include "transport/pb_reader.h"
#include "transport/rpc_client.h"

/* GetAsyncCommandResponse */
enum command {
	CMD_START_DATA_SOURCE = 1,
	CMD_STOP_DATA_SOURCE = 2,
	CMD_SETUP_TRACING = 3,
	CMD_FLUSH = 5,
	CMD_SETUP_DATA_SOURCE = 6,
	CMD_CLEAR_INCREMENTAL_STATE = 7,
};

/* DataSourceConfig */
#define CONFIG_NAME          1
#define CONFIG_TARGET_BUFFER 2
#define CONFIG_SESSION_ID    4

/* ---- commits ---- */

static void
send_commit(void *arg, const uint8_t *msg, size_t len)
{
	struct producer *p = arg;

	rpc_invoke(p->rpc, "CommitData", msg, len, -1, NULL, NULL);
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

	loop_defer(p->loop, commit_later, p);
}

static const struct commit_ops commit_ops = {
	.send = send_commit,
	.may_send = may_send_commit,
	.wake = wake_commit,
};

/* ---- instances ---- */

uint64_t
producer_instance_id(const struct producer_instance *i)
{
	return i->id;
}

uint64_t
producer_instance_session(const struct producer_instance *i)
{
	return i->session;
}

static struct producer_instance *
find(struct producer *p, uint64_t id)
{
	struct producer_instance *i;

	LIST_FOREACH(i, &p->instances, link)
		if (i->id == id)
			return i;
	return NULL;
}

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

/* The next free id, or 0. */
static uint16_t
take_writer_id(struct producer *p)
{
	uint32_t tries, id = p->last_writer_id;

	for (tries = 0; tries < SHM_MAX_WRITER_ID; tries++) {
		id = id % SHM_MAX_WRITER_ID + 1;
		if ((p->writer_ids[id / 8] & 1u << id % 8) == 0) {
			p->writer_ids[id / 8] |= (uint8_t)(1u << id % 8);
			p->last_writer_id = (uint16_t)id;
			return (uint16_t)id;
		}
	}
	return 0;
}

static void
give_writer_id(struct producer *p, uint16_t id)
{
	p->writer_ids[id / 8] &= (uint8_t)~(1u << id % 8);
}

struct trace_writer *
producer_instance_writer(struct producer_instance *i,
    enum trace_writer_policy policy)
{
	struct producer *p = i->producer;
	struct producer_writer *w;
	uint16_t id;

	if (p->batch == NULL || (id = take_writer_id(p)) == 0)
		return NULL;
	if ((w = calloc(1, sizeof(*w))) == NULL)
		goto fail;
	w->writer = trace_writer_new(p->batch, id, i->buffer, policy);
	if (w->writer == NULL)
		goto fail;
	LIST_INSERT_HEAD(&i->writers, w, link);

	/* Lets the service place the chunks that it scrapes. */
	pb_writer_reset(&p->scratch);
	pb_put_uint(&p->scratch, 1, id);
	pb_put_uint(&p->scratch, 2, i->buffer);
	producer_tell(p, "RegisterTraceWriter");
	return w->writer;

fail:
	free(w);
	give_writer_id(p, id);
	return NULL;
}

static void
free_writer(struct producer_instance *i, struct producer_writer *w)
{
	struct producer *p = i->producer;
	uint16_t id = trace_writer_id(w->writer);

	LIST_REMOVE(w, link);
	trace_writer_free(w->writer);
	free(w);
	give_writer_id(p, id);
	if (!p->ready)
		return;
	pb_writer_reset(&p->scratch);
	pb_put_uint(&p->scratch, 1, id);
	producer_tell(p, "UnregisterTraceWriter");
}

static void
instance_free(struct producer_instance *i)
{
	struct producer_writer *w;

	LIST_REMOVE(i, link);
	i->producer->n_instances--;
	if (i->ctx != NULL && i->source->destroy != NULL)
		i->source->destroy(i->ctx);
	while ((w = LIST_FIRST(&i->writers)) != NULL)
		free_writer(i, w);
	free(i);
}

static void
flush_writers(struct producer_instance *i)
{
	struct producer_writer *w;

	LIST_FOREACH(w, &i->writers, link)
		trace_writer_flush(w->writer);
}

/* From here on whatever is written is dropped. */
static void
detach_writers(struct producer_instance *i)
{
	struct producer_writer *w;

	LIST_FOREACH(w, &i->writers, link)
		trace_writer_detach(w->writer);
}

static void
notify(struct producer *p, const char *method, uint64_t id)
{
	pb_writer_reset(&p->scratch);
	pb_put_uint(&p->scratch, 1, id);
	producer_tell(p, method);
}

static void
instance_stop(struct producer_instance *i)
{
	struct producer *p = i->producer;

	if (i->ctx != NULL && i->started && i->source->stop != NULL)
		i->source->stop(i->ctx);
	flush_writers(i);
	/* The last data first, then the word that it was the last. */
	if (p->batch != NULL)
		commit_batch_send_all(p->batch, 0);
	detach_writers(i);
	notify(p, "NotifyDataSourceStopped", i->id);
	instance_free(i);
}

void
producer_instance_stop_all(struct producer *p)
{
	struct producer_instance *i;

	while ((i = LIST_FIRST(&p->instances)) != NULL)
		instance_stop(i);
}

void
producer_instance_drop_all(struct producer *p)
{
	struct producer_instance *i;

	while ((i = LIST_FIRST(&p->instances)) != NULL) {
		detach_writers(i);
		instance_free(i);
	}
}

/* ---- commands ---- */

/* false: there is no memory, and the connection was ended. */
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
	pb_init(&r, msg, len);
	while (pb_next(&r, &f))
		if (f.number == 1 && f.wire == PB_VARINT &&
		    f.value <= SHM_PAGE_MAX / 1024)
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

/* SetupDataSource and StartDataSource look alike. */
static void
read_setup(struct setup *s, const uint8_t *msg, size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	memset(s, 0, sizeof(*s));
	pb_init(&r, msg, len);
	while (pb_next(&r, &f)) {
		if (f.number == 1 && f.wire == PB_VARINT)
			s->id = f.value;
		if (f.number == 2 && f.wire == PB_BYTES) {
			s->config = f.data;
			s->config_len = f.len;
		}
	}
	if (s->config == NULL)
		return;
	pb_init(&r, s->config, s->config_len);
	while (pb_next(&r, &f)) {
		if (f.number == CONFIG_NAME && f.wire == PB_BYTES) {
			s->name = f.data;
			s->name_len = f.len;
		}
		if (f.number == CONFIG_TARGET_BUFFER && f.wire == PB_VARINT)
			s->buffer = (uint32_t)f.value;
		if (f.number == CONFIG_SESSION_ID && f.wire == PB_VARINT)
			s->session = f.value;
	}
}

static struct producer_instance *
setup_data_source(struct producer *p, const struct setup *s)
{
	const struct producer_source *src;
	struct producer_instance *i;
	char name[128];

	if (s->name == NULL || find(p, s->id) != NULL)
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
	struct producer_instance *i = find(p, s->id);

	/* An old service starts without setting up. */
	if (i == NULL)
		i = setup_data_source(p, s);
	if (i != NULL && !i->started) {
		i->started = true;
		if (i->ctx != NULL && i->source->start != NULL)
			i->source->start(i->ctx);
	}
	/* Refused or not, nobody shall wait for it. */
	notify(p, "NotifyDataSourceStarted", s->id);
}

/* Calls fn for every instance named by repeated field 1, packed or not. */
static void
for_each_named(struct producer *p, const uint8_t *msg, size_t len,
    void (*fn)(struct producer_instance *i))
{
	struct producer_instance *i;
	struct pb_reader r;
	struct pb_field f;
	const uint8_t *v, *end;
	uint64_t id;

	pb_init(&r, msg, len);
	while (pb_next(&r, &f)) {
		if (f.number != 1)
			continue;
		if (f.wire == PB_VARINT && (i = find(p, f.value)) != NULL)
			fn(i);
		if (f.wire != PB_BYTES)
			continue;
		end = f.data + f.len;
		for (v = f.data; v != NULL && v < end;) {
			v = pb_varint(v, end, &id);
			if (v != NULL && (i = find(p, id)) != NULL)
				fn(i);
		}
	}
}

static void
flush_one(struct producer_instance *i)
{
	if (i->ctx != NULL && i->started && i->source->flush != NULL)
		i->source->flush(i->ctx);
	flush_writers(i);
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
	pb_init(&r, msg, len);
	while (pb_next(&r, &f))
		if (f.number == 2 && f.wire == PB_VARINT)
			request_id = f.value;
	if (p->batch != NULL) {
		commit_batch_send_all(p->batch, request_id);
		return;
	}
	pb_writer_reset(&p->scratch);
	pb_put_uint(&p->scratch, 3, request_id);
	producer_tell(p, "CommitData");
}

static void
stop_data_source(struct producer *p, const uint8_t *msg, size_t len)
{
	struct producer_instance *i;
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, msg, len);
	while (pb_next(&r, &f)) {
		if (f.number != 1 || f.wire != PB_VARINT)
			continue;
		if ((i = find(p, f.value)) != NULL)
			instance_stop(i);
		else
			notify(p, "NotifyDataSourceStopped", f.value);
	}
}

void
producer_instance_command(struct producer *p, const uint8_t *msg, size_t len,
    int fd)
{
	struct pb_reader r;
	struct pb_field f;
	struct setup s;

	pb_init(&r, msg, len);
	while (pb_next(&r, &f)) {
		if (f.wire != PB_BYTES)
			continue;
		switch (f.number) {
		case CMD_SETUP_TRACING:
			if (!setup_tracing(p, f.data, f.len, fd))
				return;
			fd = -1;
			break;
		case CMD_SETUP_DATA_SOURCE:
			read_setup(&s, f.data, f.len);
			setup_data_source(p, &s);
			break;
		case CMD_START_DATA_SOURCE:
			read_setup(&s, f.data, f.len);
			start_data_source(p, &s);
			break;
		case CMD_STOP_DATA_SOURCE:
			stop_data_source(p, f.data, f.len);
			break;
		case CMD_FLUSH:
			flush(p, f.data, f.len);
			break;
		case CMD_CLEAR_INCREMENTAL_STATE:
			for_each_named(p, f.data, f.len, clear_one);
			break;
		default: /* a service newer than we are */
			break;
		}
	}
	if (fd >= 0)
		close(fd);
}
