#include "transport/link/link_clock.h"

#include <string.h>

#include "protos/fields.h"
#include "transport/wire/pb_writer.h"

/* LinkClock and its Reading (protos/link.proto). */

/* Ids that mean the same clock everywhere. */
#define BUILTIN_CLOCK_MAX 63u

static const uint32_t known_clocks[CLOCK_SNAPSHOT_N] = {
	CLOCK_ID_BOOTTIME,
	CLOCK_ID_REALTIME_COARSE,
	CLOCK_ID_MONOTONIC_COARSE,
	CLOCK_ID_REALTIME,
	CLOCK_ID_MONOTONIC,
	CLOCK_ID_MONOTONIC_RAW,
};

/* A snapshot with all its clocks, none of them read yet. */
static void
clear(struct clock_snapshot *s)
{
	size_t i;

	s->tsc = 0;
	for (i = 0; i < CLOCK_SNAPSHOT_N; i++)
		s->clocks[i] = (struct clock_reading){ known_clocks[i], 0 };
}

static bool
is_whole(const struct clock_snapshot *s)
{
	size_t i;

	for (i = 0; i < CLOCK_SNAPSHOT_N; i++)
		if (s->clocks[i].ns == 0)
			return false;
	return true;
}

/* A clock that we do not know yet, of the builtin ones, is passed over. */
static int
add_reading(struct clock_snapshot *s, const struct pb_field *message)
{
	struct pb_reader r;
	struct pb_field f;
	uint64_t clock = 0, ns = 0;
	size_t i;

	PB_FOREACH(&f, &r, message->data, message->len) {
		if (f.number == Reading_clock && f.wire == PB_VARINT)
			clock = f.value;
		else if (f.number == Reading_ns && f.wire == PB_VARINT)
			ns = f.value;
	}
	if (r.bad || clock == 0 || clock > BUILTIN_CLOCK_MAX || ns == 0 ||
	    ns > INT64_MAX)
		return -1;
	if (clock == CLOCK_ID_TSC) {
		if (s->tsc != 0)
			return -1;
		s->tsc = ns;
		return 0;
	}
	for (i = 0; i < CLOCK_SNAPSHOT_N; i++) {
		if (s->clocks[i].id != clock)
			continue;
		if (s->clocks[i].ns != 0)
			return -1;
		s->clocks[i].ns = ns;
	}
	return 0;
}

static int
read_field(struct link_clock *c, const struct pb_field *f, uint64_t *kind)
{
	if (f->wire == PB_VARINT) {
		if (f->number == LinkClock_kind)
			*kind = f->value;
		else if (f->number == LinkClock_id)
			c->id = (uint32_t)f->value;
		else if (f->number == LinkClock_round_trip_ns)
			c->round_trip_ns = f->value;
		return 0;
	}
	if (f->wire != PB_BYTES)
		return 0;
	if (f->number == LinkClock_relay_before)
		return add_reading(&c->before, f);
	if (f->number == LinkClock_relay_after)
		return add_reading(&c->after, f);
	if (f->number == LinkClock_host)
		return add_reading(&c->host, f);
	return 0;
}

/* Whether a clock that cannot be set did so. */
static bool
ran_backwards(const struct clock_snapshot *before,
    const struct clock_snapshot *after)
{
	static const enum clock_id steady[] = { CLOCK_ID_MONOTONIC,
		CLOCK_ID_MONOTONIC_COARSE, CLOCK_ID_MONOTONIC_RAW,
		CLOCK_ID_BOOTTIME };
	size_t i;

	for (i = 0; i < sizeof(steady) / sizeof(steady[0]); i++)
		if (clock_snapshot_ns(after, steady[i]) <
		    clock_snapshot_ns(before, steady[i]))
			return true;
	return false;
}

int
link_clock_parse(struct link_clock *c, const uint8_t *data, size_t len)
{
	struct link_clock out = { .id = 0 };
	struct pb_reader r;
	struct pb_field f;
	uint64_t kind = 0;

	clear(&out.before);
	clear(&out.host);
	clear(&out.after);
	PB_FOREACH(&f, &r, data, len)
		if (read_field(&out, &f, &kind) != 0)
			return -1;
	if (r.bad || kind < LINK_CLOCK_PING || kind > LINK_CLOCK_RESULT)
		return -1;
	out.kind = (enum link_clock_kind)kind;
	if (out.kind != LINK_CLOCK_PING && !is_whole(&out.host))
		return -1;
	if (out.kind == LINK_CLOCK_RESULT && (!is_whole(&out.before) ||
	    !is_whole(&out.after) || ran_backwards(&out.before, &out.after)))
		return -1;
	*c = out;
	return 0;
}

static uint8_t *
put_uint(uint8_t *p, uint32_t field, uint64_t v)
{
	p += pb_encode_varint(p, (uint64_t)field << 3 | PB_VARINT);
	return p + pb_encode_varint(p, v);
}

static uint8_t *
put_snapshot(uint8_t *p, uint32_t field, const struct clock_snapshot *s)
{
	struct clock_reading clocks[CLOCK_READINGS_MAX];
	size_t i, len, n = clock_snapshot_list(s, clocks);
	uint8_t reading[24];

	for (i = 0; i < n; i++) {
		len = (size_t)(put_uint(put_uint(reading, Reading_clock,
		    clocks[i].id), Reading_ns, clocks[i].ns) - reading);
		p += pb_encode_varint(p, (uint64_t)field << 3 | PB_BYTES);
		p += pb_encode_varint(p, len);
		memcpy(p, reading, len);
		p += len;
	}
	return p;
}

/* At most 3 * 7 readings of 2 + 17 bytes, and 3 numbers of 1 + 10. */
_Static_assert(3 * CLOCK_READINGS_MAX * 19 + 33 <= LINK_CLOCK_MAX,
    "a LinkClock has room");

void
link_clock_peek(const uint8_t *clock, size_t len, uint32_t *kind, uint32_t *id)
{
	struct pb_reader r;
	struct pb_field f;

	*kind = *id = 0;
	PB_FOREACH(&f, &r, clock, len) {
		if (f.wire == PB_VARINT && f.number == LinkClock_kind)
			*kind = (uint32_t)f.value;
		else if (f.wire == PB_VARINT && f.number == LinkClock_id)
			*id = (uint32_t)f.value;
	}
}

size_t
link_clock_put(uint8_t out[LINK_CLOCK_MAX], const struct link_clock *c)
{
	uint8_t *p = out;

	p = put_uint(p, LinkClock_kind, c->kind);
	p = put_uint(p, LinkClock_id, c->id);
	switch (c->kind) {
	case LINK_CLOCK_PING:
		break;
	case LINK_CLOCK_PONG:
		p = put_snapshot(p, LinkClock_host, &c->host);
		break;
	case LINK_CLOCK_RESULT:
		p = put_snapshot(p, LinkClock_relay_before, &c->before);
		p = put_snapshot(p, LinkClock_relay_after, &c->after);
		p = put_snapshot(p, LinkClock_host, &c->host);
		p = put_uint(p, LinkClock_round_trip_ns, c->round_trip_ns);
		break;
	}
	return (size_t)(p - out);
}
