#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <cmocka.h>

#include "client/trace/trace_losses.h"
#include "client/trace/trace_summary.h"
#include "protos/link.pb-c.h"
#include "protos/trace_stats.pb-c.h"
#include "transport/wire/pb_writer.h"

/* Fields of TracePacket. */
enum {
	FTRACE_EVENTS = 1,
	TRUSTED_UID = 3,
	SYS_STATS = 7,
	TIMESTAMP = 8,
	SEQUENCE_ID = 10,
	TRACK_EVENT = 11,
	TRACE_CONFIG = 33,
	FTRACE_STATS = 34,
	TRACE_STATS = 35,
	DROPPED = 42,
	COMPRESSED = 50,
	SERVICE_EVENT = 69,
	TRUSTED_PID = 79,
	TRACE_PROVENANCE = 124,
	FIRST_ON_SEQUENCE = 87,
	MACHINE_ID = 98,
};

struct fixture {
	struct trace_summary *s;
	struct pb_writer file; /* Trace.packet repeated */
	size_t mark;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->s = trace_summary_new();
	pb_writer_init(&f->file);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	trace_summary_free(f->s);
	pb_writer_done(&f->file);
	free(f);
	return 0;
}

/* A packet of a producer's sequence, to be filled and ended. */
static struct pb_writer *
begin(struct fixture *f, uint32_t sequence, uint32_t pid)
{
	f->mark = pb_nest_begin(&f->file, 1);
	pb_put_uint(&f->file, SEQUENCE_ID, sequence);
	pb_put_uint(&f->file, TRUSTED_UID, 1000);
	if (pid != 0)
		pb_put_uint(&f->file, TRUSTED_PID, pid);
	return &f->file;
}

static void
end(struct fixture *f)
{
	pb_nest_end(&f->file, f->mark);
}

static void
feed(struct fixture *f)
{
	char err[200];

	assert_false(f->file.failed);
	assert_int_equal(trace_summary_feed(f->s, f->file.data, f->file.len,
	    err, sizeof(err)), 0);
	pb_writer_reset(&f->file);
}

static void
a_producer_is_a_process_and_has_sequences(void **state)
{
	struct fixture *f = *state;
	const struct trace_producer *p;
	uint32_t i;

	for (i = 0; i < 3; i++) {
		pb_put_string(begin(f, 2 + i % 2, 50), SYS_STATS, "x");
		end(f);
	}
	pb_put_string(begin(f, 9, 60), TRACK_EVENT, "a longer one");
	pb_put_uint(&f->file, MACHINE_ID, 77);
	end(f);
	feed(f);

	assert_int_equal(trace_summary_totals(f->s)->packets, 4);
	assert_int_equal(trace_summary_totals(f->s)->sequences, 3);
	assert_int_equal(trace_summary_totals(f->s)->service_packets, 0);
	assert_int_equal(trace_summary_producers(f->s, &p), 2);
	assert_int_equal(p[0].pid, 50); /* most bytes first */
	assert_int_equal(p[0].packets, 3);
	assert_int_equal(p[0].sequences, 2);
	assert_int_equal(p[0].machine_id, 0);
	assert_int_equal(p[1].pid, 60);
	assert_int_equal(p[1].uid, 1000);
	assert_int_equal(p[1].machine_id, 77);
	assert_null(p[1].name);
}

static void
bytes_are_those_of_the_file(void **state)
{
	struct fixture *f = *state;
	static char large[300];
	size_t len;

	memset(large, 'x', sizeof(large));
	pb_put_string(begin(f, 2, 50), TRACK_EVENT, "small");
	end(f);
	pb_put_bytes(begin(f, 2, 50), TRACK_EVENT, large, sizeof(large));
	end(f);
	len = f->file.len;
	feed(f);
	assert_int_equal(trace_summary_totals(f->s)->bytes, len);
	assert_int_equal(trace_summary_whole_bytes(f->s), len);
	assert_int_equal(trace_summary_loose_bytes(f->s), 0);
}

