/*
 * uplink_fakes: what stands around an uplink, in tests: local producers, clocks
 * and Perfetto's own way write down what they were told.
 */
#ifndef TESTS_UNIT_RELAY_UPLINK_UPLINK_FAKES_H
#define TESTS_UNIT_RELAY_UPLINK_UPLINK_FAKES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/clocks/link_clocks.h"
#include "relay/perfetto/perfetto_relay.h"
#include "relay/producers/producers.h"
#include "transport/base/compiler.h"

struct uplink_fakes {
	/* "announce 0; lost 0 5; command 3 abc; " */
	char log[4096];
	unsigned away; /* times of producers_away() */
	size_t count; /* producers_count() */
	unsigned moves; /* LinkMoves of channel 1 that are told */
	bool moves_are_long;
	bool moves_fail;
	uint32_t buffer_tag;
	uint32_t settles; /* channel whose flush is asked for; 0: none */
	struct producers_settle settle; /* as it was called */
	void (*recovered)(void *arg);
	void *recovered_arg;
	struct link_clocks_ops clocks;
	void *clocks_arg;
	bool clocks_run;
	int classics; /* alive */
	bool classic_fails;
	bool perfetto_relay_without_clocks;
	struct perfetto_relay_setup classic;
};
extern struct uplink_fakes fakes;

/* All as at the begin. */
void fakes_reset(void);
void fakes_say(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* What was said since the last call, which must be this. */
void fakes_expect(const char *log);

#endif /* TESTS_UNIT_RELAY_UPLINK_UPLINK_FAKES_H */
