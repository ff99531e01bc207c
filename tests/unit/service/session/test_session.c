#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "service/ingest/commit.h"
#include "service/session/instance.h"
#include "tests/unit/service/session/fixture.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/shm/shm.h"

#define RING "buffers { size_kb: 64 } "
#define ONE_SOURCE RING "data_sources { config { name: \"src\" } } "

static bool
is_disabled(void *arg)
{
	return ((struct fake_consumer *)arg)->disabled;
}

static void
a_data_source_is_set_up_started_and_stopped(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;

	fake_producer_init(&p, f, "prod", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	assert_string_equal(p.log[0], "tracing 4096");
	assert_string_equal(p.log[1], "setup 1");
	assert_string_equal(p.log[2], "start 1");
	assert_true(c.all_started);
	session_disable(c.s, NULL);
	fixture_wait(f, is_disabled, &c);
	assert_string_equal(c.error, "");
	assert_true(fake_producer_saw(&p, "flush 1"));
	assert_true(fake_producer_saw(&p, "stop 1"));
	session_free(c.s);
	fake_producer_done(&p);
}

static void
a_source_that_registers_late_joins_the_running_session(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;

	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	fake_producer_init(&p, f, "prod", true);
	fake_producer_register(&p, "src", false, false);
	assert_true(fake_producer_saw(&p, "start 1"));
	session_free(c.s);
	fake_producer_done(&p);
}

static void
packets_come_back_with_trusted_fields(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct fake_trace t;
	size_t i;

	fake_producer_init(&p, f, "prod", true);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	assert_int_equal(fake_commit(&p, p.last_buffer, 1, 0, 77, "hello"),
	    COMMIT_OK);
	fake_read(c.s, &t);
	assert_int_equal(fake_trace_count(&t, "hello"), 1);
	for (i = 0; i < t.n; i++) {
		if (t.packets[i]->data_case !=
		    PERFETTO__PROTOS__TRACE_PACKET__DATA_FOR_TESTING)
			continue;
		assert_int_equal(t.packets[i]->trusted_uid, 1000);
		assert_int_equal(t.packets[i]->trusted_pid, 4242);
		assert_int_equal(t.packets[i]->trusted_packet_sequence_id, 2);
	}
	fake_trace_done(&t);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
a_foreign_buffer_is_refused_and_counted(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p, thief;
	struct fake_consumer c;
	struct fake_trace t;

	fake_producer_init(&p, f, "prod", true);
	fake_producer_init(&thief, f, "thief", true);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	assert_int_equal(fake_commit(&thief, p.last_buffer, 1, 0, 1, "no"),
	    COMMIT_OK);
	assert_int_equal(f->service->counters.wrong_buffer, 1);
	assert_int_equal(c.s->refused.chunks, 0);
	fake_read(c.s, &t);
	assert_int_equal(fake_trace_count(&t, NULL), 0);
	fake_trace_done(&t);
	session_free(c.s);
	fake_producer_done(&p);
	fake_producer_done(&thief);
}

static void
a_stop_waits_for_acknowledgements(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;

	fake_producer_init(&p, f, "prod", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", true, true);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	assert_false(c.all_started);
	instance_ack_started(producer_find_instance(p.p, p.last_instance));
	assert_true(c.all_started);
	session_disable(c.s, NULL);
	while (!fake_producer_saw(&p, "stop 1"))
		loop_run_once(f->loop);
	assert_false(c.disabled);
	instance_ack_stopped(producer_find_instance(p.p, p.last_instance));
	fixture_wait(f, is_disabled, &c);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
a_producer_that_never_answers_holds_nothing_up(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;

	fake_producer_init(&p, f, "prod", true);
	fake_producer_register(&p, "src", true, true);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE
	    "flush_timeout_ms: 20 data_source_stop_timeout_ms: 20", -1));
	session_disable(c.s, NULL);
	fixture_wait(f, is_disabled, &c);
	assert_int_equal(c.s->flushes_failed, 1);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
a_crashed_producer_leaves_its_data(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct fake_trace t;

	fake_producer_init(&p, f, "prod", true);
	fake_producer_register(&p, "src", true, true);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	(void)fake_commit(&p, p.last_buffer, 1, 0, 1, "last words");
	fake_producer_done(&p);
	session_disable(c.s, NULL);
	fixture_wait(f, is_disabled, &c);
	fake_read(c.s, &t);
	assert_int_equal(fake_trace_count(&t, "last words"), 1);
	fake_trace_done(&t);
	session_free(c.s);
}

static void
unknown_config_fields_reach_the_producer(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct pb_writer w;
	size_t ds, cfg, i;
	bool found = false;
	char err[200];
	struct config *config;

	fake_producer_init(&p, f, "prod", true);
	fake_producer_register(&p, "src", false, false);
	memset(&c, 0, sizeof(c));
	pb_writer_init(&w);
	ds = pb_nest_begin(&w, 1);
	pb_put_uint(&w, 1, 64);
	pb_nest_end(&w, ds);
	ds = pb_nest_begin(&w, 2);
	cfg = pb_nest_begin(&w, 1);
	pb_put_string(&w, 1, "src");
	pb_put_string(&w, 54321, "from the future");
	pb_nest_end(&w, cfg);
	pb_nest_end(&w, ds);
	config = config_new(w.data, w.len, false, &f->settings.limits, err,
	    sizeof(err));
	assert_non_null(config);
	pb_writer_done(&w);
	c.s = session_new(f->service, &(struct session_request){
	    .config = config, .fd = -1, .owner = fake_user(0),
	    .ops = &fake_consumer_ops, .port = &c }, err, sizeof(err));
	assert_non_null(c.s);
	for (i = 0; i + 15 <= p.last_config_len; i++)
		found |= memcmp(p.last_config + i, "from the future", 15) == 0;
	assert_true(found);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
filters_choose_the_producers(void **state)
{
	struct fixture *f = *state;
	struct fake_producer a, b;
	struct fake_consumer c;

	fake_producer_init(&a, f, "org.good-1", true);
	fake_producer_init(&b, f, "org.bad", true);
	fake_producer_register(&a, "src", false, false);
	fake_producer_register(&b, "src", false, false);
	assert_non_null(fake_enable(f, &c, RING "data_sources { config { name: "
	    "\"src\" } producer_name_regex_filter: \"org\\\\.good-[0-9]+\" }",
	    -1));
	assert_int_equal(fake_producer_count(&a, "setup"), 1);
	assert_int_equal(fake_producer_count(&b, "setup"), 0);
	session_free(c.s);
	fake_producer_done(&a);
	fake_producer_done(&b);
}

/* ChangeTraceConfig: "src" may come from producers of this name as well. */
static void
let_in(struct session *s, const char *producer)
{
	struct pb_writer w;
	size_t source, config;
	char err[160];

	pb_writer_init(&w);
	source = pb_nest_begin(&w, 2);
	config = pb_nest_begin(&w, 1);
	pb_put_string(&w, 1, "src");
	pb_nest_end(&w, config);
	pb_put_string(&w, 2, producer);
	pb_nest_end(&w, source);
	assert_false(w.failed);
	assert_int_equal(session_change_config(s, w.data, w.len, err,
	    sizeof(err)), 0);
	pb_writer_done(&w);
}

static void
sources_that_the_final_flush_lets_in_end_with_it(void **state)
{
	enum { N = 600 }; /* more than two turns set up */
	struct fixture *f = *state;
	struct fake_producer *p = calloc(N, sizeof(*p));
	struct fake_consumer c;
	size_t i, n = 0;

	assert_non_null(p);
	for (i = 0; i < N; i++) {
		fake_producer_init(&p[i], f, "late", true);
		fake_producer_register(&p[i], "src", false, false);
	}
	assert_non_null(fake_enable(f, &c, RING "data_sources { "
	    "config { name: \"src\" } producer_name_filter: \"early\" }", -1));
	session_disable(c.s, NULL);
	let_in(c.s, "late");
	fixture_wait(f, is_disabled, &c);
	for (i = 0; i < 8; i++)
		loop_run_once(f->loop);
	assert_int_equal(c.s->n_instances, 0);
	for (i = 0; i < N; i++) {
		n += fake_producer_count(&p[i], "start");
		assert_int_equal(fake_producer_count(&p[i], "stop"),
		    fake_producer_count(&p[i], "setup"));
	}
	assert_in_range(n, 1, N);
	session_free(c.s);
	for (i = 0; i < N; i++)
		fake_producer_done(&p[i]);
	free(p);
}

static void
a_deferred_session_starts_when_told(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;

	fake_producer_init(&p, f, "prod", true);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE "deferred_start: true",
	    -1));
	assert_int_equal(fake_producer_count(&p, "setup"), 1);
	assert_int_equal(fake_producer_count(&p, "start"), 0);
	assert_int_equal(session_start(c.s), 0);
	assert_int_equal(fake_producer_count(&p, "start"), 1);
	assert_int_equal(session_start(c.s), -1);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
refusals_say_why(void **state)
{
	static const struct {
		const char *config;
		const char *word;
	} cases[] = {
		{ RING "duration_ms: 700000000", "too long" },
		{ "buffers { }", "size_kb" },
		{ RING "data_sources { config { name: \"x\" target_buffer: 3 } }",
		    "target_buffer 3" },
		{ RING "data_sources { config { name: \"x\" "
		    "target_buffer_name: \"b\" } }", "does not exist" },
		{ "buffers { size_kb: 4 name: \"a\" } buffers { size_kb: 4 "
		    "name: \"a\" }", "Duplicate buffer" },
		{ RING "duration_ms: 5 trigger_config { trigger_mode: "
		    "STOP_TRACING trigger_timeout_ms: 5 triggers { name: \"t\" "
		    "} }", "duration_ms" },
		{ RING "trigger_config { trigger_mode: STOP_TRACING "
		    "triggers { name: \"t\" } }", "trigger_timeout_ms" },
		{ RING "write_into_file: true", "file descriptor" },
		{ RING "data_sources { config { name: \"x\" } "
		    "producer_name_regex_filter: \"(\" }", "(" },
	};
	struct fixture *f = *state;
	struct fake_consumer c;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_null(fake_enable(f, &c, cases[i].config, -1));
		if (strstr(c.error, cases[i].word) == NULL)
			fail_msg("\"%s\" does not say \"%s\"", c.error,
			    cases[i].word);
	}
}

static void
a_name_in_use_is_refused(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer a, b;

	assert_non_null(fake_enable(f, &a, RING "unique_session_name: \"x\"",
	    -1));
	assert_null(fake_enable(f, &b, RING "unique_session_name: \"x\"", -1));
	assert_non_null(strstr(b.error, "already exists"));
	session_free(a.s);
}

static size_t
file_packets(const char *path)
{
	FILE *fp = fopen(path, "r");
	Perfetto__Protos__TracePacket *p;
	size_t n = 0;
	uint8_t buf[65536];
	size_t len, at = 0, k;

	assert_non_null(fp);
	len = fread(buf, 1, sizeof(buf), fp);
	fclose(fp);
	while (at < len) {
		uint64_t size = 0;
		unsigned shift = 0;

		assert_int_equal(buf[at++], 0x0a);
		do {
			size |= (uint64_t)(buf[at] & 0x7f) << shift;
			shift += 7;
		} while (buf[at++] & 0x80);
		k = (size_t)size;
		p = perfetto__protos__trace_packet__unpack(NULL, k, buf + at);
		assert_non_null(p);
		n += p->data_case ==
		    PERFETTO__PROTOS__TRACE_PACKET__DATA_FOR_TESTING;
		perfetto__protos__trace_packet__free_unpacked(p, NULL);
		at += k;
	}
	return n;
}

static void
a_file_session_writes_everything_below_the_trace_directory(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	char path[128];
	unsigned i;

	fake_producer_init(&p, f, "prod", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE
	    "write_into_file: true output_path: \"t.pftrace\"", -1));
	while (!fake_producer_saw(&p, "start 1"))
		loop_run_once(f->loop);
	for (i = 0; i < 100; i++)
		assert_int_equal(fake_commit(&p, p.last_buffer, 1, i, i, "x"),
		    COMMIT_OK);
	session_disable(c.s, NULL);
	fixture_wait(f, is_disabled, &c);
	assert_string_equal(c.error, "");
	snprintf(path, sizeof(path), "%s/t.pftrace", f->dir);
	assert_int_equal(file_packets(path), 100);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
an_output_path_outside_is_refused(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c;

	assert_non_null(fake_enable(f, &c, ONE_SOURCE
	    "write_into_file: true output_path: \"../escape.pftrace\"", -1));
	fixture_wait(f, is_disabled, &c);
	assert_string_not_equal(c.error, "");
	session_free(c.s);
}

static void
a_file_that_cannot_keep_up_holds_its_producer_back(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	char *big = calloc(1, 3001);
	uint8_t sink[65536];
	unsigned i, waits = 0;
	size_t packets = 0;
	int pipefd[2];

	memset(big, 'x', 3000);
	assert_int_equal(pipe(pipefd), 0);
	assert_int_equal(fcntl(pipefd[0], F_SETFL, O_NONBLOCK), 0);
	fake_producer_init(&p, f, "prod", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE "write_into_file: true",
	    pipefd[1]));
	for (i = 0; i < 1000;) {
		if (fake_commit(&p, p.last_buffer, 1, i, i, big) == COMMIT_OK) {
			i++;
			continue;
		}
		/* Nobody reads the pipe: now it must be read to go on. */
		waits++;
		p.resumed = false;
		while (!p.resumed) {
			ssize_t n = read(pipefd[0], sink, sizeof(sink));

			packets += n > 0 ? (size_t)n : 0;
			loop_run_once(f->loop);
		}
	}
	assert_true(waits > 0);
	session_disable(c.s, NULL);
	while (!c.disabled) {
		ssize_t n = read(pipefd[0], sink, sizeof(sink));

		packets += n > 0 ? (size_t)n : 0;
		loop_run_once(f->loop);
	}
	for (;;) {
		ssize_t n = read(pipefd[0], sink, sizeof(sink));

		if (n <= 0)
			break;
		packets += (size_t)n;
	}
	/* 1000 packets of 3000 bytes of text each, none overwritten. */
	assert_true(packets > 1000u * 3000u);
	assert_string_equal(c.error, "");
	close(pipefd[0]);
	session_free(c.s);
	fake_producer_done(&p);
	free(big);
}

/* One whole packet in a chunk of its shared memory, complete, not committed. */
static void
put_in_memory(struct fake_producer *p, uint16_t writer, const char *str)
{
	struct shm_slot slot;
	struct pb_writer chunk;

	pb_writer_init(&chunk);
	fake_chunk(&chunk, writer, 0, 1, str);
	assert_true(shm_acquire(p->shm, SHM_DIV1, writer, 0, 0, &slot));
	/* Without the header, which is the slot's own. */
	memcpy(slot.payload, chunk.data + SHM_CHUNK_HEADER_BYTES,
	    chunk.len - SHM_CHUNK_HEADER_BYTES);
	shm_add_fragment(p->shm, &slot);
	shm_complete(p->shm, &slot);
	pb_writer_done(&chunk);
}

static void
drain(int fd, char *seen, size_t cap, size_t *len)
{
	ssize_t n = read(fd, seen + *len, cap - *len);

	*len += n > 0 ? (size_t)n : 0;
}

static void
what_a_crashed_producer_left_waits_for_a_slow_file(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	size_t cap = 4u << 20, len = 0;
	char *big = calloc(1, 3001), *seen = malloc(cap);
	int pipefd[2];
	unsigned i;

	memset(big, 'x', 3000);
	assert_int_equal(pipe(pipefd), 0);
	assert_int_equal(fcntl(pipefd[0], F_SETFL, O_NONBLOCK), 0);
	fake_producer_init(&p, f, "prod", false);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE "write_into_file: true",
	    pipefd[1]));
	writers_register(p.p, 2, p.last_buffer);
	for (i = 0; fake_commit(&p, p.last_buffer, 1, i, i, big) == COMMIT_OK;)
		i++;
	put_in_memory(&p, 2, "the last words");
	fake_producer_done(&p);
	assert_int_equal(f->service->n_gone, 1);
	while (f->service->n_gone > 0) {
		drain(pipefd[0], seen, cap, &len);
		loop_run_once(f->loop);
	}
	session_disable(c.s, NULL);
	while (!c.disabled) {
		drain(pipefd[0], seen, cap, &len);
		loop_run_once(f->loop);
	}
	drain(pipefd[0], seen, cap, &len);
	assert_non_null(memmem(seen, len, "the last words", 14));
	assert_true(len > (size_t)i * 3000);
	assert_int_equal(f->service->n_producers, 0);
	close(pipefd[0]);
	session_free(c.s);
	free(big);
	free(seen);
}

