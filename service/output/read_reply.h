/*
 * read_reply: one ReadBuffers: the session's packets as a series of replies,
 * compressed where its config says so.
 *
 * Compressing happens on a thread (service/sink/packer): until a batch is
 * compressed there may be no reply, and the loop goes on with other work.
 * Knows nothing of connections.  All calls come from the loop's thread.
 */
#ifndef SERVICE_OUTPUT_READ_REPLY_H
#define SERVICE_OUTPUT_READ_REPLY_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/loop/loop.h"

struct read_reply;
struct session;

enum read_reply_result {
	READ_REPLY_MORE, /* a reply, and more follow */
	READ_REPLY_LAST, /* the last reply */
	READ_REPLY_WAIT, /* none yet: ready() will be called, then ask again */
};

/*
 * Starts reading the session (borrowed: to be freed later than this).
 * ready(arg) is called on a later turn when a batch is compressed, maybe also
 * without a READ_REPLY_WAIT before.  NULL: no memory.
 */
struct read_reply *read_reply_new(struct session *s, loop_fn ready, void *arg)
    MUST_CHECK;
/* Packets that were read and not handed out are lost.  NULL is fine. */
void read_reply_free(struct read_reply *r);

/*
 * The next ReadBuffersResponse; *len may be 0 (an empty message is a valid
 * one).  Borrowed until the next call.  Not after READ_REPLY_LAST.
 */
enum read_reply_result read_reply_next(struct read_reply *r, const uint8_t **msg,
    size_t *len) MUST_CHECK;

#endif /* SERVICE_OUTPUT_READ_REPLY_H */
