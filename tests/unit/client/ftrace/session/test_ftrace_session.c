#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/ftrace/config/ftrace_config.h"
#include "client/ftrace/page/page_reader.h"
#include "client/ftrace/session/ftrace.h"
#include "client/tracing/packet/packet.h"
#include "protos/data_source_config.pb-c.h"
#include "protos/fields.h"
#include "protos/ftrace_bundle.pb-c.h"
#include "protos/ftrace_stats.pb-c.h"
#include "tests/unit/client/ftrace/tracefs/fake_tracefs.h"
#include "transport/loop/loop.h"

#define PAGE    4096u
#define DATA    16u
#define PACKETS 64u
#define ONE     11u
#define TWO     12u
#define PIDS    512u

typedef Perfetto__Protos__FtraceEventBundle Bundle;
typedef Perfetto__Protos__FtraceStats Stats;
typedef Perfetto__Protos__FtraceConfig Config;

/* All that a session wrote. */
struct got {
	Bundle *bundles[PACKETS];
	size_t n_bundles;
	Stats *stats[PACKETS];
	size_t n_stats;
	int32_t pids[PIDS];
	size_t n_pids;
	int32_t changed[PIDS];
	size_t n_changed;
	size_t n_named; /* packets with names of symbols */
	bool flushed;
};

static const char *root;
static char notes[128];
static char kallsyms[128];
static struct loop *loop;
static struct ftrace *ftrace;
static char why[FTRACE_WHY_MAX];
static struct got first, second;
static uint8_t page[PAGE];
static size_t used;

/* ---- the kernel ---- */

static void
put_format(const char *prefix, const char *name, unsigned id)
{
	char path[128], text[1024];

	snprintf(text, sizeof(text), "name: %s\nID: %u\nformat:\n"
	    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\n"
	    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\n"
	    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	    "\tfield:int x;\toffset:8;\tsize:4;\tsigned:1;\n\n"
	    "print fmt: \"\"\n", name, id);
	snprintf(path, sizeof(path), "%sevents/g/%s/format", prefix, name);
	fake_tracefs_put(path, text);
	snprintf(path, sizeof(path), "%sevents/g/%s/enable", prefix, name);
	fake_tracefs_put(path, "0\n");
}

static void
put_pages(const char *path, const void *data, size_t len)
{
	fake_tracefs_put_bytes(path, data, len);
}

/* Words of a config, which protobuf-c would be allowed to change. */
static char one[] = "g/one", none[] = "g/none", bad[] = "g/bad",
    nowhere[] = "nowhere", mask[] = "1", instance[] = "i";

static int
setup(void **state)
{
	root = fake_tracefs_make();
	snprintf(notes, sizeof(notes), "%s/notes", root);
	snprintf(kallsyms, sizeof(kallsyms), "%s/kallsyms", root);
	fake_tracefs_put("events/enable", "X\n");
	fake_tracefs_put("events/header_page",
	    "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
	    "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
	    "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n");
	put_format("", "one", ONE);
	put_format("", "two", TWO);
	put_pages("per_cpu/cpu0/trace_pipe_raw", "", 0);
	put_pages("per_cpu/cpu1/trace_pipe_raw", "", 0);
	loop = loop_new();
	used = 0;
	memset(page, 0, sizeof(page));
	memset(&first, 0, sizeof(first));
	memset(&second, 0, sizeof(second));
	return loop == NULL;
}

static void
open_ftrace(void)
{
	const struct ftrace_places places = { .tracefs = root,
		.notes = notes, .kallsyms = kallsyms };

	ftrace = ftrace_new(loop, &places, why);
	if (ftrace == NULL)
		fail_msg("%s", why);
}

static void
forget(struct got *g)
{
	size_t i;

	for (i = 0; i < g->n_bundles; i++)
		perfetto__protos__ftrace_event_bundle__free_unpacked(
		    g->bundles[i], NULL);
	for (i = 0; i < g->n_stats; i++)
		perfetto__protos__ftrace_stats__free_unpacked(g->stats[i],
		    NULL);
	memset(g, 0, sizeof(*g));
}

static int
teardown(void **state)
{
	ftrace_free(ftrace);
	ftrace = NULL;
	loop_free(loop);
	forget(&first);
	forget(&second);
	fake_tracefs_remove();
	return 0;
}

static void
put_event(unsigned id, int32_t pid, uint32_t delta)
{
	uint32_t words[4] = { 3 | delta << 5, id, (uint32_t)pid, 77 };

	memcpy(page + DATA + used, words, sizeof(words));
	used += sizeof(words);
}

