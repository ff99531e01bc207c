/*
 * file_loss: what a session's file did not get, because it failed: counted for
 * the sequences that wrote it (session_losses, LINK_LOSS_TRACE_FILE), to the
 * packet.  Knows nothing of files.
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
 * Whole Trace.packet fields, as they were on their way into the file.  The
 * service's own packets are nobody's loss.
 */
void file_loss_count(struct file_loss *f, const uint8_t *data, size_t len);

/*
 * Takes all that can be read out of the session's buffers, for nobody but
 * file_loss_count(), some of it a turn of the loop; then done(arg), at once
 * behind the last of it.  out (borrowed) has no batch meanwhile.  Once.
 */
void file_loss_drain(struct file_loss *f, struct packet_out *out, loop_fn done,
    void *arg);

/* Packets counted so far. */
uint64_t file_loss_packets(const struct file_loss *f);

#endif /* SERVICE_OUTPUT_FILE_LOSS_H */
