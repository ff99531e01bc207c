#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/library/consumer_loop.h"
#include "client/tracing/consumer/consumer.h"
#include "protos/consumer_port.pb-c.h"
#include "protos/service_state.pb-c.h"
#include "protos/trace_stats.pb-c.h"
#include "tests/unit/client/library/fake_collector.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/socket/addr.h"

struct fixture {
	char dir[64];
	char path[128];
	struct loop *loop;
	struct fake_collector fake;
	struct consumer *consumer;
	/* what the consumer told */
	bool connected;
	char disconnected[300];
	bool disabled;
	char error[300]; /* of tracing_disabled, read_done, clone */
	unsigned packets;
	size_t bytes;
	bool wrong_packet;
	bool read_done;
	bool free_on_packet;
	bool pause_on_packet;
	unsigned observed;
	int done; /* calls of done_cb and the like */
	bool ok;
	uint64_t number;
	struct consumer_cloned cloned;
	uint8_t raw[100];
	size_t raw_len;
};

static void
connected_cb(void *arg)
{
	struct fixture *f = arg;

	f->connected = true;
}

static void
disconnected_cb(void *arg, const char *why)
{
	struct fixture *f = arg;

	snprintf(f->disconnected, sizeof(f->disconnected), "%s", why);
}

static void
tracing_disabled_cb(void *arg, const char *error)
{
	struct fixture *f = arg;

	f->disabled = true;
	snprintf(f->error, sizeof(f->error), "%s", error == NULL ? "" : error);
}

static void
packet_cb(void *arg, const uint8_t *data, size_t len)
{
	struct fixture *f = arg;
	uint8_t *want = malloc(len);

	fake_collector_packet(want, ++f->packets, len);
	if (memcmp(want, data, len) != 0)
		f->wrong_packet = true;
	free(want);
	f->bytes += len;
	if (f->pause_on_packet)
		consumer_pause(f->consumer);
	if (f->free_on_packet) {
		consumer_free(f->consumer);
		f->consumer = NULL;
	}
}

static void
read_done_cb(void *arg, const char *error)
{
	struct fixture *f = arg;

	f->read_done = true;
	snprintf(f->error, sizeof(f->error), "%s", error == NULL ? "" : error);
}

static void
observed_cb(void *arg, const uint8_t *events, size_t len)
{
	struct fixture *f = arg;

	assert_int_equal(len, 2);
	assert_memory_equal(events, "\x10\x01", 2); /* all started */
	f->observed++;
}

static const struct consumer_ops ops = {
	.connected = connected_cb,
	.disconnected = disconnected_cb,
	.tracing_disabled = tracing_disabled_cb,
	.packet = packet_cb,
	.read_done = read_done_cb,
	.observed = observed_cb,
};

static void
done_cb(void *arg, bool ok)
{
	struct fixture *f = arg;

	f->done++;
	f->ok = ok;
}

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
	struct addr a;
	char err[300];

	snprintf(f->dir, sizeof(f->dir), "/tmp/test_consumer.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/consumer", f->dir);
	f->loop = loop_new();
	fake_collector_init(&f->fake, f->loop, f->path);
	assert_int_equal(addr_parse(&a, f->path, err, sizeof(err)), 0);
	f->consumer = consumer_loop_new(f->loop, &(struct consumer_loop_setup){
	    .address = &a, .ops = &ops, .arg = f }, err, sizeof(err));
	assert_non_null(f->consumer);
	assert_false(f->connected);
	UNTIL(f, f->connected);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	consumer_free(f->consumer);
	fake_collector_done(&f->fake);
	loop_free(f->loop);
	rmdir(f->dir);
	free(f);
	return 0;
}

static void
a_session_carries_its_config_and_file_and_ends_well(void **state)
{
	struct fixture *f = *state;
	Perfetto__Protos__EnableTracingRequest *m;
	struct stat mine, theirs;
	FILE *file = tmpfile();

	assert_true(consumer_can_pass_fds(f->consumer));
	consumer_enable_tracing(f->consumer, (const uint8_t *)"\x18\x07", 2,
	    fileno(file));
	UNTIL(f, f->fake.config.len > 0);
	m = perfetto__protos__enable_tracing_request__unpack(NULL,
	    f->fake.config.len, f->fake.config.data);
	assert_int_equal(m->trace_config->duration_ms, 7);
	perfetto__protos__enable_tracing_request__free_unpacked(m, NULL);
	assert_true(f->fake.fd >= 0);
	assert_int_equal(fstat(fileno(file), &mine), 0);
	assert_int_equal(fstat(f->fake.fd, &theirs), 0);
	assert_true(mine.st_ino == theirs.st_ino);
	fclose(file);

	assert_false(f->disabled);
	fake_collector_end_session(&f->fake);
	UNTIL(f, f->disabled);
	assert_string_equal(f->error, "");
}

