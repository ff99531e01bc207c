#include "transport/link/link_unpack.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "transport/link/link_wire.h"
#include "transport/link/link_zstd.h"
#include "transport/stream/stream.h"
#include "transport/wire/ipc_frame.h"

struct link_unpacker {
	atomic_uint refs;
	atomic_uint_fast64_t grown;
	struct link_decompressor *zstd;
};

struct link_unpacker *
link_unpacker_new(void)
{
	struct link_unpacker *u;

	if ((u = calloc(1, sizeof(*u))) == NULL)
		return NULL;
	atomic_init(&u->refs, 1);
	if ((u->zstd = link_decompressor_new()) == NULL) {
		free(u);
		return NULL;
	}
	return u;
}

struct link_unpacker *
link_unpacker_ref(struct link_unpacker *u)
{
	atomic_fetch_add(&u->refs, 1);
	return u;
}

void
link_unpacker_unref(struct link_unpacker *u)
{
	if (u == NULL || atomic_fetch_sub(&u->refs, 1) > 1)
		return;
	link_decompressor_free(u->zstd);
	free(u);
}

/* Whether the frame is a call of Up with a compressed block. */
static bool
is_packed(const uint8_t *frame, size_t len, struct ipc_frame *ipc,
    struct ipc_invoke *call, struct link_frame *f)
{
	return ipc_parse_frame(ipc, frame + FRAME_HEADER_BYTES,
		   len - FRAME_HEADER_BYTES) == 0 &&
	    ipc->kind == IPC_INVOKE_METHOD &&
	    ipc_parse_invoke(call, ipc->body) == 0 &&
	    call->method_id == LINK_METHOD_UP &&
	    link_parse_frame(f, call->args.data, call->args.len) == 0 &&
	    f->compressed;
}

size_t
link_unpack_frame(struct link_unpacker *u, const uint8_t *frame, size_t len,
    uint8_t *out, size_t room)
{
	uint8_t head[IPC_HEAD_MAX], args[LINK_HEAD_MAX];
	size_t n_head, n_args, total;
	struct link_frame f, plain;
	struct ipc_invoke call;
	struct ipc_frame ipc;
	const uint8_t *block;

	if (!is_packed(frame, len, &ipc, &call, &f))
		return 0;
	plain = f;
	plain.compressed = false;
	plain.len = f.raw_size;
	n_args = link_put_head(args, &plain);
	n_head = ipc_put_invoke_head(head, ipc.request_id, call.service_id,
	    call.method_id, call.drop_reply, n_args + plain.len);
	total = n_head + n_args + plain.len;
	if (total > room)
		return STREAM_UNPACK_ROOM;
	if (link_decompress(u->zstd, f.block, f.len, f.raw_size, &block) != 0)
		return 0;
	memcpy(out, head, n_head);
	memcpy(out + n_head, args, n_args);
	memcpy(out + n_head + n_args, block, plain.len);
	if (total > len)
		atomic_fetch_add_explicit(&u->grown, total - len,
		    memory_order_relaxed);
	return total;
}

uint64_t
link_unpacker_grown(const struct link_unpacker *u)
{
	return atomic_load_explicit(&u->grown, memory_order_relaxed);
}
