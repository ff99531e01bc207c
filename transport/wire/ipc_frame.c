#include "transport/wire/ipc_frame.h"

#include <string.h>

#include "protos/fields.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

static const struct ipc_slice no_slice;

static struct ipc_slice
field_slice(const struct pb_field *f)
{
	struct ipc_slice s = { f->data, f->len };

	return s;
}

static bool
is_varint(const struct pb_field *f, uint32_t number)
{
	return f->number == number && f->wire == PB_VARINT;
}

static bool
is_bytes(const struct pb_field *f, uint32_t number)
{
	return f->number == number && f->wire == PB_BYTES;
}

int
ipc_parse_frame(struct ipc_frame *f, const uint8_t *buf, size_t len)
{
	struct pb_reader r;
	struct pb_field field;

	f->kind = IPC_NONE;
	f->request_id = 0;
	f->body = no_slice;
	PB_FOREACH(&field, &r, buf, len) {
		if (is_varint(&field, IPCFrame_request_id)) {
			f->request_id = field.value;
		} else if (field.wire == PB_BYTES &&
		    field.number >= IPC_BIND_SERVICE &&
		    field.number <= IPC_SET_PEER_IDENTITY) {
			/* A oneof: the last one counts. */
			f->kind = (enum ipc_kind)field.number;
			f->body = field_slice(&field);
		}
	}
	return r.bad ? -1 : 0;
}

int
ipc_parse_invoke(struct ipc_invoke *m, struct ipc_slice body)
{
	struct pb_reader r;
	struct pb_field f;

	memset(m, 0, sizeof(*m));
	PB_FOREACH(&f, &r, body.data, body.len) {
		if (is_varint(&f, InvokeMethod_service_id))
			m->service_id = (uint32_t)f.value;
		else if (is_varint(&f, InvokeMethod_method_id))
			m->method_id = (uint32_t)f.value;
		else if (is_bytes(&f, InvokeMethod_args_proto))
			m->args = field_slice(&f);
		else if (is_varint(&f, InvokeMethod_drop_reply))
			m->drop_reply = f.value != 0;
	}
	return r.bad ? -1 : 0;
}

int
ipc_parse_invoke_reply(struct ipc_invoke_reply *m, struct ipc_slice body)
{
	struct pb_reader r;
	struct pb_field f;

	memset(m, 0, sizeof(*m));
	PB_FOREACH(&f, &r, body.data, body.len) {
		if (is_varint(&f, InvokeMethodReply_success))
			m->success = f.value != 0;
		else if (is_varint(&f, InvokeMethodReply_has_more))
			m->has_more = f.value != 0;
		else if (is_bytes(&f, InvokeMethodReply_reply_proto))
			m->reply = field_slice(&f);
	}
	return r.bad ? -1 : 0;
}

int
ipc_parse_identity(struct ipc_identity *m, struct ipc_slice body)
{
	struct pb_reader r;
	struct pb_field f;

	memset(m, 0, sizeof(*m));
	PB_FOREACH(&f, &r, body.data, body.len) {
		if (is_varint(&f, SetPeerIdentity_pid))
			m->pid = (int32_t)f.value;
		else if (is_varint(&f, SetPeerIdentity_uid))
			m->uid = (int32_t)f.value;
		else if (is_bytes(&f, SetPeerIdentity_machine_id_hint))
			m->machine_id_hint = field_slice(&f);
		else if (is_bytes(&f, SetPeerIdentity_machine_name))
			m->machine_name = field_slice(&f);
		else if (is_varint(&f, SetPeerIdentity_tributary_forwarded))
			m->forwarded = f.value != 0;
		else if (is_bytes(&f, SetPeerIdentity_tributary_clocks))
			m->clocks = field_slice(&f);
	}
	return r.bad ? -1 : 0;
}

_Static_assert((int)RequestError_error == (int)BindService_service_name,
    "ipc_parse_text() reads both");

int
ipc_parse_text(struct ipc_slice *text, struct ipc_slice body)
{
	struct pb_reader r;
	struct pb_field f;

	*text = no_slice;
	PB_FOREACH(&f, &r, body.data, body.len) {
		if (is_bytes(&f, RequestError_error))
			*text = field_slice(&f);
	}
	return r.bad ? -1 : 0;
}

