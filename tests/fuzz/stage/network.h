/*
 * network: one connection between two ends in the same process,
 * that is carried by hand: so many bytes at a time, cut anywhere, with bytes
 * changed on the way.
 */
#ifndef TESTS_FUZZ_STAGE_NETWORK_H
#define TESTS_FUZZ_STAGE_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum network_way { NETWORK_UP, NETWORK_DOWN, NETWORK_WAYS };

struct network {
	int end[NETWORK_WAYS];       /* where bytes of that way come from */
	bool stalled[NETWORK_WAYS];  /* nothing is carried by itself */
	uint8_t harm[NETWORK_WAYS];  /* of the next byte; 0: none */
};

void network_init(struct network *n);
bool network_is_up(const struct network *n);
/* Two new ends: one for a client, one for the service; the caller's. */
void network_open(struct network *n, int *client, int *service);
void network_cut(struct network *n);
/* At most so many bytes that way.  Ends that are gone cut it. */
void network_carry(struct network *n, enum network_way way, size_t most);

#endif /* TESTS_FUZZ_STAGE_NETWORK_H */