static void
a_name_joins_its_producer_whenever_it_comes(void **state)
{
	struct fixture *f = *state;
	const struct trace_producer *p;

	trace_summary_name(f->s, 1, 0, 50, "old");
	pb_put_string(begin(f, 2, 50), SYS_STATS, "x");
	end(f);
	feed(f);
	trace_summary_name(f->s, 1, 0, 50, "probes");
	trace_summary_name(f->s, 2, 1, 50, "elsewhere");
	assert_int_equal(trace_summary_producers(f->s, &p), 1);
	assert_string_equal(p[0].name, "probes");
}

/* TraceProvenance that says sequence 2, 3 and 4 came from 7, 8 and 8. */
static void
tell_provenance(struct fixture *f)
{
	struct pb_writer *w = begin(f, 1, 0);
	size_t provenance, buffer, sequence;
	uint32_t i;

	provenance = pb_nest_begin(w, TRACE_PROVENANCE);
	buffer = pb_nest_begin(w, 2);
	for (i = 2; i <= 4; i++) {
		sequence = pb_nest_begin(w, 1);
		pb_put_uint(w, 1, i);
		pb_put_uint(w, 2, i == 2 ? 7 : 8);
		pb_nest_end(w, sequence);
	}
	pb_nest_end(w, buffer);
	pb_nest_end(w, provenance);
	end(f);
}

static void
connections_of_one_process_are_told_apart_by_provenance(void **state)
{
	struct fixture *f = *state;
	const struct trace_producer *p;
	uint32_t i;

	/* told in the middle: 2 before it, 3 after it, 4 never writes */
	for (i = 2; i <= 3; i++) {
		pb_put_string(begin(f, i, 50), SYS_STATS, i == 2 ? "x" : "");
		end(f);
		if (i == 2)
			tell_provenance(f);
	}
	feed(f);
	trace_summary_name(f->s, 7, 0, 50, "browser");
	trace_summary_name(f->s, 8, 0, 50, "renderer");
	assert_int_equal(trace_summary_totals(f->s)->sequences, 2);
	assert_int_equal(trace_summary_producers(f->s, &p), 2);
	assert_int_equal(p[0].id, 7);
	assert_string_equal(p[0].name, "browser");
	assert_int_equal(p[0].packets, 1);
	assert_int_equal(p[1].id, 8);
	assert_string_equal(p[1].name, "renderer");
	assert_int_equal(p[1].sequences, 1);
}

static void
types_are_counted_by_their_field_of_the_packet(void **state)
{
	struct fixture *f = *state;
	const struct trace_packet_type *t;
	int i;

	for (i = 0; i < 2; i++) {
		pb_put_string(begin(f, 2, 50), TRACK_EVENT, "x");
		end(f);
	}
	pb_put_string(begin(f, 2, 50), SYS_STATS, "x");
	end(f);
	pb_put_string(begin(f, 2, 50), 5000, "from the future");
	end(f);
	feed(f);
	assert_int_equal(trace_summary_types(f->s, &t), 3);
	assert_string_equal(t[0].name, "track_event");
	assert_int_equal(t[0].packets, 2);
	assert_string_equal(t[1].name, "");
	assert_string_equal(t[2].name, "sys_stats");
	assert_int_equal(trace_summary_totals(f->s)->compressed, 0);
}

/* What was put is now inside of one compressed packet. */
static void
compress_all(struct fixture *f)
{
	uLongf n = compressBound(f->file.len);
	uint8_t *out = malloc(n);
	size_t mark;

	assert_int_equal(compress2(out, &n, f->file.data, f->file.len, 6),
	    Z_OK);
	pb_writer_reset(&f->file);
	mark = pb_nest_begin(&f->file, 1);
	pb_put_bytes(&f->file, COMPRESSED, out, n);
	pb_nest_end(&f->file, mark);
	free(out);
}

