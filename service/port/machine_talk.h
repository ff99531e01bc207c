/*
 * machine_talk: InitRelay and SyncClock: a connection sends the SystemInfo of
 * its machine, once, and exchanges of its clocks with ours, again and again (in
 * the order of clock_exchange.h).  Both are stored in the machine, for the
 * traces of all sessions, and stay when the connection is gone.
 *
 * Used by RelayPort, and by ProducerPort for a producer on a machine without a
 * relay.  The machine is the one that peer_identity.h found for the connection.
 */
#ifndef SERVICE_PORT_MACHINE_TALK_H
#define SERVICE_PORT_MACHINE_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/port/clock_exchange.h"
#include "transport/base/compiler.h"
#include "transport/rpc/rpc_host.h"

struct machine;
struct service;

struct machine_talk {
	struct rpc_conn *conn;   /* borrowed, as the next two */
	struct service *service;
	struct machine *machine;
	const char *who;         /* for the log: "relay"; static */
	bool may_name;           /* its SystemInfo may name the machine anew */
	bool introduced;         /* machine_talk_introduce() took something */
	struct clock_exchange clocks;
};

/*
 * Both take the arguments of the call, and return RPC_OK where a reply is due.
 * heed false: the message is checked and has no effect.
 */

/* InitRelay: a message with a SystemInfo; refused the second time. */
enum rpc_verdict machine_talk_introduce(struct machine_talk *t, bool heed,
    const uint8_t *args, size_t len) MUST_CHECK;
/* SyncClock. */
enum rpc_verdict machine_talk_sync_clock(struct machine_talk *t, bool heed,
    const uint8_t *args, size_t len) MUST_CHECK;

/* Logs a refusal, rate-limited over all connections. */
void machine_talk_refused(const struct machine_talk *t, const char *what,
    const char *why);

#endif /* SERVICE_PORT_MACHINE_TALK_H */
