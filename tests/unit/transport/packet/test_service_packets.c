#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "protos/trace_packet.pb-c.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/clock/clock_snapshot.h"
#include "transport/clock/system_info.h"
#include "transport/packet/packet_stats.h"
#include "transport/packet/service_packets.h"
#include "transport/wire/pb_writer.h"

typedef Perfetto__Protos__TracePacket Packet;

#define DATA(kind) PERFETTO__PROTOS__TRACE_PACKET__DATA_##kind
#define TS 2647380214914u

static struct pb_writer w;

static int
setup(void **state)
{
	pb_writer_init(&w);
	return 0;
}

static int
teardown(void **state)
{
	pb_writer_done(&w);
	return 0;
}

/* What is in w, decoded; checks what all packets of the service have. */
static Packet *
decode(int data_case)
{
	Packet *p;

	assert_false(w.failed);
	p = perfetto__protos__trace_packet__unpack(NULL, w.len, w.data);
	assert_non_null(p);
	assert_int_equal(p->data_case, data_case);
	assert_int_equal(p->base.n_unknown_fields, 0);
	assert_int_equal(p->trusted_packet_sequence_id, 1);
	assert_false(p->has_trusted_pid);
	assert_false(p->has_previous_packet_dropped);
	return p;
}

static void
assert_timed(const Packet *p, uint64_t ts)
{
	assert_true(p->has_timestamp);
	assert_int_equal(p->timestamp, ts);
	assert_int_equal(p->timestamp_clock_id, 6);
	assert_false(p->has_machine_id);
}

static void
release(Packet *p)
{
	perfetto__protos__trace_packet__free_unpacked(p, NULL);
	pb_writer_reset(&w);
}

/* Byte for byte what Perfetto's service wrote (consumer-record.jsonl). */
static void
assert_recorded(const char *hex)
{
	static const char digits[] = "0123456789abcdef";
	char *got = calloc(1, 2 * w.len + 1);
	size_t i;

	for (i = 0; i < w.len; i++) {
		got[2 * i] = digits[w.data[i] >> 4];
		got[2 * i + 1] = digits[w.data[i] & 15];
	}
	assert_string_equal(got, hex);
	free(got);
	pb_writer_reset(&w);
}

static void
a_clock_snapshot_names_its_clocks_and_the_primary_one(void **state)
{
	static const struct clock_reading recorded[] = {
		{ 6, 2647380211597 }, { 2, 1795226474082004863 },
		{ 4, 2647380211797 },
	};
	struct clock_snapshot now;
	Packet *p;
	size_t i;

	service_packets_clock_snapshot(&w, 1000, recorded, 3, 3);
	p = decode(DATA(CLOCK_SNAPSHOT));
	assert_int_equal(p->trusted_uid, 1000);
	assert_int_equal(p->timestamp_clock_id, 6);
	assert_int_equal(p->clock_snapshot->primary_trace_clock, 3);
	assert_int_equal(p->clock_snapshot->n_clocks, 3);
	for (i = 0; i < 3; i++) {
		assert_int_equal(p->clock_snapshot->clocks[i]->clock_id,
		    recorded[i].id);
		assert_int_equal(p->clock_snapshot->clocks[i]->timestamp,
		    recorded[i].ns);
	}
	release(p);

	clock_snapshot_take(&now);
	service_packets_clock_snapshot(&w, 0, now.clocks, CLOCK_SNAPSHOT_N,
	    SERVICE_PACKETS_CLOCK_BOOTTIME);
	p = decode(DATA(CLOCK_SNAPSHOT));
	assert_int_equal(p->clock_snapshot->n_clocks, 6);
	assert_int_equal(p->clock_snapshot->primary_trace_clock, 6);
	release(p);
}

static void
the_sync_marker_is_the_recorded_one(void **state)
{
	service_packets_sync_marker(&w, 0);
	assert_recorded("18005001a2021082477a76b28d42ba81dc33326d57a079");
}

static void
the_uuid_is_the_recorded_one(void **state)
{
	/* trace-relay.pftrace */
	service_packets_trace_uuid(&w, 0, 7041067028938979128,
	    2728756879465060667);
	assert_recorded("18005001d00306ca051410bbb2acf7c9bd9fef2508b8eefddc8"
	    "5a5b9db61");
}