/* The page as it is read next, at the end of what cpu0 has. */
static void
finish_page(uint32_t flags)
{
	uint64_t commit = used | flags, now = loop_boottime_ns();
	char path[256];
	FILE *f;

	memcpy(page, &now, 8);
	memcpy(page + 8, &commit, 8);
	snprintf(path, sizeof(path), "%s/per_cpu/cpu0/trace_pipe_raw", root);
	assert_non_null(f = fopen(path, "a"));
	assert_int_equal(fwrite(page, 1, PAGE, f), PAGE);
	assert_int_equal(fclose(f), 0);
	memset(page, 0, sizeof(page));
	used = 0;
}

/* ---- sessions ---- */

static void
take_packet(struct got *g, const uint8_t *data, size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, data, len) {
		if (f.number == TracePacket_ftrace_events) {
			assert_true(g->n_bundles < PACKETS);
			g->bundles[g->n_bundles] =
			    perfetto__protos__ftrace_event_bundle__unpack(NULL,
			    f.len, f.data);
			assert_non_null(g->bundles[g->n_bundles++]);
		}
		g->n_named += f.number == TracePacket_interned_data;
		if (f.number == TracePacket_ftrace_stats) {
			assert_true(g->n_stats < PACKETS);
			g->stats[g->n_stats] =
			    perfetto__protos__ftrace_stats__unpack(NULL, f.len,
			    f.data);
			assert_non_null(g->stats[g->n_stats++]);
		}
	}
	assert_false(r.bad);
}

static void
write_packet(void *arg, ftrace_fill_fn fill, void *fill_arg)
{
	struct tributary_packet p;

	packet_init(&p);
	fill(&p, fill_arg);
	assert_false(p.failed);
	take_packet(arg, p.data, packet_len(&p));
	packet_done(&p);
}

static void
take_threads(void *arg, const int32_t *tids, size_t n, bool changed)
{
	struct got *g = arg;

	if (changed) {
		assert_true(g->n_changed + n <= PIDS);
		memcpy(g->changed + g->n_changed, tids, n * sizeof(*tids));
		g->n_changed += n;
		return;
	}

	assert_true(g->n_pids + n <= PIDS);
	memcpy(g->pids + g->n_pids, tids, n * sizeof(*tids));
	g->n_pids += n;
}

static struct ftrace_session *
session_of(struct ftrace *f, struct got *g, Config *config)
{
	Perfetto__Protos__DataSourceConfig c =
	    PERFETTO__PROTOS__DATA_SOURCE_CONFIG__INIT;
	const struct ftrace_output out = { write_packet, take_threads, g };
	struct ftrace_session *s;
	struct ftrace_config *parsed;
	uint8_t bytes[1024];
	size_t len;

	c.ftrace_config = config;
	len = perfetto__protos__data_source_config__pack(&c, bytes);
	assert_non_null(parsed = ftrace_config_new(bytes, len, why));
	assert_non_null(s = ftrace_session_new(f, parsed, &out));
	return s;
}

static struct ftrace_session *
session_with(struct got *g, Config *config)
{
	return session_of(ftrace, g, config);
}

static struct ftrace_session *
session(struct got *g, const char *event)
{
	Config c = PERFETTO__PROTOS__FTRACE_CONFIG__INIT;
	char *events[] = { (char *)event };

	c.n_ftrace_events = 1;
	c.ftrace_events = events;
	return session_with(g, &c);
}

static void
note_flush(void *arg)
{
	struct got *g = arg;

	assert_false(g->flushed);
	g->flushed = true;
}

static void
flush(struct ftrace_session *s, struct got *g)
{
	int turns = 0;

	g->flushed = false;
	ftrace_session_flush(s, note_flush, g);
	while (!g->flushed && turns++ < 100)
		loop_run_once(loop);
	assert_true(g->flushed);
}

static size_t
count_events(const struct got *g)
{
	size_t i, n = 0;

	for (i = 0; i < g->n_bundles; i++)
		n += g->bundles[i]->n_event;
	return n;
}

/* ---- cases ---- */

