/*
 * pid_notes: threads that events mention, for their names to be looked up.
 *
 * A note is made when a thread comes up that is not among those noted lately; a
 * thread may be noted more than once, and a reader of the notes knows whom it
 * has asked about already.  Inline, as each event has one to three threads.
 */
#ifndef CLIENT_FTRACE_EVENTS_PID_NOTES_H
#define CLIENT_FTRACE_EVENTS_PID_NOTES_H

#include <stdint.h>
#include <string.h>

#include "transport/base/compiler.h"

/* A power of two. */
#define PID_NOTES_SLOTS 1024u

struct pid_notes {
	int32_t slots[PID_NOTES_SLOTS]; /* thread noted last, by its low bits */
	int32_t *pids; /* owned; those not yet taken */
	uint32_t n;
	uint32_t room;
	uint64_t n_missed; /* notes for which there was no memory */
};

/* Zero-initialised is ready to use. */
void pid_notes_done(struct pid_notes *notes);
/* Forgets what was noted lately: each thread is noted once more. */
void pid_notes_renew(struct pid_notes *notes);

/* Private. */
void pid_notes_append(struct pid_notes *notes, int32_t pid);

/* 0 is an idle task, of any processor, and no thread with a name of its own. */
static inline void
pid_notes_add(struct pid_notes *notes, int32_t pid)
{
	int32_t *slot = &notes->slots[(uint32_t)pid & (PID_NOTES_SLOTS - 1)];

	if (LIKELY(*slot == pid))
		return;
	*slot = pid;
	if (pid > 0)
		pid_notes_append(notes, pid);
}

/* Forgets the notes, but not that they were made lately. */
static inline void
pid_notes_take(struct pid_notes *notes)
{
	notes->n = 0;
}

#endif /* CLIENT_FTRACE_EVENTS_PID_NOTES_H */
