#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/inspect/report/inspection.h"
#include "client/inspect/report/report.h"
#include "client/inspect/report/session_log.h"
#include "client/inspect/report/verdict.h"
#include "client/inspect/scan/trace_window.h"
#include "client/trace/trace_summary.h"
#include "protos/fields.h"
#include "transport/wire/pb_writer.h"

/* Fields of TracePacket. */
enum {
	TRUSTED_UID = 3,
	CLOCK_SNAPSHOT = 6,
	SYS_STATS = 7,
	TIMESTAMP = 8,
	SEQUENCE_ID = 10,
	SEQUENCE_FLAGS = 13,
	TRACE_CONFIG = 33,
	TRACE_STATS = 35,
	DROPPED = 42,
	SYSTEM_INFO = 45,
	TRIGGER = 46,
	COMPRESSED = 50,
	SERVICE_EVENT = 69,
	TRACE_UUID = 89,
	CLONE_TRIGGER = 113,
	FOR_TESTING = 900,
	MACHINE_ID = 98,
};

#define SECOND 1000000000ull

struct fixture {
	struct pb_writer file;
	size_t mark;
	struct inspection *i;
	struct inspect_verdict verdict;
	char *text; /* the report, for people or for programs */
};

struct input {
	const uint8_t *data;
	size_t left;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	pb_writer_init(&f->file);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	inspection_free(f->i);
	pb_writer_done(&f->file);
	free(f->text);
	free(f);
	return 0;
}

static struct pb_writer *
begin(struct fixture *f, uint32_t sequence)
{
	f->mark = pb_nest_begin(&f->file, 1);
	pb_put_uint(&f->file, TRUSTED_UID, 1000);
	pb_put_uint(&f->file, SEQUENCE_ID, sequence);
	return &f->file;
}

static void
end(struct fixture *f)
{
	pb_nest_end(&f->file, f->mark);
}

static void
event(struct fixture *f, uint32_t which, uint64_t ns)
{
	size_t mark;

	pb_put_uint(begin(f, 1), TIMESTAMP, ns);
	mark = pb_nest_begin(&f->file, SERVICE_EVENT);
	pb_put_uint(&f->file, which, 1);
	pb_nest_end(&f->file, mark);
	end(f);
}

static void
packet(struct fixture *f, uint32_t sequence, uint32_t flags, uint32_t dropped)
{
	pb_put_uint(begin(f, sequence), TIMESTAMP, 3 * SECOND);
	pb_put_uint(&f->file, SEQUENCE_FLAGS, flags);
	if (dropped != 0)
		pb_put_uint(&f->file, DROPPED, dropped);
	pb_put_string(&f->file, FOR_TESTING, "");
	end(f);
}

/* A session of five seconds with two packets. */
static void
session(struct fixture *f)
{
	event(f, 2, SECOND);
	packet(f, 2, 1, 0);
	packet(f, 2, 2, 0);
	event(f, 5, 6 * SECOND);
}

static void
stats_with(struct fixture *f, uint32_t field, uint64_t v)
{
	size_t stats, buffer;

	begin(f, 1);
	stats = pb_nest_begin(&f->file, TRACE_STATS);
	buffer = pb_nest_begin(&f->file, 1);
	pb_put_uint(&f->file, 12, 65536);
	pb_put_uint(&f->file, 1, 4000);
	pb_put_uint(&f->file, 2, 2);
	if (field != 0)
		pb_put_uint(&f->file, field, v);
	pb_nest_end(&f->file, buffer);
	pb_nest_end(&f->file, stats);
	end(f);
}

/* A statistic of a producer, "sdk", whose clock is 1000 s behind. */
static void
stats_of_a_foreign_clock(struct fixture *f)
{
	size_t stats, clock;

	begin(f, 1);
	stats = pb_nest_begin(&f->file, TRACE_STATS);
	clock = pb_nest_begin(&f->file, 1010);
	pb_put_uint(&f->file, 1, 7);
	pb_put_string(&f->file, 2, "sdk");
	pb_put_uint(&f->file, 4, (uint64_t)(-1000 * (int64_t)SECOND));
	pb_put_uint(&f->file, 5, 2);
	pb_nest_end(&f->file, clock);
	pb_nest_end(&f->file, stats);
	end(f);
}

static ssize_t
read_cb(void *arg, uint8_t *buf, size_t len)
{
	struct input *in = arg;

	if (len > in->left)
		len = in->left;
	if (len > 0) {
		memcpy(buf, in->data, len);
		in->data += len;
		in->left -= len;
	}
	return (ssize_t)len;
}