static void
a_session_gets_its_events_and_leaves_the_kernel_as_it_was(void **state)
{
	struct ftrace_session *s;

	open_ftrace();
	s = session(&first, "g/one");
	fake_tracefs_holds("trace_clock", "boot");
	fake_tracefs_holds("tracing_on", "0");
	fake_tracefs_holds("events/g/one/enable", "1");
	fake_tracefs_holds("events/g/two/enable", "0\n");
	fake_tracefs_holds("trace", "");
	ftrace_session_start(s);
	fake_tracefs_holds("tracing_on", "1");
	put_event(ONE, 5, 0);
	put_event(TWO, 6, 1);
	put_event(ONE, 7, 1);
	finish_page(0);
	flush(s, &first);
	assert_int_equal(first.n_bundles, 1);
	assert_int_equal(first.bundles[0]->cpu, 0);
	assert_int_equal(first.bundles[0]->n_event, 2);
	assert_int_equal(first.bundles[0]->event[0]->pid, 5);
	assert_int_equal(first.bundles[0]->event[1]->pid, 7);
	assert_int_equal(first.n_pids, 2);
	assert_int_equal(first.pids[0], 5);
	assert_int_equal(first.pids[1], 7);
	ftrace_session_stop(s);
	ftrace_session_free(s);
	fake_tracefs_holds("trace_clock", "global");
	fake_tracefs_holds("tracing_on", "1");
	fake_tracefs_holds("buffer_size_kb", "7");
	fake_tracefs_holds("events/g/one/enable", "0");
	assert_int_equal(access(notes, F_OK), -1);
}

static void
sessions_share_a_buffer_and_each_gets_its_own(void **state)
{
	struct ftrace_session *a, *b;

	open_ftrace();
	a = session(&first, "g/one");
	b = session(&second, "g/*");
	ftrace_session_start(a);
	ftrace_session_start(b);
	put_event(ONE, 5, 0);
	put_event(TWO, 6, 1);
	finish_page(0);
	flush(a, &first);
	assert_int_equal(count_events(&first), 1);
	assert_int_equal(count_events(&second), 2);
	ftrace_session_stop(a);
	ftrace_session_free(a);
	/* b still wants both */
	fake_tracefs_holds("events/g/one/enable", "1");
	fake_tracefs_holds("tracing_on", "1");
	a = session(&first, "g/two");
	ftrace_session_stop(b);
	ftrace_session_free(b);
	fake_tracefs_holds("events/g/one/enable", "0");
	fake_tracefs_holds("events/g/two/enable", "1");
	ftrace_session_free(a);
	fake_tracefs_holds("events/g/two/enable", "0");
}

static void
a_session_gets_nothing_of_before_it_began(void **state)
{
	struct ftrace_session *a, *b;

	open_ftrace();
	a = session(&first, "g/one");
	ftrace_session_start(a);
	put_event(ONE, 5, 0);
	finish_page(0);
	b = session(&second, "g/one");
	ftrace_session_start(b);
	flush(b, &second);
	assert_int_equal(count_events(&first), 1);
	assert_int_equal(count_events(&second), 0);
	put_event(ONE, 6, 0);
	finish_page(0);
	flush(b, &second);
	assert_int_equal(count_events(&first), 2);
	assert_int_equal(count_events(&second), 1);
	/* events are gone from where the other's last bundle ended */
	assert_true(first.bundles[0]->previous_bundle_end_timestamp == 0);
	assert_true(first.bundles[1]->previous_bundle_end_timestamp != 0);
	ftrace_session_free(a);
	ftrace_session_free(b);
}

/* Their times cannot be compared with the session's beginning. */
static void
nor_where_the_clock_cannot_be_read(void **state)
{
	/* 256 KiB in pages of 4080 bytes, and the one that is being read. */
	const unsigned full = 65 + 1;
	Config c = PERFETTO__PROTOS__FTRACE_CONFIG__INIT;
	struct ftrace_session *a, *b;
	char *events[] = { one };
	unsigned i;

	fake_tracefs_put("trace_clock", "local [global] counter\n");
	open_ftrace();
	c.n_ftrace_events = 1;
	c.ftrace_events = events;
	c.has_buffer_size_kb = 1;
	c.buffer_size_kb = 256;
	a = session_with(&first, &c);
	fake_tracefs_holds("trace_clock", "global");
	fake_tracefs_holds("buffer_size_kb", "256");
	ftrace_session_start(a);
	for (i = 0; i < full; i++) {
		put_event(ONE, 5, 0);
		finish_page(0);
	}
	b = session_with(&second, &c);
	ftrace_session_start(b);
	assert_int_equal(count_events(&first), full);
	put_event(ONE, 6, 0);
	finish_page(0);
	flush(b, &second);
	assert_int_equal(count_events(&first), full + 1);
	assert_int_equal(count_events(&second), 1);
	assert_int_equal(second.bundles[0]->event[0]->pid, 6);
	ftrace_session_free(a);
	ftrace_session_free(b);
}

