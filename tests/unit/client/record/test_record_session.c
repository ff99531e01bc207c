#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/record/config.h"
#include "client/record/file.h"
#include "client/record/live_line.h"
#include "client/record/notify.h"
#include "client/record/session.h"
#include "client/trace/trace_summary.h"
#include "client/tracing/consumer/consumer.h"
#include "protos/consumer_port.pb-c.h"
#include "tests/unit/client/library/fake_collector.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/socket/addr.h"

struct fixture {
	char dir[64];
	char socket[128];
	char out[128];
	struct loop *loop;
	struct addr addr;
	struct fake_collector fake;
	struct record_config *config;
	struct record_file *file;
	struct record_live *live;
	struct record_notify notify;
	struct trace_summary *summary;
	struct record_session *session;
	bool done;
	struct record_result result;
};

/* Turns the loop until cond; the test's time-out is meson's. */
#define UNTIL(f, cond)                          \
	do {                                    \
		while (!(cond))                 \
			loop_run_once((f)->loop); \
	} while (0)

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char err[300];

	snprintf(f->dir, sizeof(f->dir), "/tmp/test_record.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->socket, sizeof(f->socket), "%s/consumer", f->dir);
	snprintf(f->out, sizeof(f->out), "%s/trace", f->dir);
	f->loop = loop_new();
	fake_collector_init(&f->fake, f->loop, f->socket);
	assert_int_equal(addr_parse(&f->addr, f->socket, err, sizeof(err)), 0);
	f->live = record_live_new(true);
	f->summary = trace_summary_new();
	record_notify_init(&f->notify, -1);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	record_session_free(f->session);
	record_notify_done(&f->notify, RECORD_STATUS_FAILED);
	record_config_free(f->config);
	record_file_free(f->file);
	record_live_free(f->live);
	trace_summary_free(f->summary);
	fake_collector_done(&f->fake);
	loop_free(f->loop);
	unlink(f->out);
	rmdir(f->dir);
	free(f);
	return 0;
}

static void
done_cb(void *arg, const struct record_result *r)
{
	struct fixture *f = arg;

	assert_false(f->done);
	f->done = true;
	f->result = *r;
}

/* What is asked for beside a config and a file. */
static struct record_session_setup
plain(const struct fixture *f)
{
	return (struct record_session_setup){
		.loop = f->loop, .addr = &f->addr, .live = f->live,
		.summary = f->summary,
	};
}

static void
begin(struct fixture *f, const struct record_session_setup *with)
{
	char err[600];

	f->session = record_session_new(with, done_cb, f, err, sizeof(err));
	assert_non_null(f->session);
}

/* Starts a session with an encoded config; kind and the like are the test's. */
static void
record_as(struct fixture *f, struct record_session_setup with,
    const char *config, size_t len)
{
	char err[600];

	f->config = record_config_decode((const uint8_t *)config, len, err,
	    sizeof(err));
	assert_non_null(f->config);
	f->file = record_file_open(f->out, false, err, sizeof(err));
	assert_non_null(f->file);
	with.config = f->config;
	with.file = f->file;
	with.notify = &f->notify;
	begin(f, &with);
}

static void
record(struct fixture *f, const char *config, size_t len)
{
	record_as(f, plain(f), config, len);
}

/* Config fields, encoded: duration_ms, write_into_file, deferred_start. */
#define NOTHING ""
#define INTO_FILE "\x40\x01"
#define DEFERRED "\x60\x01"
#define RECORD(f, config) record(f, config, sizeof(config) - 1)

static bool
called(const struct fixture *f, const char *method)
{
	return strstr(f->fake.calls, method) != NULL;
}

/* Packets on disk; fails unless the file is a whole trace. */
static unsigned
packets_on_disk(const struct fixture *f)
{
	struct trace_summary *s = trace_summary_new();
	static uint8_t data[8 << 20];
	int fd = open(f->out, O_RDONLY);
	unsigned packets;
	char err[200];
	ssize_t n;

	n = read(fd, data, sizeof(data));
	close(fd);
	assert_true(n >= 0 && n < (ssize_t)sizeof(data));
	assert_int_equal(trace_summary_feed(s, data, (size_t)n, err,
	    sizeof(err)), 0);
	assert_int_equal(trace_summary_loose_bytes(s), 0);
	packets = (unsigned)trace_summary_totals(s)->packets;
	assert_int_equal(trace_summary_totals(s)->malformed, 0);
	trace_summary_free(s);
	return packets;
}

