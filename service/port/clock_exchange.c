#include "service/port/clock_exchange.h"

#include "protos/fields.h"
#include "transport/wire/pb_reader.h"

/* Ids that mean the same clock everywhere; others are a sequence's own. */
#define BUILTIN_CLOCK_MAX 63u

static const char *
add_clock(struct machine_clock_sample *s, const struct pb_field *message,
    bool *bad)
{
	struct clock_reading c = { 0, 0 };
	struct pb_reader r;
	struct pb_field f;
	size_t i;

	pb_init(&r, message->data, message->len);
	while (pb_next(&r, &f)) {
		if (f.number == SyncClockRequest_Clock_clock_id &&
		    f.wire == PB_VARINT)
			c.id = (uint32_t)f.value;
		else if (f.number == SyncClockRequest_Clock_timestamp &&
		    f.wire == PB_VARINT)
			c.ns = f.value;
	}
	*bad |= r.bad;
	if (c.id == 0 || c.id > BUILTIN_CLOCK_MAX)
		return "a clock is none of the builtin ones";
	if (c.ns == 0 || c.ns > INT64_MAX)
		return "a clock's time is absurd";
	for (i = 0; i < s->n_client; i++)
		if (s->client[i].id == c.id)
			return "a clock is named twice";
	if (s->n_client == MACHINE_CLOCKS_MAX)
		return "too many clocks";
	s->client[s->n_client++] = c;
	return NULL;
}

/* The sentence that refuses it, or NULL.  *bad: it does not parse. */
static const char *
read_request(const uint8_t *data, size_t len, struct machine_clock_sample *s,
    uint64_t *phase, bool *bad)
{
	const char *why = NULL;
	struct pb_reader r;
	struct pb_field f;

	*phase = 0;
	*bad = false;
	s->n_client = 0;
	pb_init(&r, data, len);
	while (why == NULL && pb_next(&r, &f)) {
		if (f.number == SyncClockRequest_phase && f.wire == PB_VARINT)
			*phase = f.value;
		else if (f.number == SyncClockRequest_clocks &&
		    f.wire == PB_BYTES)
			why = add_clock(s, &f, bad);
	}
	*bad |= r.bad;
	if (why == NULL && s->n_client == 0)
		why = "it holds no clock";
	return why;
}

/*
 * Whether a clock that cannot be set went backwards between PING and UPDATE, or
 * the two have no clock in common.
 */
static const char *
check_order(const struct machine_clock_sample *ping,
    const struct machine_clock_sample *update)
{
	const struct clock_reading *before;
	bool common = false;
	size_t i;

	for (i = 0; i < update->n_client; i++) {
		before = machine_clock_find(ping, update->client[i].id);
		if (before == NULL)
			continue;
		common = true;
		switch (update->client[i].id) {
		case CLOCK_ID_MONOTONIC:
		case CLOCK_ID_MONOTONIC_COARSE:
		case CLOCK_ID_MONOTONIC_RAW:
		case CLOCK_ID_BOOTTIME:
			if (update->client[i].ns < before->ns)
				return "a clock went backwards";
		}
	}
	return common ? NULL : "UPDATE and PING have no clock in common";
}

static bool
took_too_long(const struct clock_exchange *x)
{
	uint64_t from = clock_snapshot_ns(&x->ping.host, CLOCK_ID_BOOTTIME);
	uint64_t to = clock_snapshot_ns(&x->update.host, CLOCK_ID_BOOTTIME);

	return to - from > MACHINE_CLOCK_LONGEST_NS;
}

enum clock_exchange_verdict
clock_exchange_step(struct clock_exchange *x, const uint8_t *request,
    size_t len, const struct clock_snapshot *host, const char **why)
{
	struct machine_clock_sample s = { .host = *host };
	bool bad, pinged = x->pinged;
	const char *reason;
	uint64_t phase;

	x->pinged = false;
	reason = read_request(request, len, &s, &phase, &bad);
	if (bad)
		return CLOCK_EXCHANGE_BAD;
	if (reason == NULL && phase == SyncClockRequest_PING) {
		x->ping = s;
		x->pinged = true;
		return CLOCK_EXCHANGE_PINGED;
	}
	if (reason == NULL && phase != SyncClockRequest_UPDATE)
		reason = "it is neither PING nor UPDATE";
	if (reason == NULL && !pinged)
		reason = "an UPDATE without a PING before it";
	if (reason == NULL)
		reason = check_order(&x->ping, &s);
	if (reason != NULL) {
		*why = reason;
		return CLOCK_EXCHANGE_REFUSED;
	}
	x->update = s;
	return took_too_long(x) ? CLOCK_EXCHANGE_TOO_LONG : CLOCK_EXCHANGE_DONE;
}