static void
a_loss_begins_a_bundle(void **state)
{
	struct ftrace_session *s;
	int i;

	open_ftrace();
	s = session(&first, "g/one");
	ftrace_session_start(s);
	for (i = 0; i < 4; i++) {
		put_event(ONE, 5, 0);
		finish_page(i == 2 ? PAGE_LOST : 0);
	}
	flush(s, &first);
	assert_int_equal(first.n_bundles, 2);
	assert_false(first.bundles[0]->lost_events);
	assert_int_equal(first.bundles[0]->n_event, 2);
	assert_true(first.bundles[1]->lost_events);
	assert_int_equal(first.bundles[1]->n_event, 2);
	ftrace_session_free(s);
}

static void
more_pages_than_a_batch_arrive_in_order(void **state)
{
	struct ftrace_session *s;
	int32_t i, n = 0;
	size_t b, e;

	open_ftrace();
	s = session(&first, "g/one");
	ftrace_session_start(s);
	for (i = 0; i < 300; i++) {
		put_event(ONE, i, 0);
		finish_page(0);
	}
	flush(s, &first);
	for (b = 0; b < first.n_bundles; b++) {
		for (e = 0; e < first.bundles[b]->n_event; e++)
			assert_int_equal(first.bundles[b]->event[e]->pid, n++);
	}
	assert_int_equal(n, 300);
	assert_true(first.n_bundles > 1);
	ftrace_session_free(s);
}

static void
a_long_bundle_is_followed_by_another(void **state)
{
	struct ftrace_session *s;
	uint64_t end = 0;
	size_t b, n = 0;
	int i, k;

	open_ftrace();
	s = session(&first, "g/one");
	ftrace_session_start(s);
	for (i = 0; i < 8; i++) {
		for (k = 0; k < 250; k++)
			put_event(ONE, 5, 1);
		finish_page(0);
	}
	flush(s, &first);
	assert_true(first.n_bundles > 1);
	for (b = 0; b < first.n_bundles; b++) {
		Bundle *bundle = first.bundles[b];

		assert_false(bundle->lost_events);
		assert_int_equal(bundle->previous_bundle_end_timestamp, end);
		assert_true(bundle->n_event > 0);
		end = bundle->event[bundle->n_event - 1]->timestamp;
		n += bundle->n_event;
	}
	assert_int_equal(n, 8 * 250);
	ftrace_session_free(s);
}

static void
a_broken_page_is_told_and_the_next_is_read(void **state)
{
	struct ftrace_session *s;
	const Stats *last;

	open_ftrace();
	s = session(&first, "g/one");
	ftrace_session_start(s);
	put_event(ONE, 5, 0);
	used += 2; /* half a header */
	finish_page(0);
	put_event(ONE, 6, 0);
	finish_page(0);
	flush(s, &first);
	assert_int_equal(count_events(&first), 2);
	assert_int_equal(first.bundles[0]->n_error, 1);
	assert_int_equal(first.bundles[0]->error[0]->status,
	    PAGE_SHORT_EVENT_HEADER);
	last = first.stats[first.n_stats - 1];
	assert_int_equal(last->phase,
	    PERFETTO__PROTOS__FTRACE_STATS__PHASE__END_OF_TRACE);
	assert_int_equal(last->n_ftrace_parse_errors, 1);
	assert_int_equal(last->ftrace_parse_errors[0],
	    PAGE_SHORT_EVENT_HEADER);
	ftrace_session_free(s);
}

static void
counts_are_told_at_both_ends(void **state)
{
	struct ftrace_session *s;

	open_ftrace();
	fake_tracefs_put("per_cpu/cpu1/stats", "overrun: 3\n");
	s = session(&first, "g/one");
	ftrace_session_start(s);
	assert_int_equal(first.n_stats, 1);
	assert_int_equal(first.stats[0]->n_cpu_stats, 2);
	assert_int_equal(first.stats[0]->cpu_stats[1]->overrun, 3);
	fake_tracefs_put("per_cpu/cpu1/stats", "overrun: 8\n");
	ftrace_session_stop(s);
	assert_int_equal(first.n_stats, 3);
	assert_int_equal(first.stats[1]->phase,
	    PERFETTO__PROTOS__FTRACE_STATS__PHASE__START_OF_TRACE);
	assert_int_equal(first.stats[1]->cpu_stats[1]->overrun, 3);
	assert_int_equal(first.stats[2]->phase,
	    PERFETTO__PROTOS__FTRACE_STATS__PHASE__END_OF_TRACE);
	assert_int_equal(first.stats[2]->cpu_stats[1]->cpu, 1);
	assert_int_equal(first.stats[2]->cpu_stats[1]->overrun, 8);
	ftrace_session_free(s);
}