static void
a_uuid_may_have_its_top_bits_set(void **state)
{
	Packet *p;

	service_packets_trace_uuid(&w, 0, -2, INT64_MIN);
	p = decode(DATA(TRACE_UUID));
	assert_int_equal(p->trace_uuid->msb, -2);
	assert_int_equal(p->trace_uuid->lsb, INT64_MIN);
	release(p);
}

static void
the_config_is_passed_through_byte_for_byte(void **state)
{
	/* duration_ms 1500 spelled long, and field 1000 that nobody knows */
	static const uint8_t config[] = { 0x18, 0xdc, 0x8b, 0x00, 0xc0, 0x3e,
		7 };
	Packet *p;

	service_packets_trace_config(&w, 0, config, sizeof(config));
	assert_memory_equal(w.data + w.len - sizeof(config), config,
	    sizeof(config));
	p = decode(DATA(TRACE_CONFIG));
	assert_int_equal(p->trace_config->duration_ms, 1500);
	release(p);
	service_packets_trace_config(&w, 0, NULL, 0);
	release(decode(DATA(TRACE_CONFIG)));
}

static void
attributes_come_from_all_pieces_of_the_config(void **state)
{
	/*
	 * duration_ms: 5, and trace_attributes { attribute { key: "a"
	 * long_value: 7 } }, twice with another key
	 */
	static const uint8_t config[] = { 0x18, 5, 0x82, 0x03, 7, 0x0a, 5,
		0x0a, 1, 'a', 0x10, 7, 0x82, 0x03, 8, 0x0a, 6, 0x0a, 1, 'b',
		0x1a, 1, 'x' };
	Packet *p;

	service_packets_trace_attributes(&w, 0, config, sizeof(config));
	p = decode(DATA(TRACE_ATTRIBUTES));
	assert_int_equal(p->trace_attributes->n_attribute, 2);
	assert_string_equal(p->trace_attributes->attribute[0]->key, "a");
	assert_int_equal(p->trace_attributes->attribute[0]->long_value, 7);
	assert_string_equal(p->trace_attributes->attribute[1]->string_value,
	    "x");
	release(p);
}

static void
put_system_info(int32_t uid, const struct system_info *s)
{
	struct pb_writer info;

	pb_writer_init(&info);
	system_info_encode(&info, s);
	service_packets_remote_system_info(&w, uid, 0, info.data, info.len);
	pb_writer_done(&info);
}

static void
the_system_info_is_the_recorded_one(void **state)
{
	struct system_info s = {
		.uts = {
			.sysname = "Linux",
			.version = "#1 SMP PREEMPT_DYNAMIC @0",
			.release = "6.18.44-generic",
			.machine = "x86_64",
		},
		.page_size = 4096,
		.num_cpus = 2,
		.system_ram_bytes = 25276514304,
		.version = "Perfetto v0.0 (unknown)",
	};

	put_system_info(0, &s);
	assert_recorded("ea02642217506572666574746f2076302e302028756e6b6e6f776"
	    "e2938000a3b0a054c696e75781219233120534d5020505245454d50545f44594e"
	    "414d494320403022067838365f36341a0f362e31382e34342d67656e657269633"
	    "0802080018080e4945e400218005001d00306");
}

static void
the_system_info_of_this_machine_is_complete(void **state)
{
	struct system_info s;
	Perfetto__Protos__SystemInfo *i;
	Packet *p;

	system_info_collect(&s, "bench-7");
	put_system_info(5, &s);
	p = decode(DATA(SYSTEM_INFO));
	i = p->system_info;
	assert_string_equal(i->utsname->sysname, "Linux");
	assert_true(i->utsname->release[0] != '\0');
	assert_int_equal(i->page_size, sysconf(_SC_PAGESIZE));
	assert_int_equal(i->num_cpus, sysconf(_SC_NPROCESSORS_CONF));
	assert_int_equal(i->hz, sysconf(_SC_CLK_TCK));
	assert_true(i->has_timezone_off_mins);
	assert_true(i->system_ram_bytes > 16u << 20);
	assert_string_equal(i->machine_name, "bench-7");
	assert_non_null(strstr(i->tracing_service_version, "Tributary"));
	release(p);

	system_info_collect(&s, NULL);
	put_system_info(5, &s);
	p = decode(DATA(SYSTEM_INFO));
	assert_true(p->system_info->machine_name == NULL ||
	    p->system_info->machine_name[0] == '\0');
	release(p);
}