/* What the service would write, through the descriptor it was given. */
static void
write_packets(struct fixture *f, unsigned n, size_t cut)
{
	uint8_t frame[102] = { 0x0a, 100 };
	unsigned i;

	for (i = 1; i <= n; i++) {
		fake_collector_packet(frame + 2, i, 100);
		assert_int_equal(write(f->fake.fd, frame, i == n ?
		    sizeof(frame) - cut : sizeof(frame)), i == n ?
		    sizeof(frame) - cut : sizeof(frame));
	}
}

static void
a_session_that_ends_is_read_and_whole_on_disk(void **state)
{
	struct fixture *f = *state;

	RECORD(f, NOTHING);
	f->fake.read_packets = 5000;
	UNTIL(f, called(f, "EnableTracing"));
	fake_collector_end_session(&f->fake);
	UNTIL(f, f->done);
	assert_string_equal(f->result.failure, "");
	assert_true(f->result.whole && f->result.began);
	assert_int_equal(packets_on_disk(f), 5000);
	assert_int_equal(trace_summary_totals(f->summary)->packets, 5000);
	assert_int_equal(f->fake.fd, -1);
	assert_string_equal(f->fake.calls, "QueryServiceState EnableTracing "
	    "QueryServiceState ReadBuffers ");
}

static void
the_service_writes_into_the_file_that_is_passed(void **state)
{
	struct fixture *f = *state;

	RECORD(f, INTO_FILE);
	UNTIL(f, called(f, "EnableTracing"));
	assert_true(f->fake.fd >= 0);
	write_packets(f, 30, 0);
	fake_collector_end_session(&f->fake);
	UNTIL(f, f->done);
	assert_string_equal(f->result.failure, "");
	assert_true(f->result.whole);
	assert_int_equal(packets_on_disk(f), 30);
	assert_int_equal(trace_summary_totals(f->summary)->packets, 30);
	assert_false(called(f, "ReadBuffers"));
}

static void
a_file_that_ends_within_a_packet_is_not_whole(void **state)
{
	struct fixture *f = *state;

	RECORD(f, INTO_FILE);
	UNTIL(f, called(f, "EnableTracing"));
	write_packets(f, 3, 5);
	fake_collector_end_session(&f->fake);
	UNTIL(f, f->done);
	assert_false(f->result.whole);
	assert_non_null(strstr(f->result.failure, "ends within a packet"));
	assert_int_equal(trace_summary_totals(f->summary)->packets, 2);
}

static void
an_error_of_the_service_is_a_failure(void **state)
{
	struct fixture *f = *state;

	f->fake.enable_error = "the buffer has a size of 0";
	RECORD(f, NOTHING);
	UNTIL(f, f->done);
	assert_false(f->result.whole);
	assert_non_null(strstr(f->result.failure,
	    "the buffer has a size of 0"));
	assert_true(record_file_remove_if_empty(f->file));
}

static void
an_error_later_keeps_what_the_file_holds(void **state)
{
	struct fixture *f = *state;

	RECORD(f, INTO_FILE);
	UNTIL(f, called(f, "EnableTracing"));
	write_packets(f, 3, 0);
	f->fake.enable_error = "No space left on device";
	fake_collector_end_session(&f->fake);
	UNTIL(f, f->done);
	assert_false(f->result.whole);
	assert_non_null(strstr(f->result.failure, "No space left"));
	assert_int_equal(trace_summary_totals(f->summary)->packets, 3);
}

static void
stopping_flushes_ends_the_session_and_keeps_the_trace(void **state)
{
	struct fixture *f = *state;

	RECORD(f, NOTHING);
	f->fake.read_packets = 7;
	UNTIL(f, called(f, "EnableTracing"));
	record_session_stop(f->session);
	UNTIL(f, f->done);
	assert_true(f->result.whole);
	assert_int_equal(packets_on_disk(f), 7);
	assert_string_equal(f->fake.calls, "QueryServiceState EnableTracing "
	    "Flush DisableTracing QueryServiceState ReadBuffers ");
}