static void
a_refused_session_ends_with_the_sentence_of_the_service(void **state)
{
	struct fixture *f = *state;

	f->fake.enable_error = "too many buffers";
	consumer_enable_tracing(f->consumer, NULL, 0, -1);
	UNTIL(f, f->disabled);
	assert_string_equal(f->error, "too many buffers");
	assert_int_equal(f->fake.fd, -1);
}

static void
a_rejected_session_ends_with_a_sentence_of_ours(void **state)
{
	struct fixture *f = *state;

	f->fake.refuse = "EnableTracing";
	consumer_enable_tracing(f->consumer, NULL, 0, -1);
	UNTIL(f, f->disabled);
	assert_non_null(strstr(f->error, "refuses to start"));
}

static void
packets_come_whole_and_in_order(void **state)
{
	struct fixture *f = *state;

	f->fake.read_packets = 500;
	consumer_read_buffers(f->consumer);
	UNTIL(f, f->read_done);
	assert_string_equal(f->error, "");
	assert_int_equal(f->packets, 500);
	assert_int_equal(f->bytes, 500 * 100);
	assert_false(f->wrong_packet);
}

static void
a_packet_in_many_slices_is_put_together(void **state)
{
	struct fixture *f = *state;

	f->fake.read_packets = 3;
	f->fake.packet_bytes = 300000;
	f->fake.slice_bytes = 100000;
	consumer_read_buffers(f->consumer);
	UNTIL(f, f->read_done);
	assert_string_equal(f->error, "");
	assert_int_equal(f->packets, 3);
	assert_int_equal(f->bytes, 900000);
	assert_false(f->wrong_packet);
}

static void
an_empty_trace_is_a_read_without_packets(void **state)
{
	struct fixture *f = *state;

	consumer_read_buffers(f->consumer);
	UNTIL(f, f->read_done);
	assert_string_equal(f->error, "");
	assert_int_equal(f->packets, 0);
}

static void
a_read_that_ends_within_a_packet_is_an_error(void **state)
{
	struct fixture *f = *state;

	f->fake.read_packets = 2;
	f->fake.cut_last = true;
	consumer_read_buffers(f->consumer);
	UNTIL(f, f->read_done);
	assert_int_equal(f->packets, 1);
	assert_non_null(strstr(f->error, "within a packet"));

	/* and leaves nothing behind for the next one */
	f->read_done = false;
	f->fake.cut_last = false;
	f->fake.read_packets = 1;
	f->packets = 2;
	consumer_read_buffers(f->consumer);
	UNTIL(f, f->read_done);
	assert_string_equal(f->error, "");
	assert_int_equal(f->packets, 3);
	assert_false(f->wrong_packet);
}

static void
a_refused_read_is_an_error(void **state)
{
	struct fixture *f = *state;

	f->fake.refuse = "ReadBuffers";
	consumer_read_buffers(f->consumer);
	UNTIL(f, f->read_done);
	assert_non_null(strstr(f->error, "refused"));
}

static void
a_paused_consumer_holds_packets_back(void **state)
{
	struct fixture *f = *state;
	unsigned before;
	int i;

	f->fake.packet_bytes = 60000;
	f->fake.read_packets = 10;
	f->pause_on_packet = true;
	consumer_read_buffers(f->consumer);
	UNTIL(f, f->packets > 0);
	before = f->packets;
	for (i = 0; i < 20; i++)
		loop_run_once(f->loop);
	assert_int_equal(f->packets, before);
	f->pause_on_packet = false;
	consumer_resume(f->consumer);
	UNTIL(f, f->read_done);
	assert_int_equal(f->packets, 10);
	assert_false(f->wrong_packet);
}

static void
it_may_be_freed_while_packets_come(void **state)
{
	struct fixture *f = *state;

	f->free_on_packet = true;
	f->fake.read_packets = 10;
	consumer_read_buffers(f->consumer);
	UNTIL(f, f->fake.conn == NULL);
	assert_int_equal(f->packets, 1);
	assert_false(f->read_done);
	assert_string_equal(f->disconnected, "");
}