static uint64_t lost[2];

static void
note_lost(void *arg, const uint64_t *events, size_t n_cpus)
{
	assert_int_equal(n_cpus, 2);
	memcpy(lost, events, sizeof(lost));
}

static void
a_watcher_is_told_what_the_kernel_lost_while_sessions_recorded(void **state)
{
	struct ftrace_session *s;

	open_ftrace();
	ftrace_watch_losses(ftrace, note_lost, NULL);
	fake_tracefs_put("per_cpu/cpu1/stats", "overrun: 3\n");
	s = session(&first, "g/one");
	ftrace_session_start(s);
	fake_tracefs_put("per_cpu/cpu1/stats",
	    "overrun: 8\ndropped events: 2\n");
	ftrace_session_stop(s);
	ftrace_session_free(s);
	assert_int_equal(lost[0], 0);
	assert_int_equal(lost[1], 7);
	/* Not those of the time between, nor those of a buffer made anew. */
	fake_tracefs_put("per_cpu/cpu1/stats", "overrun: 100\n");
	s = session(&first, "g/one");
	ftrace_session_start(s);
	fake_tracefs_put("per_cpu/cpu1/stats", "overrun: 1\n");
	fake_tracefs_put("per_cpu/cpu0/stats", "overrun: 4\n");
	ftrace_session_stop(s);
	ftrace_session_free(s);
	assert_int_equal(lost[0], 4);
	assert_int_equal(lost[1], 7);
}

static void
events_that_are_not_there_are_told(void **state)
{
	Config c = PERFETTO__PROTOS__FTRACE_CONFIG__INIT;
	char *events[] = { one, none, bad, nowhere };
	struct ftrace_session *s;

	fake_tracefs_put("events/g/bad/format", "name: bad\n");
	fake_tracefs_put("events/g/bad/enable", "0\n");
	open_ftrace();
	c.n_ftrace_events = 4;
	c.ftrace_events = events;
	s = session_with(&first, &c);
	ftrace_session_start(s);
	assert_int_equal(first.stats[0]->n_unknown_ftrace_events, 2);
	assert_string_equal(first.stats[0]->unknown_ftrace_events[0], "g/none");
	assert_string_equal(first.stats[0]->unknown_ftrace_events[1],
	    "nowhere");
	assert_int_equal(first.stats[0]->n_failed_ftrace_events, 1);
	assert_string_equal(first.stats[0]->failed_ftrace_events[0], "g/bad");
	fake_tracefs_holds("events/g/one/enable", "1");
	ftrace_session_free(s);
}

static void
another_process_is_told_of_in_the_trace(void **state)
{
	const struct ftrace_places places = { .tracefs = root };
	struct ftrace_session *s, *refused;
	struct ftrace *other;
	Config c = PERFETTO__PROTOS__FTRACE_CONFIG__INIT;

	open_ftrace();
	assert_non_null(other = ftrace_new(loop, &places, why));
	s = session(&first, "g/one");
	refused = session_of(other, &second, &c);
	ftrace_session_start(refused);
	assert_int_equal(second.n_stats, 1);
	assert_non_null(strstr(second.stats[0]->atrace_errors,
	    "another tributary-probes"));
	assert_false(ftrace_reset(other, why));
	assert_non_null(strstr(why, "another tributary-probes"));
	flush(refused, &second);
	ftrace_session_stop(refused);
	ftrace_session_free(refused);
	/* nothing of the first one's was put back */
	fake_tracefs_holds("events/g/one/enable", "1");
	ftrace_session_free(s);
	assert_true(ftrace_reset(other, why));
	fake_tracefs_holds("events/enable", "0");
	ftrace_free(other);
}

