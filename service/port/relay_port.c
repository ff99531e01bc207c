#include "service/port/relay_port.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/ingest/quota.h"
#include "service/machine/machine_presence.h"
#include "service/model/model.h"
#include "service/port/machine_talk.h"
#include "service/port/peer_identity.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_host.h"

/* Limit of log lines of all relays together. */
static struct log_limit no_effect;
static struct log_limit coming_and_going;

static bool
is_host(const struct machine_talk *r)
{
	return r->machine->id == 0;
}

/* Makes a connection's machine_talk, which holds a reference to its machine. */
static void *
bind_cb(struct rpc_conn *c, void *arg)
{
	struct service *s = arg;
	const char *why;
	char name[128];
	struct machine_talk *r;

	if ((r = calloc(1, sizeof(*r))) == NULL) {
		rpc_conn_refuse(c, "the collector is out of memory");
		return NULL;
	}
	*r = (struct machine_talk){ .conn = c, .service = s,
		.who = "relay", .may_name = true };
	if ((r->machine = relay_machine(s, c)) == NULL) {
		machine_talk_refused(r, "BindService",
		    "too many machines or no memory");
		free(r);
		return NULL;
	}
	quota_meet(s, r->machine);
	if (!is_host(r) &&
	    (why = quota_admit_connection(r->machine, 0)) != NULL) {
		machine_talk_refused(r, "BindService", why);
		free(r);
		return NULL;
	}
	machine_ref(r->machine);
	if (is_host(r)) {
		log_limited(&no_effect, loop_now_ms(), LOG_LEVEL_WARN,
		    "relay %s: a relay on a UNIX socket cannot be told from "
		    "this machine: its reports of system and clocks have no "
		    "effect; connect it over TCP or vsock",
		    rpc_conn_peer(c)->text);
		return r;
	}
	peer_tell_machine(rpc_conn_peer(c), r->machine, MACHINE_CLASSIC, "");
	log_escape(name, sizeof(name), r->machine->name,
	    strlen(r->machine->name));
	log_limited(&coming_and_going, loop_now_ms(), LOG_LEVEL_INFO,
	    "relay %s: machine %u \"%s\" connected",
	    rpc_conn_peer(c)->text, r->machine->id, name);
	return r;
}

static void
gone_cb(void *ctx)
{
	struct machine_talk *r = ctx;

	if (!is_host(r)) {
		machine_presence_gone(r->machine, true);
		log_limited(&coming_and_going, loop_now_ms(), LOG_LEVEL_INFO,
		    "relay of machine %u disconnected", r->machine->id);
	}
	machine_unref(r->machine);
	free(r);
}

static enum rpc_verdict
answered(enum rpc_verdict v, struct rpc_call call)
{
	if (v == RPC_OK)
		rpc_reply(call, "", 0, false, -1);
	return v;
}

static enum rpc_verdict
init_relay(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	return answered(machine_talk_introduce(ctx, !is_host(ctx), args,
	    len), call);
}

static enum rpc_verdict
sync_clock(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	return answered(machine_talk_sync_clock(ctx, !is_host(ctx), args,
	    len), call);
}

static const struct rpc_method methods[] = {
	{ "InitRelay", init_relay },
	{ "SyncClock", sync_clock },
};

void
relay_port_init(struct rpc_service *out, struct service *s)
{
	*out = (struct rpc_service){
		.name = "RelayPort",
		.alias = "relay_port",
		.methods = methods,
		.n_methods = sizeof(methods) / sizeof(methods[0]),
		.bind = bind_cb,
		.gone = gone_cb,
		.arg = s,
	};
}
