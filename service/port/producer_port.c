#include "service/port/producer_port.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/ingest/commit.h"
#include "service/ingest/writers.h"
#include "service/link/producer_command.h"
#include "service/machine/machine_presence.h"
#include "service/model/model.h"
#include "service/port/machine_talk.h"
#include "service/port/peer_identity.h"
#include "service/session/flush.h"
#include "service/session/instance.h"
#include "service/session/lockdown.h"
#include "service/session/producer.h"
#include "service/session/trigger.h"
#include "service/settings/settings.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/producer_port/producer_server.h"
#include "transport/rpc/rpc_host.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_writer.h"
#include "transport/wire/service_names.h"

struct producer_port {
	struct producer_command_port commands;
	struct producer_server server;
	struct service *service;
	struct producer *producer; /* NULL before InitializeConnection */
	struct machine_talk talk;  /* of the producer's machine */
};

/* ---- commands to the producer ---- */

static void
send_command(void *port, const struct pb_writer *w, bool with_shm)
{
	struct producer_port *p = port;

	with_shm &= p->producer->memory == MEMORY_OURS;
	producer_server_send(&p->server, w, with_shm ?
	    shm_fd(p->producer->shm) : -1);
}

static void
resume(void *port)
{
	struct producer_port *p = port;

	rpc_conn_resume(p->server.conn);
}

/* ---- calls from the producer ---- */

/* Limit of refusals that are logged, of all producers together. */
static struct log_limit refusals;

/* The memory that the producer handed over, or NULL. */
static struct shm *
adopt_shm(struct rpc_call call, const struct producer_init *q)
{
	struct shm *shm;
	char err[160];

	shm = producer_init_shm(call, q, err, sizeof(err));
	if (shm == NULL && err[0] != '\0')
		log_limited(&refusals, loop_now_ms(), LOG_LEVEL_WARN,
		    "%s: the producer's shared memory is not used: %s",
		    rpc_conn_peer(call.conn)->text, err);
	return shm;
}

/* NULL on success, else why the producer is refused. */
static const char *
read_hello(struct producer_port *p, struct rpc_call call,
    const struct producer_init *q, struct producer_hello *hello)
{
	const struct peer *peer = rpc_conn_peer(call.conn);

	*hello = (struct producer_hello){
		.name = q->name,
		.sdk_version = q->sdk_version,
		.own = peer->auth == PEER_UNIX && !peer->forwarded &&
		    peer->uid == geteuid(),
		.emulated = q->emulated,
		.scrape = q->scrape,
		.shm_size_hint = q->shm_size_hint,
		.page_size_hint = q->page_size_hint,
		.peer = peer_count_key(peer),
	};
	if (!lockdown_permits(p->service, hello->own))
		return "lockdown_mode is set, and it is not of the service's "
		       "own user";
	hello->elsewhere = producer_may_be_elsewhere(p->service, call.conn);
	producer_identity(p->service, call.conn, &hello->uid, &hello->pid,
	    &hello->machine);
	hello->machine_name = producer_machine_claim(p->service, call.conn);
	return hello->machine == NULL ? "too many machines or no memory" : NULL;
}

static enum rpc_verdict
initialize(void *owner, struct rpc_call call, const struct producer_init *q)
{
	struct producer_port *p = owner;
	struct producer_hello hello;
	const char *why;
	char name[80], what[96];

	if ((why = read_hello(p, call, q, &hello)) != NULL) {
		producer_server_log(&p->server, "producer", why);
		return RPC_REJECT;
	}
	hello.shm = adopt_shm(call, q);
	log_escape(name, sizeof(name), q->name, strlen(q->name));
	p->producer = producer_new(p->service, &hello,
	    &producer_command_ops, p, &why);
	if (p->producer == NULL) {
		snprintf(what, sizeof(what), "producer %s", name);
		producer_server_log(&p->server, what, why);
		shm_free(hello.shm);
		return RPC_REJECT;
	}
	p->talk.machine = hello.machine;
	/* A remote machine may have no relay at all. */
	if (p->producer->machine->id != 0)
		peer_tell_machine(rpc_conn_peer(p->server.conn),
		    p->producer->machine, MACHINE_DIRECT, NULL);
	log_debug("%s: producer %u is %s", rpc_conn_peer(call.conn)->text,
	    p->producer->id, name);
	producer_init_reply(call, q, hello.shm != NULL);
	return RPC_OK;
}

