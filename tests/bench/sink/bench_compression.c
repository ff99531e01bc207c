/*
 * What compressing a file's batches costs and gives, beside memcpy of the same
 * bytes in the same run.
 *
 *	bench_compression           16 MB of made-up track events
 *	bench_compression FILE      a trace that was not compressed
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "transport/sink/packet_boundary.h"
#include "transport/sink/packet_compressor.h"
#include "transport/wire/pb_writer.h"

#define MADE_UP_BYTES (16u << 20)
/* At most this much is compressed with the slow ones. */
#define SLOW_BYTES (4u << 20)
#define SLOW_LEVEL 9
/* The best of a few: the machine is shared. */
#define REPEATS 3
#define KIB     1024u

static uint8_t *source;
static size_t source_len;
static uint8_t *copy;
static uint64_t sum; /* keeps the compiler from dropping work */

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint32_t
chance(void)
{
	static uint32_t x = 1;

	x = x * 1664525u + 1013904223u;
	return x >> 16;
}

/* Slices and counters of a few threads, with what a session adds. */
static void
make_up(void)
{
	struct pb_writer w;
	uint64_t ts = 2647380214914u;
	size_t packet, event, note;

	pb_writer_init(&w);
	while (w.len < MADE_UP_BYTES) {
		packet = pb_nest_begin(&w, 1);
		pb_put_uint(&w, 8, ts += chance() % 5000);
		event = pb_nest_begin(&w, 11);
		pb_put_uint(&w, 9, 1 + chance() % 2);
		pb_put_uint(&w, 10, 1 + chance() % 60);
		pb_put_uint(&w, 11, 0x5aa0f38c1d2e0000u + chance() % 20);
		pb_put_uint(&w, 3, 1 + chance() % 5);
		if (chance() % 4 == 0) {
			note = pb_nest_begin(&w, 4);
			pb_put_uint(&w, 1, chance() % 30);
			pb_put_uint(&w, 4, chance());
			pb_nest_end(&w, note);
		}
		pb_nest_end(&w, event);
		pb_put_uint(&w, 3, 1000);
		pb_put_uint(&w, 10, 2 + chance() % 12);
		pb_put_uint(&w, 13, 2);
		pb_put_uint(&w, 79, 30000 + chance() % 4);
		pb_nest_end(&w, packet);
	}
	source = w.data;
	source_len = w.len;
}

static int
load(const char *path)
{
	FILE *f = fopen(path, "rb");
	long n;

	if (f == NULL || fseek(f, 0, SEEK_END) != 0 || (n = ftell(f)) <= 0)
		return -1;
	rewind(f);
	source_len = (size_t)n;
	if ((source = malloc(source_len)) == NULL ||
	    fread(source, 1, source_len, f) != source_len)
		return -1;
	fclose(f);
	source_len = packet_boundary(source, source_len);
	return source_len > 0 ? 0 : -1;
}

/* The batch that begins at `at`: up to a packet, as the session fills it. */
static size_t
batch_at(size_t at, size_t end, size_t size)
{
	size_t n = end - at;

	if (n > size)
		n = packet_boundary(source + at, size);
	return n > 0 ? n : end - at;
}

/* CPU seconds for the first len bytes; c NULL: memcpy. */
static double
run(struct packet_compressor *c, size_t len, size_t size, uint64_t *became)
{
	double t = now();
	size_t at, n, m;

	*became = 0;
	for (at = 0; at < len; at += n) {
		n = batch_at(at, len, size);
		if (c == NULL) {
			memcpy(copy, source + at, n);
			sum += copy[n / 2];
			m = n;
		} else {
			sum += *packet_compressor_run(c, source + at, n, &m);
		}
		*became += m;
	}
	return now() - t;
}

static double
best(struct packet_compressor *c, size_t len, size_t size, uint64_t *became)
{
	double t, out = 1e9;
	int i;

	for (i = 0; i < REPEATS; i++)
		if ((t = run(c, len, size, became)) < out)
			out = t;
	return out;
}

static void
report(const char *what, const struct packet_compression *how, size_t size)
{
	struct packet_compressor *c = NULL;
	size_t len = source_len;
	uint64_t became;
	double t;

	if (how != NULL && (c = packet_compressor_new(how)) == NULL)
		abort();
	if (how != NULL && how->kind == PACKET_ZSTD &&
	    how->level >= SLOW_LEVEL && len > SLOW_BYTES)
		len = packet_boundary(source, SLOW_BYTES);
	t = best(c, len, size, &became);
	printf("%-10s %5zu KiB  %8.1f MB/s  %6.2f times smaller\n", what,
	    size / KIB, (double)len / t / 1e6, (double)len / (double)became);
	fflush(stdout);
	packet_compressor_free(c);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		struct packet_compression how;
	} kinds[] = {
		{ "deflate", { PACKET_DEFLATE, 0 } },
		{ "zstd -5", { PACKET_ZSTD, -5 } },
		{ "zstd 1", { PACKET_ZSTD, 1 } },
		{ "zstd 3", { PACKET_ZSTD, 3 } },
		{ "zstd 9", { PACKET_ZSTD, 9 } },
		{ "zstd 19", { PACKET_ZSTD, 19 } },
	};
	size_t i, size;

	if (argc > 1 && load(argv[1]) != 0) {
		fprintf(stderr, "%s: no trace\n", argv[1]);
		return 1;
	}
	if (argc <= 1)
		make_up();
	if ((copy = malloc(source_len)) == NULL)
		return 1;
	printf("%.1f MB of %s, CPU time, best of %d\n",
	    (double)source_len / 1e6, argc > 1 ? argv[1] : "track events",
	    REPEATS);
	report("memcpy", NULL, PACKET_BATCH_BYTES);
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		report(kinds[i].name, &kinds[i].how, PACKET_BATCH_BYTES);
	for (size = 32 * KIB; size <= 2048 * KIB; size *= 4) {
		report("deflate", &kinds[0].how, size);
		report("zstd 3", &kinds[3].how, size);
	}
	free(copy);
	free(source);
	return sum == 0;
}