static void
packets_inside_of_compressed_ones_count_as_if_they_were_not(void **state)
{
	struct fixture *f = *state;
	const struct trace_producer *p;
	const struct trace_packet_type *t;
	size_t raw, stored;
	int i;

	for (i = 0; i < 50; i++) {
		pb_put_string(begin(f, 2 + i % 2, 50), TRACK_EVENT, "xxxxxxxx");
		end(f);
	}
	raw = f->file.len;
	compress_all(f);
	stored = f->file.len;
	feed(f);
	assert_int_equal(trace_summary_totals(f->s)->packets, 50);
	assert_int_equal(trace_summary_totals(f->s)->sequences, 2);
	assert_int_equal(trace_summary_totals(f->s)->compressed, 1);
	assert_int_equal(trace_summary_totals(f->s)->malformed, 0);
	assert_int_equal(trace_summary_totals(f->s)->bytes, stored);
	assert_int_equal(trace_summary_totals(f->s)->expanded_bytes, raw);
	assert_int_equal(trace_summary_producers(f->s, &p), 1);
	assert_int_equal(p[0].bytes, raw);
	assert_int_equal(trace_summary_types(f->s, &t), 1);
}

static void
compressed_packets_that_are_damaged_are_malformed(void **state)
{
	struct fixture *f = *state;

	pb_put_string(begin(f, 2, 50), COMPRESSED, "x");
	end(f);
	feed(f);
	assert_int_equal(trace_summary_totals(f->s)->malformed, 1);
	assert_int_equal(trace_summary_totals(f->s)->compressed, 1);
	assert_int_equal(trace_summary_totals(f->s)->packets, 0);
	/* nobody compresses twice */
	pb_put_string(begin(f, 2, 50), TRACK_EVENT, "x");
	end(f);
	compress_all(f);
	compress_all(f);
	feed(f);
	assert_int_equal(trace_summary_totals(f->s)->compressed, 2);
	assert_int_equal(trace_summary_totals(f->s)->malformed, 2);
	assert_int_equal(trace_summary_totals(f->s)->packets, 1);
}

static void
the_first_packet_of_a_sequence_is_no_loss(void **state)
{
	struct fixture *f = *state;
	const struct trace_totals *t = trace_summary_totals(f->s);

	/* as Perfetto's service marks them, old and new */
	pb_put_uint(begin(f, 2, 50), DROPPED, 1);
	end(f);
	pb_put_uint(begin(f, 3, 50), DROPPED, 1);
	pb_put_uint(&f->file, FIRST_ON_SEQUENCE, 1);
	end(f);
	pb_put_uint(begin(f, 2, 50), FIRST_ON_SEQUENCE, 1);
	pb_put_uint(&f->file, DROPPED, 64);
	end(f);
	feed(f);
	assert_int_equal(t->gaps, 0);
}

static void
a_writer_may_tell_of_a_loss_before_its_first_packet(void **state)
{
	struct fixture *f = *state;
	const struct trace_totals *t = trace_summary_totals(f->s);

	pb_put_uint(begin(f, 2, 50), FIRST_ON_SEQUENCE, 1);
	pb_put_uint(&f->file, DROPPED, 1 | 256);
	end(f);
	feed(f);
	assert_int_equal(t->gaps, 1);
	assert_int_equal(t->gaps_by_reason[8], 1);
}

static void
the_mark_of_a_cut_is_no_gap(void **state)
{
	struct fixture *f = *state;

	pb_put_string(begin(f, 2, 50), SYS_STATS, "x");
	end(f);
	pb_put_uint(begin(f, 2, 50), DROPPED, 1);
	pb_put_uint(&f->file, 1004, 1); /* tributary_divided */
	end(f);
	feed(f);
	assert_int_equal(trace_summary_totals(f->s)->gaps, 0);
}

static void
later_marks_are_gaps_by_reason(void **state)
{
	struct fixture *f = *state;
	const struct trace_totals *t = trace_summary_totals(f->s);

	pb_put_uint(begin(f, 2, 50), DROPPED, 64); /* overwritten at first */
	end(f);
	pb_put_uint(begin(f, 2, 50), DROPPED, 1);
	end(f);
	pb_put_uint(begin(f, 2, 50), DROPPED, 1 | 256);
	end(f);
	pb_put_uint(begin(f, 2, 50), DROPPED, 1 | 1u << (15 +
	    TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_QUOTA));
	end(f);
	pb_put_string(begin(f, 2, 50), SYS_STATS, "x");
	end(f);
	feed(f);
	assert_int_equal(t->gaps, 4);
	assert_int_equal(t->gaps_by_reason[0], 1); /* alone */
	assert_int_equal(t->gaps_by_reason[6], 1);
	assert_int_equal(t->gaps_by_reason[8], 1);
	assert_int_equal(t->gaps_by_reason[24], 1);
	assert_string_equal(trace_summary_reason(6),
	    "overwritten in the ring buffer");
	assert_string_equal(trace_summary_reason(99), "");
}

