/*
 * The trace buffer against the speed of memory.  Each line measures its limit
 * and the buffer in turns, so that what else the machine does weighs on both.
 *
 * usage: bench_buffer [ROUNDS [PATTERN]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "tests/bench/buffer/bench_work.h"
#include "tests/unit/transport/buffer/tb_overhead.h"
#include "transport/packet/packet_check.h"

#define GIB (1024.0 * 1024.0 * 1024.0)
#define WRITE_RING (64u << 20)
#define READ_RING  (128u << 20)
#define WRITE_BYTES (96u << 20)
#define OUT_SIZE (128u << 10)
#define ROUNDS_MAX 100
/* One writer, after a quarter of the ring was written by 1000. */
#define FLOOD UINT32_MAX

static int rounds = 15;
static const char *pattern = "";
static struct work whole, fragmented, full;
static uint8_t *limit_ring, *out;

static bool
wanted(const char *name)
{
	return strncmp(name, pattern, strlen(pattern)) == 0;
}

static uint8_t *
map_memory(size_t size)
{
	uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	/* as the buffer's own memory */
	madvise(p, size, MADV_HUGEPAGE);
	memset(p, 1, size);
	return p;
}

static struct trace_buffer *
new_buffer(uint64_t size)
{
	struct trace_buffer *tb = trace_buffer_new(size, TB_RING);

	if (tb == NULL)
		exit(1);
	return tb;
}

static void
writers_init(struct writers *w, uint32_t n)
{
	w->n = n;
	if ((w->next_id = calloc(n, sizeof(*w->next_id))) == NULL)
		exit(1);
}

static void
best(double *least, double t)
{
	if (*least == 0 || t < *least)
		*least = t;
}

/*
 * Pairs of speeds measured one right after the other.  The ratio is the median
 * over the pairs, which what else runs on the machine moves least.
 */
struct pairs {
	double limit[ROUNDS_MAX], ours[ROUNDS_MAX], ratio[ROUNDS_MAX];
	int n;
};

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), by_value);
	return v[n / 2];
}

static void
add_pair(struct pairs *p, double limit, double ours)
{
	p->limit[p->n] = limit / GIB;
	p->ours[p->n] = ours / GIB;
	p->ratio[p->n++] = ours / limit;
}

/* Returns the ratio. */
static double
say(const char *name, struct pairs *p, const char *aim)
{
	double ratio = median(p->ratio, p->n);
	double limit = median(p->limit, p->n), ours = median(p->ours, p->n);

	printf("%-36s limit %5.2f (best %5.2f)  ours %5.2f (best %5.2f) GiB/s"
	    "  ratio %.2f  aim %s\n", name, limit, p->limit[p->n - 1], ours,
	    p->ours[p->n - 1], ratio, aim);
	fflush(stdout);
	return ratio;
}

/* ---- Writing ---- */

/* Percent of the ring that is guaranteed to its producers. */
static uint32_t guaranteed;

/* Returns the ratio. */
static double
bench_write(const char *name, const struct work *w, uint32_t n,
    const char *aim)
{
	struct pairs p = {.n = 0};
	struct trace_buffer *tb;
	struct writers writers;
	double t, limit, ratio;
	uint64_t bytes;
	int i;

	if (!wanted(name))
		return 0;
	tb = new_buffer(WRITE_RING);
	if (!trace_buffer_guarantee(tb, 0, guaranteed))
		exit(1);
	writers_init(&writers, n == FLOOD ? 1000 : n);
	work_write(tb, w, &writers, n == FLOOD ? WRITE_RING / 4 :
	    WRITE_RING * 2ull);
	if (n == FLOOD)
		writers.n = 1;
	for (i = 0; i < rounds; i++) {
		t = bench_now();
		limit_write(&whole, limit_ring, WRITE_RING, WRITE_BYTES);
		limit = WRITE_BYTES / (bench_now() - t);
		t = bench_now();
		bytes = work_write(tb, w, &writers, WRITE_BYTES);
		add_pair(&p, limit, (double)bytes / (bench_now() - t));
	}
	ratio = say(name, &p, aim);
	trace_buffer_free(tb);
	free(writers.next_id);
	return ratio;
}

/* ---- Reading ---- */

enum read_kind { READ_SLICES, READ_IOVECS };

/* What a session appends to each packet (sequence, uid, ...). */
static uint8_t trailer[24];

/* Validates, and points iovecs at slices and trailers as for writev. */
static uint64_t
to_iovecs(const struct tb_packet *p, struct iovec *iov, size_t *n)
{
	static uint8_t preambles[1024][8];
	uint8_t *head = preambles[*n & 1023];
	size_t i, len = 0, v = p->size + sizeof(trailer);

	if (!packet_check(p->slices, p->n_slices, p->size))
		return 0;
	head[len++] = 0x0a;
	for (; v >= 0x80; v >>= 7)
		head[len++] = (uint8_t)(v | 0x80);
	head[len++] = (uint8_t)v;
	if (*n + p->n_slices + 2 > 1024)
		*n = 0;
	iov[*n].iov_base = head;
	iov[(*n)++].iov_len = len;
	for (i = 0; i < p->n_slices; i++) {
		iov[*n].iov_base = (void *)(uintptr_t)p->slices[i].data;
		iov[(*n)++].iov_len = p->slices[i].len;
	}
	iov[*n].iov_base = trailer;
	iov[(*n)++].iov_len = sizeof(trailer);
	return p->size;
}

