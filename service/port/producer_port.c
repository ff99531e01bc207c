#include "service/port/producer_port.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"
#include "transport/rpc/rpc_host.h"
#include "transport/shm/shm.h"
#include "transport/rpc/sync_clock.h"
#include "service/port/machine_talk.h"
#include "service/port/peer_identity.h"
#include "service/session/commit.h"
#include "service/session/flush.h"
#include "service/session/instance.h"
#include "service/session/lockdown.h"
#include "service/machine/machine_presence.h"
#include "service/model/model.h"
#include "service/session/producer.h"
#include "service/link/producer_command.h"
#include "service/settings/settings.h"
#include "service/session/trigger.h"

/* Each is tried on every session that waits for a trigger. */
#define TRIGGERS_PER_CALL 64u

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
};

/* A command that waits for GetAsyncCommand. */
struct command {
	TAILQ_ENTRY(command) link;
	size_t len;
	bool with_shm_fd;
	uint8_t data[];
};

struct producer_port {
	struct service *service;
	struct rpc_conn *conn;
	struct producer *producer; /* NULL before InitializeConnection */
	struct machine_talk talk;  /* of the producer's machine */
	struct rpc_call commands;  /* GetAsyncCommand; conn NULL: not yet */
	TAILQ_HEAD(, command) queue;
	size_t queued_bytes;
};

/* ---- commands to the producer ---- */

static void
send_command(struct producer_port *p, const struct pb_writer *w,
    bool with_shm_fd)
{
	struct command *c;

	if (w->failed)
		goto no_memory;
	if (p->commands.conn != NULL) {
		rpc_reply(p->commands, w->data, w->len, true, with_shm_fd ?
		    shm_fd(p->producer->shm) : -1);
		return;
	}
	p->queued_bytes += w->len;
	if (p->queued_bytes >
	    (size_t)p->service->settings->limits.max_send_queue_kb * 1024) {
		rpc_conn_close(p->conn, "it never called GetAsyncCommand and "
		    "its commands are over limits.max_send_queue_kb");
		return;
	}
	if ((c = malloc(sizeof(*c) + w->len)) == NULL)
		goto no_memory;
	c->len = w->len;
	c->with_shm_fd = with_shm_fd;
	if (w->len > 0)
		memcpy(c->data, w->data, w->len);
	TAILQ_INSERT_TAIL(&p->queue, c, link);
	return;

no_memory:
	rpc_conn_close(p->conn, "out of memory for a command");
}

static void
op_setup_tracing(void *port, struct shm *shm, size_t page_size)
{
	struct producer_port *p = port;
	struct pb_writer w;
	bool own = shm != NULL && p->producer->shm_provided;

	pb_writer_init(&w);
	producer_command_setup_tracing(&w, page_size);
	send_command(p, &w, shm != NULL && !own);
	pb_writer_done(&w);
}

static void
op_setup_data_source(void *port, uint64_t id, const uint8_t *config,
    size_t len)
{
	struct pb_writer w;

	pb_writer_init(&w);
	producer_command_setup(&w, id, config, len);
	send_command(port, &w, false);
	pb_writer_done(&w);
}

static void
op_start_data_source(void *port, uint64_t id, const uint8_t *config,
    size_t len)
{
	struct pb_writer w;

	pb_writer_init(&w);
	producer_command_start(&w, id, config, len);
	send_command(port, &w, false);
	pb_writer_done(&w);
}

static void
op_stop_data_source(void *port, uint64_t id)
{
	struct pb_writer w;

	pb_writer_init(&w);
	producer_command_stop(&w, id);
	send_command(port, &w, false);
	pb_writer_done(&w);
}

static void
op_flush(void *port, uint64_t request_id, const uint64_t *ids, size_t n,
    uint64_t flags)
{
	struct pb_writer w;

	pb_writer_init(&w);
	producer_command_flush(&w, request_id, ids, n, flags);
	send_command(port, &w, false);
	pb_writer_done(&w);
}

static void
op_clear(void *port, const uint64_t *ids, size_t n)
{
	struct pb_writer w;

	pb_writer_init(&w);
	producer_command_clear(&w, ids, n);
	send_command(port, &w, false);
	pb_writer_done(&w);
}

static void
op_resume(void *port)
{
	rpc_conn_resume(((struct producer_port *)port)->conn);
}

