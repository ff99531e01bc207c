/*
 * file_gate: the write_gate (model.h) of a session with a file: holds back
 * producers that would overwrite what the file has not got yet, and wakes them,
 * first come, first served, when there is room.
 *
 * Knows neither the file nor its states: file_writer says when a pass over the
 * buffers begins and ends.  Private to the room.
 */
#ifndef SERVICE_OUTPUT_FILE_GATE_H
#define SERVICE_OUTPUT_FILE_GATE_H

#include <stdbool.h>

#include "transport/base/compiler.h"
#include "transport/loop/loop.h"

struct file_gate;
struct session;

/*
 * The gate of all buffers of the session from now on.  Lossless: producers are
 * held back, until file_gate_open(); else none are.  want_pass(arg) is called
 * when room is wanted, and while file_gate_watch() says so, when a buffer is
 * half full of what the last pass did not see: on the hot path, so it only asks
 * the loop for a turn.  NULL: no memory.
 */
struct file_gate *file_gate_new(struct session *s, bool lossless,
    loop_fn want_pass, void *arg) MUST_CHECK;
/* Wakes all who wait.  NULL is fine. */
void file_gate_free(struct file_gate *g);

/* Holds nobody back any more; file_gate_wake() wakes those who wait. */
void file_gate_open(struct file_gate *g);
/* Whether half full buffers ask for a pass. */
void file_gate_watch(struct file_gate *g, bool on);
/* Whether a producer waits. */
bool file_gate_has_waiters(const struct file_gate *g);
/* Wakes all but those whose buffer is being copied, or has no room yet. */
void file_gate_wake(struct file_gate *g);
/*
 * Wakes as many as there is room for by now, in their order.  Of thousands that
 * wait for a few chunks' room, all but a few would try in vain each time.
 */
void file_gate_wake_some(struct file_gate *g);

/* A pass over the buffers begins, or has read all that can be read. */
void file_gate_begin_pass(struct file_gate *g);
void file_gate_end_pass(struct file_gate *g);

#endif /* SERVICE_OUTPUT_FILE_GATE_H */
