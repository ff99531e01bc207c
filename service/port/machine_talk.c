#include "service/port/machine_talk.h"

#include <string.h>

#include "protos/fields.h"
#include "service/machine/machine_clock.h"
#include "service/model/model.h"
#include "service/port/machine_info.h"
#include "service/port/peer_identity.h"
#include "transport/base/log.h"
#include "transport/clock/clock_snapshot.h"
#include "transport/loop/loop.h"
#include "transport/wire/pb_reader.h"

static struct log_limit refusals;

void
machine_talk_refused(const struct machine_talk *t, const char *what,
    const char *why)
{
	log_limited(&refusals, loop_now_ms(), LOG_LEVEL_WARN,
	    "%s %s: %s refused: %s", t->who, rpc_conn_peer(t->conn)->text,
	    what, why);
}

/* The last system_info of an InitRelayRequest; false: malformed. */
static bool
find_system_info(const uint8_t *args, size_t len, struct pb_field *out)
{
	struct pb_reader r;
	struct pb_field f;

	memset(out, 0, sizeof(*out));
	PB_FOREACH(&f, &r, args, len)
		if (f.number == InitRelayRequest_system_info &&
		    f.wire == PB_BYTES)
			*out = f;
	return !r.bad;
}

static enum rpc_verdict
take_system_info(struct machine_talk *t, const uint8_t *data, size_t len)
{
	const struct rpc_claimed_identity *claimed = rpc_conn_identity(t->conn);
	const char *why;

	switch (machine_info_take(t->machine, data, len, t->may_name &&
	    peer_names_machine(t->service->trust, rpc_conn_peer(t->conn)),
	    claimed->present && claimed->machine_name[0] != '\0', &why)) {
	case MACHINE_INFO_TAKEN:
		return RPC_OK;
	case MACHINE_INFO_BAD:
		return RPC_BAD_ARGS;
	case MACHINE_INFO_REFUSED:
		machine_talk_refused(t, "its SystemInfo", why);
		return RPC_REJECT;
	}
	return RPC_REJECT;
}

enum rpc_verdict
machine_talk_introduce(struct machine_talk *t, bool heed, const uint8_t *args,
    size_t len)
{
	enum rpc_verdict v;
	struct pb_field f;

	if (t->introduced) {
		machine_talk_refused(t, "InitRelay", "it was called before");
		return RPC_REJECT;
	}
	if (!find_system_info(args, len, &f))
		return RPC_BAD_ARGS;
	if (f.data != NULL && heed &&
	    (v = take_system_info(t, f.data, f.len)) != RPC_OK)
		return v;
	t->introduced = true;
	return RPC_OK;
}

static enum rpc_verdict
keep_exchange(struct machine_talk *t)
{
	const char *why;

	if (machine_clock_take_exchange(t->machine, &t->clocks.ping,
	    &t->clocks.update, &why) == 0)
		return RPC_OK;
	machine_talk_refused(t, "SyncClock", why);
	return RPC_REJECT;
}

enum rpc_verdict
machine_talk_sync_clock(struct machine_talk *t, bool heed, const uint8_t *args,
    size_t len)
{
	struct clock_snapshot now;
	const char *why = NULL;

	clock_snapshot_take(&now); /* first of all: what follows takes time */
	switch (clock_exchange_step(&t->clocks, args, len, &now, &why)) {
	case CLOCK_EXCHANGE_PINGED:
		return RPC_OK;
	case CLOCK_EXCHANGE_DONE:
		return heed ? keep_exchange(t) : RPC_OK;
	case CLOCK_EXCHANGE_TOO_LONG:
		log_debug("%s %s: a clock exchange took over %llu s and is "
		    "not used", t->who, rpc_conn_peer(t->conn)->text,
		    MACHINE_CLOCK_LONGEST_NS / 1000000000ull);
		return RPC_OK;
	case CLOCK_EXCHANGE_BAD:
		return RPC_BAD_ARGS;
	case CLOCK_EXCHANGE_REFUSED:
		machine_talk_refused(t, "SyncClock", why);
		return RPC_REJECT;
	}
	return RPC_REJECT;
}