static bool
is_disabling(void *session)
{
	return ((struct session *)session)->state == SESSION_DISABLING;
}

/*
 * The one it is waited for stands before others of the same session: those go
 * with that session's end, while the producer takes its leave.
 */
static void
a_crash_that_ends_a_session_while_a_file_is_slow(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c, other;
	size_t cap = 4u << 20, len = 0;
	char *big = calloc(1, 3001), *seen = malloc(cap);
	int pipefd[2];
	unsigned i;

	memset(big, 'x', 3000);
	assert_int_equal(pipe(pipefd), 0);
	assert_int_equal(fcntl(pipefd[0], F_SETFL, O_NONBLOCK), 0);
	fake_producer_init(&p, f, "prod", false);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, false);
	fake_producer_register(&p, "slow", false, true);
	fake_producer_register(&p, "quick", false, false);
	assert_non_null(fake_enable(f, &other, "buffers { size_kb: 64 } "
	    "data_sources { config { name: \"slow\" } } "
	    "data_sources { config { name: \"quick\" } } ", -1));
	assert_non_null(fake_enable(f, &c, ONE_SOURCE "write_into_file: true",
	    pipefd[1]));
	session_disable(other.s, NULL);
	fixture_wait(f, is_disabling, other.s);
	writers_register(p.p, 2, p.last_buffer);
	for (i = 0; fake_commit(&p, p.last_buffer, 1, i, i, big) == COMMIT_OK;)
		i++;
	put_in_memory(&p, 2, "the last words");
	fake_producer_done(&p);
	assert_int_equal(f->service->n_gone, 1);
	assert_true(other.disabled);
	/* Before they started, and now. */
	assert_int_equal(other.stopped, 4);
	session_free(other.s);
	session_disable(c.s, NULL);
	while (!c.disabled) {
		drain(pipefd[0], seen, cap, &len);
		loop_run_once(f->loop);
	}
	drain(pipefd[0], seen, cap, &len);
	assert_non_null(memmem(seen, len, "the last words", 14));
	close(pipefd[0]);
	session_free(c.s);
	free(big);
	free(seen);
}