static void
inspect_bytes(struct fixture *f, const uint8_t *data, size_t len)
{
	struct input in = { .data = data, .left = len };
	struct trace_window w;
	char err[200];

	inspection_free(f->i);
	f->i = inspection_new();
	assert_non_null(f->i);
	trace_window_init(&w, read_cb, &in);
	assert_int_equal(inspection_run(f->i, &w, len, err, sizeof(err)), 0);
	trace_window_done(&w);
	inspect_verdict_make(&f->verdict, f->i);
}

static enum inspect_verdict_kind
verdict(struct fixture *f)
{
	assert_false(f->file.failed);
	inspect_bytes(f, f->file.data, f->file.len);
	return f->verdict.kind;
}

static const char *
report(struct fixture *f, bool json)
{
	size_t len;
	FILE *out;

	free(f->text);
	f->text = NULL;
	out = open_memstream(&f->text, &len);
	(json ? inspect_report_json : inspect_report_text)(out, f->i,
	    &f->verdict, "a.pftrace");
	fclose(out);
	return f->text;
}

static void
assert_has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("\"%s\" is not in:\n%s", part, text);
}

static void
a_trace_with_the_clock_of_another_machine_is_not_simply_whole(void **state)
{
	struct fixture *f = *state;

	session(f);
	stats_of_a_foreign_clock(f);
	assert_int_equal(verdict(f), INSPECT_WRONG_TIMES);
	assert_string_equal(f->verdict.text, "whole but with wrong times: "
	    "1 producer has the clock of another machine");
	assert_has(report(f, false), "all known in it, but see Wrong times\n");
	assert_has(f->text, "Wrong times     packets of sdk are about "
	    "1000.000 s behind");
	assert_has(report(f, true), "\"verdict\":\"wrong_times\"");
	/* And one that misses something says both. */
	packet(f, 2, 1, 1);
	stats_of_a_foreign_clock(f);
	assert_int_equal(verdict(f), INSPECT_LOSSY);
	assert_has(f->verdict.text, "whole but lossy: ");
	assert_has(f->verdict.text, "; the times of 1 producer are wrong");
}

static void
a_session_with_its_end_is_whole(void **state)
{
	struct fixture *f = *state;

	session(f);
	stats_with(f, 0, 0);
	assert_int_equal(verdict(f), INSPECT_WHOLE);
	assert_string_equal(f->verdict.text, "whole");
	assert_int_equal(inspection_duration_ns(f->i), 5 * SECOND);
	assert_has(report(f, false), "Lost            nothing\n");
	assert_has(report(f, true), "\"verdict\":\"whole\"");
}

/* A packet of the service's about a program with two instructions. */
static void
protovm(struct fixture *f, size_t state_len, int32_t producers)
{
	const uint8_t state[3000] = { 0 };
	size_t mark, one, program;
	int32_t i;

	begin(f, 1);
	mark = pb_nest_begin(&f->file, TracePacket_protovms);
	one = pb_nest_begin(&f->file, ProtoVms_instance);
	program = pb_nest_begin(&f->file, Instance_program);
	pb_put_bytes(&f->file, VmProgram_instructions, state, 0);
	pb_put_bytes(&f->file, VmProgram_instructions, state, 0);
	pb_nest_end(&f->file, program);
	pb_put_bytes(&f->file, Instance_state, state, state_len);
	pb_put_uint(&f->file, Instance_memory_limit_kb, 64);
	for (i = 0; i < producers; i++)
		pb_put_int(&f->file, Instance_producer_id, 3 + i);
	pb_nest_end(&f->file, one);
	pb_nest_end(&f->file, mark);
	end(f);
}

static void
programs_are_told_with_their_producers_and_the_size_of_their_state(void **state)
{
	struct fixture *f = *state;

	protovm(f, 1000, 1);
	verdict(f);
	assert_has(report(f, false), "Programs        ProtoVM of producer 3: "
	    "4 bytes with 2 instructions\n");
	assert_has(f->text, " state for overwritten packets: 1000 bytes of at most "
	    "64.0 KiB\n");
	/* The same program again, and now with more producers. */
	protovm(f, 3000, 10);
	verdict(f);
	assert_has(report(f, false), "of producers 3, 4, 5, 6, 7, 8, 9, 10 and "
	    "2 more: 4 bytes");
	assert_has(f->text, "2.9 KiB of at most 64.0 KiB, the last of 2\n");
	assert_has(report(f, true), "\"programs\":[{\"producers\":"
	    "[3,4,5,6,7,8,9,10],\"n_producers\":10,\"program_bytes\":4,"
	    "\"instructions\":2,\"state_bytes\":3000,"
	    "\"memory_limit_kb\":64,\"packets\":2}]");
}

