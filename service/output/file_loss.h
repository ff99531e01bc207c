/*
 * file_loss: counts the packets that a failed file did not get as losses of
 * their sequences (session_losses, LINK_LOSS_TRACE_FILE).  Knows nothing of
 * files.
 */
#ifndef SERVICE_OUTPUT_FILE_LOSS_H
#define SERVICE_OUTPUT_FILE_LOSS_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/loop/loop.h"

struct file_loss;
struct packet_out;
struct session;

/* NULL: no memory. */
struct file_loss *file_loss_new(struct session *s) MUST_CHECK;
void file_loss_free(struct file_loss *f);

/*
 * Counts the packets in data, whole Trace.packet fields that were on their way
 * into the file.  The service's own packets do not count.
 */
void file_loss_count(struct file_loss *f, const uint8_t *data, size_t len);

/*
 * Reads the session's buffers and counts all packets, a batch in each turn of
 * the loop; then calls done(arg), which file_loss_free() prevents.  out is
 * borrowed until then, and has no batch between turns.  To be called once.
 * Without memory the loss is marked as of unknown amount.
 */
void file_loss_drain(struct file_loss *f, struct packet_out *out, loop_fn done,
    void *arg);

/* Packets counted so far. */
uint64_t file_loss_packets(const struct file_loss *f);

#endif /* SERVICE_OUTPUT_FILE_LOSS_H */
