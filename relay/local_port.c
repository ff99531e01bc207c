#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/log.h"
#include "transport/loop.h"
#include "transport/pb_reader.h"
#include "transport/pb_writer.h"
#include "transport/peer.h"
#include "relay/local.h"
#include "relay/producers_internal.h"
#include "relay/settings.h"

/* Field numbers: wire-format.md, ipc/producer_port.proto. */
enum {
	INIT_PAGE_SIZE = 1,
	INIT_SHM_SIZE = 2,
	INIT_NAME = 3,
	INIT_SCRAPING = 4,
	INIT_PROVIDED = 6,
	INIT_SDK_VERSION = 8,
	SCRAPING_DISABLED = 2,
	INITED_PROVIDED = 1,
	INITED_PATCHING = 2,
	INITED_EMULATION = 3,
	CMD_STOP = 2,
	CMD_SETUP_TRACING = 3,
};

/* What SetupTracing says when nobody wants anything else. */
#define PAGE_KB_DEFAULT (SHM_PAGE_UNIT / 1024)

struct local_queued {
	TAILQ_ENTRY(local_queued) link;
	size_t len;
	bool with_shm_fd;
	uint8_t data[];
};

/* ---- commands to the producer ---- */

void
local_send(struct local *l, const struct pb_writer *w, bool with_shm_fd)
{
	struct local_queued *c;

	if (l->conn == NULL)
		return;
	if (w->failed)
		goto no_memory;
	if (l->commands.conn != NULL) {
		rpc_reply(l->commands, w->data, w->len, true, with_shm_fd ?
		    shm_fd(l->shm) : -1);
		return;
	}
	l->queued_bytes += w->len + sizeof(*c);
	if (l->queued_bytes >
	    (size_t)l->owner->settings->limits.max_send_queue_kb * 1024) {
		rpc_conn_close(l->conn, "it never called GetAsyncCommand and "
		    "its commands are over limits.max_send_queue_kb");
		return;
	}
	if ((c = malloc(sizeof(*c) + w->len)) == NULL)
		goto no_memory;
	c->len = w->len;
	c->with_shm_fd = with_shm_fd;
	if (w->len > 0)
		memcpy(c->data, w->data, w->len);
	TAILQ_INSERT_TAIL(&l->queue, c, link);
	return;

no_memory:
	rpc_conn_close(l->conn, "out of memory for a command");
}

void
local_send_stop(struct local *l, uint64_t instance)
{
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w, CMD_STOP);
	pb_put_uint(&w, 1, instance);
	pb_nest_end(&w, mark);
	local_send(l, &w, false);
	pb_writer_done(&w);
}

/* ---- shared memory ---- */

static uint64_t
shm_room(const struct producers *ps)
{
	uint64_t most = ps->settings->limits.max_total_shm_kb * 1024;

	return ps->shm_bytes < most ? most - ps->shm_bytes : 0;
}

static int
make_shm(struct local *l, uint32_t page_kb)
{
	struct producers *ps = l->owner;
	size_t want_page, size, page;

	/*
	 * A page other than the usual is what a session asks for, and wins over
	 * what the producer would like.
	 */
	want_page = page_kb != 0 && page_kb != PAGE_KB_DEFAULT ?
	    (size_t)page_kb * 1024 : l->page_size_hint;
	shm_valid_sizes(l->shm_size_hint, want_page, &size, &page);
	if (size / 1024 > ps->settings->limits.max_shm_kb ||
	    size > shm_room(ps))
		size = SHM_SIZE_DEFAULT;
	if (size > shm_room(ps)) {
		rpc_conn_close(l->conn, "limits.max_total_shm_kb is reached");
		return -1;
	}
	if ((l->shm = shm_new(size, page)) == NULL) {
		rpc_conn_close(l->conn, "no memory to share");
		return -1;
	}
	ps->shm_bytes += size;
	orphans_keep(ps, l);
	return 0;
}