static void
config_into_file(struct fixture *f)
{
	size_t config;

	begin(f, 1);
	config = pb_nest_begin(&f->file, TRACE_CONFIG);
	pb_put_uint(&f->file, 8, 1);
	pb_nest_end(&f->file, config);
	end(f);
}

static void
without_its_end_it_is_unfinished(void **state)
{
	struct fixture *f = *state;

	event(f, 2, SECOND);
	packet(f, 2, 1, 0);
	assert_int_equal(verdict(f), INSPECT_UNFINISHED);
	/* What was read of a running session ends with statistics. */
	stats_with(f, 0, 0);
	assert_int_equal(verdict(f), INSPECT_WHOLE);
	/* In a file they are in the middle, too. */
	config_into_file(f);
	assert_int_equal(verdict(f), INSPECT_UNFINISHED);
	event(f, 10, 2 * SECOND); /* a snapshot of it */
	assert_int_equal(verdict(f), INSPECT_WHOLE);
}

static void
a_trace_that_ends_between_two_packets_is_unfinished(void **state)
{
	struct fixture *f = *state;
	size_t whole;

	/* As it is read out of memory: the events first, then the data. */
	event(f, 2, SECOND);
	event(f, 5, 6 * SECOND);
	packet(f, 2, 1, 0);
	assert_int_equal(verdict(f), INSPECT_UNFINISHED);
	packet(f, 2, 2, 0);
	event(f, 4, 6 * SECOND);
	whole = f->file.len;
	assert_int_equal(verdict(f), INSPECT_UNFINISHED);
	stats_with(f, 0, 0);
	assert_int_equal(verdict(f), INSPECT_WHOLE);
	inspect_bytes(f, f->file.data, whole);
	assert_has(report(f, false), "Lost            not known: the trace "
	    "holds no statistics\n");
}

static void
statistics_with_data_behind_them_tell_of_no_end(void **state)
{
	struct fixture *f = *state;

	config_into_file(f);
	event(f, 2, SECOND);
	stats_with(f, 0, 0);
	event(f, 5, 6 * SECOND);
	packet(f, 2, 1, 0);
	assert_int_equal(verdict(f), INSPECT_UNFINISHED);
	assert_has(report(f, false), "Lost            not known: packets come "
	    "after its last statistics\n");
	assert_null(strstr(f->text, "Buffers"));
	assert_has(report(f, true), "\"packets_after_stats\":1");
	/* Perfetto's service has this at the end of a short file. */
	event(f, 4, 6 * SECOND);
	assert_int_equal(verdict(f), INSPECT_WHOLE);
	stats_with(f, 0, 0);
	assert_int_equal(verdict(f), INSPECT_WHOLE);
	assert_has(report(f, false), "Lost            nothing\n");
	assert_has(f->text, "Buffers         buffer 0");
}

static void
trigger(struct fixture *f, uint32_t kind, const char *name, uint64_t ns)
{
	size_t mark;

	pb_put_uint(begin(f, 1), TIMESTAMP, ns);
	mark = pb_nest_begin(&f->file, kind);
	pb_put_string(&f->file, 1, name);
	pb_nest_end(&f->file, mark);
	end(f);
}

static void
a_trigger_that_is_told_twice_is_one(void **state)
{
	struct fixture *f = *state;
	const struct session_log *l;

	session(f);
	trigger(f, TRIGGER, "crash", 2 * SECOND);
	trigger(f, CLONE_TRIGGER, "crash", 3 * SECOND);
	trigger(f, TRIGGER, "crash", 3 * SECOND);
	(void)verdict(f);
	l = inspection_log(f->i);
	assert_int_equal(l->n_triggers, 2);
	assert_false(l->triggers[0].clone);
	assert_true(l->triggers[1].clone);
	/* Twice at one time they would be two. */
	trigger(f, TRIGGER, "crash", 2 * SECOND);
	(void)verdict(f);
	assert_int_equal(inspection_log(f->i)->n_triggers, 3);
}

static void
losses_are_named_in_the_verdict(void **state)
{
	struct fixture *f = *state;

	session(f);
	stats_with(f, 3, 12);
	assert_int_equal(verdict(f), INSPECT_LOSSY);
	assert_string_equal(f->verdict.text, "whole but lossy: 12 chunks of "
	    "buffer 0 overwritten in the ring buffer by newer data");
	assert_has(report(f, true), "\"count\":12,");
}

