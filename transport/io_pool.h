/*
 * io_pool: threads that carry the bytes of connections for a loop (its owner).
 *
 * A stream made with stream_setup.io stays the owner's in all that its callers
 * see; its socket, TLS and the search for frames are on one of the threads,
 * each with a loop of its own.  Streams there carry frames (transport/frame.h):
 * what is shown to data() is always a run of whole ones.
 */
#ifndef TRANSPORT_IO_POOL_H
#define TRANSPORT_IO_POOL_H

#include <stddef.h>

#include "transport/compiler.h"

struct io_pool;
struct loop;

/*
 * Streams may be made at once, and wait for the threads.  NULL: no memory, or
 * no descriptors.
 */
struct io_pool *io_pool_new(struct loop *owner, unsigned n) MUST_CHECK;
/* Starts the threads, named "io-0" and so on.  -1: the system has none. */
int io_pool_start(struct io_pool *p) MUST_CHECK;
/*
 * Ends the threads; what is queued for peers is still offered to their sockets.
 * All streams are closed already; the owner's loop is still there.  NULL is
 * fine.
 */
void io_pool_free(struct io_pool *p);

#endif /* TRANSPORT_IO_POOL_H */