int
local_set_up_tracing(struct local *l, uint32_t page_kb)
{
	struct pb_writer w;
	size_t mark, page;

	if (l->tracing_set_up)
		return 0;
	if (!l->emulated && l->shm == NULL && make_shm(l, page_kb) != 0)
		return -1;
	if (l->shm != NULL)
		page = shm_page_size(l->shm) / 1024;
	else
		page = page_kb != 0 ? page_kb : PAGE_KB_DEFAULT;
	l->tracing_set_up = true;
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, CMD_SETUP_TRACING);
	pb_put_uint(&w, 1, page);
	pb_nest_end(&w, mark);
	local_send(l, &w, l->shm != NULL && !l->shm_provided);
	pb_writer_done(&w);
	return 0;
}

/* ---- calls from the producer ---- */

void
local_log(const struct local *l, const char *what, const char *why)
{
	log_limited(&l->owner->refusals, loop_now_ms(), LOG_LEVEL_WARN,
	    "%s: %s refused: %s", l->conn != NULL ?
	    rpc_conn_peer(l->conn)->text : "a producer", what, why);
}

static enum rpc_verdict
done(struct rpc_call call)
{
	rpc_reply(call, NULL, 0, false, -1);
	return RPC_OK;
}

/*
 * The last bytes field `number` of a message; false when the message does not
 * parse.  *data stays NULL when the field is absent.
 */
static bool
bytes_field(const uint8_t *args, size_t len, uint32_t number,
    const uint8_t **data, size_t *data_len)
{
	struct pb_reader r;
	struct pb_field f;

	*data = NULL;
	*data_len = 0;
	pb_init(&r, args, len);
	while (pb_next(&r, &f)) {
		if (f.number != number)
			continue;
		if (f.wire != PB_BYTES)
			return false;
		*data = f.data;
		*data_len = f.len;
	}
	return !r.bad;
}

static bool
uint_fields(const uint8_t *args, size_t len, uint64_t *one, uint64_t *two)
{
	struct pb_reader r;
	struct pb_field f;

	*one = *two = 0;
	pb_init(&r, args, len);
	while (pb_next(&r, &f)) {
		if (f.number > 2)
			continue;
		if (f.wire != PB_VARINT)
			return false;
		*(f.number == 1 ? one : two) = f.value;
	}
	return !r.bad;
}

struct init_request {
	uint32_t page_size;
	uint32_t shm_size;
	uint32_t scraping;
	bool provided;
	const uint8_t *name; /* borrowed */
	size_t name_len;
	const uint8_t *sdk_version;
	size_t sdk_version_len;
};

static bool
parse_init(const uint8_t *args, size_t len, struct init_request *q)
{
	struct pb_reader r;
	struct pb_field f;

	memset(q, 0, sizeof(*q));
	pb_init(&r, args, len);
	while (pb_next(&r, &f)) {
		switch (f.number) {
		case INIT_PAGE_SIZE:
			q->page_size = (uint32_t)f.value;
			break;
		case INIT_SHM_SIZE:
			q->shm_size = (uint32_t)f.value;
			break;
		case INIT_SCRAPING:
			q->scraping = (uint32_t)f.value;
			break;
		case INIT_PROVIDED:
			q->provided = f.value != 0;
			break;
		case INIT_NAME:
			if (f.wire != PB_BYTES)
				return false;
			q->name = f.data;
			q->name_len = f.len;
			break;
		case INIT_SDK_VERSION:
			if (f.wire != PB_BYTES)
				return false;
			q->sdk_version = f.data;
			q->sdk_version_len = f.len;
			break;
		default:
			break;
		}
	}
	return !r.bad;
}

/* The memory that the producer brought along, if it is fit for use. */
static void
adopt_shm(struct local *l, struct rpc_call call, const struct init_request *q)
{
	const struct relay_limits *lim = &l->owner->settings->limits;
	struct shm *shm;
	char err[160];
	size_t size, page;
	int fd;

	if (!q->provided || (fd = rpc_take_fd(call)) < 0)
		return;
	shm_valid_sizes(0, q->page_size, &size, &page);
	if ((shm = shm_adopt(fd, page, err, sizeof(err))) == NULL) {
		local_log(l, "the producer's shared memory", err);
		close(fd);
		return;
	}
	if (shm_size(shm) / 1024 > lim->max_shm_kb ||
	    shm_size(shm) > shm_room(l->owner)) {
		local_log(l, "the producer's shared memory", "larger than "
		    "limits.max_shm_kb or max_total_shm_kb permit");
		shm_free(shm);
		return;
	}
	l->shm = shm;
	l->shm_provided = true;
	l->owner->shm_bytes += shm_size(shm);
}