static void
one_gap_is_told_by_its_cause_not_by_its_effect_too(void **state)
{
	struct fixture *f = *state;
	const struct trace_totals *t = trace_summary_totals(f->s);

	pb_put_string(begin(f, 2, 50), SYS_STATS, "x");
	end(f);
	pb_put_uint(begin(f, 2, 50), DROPPED, 1 | 8 | 128);
	end(f);
	pb_put_uint(begin(f, 2, 50), DROPPED, 1 | 16); /* nothing else known */
	end(f);
	feed(f);
	assert_int_equal(t->gaps, 2);
	assert_int_equal(t->gaps_by_reason[3], 0);
	assert_int_equal(t->gaps_by_reason[7], 1);
	assert_int_equal(t->gaps_by_reason[4], 1);
}

static void
each_cause_of_a_loss_on_the_way_has_a_name(void **state)
{
	unsigned cause;

	(void)state;
	for (cause = 1; cause <= TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_QUOTA;
	    cause++) {
		assert_string_not_equal(trace_summary_reason(15 + cause),
		    "a newer cause");
		assert_string_not_equal(trace_summary_reason(15 + cause), "");
	}
}

static void
the_service_tells_config_duration_and_statistics(void **state)
{
	struct fixture *f = *state;
	const char *const *names;
	struct pb_writer *w;
	size_t stats, buffer, config, ds, dsc;
	int i;

	w = begin(f, 1, 0);
	pb_put_uint(w, TIMESTAMP, 5000000000);
	pb_put_string(w, SERVICE_EVENT, "\x10\x01"); /* tracing_started */
	end(f);
	w = begin(f, 1, 0);
	config = pb_nest_begin(w, TRACE_CONFIG);
	for (i = 0; i < 3; i++) {
		ds = pb_nest_begin(w, 2);
		dsc = pb_nest_begin(w, 1);
		pb_put_string(w, 1, i == 1 ? "two" : "one");
		pb_nest_end(w, dsc);
		pb_nest_end(w, ds);
	}
	pb_nest_end(w, config);
	end(f);
	for (i = 1; i <= 2; i++) { /* the last one counts */
		w = begin(f, 1, 0);
		stats = pb_nest_begin(w, TRACE_STATS);
		buffer = pb_nest_begin(w, 1);
		pb_put_uint(w, 3, 10u * (unsigned)i); /* chunks_overwritten */
		pb_nest_end(w, buffer);
		pb_nest_end(w, stats);
		end(f);
	}
	w = begin(f, 1, 0);
	pb_put_uint(w, TIMESTAMP, 6500000000);
	pb_put_string(w, SERVICE_EVENT, "\x28\x01"); /* tracing_disabled */
	end(f);
	feed(f);

	assert_int_equal(trace_summary_totals(f->s)->service_packets, 5);
	assert_true(trace_summary_totals(f->s)->duration_ns == 1500000000);
	assert_int_equal(trace_summary_data_sources(f->s, &names), 2);
	assert_string_equal(names[0], "one");
	assert_string_equal(names[1], "two");
	assert_non_null(trace_summary_stats(f->s));
	assert_true(trace_losses_total(trace_summary_stats(f->s)) == 20);
}

static void
a_producer_cannot_speak_for_the_service(void **state)
{
	struct fixture *f = *state;

	pb_put_string(begin(f, 2, 50), TRACE_STATS, "");
	end(f);
	feed(f);
	assert_null(trace_summary_stats(f->s));
}

