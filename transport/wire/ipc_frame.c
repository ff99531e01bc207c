#include "transport/wire/ipc_frame.h"

#include <string.h>

#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define IPC_FIELD_REQUEST_ID 2u

#define TAG(field, wire) ((uint8_t)((field) << 3 | (wire)))

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
	pb_init(&r, buf, len);
	while (pb_next(&r, &field)) {
		if (is_varint(&field, IPC_FIELD_REQUEST_ID)) {
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
	pb_init(&r, body.data, body.len);
	while (pb_next(&r, &f)) {
		if (is_varint(&f, 1))
			m->service_id = (uint32_t)f.value;
		else if (is_varint(&f, 2))
			m->method_id = (uint32_t)f.value;
		else if (is_bytes(&f, 3))
			m->args = field_slice(&f);
		else if (is_varint(&f, 4))
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
	pb_init(&r, body.data, body.len);
	while (pb_next(&r, &f)) {
		if (is_varint(&f, 1))
			m->success = f.value != 0;
		else if (is_varint(&f, 2))
			m->has_more = f.value != 0;
		else if (is_bytes(&f, 3))
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
	pb_init(&r, body.data, body.len);
	while (pb_next(&r, &f)) {
		if (is_varint(&f, 1))
			m->pid = (int32_t)f.value;
		else if (is_varint(&f, 2))
			m->uid = (int32_t)f.value;
		else if (is_bytes(&f, 3))
			m->machine_id_hint = field_slice(&f);
		else if (is_bytes(&f, 4))
			m->machine_name = field_slice(&f);
		else if (is_varint(&f, IPC_FIELD_FORWARDED))
			m->forwarded = f.value != 0;
		else if (is_bytes(&f, IPC_FIELD_CLOCKS))
			m->clocks = field_slice(&f);
	}
	return r.bad ? -1 : 0;
}

int
ipc_parse_text(struct ipc_slice *text, struct ipc_slice body)
{
	struct pb_reader r;
	struct pb_field f;

	*text = no_slice;
	pb_init(&r, body.data, body.len);
	while (pb_next(&r, &f)) {
		if (is_bytes(&f, 1))
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
	pb_init(&r, body.data, body.len);
	while (pb_next(&r, &f)) {
		if (is_varint(&f, 1))
			m->id = (uint32_t)f.value;
		else if (is_bytes(&f, 2))
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
	pb_init(&r, body.data, body.len);
	while (pb_next(&r, &f)) {
		if (is_varint(&f, 1)) {
			m->success = f.value != 0;
		} else if (is_varint(&f, 2)) {
			m->service_id = (uint32_t)f.value;
		} else if (is_bytes(&f, 3)) {
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

	out[at++] = TAG(IPC_FIELD_REQUEST_ID, PB_VARINT);
	at += pb_encode_varint(out + at, request_id);
	out[at++] = TAG(kind, PB_BYTES);
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

	inner[n++] = TAG(1, PB_VARINT);
	inner[n++] = success;
	inner[n++] = TAG(2, PB_VARINT);
	inner[n++] = has_more;
	if (success) {
		inner[n++] = TAG(3, PB_BYTES);
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

	inner[n++] = TAG(1, PB_VARINT);
	n += pb_encode_varint(inner + n, service_id);
	inner[n++] = TAG(2, PB_VARINT);
	n += pb_encode_varint(inner + n, method_id);
	inner[n++] = TAG(4, PB_VARINT);
	inner[n++] = drop_reply;
	inner[n++] = TAG(3, PB_BYTES);
	n += pb_encode_varint(inner + n, len);
	return put_head(out, request_id, IPC_INVOKE_METHOD, inner, n, len);
}

size_t
ipc_frame_begin(struct pb_writer *w, uint64_t request_id, enum ipc_kind kind)
{
	static const uint8_t header[FRAME_HEADER_BYTES];

	pb_writer_reset(w);
	pb_put_raw(w, header, sizeof(header));
	pb_put_uint(w, IPC_FIELD_REQUEST_ID, request_id);
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
