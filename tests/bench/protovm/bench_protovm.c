/*
 * The cost of a packet that a ring overwrites, for a machine that merges it,
 * beside copying the packet: bench_protovm [ROUNDS].
 *
 * The program is that of tests/unit/service/protovm/programs.h: elements with
 * an id, merged and set by it.  The last lines are programs that do as much as
 * they are let, and what that is per byte of their packet.
 */
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "protos/protovm.pb-c.h"
#include "protos/text_error.h"
#include "protos/text_parse.h"
#include "service/protovm/protovm.h"
#include "tests/unit/service/protovm/programs.h"
#include "transport/wire/pb_writer.h"

#define LIMIT      ((size_t)256 << 20)
#define ELEMENTS_N 10000u
#define ROUNDS_MAX 101
#define RING_SIZE  (64u << 20)
#define FRAME_SIZE (128u << 10)
/* Packets of one round: enough for a clock, few for the program's own time. */
#define ROUND_BYTES (4u << 20)

/* Each element of the packet with each of the state. */
#define SQUARE DO(SRC(EACH(1)) IN(DST(EACH(2)) IN("set {} ")))
/* The whole packet is read for each of 16 fields that it has not. */
#define SCAN1 IN(SKIP SRC(FIELD(9)))
#define SCAN4 SCAN1 SCAN1 SCAN1 SCAN1
#define SCANS DO(SRC("") SCAN4 SCAN4 SCAN4 SCAN4 SCAN4 SCAN4)
/* A new element for each number. */
#define CREATE                                                                 \
	DO(SRC(EACH(1)) IN(LOAD(0)) IN(MAKE(FIELD(3) KEY(1, 0))               \
	    IN(MAKE(FIELD(1)) IN("set {} "))))
/* An element comes and goes. */
#define COME_AND_GO                                                            \
	DO(SRC(EACH(1)) IN(LOAD(0))                                           \
	    IN(MAKE(FIELD(3) KEY(1, 0)) IN(MAKE(FIELD(1)) IN("set {} ")))     \
	    IN(DST(FIELD(3) KEY(1, 0)) IN("del {} ")))

static uint8_t ring[RING_SIZE];
static int rounds = 15;
static volatile uint64_t sink;

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct protovm *
machine(const char *text)
{
	struct protovm_program *p;
	struct text_error e = { 0 };
	struct protovm *vm;
	char err[256];
	uint8_t *wire;
	size_t len;

	if (text_parse(&perfetto__protos__vm_program__descriptor, text,
		strlen(text), &wire, &len, &e) != 0)
		errx(1, "%s", e.message);
	p = protovm_program_new(wire, len, err, sizeof(err));
	free(wire);
	if (p == NULL)
		errx(1, "%s", err);
	if ((vm = protovm_new(p, LIMIT)) == NULL)
		errx(1, "no memory");
	protovm_program_unref(p);
	return vm;
}

/* An element of some 40 bytes. */
static void
put_element(struct pb_writer *w, uint32_t field, uint32_t id, uint64_t value)
{
	size_t mark = pb_nest_begin(w, field);

	pb_put_uint(w, 1, id);
	pb_put_uint(w, 2, value);
	pb_put_string(w, 3, "com.example.window");
	pb_put_uint(w, 4, value * 7919);
	pb_put_uint(w, 5, value & 1);
	pb_nest_end(w, mark);
}

