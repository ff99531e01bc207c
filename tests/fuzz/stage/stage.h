/*
 * stage: a collector without a daemon, and what acts on it: the ports, small
 * limits, a turn for everybody, and the check at the end that nothing is left.
 */
#ifndef TESTS_FUZZ_STAGE_STAGE_H
#define TESTS_FUZZ_STAGE_STAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/collector/service.h"
#include "service/settings/settings.h"
#include "tests/fuzz/stage/wire.h"
#include "transport/rpc/rpc_host.h"
#include "transport/socket/peer.h"

enum {
	STAGE_PRODUCER,
	STAGE_CONSUMER,
	STAGE_CONTROL,
	STAGE_LINK,
	STAGE_PORTS,
};

#define STAGE_WIRES 16u

struct stage {
	struct loop *loop;
	struct service *service;
	struct rpc_service ports[STAGE_PORTS];
	const struct rpc_service *list[STAGE_PORTS];
	struct rpc_stats stats;
	struct wire_entry entry;
	/* Where producers connect to, a relay's; NULL: here. */
	const struct wire_entry *producers;
	/* At each turn, before anybody reads; NULL: nothing. */
	void (*carry)(void *arg);
	void *carry_arg;
	struct wire *wires[STAGE_WIRES]; /* read at each turn */
	size_t n_wires;
};

/*
 * Peers: a strange UNIX user who is no admin, another one, and somebody at a
 * TCP address, whose descriptors do not travel.
 */
extern const struct peer stage_stranger;
extern const struct peer stage_neighbour;
extern const struct peer stage_remote;

void stage_begin(struct stage *s);
/* How long links survive their connections, from now on. */
void stage_set_grace(uint64_t ms);
/*
 * The collector becomes another one with the same sessions: it knows no link,
 * and no relay knows it.
 */
void stage_replace_collector(struct stage *s);
void stage_add(struct stage *s, struct wire *w);
/* Connects a wire to a port. */
void stage_open(struct stage *s, struct wire *w, int port,
    const struct peer *peer);
void stage_turn(struct stage *s, unsigned n);
/* How many turns, and whether a millisecond passes before each. */
void stage_linger(struct stage *s, const uint8_t how[2], unsigned most);
/*
 * A turn while somebody waits for something: what is broken if it does not come
 * (turns.h).  *turns is 0 at first.
 */
void stage_wait(struct stage *s, unsigned *turns, const char *what);
/* All wires are closed: sees everybody leave, and what is left. */
void stage_end(struct stage *s);

/* Says what is broken, and ends the program. */
void stage_require(bool ok, const char *what);

#endif /* TESTS_FUZZ_STAGE_STAGE_H */
