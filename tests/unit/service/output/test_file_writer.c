#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <cmocka.h>

#include "service/ingest/commit.h"
#include "service/output/file_writer.h"
#include "service/session/flush.h"
#include "tests/unit/dev_full.h"
#include "tests/unit/service/session/fixture.h"
#include "transport/buffer/trace_buffer.h"

#define RING "buffers { size_kb: 64 } "
#define SOURCE "data_sources { config { name: \"src\" } } "
#define TO_FILE RING SOURCE "write_into_file: true "
/* No write by the clock while a test runs. */
#define RARELY "file_write_period_ms: 3600000 write_flush_mode: "             \
	"WRITE_FLUSH_DISABLED "

struct bed {
	struct fixture *f;
	struct fake_producer p;
	struct fake_consumer c;
	char path[128];
};

static void
bed_init(struct bed *b, void **state, const char *config)
{
	int fd;

	memset(b, 0, sizeof(*b));
	b->f = *state;
	snprintf(b->path, sizeof(b->path), "%s/trace", b->f->dir);
	fd = open(b->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	fake_producer_init(&b->p, b->f, "p", true);
	b->p.ack_flushes = true;
	fake_producer_register(&b->p, "src", false, false);
	assert_non_null(fake_enable(b->f, &b->c, config, fd));
}

static void
bed_done(struct bed *b)
{
	if (b->c.s != NULL)
		fake_end(b->f, &b->c);
	fake_producer_done(&b->p);
}

static bool
has_bytes(void *arg)
{
	struct stat st;

	return stat(arg, &st) == 0 && st.st_size > 0;
}

static void
the_file_is_written_every_period(void **state)
{
	struct bed b;
	struct fake_trace t;

	bed_init(&b, state, TO_FILE "file_write_period_ms: 1 "
	    "write_flush_mode: WRITE_FLUSH_DISABLED");
	(void)fake_commit(&b.p, b.p.last_buffer, 1, 0, 1, "soon");
	fixture_wait(b.f, has_bytes, b.path);
	fake_read_file(b.path, &t);
	assert_int_equal(fake_trace_count(&t, "soon"), 1);
	fake_trace_done(&t);
	assert_int_equal(fake_producer_count(&b.p, "flush"), 0);
	bed_done(&b);
}

static void
each_write_is_preceded_by_a_flush_when_asked_for(void **state)
{
	struct bed b;

	bed_init(&b, state, TO_FILE "file_write_period_ms: 100 "
	    "write_flush_mode: WRITE_FLUSH_ENABLED");
	fixture_wait(b.f, has_bytes, b.path);
	/* The next period may have begun before we looked. */
	assert_true(fake_producer_count(&b.p, "flush") > 0);
	assert_int_equal(b.p.last_flush_flags, FLUSH_PERIODIC);
	bed_done(&b);
}

static void
a_buffer_that_is_half_full_is_written_at_once(void **state)
{
	static char big[3000];
	struct bed b;
	uint32_t i;

	memset(big, 'x', sizeof(big) - 1);
	bed_init(&b, state, TO_FILE RARELY);
	for (i = 0; i < 5; i++)
		(void)fake_commit(&b.p, b.p.last_buffer, 1, i, 1, big);
	for (i = 0; i < 20; i++)
		loop_run_once(b.f->loop);
	assert_false(has_bytes(b.path));
	for (i = 5; i < 12; i++)
		(void)fake_commit(&b.p, b.p.last_buffer, 1, i, 1, big);
	fixture_wait(b.f, has_bytes, b.path);
	bed_done(&b);
}

static void
a_file_ends_on_a_whole_packet_before_its_limit(void **state)
{
	static char text[500];
	struct bed b;
	struct fake_trace t;
	struct stat st;
	uint32_t i;

	memset(text, 'y', sizeof(text) - 1);
	bed_init(&b, state, TO_FILE RARELY "max_file_size_bytes: 50000");
	for (i = 0; i < 1000 && !b.c.disabled; i++) {
		assert_int_equal(fake_commit(&b.p, b.p.last_buffer, 1, i, 1,
		    text), COMMIT_OK);
		loop_run_once(b.f->loop);
	}
	fixture_wait(b.f, fake_disabled, &b.c);
	assert_string_equal(b.c.error, "");
	assert_int_equal(stat(b.path, &st), 0);
	assert_true(st.st_size <= 50000);
	/* A packet, and what is kept for statistics. */
	assert_true(st.st_size > 50000 - 600 - 50000 / 32);
	fake_read_file(b.path, &t);
	assert_true(fake_trace_count(&t, text) > 50);
	fake_trace_done(&t);
	bed_done(&b);
}

/* More than the file holds, by so many writers, before its first write. */
static void
fill_before_the_first_write(struct bed *b, uint16_t writers)
{
	static char text[500];
	uint16_t w;
	uint32_t i;

	memset(text, 'y', sizeof(text) - 1);
	for (i = 0; i < 120u / writers; i++)
		for (w = 1; w <= writers; w++)
			assert_int_equal(fake_commit(&b->p, b->p.last_buffer,
			    w, i, 1, text), COMMIT_OK);
	session_disable(b->c.s, NULL);
	fixture_wait(b->f, fake_disabled, &b->c);
}

static void
a_file_ends_with_statistics_also_where_its_limit_ends_it(void **state)
{
	static const uint16_t writers[] = { 1, 60 };
	const Perfetto__Protos__TraceStats *st;
	struct fake_trace t;
	struct bed b;
	size_t i;

	for (i = 0; i < 2; i++) {
		bed_init(&b, state, "buffers { size_kb: 1024 } " SOURCE
		    "write_into_file: true " RARELY
		    "max_file_size_bytes: 20000");
		fill_before_the_first_write(&b, writers[i]);
		bed_done(&b);
		fake_read_file(b.path, &t);
		assert_true(t.n > 1);
		st = t.packets[t.n - 1]->trace_stats;
		assert_non_null(st);
		assert_int_equal(st->n_buffer_stats, 1);
		assert_int_equal(st->buffer_stats[0]->chunks_written, 120);
		/* Those of writers only where they have room. */
		assert_int_equal(st->n_writer_stats, i == 0 ? 1 : 0);
		fake_trace_done(&t);
		unlink(b.path);
	}
}

#define COMPRESSED PERFETTO__PROTOS__TRACE_PACKET__DATA_COMPRESSED_PACKETS
#define STATS      PERFETTO__PROTOS__TRACE_PACKET__DATA_TRACE_STATS

/* Replaces a file of compressed packets by one with the packets in them. */
static void
expand(const char *path)
{
	static uint8_t out[1u << 20];
	struct fake_trace t;
	uLongf n;
	size_t i;
	FILE *file;

	fake_read_file(path, &t);
	assert_non_null(file = fopen(path, "w"));
	for (i = 0; i < t.n; i++) {
		assert_int_equal(t.packets[i]->data_case, COMPRESSED);
		n = sizeof(out);
		assert_int_equal(uncompress(out, &n,
		    t.packets[i]->compressed_packets.data,
		    t.packets[i]->compressed_packets.len), Z_OK);
		assert_int_equal(fwrite(out, 1, n, file), n);
	}
	assert_int_equal(fclose(file), 0);
	fake_trace_done(&t);
}

/* Its thread finds the limit after all batches were handed to it. */
static void
a_compressed_file_ends_with_its_statistics_once(void **state)
{
	struct fake_trace t;
	char text[500];
	struct bed b;
	size_t i, n = 0;
	uint32_t chunk;

	srand(1);
	bed_init(&b, state, "buffers { size_kb: 1024 } " SOURCE
	    "write_into_file: true compression_type: COMPRESSION_TYPE_DEFLATE "
	    RARELY "max_file_size_bytes: 20000");
	for (chunk = 0; chunk < 120; chunk++) {
		for (i = 0; i < sizeof(text) - 1; i++)
			text[i] = (char)('!' + rand() % 90);
		text[i] = '\0';
		assert_int_equal(fake_commit(&b.p, b.p.last_buffer, 1, chunk, 1,
		    text), COMMIT_OK);
	}
	bed_done(&b);
	expand(b.path);
	fake_read_file(b.path, &t);
	for (i = 0; i < t.n; i++)
		n += t.packets[i]->data_case == STATS;
	assert_int_equal(n, 1);
	assert_int_equal(t.packets[t.n - 1]->data_case, STATS);
	assert_in_range(fake_trace_count(&t, NULL), 1, 119);
	fake_trace_done(&t);
}

/* In place of the C library's: counts the calls of the writer's thread. */
static atomic_uint n_synced;

int
fdatasync(int fd)
{
	atomic_fetch_add(&n_synced, 1);
	return fsync(fd);
}

static void
a_file_that_is_to_be_synced_is_synced_where_its_limit_ends_it(void **state)
{
	static char big[3000];
	struct bed b;
	uint32_t i;

	memset(big, 'x', sizeof(big) - 1);
	bed_init(&b, state, TO_FILE RARELY "max_file_size_bytes: 20000 "
	    "fflush_post_write: FFLUSH_ENABLED");
	atomic_store(&n_synced, 0);
	/* Passes that a half full buffer asks for do not sync. */
	for (i = 0; i < 100 && !b.c.disabled; i++) {
		(void)fake_commit(&b.p, b.p.last_buffer, 1, i, 1, big);
		loop_run_once(b.f->loop);
	}
	fixture_wait(b.f, fake_disabled, &b.c);
	assert_int_equal(atomic_load(&n_synced), 1);
	bed_done(&b);
}

static void
everything_is_in_the_file_when_the_end_is_told(void **state)
{
	static const char *const modes[] = { "WRITE_FLUSH_AUTO",
		"WRITE_FLUSH_ENABLED", "WRITE_FLUSH_DISABLED" };
	struct bed b;
	struct fake_trace t;
	char config[256];
	size_t m;
	uint32_t i;

	for (m = 0; m < 3; m++) {
		snprintf(config, sizeof(config), TO_FILE
		    "file_write_period_ms: 3600000 fflush_post_write: "
		    "FFLUSH_ENABLED write_flush_mode: %s", modes[m]);
		bed_init(&b, state, config);
		for (i = 0; i < 500; i++)
			(void)fake_commit(&b.p, b.p.last_buffer, 1, i, 1,
			    "all");
		bed_done(&b);
		fake_read_file(b.path, &t);
		assert_int_equal(fake_trace_count(&t, "all"), 500);
		fake_trace_done(&t);
		unlink(b.path);
	}
}

static void
a_failing_file_ends_only_its_own_session(void **state)
{
	static char big[3000];
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer bad, good;
	struct fake_trace t;
	uint16_t to_bad, to_good;
	uint32_t i;
	char path[128];

	memset(big, 'z', sizeof(big) - 1);
	fake_producer_init(&p, f, "p", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &bad, TO_FILE RARELY, dev_full_open()));
	to_bad = p.last_buffer;
	assert_non_null(fake_enable(f, &good, TO_FILE RARELY
	    "output_path: \"good\"", -1));
	to_good = p.last_buffer;
	while (!fake_producer_saw(&p, "start 2"))
		loop_run_once(f->loop);
	for (i = 0; i < 100; i++) {
		/* Once the file has failed nobody waits for it. */
		while (fake_commit(&p, to_bad, 1, i, 1, big) == COMMIT_AGAIN)
			loop_run_once(f->loop);
		while (fake_commit(&p, to_good, 2, i, 1, "fine") ==
		    COMMIT_AGAIN)
			loop_run_once(f->loop);
	}
	fixture_wait(f, fake_disabled, &bad);
	assert_non_null(strstr(bad.error, "space"));
	assert_false(good.disabled);
	session_free(bad.s);
	fake_end(f, &good);
	assert_string_equal(good.error, "");
	snprintf(path, sizeof(path), "%s/good", f->dir);
	fake_read_file(path, &t);
	assert_int_equal(fake_trace_count(&t, "fine"), 100);
	fake_trace_done(&t);
	assert_int_equal(f->service->n_lossless, 0);
	fake_producer_done(&p);
}