/* Who labels its data: the kernel, or what it says where nobody vouches. */
static void
read_identity(struct local *l)
{
	const struct rpc_claimed_identity *claimed =
	    rpc_conn_identity(l->conn);
	const struct peer *p = rpc_conn_peer(l->conn);

	l->uid = p->auth == PEER_UNIX ? (int32_t)p->uid : PEER_UID_UNKNOWN;
	l->pid = p->auth == PEER_UNIX ? p->pid : PEER_PID_UNKNOWN;
	if (!claimed->present || (p->kind == ADDR_UNIX && !p->forwarded))
		return;
	l->pid = claimed->pid;
	l->uid = claimed->uid;
	/* -1 stands for "no uid" in every trace reader. */
	if (l->uid == -1 || (l->uid == 0 && p->auth == PEER_NOBODY))
		l->uid = PEER_UID_UNKNOWN;
}

static const char *
check_init(const struct local *l, const struct init_request *q)
{
	const struct relay_limits *lim = &l->owner->settings->limits;

	if (q->name_len > lim->max_name_bytes)
		return "producer_name is longer than limits.max_name_bytes";
	if (q->sdk_version_len > lim->max_name_bytes)
		return "sdk_version is longer than limits.max_name_bytes";
	if (l->owner->n_locals >= lim->max_producers)
		return "limits.max_producers is reached";
	return NULL;
}

static const char *
begin(struct local *l, struct rpc_call call, const struct init_request *q)
{
	struct producers *ps = l->owner;
	const char *why = check_init(l, q);

	if (why != NULL)
		return why;
	l->name = strndup(q->name_len > 0 ? (const char *)q->name : "",
	    q->name_len);
	l->sdk_version = strndup(q->sdk_version_len > 0 ?
	    (const char *)q->sdk_version : "", q->sdk_version_len);
	if (l->name == NULL || l->sdk_version == NULL ||
	    (l->channel = ps->new_channel(ps->channel_arg)) == 0) {
		free(l->name);
		free(l->sdk_version);
		l->name = l->sdk_version = NULL;
		return "out of memory";
	}
	read_identity(l);
	l->emulated = !rpc_conn_peer(l->conn)->can_pass_fds;
	l->scrape = q->scraping != SCRAPING_DISABLED;
	l->shm_size_hint = q->shm_size;
	l->page_size_hint = q->page_size;
	if (!l->emulated)
		adopt_shm(l, call, q);
	TAILQ_INSERT_TAIL(&ps->locals, l, link);
	ps->n_locals++;
	if (l->shm != NULL)
		orphans_keep(ps, l);
	return NULL;
}

static enum rpc_verdict
initialize(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct local *l = ctx;
	struct init_request q;
	struct pb_writer w;
	const char *why;
	char name[80], what[96];

	if (!parse_init(args, len, &q))
		return RPC_BAD_ARGS;
	if (l->channel != 0)
		return RPC_REJECT;
	log_escape(name, sizeof(name), q.name_len > 0 ? (const char *)q.name :
	    "", q.name_len);
	if ((why = begin(l, call, &q)) != NULL) {
		snprintf(what, sizeof(what), "producer %s", name);
		local_log(l, what, why);
		return RPC_REJECT;
	}
	pb_writer_init(&w);
	pb_put_uint(&w, INITED_PROVIDED, l->shm != NULL);
	pb_put_uint(&w, INITED_PATCHING, 1);
	pb_put_uint(&w, INITED_EMULATION, l->emulated);
	rpc_reply(call, w.data, w.len, false, -1);
	pb_writer_done(&w);
	log_debug("%s: producer %u is %s", rpc_conn_peer(l->conn)->text,
	    l->channel, name);
	if (l->owner->open)
		local_announce(l);
	return RPC_OK;
}