/* FtraceStats of two CPUs, of which each lost so many. */
static void
ftrace_stats(struct fixture *f, uint32_t sequence, uint64_t phase,
    uint64_t overrun, uint64_t dropped)
{
	size_t stats, cpu;
	uint32_t i;

	begin(f, sequence, 50);
	stats = pb_nest_begin(&f->file, FTRACE_STATS);
	pb_put_uint(&f->file, 1, phase);
	for (i = 0; i < 2; i++) {
		cpu = pb_nest_begin(&f->file, 2);
		pb_put_uint(&f->file, 1, i);
		pb_put_uint(&f->file, 3, overrun);
		pb_put_uint(&f->file, 8, dropped);
		pb_nest_end(&f->file, cpu);
	}
	pb_nest_end(&f->file, stats);
	end(f);
}

static void
ftrace_bundle(struct fixture *f, uint32_t sequence, uint64_t lost_events)
{
	size_t bundle;

	begin(f, sequence, 50);
	bundle = pb_nest_begin(&f->file, FTRACE_EVENTS);
	pb_put_uint(&f->file, 3, lost_events);
	pb_nest_end(&f->file, bundle);
	end(f);
}

static void
assert_loss(const struct trace_loss *l, uint64_t count, const char *cause)
{
	assert_int_equal(l->count, count);
	assert_int_equal(l->buffer, -1);
	assert_non_null(strstr(l->cause, cause));
}

/* Sequences are in no order. */
static void
assert_ftrace_of_2(const struct trace_loss *l)
{
	assert_loss(&l[0], 2 * 3, "overwritten unread");
	assert_null(strstr(l[0].cause, "before this session"));
	assert_string_equal(l[0].cpus, "CPUs 0 and 1");
	assert_loss(&l[1], 2 * 4, "buffer full");
}

static void
what_ftrace_lost_in_the_session_is_a_loss(void **state)
{
	struct fixture *f = *state;
	struct trace_loss l[8];

	ftrace_stats(f, 2, 1, 100, 10);
	ftrace_bundle(f, 2, 0);
	feed(f);
	assert_int_equal(trace_summary_losses(f->s, l, 8), 0);

	ftrace_bundle(f, 2, 1);
	ftrace_stats(f, 2, 2, 103, 14);
	/* Another one's begins anew, as its kernel's buffer was cleared. */
	ftrace_stats(f, 3, 1, 90, 0);
	ftrace_stats(f, 3, 2, 20, 0);
	feed(f);
	/* The counts tell what the mark of a bundle would. */
	assert_int_equal(trace_summary_losses(f->s, l, 8), 3);
	if (l[0].count == 2 * 20)
		assert_loss(&l[0], 2 * 20, "overwritten unread");
	assert_ftrace_of_2(l[0].count == 2 * 20 ? &l[1] : &l[0]);
	assert_int_equal(trace_summary_losses(f->s, l, 0), 3);
	assert_int_equal(trace_summary_losses(f->s, l, 2), 3);
}

/* A TraceConfig of two data sources; instance NULL: of tracefs itself. */
static void
ftrace_config(struct fixture *f, const char *first, const char *second)
{
	const char *instances[] = { first, second };
	struct pb_writer *w = begin(f, 1, 0);
	size_t config, ds, dsc, ftrace;
	int i;

	config = pb_nest_begin(w, TRACE_CONFIG);
	for (i = 0; i < 2; i++) {
		ds = pb_nest_begin(w, 2);
		dsc = pb_nest_begin(w, 1);
		pb_put_string(w, 1, "linux.ftrace");
		ftrace = pb_nest_begin(w, 100);
		pb_put_string(w, 1, i == 0 ? "a/b" : "c/d");
		if (instances[i] != NULL)
			pb_put_string(w, 25, instances[i]);
		pb_nest_end(w, ftrace);
		pb_nest_end(w, dsc);
		pb_nest_end(w, ds);
	}
	pb_nest_end(w, config);
	end(f);
}

/* Of sequences 3 and 4, one producer's, and 2, another's. */
static void
lose_three_times(struct fixture *f)
{
	uint32_t sequence;

	tell_provenance(f);
	for (sequence = 2; sequence <= 4; sequence++) {
		ftrace_stats(f, sequence, 1, 100, 0);
		ftrace_stats(f, sequence, 2, 100 + sequence, 0);
	}
	feed(f);
}

