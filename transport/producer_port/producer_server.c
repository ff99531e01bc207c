#include "transport/producer_port/producer_server.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protos/fields.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/shm/shm.h"
#include "transport/socket/peer.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"
#include "transport/wire/service_names.h"

/* A command that waits for GetAsyncCommand. */
struct producer_queued {
	TAILQ_ENTRY(producer_queued) link;
	size_t len;
	int shm_fd;
	uint8_t data[];
};

void
producer_server_log(const struct producer_server *s, const char *what,
    const char *why)
{
	log_limited(s->refusals, loop_now_ms(), LOG_LEVEL_WARN,
	    "%s: %s refused: %s", s->conn != NULL ?
	    rpc_conn_peer(s->conn)->text : "a producer", what, why);
}

/* ---- commands ---- */

void
producer_server_send(struct producer_server *s, const struct pb_writer *w,
    int shm_fd)
{
	struct producer_queued *c;

	if (s->conn == NULL)
		return;
	if (w->failed)
		goto no_memory;
	if (s->commands.conn != NULL) {
		rpc_reply(s->commands, w->data, w->len, true, shm_fd);
		return;
	}
	s->queued_bytes += w->len + sizeof(*c);
	if (s->queued_bytes > s->max_queue) {
		rpc_conn_close(s->conn, "it never called GetAsyncCommand and "
		    "its commands are over limits.max_send_queue_kb");
		return;
	}
	if ((c = malloc(sizeof(*c) + w->len)) == NULL)
		goto no_memory;
	c->len = w->len;
	c->shm_fd = shm_fd;
	if (w->len > 0)
		memcpy(c->data, w->data, w->len);
	TAILQ_INSERT_TAIL(&s->queue, c, link);
	return;

no_memory:
	rpc_conn_close(s->conn, "out of memory for a command");
}

/* Replies with the queued commands, or drops them when call.conn is NULL. */
static void
empty_queue(struct producer_server *s, struct rpc_call call)
{
	struct producer_queued *c;

	s->commands = call;
	while ((c = TAILQ_FIRST(&s->queue)) != NULL) {
		TAILQ_REMOVE(&s->queue, c, link);
		if (call.conn != NULL)
			rpc_reply(call, c->data, c->len, true, c->shm_fd);
		free(c);
	}
	s->queued_bytes = 0;
}

/* ---- arguments ---- */

/* The other methods are legal only after InitializeConnection. */
static enum rpc_verdict
check(const struct producer_server *s, bool args_parse)
{
	if (!s->initialized)
		return RPC_REJECT;
	return args_parse ? RPC_OK : RPC_BAD_ARGS;
}

static enum rpc_verdict
check_rate(const struct producer_server *s, bool args_parse)
{
	enum rpc_verdict v = check(s, args_parse);

	if (v != RPC_OK || s->verbs->rate_limit == NULL)
		return v;
	return s->verbs->rate_limit(s->owner);
}

static enum rpc_verdict
done(struct rpc_call call)
{
	rpc_reply(call, NULL, 0, false, -1);
	return RPC_OK;
}

/*
 * The last bytes of field 1 of a message; false when the message does not
 * parse.  *data stays NULL when the field is absent.
 */
static bool
bytes_field(const uint8_t *args, size_t len, const uint8_t **data,
    size_t *data_len)
{
	struct pb_reader r;
	struct pb_field f;

	*data = NULL;
	*data_len = 0;
	PB_FOREACH(&f, &r, args, len) {
		if (f.number != 1)
			continue;
		if (f.wire != PB_BYTES)
			return false;
		*data = f.data;
		*data_len = f.len;
	}
	return !r.bad;
}

/* Fields 1 and 2, each 0 when it is absent. */
static bool
uint_fields(const uint8_t *args, size_t len, uint64_t *one, uint64_t *two)
{
	struct pb_reader r;
	struct pb_field f;

	*one = *two = 0;
	PB_FOREACH(&f, &r, args, len) {
		if (f.number > 2)
			continue;
		if (f.wire != PB_VARINT)
			return false;
		*(f.number == 1 ? one : two) = f.value;
	}
	return !r.bad;
}

static bool
copy_text(char **out, const struct pb_field *f)
{
	free(*out);
	*out = NULL;
	if (f->wire != PB_BYTES)
		return false;
	*out = strndup(f->len > 0 ? (const char *)f->data : "", f->len);
	return *out != NULL;
}

