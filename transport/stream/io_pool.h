/*
 * io_pool: threads that carry the bytes of connections for a loop (its owner).
 *
 * A stream made with stream_setup.io is used on the owner's loop like any
 * other, ops included; its socket, TLS and the search for frames are on one of
 * the threads, each with a loop of its own.  Streams there carry frames
 * (transport/wire/frame.h): what is shown to data() is always a run of whole
 * ones.
 */
#ifndef TRANSPORT_STREAM_IO_POOL_H
#define TRANSPORT_STREAM_IO_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/loop/loop.h"

struct io_pool;

/*
 * n threads, which io_pool_start() starts; streams may be made before, and wait
 * for them.  NULL: no memory, or no descriptors.
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

/*
 * Input lag of the slowest I/O thread, with the semantics of loop_on_lag(),
 * loop_lag_ms() and loop_hold_back().  (Input that a thread has passed on waits
 * once more, for its turn on the owner's loop; that lag is the owner loop's
 * own.)  fn is called on the owner.  To be set before io_pool_start().
 */
void io_pool_on_lag(struct io_pool *p, uint64_t ms, loop_fn fn, void *arg);
/* From now on fn is not called. */
void io_pool_forget_lag(struct io_pool *p);
uint64_t io_pool_lag_ms(const struct io_pool *p);
void io_pool_hold_back(struct io_pool *p, enum loop_hold hold);

#endif /* TRANSPORT_STREAM_IO_POOL_H */
