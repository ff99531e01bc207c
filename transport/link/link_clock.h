/*
 * link_clock: LinkClock messages, read and written.  Pure; both ends use it.
 */
#ifndef TRANSPORT_LINK_LINK_CLOCK_H
#define TRANSPORT_LINK_LINK_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/clock/clock_snapshot.h"
#include "transport/link/link_wire.h"

enum link_clock_kind {
	LINK_CLOCK_PING = 1,
	LINK_CLOCK_PONG = 2,
	LINK_CLOCK_RESULT = 3,
};

struct link_clock {
	enum link_clock_kind kind;
	uint32_t id;
	struct clock_snapshot before; /* RESULT */
	struct clock_snapshot host;   /* PONG, RESULT */
	struct clock_snapshot after;  /* RESULT */
	uint64_t round_trip_ns;       /* RESULT */
};

/*
 * -1: malformed, of an unknown kind, a clock that is missing, named twice or
 * absurd, or one that cannot be set and ran backwards.
 */
int link_clock_parse(struct link_clock *c, const uint8_t *data, size_t len)
    MUST_CHECK;
/* Kind and id alone; 0: not given, or malformed. */
void link_clock_peek(const uint8_t *clock, size_t len, uint32_t *kind,
    uint32_t *id);
/* Returns the bytes written. */
size_t link_clock_put(uint8_t out[LINK_CLOCK_MAX], const struct link_clock *c);

#endif /* TRANSPORT_LINK_LINK_CLOCK_H */