static uint64_t
drain(struct trace_buffer *tb, enum read_kind kind)
{
	static struct iovec iov[1100];
	struct tb_packet p;
	uint64_t bytes = 0;
	size_t n = 0;

	trace_buffer_begin_read(tb);
	switch (kind) {
	case READ_SLICES:
		while (trace_buffer_read(tb, &p))
			bytes += p.size;
		break;
	case READ_IOVECS:
		while (trace_buffer_read(tb, &p))
			bytes += to_iovecs(&p, iov, &n);
		break;
	}
	bench_use(n);
	return bytes;
}

static double
bench_read(const char *name, const struct work *w, uint32_t n,
    enum read_kind kind, const char *aim)
{
	struct pairs p = {.n = 0};
	struct trace_buffer *tb;
	struct writers writers;
	double t, limit, ratio;
	uint64_t bytes;
	int i;

	if (!wanted(name))
		return 0;
	tb = new_buffer(READ_RING);
	writers_init(&writers, n);
	for (i = 0; i < rounds; i++) {
		work_write(tb, w, &writers, READ_RING * 5ull / 4);
		t = bench_now();
		limit_read(&whole, limit_ring, READ_RING, out, OUT_SIZE);
		limit = READ_RING / (bench_now() - t);
		t = bench_now();
		bytes = drain(tb, kind);
		add_pair(&p, limit, (double)bytes / (bench_now() - t));
	}
	ratio = say(name, &p, aim);
	trace_buffer_free(tb);
	free(writers.next_id);
	return ratio;
}

static void
compare(const char *name, double fragmented_ratio, double whole_ratio)
{
	if (whole_ratio > 0 && fragmented_ratio > 0)
		printf("  %-34s %.2f of unfragmented, aim 0.60\n", name,
		    fragmented_ratio / whole_ratio);
}

static void
bench_speed(void)
{
	double w1, w1000, rs, ri;

	w1 = bench_write("write, 1 writer", &whole, 1, "0.80");
	w1000 = bench_write("write, 1000 writers", &whole, 1000, "0.65");
	guaranteed = 50;
	bench_write("write, 1000 writers, guaranteed", &whole, 1000, "-");
	bench_write("write, 1 beside 999 guaranteed", &whole, FLOOD, "-");
	guaranteed = 0;
	rs = bench_read("read, slices", &whole, 1, READ_SLICES, "1.00");
	ri = bench_read("read, validated, iovecs", &whole, 1, READ_IOVECS,
	    "0.50");
	bench_read("read, 1000 writers, slices", &whole, 1000, READ_SLICES,
	    "1.00");
	compare("write, 1 writer", bench_write("fragmented: write, 1 writer",
	    &fragmented, 1, "-"), w1);
	compare("write, 1000 writers",
	    bench_write("fragmented: write, 1000 writers", &fragmented, 1000,
	    "-"), w1000);
	compare("read, slices", bench_read("fragmented: read, slices",
	    &fragmented, 1, READ_SLICES, "-"), rs);
	compare("read, validated, iovecs",
	    bench_read("fragmented: read, validated, iovecs", &fragmented, 1,
	    READ_IOVECS, "-"), ri);
	compare("write, 1 writer", bench_write("full chunks: write, 1 writer",
	    &full, 1, "-"), w1);
	compare("write, 1000 writers",
	    bench_write("full chunks: write, 1000 writers", &full, 1000, "-"),
	    w1000);
	compare("read, slices", bench_read("full chunks: read, slices", &full,
	    1, READ_SLICES, "-"), rs);
	compare("read, validated, iovecs",
	    bench_read("full chunks: read, validated, iovecs", &full, 1,
	    READ_IOVECS, "-"), ri);
}

/* ---- Patching ---- */

static double
patch_time(struct trace_buffer *tb, uint32_t id)
{
	struct tb_patch patch = {.offset = 100,
	    .data = (const uint8_t *)"abcd", .len = 4};
	double t, least = 0;
	int i, j, n = 20000;

	for (j = 0; j < rounds; j++) {
		t = bench_now();
		for (i = 0; i < n; i++)
			bench_use(trace_buffer_patch(tb, 1, 1, id,
			    &(struct tb_patches){ &patch, 1, true }));
		best(&least, (bench_now() - t) / n);
	}
	return least * 1e9;
}