static void
a_session_freed_while_its_file_is_busy_completes_it(void **state)
{
	struct bed b;
	struct fake_trace t;
	uint32_t i;

	bed_init(&b, state, TO_FILE RARELY);
	for (i = 0; i < 800; i++)
		(void)fake_commit(&b.p, b.p.last_buffer, 1, i, 1, "kept");
	session_free(b.c.s);
	b.c.s = NULL;
	while (b.f->service->n_sessions > 0)
		loop_run_once(b.f->loop);
	assert_false(b.c.disabled); /* nobody is there to be told */
	fake_read_file(b.path, &t);
	assert_int_equal(fake_trace_count(&t, "kept"), 800);
	fake_trace_done(&t);
	bed_done(&b);
}

static void
a_session_may_end_while_its_file_is_being_opened(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c;

	assert_non_null(fake_enable(f, &c, TO_FILE "output_path: \"a\"", -1));
	session_disable(c.s, NULL);
	fixture_wait(f, fake_disabled, &c);
	assert_string_equal(c.error, "");
	session_free(c.s);
	/* And freed. */
	assert_non_null(fake_enable(f, &c, TO_FILE "output_path: \"b\"", -1));
	session_free(c.s);
}

static bool
is_resumed(void *arg)
{
	return ((struct fake_producer *)arg)->resumed;
}