/* The texts are to be freed, parsed or not. */
static bool
parse_init(const uint8_t *args, size_t len, struct producer_init *q)
{
	struct pb_reader r;
	struct pb_field f;
	bool copied = true;

	*q = (struct producer_init){ .scrape = true, .name = strdup(""),
	    .sdk_version = strdup("") };
	pb_init(&r, args, len);
	while (copied && pb_next(&r, &f)) {
		switch (f.number) {
		case InitializeConnectionRequest_shared_memory_page_size_hint_bytes:
			q->page_size_hint = (uint32_t)f.value;
			break;
		case InitializeConnectionRequest_shared_memory_size_hint_bytes:
			q->shm_size_hint = (uint32_t)f.value;
			break;
		case InitializeConnectionRequest_smb_scraping_mode:
			q->scrape =
			    (uint32_t)f.value !=
			    InitializeConnectionRequest_SMB_SCRAPING_DISABLED;
			break;
		case InitializeConnectionRequest_producer_provided_shmem:
			q->provides_shm = f.value != 0;
			break;
		case InitializeConnectionRequest_producer_name:
			copied = copy_text(&q->name, &f);
			break;
		case InitializeConnectionRequest_sdk_version:
			copied = copy_text(&q->sdk_version, &f);
			break;
		default:
			break;
		}
	}
	return copied && !r.bad && q->name != NULL && q->sdk_version != NULL;
}

/* ---- methods ---- */

static enum rpc_verdict
initialize(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct producer_server *s = ctx;
	enum rpc_verdict v = RPC_BAD_ARGS;
	struct producer_init q;

	if (parse_init(args, len, &q)) {
		q.emulated = !rpc_conn_peer(call.conn)->can_pass_fds;
		v = s->initialized ? RPC_REJECT :
		    s->verbs->initialize(s->owner, call, &q);
		s->initialized |= v == RPC_OK;
	}
	free(q.name);
	free(q.sdk_version);
	return v;
}

struct shm *
producer_init_shm(struct rpc_call call, const struct producer_init *q,
    char *err, size_t err_size)
{
	struct shm *shm;
	int fd;

	err[0] = '\0';
	if (q->emulated || !q->provides_shm || (fd = rpc_take_fd(call)) < 0)
		return NULL;
	/* The producer writes pages of this size; with another none is read. */
	shm = shm_adopt(fd, q->page_size_hint, err, err_size);
	if (shm == NULL)
		close(fd);
	return shm;
}

void
producer_init_reply(struct rpc_call call, const struct producer_init *q,
    bool uses_shm)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w,
	    InitializeConnectionResponse_using_shmem_provided_by_producer,
	    uses_shm);
	pb_put_uint(&w,
	    InitializeConnectionResponse_direct_smb_patching_supported, 1);
	pb_put_uint(&w, InitializeConnectionResponse_use_shmem_emulation,
	    q->emulated);
	rpc_reply_written(call, &w);
	pb_writer_done(&w);
}

static enum rpc_verdict
register_source(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct producer_server *s = ctx;
	enum rpc_verdict v;
	const uint8_t *desc;
	const char *error;
	struct pb_writer w;
	size_t n;

	v = check_rate(s, bytes_field(args, len, &desc, &n));
	if (v != RPC_OK)
		return v;
	error = s->verbs->register_source(s->owner, desc, n);
	pb_writer_init(&w);
	if (error != NULL) {
		producer_server_log(s, "data source", error);
		pb_put_string(&w, RegisterDataSourceResponse_error, error);
	}
	rpc_reply_written(call, &w);
	pb_writer_done(&w);
	return RPC_OK;
}

static enum rpc_verdict
update_source(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct producer_server *s = ctx;
	enum rpc_verdict v;
	const uint8_t *desc;
	size_t n;

	v = check_rate(s, bytes_field(args, len, &desc, &n));
	if (v != RPC_OK)
		return v;
	s->verbs->update_source(s->owner, desc, n);
	return done(call);
}

static enum rpc_verdict
unregister_source(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct producer_server *s = ctx;
	enum rpc_verdict v;
	const uint8_t *name;
	size_t n;

	v = check_rate(s, bytes_field(args, len, &name, &n));
	if (v != RPC_OK)
		return v;
	if (name != NULL)
		s->verbs->unregister_source(s->owner, (const char *)name, n);
	return done(call);
}

static enum rpc_verdict
commit(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct producer_server *s = ctx;
	enum rpc_verdict v;

	if (UNLIKELY(!s->initialized))
		return RPC_REJECT;
	v = s->verbs->commit(s->owner, args, len);
	return v == RPC_OK && call.wants_reply ? done(call) : v;
}

static enum rpc_verdict
get_async_command(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct producer_server *s = ctx;
	enum rpc_verdict v = check(s, pb_well_formed(args, len));

	if (v == RPC_OK)
		empty_queue(s, call);
	return v;
}

static enum rpc_verdict
register_writer(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct producer_server *s = ctx;
	uint64_t writer, buffer;
	enum rpc_verdict v;

	v = check_rate(s, uint_fields(args, len, &writer, &buffer));
	if (v != RPC_OK)
		return v;
	s->verbs->register_writer(s->owner, (uint32_t)writer,
	    (uint32_t)buffer);
	return done(call);
}