static void
bench_patch(void)
{
	struct trace_buffer *tb;
	struct writers writers;
	uint32_t newest;
	double now, gone;

	if (!wanted("patch"))
		return;
	tb = new_buffer(WRITE_RING);
	writers_init(&writers, 1);
	work_write(tb, &whole, &writers, WRITE_RING * 2ull);
	newest = writers.next_id[0] - 1;
	now = patch_time(tb, newest);
	gone = patch_time(tb, 5);
	printf("patch: newest %.1f ns, 10 back %.1f ns, 10000 back %.1f ns, "
	    "gone %.1f ns (%.2f of newest, aim at most 5)\n", now,
	    patch_time(tb, newest - 10), patch_time(tb, newest - 10000), gone,
	    gone / now);
	trace_buffer_free(tb);
	free(writers.next_id);
}

/* ---- One large packet ---- */

static void
write_large(struct trace_buffer *tb, uint32_t *id, uint64_t size)
{
	static uint8_t bytes[4096 - 16];
	struct tb_origin origin = {.producer = 1, .writer = 1};
	struct tb_chunk c = {.num_fragments = 1, .complete = true,
	    .payload = bytes, .len = sizeof(bytes)};
	uint64_t i, n = size / (sizeof(bytes) - 2);

	bytes[0] = (uint8_t)((sizeof(bytes) - 2) | 0x80);
	bytes[1] = (uint8_t)((sizeof(bytes) - 2) >> 7);
	for (i = 0; i < n; i++) {
		c.id = (*id)++;
		c.flags = (i > 0 ? TB_FIRST_CONTINUES_FROM_PREV : 0) |
		    (i + 1 < n ? TB_LAST_CONTINUES_ON_NEXT : 0);
		trace_buffer_write(tb, &origin, &c);
	}
}

static void
bench_large(void)
{
	static const uint32_t sizes[] = {64 << 10, 1 << 20, 8 << 20, 64 << 20};
	double t, writes, reads;
	struct trace_buffer *tb;
	struct tb_packet p;
	uint32_t id = 0;
	size_t i, j;
	int r;

	if (!wanted("large"))
		return;
	tb = new_buffer(80u << 20);
	/* Map all of it, and the slices. */
	write_large(tb, &id, 160u << 20);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		writes = reads = 0;
		for (r = 0; r < rounds; r++) {
			double w = 0, d = 0;

			for (j = 0; j < (64u << 20) / sizes[i]; j++) {
				t = bench_now();
				write_large(tb, &id, sizes[i]);
				w += bench_now() - t;
				t = bench_now();
				trace_buffer_begin_read(tb);
				while (trace_buffer_read(tb, &p))
					bench_use(p.size);
				d += bench_now() - t;
			}
			best(&writes, w);
			best(&reads, d);
		}
		printf("one large packet, %5u KiB: write %.4f, read back %.4f "
		    "ns/byte\n", sizes[i] >> 10, writes * 1e9 / (64 << 20),
		    reads * 1e9 / (64 << 20));
	}
	trace_buffer_free(tb);
}

/* ---- Number of writers ---- */

static void
bench_writers(void)
{
	double t, least, copy;
	struct trace_buffer *tb;
	struct writers writers;
	uint64_t bytes = 0;
	uint32_t n;
	int i;

	if (!wanted("writers"))
		return;
	for (n = 1; n <= 100000; n *= 10) {
		tb = new_buffer(WRITE_RING);
		writers_init(&writers, n);
		work_write(tb, &whole, &writers, WRITE_RING * 2ull);
		least = copy = 0;
		for (i = 0; i < rounds; i++) {
			t = bench_now();
			limit_write(&whole, limit_ring, WRITE_RING,
			    WRITE_BYTES);
			best(&copy, bench_now() - t);
			t = bench_now();
			bytes = work_write(tb, &whole, &writers, WRITE_BYTES);
			best(&least, bench_now() - t);
		}
		printf("writers %6u: %.0f ns a chunk (limit %.0f), "
		    "bookkeeping %.2f %%, %zu sequences\n", n,
		    least * 1e9 * ((double)whole.bytes / TEMPLATES) /
		    (double)bytes,
		    copy * 1e9 * ((double)whole.bytes / TEMPLATES) /
		    WRITE_BYTES, 100.0 * (double)tb_overhead(tb) /
		    WRITE_RING, trace_buffer_sequences(tb));
		fflush(stdout);
		trace_buffer_free(tb);
		free(writers.next_id);
	}
}

int
main(int argc, char **argv)
{
	if (argc > 1)
		rounds = atoi(argv[1]);
	if (rounds < 1 || rounds > ROUNDS_MAX)
		return 1;
	if (argc > 2)
		pattern = argv[2];
	work_make(&whole, WORK_WHOLE);
	work_make(&fragmented, WORK_FRAGMENTED);
	work_make(&full, WORK_FULL);
	limit_ring = map_memory(READ_RING);
	out = map_memory(OUT_SIZE);
	printf("chunks of %.0f, fragmented %.0f, full %.0f bytes\n",
	    (double)whole.bytes / TEMPLATES,
	    (double)fragmented.bytes / TEMPLATES,
	    (double)full.bytes / TEMPLATES);
	bench_speed();
	bench_patch();
	bench_large();
	bench_writers();
	return 0;
}
