#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/inspect/scan/trace_scan.h"
#include "client/inspect/scan/trace_window.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define PACKETS 40u

struct input {
	const uint8_t *data;
	size_t len, at;
	size_t step; /* bytes of one read */
};

struct fixture {
	struct pb_writer file;
	size_t begins[PACKETS + 1];
	uint8_t *copy; /* to be spoiled */
	struct trace_scan scan;
	uint64_t taken;
};

/* 40 packets of a sequence, of 1 to some 300 bytes. */
static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char text[400];
	size_t i, mark;

	memset(text, 'x', sizeof(text));
	pb_writer_init(&f->file);
	for (i = 0; i < PACKETS; i++) {
		f->begins[i] = f->file.len;
		mark = pb_nest_begin(&f->file, 1);
		pb_put_uint(&f->file, 10, 2 + i % 3);
		pb_put_bytes(&f->file, 900, text, i * 7);
		pb_put_uint(&f->file, 8, 1000000 + i);
		pb_nest_end(&f->file, mark);
	}
	f->begins[PACKETS] = f->file.len;
	f->copy = malloc(f->file.len);
	memcpy(f->copy, f->file.data, f->file.len);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	pb_writer_done(&f->file);
	free(f->copy);
	free(f);
	return 0;
}

static ssize_t
read_cb(void *arg, uint8_t *buf, size_t len)
{
	struct input *in = arg;
	size_t n = in->len - in->at;

	if (n > len)
		n = len;
	if (n > in->step)
		n = in->step;
	memcpy(buf, in->data + in->at, n);
	in->at += n;
	return (ssize_t)n;
}

static bool
packet_cb(void *arg, const uint8_t *data, size_t len, uint64_t bytes,
    uint64_t offset)
{
	struct fixture *f = arg;

	if (!pb_well_formed(data, len))
		return false;
	assert_true(bytes > len);
	assert_true(offset + bytes <= f->file.len);
	f->taken++;
	return true;
}

static const struct trace_scan *
scan_in_steps(struct fixture *f, const uint8_t *data, size_t len,
    bool size_known, size_t step)
{
	const struct trace_scan_ops ops = { .packet = packet_cb, .arg = f };
	struct input in = { .data = data, .len = len, .step = step };
	struct trace_window w;
	char err[200];

	f->taken = 0;
	trace_window_init(&w, read_cb, &in);
	assert_int_equal(trace_scan_run(&f->scan, &w, size_known ? len : 0,
	    &ops, err, sizeof(err)), 0);
	trace_window_done(&w);
	assert_int_equal(f->taken, f->scan.packets);
	assert_int_equal(f->scan.bytes, len);
	assert_int_equal(f->scan.packet_bytes + f->scan.skipped +
	    f->scan.tail_bytes, len);
	return &f->scan;
}

static const struct trace_scan *
scan(struct fixture *f, const uint8_t *data, size_t len)
{
	struct trace_scan first;

	first = *scan_in_steps(f, data, len, true, len + 1);
	assert_memory_equal(&first, scan_in_steps(f, data, len, true, 3),
	    sizeof(first));
	return scan_in_steps(f, data, len, false, 1);
}

static void
a_whole_file_is_whole(void **state)
{
	struct fixture *f = *state;
	const struct trace_scan *s = scan(f, f->copy, f->file.len);

	assert_int_equal(s->packets, PACKETS);
	assert_int_equal(s->n_damages, 0);
	assert_int_equal(s->tail_bytes, 0);
	assert_int_equal(s->skipped, 0);
	assert_int_equal(s->packets_behind, 0);
}

static void
an_empty_file_has_nothing_to_say(void **state)
{
	struct fixture *f = *state;
	const struct trace_scan *s = scan(f, f->copy, 0);

	assert_int_equal(s->packets, 0);
	assert_int_equal(s->n_damages, 0);
	assert_int_equal(s->tail_bytes, 0);
}

static void
a_file_cut_anywhere_keeps_all_that_is_whole(void **state)
{
	struct fixture *f = *state;
	const struct trace_scan *s;
	size_t len, whole = 0;

	for (len = 0; len <= f->file.len; len++) {
		while (whole < PACKETS && f->begins[whole + 1] <= len)
			whole++;
		/* Heads at each byte; bodies are alike. */
		if (len - f->begins[whole] > 8 && len % 7 != 0)
			continue;
		s = scan(f, f->copy, len);
		assert_int_equal(s->packets, whole);
		assert_int_equal(s->n_damages, 0);
		assert_int_equal(s->tail_bytes, len - f->begins[whole]);
		if (s->tail_bytes == 0)
			continue;
		assert_int_equal(s->tail_offset, f->begins[whole]);
		if (s->tail_bytes > 3)
			assert_int_equal(s->tail_wants, f->begins[whole + 1] -
			    f->begins[whole]);
	}
}

static void
it_goes_on_behind_bytes_that_are_no_packets(void **state)
{
	struct fixture *f = *state;
	const struct trace_scan *s;

	memset(f->copy + f->begins[10], 0x42,
	    f->begins[12] - f->begins[10]);
	memset(f->copy + f->begins[30], 0xff,
	    f->begins[31] - f->begins[30]);
	s = scan(f, f->copy, f->file.len);
	assert_int_equal(s->packets, PACKETS - 3);
	assert_int_equal(s->n_damages, 2);
	assert_int_equal(s->damages[0].offset, f->begins[10]);
	assert_int_equal(s->damages[0].kind, TRACE_DAMAGE_NO_PACKET);
	assert_int_equal(s->damages[0].byte, 0x42);
	assert_int_equal(s->damages[0].skipped, f->begins[12] - f->begins[10]);
	assert_int_equal(s->damages[1].offset, f->begins[30]);
	assert_int_equal(s->packets_behind, PACKETS - 13);
	assert_int_equal(s->skipped, f->begins[12] - f->begins[10] +
	    f->begins[31] - f->begins[30]);
}