static void
a_chunk_scraped_when_complete_is_committed_without_a_trace(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	struct fake_trace t;
	struct pb_writer w;
	size_t mark;

	fake_producer_init(&p, f, "prod", false);
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, ONE_SOURCE, -1));
	writers_register(p.p, 2, p.last_buffer);
	put_in_memory(&p, 2, "once");
	assert_true(session_scrape(c.s));
	fake_read(c.s, &t);
	assert_int_equal(fake_trace_count(&t, "once"), 1);
	fake_trace_done(&t);
	assert_true(session_scrape(c.s));
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, 1);
	pb_put_uint(&w, 1, 0);
	pb_put_uint(&w, 2, 0);
	pb_put_uint(&w, 3, p.last_buffer);
	pb_nest_end(&w, mark);
	assert_int_equal(fake_commit_data(p.p, w.data, w.len), COMMIT_OK);
	pb_writer_done(&w);
	fake_read(c.s, &t);
	assert_int_equal(fake_trace_count(&t, NULL), 0);
	fake_trace_done(&t);
	assert_int_equal(trace_buffer_stats(c.s->buffers[0].tb)->
	    chunks_discarded, 0);
	assert_int_equal(c.s->refused.chunks, 0);
	session_free(c.s);
	fake_producer_done(&p);
}

