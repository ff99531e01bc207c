/*
 * What splitting a stream costs, beside memcpy of the same bytes in the same
 * run.
 *
 *	bench_segment_splitter
 *
 * Track events of a few sequences in turn, and of 10,000 at random; as one file
 * and as one for each of 1000 machines; with a cut every 100,000 packets.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "transport/segment/segment_splitter.h"
#include "transport/wire/pb_writer.h"

#define PACKETS  400000u
#define CUT_EACH 100000u
/* As a session's file gets them. */
#define PIECE (256u << 10)
#define AIM_NS 100
/* The best of a few: the machine is shared. */
#define REPEATS 5

static uint8_t *copy;
static size_t copied;

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint32_t
chance(void)
{
	static uint32_t x = 1;

	x = x * 1664525u + 1013904223u;
	return x >> 8;
}

/* Ends of the pieces, at whole packets. */
struct stream {
	struct pb_writer w;
	size_t ends[4096];
	size_t n;
};

static void
put_mark(struct pb_writer *w, uint32_t phase, uint32_t number)
{
	size_t packet = pb_nest_begin(w, 1), mark;

	pb_put_uint(w, 10, 1);
	mark = pb_nest_begin(w, 1002);
	pb_put_uint(w, 1, phase);
	pb_put_uint(w, 2, number);
	pb_nest_end(w, mark);
	pb_nest_end(w, packet);
}

static void
put_event(struct pb_writer *w, uint32_t sequence, uint32_t machine, bool clears)
{
	static uint64_t ts = 2647380214914u;
	size_t packet = pb_nest_begin(w, 1), event;

	pb_put_uint(w, 8, ts += chance() % 5000);
	event = pb_nest_begin(w, 11);
	pb_put_uint(w, 9, 1 + chance() % 2);
	pb_put_uint(w, 10, 1 + chance() % 60);
	pb_put_uint(w, 11, 0x5aa0f38c1d2e0000u + chance() % 20);
	pb_put_uint(w, 3, 1 + chance() % 5);
	pb_nest_end(w, event);
	pb_put_uint(w, 13, clears ? 1 : 2);
	pb_put_uint(w, 3, 1000);
	pb_put_uint(w, 10, sequence);
	pb_put_uint(w, 79, 30000 + sequence % 1000);
	if (machine != 0)
		pb_put_uint(w, 98, machine);
	pb_nest_end(w, packet);
}

static void
make_up(struct stream *s, uint32_t sequences, uint32_t run, uint32_t machines)
{
	size_t begin = 0, i;
	uint32_t q = 0;

	pb_writer_init(&s->w);
	s->n = 0;
	for (i = 0; i < PACKETS; i++) {
		if (i % run == 0)
			q = chance() % sequences;
		if (i > 0 && i % CUT_EACH == 0)
			put_mark(&s->w, 1, (uint32_t)(i / CUT_EACH + 1));
		if (i > CUT_EACH && i % CUT_EACH == CUT_EACH / 10)
			put_mark(&s->w, 2, (uint32_t)(i / CUT_EACH + 1));
		put_event(&s->w, q + 2, machines == 0 ? 0 : 1 + q % machines,
		    i % CUT_EACH < CUT_EACH / 10 && chance() % 8 == 0);
		if (s->w.len - begin > PIECE || i + 1 == PACKETS)
			s->ends[s->n++] = begin = s->w.len;
	}
	if (s->w.failed)
		abort();
}

static int
begin_segment(void *arg, const struct segment_id *id, void **segment)
{
	return 0;
}

static int
put_segment(void *arg, void *segment, const uint8_t *packets, size_t len)
{
	memcpy(copy, packets, len);
	copied += len;
	return 0;
}

static int
end_segment(void *arg, void *segment, const struct segment_summary *of)
{
	return 0;
}

static double
split(const struct stream *s, bool by_machine)
{
	static const struct segment_ops ops = {
		begin_segment, put_segment, end_segment
	};
	static const uint8_t uuid[SEGMENT_UUID_SIZE];
	struct segment_splitter *p = segment_splitter_new(
	    &(struct segment_options){
		.recording_uuid = uuid, .by_machine = by_machine
	    }, &ops, NULL);
	size_t i, at = 0;
	double t;

	if (p == NULL)
		abort();
	t = now();
	for (i = 0; i < s->n; i++) {
		if (segment_splitter_put(p, s->w.data + at, s->ends[i] - at) !=
		    SEGMENT_OK)
			abort();
		at = s->ends[i];
	}
	if (segment_splitter_finish(p) != SEGMENT_OK)
		abort();
	t = now() - t;
	segment_splitter_free(p);
	return t;
}

static double
only_copy(const struct stream *s)
{
	size_t i, at = 0;
	double t = now();

	for (i = 0; i < s->n; i++) {
		put_segment(NULL, NULL, s->w.data + at, s->ends[i] - at);
		at = s->ends[i];
	}
	return now() - t;
}

static void
report(const char *what, uint32_t sequences, uint32_t run, uint32_t machines)
{
	struct stream s;
	double with = 1e18, without = 1e18, t;
	int i;

	make_up(&s, sequences, run, machines);
	for (i = 0; i < REPEATS; i++) {
		if ((t = split(&s, machines > 0)) < with)
			with = t;
		if ((t = only_copy(&s)) < without)
			without = t;
	}
	printf("%-34s %4zu bytes  %6.1f ns a packet (aim %d), memcpy %4.1f\n",
	    what, s.w.len / PACKETS, with / PACKETS, AIM_NS,
	    without / PACKETS);
	pb_writer_done(&s.w);
}

int
main(void)
{
	if ((copy = malloc(2 * PIECE)) == NULL)
		return 1;
	report("12 sequences, 20 packets in turn", 12, 20, 0);
	report("10,000 sequences, one in turn", 10000, 1, 0);
	report("1000 machines, 20 packets in turn", 1000, 20, 1000);
	report("1000 machines, one in turn", 10000, 1, 1000);
	printf("%zu MB in all\n", copied >> 20);
	free(copy);
	return 0;
}
