/*
 * read_out: one ReadBuffers: the session's packets as replies, one after
 * another, compressed where its config says so.
 *
 * Compressing happens on a thread (service/sink/packer): until a batch is
 * through there may be no reply to give, and the loop goes on with others.
 * Knows nothing of connections.
 */
#ifndef SERVICE_SESSION_READ_OUT_H
#define SERVICE_SESSION_READ_OUT_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/loop/loop.h"

struct read_out;
struct session;

enum read_out_result {
	READ_OUT_MORE, /* a reply, and more follow */
	READ_OUT_LAST, /* the last reply */
	READ_OUT_WAIT, /* none yet: ready() will be called, then ask again */
};

/*
 * Reads what the session (borrowed) holds now; freed before it.  ready(arg):
 * on a later turn, maybe also when nobody waits.  NULL: no memory.
 */
struct read_out *read_out_new(struct session *s, loop_fn ready, void *arg)
    MUST_CHECK;
/* Packets that were read and not handed out are gone, as always. */
void read_out_free(struct read_out *r);

/*
 * The next ReadBuffersResponse; *len may be 0 (an empty message is a valid
 * one).  Borrowed until the next call.  Not after READ_OUT_LAST.
 */
enum read_out_result read_out_next(struct read_out *r, const uint8_t **msg,
    size_t *len) MUST_CHECK;

#endif /* SERVICE_SESSION_READ_OUT_H */