static void
a_producers_instances_are_bounded_and_counted(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c;
	struct fake_producer p;
	struct pb_writer w;
	char *text = malloc(64 * 1024);
	size_t n, i;

	n = (size_t)sprintf(text, RING);
	for (i = 0; i < 80; i++)
		n += (size_t)sprintf(text + n,
		    "data_sources { config { name: \"src\" } } ");
	assert_non_null(fake_enable(f, &c, text, -1));
	fake_producer_init(&p, f, "many", true);
	p.quiet = true;
	pb_writer_init(&w);
	pb_put_string(&w, 1, "src");
	for (i = 0; i < 60; i++)
		assert_null(producer_register(p.p, w.data, w.len));
	pb_writer_done(&w);
	assert_int_equal(c.s->n_instances, INSTANCES_PER_PRODUCER);
	assert_int_equal(f->service->counters.instances_refused,
	    60 * 80 - INSTANCES_PER_PRODUCER);
	session_free(c.s);
	fake_producer_done(&p);
	free(text);
}

static void
a_detached_session_lives_on_and_is_attached_by_key(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer a, b;
	char err[80];

	assert_non_null(fake_enable(f, &a, RING, -1));
	assert_int_equal(session_detach(a.s, "key", err, sizeof(err)), 0);
	memset(&b, 0, sizeof(b));
	if (session_attach(f->service, "key", fake_user(1), &fake_consumer_ops,
	    &b) != NULL)
		fail_msg("another user attached the session");
	b.s = session_attach(f->service, "key", fake_user(1000),
	    &fake_consumer_ops, &b);
	assert_ptr_equal(b.s, a.s);
	session_free(b.s);
}

