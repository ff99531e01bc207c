/*
 * recording: one standing recording: its session, which begins again whatever
 * ends it.
 *
 * Is the session's consumer.  After an end it waits, longer with every end that
 * came soon (backoff), unless a person stopped it.  For recordings.c only.
 */
#ifndef SERVICE_RECORDINGS_RECORDING_H
#define SERVICE_RECORDINGS_RECORDING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "service/access/principal.h"
#include "service/recordings/recordings.h"
#include "transport/base/compiler.h"

struct pb_writer;
struct recording;
struct recording_plan;

/* The first pause, the longest, and how long a session lasts that resets it. */
#define RECORDING_PAUSE_MIN_MS 2000u
#define RECORDING_PAUSE_MAX_MS 60000u
#define RECORDING_STEADY_MS    60000u

/* plan is taken over, in any case.  gone: see recording_remove(). */
struct recording *recording_new(struct service *s, struct recording_plan *plan,
    const struct trace_folder *archive,
    void (*gone)(struct recording *r, void *arg), void *arg) MUST_CHECK;
/* Frees its session, too, which completes its files by itself. */
void recording_free(struct recording *r);
const char *recording_name(const struct recording *r);
/* Returns the owner of the sessions, the daemon itself. */
struct principal recording_owner(void);

/* Begins the session of a recording that has none; else does nothing. */
void recording_begin(struct recording *r);
/*
 * A new plan, taken over.  The session goes on where it would do the same under
 * both plans; else it is ended, and one of the new plan begins after it.
 */
void recording_change(struct recording *r, struct recording_plan *plan);
/*
 * Ends the session for good; then gone(), which may come from inside of this
 * call, and frees it.  recording_change() revokes it until then.
 */
void recording_remove(struct recording *r);

/* START, STOP and ROTATE of recordings.h. */
void recording_order(struct recording *r, enum recording_verb verb,
    recording_done_fn done, void *arg);
void recording_forget(struct recording *r, void *arg);

/* RecordingState.State. */
uint64_t recording_state_number(const struct recording *r);
/* Appends the fields of a RecordingState. */
void recording_report(const struct recording *r, struct pb_writer *w);

#endif /* SERVICE_RECORDINGS_RECORDING_H */