static void
what_two_data_sources_count_of_one_buffer_is_one_loss(void **state)
{
	struct fixture *f = *state;
	struct trace_loss l[8];

	ftrace_config(f, "i", "i");
	lose_three_times(f);
	assert_int_equal(trace_summary_losses(f->s, l, 8), 2);
	assert_loss(&l[0], 2 * 2, "overwritten unread");
	assert_loss(&l[1], 2 * 4, "overwritten unread");
	assert_string_equal(l[1].cpus, "CPUs 0 and 1");
	assert_null(strstr(l[1].cause, "before this session"));
	assert_int_equal(trace_summary_losses(f->s, l, 1), 2);
}

static void
nothing_lost_is_left_out_where_buffers_are_several(void **state)
{
	struct fixture *f = *state;
	struct trace_loss l[8];

	ftrace_config(f, NULL, "i");
	lose_three_times(f);
	assert_int_equal(trace_summary_losses(f->s, l, 8), 3);
	assert_loss(&l[1], 2 * 3, "overwritten unread");
	assert_loss(&l[2], 2 * 4, "overwritten unread");
}

static void
a_count_of_ftrace_without_its_beginning_may_be_of_before(void **state)
{
	struct fixture *f = *state;
	struct trace_loss l[8];

	ftrace_stats(f, 2, 2, 5, 7);
	feed(f);
	assert_int_equal(trace_summary_losses(f->s, l, 8), 2);
	assert_loss(&l[0], 10, "some perhaps before this session");
	assert_loss(&l[1], 14, "some perhaps before this session");
}

static void
malformed_packets_of_ftrace_say_nothing(void **state)
{
	struct fixture *f = *state;
	struct trace_loss l[8];

	pb_put_uint(begin(f, 2, 50), FTRACE_STATS, 7);
	end(f);
	pb_put_string(begin(f, 2, 50), FTRACE_STATS, "\x12\x7f\x18\x01");
	end(f);
	pb_put_string(begin(f, 2, 50), FTRACE_EVENTS, "\x1a\x01x");
	end(f);
	feed(f);
	assert_int_equal(trace_summary_losses(f->s, l, 8), 0);
}

static void
a_malformed_packet_is_counted_and_stops_nothing(void **state)
{
	struct fixture *f = *state;

	pb_put_bytes(&f->file, 1, "\x0b\x07\xff", 3);
	pb_put_string(begin(f, 2, 50), SYS_STATS, "x");
	end(f);
	feed(f);
	assert_int_equal(trace_summary_totals(f->s)->malformed, 1);
	assert_int_equal(trace_summary_totals(f->s)->packets, 2);
	assert_int_equal(trace_summary_totals(f->s)->sequences, 1);
}

static void
bytes_may_come_in_any_cut(void **state)
{
	struct fixture *f = *state;
	struct trace_summary *s;
	static char large[20000];
	size_t step, i, n;
	char err[200];

	memset(large, 'y', sizeof(large));
	for (i = 0; i < 20; i++) {
		pb_put_bytes(begin(f, 2 + (uint32_t)i % 3, 50), TRACK_EVENT,
		    large, i * i * 50);
		end(f);
	}
	for (step = 1; step < 5000; step = step * 3 + 1) {
		s = trace_summary_new();
		for (i = 0; i < f->file.len; i += n) {
			n = f->file.len - i < step ? f->file.len - i : step;
			assert_int_equal(trace_summary_feed(s,
			    f->file.data + i, n, err, sizeof(err)), 0);
		}
		assert_int_equal(trace_summary_totals(s)->packets, 20);
		assert_int_equal(trace_summary_totals(s)->malformed, 0);
		assert_int_equal(trace_summary_totals(s)->bytes, f->file.len);
		assert_int_equal(trace_summary_whole_bytes(s), f->file.len);
		trace_summary_free(s);
	}
}

