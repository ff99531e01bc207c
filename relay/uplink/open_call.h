/*
 * open_call: the first call of a link: makes LinkOpen, and checks whether
 * LinkOpened can be an answer to it.  Pure.
 */
#ifndef RELAY_UPLINK_OPEN_CALL_H
#define RELAY_UPLINK_OPEN_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protos/link.pb-c.h"
#include "transport/base/compiler.h"

struct outbox_state;
struct relay_settings;

/* Members of LinkOpen about a move of the link to another collector. */
struct uplink_moving {
	bool can;            /* LinkOpen.can_move */
	bool moves;          /* the second Open, as the next two */
	uint32_t buffer_tag;
	uint64_t consumed;
};

/* Encoded, to be freed; NULL: no memory. */
uint8_t *uplink_open_encode(const struct outbox_state *st,
    const struct relay_settings *s, const struct uplink_moving *moving,
    size_t *len) MUST_CHECK;

/*
 * The answer, checked against what was said, to be freed with
 * uplink_opened_free(); NULL with a sentence in *wrong (static).
 */
Tributary__LinkOpened *uplink_opened_decode(const uint8_t *data, size_t len,
    const struct outbox_state *st, const struct relay_settings *s,
    const char **wrong) MUST_CHECK;
void uplink_opened_free(Tributary__LinkOpened *m);

/* The LinkLossCause of what an old link had not delivered. */
uint32_t uplink_opened_cause(const Tributary__LinkOpened *m);
/* Words for people: "resumed", "the collector was started again". */
const char *uplink_opened_text(const Tributary__LinkOpened *m);

#endif /* RELAY_UPLINK_OPEN_CALL_H */