static enum rpc_verdict
register_data_source(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct local *l = ctx;
	const uint8_t *desc;
	const char *error;
	struct pb_writer w;
	size_t n;

	if (l->channel == 0)
		return RPC_REJECT;
	if (!bytes_field(args, len, 1, &desc, &n))
		return RPC_BAD_ARGS;
	error = local_register(l, desc, n);
	pb_writer_init(&w);
	if (error != NULL) {
		local_log(l, "data source", error);
		pb_put_string(&w, 1, error);
	}
	rpc_reply(call, w.data, w.len, false, -1);
	pb_writer_done(&w);
	return RPC_OK;
}

static enum rpc_verdict
update_data_source(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct local *l = ctx;
	const uint8_t *desc;
	size_t n;

	if (l->channel == 0)
		return RPC_REJECT;
	if (!bytes_field(args, len, 1, &desc, &n))
		return RPC_BAD_ARGS;
	local_update(l, desc, n);
	return done(call);
}

static enum rpc_verdict
unregister_data_source(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct local *l = ctx;
	const uint8_t *name;
	size_t n;

	if (l->channel == 0)
		return RPC_REJECT;
	if (!bytes_field(args, len, 1, &name, &n))
		return RPC_BAD_ARGS;
	if (name != NULL)
		local_unregister(l, (const char *)name, n);
	return done(call);
}

static enum rpc_verdict
commit(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct local *l = ctx;

	if (UNLIKELY(l->channel == 0))
		return RPC_REJECT;
	switch (local_commit(l, args, len)) {
	case LOCAL_COMMIT_OK:
		return call.wants_reply ? done(call) : RPC_OK;
	case LOCAL_COMMIT_BAD:
		return RPC_BAD_ARGS;
	case LOCAL_COMMIT_AGAIN:
		return RPC_AGAIN;
	}
	return RPC_REJECT;
}

static enum rpc_verdict
get_async_command(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct local *l = ctx;
	struct local_queued *c;

	if (l->channel == 0)
		return RPC_REJECT;
	if (!pb_well_formed(args, len))
		return RPC_BAD_ARGS;
	l->commands = call;
	while ((c = TAILQ_FIRST(&l->queue)) != NULL) {
		TAILQ_REMOVE(&l->queue, c, link);
		rpc_reply(call, c->data, c->len, true, c->with_shm_fd ?
		    shm_fd(l->shm) : -1);
		free(c);
	}
	l->queued_bytes = 0;
	return RPC_OK;
}

static void
put_writer(struct local *l, uint32_t writer, uint16_t buffer)
{
	struct local_buffer *b = local_find_buffer(l, buffer);
	struct pb_writer w;

	if (b == NULL)
		return;
	pb_writer_init(&w);
	pb_put_uint(&w, 1, writer);
	pb_put_uint(&w, 2, b->remote);
	if (!w.failed)
		local_put(l, LINK_UP_REGISTER_WRITER, w.data, w.len);
	pb_writer_done(&w);
}

static enum rpc_verdict
register_writer(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct local *l = ctx;
	uint64_t writer, buffer;

	if (l->channel == 0)
		return RPC_REJECT;
	if (!uint_fields(args, len, &writer, &buffer))
		return RPC_BAD_ARGS;
	if (local_find_buffer(l, (uint32_t)buffer) == NULL)
		l->discarded += !local_buffer_was(l, (uint32_t)buffer);
	else if (local_bind_writer(l, (uint32_t)writer, (uint16_t)buffer))
		put_writer(l, (uint32_t)writer, (uint16_t)buffer);
	return done(call);
}

static enum rpc_verdict
unregister_writer(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct local *l = ctx;
	uint64_t writer, none;

	if (l->channel == 0)
		return RPC_REJECT;
	if (!uint_fields(args, len, &writer, &none))
		return RPC_BAD_ARGS;
	if (local_writer_buffer(l, (uint32_t)writer) != 0 &&
	    local_bind_writer(l, (uint32_t)writer, 0))
		local_put_value(l, LINK_UP_UNREGISTER_WRITER, writer);
	return done(call);
}