static const struct producer_ops ops = {
	.setup_tracing = op_setup_tracing,
	.setup_data_source = op_setup_data_source,
	.start_data_source = op_start_data_source,
	.stop_data_source = op_stop_data_source,
	.flush = op_flush,
	.clear_incremental_state = op_clear,
	.resume = op_resume,
};

/* ---- calls from the producer ---- */

/* Of all producers together. */
static struct log_limit refusals;

static void
log_refused(const struct producer_port *p, const char *what, const char *why)
{
	log_limited(&refusals, loop_now_ms(), LOG_LEVEL_WARN,
	    "%s: %s refused: %s", rpc_conn_peer(p->conn)->text, what, why);
}

static enum rpc_verdict
done(struct rpc_call call)
{
	rpc_reply(call, NULL, 0, false, -1);
	return RPC_OK;
}

/*
 * The first bytes field `number` of a message; false when the message does not
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
	char *name;
	char *sdk_version;
};

static bool
parse_init(const uint8_t *args, size_t len, struct init_request *q)
{
	struct pb_reader r;
	struct pb_field f;
	char **text;

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
		case INIT_SDK_VERSION:
			if (f.wire != PB_BYTES)
				return false;
			text = f.number == INIT_NAME ? &q->name :
			    &q->sdk_version;
			free(*text);
			*text = strndup((const char *)f.data, f.len);
			if (*text == NULL)
				return false;
			break;
		default:
			break;
		}
	}
	return !r.bad;
}

/* The memory that the producer brought along, or NULL. */
static struct shm *
adopt_shm(struct rpc_call call, const struct init_request *q)
{
	struct shm *shm;
	char err[160];
	int fd;

	if (!q->provided || (fd = rpc_take_fd(call)) < 0)
		return NULL;
	/* It writes pages of this size: another would not read them. */
	if ((shm = shm_adopt(fd, q->page_size, err, sizeof(err))) == NULL) {
		log_limited(&refusals, loop_now_ms(), LOG_LEVEL_WARN,
		    "%s: the producer's shared memory is not used: %s",
		    rpc_conn_peer(call.conn)->text, err);
		close(fd);
	}
	return shm;
}

/* One of a remote machine, which may have no relay at all. */
static void
tell_machine(const struct producer_port *p)
{
	const struct peer *peer = rpc_conn_peer(p->conn);
	char authenticated[160];
	struct machine_visitor v = {
		.reach = MACHINE_DIRECT,
		.address = peer->text,
		.authenticated = peer_authenticated_text(peer, authenticated,
		    sizeof(authenticated)),
	};

	if (p->producer->machine->id != 0)
		machine_presence_came(p->producer->machine, &v);
}

static enum rpc_verdict
initialize(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct producer_port *p = ctx;
	const struct peer *peer = rpc_conn_peer(call.conn);
	struct producer_hello hello = { 0 };
	struct init_request q;
	struct pb_writer w;
	const char *why;
	char name[80], what[96];
	enum rpc_verdict v = RPC_REJECT;

	pb_writer_init(&w);
	if (!parse_init(args, len, &q)) {
		v = RPC_BAD_ARGS;
		goto out;
	}
	if (p->producer != NULL)
		goto out;
	hello.name = q.name != NULL ? q.name : "";
	hello.sdk_version = q.sdk_version;
	hello.own = peer->auth == PEER_UNIX && !peer->forwarded &&
	    peer->uid == geteuid();
	if (!lockdown_permits(p->service, hello.own)) {
		log_refused(p, "producer", "lockdown_mode is set, and it is "
		    "not of the service's own user");
		goto out;
	}
	hello.emulated = !peer->can_pass_fds;
	hello.elsewhere = producer_may_be_elsewhere(p->service, call.conn);
	hello.scrape = q.scraping != SCRAPING_DISABLED;
	hello.shm_size_hint = q.shm_size;
	hello.page_size_hint = q.page_size;
	producer_identity(p->service, call.conn, &hello.uid, &hello.pid,
	    &hello.machine);
	hello.machine_name = producer_machine_claim(p->service, call.conn);
	hello.peer = peer_count_key(peer);
	if (hello.machine == NULL) {
		log_refused(p, "producer", "too many machines or no memory");
		goto out;
	}
	if (!hello.emulated)
		hello.shm = adopt_shm(call, &q);
	p->producer = producer_new(p->service, &hello, &ops, p, &why);
	if (p->producer == NULL) {
		snprintf(what, sizeof(what), "producer %s", log_escape(name,
		    sizeof(name), hello.name, strlen(hello.name)));
		log_refused(p, what, why);
		shm_free(hello.shm);
		goto out;
	}
	p->talk.machine = hello.machine;
	tell_machine(p);
	pb_put_uint(&w, INITED_PROVIDED, hello.shm != NULL);
	pb_put_uint(&w, INITED_PATCHING, 1);
	pb_put_uint(&w, INITED_EMULATION, hello.emulated);
	log_debug("%s: producer %u is %s", peer->text, p->producer->id,
	    log_escape(name, sizeof(name), hello.name, strlen(hello.name)));
	rpc_reply_written(call, &w);
	v = RPC_OK;
out:
	pb_writer_done(&w);
	free(q.name);
	free(q.sdk_version);
	return v;
}

