/*
 * packer: compresses batches of packets on a thread of its own, so that the
 * loop need not wait.  One batch at a time:
 *
 *	b = packer_batch(p);            fill it
 *	packer_submit(p);               packed() is called on a later turn
 *	data = packer_result(p, &len);  whole packets, compressed or not
 *	b = packer_batch(p);            the next one
 *
 * The thread lives from the first submission to packer_free(), which never
 * waits for it: a batch under way is compressed in vain.  While there are
 * PACKER_THREADS_MAX threads, or none can be started, batches stay as they are,
 * which is valid, too.
 *
 * Memory: a batch of PACKET_BATCH_BYTES and a packet_compressor.  All calls
 * come from the loop's thread.
 */
#ifndef SERVICE_SINK_PACKER_H
#define SERVICE_SINK_PACKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/loop/loop.h"
#include "transport/sink/packet_compressor.h"

struct packer;
struct sink_batch;

/* Most threads in the process, with those of freed packers that still run. */
#define PACKER_THREADS_MAX 64u

/*
 * packed(arg) is called on the loop once for each submission, until
 * packer_free().  NULL: no memory.
 */
struct packer *packer_new(struct loop *l, const struct packet_compression *how,
    loop_fn packed, void *arg) MUST_CHECK;
/* packed() is not called any more.  Legal in packed(). */
void packer_free(struct packer *p);

/*
 * An empty batch to fill (file_sink_reserve()); not while packer_is_busy().
 * Ends the life of the last result.
 */
struct sink_batch *packer_batch(struct packer *p);
void packer_submit(struct packer *p);
/* Whether a batch was submitted and packed() was not called yet. */
bool packer_is_busy(const struct packer *p);
/* The result of the submitted batch; borrowed until packer_batch(). */
const uint8_t *packer_result(const struct packer *p, size_t *len);

#endif /* SERVICE_SINK_PACKER_H */