static void
flush_and_disable_tell_how_they_went(void **state)
{
	struct fixture *f = *state;

	consumer_flush(f->consumer, 300, CONSUMER_FLUSH_AT_STOP, done_cb, f);
	UNTIL(f, f->done == 1);
	assert_true(f->ok);
	assert_int_equal(f->fake.args.len, 5);
	assert_memory_equal(f->fake.args.data, "\x08\xac\x02\x10\x22", 5);
	f->fake.refuse = "Flush";
	consumer_flush(f->consumer, 0, 0, done_cb, f);
	UNTIL(f, f->done == 2);
	assert_false(f->ok);
	consumer_enable_tracing(f->consumer, NULL, 0, -1);
	consumer_start_tracing(f->consumer, done_cb, f);
	consumer_disable_tracing(f->consumer, done_cb, f);
	consumer_free_buffers(f->consumer, NULL, NULL);
	UNTIL(f, f->done == 4 && f->disabled);
	assert_true(f->ok);
	assert_string_equal(f->fake.calls, "Flush Flush EnableTracing "
	    "StartTracing DisableTracing FreeBuffers ");
}

static void
stats_cb(void *arg, const uint8_t *data, size_t len)
{
	Perfetto__Protos__TraceStats *stats;
	struct fixture *f = arg;

	f->done++;
	f->number = 0;
	if (data == NULL)
		return;
	stats = perfetto__protos__trace_stats__unpack(NULL, len, data);
	f->number = stats->buffer_stats[0]->bytes_written;
	perfetto__protos__trace_stats__free_unpacked(stats, NULL);
}

static void
statistics_come_as_a_message(void **state)
{
	struct fixture *f = *state;

	consumer_get_trace_stats(f->consumer, stats_cb, f);
	UNTIL(f, f->done == 1);
	assert_int_equal(f->number, 3000);
	f->fake.refuse = "GetTraceStats";
	consumer_get_trace_stats(f->consumer, stats_cb, f);
	UNTIL(f, f->done == 2);
	assert_int_equal(f->number, 0);
}

static void
state_cb(void *arg, const uint8_t *state, size_t len)
{
	struct fixture *f = arg;

	f->done++;
	f->ok = state != NULL;
	f->raw_len = len;
	assert_true(len <= sizeof(f->raw));
	if (state != NULL)
		memcpy(f->raw, state, len);
}

static void
a_service_state_in_parts_becomes_one(void **state)
{
	Perfetto__Protos__TracingServiceState *m;
	struct fixture *f = *state;

	consumer_query_service_state(f->consumer, false, state_cb, f);
	UNTIL(f, f->done == 1);
	assert_memory_equal(f->fake.args.data, "\x08\x00", 2);
	m = perfetto__protos__tracing_service_state__unpack(NULL, f->raw_len,
	    f->raw);
	assert_non_null(m);
	assert_int_equal(m->n_producers, 2);
	assert_string_equal(m->producers[1]->name, "two");
	assert_int_equal(m->n_data_sources, 2);
	assert_string_equal(m->data_sources[1]->ds_descriptor->name, "two");
	perfetto__protos__tracing_service_state__free_unpacked(m, NULL);
	f->fake.refuse = "QueryServiceState";
	consumer_query_service_state(f->consumer, false, state_cb, f);
	UNTIL(f, f->done == 2);
	assert_false(f->ok);
}

static void
observed_events_come_until_the_end(void **state)
{
	static const uint8_t started[] = { 0x0a, 0x02, 0x10, 0x01 };
	struct fixture *f = *state;

	consumer_observe_events(f->consumer, 2 | 4);
	UNTIL(f, f->fake.observe.conn != NULL);
	assert_memory_equal(f->fake.args.data, "\x08\x02\x08\x04", 4);
	rpc_reply(f->fake.observe, started, sizeof(started), true, -1);
	rpc_reply(f->fake.observe, started, sizeof(started), true, -1);
	UNTIL(f, f->observed == 2);
	rpc_reply(f->fake.observe, NULL, 0, false, -1);
	consumer_get_trace_stats(f->consumer, stats_cb, f);
	UNTIL(f, f->done == 1);
	assert_int_equal(f->observed, 2);
}

static void
attach_cb(void *arg, const uint8_t *config, size_t len)
{
	struct fixture *f = arg;

	f->done++;
	f->ok = config != NULL;
	f->number = len;
}

