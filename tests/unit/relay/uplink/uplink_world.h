/*
 * uplink_world: an uplink with a real outbox, in time that tests turn on, and a
 * collector that does as it is told (fake_collector.h, uplink_fakes.h).
 */
#ifndef TESTS_UNIT_RELAY_UPLINK_UPLINK_WORLD_H
#define TESTS_UNIT_RELAY_UPLINK_UPLINK_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/outbox/outbox.h"
#include "relay/settings/settings.h"
#include "relay/uplink/uplink.h"
#include "tests/unit/fake_time.h"
#include "tests/unit/relay/uplink/fake_collector.h"
#include "tests/unit/relay/uplink/uplink_fakes.h"
#include "transport/socket/addr.h"

struct uplink_world {
	struct loop *loop;
	struct relay_settings settings;
	struct addr to;
	char dir[64];
	char path[96];
	int state_dirfd;
	struct outbox *outbox;
	struct uplink *u;
	struct fake_collector collector;
	int stopped;
};
extern struct uplink_world *world;

/* cmocka's; the uplink is there, but not started. */
int world_setup(void **state);
int world_teardown(void **state);

/* Until nothing moves any more. */
void world_settle(void);
void world_pass(uint64_t ms);
void world_start(void);
/* Started, with a collector that took the link as a new one. */
void world_link(void);
/* As if the relay was killed, and started again. */
void world_restart(void);
/* As of now; the next call replaces it. */
const struct uplink_view *world_view(void);
void world_stop(uint64_t linger_ms);

/* What producers say. */
void world_put(uint32_t channel, enum link_up kind, const char *text);
void world_commit(uint32_t channel, size_t len);

#endif /* TESTS_UNIT_RELAY_UPLINK_UPLINK_WORLD_H */
