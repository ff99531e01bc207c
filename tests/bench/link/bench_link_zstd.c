/*
 * How much compression saves on the link, and costs: bench_link_zstd TRACE...
 *
 * The packets of recorded traces are put into chunks and blocks again as a
 * relay has them: by sequence, without what the collector had added, 4 KiB a
 * chunk, a commit each, blocks of a channel in the order of their packets.
 * A trace that is short is sent over and over, the stream begun anew each time.
 */
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "transport/link/link_wire.h"
#include "transport/link/link_zstd.h"
#include "transport/wire/pb_writer.h"

#define CHUNK_BYTES   (4096u - 16u)
#define SEQUENCES_MAX 1024
/* Each figure is of so much. */
#define ENOUGH_BYTES (64u << 20)

/* Of TracePacket: added by the collector. */
static const uint32_t added[] = { 3, 10, 42, 79, 87, 98 };
enum { SEQUENCE = 10, PID = 79 };

struct sequence {
	uint64_t id;
	uint64_t pid; /* of its producer: the channel */
	uint32_t chunk;
	uint16_t packets;
	struct pb_writer payload;
};

struct block {
	uint64_t channel;
	struct pb_writer data;
};

static struct sequence sequences[SEQUENCES_MAX];
static size_t n_sequences;
static struct block *blocks;
static size_t n_blocks;
static size_t block_bytes;

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct pb_writer *
block_for(uint64_t channel, size_t bytes)
{
	size_t i;

	for (i = n_blocks; i-- > 0;)
		if (blocks[i].channel == channel)
			break;
	if (i < n_blocks && blocks[i].data.len + bytes <= block_bytes)
		return &blocks[i].data;
	blocks = realloc(blocks, (n_blocks + 1) * sizeof(*blocks));
	if (blocks == NULL)
		errx(1, "out of memory");
	blocks[n_blocks].channel = channel;
	pb_writer_init(&blocks[n_blocks].data);
	return &blocks[n_blocks++].data;
}

/* The chunk is complete: a commit with it joins the channel's last block. */
static void
commit(struct sequence *s)
{
	uint16_t writer = (uint16_t)(s - sequences + 1), packets = s->packets;
	struct pb_writer *b = block_for(s->pid, s->payload.len + 32);
	size_t message, move, data;

	if (s->packets == 0)
		return;
	message = pb_nest_begin(b, LINK_UP_COMMIT);
	move = pb_nest_begin(b, 1);
	pb_put_uint(b, 3, 1);
	data = pb_nest_begin(b, 4);
	pb_put_raw(b, &s->chunk, 4);
	pb_put_raw(b, &writer, 2);
	pb_put_raw(b, &packets, 2);
	pb_put_raw(b, s->payload.data, s->payload.len);
	pb_nest_end(b, data);
	pb_nest_end(b, move);
	pb_nest_end(b, message);
	pb_writer_reset(&s->payload);
	s->packets = 0;
	s->chunk++;
}

static struct sequence *
sequence_of(uint64_t id, uint64_t pid)
{
	size_t i;

	for (i = 0; i < n_sequences; i++)
		if (sequences[i].id == id)
			return &sequences[i];
	if (n_sequences == SEQUENCES_MAX)
		errx(1, "more than %d sequences", SEQUENCES_MAX);
	memset(&sequences[i], 0, sizeof(sequences[i]));
	sequences[i].id = id;
	sequences[i].pid = pid;
	pb_writer_init(&sequences[i].payload);
	n_sequences++;
	return &sequences[i];
}

static bool
was_added(uint32_t number)
{
	size_t i;

	for (i = 0; i < sizeof(added) / sizeof(added[0]); i++)
		if (added[i] == number)
			return true;
	return false;
}

