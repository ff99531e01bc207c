/*
 * file_gate: back-pressure, the write_gate (model.h) of a session with a file:
 * holds back producers that would overwrite data that the file has not got yet,
 * and wakes them, first come, first served, when there is room.
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
 * Makes the gate of all buffers of the session.  Lossless: producers are held
 * back until file_gate_open(); else none are.  want_pass(arg) is called when a
 * producer has to wait for room and, while file_gate_watch() is on, when a
 * buffer is half full of data that came since the last pass: on the hot path,
 * so it may only ask the loop for a turn.  NULL: no memory.
 */
struct file_gate *file_gate_new(struct session *s, bool lossless,
    loop_fn want_pass, void *arg) MUST_CHECK;
/* Wakes all waiting producers.  NULL is fine. */
void file_gate_free(struct file_gate *g);

/* Stops holding producers back; file_gate_wake() wakes the waiting ones. */
void file_gate_open(struct file_gate *g);
/* Sets whether half full buffers ask for a pass. */
void file_gate_watch(struct file_gate *g, bool on);
/* Whether a pass was asked for since the last one began. */
bool file_gate_wants_pass(const struct file_gate *g);
/*
 * Wakes the producers whose chunk may be written now; the others go on waiting,
 * as their buffer has no room yet, or is being copied for a clone.
 */
void file_gate_wake(struct file_gate *g);
/*
 * Wakes only as many producers as there is room for, in their order: of
 * thousands that wait, all but a few would try in vain each time.
 */
void file_gate_wake_some(struct file_gate *g);

/* A pass over the buffers begins, or has read all that can be read. */
void file_gate_begin_pass(struct file_gate *g);
void file_gate_end_pass(struct file_gate *g);

#endif /* SERVICE_OUTPUT_FILE_GATE_H */