static enum rpc_verdict
register_data_source(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct producer_port *p = ctx;
	const uint8_t *desc;
	const char *error;
	struct pb_writer w;
	size_t n;

	if (p->producer == NULL)
		return RPC_REJECT;
	if (!bytes_field(args, len, 1, &desc, &n))
		return RPC_BAD_ARGS;
	error = producer_register(p->producer, desc, n);
	pb_writer_init(&w);
	if (error != NULL) {
		log_refused(p, "data source", error);
		pb_put_string(&w, 1, error);
	}
	rpc_reply_written(call, &w);
	pb_writer_done(&w);
	return RPC_OK;
}

static enum rpc_verdict
update_data_source(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct producer_port *p = ctx;
	const uint8_t *desc;
	size_t n;

	if (p->producer == NULL)
		return RPC_REJECT;
	if (!bytes_field(args, len, 1, &desc, &n))
		return RPC_BAD_ARGS;
	producer_update(p->producer, desc, n);
	return done(call);
}

static enum rpc_verdict
unregister_data_source(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct producer_port *p = ctx;
	const uint8_t *name;
	size_t n;

	if (p->producer == NULL)
		return RPC_REJECT;
	if (!bytes_field(args, len, 1, &name, &n))
		return RPC_BAD_ARGS;
	if (name != NULL)
		producer_unregister(p->producer, (const char *)name, n);
	return done(call);
}

static enum rpc_verdict
commit(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct producer_port *p = ctx;
	struct machine_contact *c;
	uint64_t flush_id;

	if (UNLIKELY(p->producer == NULL))
		return RPC_REJECT;
	c = &p->producer->machine->contact;
	switch (commit_data(p->producer, args, len, &flush_id)) {
	case COMMIT_OK:
		if (flush_id != 0)
			flush_ack(p->producer, flush_id);
		c->bytes_received += len;
		c->bytes_unpacked += len;
		return call.wants_reply ? done(call) : RPC_OK;
	case COMMIT_BAD:
		return RPC_BAD_ARGS;
	case COMMIT_AGAIN:
		return RPC_AGAIN;
	}
	return RPC_REJECT;
}

static enum rpc_verdict
get_async_command(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct producer_port *p = ctx;
	struct command *c;

	if (p->producer == NULL)
		return RPC_REJECT;
	if (!pb_well_formed(args, len))
		return RPC_BAD_ARGS;
	p->commands = call;
	while ((c = TAILQ_FIRST(&p->queue)) != NULL) {
		TAILQ_REMOVE(&p->queue, c, link);
		rpc_reply(call, c->data, c->len, true, c->with_shm_fd ?
		    shm_fd(p->producer->shm) : -1);
		free(c);
	}
	p->queued_bytes = 0;
	return RPC_OK;
}

static enum rpc_verdict
register_writer(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct producer_port *p = ctx;
	uint64_t writer, buffer;

	if (p->producer == NULL)
		return RPC_REJECT;
	if (!uint_fields(args, len, &writer, &buffer))
		return RPC_BAD_ARGS;
	producer_register_writer(p->producer, (uint32_t)writer,
	    (uint32_t)buffer);
	return done(call);
}

static enum rpc_verdict
unregister_writer(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct producer_port *p = ctx;
	uint64_t writer, none;

	if (p->producer == NULL)
		return RPC_REJECT;
	if (!uint_fields(args, len, &writer, &none))
		return RPC_BAD_ARGS;
	producer_unregister_writer(p->producer, (uint32_t)writer);
	return done(call);
}