static void
a_flush_that_fails_does_not_keep_it_from_ending(void **state)
{
	struct fixture *f = *state;

	RECORD(f, NOTHING);
	f->fake.refuse = "Flush";
	f->fake.read_packets = 7;
	UNTIL(f, called(f, "EnableTracing"));
	record_session_stop(f->session);
	UNTIL(f, f->done);
	assert_true(f->result.whole);
	assert_int_equal(packets_on_disk(f), 7);
}

static void
stopping_twice_gives_up_and_leaves_whole_packets(void **state)
{
	struct fixture *f = *state;

	RECORD(f, NOTHING);
	f->fake.read_packets = 12;
	f->fake.hold_read = true;
	UNTIL(f, called(f, "EnableTracing"));
	record_session_stop(f->session);
	UNTIL(f, trace_summary_totals(f->summary)->packets == 12);
	assert_false(f->done);
	record_session_stop(f->session);
	assert_true(f->done);
	assert_false(f->result.whole);
	assert_non_null(strstr(f->result.failure, "interrupted"));
	assert_int_equal(packets_on_disk(f), 12);
	record_session_stop(f->session); /* more often does nothing */
}

static void
stopping_before_the_connection_is_a_failure(void **state)
{
	struct fixture *f = *state;

	RECORD(f, NOTHING);
	record_session_stop(f->session);
	assert_true(f->done);
	assert_false(f->result.whole || f->result.began);
	assert_non_null(strstr(f->result.failure, "before the recording"));
}

static void
a_collector_that_goes_away_is_a_failure(void **state)
{
	struct fixture *f = *state;

	RECORD(f, NOTHING);
	UNTIL(f, called(f, "EnableTracing"));
	rpc_conn_close(f->fake.conn, "the test wants it");
	UNTIL(f, f->done);
	assert_false(f->result.whole);
	assert_non_null(strstr(f->result.failure, "was lost"));
}

static void
a_collector_that_is_not_there_says_how_to_start_one(void **state)
{
	struct fixture *f = *state;
	char err[300], nobody[160];

	snprintf(nobody, sizeof(nobody), "%s/nobody", f->dir);
	assert_int_equal(addr_parse(&f->addr, nobody, err, sizeof(err)), 0);
	RECORD(f, NOTHING);
	UNTIL(f, f->done);
	assert_false(f->result.whole || f->result.began);
	assert_non_null(strstr(f->result.failure, nobody));
	assert_non_null(strstr(f->result.failure, "tributaryd"));
}

static void
a_read_that_fails_is_a_failure(void **state)
{
	struct fixture *f = *state;

	RECORD(f, NOTHING);
	f->fake.read_packets = 9;
	f->fake.cut_last = true;
	UNTIL(f, called(f, "EnableTracing"));
	fake_collector_end_session(&f->fake);
	UNTIL(f, f->done);
	assert_false(f->result.whole);
	assert_non_null(strstr(f->result.failure, "within a packet"));
	assert_int_equal(packets_on_disk(f), 8);
}

static void
a_deferred_session_is_started(void **state)
{
	struct fixture *f = *state;

	RECORD(f, DEFERRED);
	UNTIL(f, called(f, "StartTracing"));
	assert_string_equal(f->fake.calls, "QueryServiceState EnableTracing "
	    "StartTracing ");
}

static void
whoever_waits_for_the_start_is_told(void **state)
{
	static const uint8_t started[] = { 0x0a, 0x02, 0x10, 0x01 };
	struct fixture *f = *state;
	unsigned char byte = 77;
	int fds[2];

	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	record_notify_init(&f->notify, fds[1]);
	RECORD(f, NOTHING);
	UNTIL(f, called(f, "EnableTracing"));
	assert_string_equal(f->fake.calls, "QueryServiceState ObserveEvents "
	    "EnableTracing ");
	assert_int_equal(read(fds[0], &byte, 1), -1);
	rpc_reply(f->fake.observe, started, sizeof(started), true, -1);
	UNTIL(f, read(fds[0], &byte, 1) == 1);
	assert_int_equal(byte, RECORD_STATUS_OK);
	assert_int_equal(read(fds[0], &byte, 1), 0); /* closed */
	close(fds[0]);
	record_session_stop(f->session);
	UNTIL(f, f->done);
	assert_true(f->result.whole);
}

