/*
 * What it costs to check packets and to serialise them for a file or for a
 * consumer, beside memcpy of the same bytes in the same run.
 *
 * The packets lie as they do in a trace buffer, one behind the other with a
 * varint before each, in more memory than a cache holds.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "service/output/packet_out.h"
#include "service/sink/file_sink.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/packet/packet_check.h"
#include "transport/wire/pb_writer.h"

#define PARTS(...) (&(struct packet_parts){ __VA_ARGS__ })

#define PACKET_BYTES 100u
#define SOURCE_BYTES (64u << 20)
#define PACKETS      (SOURCE_BYTES / (PACKET_BYTES + 1))
#define TOTAL_BYTES  1000000000ull
#define ROUNDS       (TOTAL_BYTES / PACKET_BYTES / PACKETS)
/* The best of a few: the machine is shared. */
#define REPEATS      3

static uint8_t *source;
static struct packet_trailer trailer;
static struct sink_batch batch;
static struct packet_out *out;
static uint64_t sum; /* keeps the compiler from dropping work */

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A track event: timestamp, sequence_flags, clock, and a nested message. */
static void
make_packet(uint8_t *p, uint64_t ts)
{
	uint8_t *end = p + PACKET_BYTES;

	*p++ = 0x40;
	p += pb_encode_varint(p, ts);
	*p++ = 0x68;
	*p++ = 2;
	*p++ = 0xd0;
	*p++ = 0x03;
	*p++ = 64;
	*p++ = 0x5a;
	*p = (uint8_t)(end - p - 1);
	memset(p + 1, 0x55, (size_t)(end - p - 1));
}

static void
make_source(void)
{
	uint64_t i;

	source = malloc(SOURCE_BYTES);
	for (i = 0; i < PACKETS; i++) {
		uint8_t *p = source + i * (PACKET_BYTES + 1);

		*p = PACKET_BYTES;
		make_packet(p + 1, 2647380214914u + i * i % 100000);
	}
}

/* The limit: as few and as large copies as can be. */
static void
copy_whole(const uint8_t *src, size_t len)
{
	size_t n;

	for (; len > 0; len -= n, src += n) {
		n = len < SINK_BATCH_BYTES ? len : SINK_BATCH_BYTES;
		memcpy(batch.data, src, n);
		sum += batch.data[n / 2];
	}
}

static void
round_copy_whole(void)
{
	copy_whole(source, (size_t)PACKETS * PACKET_BYTES);
}

static void
round_check(void)
{
	const uint8_t *p = source;
	struct tb_slice s;
	size_t i;

	for (i = 0; i < PACKETS; i++, p += PACKET_BYTES + 1) {
		s = (struct tb_slice){ p + 1, *p };
		sum += packet_check(&s, 1, s.len);
	}
}

static void
file_put(const struct tb_slice *s)
{
	if (!packet_out_room(out))
		batch.len = 0;
	if (!packet_out_put(out, PARTS(s, 1, s->len, &trailer, 0)))
		abort();
}

static void
round_put(void)
{
	const uint8_t *p = source;
	struct tb_slice s;
	size_t i;

	for (i = 0; i < PACKETS; i++, p += PACKET_BYTES + 1) {
		s = (struct tb_slice){ p + 1, *p };
		file_put(&s);
	}
}

static void
round_check_and_put(void)
{
	const uint8_t *p = source;
	struct tb_slice s;
	size_t i;

	for (i = 0; i < PACKETS; i++, p += PACKET_BYTES + 1) {
		s = (struct tb_slice){ p + 1, *p };
		if (!packet_check(&s, 1, s.len))
			abort();
		file_put(&s);
	}
}

static void
round_check_and_reply(void)
{
	const uint8_t *p = source;
	struct tb_slice s;
	size_t i;

	for (i = 0; i < PACKETS; i++, p += PACKET_BYTES + 1) {
		s = (struct tb_slice){ p + 1, *p };
		if (!packet_check(&s, 1, s.len))
			abort();
		if (!packet_out_room(out))
			packet_out_next(out);
		if (!packet_out_put(out, PARTS(&s, 1, s.len, &trailer, 0)))
			abort();
	}
}

/* CPU seconds for a gigabyte. */
static double
measure(void (*round)(void))
{
	double t, best = 1e9;
	uint64_t i;
	int k;

	for (k = 0; k < REPEATS; k++) {
		t = now();
		for (i = 0; i < ROUNDS; i++)
			round();
		t = now() - t;
		if (t < best)
			best = t;
	}
	return best * (double)TOTAL_BYTES /
	    (double)(ROUNDS * PACKETS * PACKET_BYTES);
}

static void
report(const char *what, double seconds, double limit)
{
	printf("%-44s %6.2f GB/s  %5.1f ns a packet  %5.2f of memcpy\n", what,
	    1 / seconds, seconds * 1e9 / (TOTAL_BYTES / PACKET_BYTES),
	    limit / seconds);
	fflush(stdout);
}

int
main(void)
{
	double limit;

	make_source();
	packet_trailer_init(&trailer, 1000, 32100, 17, 0);
	batch.nominal = SINK_BATCH_BYTES;
	batch.cap = SINK_BATCH_BYTES + 16384;
	batch.data = calloc(1, batch.cap);

	printf("1 GB of %u-byte packets, CPU time, best of %d\n",
	    PACKET_BYTES, REPEATS);
	limit = measure(round_copy_whole);
	report("memcpy of 128 KiB (the limit)", limit, limit);
	report("check", measure(round_check), limit);
	out = packet_out_new_file();
	packet_out_set_batch(out, &batch);
	report("serialise for a file", measure(round_put), limit);
	report("check, serialise for a file",
	    measure(round_check_and_put), limit);
	packet_out_free(out);
	out = packet_out_new_reply();
	report("check, serialise for a consumer",
	    measure(round_check_and_reply), limit);
	packet_out_free(out);
	free(batch.data);
	free(source);
	return sum == 0;
}