static void
an_admin_attaches_what_is_detached_its_own_first(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer a, own, b;
	char err[80];

	assert_non_null(fake_enable(f, &a, RING, -1));
	assert_non_null(fake_enable_as(f, &own, RING, -1, 0));
	assert_int_equal(session_detach(a.s, "key", err, sizeof(err)), 0);
	/* The same key of another owner is another key. */
	assert_int_equal(session_detach(own.s, "key", err, sizeof(err)), 0);
	memset(&b, 0, sizeof(b));
	assert_ptr_equal(session_attach(f->service, "key", fake_user(0),
		&fake_consumer_ops, &b), own.s);
	assert_ptr_equal(session_attach(f->service, "key", fake_user(0),
		&fake_consumer_ops, &b), a.s);
	assert_null(session_attach(f->service, "key", fake_user(0),
		&fake_consumer_ops, &b));
	assert_int_equal(a.s->uid, 1000);
	session_free(a.s);
	session_free(own.s);
}

static void
a_certificates_sessions_are_no_users(void **state)
{
	struct principal ann = { .auth = PEER_CERT, .name = "ann",
		.uid = PEER_UID_UNKNOWN };
	struct principal bob = { .auth = PEER_CERT, .name = "bob",
		.uid = PEER_UID_UNKNOWN };
	struct fixture *f = *state;
	struct fake_consumer a;
	char err[80];

	assert_non_null(fake_enable(f, &a, RING, -1));
	a.s->owner = ann;
	assert_int_equal(session_detach(a.s, "key", err, sizeof(err)), 0);
	if (session_attach(f->service, "key", &bob, &fake_consumer_ops,
	    &a) != NULL)
		fail_msg("another certificate attached the session");
	if (session_attach(f->service, "key", fake_user(PEER_UID_UNKNOWN),
	    &fake_consumer_ops, &a) != NULL)
		fail_msg("an unknown user attached a certificate's session");
	assert_ptr_equal(session_attach(f->service, "key", &ann,
		&fake_consumer_ops, &a), a.s);
	session_free(a.s);
}