static void
a_pipe_gets_a_file_session_read_from_the_buffers(void **state)
{
	struct fixture *f = *state;
	Perfetto__Protos__EnableTracingRequest *m;
	static uint8_t piece[65536];
	size_t got = 0;
	ssize_t n;
	int fd;

	assert_int_equal(mkfifo(f->out, 0600), 0);
	fd = open(f->out, O_RDONLY | O_NONBLOCK);
	RECORD(f, INTO_FILE);
	f->fake.read_packets = 40;
	f->fake.packet_bytes = 100000;
	UNTIL(f, called(f, "EnableTracing"));
	m = perfetto__protos__enable_tracing_request__unpack(NULL,
	    f->fake.config.len, f->fake.config.data);
	assert_false(m->trace_config->write_into_file);
	perfetto__protos__enable_tracing_request__free_unpacked(m, NULL);
	assert_int_equal(f->fake.fd, -1);

	fake_collector_end_session(&f->fake);
	/* nobody reads: the collector is held back */
	UNTIL(f, record_file_full(f->file));
	while (!f->done) {
		loop_run_once(f->loop);
		while ((n = read(fd, piece, sizeof(piece))) > 0)
			got += (size_t)n;
	}
	while ((n = read(fd, piece, sizeof(piece))) > 0)
		got += (size_t)n;
	close(fd);
	assert_string_equal(f->result.failure, "");
	assert_true(f->result.whole);
	assert_int_equal(got, 40 * 100004);
}

/* Config fields of EnableTracing as it came. */
static Perfetto__Protos__EnableTracingRequest *
sent_config(const struct fixture *f)
{
	Perfetto__Protos__EnableTracingRequest *m;

	m = perfetto__protos__enable_tracing_request__unpack(NULL,
	    f->fake.config.len, f->fake.config.data);
	assert_non_null(m);
	return m;
}

static unsigned
count(const struct fixture *f, const char *method)
{
	const char *p = f->fake.calls;
	unsigned n = 0;

	for (; (p = strstr(p, method)) != NULL; p++)
		n++;
	return n;
}

static void
a_descriptor_that_was_lost_on_the_way_turns_into_reading(void **state)
{
	struct fixture *f = *state;
	Perfetto__Protos__EnableTracingRequest *m;

	/* write_into_file, its period, its size: what was asked for */
	f->fake.enable_error = "write_into_file needs a file descriptor";
	RECORD(f, INTO_FILE "\x48\x64" "\x50\xa0\x8d\x06");
	UNTIL(f, count(f, "EnableTracing") == 1);
	f->fake.enable_error = NULL;
	f->fake.read_packets = 300;
	UNTIL(f, count(f, "EnableTracing") == 2);
	m = sent_config(f);
	assert_false(m->trace_config->write_into_file);
	assert_int_equal(m->trace_config->file_write_period_ms, 0);
	assert_int_equal(m->trace_config->max_file_size_bytes, 0);
	perfetto__protos__enable_tracing_request__free_unpacked(m, NULL);
	UNTIL(f, called(f, "ReadBuffers"));
	record_session_stop(f->session);
	UNTIL(f, f->done);
	assert_string_equal(f->result.failure, "");
	assert_true(f->result.whole);
	assert_int_equal(packets_on_disk(f), 300);
}

static void
another_refusal_is_no_reason_to_try_again(void **state)
{
	struct fixture *f = *state;

	f->fake.enable_error = "too many sessions";
	RECORD(f, INTO_FILE);
	UNTIL(f, f->done);
	assert_int_equal(count(f, "EnableTracing"), 1);
	assert_non_null(strstr(f->result.failure, "too many sessions"));
}

