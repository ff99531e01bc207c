/*
 * live_line: progress of `tributary record` on standard error: one line that is
 * redrawn on a terminal, and messages above it.
 */
#ifndef CLIENT_RECORD_LIVE_LINE_H
#define CLIENT_RECORD_LIVE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

/* Shortest time between two changes of the line. */
#define RECORD_LIVE_PERIOD_MS 250

struct record_live;

struct record_numbers {
	const char *phase;    /* "Recording" */
	uint64_t elapsed_ms;
	uint64_t expected_ms; /* 0: until the recording is stopped */
	uint64_t bytes;
	uint64_t packets;
	bool packets_known; /* else chunks are shown instead of packets */
	uint64_t chunks;
	uint64_t producers;
	uint64_t losses;
};

/*
 * The line without escape sequences, cut to columns (0: not cut).  Returns
 * where in it the losses begin, which are its end.  Pure.
 */
size_t record_live_format(char *out, size_t out_size,
    const struct record_numbers *n, unsigned columns);

/* quiet: no line even on a terminal, and no notes.  NULL: no memory. */
struct record_live *record_live_new(bool quiet) MUST_CHECK;
/*
 * Says sentences of one of several collectors, by its name (borrowed), above
 * another's line.
 */
struct record_live *record_live_of(struct record_live *line, const char *name)
    MUST_CHECK;
/* Ends the line if one is shown. */
void record_live_free(struct record_live *l);

/* Whether the line is shown, so that numbers have to be collected. */
bool record_live_enabled(const struct record_live *l);
void record_live_show(struct record_live *l, const struct record_numbers *n);
/* Removes the line; the next show brings it back. */
void record_live_clear(struct record_live *l);

/*
 * "tributary: ..." on a line of its own, or several.  Control characters other
 * than newlines are shown as question marks.
 */
void record_live_say(struct record_live *l, const char *fmt, ...)
    PRINTF_LIKE(2, 3);
/* Says a sentence that is neither a warning nor an error. */
void record_live_note(struct record_live *l, const char *sentence);

#endif /* CLIENT_RECORD_LIVE_LINE_H */
