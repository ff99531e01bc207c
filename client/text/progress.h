/*
 * progress: how far a command is, as one line of standard error that is redrawn:
 * on a terminal only, and only once the command has taken a second.
 */
#ifndef CLIENT_TEXT_PROGRESS_H
#define CLIENT_TEXT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Commands that are done before say nothing of it. */
#define PROGRESS_AFTER_MS  1000u
/* Shortest time between two changes of the line. */
#define PROGRESS_PERIOD_MS 250u

/* Public only so that it can be embedded; the fields are private. */
struct progress {
	const char *what; /* borrowed */
	uint64_t total, begun_ms, shown_ms;
	bool enabled, shown;
};

/* what: "segments read". */
void progress_begin(struct progress *p, const char *what, uint64_t total);
/* Shows "segments read: 12 of 34 (35 %)", where it is time to. */
void progress_show(struct progress *p, uint64_t done);
/* Removes the line, before other output and at the end. */
void progress_clear(struct progress *p);

/* Whether the line is to be drawn at this time.  Pure. */
bool progress_is_due(const struct progress *p, uint64_t now_ms);

#endif /* CLIENT_TEXT_PROGRESS_H */