static void
settings_of_a_session_reach_the_kernel_and_go(void **state)
{
	Config c = PERFETTO__PROTOS__FTRACE_CONFIG__INIT;
	uint32_t tids[] = { 12, 34 };
	struct ftrace_session *s, *t;

	open_ftrace();
	c.has_buffer_size_kb = 1;
	c.buffer_size_kb = 512;
	c.has_use_monotonic_raw_clock = 1;
	c.use_monotonic_raw_clock = 1;
	c.n_tids_to_trace = 2;
	c.tids_to_trace = tids;
	c.tracing_cpumask = mask;
	s = session_with(&first, &c);
	fake_tracefs_holds("trace_clock", "mono_raw");
	fake_tracefs_holds("buffer_size_kb", "512");
	fake_tracefs_holds("set_event_pid", "12 34 ");
	fake_tracefs_holds("tracing_cpumask", "1");
	/* one that wants all threads, and a larger buffer */
	c.buffer_size_kb = 1024;
	c.n_tids_to_trace = 0;
	c.tracing_cpumask = NULL;
	t = session_with(&second, &c);
	fake_tracefs_holds("set_event_pid", "");
	fake_tracefs_holds("buffer_size_kb", "1024");
	ftrace_session_free(t);
	fake_tracefs_holds("set_event_pid", "12 34 ");
	ftrace_session_free(s);
	fake_tracefs_holds("trace_clock", "global");
	fake_tracefs_holds("buffer_size_kb", "7");
	fake_tracefs_holds("set_event_pid", "");
	fake_tracefs_holds("tracing_cpumask", "3");
}

static void
a_buffer_that_is_kept_keeps_its_clock_and_events(void **state)
{
	Config c = PERFETTO__PROTOS__FTRACE_CONFIG__INIT;
	char *events[] = { one };
	struct ftrace_session *s;

	put_event(ONE, 5, 0);
	finish_page(0);
	open_ftrace();
	c.n_ftrace_events = 1;
	c.ftrace_events = events;
	c.has_preserve_ftrace_buffer = 1;
	c.preserve_ftrace_buffer = 1;
	s = session_with(&first, &c);
	fake_tracefs_holds("trace", "# nothing\n");
	fake_tracefs_holds("trace_clock",
	    "local [global] counter mono_raw boot\n");
	ftrace_session_start(s);
	flush(s, &first);
	assert_int_equal(count_events(&first), 1);
	assert_int_equal(first.bundles[0]->ftrace_clock,
	    PERFETTO__PROTOS__FTRACE_CLOCK__FTRACE_CLOCK_GLOBAL);
	assert_true(first.stats[0]->preserve_ftrace_buffer);
	ftrace_session_free(s);
}

static void
an_instance_has_a_buffer_of_its_own(void **state)
{
	Config c = PERFETTO__PROTOS__FTRACE_CONFIG__INIT;
	char *events[] = { one };
	struct ftrace_session *s;

	fake_tracefs_put("instances/i/trace_clock", "[global] boot\n");
	fake_tracefs_put("instances/i/tracing_on", "1\n");
	fake_tracefs_put("instances/i/buffer_size_kb", "7\n");
	fake_tracefs_put("instances/i/set_event", "");
	fake_tracefs_put("instances/i/set_event_pid", "");
	fake_tracefs_put("instances/i/trace", "x");
	fake_tracefs_put("instances/i/per_cpu/cpu0/trace_pipe_raw", "");
	put_format("instances/i/", "one", ONE);
	open_ftrace();
	c.n_ftrace_events = 1;
	c.ftrace_events = events;
	c.instance_name = instance;
	s = session_with(&first, &c);
	ftrace_session_start(s);
	fake_tracefs_holds("instances/i/events/g/one/enable", "1");
	fake_tracefs_holds("instances/i/trace_clock", "boot");
	fake_tracefs_holds("trace_clock",
	    "local [global] counter mono_raw boot\n");
	assert_int_equal(first.stats[0]->n_cpu_stats, 1);
	ftrace_session_free(s);
	fake_tracefs_holds("instances/i/events/g/one/enable", "0");
	fake_tracefs_holds("instances/i/trace_clock", "global");
}

static void
a_config_that_was_refused_says_why_in_the_trace(void **state)
{
	const struct ftrace_output out = { write_packet, take_threads, &first };
	struct ftrace_session *s;

	open_ftrace();
	s = ftrace_session_refused(ftrace, "instance_name has a \"/\"", &out);
	assert_non_null(s);
	ftrace_session_start(s);
	assert_int_equal(first.n_stats, 1);
	assert_string_equal(first.stats[0]->atrace_errors,
	    "nothing is recorded: instance_name has a \"/\"");
	assert_int_equal(first.stats[0]->n_cpu_stats, 0);
	flush(s, &first);
	ftrace_session_clear_incremental_state(s);
	ftrace_session_stop(s);
	ftrace_session_free(s);
	fake_tracefs_holds("trace_clock",
	    "local [global] counter mono_raw boot\n");
}

