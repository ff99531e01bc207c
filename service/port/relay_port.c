#include "service/port/relay_port.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/port/clock_exchange.h"
#include "service/port/machine_info.h"
#include "service/port/peer_identity.h"
#include "service/session/machine_clock.h"
#include "service/session/machine_contact.h"
#include "service/session/quota.h"
#include "service/session/service.h"
#include "transport/clock_snapshot.h"
#include "transport/log.h"
#include "transport/loop.h"
#include "transport/pb_reader.h"
#include "transport/pb_writer.h"
#include "transport/rpc_host.h"

/* InitRelayRequest (reference wire-format.md). */
enum { INIT_SYSTEM_INFO = 1 };

/* One connection of a relay; the ctx of its methods. */
struct relay {
	struct rpc_conn *conn;
	struct service *service;
	struct machine *machine; /* referred to */
	bool introduced;         /* InitRelay was taken */
	struct clock_exchange clocks;
};

/* Of all relays together: a line a second, after a few at once. */
static struct log_limit refusals;
static struct log_limit coming_and_going;

static void
log_refusal(const struct relay *r, const char *method, const char *why)
{
	log_limited(&refusals, loop_now_ms(), LOG_LEVEL_WARN,
	    "relay %s: %s refused: %s", rpc_conn_peer(r->conn)->text, method,
	    why);
}

static bool
is_host(const struct relay *r)
{
	return r->machine->id == 0;
}

static void
tell_machine(const struct relay *r)
{
	const struct peer *p = rpc_conn_peer(r->conn);
	char authenticated[160];
	struct machine_visitor v = {
		.reach = MACHINE_CLASSIC,
		.address = p->text,
		.authenticated = peer_authenticated_text(p, authenticated,
		    sizeof(authenticated)),
		.software = "",
	};

	machine_contact_came(r->machine, &v);
}

static void *
bind_cb(struct rpc_conn *c, void *arg)
{
	struct service *s = arg;
	const char *why;
	char name[128];
	struct relay *r;

	if ((r = calloc(1, sizeof(*r))) == NULL) {
		rpc_conn_refuse(c, "the collector is out of memory");
		return NULL;
	}
	r->conn = c;
	r->service = s;
	if ((r->machine = relay_machine(s, c)) == NULL) {
		log_refusal(r, "BindService", "too many machines or no memory");
		free(r);
		return NULL;
	}
	quota_meet(s, r->machine);
	if (!is_host(r) &&
	    (why = quota_refuses_connection(r->machine, 0)) != NULL) {
		log_refusal(r, "BindService", why);
		free(r);
		return NULL;
	}
	machine_ref(r->machine);
	if (is_host(r)) {
		log_limited(&refusals, loop_now_ms(), LOG_LEVEL_WARN,
		    "relay %s: a relay on a UNIX socket cannot be told "
		    "from this machine: what it says of its system and clocks "
		    "has no effect; connect it over TCP or vsock",
		    rpc_conn_peer(c)->text);
		return r;
	}
	tell_machine(r);
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
	struct relay *r = ctx;

	if (!is_host(r)) {
		machine_contact_gone(r->machine, true);
		log_limited(&coming_and_going, loop_now_ms(), LOG_LEVEL_INFO,
		    "relay of machine %u disconnected", r->machine->id);
	}
	machine_unref(r->machine);
	free(r);
}

/* The last system_info of an InitRelayRequest; false: malformed. */
static bool
find_system_info(const uint8_t *args, size_t len, struct pb_field *out)
{
	struct pb_reader r;
	struct pb_field f;

	memset(out, 0, sizeof(*out));
	pb_init(&r, args, len);
	while (pb_next(&r, &f))
		if (f.number == INIT_SYSTEM_INFO && f.wire == PB_BYTES)
			*out = f;
	return !r.bad;
}

static enum rpc_verdict
take_system_info(struct relay *r, const uint8_t *data, size_t len)
{
	const struct rpc_claimed_identity *claimed = rpc_conn_identity(r->conn);
	const char *why;

	switch (machine_info_take(r->machine, data, len,
	    peer_names_machine(r->service->trust, rpc_conn_peer(r->conn)),
	    claimed->present && claimed->machine_name[0] != '\0', &why)) {
	case MACHINE_INFO_TAKEN:
		return RPC_OK;
	case MACHINE_INFO_BAD:
		return RPC_BAD_ARGS;
	case MACHINE_INFO_REFUSED:
		log_refusal(r, "InitRelay", why);
		return RPC_REJECT;
	}
	return RPC_REJECT;
}

static enum rpc_verdict
init_relay(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct relay *r = ctx;
	enum rpc_verdict v;
	struct pb_field f;

	if (r->introduced) {
		log_refusal(r, "InitRelay", "it was called before");
		return RPC_REJECT;
	}
	if (!find_system_info(args, len, &f))
		return RPC_BAD_ARGS;
	if (f.data != NULL && !is_host(r) &&
	    (v = take_system_info(r, f.data, f.len)) != RPC_OK)
		return v;
	r->introduced = true;
	rpc_reply(call, "", 0, false, -1);
	return RPC_OK;
}

static enum rpc_verdict
keep_exchange(struct relay *r)
{
	const char *why;

	if (is_host(r) || machine_clock_take_exchange(r->machine,
	    &r->clocks.ping, &r->clocks.update, &why) == 0)
		return RPC_OK;
	log_refusal(r, "SyncClock", why);
	return RPC_REJECT;
}

static enum rpc_verdict
sync_clock(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	enum rpc_verdict v = RPC_OK;
	struct relay *r = ctx;
	struct clock_snapshot now;
	const char *why = NULL;

	clock_snapshot_take(&now); /* first of all: what follows takes time */
	switch (clock_exchange_step(&r->clocks, args, len, &now, &why)) {
	case CLOCK_EXCHANGE_PINGED:
		break;
	case CLOCK_EXCHANGE_DONE:
		v = keep_exchange(r);
		break;
	case CLOCK_EXCHANGE_TOO_LONG:
		log_debug("relay %s: a clock exchange took over %llu s and is "
		    "not used", rpc_conn_peer(r->conn)->text,
		    MACHINE_CLOCK_LONGEST_NS / 1000000000ull);
		break;
	case CLOCK_EXCHANGE_BAD:
		return RPC_BAD_ARGS;
	case CLOCK_EXCHANGE_REFUSED:
		log_refusal(r, "SyncClock", why);
		return RPC_REJECT;
	}
	if (v == RPC_OK)
		rpc_reply(call, "", 0, false, -1);
	return v;
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