static void
the_system_info_of_another_machine_names_it_and_no_clock(void **state)
{
	static const uint8_t info[] = { 0x30, 0x80, 0x20, 0x40, 0x08 };
	Packet *p;

	service_packets_remote_system_info(&w, 0, 2306351469u, info,
	    sizeof(info));
	p = decode(DATA(SYSTEM_INFO));
	assert_int_equal(p->machine_id, 2306351469u);
	assert_int_equal(p->system_info->page_size, 4096);
	assert_int_equal(p->system_info->num_cpus, 8);
	assert_false(p->has_timestamp_clock_id);
	release(p);

	service_packets_remote_system_info(&w, 0, 0, info, sizeof(info));
	p = decode(DATA(SYSTEM_INFO));
	assert_false(p->has_machine_id);
	assert_int_equal(p->timestamp_clock_id, 6);
	release(p);
}

static void
an_event_is_the_recorded_one(void **state)
{
	/* trace-record.pftrace: 8: 2647380214914, 69 { 2: 1 } */
	service_packets_event(&w, 0, 2647380214914,
	    SERVICE_EVENT_TRACING_STARTED);
	assert_recorded("408289a1a1864d18005001d00306aa04021001");
}

static void
every_event_is_of_its_kind(void **state)
{
	static const enum service_event events[] = {
		SERVICE_EVENT_ALL_DATA_SOURCES_STARTED,
		SERVICE_EVENT_TRACING_STARTED,
		SERVICE_EVENT_ALL_DATA_SOURCES_FLUSHED,
		SERVICE_EVENT_READ_TRACING_BUFFERS_COMPLETED,
		SERVICE_EVENT_TRACING_DISABLED,
		SERVICE_EVENT_SEIZED_FOR_BUGREPORT,
		SERVICE_EVENT_FLUSH_STARTED,
		SERVICE_EVENT_CLONE_STARTED,
	};
	Packet *p;
	size_t i;

	for (i = 0; i < sizeof(events) / sizeof(*events); i++) {
		service_packets_event(&w, 0, TS + i, events[i]);
		p = decode(DATA(SERVICE_EVENT));
		assert_timed(p, TS + i);
		/* protobuf-c names the cases by their field numbers */
		assert_int_equal(p->service_event->event_type_case, events[i]);
		assert_true(p->service_event->tracing_started);
		release(p);
	}
}

static void
slow_data_sources_are_named_up_to_a_limit(void **state)
{
	struct service_slow_source sources[SERVICE_PACKETS_SLOW_MAX + 5];
	Perfetto__Protos__TracingServiceEvent__DataSources *list;
	Packet *p;
	size_t i;

	for (i = 0; i < SERVICE_PACKETS_SLOW_MAX + 5; i++)
		sources[i] = (struct service_slow_source){ "com.a", "ds" };
	sources[1] = (struct service_slow_source){ "com.b", "track_event" };

	service_packets_slow_sources(&w, 0, TS,
	    SERVICE_EVENT_SLOW_STARTING_DATA_SOURCES, sources, 2);
	p = decode(DATA(SERVICE_EVENT));
	assert_timed(p, TS);
	assert_int_equal(p->service_event->event_type_case, 7);
	list = p->service_event->slow_starting_data_sources;
	assert_int_equal(list->n_data_source, 2);
	assert_string_equal(list->data_source[0]->producer_name, "com.a");
	assert_string_equal(list->data_source[1]->data_source_name,
	    "track_event");
	release(p);

	service_packets_slow_sources(&w, 0, TS,
	    SERVICE_EVENT_LAST_FLUSH_SLOW_DATA_SOURCES, sources,
	    SERVICE_PACKETS_SLOW_MAX + 5);
	p = decode(DATA(SERVICE_EVENT));
	assert_int_equal(p->service_event->event_type_case, 8);
	list = p->service_event->last_flush_slow_data_sources;
	assert_int_equal(list->n_data_source, SERVICE_PACKETS_SLOW_MAX);
	release(p);
}

