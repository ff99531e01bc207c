#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "transport/wire/frame.h"
#include "transport/wire/ipc_frame.h"
#include "transport/wire/pb_writer.h"

static const uint8_t *payload;
static size_t payload_len, used, need;

static enum frame_verdict
next(const void *buf, size_t len)
{
	return frame_next(buf, len, &payload, &payload_len, &used, &need);
}

static void
a_frame_is_found_once_its_last_byte_is_there(void **state)
{
	static const uint8_t buf[] = { 3, 0, 0, 0, 'a', 'b', 'c', 'x' };
	size_t cut;

	for (cut = 0; cut < 4; cut++) {
		assert_int_equal(next(buf, cut), FRAME_MORE);
		assert_int_equal(need, 4);
	}
	for (; cut < 7; cut++) {
		assert_int_equal(next(buf, cut), FRAME_MORE);
		assert_int_equal(need, 7);
	}
	for (; cut <= 8; cut++) {
		assert_int_equal(next(buf, cut), FRAME_OK);
		assert_ptr_equal(payload, buf + 4);
		assert_int_equal(payload_len, 3);
		assert_int_equal(used, 7);
	}
}

static void
a_length_of_zero_is_an_empty_frame(void **state)
{
	assert_int_equal(next("\0\0\0\0", 4), FRAME_OK);
	assert_int_equal(payload_len, 0);
	assert_int_equal(used, 4);
}

static void
the_largest_frame_has_128_KiB_with_its_length(void **state)
{
	uint8_t head[4];

	frame_put_header(head, FRAME_PAYLOAD_MAX);
	assert_int_equal(next(head, 4), FRAME_MORE);
	assert_int_equal(need, 131072);
	frame_put_header(head, FRAME_PAYLOAD_MAX + 1);
	assert_int_equal(next(head, 4), FRAME_TOO_BIG);
	frame_put_header(head, UINT32_MAX);
	assert_int_equal(next(head, 4), FRAME_TOO_BIG);
}

/* What Perfetto v58 sent (recorded): TAG, request id, message. */
static const uint8_t recorded_bind[] = "\x10\x01\x1a\x0e\x0a\x0cProducerPort";
static const uint8_t recorded_invoke[] =
    "\x10\x03\x2a\x08\x08\x01\x10\x05\x1a\x00\x20\x00";
static const uint8_t recorded_identity[] =
    "\x10\x00\x42\x36\x08\xbe\xfe\x01\x10\x00\x1a\x24"
    "c242fcbe-89a6-4173-8ca5-15538e50f99c\x22\x08" "device-1";
static const uint8_t recorded_reply[] =
    "\x10\x02\x32\x0c\x08\x01\x10\x00\x1a\x06\x08\x00\x10\x01\x18\x00";
/* Its lengths are padded to four bytes. */
static const uint8_t recorded_bind_reply[] =
    "\x10\x01\x22\xa2\x80\x80\x00\x08\x01\x10\x01\x1a\x0d\x08\x01\x12\x09"
    "InitRelay\x1a\x0d\x08\x02\x12\x09" "SyncClock";

static void
check_slice(struct ipc_slice s, const char *text)
{
	assert_int_equal(s.len, strlen(text));
	assert_memory_equal(s.data, text, s.len);
}

static void
recorded_requests_are_read(void **state)
{
	struct ipc_frame f;
	struct ipc_slice name;
	struct ipc_invoke m;
	struct ipc_identity id;

	assert_int_equal(ipc_parse_frame(&f, recorded_bind,
	    sizeof(recorded_bind) - 1), 0);
	assert_int_equal(f.kind, IPC_BIND_SERVICE);
	assert_int_equal(f.request_id, 1);
	assert_int_equal(ipc_parse_text(&name, f.body), 0);
	check_slice(name, "ProducerPort");

	assert_int_equal(ipc_parse_frame(&f, recorded_invoke,
	    sizeof(recorded_invoke) - 1), 0);
	assert_int_equal(f.kind, IPC_INVOKE_METHOD);
	assert_int_equal(ipc_parse_invoke(&m, f.body), 0);
	assert_int_equal(m.service_id, 1);
	assert_int_equal(m.method_id, 5);
	assert_false(m.drop_reply);
	assert_int_equal(m.args.len, 0);

	assert_int_equal(ipc_parse_frame(&f, recorded_identity,
	    sizeof(recorded_identity) - 1), 0);
	assert_int_equal(f.kind, IPC_SET_PEER_IDENTITY);
	assert_int_equal(ipc_parse_identity(&id, f.body), 0);
	assert_int_equal(id.pid, 32574);
	assert_int_equal(id.uid, 0);
	check_slice(id.machine_id_hint, "c242fcbe-89a6-4173-8ca5-15538e50f99c");
	check_slice(id.machine_name, "device-1");
}

static size_t n_methods;

static void
count_method(void *arg, const struct ipc_method_info *info)
{
	static const char *const names[] = { "InitRelay", "SyncClock" };

	assert_ptr_equal(arg, &n_methods);
	check_slice(info->name, names[n_methods]);
	n_methods++;
	assert_int_equal(info->id, n_methods);
}