/* The folder gets no files, as in no kernel: nothing can be read there. */
static void
an_instance_that_cannot_be_read_is_removed(void **state)
{
	Config c = PERFETTO__PROTOS__FTRACE_CONFIG__INIT;
	char *events[] = { one }, path[256];
	struct ftrace_session *s;

	open_ftrace();
	c.n_ftrace_events = 1;
	c.ftrace_events = events;
	c.instance_name = instance;
	fake_tracefs_put("instances/theirs/tracing_on", "1\n");
	s = session_with(&first, &c);
	ftrace_session_start(s);
	assert_non_null(strstr(first.stats[0]->atrace_errors,
	    "nothing is recorded"));
	snprintf(path, sizeof(path), "%s/instances/%s", root, instance);
	assert_int_equal(access(path, F_OK), -1);
	/* Else the next process would remove one that is not ours. */
	assert_int_equal(access(notes, F_OK), -1);
	ftrace_session_free(s);
}

static void
threads_are_told_again_when_the_state_is_cleared(void **state)
{
	struct ftrace_session *s;

	open_ftrace();
	s = session(&first, "g/one");
	ftrace_session_start(s);
	put_event(ONE, 5, 0);
	put_event(ONE, 5, 0);
	finish_page(0);
	flush(s, &first);
	assert_int_equal(first.n_pids, 1);
	ftrace_session_clear_incremental_state(s);
	put_event(ONE, 5, 0);
	finish_page(0);
	flush(s, &first);
	assert_int_equal(first.n_pids, 2);
	ftrace_session_free(s);
}

static void
symbols_are_named_again_after_a_packet_was_lost(void **state)
{
	Config c = PERFETTO__PROTOS__FTRACE_CONFIG__INIT;
	char *events[] = { one };
	struct ftrace_session *s;
	static char text[] = "name: one\nID: 11\nformat:\n"
	    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\n"
	    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	    "\tfield:void * f;\toffset:8;\tsize:4;\tsigned:0;\n\n"
	    "print fmt: \"\"\n";

	fake_tracefs_put("events/g/one/format", text);
	/* 77 of put_event() is in it. */
	fake_tracefs_put("kallsyms", "0000000000000040 t a_function\n");
	open_ftrace();
	c.n_ftrace_events = 1;
	c.ftrace_events = events;
	c.has_symbolize_ksyms = true;
	c.symbolize_ksyms = true;
	s = session_with(&first, &c);
	ftrace_session_start(s);
	put_event(ONE, 5, 0);
	finish_page(0);
	flush(s, &first);
	assert_int_equal(first.n_named, 1);
	put_event(ONE, 5, 0);
	finish_page(0);
	flush(s, &first);
	assert_int_equal(first.n_named, 1);
	ftrace_session_packet_lost(s);
	put_event(ONE, 5, 0);
	finish_page(0);
	flush(s, &first);
	assert_int_equal(first.n_named, 2);
	ftrace_session_free(s);
}

static void
a_thread_that_gets_a_name_is_told_as_changed(void **state)
{
	struct ftrace_session *s;
	static char text[] = "name: task_rename\nID: 13\nformat:\n"
	    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\n"
	    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	    "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n\n"
	    "print fmt: \"\"\n";

	fake_tracefs_put("events/task/task_rename/format", text);
	fake_tracefs_put("events/task/task_rename/enable", "0\n");
	open_ftrace();
	s = session(&first, "task_rename");
	ftrace_session_start(s);
	put_event(13, 5, 0); /* 5 renames 77 */
	finish_page(0);
	flush(s, &first);
	assert_int_equal(first.n_changed, 1);
	assert_int_equal(first.changed[0], 77);
	ftrace_session_free(s);
}

static void
threads_are_filtered_where_another_session_wants_all(void **state)
{
	Config c = PERFETTO__PROTOS__FTRACE_CONFIG__INIT;
	char *events[] = { one };
	uint32_t tids[] = { 6 };
	struct ftrace_session *s, *all;

	open_ftrace();
	c.n_ftrace_events = 1;
	c.ftrace_events = events;
	c.n_tids_to_trace = 1;
	c.tids_to_trace = tids;
	s = session_with(&first, &c);
	all = session(&second, "g/one");
	ftrace_session_start(s);
	ftrace_session_start(all);
	put_event(ONE, 5, 0);
	put_event(ONE, 6, 0);
	finish_page(0);
	flush(s, &first);
	assert_int_equal(count_events(&first), 1);
	assert_int_equal(first.bundles[0]->event[0]->pid, 6);
	assert_int_equal(count_events(&second), 2);
	ftrace_session_free(s);
	ftrace_session_free(all);
}