static const char *
register_source(void *owner, const uint8_t *descriptor, size_t len)
{
	struct producer_port *p = owner;

	return producer_register(p->producer, descriptor, len);
}

static void
update_source(void *owner, const uint8_t *descriptor, size_t len)
{
	struct producer_port *p = owner;

	producer_update(p->producer, descriptor, len);
}

static void
unregister_source(void *owner, const char *name, size_t len)
{
	struct producer_port *p = owner;

	producer_unregister(p->producer, name, len);
}

static enum rpc_verdict
commit(void *owner, const uint8_t *request, size_t len)
{
	struct producer_port *p = owner;
	struct machine_contact *c = &p->producer->machine->contact;
	uint64_t flush_id;

	switch (commit_data(p->producer, request, len, &flush_id)) {
	case COMMIT_OK:
		if (flush_id != 0)
			flush_ack(p->producer, flush_id);
		c->bytes_received += len;
		c->bytes_unpacked += len;
		return RPC_OK;
	case COMMIT_BAD:
		return RPC_BAD_ARGS;
	case COMMIT_AGAIN:
		return RPC_AGAIN;
	}
	return RPC_REJECT;
}

static void
register_writer(void *owner, uint32_t writer, uint32_t buffer)
{
	struct producer_port *p = owner;

	writers_register(p->producer, writer, buffer);
}

static void
unregister_writer(void *owner, uint32_t writer)
{
	struct producer_port *p = owner;

	writers_unregister(p->producer, writer);
}

static void
started(void *owner, uint64_t instance)
{
	struct producer_port *p = owner;
	struct ds_instance *i = producer_find_instance(p->producer, instance);

	if (i != NULL)
		instance_ack_started(i);
}

static void
stopped(void *owner, uint64_t instance)
{
	struct producer_port *p = owner;
	struct ds_instance *i = producer_find_instance(p->producer, instance);

	if (i != NULL)
		instance_ack_stopped(i);
}

static void
triggers(void *owner, const struct producer_trigger *t, size_t n)
{
	struct producer_port *p = owner;
	size_t i;

	for (i = 0; i < n; i++)
		trigger_activate(p->producer, t[i].name, t[i].len);
}

/*
 * False where a better source knows the machine's system and clocks: its relay,
 * also while its link is cut, or on the host the collector itself.
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

	v = machine_talk_sync_clock(&p->talk, speaks_for_machine(p), args,
	    len);
	if (v == RPC_OK)
		rpc_reply(call, NULL, 0, false, -1);
	return v;
}

/* ---- a connection's beginning and end ---- */

static void
gone(void *owner)
{
	struct producer_port *p = owner;

	if (p->producer != NULL) {
		if (p->producer->machine->id != 0)
			machine_presence_left(p->producer->machine);
		producer_gone(p->producer);
	}
	free(p);
}

static const struct producer_verbs verbs = {
	.gone = gone,
	.initialize = initialize,
	.register_source = register_source,
	.update_source = update_source,
	.unregister_source = unregister_source,
	.commit = commit,
	.register_writer = register_writer,
	.unregister_writer = unregister_writer,
	.started = started,
	.stopped = stopped,
	.triggers = triggers,
	.init_machine = init_machine,
	.sync_clock = sync_clock,
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
	producer_server_init(&p->server, &(struct producer_server_setup){
		.verbs = &verbs,
		.owner = p,
		.conn = c,
		.refusals = &refusals,
		.max_queue =
		    (size_t)s->settings->limits.max_send_queue_kb * 1024,
	});
	p->commands = (struct producer_command_port){ .send = send_command,
		.resume = resume };
	p->service = s;
	p->talk = (struct machine_talk){ .conn = c, .service = s,
		.who = "producer" };
	return &p->server;
}

void
producer_port_init(struct rpc_service *out, struct service *s)
{
	producer_server_service(out, true, bind_port, s);
}