static void
add_packet(const uint8_t *packet, size_t len)
{
	static struct pb_writer own;
	uint64_t id = 0, pid = 0;
	struct sequence *s;
	struct pb_reader r;
	struct pb_field f;

	pb_writer_reset(&own);
	pb_init(&r, packet, len);
	while (pb_next(&r, &f)) {
		if (f.number == SEQUENCE)
			id = f.value;
		if (f.number == PID)
			pid = f.value;
		if (!was_added(f.number))
			pb_put_raw(&own, f.start, (size_t)(r.p - f.start));
	}
	if (pid == 0)
		return; /* the collector's */
	s = sequence_of(id, pid);
	if (s->payload.len > 0 && s->payload.len + own.len > CHUNK_BYTES)
		commit(s);
	if (own.len > LINK_BLOCK_MAX / 2)
		return;
	pb_put_varint(&s->payload, own.len);
	pb_put_raw(&s->payload, own.data, own.len);
	s->packets++;
}

static void
make_blocks(const uint8_t *trace, size_t len)
{
	struct pb_reader r;
	struct pb_field f;
	size_t i;

	pb_init(&r, trace, len);
	while (pb_next(&r, &f))
		if (f.number == 1 && f.wire == PB_BYTES)
			add_packet(f.data, f.len);
	for (i = 0; i < n_sequences; i++) {
		commit(&sequences[i]);
		pb_writer_done(&sequences[i].payload);
	}
	n_sequences = 0;
}

static void
drop_blocks(void)
{
	while (n_blocks > 0)
		pb_writer_done(&blocks[--n_blocks].data);
}

struct sums {
	uint64_t raw;
	uint64_t sent;
	double compress_s;
	double decompress_s;
};

/* One connection's. */
static void
send_all(int level, struct sums *s)
{
	struct link_compressor *zip = link_compressor_new(level);
	struct link_decompressor *unzip = link_decompressor_new();
	const uint8_t *out, *again;
	double t0, t1, t2;
	size_t i, len;

	if (zip == NULL || unzip == NULL)
		errx(1, "out of memory");
	for (i = 0; i < n_blocks; i++) {
		const struct pb_writer *b = &blocks[i].data;

		t0 = now();
		if (link_compress(zip, b->data, b->len, &out, &len) != 0)
			errx(1, "link_compress");
		t1 = now();
		if (link_decompress(unzip, out, len, b->len, &again) != 0)
			errx(1, "link_decompress");
		t2 = now();
		s->raw += b->len;
		s->sent += len;
		s->compress_s += t1 - t0;
		s->decompress_s += t2 - t1;
	}
	link_compressor_free(zip);
	link_decompressor_free(unzip);
}

static void
bench(const char *path)
{
	static const size_t sizes[] = { 4096 + 64, 32768, LINK_BLOCK_MAX };
	static const int levels[] = { 1, 3, 6 };
	int fd = open(path, O_RDONLY);
	struct stat st;
	const uint8_t *trace;
	size_t i, j;

	if (fd < 0 || fstat(fd, &st) != 0 || st.st_size == 0)
		err(1, "%s", path);
	trace = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (trace == MAP_FAILED)
		err(1, "%s", path);
	printf("%s\n  block KiB  level  ratio  CPU s/GB: compress  "
	    "decompress\n", path);
	for (i = 0; i < 3; i++) {
		block_bytes = sizes[i];
		make_blocks(trace, (size_t)st.st_size);
		if (n_blocks == 0)
			errx(1, "%s: there is no packet of a producer in it",
			    path);
		for (j = 0; j < 3; j++) {
			struct sums s = { 0 };

			while (s.raw < ENOUGH_BYTES)
				send_all(levels[j], &s);
			printf("  %9zu  %5d  %5.2f  %18.2f  %10.2f\n",
			    block_bytes / 1024, levels[j],
			    (double)s.raw / (double)s.sent,
			    s.compress_s / (double)s.raw * 1e9,
			    s.decompress_s / (double)s.raw * 1e9);
		}
		drop_blocks();
	}
	munmap((void *)trace, (size_t)st.st_size);
	close(fd);
}

int
main(int argc, char **argv)
{
	int i;

	if (argc < 2)
		errx(2, "usage: bench_link_zstd TRACE...");
	for (i = 1; i < argc; i++)
		bench(argv[i]);
	free(blocks);
	return 0;
}