static void
a_mark_of_a_packet_is_a_loss(void **state)
{
	struct fixture *f = *state;

	session(f);
	packet(f, 2, 2, 1 | 1 << 16);
	stats_with(f, 0, 0);
	assert_int_equal(verdict(f), INSPECT_LOSSY);
	assert_string_equal(f->verdict.text, "whole but lossy: 1 packet says "
	    "that something before it is missing");
	assert_has(report(f, false), "the relay's spool was full");
	assert_has(f->text, "1 packet of 1 of them cannot be decoded");
	assert_has(report(f, true), "\"reasons\":[1,65536],"
	    "\"undecodable_packets\":1");
}

static void
state_is_needed_until_it_is_made_anew(void **state)
{
	struct fixture *f = *state;
	const struct trace_sequence *q;
	size_t at = 0;

	packet(f, 2, 2, 0); /* before anything made it: lost */
	packet(f, 2, 3, 0);
	packet(f, 2, 2, 0);
	packet(f, 2, 2, 1); /* a loss takes it */
	packet(f, 2, 2, 0);
	packet(f, 2, 0, 0); /* needs none */
	packet(f, 2, 3, 1); /* a loss, and all is made anew */
	packet(f, 2, 2, 0);
	(void)verdict(f);
	q = trace_sequences_next(trace_summary_sequences(
	    inspection_summary(f->i)), &at);
	assert_int_equal(q->without_state, 3);
	assert_int_equal(q->gaps, 2);
}

static void
packets_that_nobody_can_decode_are_no_whole_trace(void **state)
{
	struct fixture *f = *state;

	session(f);
	packet(f, 9, 2, 0);
	packet(f, 9, 2, 0);
	stats_with(f, 0, 0);
	assert_int_equal(verdict(f), INSPECT_LOSSY);
	assert_string_equal(f->verdict.text, "whole but lossy: 2 packets "
	    "cannot be decoded: an earlier packet that they refer to is not "
	    "in it");
}

static void
damage_comes_before_losses(void **state)
{
	struct fixture *f = *state;
	size_t at;

	session(f);
	at = f->file.len;
	pb_put_raw(&f->file, "??????", 6);
	packet(f, 2, 1, 0);
	packet(f, 2, 1, 0);
	stats_with(f, 3, 12);
	assert_int_equal(verdict(f), INSPECT_DAMAGED);
	assert_int_equal(inspection_scan(f->i)->damages[0].offset, at);
	assert_has(f->verdict.text, "no packet begins there (the byte is "
	    "0x3f); 3 packets (");
	assert_has(report(f, false), "6 bytes of it belong to no packet");
}

static void
what_is_compressed_badly_is_damage(void **state)
{
	struct fixture *f = *state;
	size_t at;

	session(f);
	at = f->file.len;
	f->mark = pb_nest_begin(&f->file, 1);
	pb_put_string(&f->file, COMPRESSED, "no deflate at all");
	end(f);
	assert_int_equal(verdict(f), INSPECT_DAMAGED);
	assert_int_equal(inspection_compressed(f->i)->bad, 1);
	assert_int_equal(inspection_compressed(f->i)->offset, at);
	assert_has(f->verdict.text, "a compressed packet cannot be read");
	assert_has(report(f, true), "\"bad_compressed_packets\":1");
}

static void
other_files_are_no_traces(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(verdict(f), INSPECT_NO_TRACE);
	assert_string_equal(f->verdict.text, "empty: not one byte");
	pb_put_raw(&f->file, "\x1f\x8b\x08\x00", 4);
	assert_int_equal(verdict(f), INSPECT_NO_TRACE);
	assert_has(f->verdict.text, "compressed by gzip");
	pb_writer_reset(&f->file);
	pb_put_raw(&f->file, "hello", 5);
	assert_int_equal(verdict(f), INSPECT_NO_TRACE);
	assert_has(f->verdict.text, "byte 0: no packet begins there");
	pb_writer_reset(&f->file);
	pb_put_raw(&f->file, "\x0a\x09xx", 4);
	assert_int_equal(verdict(f), INSPECT_NO_TRACE);
	assert_has(f->verdict.text, "not one whole packet is in its 4 bytes");
}

static void
machines_have_their_names_and_clocks(void **state)
{
	struct fixture *f = *state;
	size_t info;

	session(f);
	pb_put_uint(begin(f, 1), MACHINE_ID, 77);
	info = pb_nest_begin(&f->file, SYSTEM_INFO);
	pb_put_string(&f->file, 17, "car\x1b[31m");
	pb_put_uint(&f->file, 8, 4);
	pb_nest_end(&f->file, info);
	end(f);
	pb_put_uint(begin(f, 9), MACHINE_ID, 77);
	pb_put_string(&f->file, SYS_STATS, "");
	end(f);
	stats_with(f, 0, 0);
	assert_int_equal(verdict(f), INSPECT_WHOLE);
	assert_has(report(f, false), "car\\x1b[31m, machine 77, 4 CPUs: "
	    "1 packet");
	assert_has(f->text, "on car\\x1b[31m: 1 packet");
	assert_has(report(f, true), "{\"id\":77,\"name\":\"car\\u001b[31m\"");
}