static void
a_session_can_be_detached_and_attached(void **state)
{
	struct fixture *f = *state;

	consumer_detach(f->consumer, "key1", done_cb, f);
	UNTIL(f, f->done == 1);
	assert_true(f->ok);
	assert_memory_equal(f->fake.args.data, "\x0a\x04key1", 6);
	consumer_attach(f->consumer, "key1", attach_cb, f);
	UNTIL(f, f->done == 2);
	assert_true(f->ok);
	assert_int_equal(f->number, 3);
	consumer_watch_tracing(f->consumer);
	UNTIL(f, f->fake.config.len > 0);
	assert_memory_equal(f->fake.config.data, "\x10\x01", 2);
	f->fake.refuse = "Attach";
	consumer_attach(f->consumer, "other", attach_cb, f);
	UNTIL(f, f->done == 3);
	assert_false(f->ok);
}

static void
clone_cb(void *arg, const struct consumer_cloned *r)
{
	struct fixture *f = arg;

	f->done++;
	f->cloned = *r;
	snprintf(f->error, sizeof(f->error), "%s",
	    r->error == NULL ? "" : r->error);
}

static void
a_session_can_be_cloned_by_name_or_number(void **state)
{
	struct fixture *f = *state;

	struct consumer_clone which = { .name = "ring", .fd = -1 };

	consumer_clone_session(f->consumer, &which, clone_cb, f);
	UNTIL(f, f->done == 1);
	assert_string_equal(f->error, "");
	assert_memory_equal(f->fake.args.data, "\x22\x04ring", 6);
	f->fake.refuse = "CloneSession";
	which = (struct consumer_clone){ .session_id = 9, .fd = -1 };
	consumer_clone_session(f->consumer, &which, clone_cb, f);
	UNTIL(f, f->done == 2);
	assert_string_equal(f->error, "no such session");
	assert_memory_equal(f->fake.args.data, "\x08\x09", 2);
}

static void
a_lost_connection_is_told_once_and_nothing_after(void **state)
{
	struct fixture *f = *state;
	int i;

	consumer_enable_tracing(f->consumer, NULL, 0, -1);
	f->fake.hold_flush = true;
	consumer_flush(f->consumer, 0, 0, done_cb, f);
	UNTIL(f, strstr(f->fake.calls, "Flush") != NULL);
	rpc_conn_close(f->fake.conn, "the test wants it");
	UNTIL(f, f->disconnected[0] != '\0');
	for (i = 0; i < 5; i++)
		loop_run_once(f->loop);
	assert_false(f->disabled);
	assert_int_equal(f->done, 0);
}

static void
nobody_listening_is_told_as_a_sentence(void **state)
{
	struct fixture *f = *state;
	struct addr a;
	char path[160], err[300];

	consumer_free(f->consumer);
	snprintf(path, sizeof(path), "%s/nobody", f->dir);
	assert_int_equal(addr_parse(&a, path, err, sizeof(err)), 0);
	f->consumer = consumer_loop_new(f->loop, &(struct consumer_loop_setup){
	    .address = &a, .ops = &ops, .arg = f }, err, sizeof(err));
	assert_non_null(f->consumer);
	UNTIL(f, f->disconnected[0] != '\0');
	assert_non_null(strstr(f->disconnected, path));
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_session_carries_its_config_and_file_and_ends_well),
		T(a_refused_session_ends_with_the_sentence_of_the_service),
		T(a_rejected_session_ends_with_a_sentence_of_ours),
		T(packets_come_whole_and_in_order),
		T(a_packet_in_many_slices_is_put_together),
		T(an_empty_trace_is_a_read_without_packets),
		T(a_read_that_ends_within_a_packet_is_an_error),
		T(a_refused_read_is_an_error),
		T(a_paused_consumer_holds_packets_back),
		T(it_may_be_freed_while_packets_come),
		T(flush_and_disable_tell_how_they_went),
		T(statistics_come_as_a_message),
		T(a_service_state_in_parts_becomes_one),
		T(observed_events_come_until_the_end),
		T(a_session_can_be_detached_and_attached),
		T(a_session_can_be_cloned_by_name_or_number),
		T(a_lost_connection_is_told_once_and_nothing_after),
		T(nobody_listening_is_told_as_a_sentence),
	};

	log_init("test_consumer", LOG_LEVEL_ERROR);
	return cmocka_run_group_tests_name("consumer", tests, NULL, NULL);
}