static void
a_file_and_a_trigger_that_ends_it_are_not_asked_for(void **state)
{
	struct fixture *f = *state;

	/* trigger_config: mode, a trigger named "a", trigger_timeout_ms */
	RECORD(f, INTO_FILE "\x8a\x01\x0a\x08\x02\x12\x03\x0a\x01"
	    "a\x18\xe8\x07");
	UNTIL(f, f->done);
	assert_int_equal(count(f, "EnableTracing"), 0);
	assert_non_null(strstr(f->result.failure, "write_into_file"));
}

static void
a_file_may_begin_with_a_trigger(void **state)
{
	struct fixture *f = *state;

	RECORD(f, INTO_FILE "\x8a\x01\x0a\x08\x01\x12\x03\x0a\x01"
	    "a\x18\xe8\x07");
	UNTIL(f, count(f, "EnableTracing") == 1);
	record_session_stop(f->session);
	UNTIL(f, f->done);
	assert_string_equal(f->result.failure, "");
}

static void
a_session_that_does_not_end_is_ended_and_kept(void **state)
{
	struct fixture *f = *state;
	struct record_session_setup with = plain(f);
	/* duration_ms, flush_timeout_ms, data_source_stop_timeout_ms: 1 */
	const char config[] = "\x18\x01" "\x70\x01" "\xb8\x01\x01";

	with.end_grace_ms = 1;
	f->fake.read_packets = 7;
	record_as(f, with, config, sizeof(config) - 1);
	UNTIL(f, f->done);
	assert_true(called(f, "DisableTracing"));
	assert_string_equal(f->result.failure, "");
	assert_true(f->result.whole);
	assert_int_equal(packets_on_disk(f), 7);
}

static void
what_is_read_meanwhile_is_in_the_file_meanwhile(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	f->fake.enable_error = "write_into_file needs a file descriptor";
	RECORD(f, INTO_FILE "\x48\x64");
	UNTIL(f, count(f, "EnableTracing") == 1);
	f->fake.enable_error = NULL;
	f->fake.read_packets = 3;
	UNTIL(f, count(f, "EnableTracing") == 2);
	/* the session goes on */
	UNTIL(f, stat(f->out, &st) == 0 && st.st_size > 0);
	assert_false(f->done);
	assert_int_equal(packets_on_disk(f), 3);
}

static void
a_read_that_brings_much_is_followed_by_the_next_at_once(void **state)
{
	struct fixture *f = *state;
	unsigned i;

	f->fake.enable_error = "write_into_file needs a file descriptor";
	/* one buffer of 4 KiB */
	RECORD(f, INTO_FILE "\x0a\x02\x08\x04");
	UNTIL(f, count(f, "EnableTracing") == 1);
	f->fake.enable_error = NULL;
	/* At one a second this would take longer than the test may. */
	for (i = 1; i <= 50; i++) {
		f->fake.read_packets = 100;
		UNTIL(f, count(f, "ReadBuffers") == i);
	}
	record_session_stop(f->session);
	UNTIL(f, f->done);
	assert_true(f->result.whole);
	assert_true(packets_on_disk(f) >= 5000);
}

static void
a_size_limit_holds_when_the_buffers_are_read(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	f->fake.enable_error = "write_into_file needs a file descriptor";
	f->fake.packet_bytes = 1000;
	/* max_file_size_bytes: 10000 */
	RECORD(f, INTO_FILE "\x48\x64" "\x50\x90\x4e");
	UNTIL(f, count(f, "EnableTracing") == 1);
	f->fake.enable_error = NULL;
	f->fake.read_packets = 300;
	UNTIL(f, f->done);
	assert_true(f->result.whole);
	assert_true(called(f, "DisableTracing"));
	assert_int_equal(stat(f->out, &st), 0);
	assert_true(st.st_size > 8000 && st.st_size <= 10000);
	assert_int_equal(packets_on_disk(f), 9);
}