/* A trace with a bit of everything, cut and spoiled everywhere. */
static void
everything(struct fixture *f)
{
	size_t outer, inner;

	begin(f, 1);
	outer = pb_nest_begin(&f->file, CLOCK_SNAPSHOT);
	inner = pb_nest_begin(&f->file, 1);
	pb_put_uint(&f->file, 1, 6);
	pb_put_uint(&f->file, 2, SECOND);
	pb_nest_end(&f->file, inner);
	pb_nest_end(&f->file, outer);
	end(f);
	begin(f, 1);
	outer = pb_nest_begin(&f->file, TRACE_UUID);
	pb_put_uint(&f->file, 1, 1234);
	pb_nest_end(&f->file, outer);
	end(f);
	session(f);
	packet(f, 3, 2, 1);
	stats_with(f, 3, 12);
}

static void
clocks_that_nobody_measured_are_told_of_once(void **state)
{
	struct fixture *f = *state;
	unsigned i;

	session(f);
	(void)verdict(f);
	assert_null(strstr(report(f, false), "were not measured"));
	for (i = 0; i < 2; i++) {
		pb_put_uint(begin(f, 3 + i), TIMESTAMP, 3 * SECOND);
		pb_put_uint(&f->file, MACHINE_ID, 77);
		pb_put_uint(&f->file, 58, i == 0 ? 6 : 3); /* its clock */
		pb_put_string(&f->file, FOR_TESTING, "");
		end(f);
	}
	(void)verdict(f);
	assert_has(report(f, false), "the clocks of machine 77 were not measured: "
	    "give it a relay, or Perfetto's UI leaves its events out\n");
	assert_null(strstr(strstr(f->text, "were not measured") + 1,
	    "were not measured"));
}

static void
it_may_be_cut_anywhere(void **state)
{
	struct fixture *f = *state;
	uint8_t *copy;
	size_t len;

	everything(f);
	for (len = 0; len < f->file.len; len++) {
		copy = malloc(len + 1);
		memcpy(copy, f->file.data, len);
		inspect_bytes(f, copy, len);
		assert_true(f->verdict.kind == INSPECT_NO_TRACE ||
		    f->verdict.kind == INSPECT_CUT_OFF ||
		    f->verdict.kind == INSPECT_UNFINISHED ||
		    f->verdict.kind == INSPECT_LOSSY ||
		    f->verdict.kind == INSPECT_WHOLE);
		(void)report(f, false);
		(void)report(f, true);
		free(copy);
	}
}

static void
any_bit_may_be_wrong(void **state)
{
	struct fixture *f = *state;
	const struct trace_scan *s;
	size_t bit;

	everything(f);
	for (bit = 0; bit < f->file.len * 8; bit++) {
		f->file.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		inspect_bytes(f, f->file.data, f->file.len);
		s = inspection_scan(f->i);
		assert_int_equal(s->packet_bytes + s->skipped + s->tail_bytes,
		    f->file.len);
		assert_true(f->verdict.text[0] != '\0');
		(void)report(f, false);
		(void)report(f, true);
		f->file.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(a_session_with_its_end_is_whole),
		T(programs_are_told_with_their_producers_and_the_size_of_their_state),
		T(a_trace_with_the_clock_of_another_machine_is_not_simply_whole),
		T(without_its_end_it_is_unfinished),
		T(a_trace_that_ends_between_two_packets_is_unfinished),
		T(statistics_with_data_behind_them_tell_of_no_end),
		T(a_trigger_that_is_told_twice_is_one),
		T(losses_are_named_in_the_verdict),
		T(a_mark_of_a_packet_is_a_loss),
		T(state_is_needed_until_it_is_made_anew),
		T(packets_that_nobody_can_decode_are_no_whole_trace),
		T(damage_comes_before_losses),
		T(what_is_compressed_badly_is_damage),
		T(other_files_are_no_traces),
		T(machines_have_their_names_and_clocks),
		T(clocks_that_nobody_measured_are_told_of_once),
		T(it_may_be_cut_anywhere),
		T(any_bit_may_be_wrong),
	};

	return cmocka_run_group_tests_name("inspection", tests, NULL, NULL);
}