static void
a_cloned_buffer_is_named_even_if_it_is_the_first(void **state)
{
	Packet *p;

	service_packets_buffer_cloned(&w, 0, TS, 0);
	p = decode(DATA(SERVICE_EVENT));
	assert_timed(p, TS);
	assert_int_equal(p->service_event->event_type_case, 11);
	assert_int_equal(p->service_event->buffer_cloned, 0);
	release(p);
}

static void
a_trigger_is_the_recorded_one(void **state)
{
	struct service_trigger t = {
		.name = "boom",
		.producer_name = "perfetto_cmd_producer",
		.producer_uid = 0,
		.ts = 2658023360392,
		.stop_delay_ms = 300,
	};
	Packet *p;

	/* consumer-trigger.jsonl */
	service_packets_trigger(&w, 0, &t);
	assert_recorded("f202220a04626f6f6d1215706572666574746f5f636d645f7072"
	    "6f6475636572180020ac0240888fa7f4ad4d18005001d00306");

	service_packets_clone_trigger(&w, 9, &t);
	p = decode(DATA(CLONE_SNAPSHOT_TRIGGER));
	assert_timed(p, t.ts);
	assert_int_equal(p->trusted_uid, 9);
	assert_string_equal(p->clone_snapshot_trigger->trigger_name, "boom");
	assert_int_equal(p->clone_snapshot_trigger->stop_delay_ms, 300);
	release(p);
}

static void
provenance_lists_sequences_under_their_buffers(void **state)
{
	static const struct service_sequence sequences[] = {
		{ 1, 5, 7 }, { 0, 2, 7 }, { 1, 9, -1 },
	};
	Perfetto__Protos__TraceProvenance *t;
	Packet *p;

	service_packets_provenance(&w, 0, TS, 3, sequences, 3);
	p = decode(DATA(TRACE_PROVENANCE));
	assert_timed(p, TS);
	t = p->trace_provenance;
	assert_int_equal(t->n_buffers, 3);
	assert_int_equal(t->buffers[0]->n_sequences, 1);
	assert_int_equal(t->buffers[0]->sequences[0]->id, 2);
	assert_int_equal(t->buffers[1]->n_sequences, 2);
	assert_int_equal(t->buffers[1]->sequences[0]->id, 5);
	assert_int_equal(t->buffers[1]->sequences[1]->producer_id, -1);
	assert_int_equal(t->buffers[2]->n_sequences, 0);
	release(p);

	/* trace-record.pftrace: one buffer, nothing in it yet */
	service_packets_provenance(&w, 0, 2648884055776, 1, NULL, 0);
	assert_recorded("40e09dacee8b4de20702120018005001d00306");
}

static void
a_session_event_carries_all_of_it(void **state)
{
	struct service_session_event e = {
		.state = SERVICE_SESSION_CLONED,
		.name = "ring",
		.id = 77,
		.consumer_uid = 1000,
		.num_data_sources = 3,
	};
	Packet *p;

	service_packets_session_event(&w, 0, TS, &e);
	p = decode(DATA(CONCURRENT_SESSION_EVENT));
	assert_timed(p, TS);
	assert_int_equal(p->concurrent_session_event->state, 5);
	assert_string_equal(p->concurrent_session_event->session_name, "ring");
	assert_int_equal(p->concurrent_session_event->session_id, 77);
	assert_int_equal(p->concurrent_session_event->consumer_uid, 1000);
	assert_int_equal(p->concurrent_session_event->num_data_sources, 3);
	release(p);

	e.name = NULL;
	service_packets_session_event(&w, 0, TS, &e);
	release(decode(DATA(CONCURRENT_SESSION_EVENT)));
}