static void
a_reader_that_leaves_the_pipe_is_a_failure(void **state)
{
	struct fixture *f = *state;
	int fd;

	assert_int_equal(mkfifo(f->out, 0600), 0);
	fd = open(f->out, O_RDONLY | O_NONBLOCK);
	RECORD(f, NOTHING);
	f->fake.read_packets = 10;
	f->fake.packet_bytes = 100000; /* more than a pipe takes */
	f->fake.hold_read = true;
	UNTIL(f, called(f, "EnableTracing"));
	fake_collector_end_session(&f->fake);
	UNTIL(f, called(f, "ReadBuffers"));
	close(fd);
	UNTIL(f, f->done);
	assert_false(f->result.whole);
	assert_non_null(strstr(f->result.failure, "went away"));
}

static void
producers_get_the_names_that_the_service_knows(void **state)
{
	struct fixture *f = *state;
	const struct trace_producer *p;
	/* trusted_packet_sequence_id 2, trusted_pid 101 */
	const uint8_t packet[] = { 10 << 3, 2, 0xf8, 4, 101 };

	RECORD(f, NOTHING);
	UNTIL(f, called(f, "EnableTracing"));
	trace_summary_packet(f->summary, packet, sizeof(packet));
	fake_collector_end_session(&f->fake);
	UNTIL(f, f->done);
	assert_int_equal(trace_summary_producers(f->summary, &p), 1);
	assert_int_equal(p[0].pid, 101);
	assert_string_equal(p[0].name, "two");
}

static void
a_detached_session_is_started_and_left_behind(void **state)
{
	struct fixture *f = *state;
	struct record_session_setup with = plain(f);

	with.kind = RECORD_DETACH;
	with.key = "k";
	record_as(f, with, INTO_FILE, sizeof(INTO_FILE) - 1);
	UNTIL(f, f->done);
	assert_true(f->result.whole && f->result.began);
	assert_true(f->fake.fd >= 0);
	assert_string_equal(f->fake.calls,
	    "QueryServiceState EnableTracing Detach ");
	assert_memory_equal(f->fake.args.data, "\x0a\x01k", 3);
}

static void
a_session_that_is_refused_cannot_be_left_behind(void **state)
{
	struct fixture *f = *state;
	struct record_session_setup with = plain(f);

	with.kind = RECORD_DETACH;
	with.key = "k";
	f->fake.enable_error = "no";
	record_as(f, with, INTO_FILE, sizeof(INTO_FILE) - 1);
	UNTIL(f, f->done);
	assert_false(f->result.whole);
	assert_non_null(strstr(f->result.failure, "says: no"));
}

static void
attach(struct fixture *f, bool stop)
{
	struct record_session_setup with = plain(f);

	with.kind = RECORD_ATTACH;
	with.key = "k";
	with.stop_attached = stop;
	with.notify = &f->notify;
	begin(f, &with);
}

static void
a_session_that_was_left_behind_is_followed_to_its_end(void **state)
{
	struct fixture *f = *state;

	f->fake.attach_writes = true;
	attach(f, false);
	UNTIL(f, called(f, "EnableTracing"));
	assert_memory_equal(f->fake.config.data, "\x10\x01", 2);
	fake_collector_end_session(&f->fake);
	UNTIL(f, f->done);
	assert_true(f->result.whole);
	assert_true(called(f, "Attach EnableTracing "));
	assert_false(called(f, "ReadBuffers"));
}

static void
a_session_that_is_attached_can_be_stopped_at_once(void **state)
{
	struct fixture *f = *state;

	f->fake.attach_writes = true;
	attach(f, true);
	UNTIL(f, f->done);
	assert_true(f->result.whole);
	assert_true(called(f, "Attach EnableTracing Flush DisableTracing "));
}

static void
nothing_to_attach_to_is_told_apart(void **state)
{
	struct fixture *f = *state;

	f->fake.refuse = "Attach";
	attach(f, false);
	UNTIL(f, f->done);
	assert_true(f->result.not_detached);
	assert_false(f->result.whole);
}

static void
a_session_without_a_file_is_detached_again(void **state)
{
	struct fixture *f = *state;

	attach(f, true);
	UNTIL(f, f->done);
	assert_false(f->result.whole || f->result.not_detached);
	assert_non_null(strstr(f->result.failure, "it is detached again"));
	assert_string_equal(f->fake.calls, "Attach Detach ");
}