static enum rpc_verdict
unregister_writer(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct producer_server *s = ctx;
	uint64_t writer, none;
	enum rpc_verdict v;

	v = check_rate(s, uint_fields(args, len, &writer, &none));
	if (v != RPC_OK)
		return v;
	s->verbs->unregister_writer(s->owner, (uint32_t)writer);
	return done(call);
}

static enum rpc_verdict
notify(struct producer_server *s, struct rpc_call call, const uint8_t *args,
    size_t len, void (*verb)(void *owner, uint64_t instance))
{
	enum rpc_verdict v;
	uint64_t id, none;

	v = check(s, uint_fields(args, len, &id, &none));
	if (v != RPC_OK)
		return v;
	verb(s->owner, id);
	return done(call);
}

static enum rpc_verdict
notify_started(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct producer_server *s = ctx;

	return notify(s, call, args, len, s->verbs->started);
}

static enum rpc_verdict
notify_stopped(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct producer_server *s = ctx;

	return notify(s, call, args, len, s->verbs->stopped);
}

/* *n: how many there are; out gets PRODUCER_TRIGGERS_PER_CALL at most. */
static bool
parse_triggers(const uint8_t *args, size_t len, struct producer_trigger *out,
    size_t *n)
{
	struct pb_reader r;
	struct pb_field f;

	*n = 0;
	PB_FOREACH(&f, &r, args, len) {
		if (f.number != ActivateTriggersRequest_trigger_names)
			continue;
		if (f.wire != PB_BYTES)
			return false;
		if (*n < PRODUCER_TRIGGERS_PER_CALL)
			out[*n] = (struct producer_trigger){
			    (const char *)f.data, f.len };
		++*n;
	}
	return !r.bad;
}

static enum rpc_verdict
activate_triggers(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct producer_trigger names[PRODUCER_TRIGGERS_PER_CALL];
	struct producer_server *s = ctx;
	enum rpc_verdict v;
	size_t n;

	v = check(s, parse_triggers(args, len, names, &n));
	if (v == RPC_OK && n > PRODUCER_TRIGGERS_PER_CALL)
		v = RPC_REJECT;
	if (v == RPC_OK)
		v = check_rate(s, true);
	if (v != RPC_OK)
		return v;
	if (n > 0)
		s->verbs->triggers(s->owner, names, n);
	return done(call);
}

static enum rpc_verdict
sync_call(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	enum rpc_verdict v = check(ctx, pb_well_formed(args, len));

	return v == RPC_OK ? done(call) : v;
}

static enum rpc_verdict
init_machine(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct producer_server *s = ctx;

	return s->initialized ? s->verbs->init_machine(s->owner, call, args,
	    len) : RPC_REJECT;
}

static enum rpc_verdict
sync_clock(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct producer_server *s = ctx;

	return s->initialized ? s->verbs->sync_clock(s->owner, call, args,
	    len) : RPC_REJECT;
}

/* In the order of wire-format.md: ids are position + 1; then our own. */
static const struct rpc_method methods[] = {
	{ "InitializeConnection", initialize },
	{ "RegisterDataSource", register_source },
	{ "UnregisterDataSource", unregister_source },
	{ "CommitData", commit },
	{ "GetAsyncCommand", get_async_command },
	{ "RegisterTraceWriter", register_writer },
	{ "UnregisterTraceWriter", unregister_writer },
	{ "NotifyDataSourceStarted", notify_started },
	{ "NotifyDataSourceStopped", notify_stopped },
	{ "ActivateTriggers", activate_triggers },
	{ "Sync", sync_call },
	{ "UpdateDataSource", update_source },
	{ PRODUCER_INIT_MACHINE, init_machine },
	{ PRODUCER_SYNC_CLOCK, sync_clock },
};
#define N_METHODS (sizeof(methods) / sizeof(methods[0]))
#define N_OF_PERFETTO (N_METHODS - 2)

/* ---- a connection's beginning and end ---- */

static void
gone(void *ctx)
{
	struct producer_server *s = ctx;

	s->conn = NULL;
	empty_queue(s, (struct rpc_call){ .conn = NULL });
	s->verbs->gone(s->owner);
}

void
producer_server_init(struct producer_server *s,
    const struct producer_server_setup *setup)
{
	*s = (struct producer_server){
		.verbs = setup->verbs,
		.owner = setup->owner,
		.conn = setup->conn,
		.refusals = setup->refusals,
		.max_queue = setup->max_queue,
	};
	TAILQ_INIT(&s->queue);
	rpc_conn_set_limits(s->conn, s->max_queue, 0);
}

void
producer_server_service(struct rpc_service *out, bool measures_clocks,
    void *(*bind)(struct rpc_conn *c, void *arg), void *arg)
{
	*out = (struct rpc_service){
		.name = "ProducerPort",
		.alias = "producer_port",
		.methods = methods,
		.n_methods = measures_clocks ? N_METHODS : N_OF_PERFETTO,
		.bind = bind,
		.gone = gone,
		.arg = arg,
	};
}
