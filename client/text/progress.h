/*
 * progress: how far a command is, as one line of standard error that is redrawn:
 * on a terminal only, and only once the command has taken a second.
 */
#ifndef CLIENT_TEXT_PROGRESS_H
#define CLIENT_TEXT_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Commands that are done before say nothing of it. */
#define PROGRESS_AFTER_MS  1000u
/* Shortest time between two changes of the line. */
#define PROGRESS_PERIOD_MS 250u
/* A rate of a shorter time tells nothing of the time that is left. */
#define PROGRESS_STEADY_MS 3000u

#define PROGRESS_TEXT_MAX  256

/*
 * Public only so that it can be embedded; the fields are private.  Zero is
 * ready for progress_show() and progress_clear(), which then do nothing.
 */
struct progress {
	const char *what; /* borrowed */
	uint64_t total, done;
	uint64_t begun_ms, shown_ms;
	uint64_t moved_ms; /* when done changed last */
	uint64_t left_ms;  /* as shown last; 0: it was not */
	bool enabled, in_bytes, shown;
};

/* what: "segments read".  total 0: not known yet, or ever. */
void progress_begin(struct progress *p, const char *what, uint64_t total);
/* As above, for a total of bytes: "sent: 3.1 MiB of 12.0 MiB ...". */
void progress_begin_bytes(struct progress *p, const char *what, uint64_t total);
/* Corrects the total of what goes on. */
void progress_expect(struct progress *p, uint64_t total);
/*
 * Shows "segments read: 12 of 34 (35 %), 20 s left", where it is time to; "12
 * so far" without a total.
 */
void progress_show(struct progress *p, uint64_t done);
/* Removes the line, before other output and at the end. */
void progress_clear(struct progress *p);

/* ---- pure: now_ms is given ---- */

/* Whether the line is to be drawn at this time. */
bool progress_is_due(const struct progress *p, uint64_t now_ms);
/* Notes how much is done. */
void progress_note(struct progress *p, uint64_t done, uint64_t now_ms);
/*
 * Milliseconds that are left by the rate since the begin, in round steps; 0:
 * not known.  Does not rise by a single step, so that it does not flicker.
 */
uint64_t progress_left_ms(const struct progress *p, uint64_t now_ms);
/* The line, without escape sequences. */
void progress_text(const struct progress *p, uint64_t left_ms,
    char out[PROGRESS_TEXT_MAX]);

#endif /* CLIENT_TEXT_PROGRESS_H */