static enum rpc_verdict
notify_started(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct local *l = ctx;
	struct local_instance *i;
	uint64_t id, none;

	if (l->channel == 0)
		return RPC_REJECT;
	if (!uint_fields(args, len, &id, &none))
		return RPC_BAD_ARGS;
	if ((i = local_find_instance(l, id)) != NULL && !i->started) {
		i->started = true;
		local_put_value(l, LINK_UP_STARTED, i->remote);
	}
	return done(call);
}

static enum rpc_verdict
notify_stopped(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct local *l = ctx;
	struct local_instance *i;
	uint64_t id, none;

	if (l->channel == 0)
		return RPC_REJECT;
	if (!uint_fields(args, len, &id, &none))
		return RPC_BAD_ARGS;
	if ((i = local_find_instance(l, id)) != NULL && !i->stopped) {
		i->stopped = true;
		local_settle(l);
	}
	return done(call);
}

static enum rpc_verdict
activate_triggers(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct local *l = ctx;
	struct pb_reader r;
	struct pb_field f;
	size_t names = 0;

	if (l->channel == 0)
		return RPC_REJECT;
	pb_init(&r, args, len);
	while (pb_next(&r, &f)) {
		if (f.number == 1 && f.wire != PB_BYTES)
			return RPC_BAD_ARGS;
		names += f.number == 1;
	}
	if (r.bad)
		return RPC_BAD_ARGS;
	if (names > LOCAL_TRIGGERS_PER_CALL)
		return RPC_REJECT;
	pb_init(&r, args, len);
	while (pb_next(&r, &f)) {
		if (f.number != 1)
			continue;
		if (f.len <= l->owner->settings->limits.max_name_bytes)
			local_put(l, LINK_UP_TRIGGER, f.data, f.len);
		else
			local_log(l, "trigger", "its name is longer than "
			    "limits.max_name_bytes");
	}
	return done(call);
}

static enum rpc_verdict
sync_call(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct local *l = ctx;

	if (l->channel == 0)
		return RPC_REJECT;
	return pb_well_formed(args, len) ? done(call) : RPC_BAD_ARGS;
}

/* In the order of wire-format.md: ids are position + 1. */
static const struct rpc_method methods[] = {
	{ "InitializeConnection", initialize },
	{ "RegisterDataSource", register_data_source },
	{ "UnregisterDataSource", unregister_data_source },
	{ "CommitData", commit },
	{ "GetAsyncCommand", get_async_command },
	{ "RegisterTraceWriter", register_writer },
	{ "UnregisterTraceWriter", unregister_writer },
	{ "NotifyDataSourceStarted", notify_started },
	{ "NotifyDataSourceStopped", notify_stopped },
	{ "ActivateTriggers", activate_triggers },
	{ "Sync", sync_call },
	{ "UpdateDataSource", update_data_source },
};

static void *
bind_port(struct rpc_conn *c, void *arg)
{
	struct producers *ps = arg;
	struct local *l;

	if ((l = calloc(1, sizeof(*l))) == NULL)
		return NULL;
	l->owner = ps;
	l->conn = c;
	TAILQ_INIT(&l->queue);
	TAILQ_INIT(&l->sources);
	TAILQ_INIT(&l->instances);
	TAILQ_INIT(&l->flushes);
	rpc_conn_set_limits(c,
	    (size_t)ps->settings->limits.max_send_queue_kb * 1024, 0);
	return l;
}

static void
gone(void *ctx)
{
	struct local *l = ctx;
	struct local_queued *c;

	l->conn = NULL;
	l->commands.conn = NULL;
	while ((c = TAILQ_FIRST(&l->queue)) != NULL) {
		TAILQ_REMOVE(&l->queue, c, link);
		free(c);
	}
	if (l->channel == 0)
		free(l);
	else
		local_settle(l);
}

void
local_port_init(struct rpc_service *out, struct producers *ps)
{
	*out = (struct rpc_service){
		.name = "ProducerPort",
		.alias = "producer_port",
		.methods = methods,
		.n_methods = sizeof(methods) / sizeof(methods[0]),
		.bind = bind_port,
		.gone = gone,
		.arg = ps,
	};
}