static void
a_file_that_ends_within_a_packet_shows_it(void **state)
{
	struct fixture *f = *state;
	size_t whole;
	char err[200];

	pb_put_string(begin(f, 2, 50), SYS_STATS, "x");
	end(f);
	whole = f->file.len;
	pb_put_string(begin(f, 2, 50), SYS_STATS, "cut off");
	end(f);
	assert_int_equal(trace_summary_feed(f->s, f->file.data,
	    f->file.len - 1, err, sizeof(err)), 0);
	assert_int_equal(trace_summary_whole_bytes(f->s), whole);
	assert_int_equal(trace_summary_loose_bytes(f->s),
	    f->file.len - 1 - whole);
	assert_int_equal(trace_summary_totals(f->s)->packets, 1);
}

static void
what_is_no_trace_is_refused_and_says_where(void **state)
{
	struct fixture *f = *state;
	char err[200], where[40];

	pb_put_string(begin(f, 2, 50), SYS_STATS, "x");
	end(f);
	snprintf(where, sizeof(where), "at byte %zu", f->file.len);
	pb_put_string(&f->file, 2, "not a packet");
	assert_int_equal(trace_summary_feed(f->s, f->file.data, f->file.len,
	    err, sizeof(err)), -1);
	assert_non_null(strstr(err, where));
	assert_int_equal(trace_summary_totals(f->s)->packets, 1);
}

static void
a_length_without_end_or_too_large_is_refused(void **state)
{
	static const uint8_t endless[] = { 0x0a, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	static const uint8_t huge[] = { 0x0a, 0x81, 0x80, 0x80, 0x80, 0x04 };
	struct fixture *f = *state;
	char err[200];
	size_t i;
	int r = 0;

	for (i = 0; i < sizeof(endless) && r == 0; i++)
		r = trace_summary_feed(f->s, endless + i, 1, err, sizeof(err));
	assert_int_equal(r, -1);
	trace_summary_free(f->s);
	f->s = trace_summary_new();
	assert_int_equal(trace_summary_feed(f->s, huge, sizeof(huge), err,
	    sizeof(err)), -1);
}

static void
very_many_sequences_and_producers_are_found_again(void **state)
{
	struct fixture *f = *state;
	const struct trace_producer *p;
	uint32_t i;

	for (i = 0; i < 20000; i++) {
		pb_put_string(begin(f, 2 + i, 100 + i / 4), SYS_STATS, "x");
		end(f);
	}
	feed(f);
	assert_int_equal(trace_summary_totals(f->s)->sequences, 20000);
	assert_int_equal(trace_summary_producers(f->s, &p), 5000);
	assert_int_equal(p[0].sequences, 4);
	assert_int_equal(p[4999].packets, 4);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_producer_is_a_process_and_has_sequences),
		T(bytes_are_those_of_the_file),
		T(a_name_joins_its_producer_whenever_it_comes),
		T(connections_of_one_process_are_told_apart_by_provenance),
		T(types_are_counted_by_their_field_of_the_packet),
		T(packets_inside_of_compressed_ones_count_as_if_they_were_not),
		T(compressed_packets_that_are_damaged_are_malformed),
		T(the_first_packet_of_a_sequence_is_no_loss),
		T(a_writer_may_tell_of_a_loss_before_its_first_packet),
		T(the_mark_of_a_cut_is_no_gap),
		T(later_marks_are_gaps_by_reason),
		T(one_gap_is_told_by_its_cause_not_by_its_effect_too),
		T(each_cause_of_a_loss_on_the_way_has_a_name),
		T(the_service_tells_config_duration_and_statistics),
		T(a_producer_cannot_speak_for_the_service),
		T(what_ftrace_lost_in_the_session_is_a_loss),
		T(what_two_data_sources_count_of_one_buffer_is_one_loss),
		T(nothing_lost_is_left_out_where_buffers_are_several),
		T(a_count_of_ftrace_without_its_beginning_may_be_of_before),
		T(malformed_packets_of_ftrace_say_nothing),
		T(a_malformed_packet_is_counted_and_stops_nothing),
		T(bytes_may_come_in_any_cut),
		T(a_file_that_ends_within_a_packet_shows_it),
		T(what_is_no_trace_is_refused_and_says_where),
		T(a_length_without_end_or_too_large_is_refused),
		T(very_many_sequences_and_producers_are_found_again),
	};

	return cmocka_run_group_tests_name("trace_summary", tests, NULL, NULL);
}