static void
as_many_sessions_as_the_limit_and_not_one_more(void **state)
{
	struct fake_consumer a, b, more, again;
	struct fixture *f = *state;

	f->settings.limits.max_sessions = 2;
	assert_non_null(fake_enable_as(f, &a, RING, -1, 1000));
	assert_non_null(fake_enable_as(f, &b, RING, -1, 1001));
	if (fake_enable_as(f, &more, RING, -1, 1002) != NULL)
		fail_msg("there are 3 sessions, and max_sessions is 2");
	assert_non_null(strstr(more.error, "(2, limits.max_sessions)"));
	session_free(a.s);
	assert_non_null(fake_enable_as(f, &again, RING, -1, 1002));
	session_free(again.s);
	session_free(b.s);
}

static void
sessions_of_one_owner_are_bounded(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer a, b, c;

	f->settings.limits.max_sessions_per_uid = 1;
	assert_non_null(fake_enable(f, &a, RING, -1));
	assert_null(fake_enable(f, &b, RING, -1));
	assert_non_null(strstr(b.error, "for uid 1000 "
		"(limits.max_sessions_per_uid)"));
	assert_non_null(fake_enable_as(f, &c, RING, -1, 1001));
	session_free(a.s);
	session_free(c.s);
}

static void
buffers_of_one_owner_are_bounded(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer a, b, c;

	f->settings.limits.max_buffer_kb_per_consumer = 100;
	assert_non_null(fake_enable(f, &a, "buffers { size_kb: 60 }", -1));
	assert_null(fake_enable(f, &b, "buffers { size_kb: 60 }", -1));
	assert_non_null(strstr(b.error, "uid 1000 has 60 KiB of 100 KiB in "
		"use (limits.max_buffer_kb_per_consumer)"));
	assert_non_null(fake_enable_as(f, &c, "buffers { size_kb: 60 }", -1,
		1001));
	assert_non_null(fake_enable(f, &b, "buffers { size_kb: 40 }", -1));
	session_free(a.s);
	assert_non_null(fake_enable(f, &a, "buffers { size_kb: 60 }", -1));
	session_free(a.s);
	session_free(b.s);
	session_free(c.s);
}

