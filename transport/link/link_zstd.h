/*
 * link_zstd: the blocks of one direction of one connection as one zstd stream,
 * flushed behind each block, so that earlier blocks serve as its dictionary.
 *
 * The other end is hostile: memory is bounded by LINK_ZSTD_WINDOW_LOG, output
 * by what the caller has room for.  A stream that went wrong stays wrong.
 */
#ifndef TRANSPORT_LINK_LINK_ZSTD_H
#define TRANSPORT_LINK_LINK_ZSTD_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/link/link_wire.h"

struct link_compressor;
struct link_decompressor;

/* Binary logarithm of the window: 256 KiB. */
#define LINK_ZSTD_WINDOW_LOG 18
/* The largest compressed block. */
#define LINK_ZSTD_BLOCK_MAX (LINK_BLOCK_MAX + 1024u)
/* Memory of a decompressor in use, in bytes, about. */
#define LINK_DECOMPRESSOR_BYTES (768u * 1024u)

/* level: 1..19.  NULL: no memory. */
struct link_compressor *link_compressor_new(int level) MUST_CHECK;
void link_compressor_free(struct link_compressor *c);
/*
 * len is at most LINK_BLOCK_MAX.  *out is the compressor's, until the next
 * call.  -1: no memory.
 */
int link_compress(struct link_compressor *c, const void *data, size_t len,
    const uint8_t **out, size_t *out_len) MUST_CHECK;

struct link_decompressor *link_decompressor_new(void) MUST_CHECK;
void link_decompressor_free(struct link_decompressor *d);
/*
 * raw_size: bytes of the plain block, at most LINK_BLOCK_MAX; *out is the
 * decompressor's, until the next call.  -1: damaged, or of another size.
 */
int link_decompress(struct link_decompressor *d, const void *data, size_t len,
    size_t raw_size, const uint8_t **out) MUST_CHECK;

#endif /* TRANSPORT_LINK_LINK_ZSTD_H */