static void
put_syscall_event(const char *name, unsigned id)
{
	char path[128], text[1024];

	snprintf(text, sizeof(text), "name: %s\nID: %u\nformat:\n"
	    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\n"
	    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	    "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n\n"
	    "print fmt: \"\"\n", name, id);
	snprintf(path, sizeof(path), "events/raw_syscalls/%s/format", name);
	fake_tracefs_put(path, text);
	snprintf(path, sizeof(path), "events/raw_syscalls/%s/enable", name);
	fake_tracefs_put(path, "0\n");
	snprintf(path, sizeof(path), "events/raw_syscalls/%s/filter", name);
	fake_tracefs_put(path, "none\n");
}

static void
the_kernel_filters_system_calls_that_all_sessions_name(void **state)
{
	static char get_pid[] = "sys_getpid", read_call[] = "sys_read",
	    unknown[] = "sys_nonsense";
	static const char enter[] = "events/raw_syscalls/sys_enter/filter";
	Config c = PERFETTO__PROTOS__FTRACE_CONFIG__INIT;
	char *calls[] = { get_pid, unknown }, expected[64];
	struct ftrace_session *a, *b, *all;

	put_syscall_event("sys_enter", 14);
	put_syscall_event("sys_exit", 15);
	open_ftrace();
	c.n_syscall_events = 2;
	c.syscall_events = calls;
	a = session_with(&first, &c);
	snprintf(expected, sizeof(expected), "id == %d", SYS_getpid);
	fake_tracefs_holds(enter, expected);
	fake_tracefs_holds("events/raw_syscalls/sys_exit/filter", expected);
	fake_tracefs_holds("events/raw_syscalls/sys_enter/enable", "1");
	/* one without system calls changes nothing */
	b = session(&second, "g/one");
	fake_tracefs_holds(enter, expected);
	all = session(&second, "raw_syscalls/sys_enter");
	fake_tracefs_holds(enter, "0");
	ftrace_session_free(all);
	fake_tracefs_holds(enter, expected);
	ftrace_session_free(b);
	calls[0] = read_call;
	b = session_with(&second, &c);
	assert_true(SYS_read < SYS_getpid);
	snprintf(expected, sizeof(expected), "id == %d || id == %d", SYS_read,
	    SYS_getpid);
	fake_tracefs_holds(enter, expected);
	ftrace_session_start(a);
	assert_non_null(strstr(first.stats[0]->atrace_errors, "sys_nonsense"));
	ftrace_session_free(a);
	ftrace_session_free(b);
	fake_tracefs_holds(enter, "0");
}

static void
a_killed_process_is_cleaned_up_after(void **state)
{
	fake_tracefs_put("notes", "trace_clock\tlocal\n");
	open_ftrace();
	fake_tracefs_holds("trace_clock", "local");
	assert_int_equal(access(notes, F_OK), -1);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_session_gets_its_events_and_leaves_the_kernel_as_it_was),
		T(sessions_share_a_buffer_and_each_gets_its_own),
		T(a_session_gets_nothing_of_before_it_began),
		T(nor_where_the_clock_cannot_be_read),
		T(a_loss_begins_a_bundle),
		T(more_pages_than_a_batch_arrive_in_order),
		T(a_long_bundle_is_followed_by_another),
		T(a_broken_page_is_told_and_the_next_is_read),
		T(counts_are_told_at_both_ends),
		T(a_watcher_is_told_what_the_kernel_lost_while_sessions_recorded),
		T(events_that_are_not_there_are_told),
		T(another_process_is_told_of_in_the_trace),
		T(settings_of_a_session_reach_the_kernel_and_go),
		T(a_buffer_that_is_kept_keeps_its_clock_and_events),
		T(an_instance_has_a_buffer_of_its_own),
		T(a_config_that_was_refused_says_why_in_the_trace),
		T(an_instance_that_cannot_be_read_is_removed),
		T(threads_are_told_again_when_the_state_is_cleared),
		T(symbols_are_named_again_after_a_packet_was_lost),
		T(a_thread_that_gets_a_name_is_told_as_changed),
		T(threads_are_filtered_where_another_session_wants_all),
		T(the_kernel_filters_system_calls_that_all_sessions_name),
		T(a_killed_process_is_cleaned_up_after),
	};

	return cmocka_run_group_tests_name("ftrace_session", tests, NULL,
	    NULL);
}