static void
who_waited_for_a_file_to_be_opened_goes_on_when_it_is(void **state)
{
	static char big[3000];
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	uint32_t i = 0;

	memset(big, 'v', sizeof(big) - 1);
	fake_producer_init(&p, f, "p", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, TO_FILE RARELY
	    "output_path: \"late\" deferred_start: true", -1));
	while (fake_commit(&p, p.last_buffer, 1, i, 1, big) == COMMIT_OK)
		assert_true(i++ < 1000);
	fixture_wait(f, is_resumed, &p);
	while (fake_commit(&p, p.last_buffer, 1, i, 1, big) != COMMIT_OK)
		loop_run_once(f->loop);
	fake_end(f, &c);
	fake_producer_done(&p);
}

static void
a_path_that_exists_is_an_error_for_its_session(void **state)
{
	struct bed b;
	struct fake_consumer c;

	bed_init(&b, state, TO_FILE RARELY);
	assert_non_null(fake_enable(b.f, &c, TO_FILE
	    "output_path: \"trace\"", -1));
	fixture_wait(b.f, fake_disabled, &c);
	assert_string_not_equal(c.error, "");
	assert_false(b.c.disabled);
	session_free(c.s);
	bed_done(&b);
}

static void
several_producers_are_held_back_and_none_loses_a_packet(void **state)
{
	static char big[3000];
	static uint8_t sink[4096];
	struct fixture *f = *state;
	struct fake_producer p[3];
	struct fake_consumer c;
	uint32_t next[3] = { 0 };
	size_t i, waits = 0, got = 0;
	uint64_t end = loop_now_ms() + 20000;
	int pipefd[2];
	ssize_t n;

	memset(big, 'w', sizeof(big) - 1);
	assert_int_equal(pipe2(pipefd, O_CLOEXEC), 0);
	assert_int_equal(fcntl(pipefd[0], F_SETFL, O_NONBLOCK), 0);
	for (i = 0; i < 3; i++) {
		fake_producer_init(&p[i], f, "p", true);
		p[i].ack_flushes = true;
		fake_producer_register(&p[i], "src", false, false);
		p[i].resumed = true;
	}
	assert_non_null(fake_enable(f, &c, TO_FILE RARELY, pipefd[1]));
	while (next[0] + next[1] + next[2] < 300) {
		assert_true(loop_now_ms() < end);
		for (i = 0; i < 3; i++) {
			while (p[i].resumed && next[i] < 100) {
				if (fake_commit(&p[i], p[i].last_buffer, 1,
				    next[i], 1, big) == COMMIT_OK) {
					next[i]++;
					continue;
				}
				p[i].resumed = false;
				waits++;
			}
		}
		if ((n = read(pipefd[0], sink, sizeof(sink))) > 0)
			got += (size_t)n;
		loop_run_once(f->loop);
	}
	assert_true(waits > 3);
	assert_int_equal(trace_buffer_stats(
	    c.s->buffers[0].tb)->chunks_overwritten, 0);
	session_disable(c.s, NULL);
	while (!c.disabled) {
		assert_true(loop_now_ms() < end);
		while ((n = read(pipefd[0], sink, sizeof(sink))) > 0)
			got += (size_t)n;
		loop_run_once(f->loop);
	}
	while ((n = read(pipefd[0], sink, sizeof(sink))) > 0)
		got += (size_t)n;
	assert_true(got > 300 * strlen(big));
	close(pipefd[0]);
	session_free(c.s);
	for (i = 0; i < 3; i++)
		fake_producer_done(&p[i]);
}

