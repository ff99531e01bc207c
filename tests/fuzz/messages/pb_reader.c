/*
 * Any bytes to the protobuf reader, as nested as they are, and to the parsers
 * of frames that are made of it; what is well-formed is written again and must
 * read the same.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/messages/messages.h"
#include "tests/unit/transport/wire/put_fixed64.h"
#include "transport/wire/frame.h"
#include "transport/wire/ipc_frame.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define DEPTH_MAX 8
#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s\n", #cond);                        \
			abort();                                               \
		}                                                              \
	} while (0)

static unsigned sum;

static void
read_slice(struct ipc_slice s)
{
	size_t i;

	for (i = 0; i < s.len; i++)
		sum += s.data[i];
}

static void
read_method(void *arg, const struct ipc_method_info *info)
{
	read_slice(info->name);
}

static void
copy_field(struct pb_writer *w, const struct pb_field *f)
{
	uint32_t v = (uint32_t)f->value;

	switch (f->wire) {
	case PB_VARINT:
		pb_put_uint(w, f->number, f->value);
		break;
	case PB_FIXED64:
		put_fixed64(w, f->number, f->value);
		break;
	case PB_BYTES:
		pb_put_bytes(w, f->number, f->data, f->len);
		break;
	case PB_FIXED32:
		pb_put_varint(w, (uint64_t)f->number << 3 | PB_FIXED32);
		pb_put_raw(w, &v, sizeof(v));
		break;
	}
}

static bool
same_field(const struct pb_field *a, const struct pb_field *b)
{
	if (a->number != b->number || a->wire != b->wire || a->len != b->len)
		return false;
	if (a->wire == PB_BYTES)
		return a->len == 0 || memcmp(a->data, b->data, a->len) == 0;
	return a->value == b->value;
}

static void
check_round_trip(const uint8_t *data, size_t size)
{
	struct pb_reader r, again;
	struct pb_field f, g;
	struct pb_writer w;

	pb_writer_init(&w);
	pb_init(&r, data, size);
	while (pb_next(&r, &f)) {
		CHECK(f.start >= data && f.start < data + size);
		copy_field(&w, &f);
	}
	if (!r.bad) {
		pb_init(&r, data, size);
		pb_init(&again, w.data, w.len);
		while (pb_next(&r, &f)) {
			CHECK(pb_next(&again, &g));
			CHECK(same_field(&f, &g));
		}
		CHECK(!pb_next(&again, &g) && !again.bad);
	}
	pb_writer_done(&w);
}

static void
walk(const uint8_t *data, size_t size, int depth)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, data, size);
	while (pb_next(&r, &f)) {
		if (f.wire == PB_BYTES) {
			CHECK(f.data >= data && f.len <= size);
			CHECK(f.data + f.len <= data + size);
			if (depth < DEPTH_MAX)
				walk(f.data, f.len, depth + 1);
		}
	}
	CHECK(!pb_next(&r, &f));
}

static void
parse_frame(const uint8_t *data, size_t size)
{
	struct ipc_slice all = { data, size }, text;
	struct ipc_frame f;
	struct ipc_invoke invoke;
	struct ipc_invoke_reply reply;
	struct ipc_identity id;
	struct ipc_bind_reply bind;

	if (ipc_parse_frame(&f, data, size) == 0)
		read_slice(f.body);
	if (ipc_parse_invoke(&invoke, all) == 0)
		read_slice(invoke.args);
	if (ipc_parse_invoke_reply(&reply, all) == 0)
		read_slice(reply.reply);
	if (ipc_parse_identity(&id, all) == 0) {
		read_slice(id.machine_id_hint);
		read_slice(id.machine_name);
	}
	if (ipc_parse_text(&text, all) == 0)
		read_slice(text);
	if (ipc_parse_bind_reply(&bind, all, read_method, NULL) == 0)
		sum += bind.service_id;
}

static void
cut_frames(const uint8_t *data, size_t size)
{
	const uint8_t *payload;
	size_t len, used, need;

	for (;;) {
		switch (frame_next(data, size, &payload, &len, &used, &need)) {
		case FRAME_OK:
			CHECK(used <= size && payload + len == data + used);
			data += used;
			size -= used;
			continue;
		case FRAME_MORE:
			CHECK(need > size && need <= FRAME_MAX_BYTES);
			return;
		case FRAME_TOO_BIG:
			return;
		}
	}
}

void
fuzz_pb_reader(const uint8_t *data, size_t size)
{
	walk(data, size, 0);
	check_round_trip(data, size);
	parse_frame(data, size);
	cut_frames(data, size);
}