static enum rpc_verdict
notify(void *ctx, struct rpc_call call, const uint8_t *args, size_t len,
    void (*ack)(struct ds_instance *))
{
	struct producer_port *p = ctx;
	struct ds_instance *i;
	uint64_t id, none;

	if (p->producer == NULL)
		return RPC_REJECT;
	if (!uint_fields(args, len, &id, &none))
		return RPC_BAD_ARGS;
	if ((i = producer_find_instance(p->producer, id)) != NULL)
		ack(i);
	return done(call);
}

static enum rpc_verdict
notify_started(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	return notify(ctx, call, args, len, instance_ack_started);
}

static enum rpc_verdict
notify_stopped(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	return notify(ctx, call, args, len, instance_ack_stopped);
}

static enum rpc_verdict
activate_triggers(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct producer_port *p = ctx;
	struct pb_reader r;
	struct pb_field f;
	size_t names = 0;

	if (p->producer == NULL)
		return RPC_REJECT;
	pb_init(&r, args, len);
	while (pb_next(&r, &f)) {
		if (f.number == 1 && f.wire != PB_BYTES)
			return RPC_BAD_ARGS;
		names += f.number == 1;
	}
	if (r.bad)
		return RPC_BAD_ARGS;
	if (names > TRIGGERS_PER_CALL)
		return RPC_REJECT;
	pb_init(&r, args, len);
	while (pb_next(&r, &f))
		if (f.number == 1)
			trigger_activate(p->producer, (const char *)f.data,
			    f.len);
	return done(call);
}

static enum rpc_verdict
sync_call(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct producer_port *p = ctx;

	if (p->producer == NULL)
		return RPC_REJECT;
	return pb_well_formed(args, len) ? done(call) : RPC_BAD_ARGS;
}

/*
 * Of a machine that has a relay the relay's word counts, also while it is cut
 * off; of the host, our own.  Another machine than the connection's it cannot speak of.
 */
static bool
speaks_for_machine(const struct producer_port *p)
{
	const struct machine *m = p->producer->machine;

	return m->id != 0 && m->contact.n_relays == 0 && !m->contact.cut;
}

static enum rpc_verdict
init_machine(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct producer_port *p = ctx;
	enum rpc_verdict v;
	struct pb_writer w;

	if (p->producer == NULL)
		return RPC_REJECT;
	v = machine_talk_introduce(&p->talk, speaks_for_machine(p), args, len);
	if (v != RPC_OK)
		return v;
	pb_writer_init(&w);
	pb_put_uint(&w, PRODUCER_MACHINE_TO_BE_MEASURED, speaks_for_machine(p));
	rpc_reply_written(call, &w);
	pb_writer_done(&w);
	return RPC_OK;
}

static enum rpc_verdict
sync_clock(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct producer_port *p = ctx;
	enum rpc_verdict v;

	if (p->producer == NULL)
		return RPC_REJECT;
	v = machine_talk_sync_clock(&p->talk, speaks_for_machine(p), args,
	    len);
	return v == RPC_OK ? done(call) : v;
}

/* In the order of wire-format.md: ids are position + 1; then our own. */
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
	{ PRODUCER_INIT_MACHINE, init_machine },
	{ PRODUCER_SYNC_CLOCK, sync_clock },
};

static void *
bind_port(struct rpc_conn *c, void *arg)
{
	struct service *s = arg;
	struct producer_port *p;

	if ((p = calloc(1, sizeof(*p))) == NULL) {
		rpc_conn_refuse(c, "the collector is out of memory");
		return NULL;
	}
	p->service = s;
	p->conn = c;
	p->talk = (struct machine_talk){ .conn = c, .service = s,
		.who = "producer" };
	TAILQ_INIT(&p->queue);
	rpc_conn_set_limits(c,
	    (size_t)s->settings->limits.max_send_queue_kb * 1024, 0);
	return p;
}

static void
gone(void *ctx)
{
	struct producer_port *p = ctx;
	struct command *c;

	if (p->producer != NULL) {
		if (p->producer->machine->id != 0)
			machine_presence_left(p->producer->machine);
		producer_gone(p->producer);
	}
	while ((c = TAILQ_FIRST(&p->queue)) != NULL) {
		TAILQ_REMOVE(&p->queue, c, link);
		free(c);
	}
	free(p);
}

void
producer_port_init(struct rpc_service *out, struct service *s)
{
	*out = (struct rpc_service){
		.name = "ProducerPort",
		.alias = "producer_port",
		.methods = methods,
		.n_methods = sizeof(methods) / sizeof(methods[0]),
		.bind = bind_port,
		.gone = gone,
		.arg = s,
	};
}
