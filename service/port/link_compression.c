#include "service/port/link_compression.h"

#include "service/model/model.h"
#include "transport/base/budget.h"
#include "transport/link/link_unpack.h"
#include "transport/link/link_wire.h"
#include "transport/link/link_zstd.h"
#include "transport/rpc/rpc_host.h"

bool
link_compression_is_on(const struct link_compression *c)
{
	return c->zstd != NULL || c->unpacker != NULL;
}

static size_t
unpack_frame(void *ctx, const uint8_t *frame, size_t len, uint8_t *out,
    size_t room)
{
	return link_unpack_frame(ctx, frame, len, out, room);
}

static void
unpack_free(void *ctx)
{
	link_unpacker_unref(ctx);
}

/* Only the stream of an I/O thread takes an unpacker; else none is made. */
static void
make_unpacker(struct link_compression *c, struct rpc_conn *conn)
{
	struct stream_unpack u = { unpack_frame, unpack_free, NULL };

	if ((c->unpacker = link_unpacker_new()) == NULL)
		return;
	u.ctx = link_unpacker_ref(c->unpacker);
	if (stream_set_unpack(rpc_conn_stream(conn), &u))
		return;
	link_unpacker_unref(u.ctx);
	link_unpacker_unref(c->unpacker);
	c->unpacker = NULL;
}

/*
 * Decompressors get half of the memory for connections; relays that come after
 * it is used up send plain blocks.
 */
void
link_compression_start(struct link_compression *c, struct rpc_conn *conn)
{
	struct budget *b = c->service->connection_memory;

	if (b != NULL && b->memory_max != 0 &&
	    b->memory + LINK_DECOMPRESSOR_BYTES > b->memory_max / 2)
		return;
	make_unpacker(c, conn);
	if (c->unpacker == NULL)
		c->zstd = link_decompressor_new();
	if (link_compression_is_on(c) && b != NULL)
		budget_resize(b, 0, LINK_DECOMPRESSOR_BYTES);
}

void
link_compression_done(struct link_compression *c)
{
	if (link_compression_is_on(c) && c->service->connection_memory != NULL)
		budget_resize(c->service->connection_memory,
		    LINK_DECOMPRESSOR_BYTES, 0);
	link_decompressor_free(c->zstd);
	c->zstd = NULL;
	link_unpacker_unref(c->unpacker);
	c->unpacker = NULL;
}

size_t
link_compression_network_bytes(struct link_compression *c, size_t len)
{
	uint64_t grown;
	size_t less;

	if (c->unpacker == NULL)
		return len;
	grown = link_unpacker_grown(c->unpacker);
	c->excess += grown - c->grown;
	c->grown = grown;
	less = c->excess < len ? (size_t)c->excess : len;
	c->excess -= less;
	return len - less;
}

const char *
link_compression_unpack(struct link_compression *c, const struct link_frame *f,
    const uint8_t **block, size_t *len)
{
	*block = f->block;
	*len = f->compressed ? f->raw_size : f->len;
	/* The stream unpacks in its memory what came before it was on, too. */
	if (!f->compressed || (c->zstd != NULL && link_decompress(c->zstd,
	    f->block, f->len, f->raw_size, block) == 0))
		return NULL;
	return link_compression_is_on(c) ? "a compressed block is damaged" :
	    "a compressed block, though none was agreed on";
}