static void
remote_clocks_come_in_pairs(void **state)
{
	static const struct clock_reading client[] = {
		{ 6, 100 }, { 3, 90 }, { 9, 7 },
	};
	static const struct clock_reading host[] = { { 6, 200 } };
	struct service_clock_pair pairs[2] = {
		{ client, 3, host, 1 }, { client, 1, host, 1 },
	};
	Perfetto__Protos__RemoteClockSync *r;
	Packet *p;

	service_packets_remote_clock_sync(&w, 0, 2306351469u, pairs, 2);
	p = decode(DATA(REMOTE_CLOCK_SYNC));
	assert_int_equal(p->machine_id, 2306351469u);
	r = p->remote_clock_sync;
	assert_int_equal(r->n_synced_clocks, 2);
	assert_int_equal(r->synced_clocks[0]->client_clocks->n_clocks, 3);
	assert_int_equal(
	    r->synced_clocks[0]->client_clocks->clocks[2]->clock_id, 9);
	assert_int_equal(
	    r->synced_clocks[1]->host_clocks->clocks[0]->timestamp, 200);
	release(p);
}

static void
a_chunk_is_counted_in_the_bucket_of_its_size(void **state)
{
	static const struct { size_t payload; unsigned bucket; } cases[] = {
		{ 0, 0 }, { 8, 0 }, { 9, 1 }, { 32, 1 }, { 128, 2 }, { 129, 3 },
		{ 512, 3 }, { 1024, 4 }, { 2048, 5 }, { 4096, 6 }, { 8192, 7 },
		{ 12288, 8 }, { 16384, 9 }, { 16385, 10 }, { 1u << 20, 10 },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct chunk_histogram h = { 0 };
		unsigned b;

		chunk_histogram_add(&h, cases[i].payload);
		for (b = 0; b < CHUNK_HISTOGRAM_BUCKETS; b++) {
			bool here = b == cases[i].bucket;

			assert_int_equal(h.count[b], here);
			assert_int_equal(h.sum[b],
			    here ? cases[i].payload : 0);
		}
	}
}

static void
the_stats_are_the_recorded_ones(void **state)
{
	struct tb_stats buffer = {
		.buffer_size = 2097152,
		.bytes_written = 32768,
		.bytes_read = 32768,
		.chunks_written = 1,
		.chunks_read = 1,
	};
	const struct tb_stats *buffers[] = { &buffer };
	struct packet_writer_stats writer = { .sequence = 2 };
	struct packet_stats st = {
		.buffers = buffers,
		.n_buffers = 1,
		.writers = &writer,
		.n_writers = 1,
		.producers_connected = 1,
		.producers_seen = 1,
		.data_sources_registered = 19,
		.data_sources_seen = 1,
		.tracing_sessions = 1,
		.total_buffers = 1,
		.flushes_requested = 1,
		.flushes_succeeded = 1,
		.final_flush_outcome = FINAL_FLUSH_SUCCEEDED,
	};

	chunk_histogram_add(&writer.histogram, 2308);
	service_packets_trace_stats(&w, 0, &st);
	/* consumer-record.jsonl */
	assert_recorded("18005001d003069a02770a1260808080010880800270808002100188010188"
	    "01088801208801800188018004880180088801801088018020880180408801"
	    "8060880180800192011f08022000120b00000000000001000000001a0c0000"
	    "00000000841200000000100118012013280130013801400048005000600168"
	    "0170007801");
}

