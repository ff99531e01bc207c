/*
 * The schemas as generated code: what protobuf-c must do for the service to
 * pass messages on unharmed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/data_source_config.pb-c.h"
#include "protos/ipc.pb-c.h"
#include "protos/trace_config.pb-c.h"
#include "protos/trace_packet.pb-c.h"
#include "protos/trace_stats.pb-c.h"

/* Unpacks and packs a DataSourceConfig; the caller frees the result. */
static uint8_t *
repack(const uint8_t *in, size_t in_len, size_t *out_len)
{
	Perfetto__Protos__DataSourceConfig *c;
	uint8_t *out;

	c = perfetto__protos__data_source_config__unpack(NULL, in_len, in);
	assert_non_null(c);
	*out_len = perfetto__protos__data_source_config__get_packed_size(c);
	out = malloc(*out_len);
	assert_non_null(out);
	perfetto__protos__data_source_config__pack(c, out);
	perfetto__protos__data_source_config__free_unpacked(c, NULL);
	return out;
}

static int
contains(const uint8_t *hay, size_t hay_len, const uint8_t *needle,
    size_t needle_len)
{
	return memmem(hay, hay_len, needle, needle_len) != NULL;
}

static void
unknown_fields_survive_at_the_top_and_in_nested_messages(void **state)
{
	static const uint8_t name[] = { 0x0a, 2, 'd', 's' };
	/* Field 9999, of each wire type. */
	static const uint8_t varint[] = { 0xf8, 0xf0, 0x04, 0x96, 0x01 };
	static const uint8_t fixed64[] = { 0xf9, 0xf0, 0x04, 1, 2, 3, 4, 5, 6,
	    7, 8 };
	static const uint8_t bytes[] = { 0xfa, 0xf0, 0x04, 3, 'a', 'b', 'c' };
	static const uint8_t fixed32[] = { 0xfd, 0xf0, 0x04, 9, 8, 7, 6 };
	/* ftrace_config (100) { ftrace_events: "x" 9999: "abc" } */
	static const uint8_t ftrace[] = { 0xa2, 0x06, 10, 0x0a, 1, 'x', 0xfa,
	    0xf0, 0x04, 3, 'a', 'b', 'c' };
	static const struct {
		const uint8_t *p;
		size_t n;
	} parts[] = { { name, sizeof(name) }, { varint, sizeof(varint) },
	    { fixed64, sizeof(fixed64) }, { bytes, sizeof(bytes) },
	    { fixed32, sizeof(fixed32) }, { ftrace, sizeof(ftrace) } };
	uint8_t in[128];
	uint8_t *out;
	size_t in_len = 0, out_len, i;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		memcpy(in + in_len, parts[i].p, parts[i].n);
		in_len += parts[i].n;
	}
	out = repack(in, in_len, &out_len);
	assert_int_equal(out_len, in_len);
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		assert_true(contains(out, out_len, parts[i].p, parts[i].n));
	free(out);
}

static void
an_enum_value_we_do_not_know_survives(void **state)
{
	/* buffer_exhausted_policy = 77 */
	static const uint8_t in[] = { 0x48, 77 };
	uint8_t *out;
	size_t out_len;

	out = repack(in, sizeof(in), &out_len);
	assert_int_equal(out_len, sizeof(in));
	assert_memory_equal(out, in, sizeof(in));
	free(out);
}

static void
a_config_without_schema_survives_as_bytes(void **state)
{
	/* qnx_config (150) { 1: 1 } */
	static const uint8_t in[] = { 0xb2, 0x09, 2, 0x08, 1 };
	uint8_t *out;
	size_t out_len;

	out = repack(in, sizeof(in), &out_len);
	assert_int_equal(out_len, sizeof(in));
	assert_memory_equal(out, in, sizeof(in));
	free(out);
}

static void
the_last_member_of_a_oneof_wins(void **state)
{
	/* msg_bind_service { "P" } then msg_request_error { "no" } */
	static const uint8_t in[] = { 0x10, 5, 0x1a, 3, 0x0a, 1, 'P', 0x3a, 4,
	    0x0a, 2, 'n', 'o' };
	Perfetto__Protos__IPCFrame *f;

	f = perfetto__protos__ipcframe__unpack(NULL, sizeof(in), in);
	assert_non_null(f);
	assert_int_equal(f->request_id, 5);
	assert_int_equal(f->msg_case,
	    PERFETTO__PROTOS__IPCFRAME__MSG_MSG_REQUEST_ERROR);
	assert_string_equal(f->msg_request_error->error, "no");
	perfetto__protos__ipcframe__free_unpacked(f, NULL);
}

static void
packed_and_unpacked_repeated_fields_read_alike(void **state)
{
	/* chunk_payload_histogram_counts: 1, 2, packed and not */
	static const uint8_t packed[] = { 0x12, 2, 1, 2 };
	static const uint8_t plain[] = { 0x10, 1, 0x10, 2 };
	static const uint8_t *const in[] = { packed, plain };
	size_t i;

	for (i = 0; i < 2; i++) {
		Perfetto__Protos__TraceStats__WriterStats *w;
		ProtobufCMessage *m;

		/* Nested messages have no helpers of their own. */
		m = protobuf_c_message_unpack(
		    &perfetto__protos__trace_stats__writer_stats__descriptor,
		    NULL, 4, in[i]);
		assert_non_null(m);
		w = (Perfetto__Protos__TraceStats__WriterStats *)m;
		assert_int_equal(w->n_chunk_payload_histogram_counts, 2);
		assert_int_equal(w->chunk_payload_histogram_counts[1], 2);
		protobuf_c_message_free_unpacked(m, NULL);
	}
}

static void
a_packet_of_the_service_packs_as_the_protocol_numbers_it(void **state)
{
	Perfetto__Protos__TracePacket p = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	uint8_t out[32];
	size_t n;

	p.data_case = PERFETTO__PROTOS__TRACE_PACKET__DATA_SYNCHRONIZATION_MARKER;
	p.synchronization_marker.data = (uint8_t *)"m";
	p.synchronization_marker.len = 1;
	p.optional_trusted_packet_sequence_id_case =
	    PERFETTO__PROTOS__TRACE_PACKET__OPTIONAL_TRUSTED_PACKET_SEQUENCE_ID_TRUSTED_PACKET_SEQUENCE_ID;
	p.trusted_packet_sequence_id = 1;
	assert_true(perfetto__protos__trace_packet__get_packed_size(&p) <=
	    sizeof(out));
	n = perfetto__protos__trace_packet__pack(&p, out);
	assert_int_equal(n, 6);
	assert_memory_equal(out, "\x50\x01\xa2\x02\x01m", 6);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    unknown_fields_survive_at_the_top_and_in_nested_messages),
		cmocka_unit_test(an_enum_value_we_do_not_know_survives),
		cmocka_unit_test(a_config_without_schema_survives_as_bytes),
		cmocka_unit_test(the_last_member_of_a_oneof_wins),
		cmocka_unit_test(
		    packed_and_unpacked_repeated_fields_read_alike),
		cmocka_unit_test(
		    a_packet_of_the_service_packs_as_the_protocol_numbers_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