static void
recorded_replies_are_read(void **state)
{
	struct ipc_frame f;
	struct ipc_invoke_reply m;
	struct ipc_bind_reply b;

	assert_int_equal(ipc_parse_frame(&f, recorded_reply,
	    sizeof(recorded_reply) - 1), 0);
	assert_int_equal(f.kind, IPC_INVOKE_METHOD_REPLY);
	assert_int_equal(ipc_parse_invoke_reply(&m, f.body), 0);
	assert_true(m.success);
	assert_false(m.has_more);
	assert_int_equal(m.reply.len, 6);

	n_methods = 0;
	assert_int_equal(ipc_parse_frame(&f, recorded_bind_reply,
	    sizeof(recorded_bind_reply) - 1), 0);
	assert_int_equal(ipc_parse_bind_reply(&b, f.body, count_method,
	    &n_methods), 0);
	assert_true(b.success);
	assert_int_equal(b.service_id, 1);
	assert_int_equal(n_methods, 2);
}

static void
heads_are_written_as_the_real_service_writes_them(void **state)
{
	uint8_t head[IPC_HEAD_MAX];
	size_t n;

	n = ipc_put_reply_head(head, 2, true, false, 6);
	assert_int_equal(n, 4 + 10);
	assert_memory_equal(head, "\x10\0\0\0", 4);
	assert_memory_equal(head + 4, recorded_reply, 10);
	n = ipc_put_reply_head(head, 3, false, true, 99);
	assert_int_equal(n, 4 + 8);
	assert_memory_equal(head + 4, "\x10\x03\x32\x04\x08\0\x10\x01", 8);
}

static void
heads_fit_and_read_back_at_the_largest_values(void **state)
{
	static uint8_t buf[IPC_HEAD_MAX + FRAME_MAX_BYTES];
	struct ipc_frame f;
	struct ipc_invoke m;
	size_t n, len = FRAME_MAX_BYTES - IPC_HEAD_MAX;

	n = ipc_put_invoke_head(buf, UINT64_MAX, UINT32_MAX, UINT32_MAX, true,
	    len);
	assert_true(n <= IPC_HEAD_MAX);
	assert_int_equal(next(buf, n + len), FRAME_OK);
	assert_int_equal(used, n + len);
	assert_int_equal(ipc_parse_frame(&f, payload, payload_len), 0);
	assert_true(f.request_id == UINT64_MAX);
	assert_int_equal(ipc_parse_invoke(&m, f.body), 0);
	assert_true(m.service_id == UINT32_MAX && m.method_id == UINT32_MAX);
	assert_true(m.drop_reply);
	assert_int_equal(m.args.len, len);
	assert_ptr_equal(m.args.data, buf + n);
	n = ipc_put_reply_head(buf, UINT64_MAX, true, true, SIZE_MAX / 4);
	assert_true(n <= IPC_HEAD_MAX);
}

static void
the_last_message_of_the_oneof_counts_and_unknown_fields_are_skipped(
    void **state)
{
	struct ipc_frame f;
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	pb_put_string(&w, 3, "");
	pb_put_string(&w, 1, "data for testing");
	pb_put_uint(&w, 5, 1); /* another wire type */
	pb_put_string(&w, 99, "newer");
	assert_int_equal(ipc_parse_frame(&f, w.data, w.len), 0);
	assert_int_equal(f.kind, IPC_BIND_SERVICE);
	pb_put_string(&w, 5, "");
	assert_int_equal(ipc_parse_frame(&f, w.data, w.len), 0);
	assert_int_equal(f.kind, IPC_INVOKE_METHOD);

	mark = ipc_frame_begin(&w, 77, IPC_REQUEST_ERROR);
	pb_put_string(&w, 1, "why");
	ipc_frame_end(&w, mark);
	assert_int_equal(next(w.data, w.len), FRAME_OK);
	assert_int_equal(used, w.len);
	assert_int_equal(ipc_parse_frame(&f, payload, payload_len), 0);
	assert_int_equal(f.kind, IPC_REQUEST_ERROR);
	assert_int_equal(f.request_id, 77);
	pb_writer_done(&w);
}

static void
a_message_cut_inside_a_field_is_malformed(void **state)
{
	struct ipc_frame f;

	assert_int_equal(ipc_parse_frame(&f, recorded_bind, 10), -1);
	assert_int_equal(ipc_parse_frame(&f, recorded_bind, 2), 0);
	assert_int_equal(f.kind, IPC_NONE);
	assert_int_equal(ipc_parse_frame(&f, recorded_bind, 0), 0);
	assert_int_equal(f.kind, IPC_NONE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_is_found_once_its_last_byte_is_there),
		cmocka_unit_test(a_length_of_zero_is_an_empty_frame),
		cmocka_unit_test(the_largest_frame_has_128_KiB_with_its_length),
		cmocka_unit_test(recorded_requests_are_read),
		cmocka_unit_test(recorded_replies_are_read),
		cmocka_unit_test(
		    heads_are_written_as_the_real_service_writes_them),
		cmocka_unit_test(heads_fit_and_read_back_at_the_largest_values),
		cmocka_unit_test(
		    the_last_message_of_the_oneof_counts_and_unknown_fields_are_skipped),
		cmocka_unit_test(a_message_cut_inside_a_field_is_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