static void
fill(struct protovm *vm)
{
	struct pb_writer w;
	uint32_t id;

	pb_writer_init(&w);
	for (id = 0; id < ELEMENTS_N; id++) {
		pb_writer_reset(&w);
		put_element(&w, 2, id, id);
		if (protovm_apply(vm, w.data, w.len) != PROTOVM_OK)
			errx(1, "%s", protovm_reason(vm));
	}
	pb_writer_done(&w);
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median(double *v)
{
	qsort(v, (size_t)rounds, sizeof(*v), compare);
	return v[rounds / 2];
}

/* Nanoseconds to copy such a packet round 64 MiB. */
static double
copy_ns(const struct pb_writer *packet, unsigned n)
{
	static size_t at;
	double begin = now();
	unsigned i;

	for (i = 0; i < n; i++) {
		if (at + packet->len > RING_SIZE)
			at = 0;
		memcpy(ring + at, packet->data, packet->len);
		at += packet->len;
	}
	sink += ring[at / 2];
	return (now() - begin) * 1e9 / n;
}

static double
apply_ns(struct protovm *vm, const struct pb_writer *packets, unsigned kinds,
    unsigned n)
{
	double begin = now();
	unsigned i;

	for (i = 0; i < n; i++)
		sink += protovm_apply(vm, packets[i % kinds].data,
		    packets[i % kinds].len);
	return (now() - begin) * 1e9 / n;
}

static void
line(const char *name, struct protovm *vm, const struct pb_writer *packets,
    unsigned kinds)
{
	unsigned n = ROUND_BYTES / (unsigned)packets->len / 8 + 1;
	double copy[ROUNDS_MAX], apply[ROUNDS_MAX];
	double c, a;
	int r;

	for (r = 0; r < rounds; r++) {
		copy[r] = copy_ns(packets, n);
		apply[r] = apply_ns(vm, packets, kinds, n);
	}
	c = median(copy);
	a = median(apply);
	printf("%-34s %7zu B  %9.0f ns  %6.2f ns/B  memcpy %7.0f ns\n", name,
	    packets->len, a, a / (double)packets->len, c);
}

#define KINDS 64u

static void
patches(const char *name, uint32_t field, unsigned elements)
{
	struct protovm *vm = machine(ELEMENTS);
	struct pb_writer packets[KINDS];
	uint32_t id = 1;
	unsigned i, k;

	fill(vm);
	for (k = 0; k < KINDS; k++) {
		pb_writer_init(&packets[k]);
		for (i = 0; i < elements; i++) {
			id = id * 1664525u + 1013904223u;
			put_element(&packets[k], field,
			    (id >> 8) % ELEMENTS_N, 1000 + i);
		}
	}
	line(name, vm, packets, KINDS);
	for (k = 0; k < KINDS; k++)
		pb_writer_done(&packets[k]);
	protovm_free(vm);
}

/* A packet that the program is not about, of ten fields. */
static void
foreign(void)
{
	struct protovm *vm = machine(DO(SRC(FIELD(900) FIELD(6)) IN("merge {} ")));
	struct pb_writer w;
	uint32_t f;

	pb_writer_init(&w);
	for (f = 1; f <= 9; f++)
		pb_put_uint(&w, 10 + f, f * 1000003u);
	pb_put_string(&w, 11, "a track event with its arguments, categories and "
	    "all that one has");
	line("a packet about something else", vm, &w, 1);
	pb_writer_done(&w);
	protovm_free(vm);
}

/* So that a program has work: numbers as field 1, and a state of field 2. */
static void
hostile(const char *name, const char *text)
{
	struct pb_writer packet, state;
	struct protovm *vm = NULL;
	double ns[ROUNDS_MAX];
	uint32_t i;
	int r;

	pb_writer_init(&packet);
	pb_writer_init(&state);
	for (i = 0; packet.len < FRAME_SIZE; i++)
		pb_put_uint(&packet, 1, (i * 2654435761u) >> 11);
	for (i = 0; i < FRAME_SIZE / 2; i++)
		pb_put_uint(&state, 2, 1);
	for (r = 0; r < rounds; r++) {
		protovm_free(vm);
		vm = machine(text);
		if (protovm_set_state(vm, state.data, state.len) != 0)
			errx(1, "no memory");
		ns[r] = apply_ns(vm, &packet, 1, 1);
	}
	printf("%-34s %7zu B  %9.0f ns  %6.2f ns/B  %s\n", name, packet.len,
	    median(ns), median(ns) / (double)packet.len, protovm_reason(vm));
	pb_writer_done(&packet);
	pb_writer_done(&state);
	protovm_free(vm);
}

static void
serialise(void)
{
	struct protovm *vm = machine(ELEMENTS);
	double ns[ROUNDS_MAX], begin;
	struct pb_writer w;
	int r;

	fill(vm);
	pb_writer_init(&w);
	for (r = 0; r < rounds; r++) {
		pb_writer_reset(&w);
		begin = now();
		protovm_state(vm, &w);
		ns[r] = (now() - begin) * 1e9;
	}
	printf("%-34s %7zu B  %9.0f ns  %6.2f ns/B  memory %zu B\n",
	    "writing a state of 10,000", w.len, median(ns),
	    median(ns) / (double)w.len, protovm_memory(vm));
	pb_writer_done(&w);
	protovm_free(vm);
}

int
main(int argc, char **argv)
{
	if (argc > 1)
		rounds = atoi(argv[1]);
	if (rounds < 1 || rounds > ROUNDS_MAX)
		errx(2, "usage: bench_protovm [ROUNDS]");
	/* The pages are made now rather than in the first rounds. */
	memset(ring, 1, sizeof(ring));
	foreign();
	patches("merge 1 element of 10,000", 2, 1);
	patches("merge 100 elements of 10,000", 2, 100);
	patches("set 1 element of 10,000", 3, 1);
	patches("set 100 elements of 10,000", 3, 100);
	serialise();
	hostile("the square", SQUARE);
	hostile("fields that are not there", SCANS);
	hostile("new elements", CREATE);
	hostile("elements that come and go", COME_AND_GO);
	return 0;
}