static void
a_malformed_packet_costs_itself_alone(void **state)
{
	struct fixture *f = *state;
	const struct trace_scan *s;

	f->copy[f->begins[20] + 3] = 0x07; /* tag of a wire type that is none */
	s = scan(f, f->copy, f->file.len);
	assert_int_equal(s->packets, PACKETS - 1);
	assert_int_equal(s->malformed, 1);
	assert_int_equal(s->n_damages, 1);
	assert_int_equal(s->damages[0].kind, TRACE_DAMAGE_MALFORMED);
	assert_int_equal(s->damages[0].offset, f->begins[20]);
	assert_int_equal(s->packets_behind, PACKETS - 21);
	assert_int_equal(s->skipped, 0);
}

/* A bit of a length: the packet swallows others, or half of itself. */
static void
a_wrong_length_costs_its_packet_alone(void **state)
{
	struct fixture *f = *state;
	const struct trace_scan *s;
	unsigned bit;

	for (bit = 0; bit < 8; bit++) {
		f->copy[f->begins[20] + 1] ^= (uint8_t)(1u << bit);
		s = scan(f, f->copy, f->file.len);
		assert_int_equal(s->n_damages, 1);
		/* Cut at a field's end, it looks whole. */
		assert_in_range(s->damages[0].offset, f->begins[20],
		    f->begins[21]);
		assert_in_range(s->packets, PACKETS - 2, PACKETS);
		f->copy[f->begins[20] + 1] ^= (uint8_t)(1u << bit);
	}
}

static void
a_length_past_the_end_is_damage_where_packets_follow(void **state)
{
	struct fixture *f = *state;
	const struct trace_scan *s;

	/* of begins[20]: 0a, two bytes of length; now some 200 million */
	f->copy[f->begins[20] + 2] = 0xff;
	f->copy[f->begins[20] + 3] = 0xff;
	f->copy[f->begins[20] + 4] = 0x60;
	s = scan_in_steps(f, f->copy, f->file.len, true, f->file.len);
	assert_int_equal(s->packets, PACKETS - 1);
	assert_int_equal(s->damages[0].kind, TRACE_DAMAGE_PAST_END);
	assert_int_equal(s->tail_bytes, 0);
	s = scan_in_steps(f, f->copy, f->file.len, false, 100);
	assert_int_equal(s->packets, PACKETS - 1);
	assert_int_equal(s->damages[0].kind, TRACE_DAMAGE_TOO_LONG);
}

static void
zeros_at_the_end_are_called_so(void **state)
{
	struct fixture *f = *state;
	const struct trace_scan *s;

	memset(f->copy + f->begins[30], 0, f->file.len - f->begins[30]);
	s = scan(f, f->copy, f->file.len);
	assert_int_equal(s->packets, 30);
	assert_int_equal(s->n_damages, 1);
	assert_int_equal(s->damages[0].kind, TRACE_DAMAGE_ZEROS);
	assert_int_equal(s->damages[0].offset, f->begins[30]);
	assert_int_equal(s->skipped, f->file.len - f->begins[30]);
}

static void
what_is_no_trace_at_all_has_no_packets(void **state)
{
	struct fixture *f = *state;
	const struct trace_scan *s;
	size_t i;

	for (i = 0; i < f->file.len; i++)
		f->copy[i] = (uint8_t)"[{\"ph\": \"X\"}]\n"[i % 14];
	s = scan(f, f->copy, f->file.len);
	assert_int_equal(s->packets, 0);
	assert_int_equal(s->n_damages, 1);
	assert_int_equal(s->skipped, f->file.len);
}

static void
a_search_that_was_made_slow_ends(void **state)
{
	struct fixture *f = *state;
	/* Each byte begins what may be a packet of many fields. */
	size_t len = 4u << 20, i;
	uint8_t *data = malloc(len);

	/* 0a ff ff 3f: 1 MiB - 1; inside fields of two bytes each */
	for (i = 0; i + 4 <= len; i += 4)
		memcpy(data + i, "\x0a\xf0\x7f\x08", 4);
	data[0] = 0xff;
	(void)scan_in_steps(f, data, len, true, len);
	assert_int_equal(f->scan.packets, 0);
	assert_int_equal(f->scan.bytes, len);
	free(data);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(a_whole_file_is_whole),
		T(an_empty_file_has_nothing_to_say),
		T(a_file_cut_anywhere_keeps_all_that_is_whole),
		T(it_goes_on_behind_bytes_that_are_no_packets),
		T(a_malformed_packet_costs_itself_alone),
		T(a_wrong_length_costs_its_packet_alone),
		T(a_length_past_the_end_is_damage_where_packets_follow),
		T(zeros_at_the_end_are_called_so),
		T(what_is_no_trace_at_all_has_no_packets),
		T(a_search_that_was_made_slow_ends),
	};

	return cmocka_run_group_tests_name("trace_scan", tests, NULL, NULL);
}