static void
only_an_admin_ends_the_sessions_of_others(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer a, b;

	assert_non_null(fake_enable(f, &a, RING, -1));
	assert_null(fake_enable_as(f, &b, RING "exclusive_prio: 1", -1, 1001));
	assert_non_null(strstr(b.error, "only an admin"));
	assert_false(a.disabled);
	assert_int_equal(a.s->state, SESSION_STARTED);
	/* One's own, and an admin everybody's. */
	assert_non_null(fake_enable(f, &b, RING "exclusive_prio: 1", -1));
	fixture_wait(f, fake_disabled, &a);
	session_free(a.s);
	assert_non_null(fake_enable_as(f, &a, RING "exclusive_prio: 2", -1, 0));
	fixture_wait(f, fake_disabled, &b);
	session_free(a.s);
	session_free(b.s);
}

/* What is refused late, too: others must not have been ended for it. */
static void
an_exclusive_session_that_is_refused_ends_nobody(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer a, b;

	assert_non_null(fake_enable(f, &a, RING, -1));
	f->settings.limits.max_total_buffer_kb = 128;
	assert_null(fake_enable(f, &b, "buffers { size_kb: 4096 } "
	    "exclusive_prio: 1", -1));
	assert_non_null(strstr(b.error, "max_total_buffer_kb"));
	assert_null(fake_enable(f, &b, RING "exclusive_prio: 1 "
	    "trigger_config { trigger_mode: START_TRACING "
	    "trigger_timeout_ms: 1000 triggers { name: \"t\" "
	    "producer_name_regex: \"(\" } }", -1));
	assert_non_null(fake_enable(f, &b, RING, -1));
	assert_int_equal(a.s->state, SESSION_STARTED);
	assert_null(a.s->end_error);
		session_free(a.s);
	session_free(b.s);
}

#define T(name)                                                               \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_data_source_is_set_up_started_and_stopped),
		T(a_source_that_registers_late_joins_the_running_session),
		T(packets_come_back_with_trusted_fields),
		T(a_foreign_buffer_is_refused_and_counted),
		T(a_stop_waits_for_acknowledgements),
		T(a_producer_that_never_answers_holds_nothing_up),
		T(a_crashed_producer_leaves_its_data),
		T(unknown_config_fields_reach_the_producer),
		T(filters_choose_the_producers),
		T(sources_that_the_final_flush_lets_in_end_with_it),
		T(a_deferred_session_starts_when_told),
		T(refusals_say_why),
		T(a_name_in_use_is_refused),
		T(a_file_session_writes_everything_below_the_trace_directory),
		T(an_output_path_outside_is_refused),
		T(a_file_that_cannot_keep_up_holds_its_producer_back),
		T(what_a_crashed_producer_left_waits_for_a_slow_file),
		T(a_crash_that_ends_a_session_while_a_file_is_slow),
		T(a_chunk_scraped_when_complete_is_committed_without_a_trace),
		T(a_producers_instances_are_bounded_and_counted),
		T(a_detached_session_lives_on_and_is_attached_by_key),
		T(an_admin_attaches_what_is_detached_its_own_first),
		T(a_certificates_sessions_are_no_users),
		T(as_many_sessions_as_the_limit_and_not_one_more),
		T(sessions_of_one_owner_are_bounded),
		T(buffers_of_one_owner_are_bounded),
		T(only_an_admin_ends_the_sessions_of_others),
		T(an_exclusive_session_that_is_refused_ends_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