static void
copy(struct fixture *f)
{
	static const struct consumer_clone which = {
		.name = "ring", .skip_trace_filter = true, .fd = -1,
	};
	struct record_session_setup with = plain(f);
	char err[600];

	f->file = record_file_open(f->out, false, err, sizeof(err));
	assert_non_null(f->file);
	with.kind = RECORD_CLONE;
	with.clone = &which;
	with.file = f->file;
	begin(f, &with);
}

static void
a_copy_is_read_and_whole_on_disk(void **state)
{
	struct fixture *f = *state;

	f->fake.read_packets = 300;
	copy(f);
	UNTIL(f, f->done);
	assert_string_equal(f->result.failure, "");
	assert_true(f->result.whole);
	assert_int_equal(packets_on_disk(f), 300);
	assert_int_equal(trace_summary_totals(f->summary)->packets, 300);
	assert_string_equal(f->fake.calls,
	    "QueryServiceState CloneSession ReadBuffers ");
}

static void
a_copy_that_is_refused_leaves_no_file(void **state)
{
	struct fixture *f = *state;

	f->fake.refuse = "CloneSession";
	copy(f);
	UNTIL(f, f->done);
	assert_non_null(strstr(f->result.failure, "no such session"));
	assert_true(record_file_remove_if_empty(f->file));
}

static void
a_delay_comes_before_the_connection_and_can_be_interrupted(void **state)
{
	struct fixture *f = *state;
	struct record_session_setup with = plain(f);

	with.delay_ms = 3600000;
	record_as(f, with, NOTHING, 0);
	loop_run_once(f->loop);
	assert_string_equal(f->fake.calls, "");
	assert_null(f->fake.conn);
	record_session_stop(f->session);
	assert_true(f->done);
	assert_non_null(strstr(f->result.failure, "before the recording"));
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_session_that_ends_is_read_and_whole_on_disk),
		T(the_service_writes_into_the_file_that_is_passed),
		T(a_file_that_ends_within_a_packet_is_not_whole),
		T(an_error_of_the_service_is_a_failure),
		T(an_error_later_keeps_what_the_file_holds),
		T(stopping_flushes_ends_the_session_and_keeps_the_trace),
		T(a_flush_that_fails_does_not_keep_it_from_ending),
		T(stopping_twice_gives_up_and_leaves_whole_packets),
		T(stopping_before_the_connection_is_a_failure),
		T(a_collector_that_goes_away_is_a_failure),
		T(a_collector_that_is_not_there_says_how_to_start_one),
		T(a_read_that_fails_is_a_failure),
		T(a_deferred_session_is_started),
		T(whoever_waits_for_the_start_is_told),
		T(a_pipe_gets_a_file_session_read_from_the_buffers),
		T(a_descriptor_that_was_lost_on_the_way_turns_into_reading),
		T(another_refusal_is_no_reason_to_try_again),
		T(a_session_that_does_not_end_is_ended_and_kept),
		T(a_file_and_a_trigger_that_ends_it_are_not_asked_for),
		T(a_file_may_begin_with_a_trigger),
		T(what_is_read_meanwhile_is_in_the_file_meanwhile),
		T(a_read_that_brings_much_is_followed_by_the_next_at_once),
		T(a_size_limit_holds_when_the_buffers_are_read),
		T(a_reader_that_leaves_the_pipe_is_a_failure),
		T(producers_get_the_names_that_the_service_knows),
		T(a_detached_session_is_started_and_left_behind),
		T(a_session_that_is_refused_cannot_be_left_behind),
		T(a_session_that_was_left_behind_is_followed_to_its_end),
		T(a_session_that_is_attached_can_be_stopped_at_once),
		T(nothing_to_attach_to_is_told_apart),
		T(a_session_without_a_file_is_detached_again),
		T(a_copy_is_read_and_whole_on_disk),
		T(a_copy_that_is_refused_leaves_no_file),
		T(a_delay_comes_before_the_connection_and_can_be_interrupted),
	};

	log_init("test_record_session", LOG_LEVEL_ERROR);
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("record_session", tests, NULL,
	    NULL);
}
