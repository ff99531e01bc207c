/*
 * The cost of a packet that a ring overwrites, from the commit of its chunk on:
 * without programs of producers, beside them, and with one that merges it.
 *
 * usage: bench_programs [ROUNDS]
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
#include "service/ingest/buffer_vms.h"
#include "service/model/model.h"
#include "service/protovm/protovm.h"
#include "tests/unit/service/protovm/programs.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/wire/pb_writer.h"

#define RING       ((uint64_t)4 << 20)
#define CHUNKS     256u
#define CHUNK_SIZE 4000u
#define LAPS       8u
#define ELEMENTS_N 1000u
#define ROUNDS_MAX 101

#define MERGES "instructions { " SRC(EACH(2)) BY_ID("merge {} ") "} "
#define OTHER  "instructions { " SRC(EACH(99)) BY_ID("merge {} ") "} "

enum what { NONE, OF_OTHERS, ABOUT_ELSE, MERGING, WHATS };

static const char *const names[WHATS] = {
	"no program", "a program of another producer",
	"a program about something else", "a program that merges it",
};
static struct pb_writer chunks[CHUNKS];
static uint16_t fragments[CHUNKS];
static uint64_t packets;

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Chunks of packets that each set one of the elements, of some 40 bytes. */
static void
make_chunks(void)
{
	struct pb_writer packet;
	uint32_t i, n = 0;
	size_t mark;

	pb_writer_init(&packet);
	for (i = 0; i < CHUNKS; i++) {
		pb_writer_init(&chunks[i]);
		while (chunks[i].len < CHUNK_SIZE) {
			pb_writer_reset(&packet);
			mark = pb_nest_begin(&packet, 2);
			pb_put_uint(&packet, 1, n++ * 7919 % ELEMENTS_N);
			pb_put_uint(&packet, 2, n);
			pb_put_string(&packet, 3, "com.example.window");
			pb_nest_end(&packet, mark);
			pb_put_varint(&chunks[i], packet.len);
			pb_put_raw(&chunks[i], packet.data, packet.len);
			fragments[i]++;
		}
		packets += fragments[i];
	}
	pb_writer_done(&packet);
}

static void
add_program(struct buffer_vms *v, const struct producer *p, const char *text)
{
	struct buffer_vm_offer o = { .producer = p, .source = "bench" };
	struct protovm_program *program;
	struct text_error e = { 0 };
	struct buffer_vm *vm;
	uint8_t *wire;
	char why[256];

	if (text_parse(&perfetto__protos__vm_program__descriptor, text,
	    strlen(text), &wire, &o.len, &e) != 0)
		errx(1, "%s", e.message);
	o.program = wire;
	if ((program = protovm_program_new(wire, o.len, why,
	    sizeof(why))) == NULL)
		errx(1, "%s", why);
	vm = buffer_vms_add(v, &o, protovm_new(program, 16u << 20));
	if (vm == NULL || buffer_vms_join(v, vm, p) != 0)
		errx(1, "no memory");
	protovm_program_unref(program);
	free(wire);
}

static void
write_lap(struct trace_buffer *tb, uint32_t *id)
{
	uint32_t i;

	for (i = 0; i < RING / CHUNK_SIZE; i++, (*id)++)
		trace_buffer_write(tb, &(struct tb_origin){ .producer = 1,
		    .writer = 1 }, &(struct tb_chunk){ .id = *id,
		    .num_fragments = fragments[*id % CHUNKS],
		    .complete = true, .payload = chunks[*id % CHUNKS].data,
		    .len = chunks[*id % CHUNKS].len });
}

/* Nanoseconds for each packet that is written and overwritten. */
static double
measure(enum what what)
{
	struct machine host = { .id = 0 };
	struct producer self = { .id = 1, .machine = &host };
	struct producer other = { .id = 2, .machine = &host };
	struct trace_buffer *tb = trace_buffer_new(RING, TB_RING);
	struct buffer_vms *v = NULL;
	uint32_t id = 0, i;
	double begin;

	if (what != NONE && (v = buffer_vms_new(tb)) == NULL)
		errx(1, "no memory");
	if (v != NULL)
		add_program(v, what == OF_OTHERS ? &other : &self,
		    what == ABOUT_ELSE ? OTHER : MERGES);
	write_lap(tb, &id);
	write_lap(tb, &id);
	begin = now();
	for (i = 0; i < LAPS; i++)
		write_lap(tb, &id);
	begin = now() - begin;
	trace_buffer_free(tb);
	buffer_vms_free(v);
	return begin * 1e9 / ((double)(LAPS * (RING / CHUNK_SIZE)) *
	    (double)packets / CHUNKS);
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int
main(int argc, char **argv)
{
	static double ns[WHATS][ROUNDS_MAX];
	int rounds = argc > 1 ? atoi(argv[1]) : 15, i, k;

	if (rounds < 1 || rounds > ROUNDS_MAX)
		errx(1, "rounds: 1 to %d", ROUNDS_MAX);
	make_chunks();
	for (i = 0; i < rounds; i++)
		for (k = 0; k < WHATS; k++)
			ns[k][i] = measure((enum what)k);
	for (k = 0; k < WHATS; k++) {
		qsort(ns[k], (size_t)rounds, sizeof(ns[k][0]), compare);
		printf("%-32s %6.1f ns a packet of %.0f bytes, %5.2f of the "
		    "first\n", names[k], ns[k][rounds / 2],
		    (double)CHUNK_SIZE * CHUNKS / (double)packets,
		    ns[k][rounds / 2] / ns[0][rounds / 2]);
	}
	return 0;
}