static void
every_counter_has_its_own_field(void **state)
{
	struct tb_stats b = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
		16, 17, 18, 19, 20, 0 };
	const struct tb_stats *buffers[] = { &b, &b };
	struct packet_stats st = {
		.buffers = buffers,
		.n_buffers = 2,
		.producers_connected = 1,
		.producers_seen = 2,
		.data_sources_registered = 3,
		.data_sources_seen = 4,
		.tracing_sessions = 5,
		.total_buffers = 6,
		.chunks_discarded = 7,
		.patches_discarded = 8,
		.invalid_packets = 9,
		.flushes_requested = 10,
		.flushes_succeeded = 11,
		.flushes_failed = 12,
		.final_flush_outcome = FINAL_FLUSH_FAILED,
	};
	Perfetto__Protos__TraceStats *t;
	Perfetto__Protos__TraceStats__BufferStats *s;

	packet_stats_encode(&w, &st);
	t = perfetto__protos__trace_stats__unpack(NULL, w.len, w.data);
	assert_non_null(t);
	assert_int_equal(t->n_buffer_stats, 2);
	s = t->buffer_stats[1];
	assert_int_equal(s->buffer_size, 1);
	assert_int_equal(s->bytes_written, 2);
	assert_int_equal(s->bytes_overwritten, 3);
	assert_int_equal(s->bytes_read, 4);
	assert_int_equal(s->padding_bytes_written, 5);
	assert_int_equal(s->padding_bytes_cleared, 6);
	assert_int_equal(s->chunks_written, 7);
	assert_int_equal(s->chunks_rewritten, 8);
	assert_int_equal(s->chunks_relocated, 9);
	assert_int_equal(s->chunks_overwritten, 10);
	assert_int_equal(s->chunks_discarded, 11);
	assert_int_equal(s->chunks_read, 12);
	assert_int_equal(s->chunks_committed_out_of_order, 13);
	assert_int_equal(s->write_wrap_count, 14);
	assert_int_equal(s->patches_succeeded, 15);
	assert_int_equal(s->patches_failed, 16);
	assert_int_equal(s->readaheads_succeeded, 17);
	assert_int_equal(s->readaheads_failed, 18);
	assert_int_equal(s->abi_violations, 19);
	assert_int_equal(s->trace_writer_packet_loss, 20);
	assert_int_equal(t->n_chunk_payload_histogram_def, 0);
	assert_int_equal(t->n_writer_stats, 0);
	assert_int_equal(t->producers_connected, 1);
	assert_int_equal(t->producers_seen, 2);
	assert_int_equal(t->data_sources_registered, 3);
	assert_int_equal(t->data_sources_seen, 4);
	assert_int_equal(t->tracing_sessions, 5);
	assert_int_equal(t->total_buffers, 6);
	assert_int_equal(t->chunks_discarded, 7);
	assert_int_equal(t->patches_discarded, 8);
	assert_int_equal(t->invalid_packets, 9);
	assert_int_equal(t->flushes_requested, 10);
	assert_int_equal(t->flushes_succeeded, 11);
	assert_int_equal(t->flushes_failed, 12);
	assert_int_equal(t->final_flush_outcome, 2);
	assert_int_equal(t->base.n_unknown_fields, 0);
	perfetto__protos__trace_stats__free_unpacked(t, NULL);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* Where memory was short for the name of who pulled it. */
static void
a_cut_by_a_trigger_of_an_unknown_producer_names_neither(void **state)
{
	const struct service_cut cut = { .number = 2,
		.cause = SERVICE_CUT_TRIGGER, .trigger = "drop" };
	Perfetto__Protos__TracePacket *p;
	struct pb_writer w;

	pb_writer_init(&w);
	service_packets_cut_begin(&w, 0, 1, &cut);
	p = perfetto__protos__trace_packet__unpack(NULL, w.len, w.data);
	assert_non_null(p);
	assert_int_equal(p->tributary_segment_cut->number, 2);
	assert_null(p->tributary_segment_cut->trigger);
	perfetto__protos__trace_packet__free_unpacked(p, NULL);
	pb_writer_done(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_clock_snapshot_names_its_clocks_and_the_primary_one),
		T(the_sync_marker_is_the_recorded_one),
		T(the_uuid_is_the_recorded_one),
		T(a_uuid_may_have_its_top_bits_set),
		T(the_config_is_passed_through_byte_for_byte),
		T(attributes_come_from_all_pieces_of_the_config),
		T(the_system_info_is_the_recorded_one),
		T(the_system_info_of_this_machine_is_complete),
		T(the_system_info_of_another_machine_names_it_and_no_clock),
		T(an_event_is_the_recorded_one),
		T(every_event_is_of_its_kind),
		T(slow_data_sources_are_named_up_to_a_limit),
		T(a_cloned_buffer_is_named_even_if_it_is_the_first),
		T(a_trigger_is_the_recorded_one),
		T(provenance_lists_sequences_under_their_buffers),
		T(a_session_event_carries_all_of_it),
		T(remote_clocks_come_in_pairs),
		T(a_chunk_is_counted_in_the_bucket_of_its_size),
		T(the_stats_are_the_recorded_ones),
		T(every_counter_has_its_own_field),
		T(a_cut_by_a_trigger_of_an_unknown_producer_names_neither),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