static void
overwriting_is_a_setting(void **state)
{
	static char big[3000];
	struct fixture *f = *state;
	struct fake_producer p;
	struct fake_consumer c;
	uint32_t i;
	int pipefd[2];
	static uint8_t sink[65536];

	memset(big, 'w', sizeof(big) - 1);
	f->settings.lossless = false;
	assert_int_equal(pipe2(pipefd, O_CLOEXEC), 0);
	assert_int_equal(fcntl(pipefd[0], F_SETFL, O_NONBLOCK), 0);
	fake_producer_init(&p, f, "p", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, false);
	assert_non_null(fake_enable(f, &c, TO_FILE RARELY, pipefd[1]));
	assert_int_equal(f->service->n_lossless, 0);
	for (i = 0; i < 300; i++)
		assert_int_equal(fake_commit(&p, p.last_buffer, 1, i, 1, big),
		    COMMIT_OK);
	assert_true(trace_buffer_stats(
	    c.s->buffers[0].tb)->chunks_overwritten > 0);
	session_disable(c.s, NULL);
	while (!c.disabled) {
		while (read(pipefd[0], sink, sizeof(sink)) > 0)
			;
		loop_run_once(f->loop);
	}
	close(pipefd[0]);
	session_free(c.s);
	fake_producer_done(&p);
}

#define T(name)                                                               \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_file_is_written_every_period),
		T(each_write_is_preceded_by_a_flush_when_asked_for),
		T(a_buffer_that_is_half_full_is_written_at_once),
		T(a_file_ends_on_a_whole_packet_before_its_limit),
		T(a_file_ends_with_statistics_also_where_its_limit_ends_it),
		T(a_compressed_file_ends_with_its_statistics_once),
		T(a_file_that_is_to_be_synced_is_synced_where_its_limit_ends_it),
		T(everything_is_in_the_file_when_the_end_is_told),
		T(a_failing_file_ends_only_its_own_session),
		T(a_session_freed_while_its_file_is_busy_completes_it),
		T(a_session_may_end_while_its_file_is_being_opened),
		T(who_waited_for_a_file_to_be_opened_goes_on_when_it_is),
		T(a_path_that_exists_is_an_error_for_its_session),
		T(several_producers_are_held_back_and_none_loses_a_packet),
		T(overwriting_is_a_setting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