static int
parse_method_info(struct ipc_method_info *m, struct ipc_slice body)
{
	struct pb_reader r;
	struct pb_field f;

	memset(m, 0, sizeof(*m));
	PB_FOREACH(&f, &r, body.data, body.len) {
		if (is_varint(&f, MethodInfo_id))
			m->id = (uint32_t)f.value;
		else if (is_bytes(&f, MethodInfo_name))
			m->name = field_slice(&f);
	}
	return r.bad ? -1 : 0;
}

int
ipc_parse_bind_reply(struct ipc_bind_reply *m, struct ipc_slice body,
    void (*method)(void *arg, const struct ipc_method_info *info), void *arg)
{
	struct ipc_method_info info;
	struct pb_reader r;
	struct pb_field f;

	memset(m, 0, sizeof(*m));
	PB_FOREACH(&f, &r, body.data, body.len) {
		if (is_varint(&f, BindServiceReply_success)) {
			m->success = f.value != 0;
		} else if (is_varint(&f, BindServiceReply_service_id)) {
			m->service_id = (uint32_t)f.value;
		} else if (is_bytes(&f, BindServiceReply_methods)) {
			if (parse_method_info(&info, field_slice(&f)) != 0)
				return -1;
			method(arg, &info);
		}
	}
	return r.bad ? -1 : 0;
}

/*
 * Frame header, request id, and the tag and length of a message that is made
 * of `inner` (n bytes) and a payload of len bytes.
 */
static size_t
put_head(uint8_t *out, uint64_t request_id, enum ipc_kind kind,
    const uint8_t *inner, size_t n, size_t len)
{
	size_t at = FRAME_HEADER_BYTES;

	out[at++] = PB_TAG(IPCFrame_request_id, PB_VARINT);
	at += pb_encode_varint(out + at, request_id);
	out[at++] = PB_TAG(kind, PB_BYTES);
	at += pb_encode_varint(out + at, n + len);
	memcpy(out + at, inner, n);
	at += n;
	frame_put_header(out, (uint32_t)(at - FRAME_HEADER_BYTES + len));
	return at;
}

size_t
ipc_put_reply_head(uint8_t out[IPC_HEAD_MAX], uint64_t request_id,
    bool success, bool has_more, size_t len)
{
	uint8_t inner[16];
	size_t n = 0;

	inner[n++] = PB_TAG(InvokeMethodReply_success, PB_VARINT);
	inner[n++] = success;
	inner[n++] = PB_TAG(InvokeMethodReply_has_more, PB_VARINT);
	inner[n++] = has_more;
	if (success) {
		inner[n++] = PB_TAG(InvokeMethodReply_reply_proto, PB_BYTES);
		n += pb_encode_varint(inner + n, len);
	} else {
		len = 0;
	}
	return put_head(out, request_id, IPC_INVOKE_METHOD_REPLY, inner, n,
	    len);
}

size_t
ipc_put_invoke_head(uint8_t out[IPC_HEAD_MAX], uint64_t request_id,
    uint32_t service_id, uint32_t method_id, bool drop_reply, size_t len)
{
	uint8_t inner[32];
	size_t n = 0;

	inner[n++] = PB_TAG(InvokeMethod_service_id, PB_VARINT);
	n += pb_encode_varint(inner + n, service_id);
	inner[n++] = PB_TAG(InvokeMethod_method_id, PB_VARINT);
	n += pb_encode_varint(inner + n, method_id);
	inner[n++] = PB_TAG(InvokeMethod_drop_reply, PB_VARINT);
	inner[n++] = drop_reply;
	inner[n++] = PB_TAG(InvokeMethod_args_proto, PB_BYTES);
	n += pb_encode_varint(inner + n, len);
	return put_head(out, request_id, IPC_INVOKE_METHOD, inner, n, len);
}

size_t
ipc_frame_begin(struct pb_writer *w, uint64_t request_id, enum ipc_kind kind)
{
	static const uint8_t header[FRAME_HEADER_BYTES];

	pb_writer_reset(w);
	pb_put_raw(w, header, sizeof(header));
	pb_put_uint(w, IPCFrame_request_id, request_id);
	return pb_nest_begin(w, (uint32_t)kind);
}

void
ipc_frame_end(struct pb_writer *w, size_t mark)
{
	pb_nest_end(w, mark);
	if (!w->failed)
		frame_put_header(w->data, (uint32_t)(w->len -
		    FRAME_HEADER_BYTES));
}
