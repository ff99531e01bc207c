/* A LinkFrame: what is read and written again reads the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/messages/messages.h"
#include "transport/link/link_wire.h"

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond))                                                   \
			abort();                                               \
	} while (0)

static void
check_inside(const uint8_t *at, size_t len, const uint8_t *data, size_t size)
{
	CHECK(at >= data && at <= data + size);
	CHECK(len <= (size_t)(data + size - at));
}

/* Returns an allocated frame. */
static uint8_t *
write_again(struct link_frame f, size_t *len)
{
	uint8_t consumed[LINK_CONSUMED_MAX], *out;
	uint32_t channel;
	uint64_t bytes;
	size_t n = 0, cap;

	/* each stands for two bytes of the input at least */
	cap = (size_t)(f.consumed.end - f.consumed.p) * LINK_CONSUMED_MAX +
	    LINK_HEAD_MAX + f.len;
	CHECK((out = malloc(cap)) != NULL);
	while (link_next_consumed(&f, &channel, &bytes)) {
		size_t one = link_put_consumed(consumed, channel, bytes);

		CHECK(one <= LINK_CONSUMED_MAX);
		memcpy(out + n, consumed, one);
		n += one;
	}
	n += link_put_head(out + n, &f);
	if (f.number != 0)
		memcpy(out + n, f.block, f.len);
	*len = n + f.len;
	return out;
}

static void
check_bytes(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len,
    size_t longest)
{
	if (a == NULL || a_len > longest) {
		CHECK(b == NULL);
		return;
	}
	CHECK(b != NULL && a_len == b_len);
	CHECK(memcmp(a, b, a_len) == 0);
}

static void
check_same(struct link_frame a, struct link_frame b)
{
	uint32_t channel[2];
	uint64_t bytes[2];
	bool more;

	CHECK(a.number == b.number && a.channel == b.channel);
	CHECK(a.compressed == b.compressed && a.raw_size == b.raw_size);
	CHECK(a.has_received == b.has_received && a.received == b.received);
	CHECK(a.has_consumed_in_all == b.has_consumed_in_all);
	CHECK(a.consumed_in_all == b.consumed_in_all);
	check_bytes(a.block, a.len, b.block, b.len, SIZE_MAX);
	check_bytes(a.clock, a.clock_len, b.clock, b.clock_len,
	    LINK_CLOCK_MAX);
	check_bytes(a.status, a.status_len, b.status, b.status_len,
	    LINK_STATUS_MAX);
	do {
		more = link_next_consumed(&a, &channel[0], &bytes[0]);
		CHECK(more == link_next_consumed(&b, &channel[1], &bytes[1]));
		CHECK(!more || channel[0] == channel[1]);
		CHECK(!more || bytes[0] == bytes[1]);
	} while (more);
}

void
fuzz_link_frame(const uint8_t *data, size_t size)
{
	struct link_frame f, again;
	uint8_t *written;
	size_t len;

	if (link_parse_frame(&f, data, size) != 0)
		return;
	CHECK((f.number != 0) == (f.block != NULL));
	CHECK(f.compressed || f.len <= LINK_BLOCK_MAX);
	CHECK(f.raw_size <= LINK_BLOCK_MAX);
	if (f.block != NULL)
		check_inside(f.block, f.len, data, size);
	if (f.clock != NULL)
		check_inside(f.clock, f.clock_len, data, size);
	if (f.status != NULL)
		check_inside(f.status, f.status_len, data, size);
	written = write_again(f, &len);
	CHECK(link_parse_frame(&again, written, len) == 0);
	check_same(f, again);
	free(written);
}
