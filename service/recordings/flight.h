/*
 * flight: the segments of a flight recorder: at a trigger, a copy of its
 * session's buffers is written into the archive.
 *
 * One copy at a time, and no more than one in the time that follows a trigger
 * anyway (after_ms, at least FLIGHT_REST_MS): triggers that come meanwhile share
 * the next copy, which names the first of them; its trace has them all.  So a
 * storm of triggers takes the memory of one copy.  For recording.c only.
 */
#ifndef SERVICE_RECORDINGS_FLIGHT_H
#define SERVICE_RECORDINGS_FLIGHT_H

#include <stdint.h>

#include "service/model/model.h"
#include "transport/base/compiler.h"

#define FLIGHT_REST_MS 1000u
#define FLIGHT_TEXT    400u

struct clone_trigger;
struct flight;

/* Counts since it was made, for people. */
struct flight_counts {
	uint64_t written;
	uint64_t shared; /* triggers that got no segment of their own */
	uint64_t failed;
	char error[FLIGHT_TEXT]; /* of the last that failed; "": none did */
};

/* name and archive are borrowed.  NULL: no memory. */
struct flight *flight_new(struct service *s, const char *name,
    const struct trace_folder *archive) MUST_CHECK;
/* A copy that is being written is completed all the same. */
void flight_free(struct flight *f);

/* The trigger of the session was pulled, t->delay_ms ago; t is copied. */
void flight_trigger(struct flight *f, uint64_t session,
    const struct clone_trigger *t);

const struct flight_counts *flight_counts(const struct flight *f);

#endif /* SERVICE_RECORDINGS_FLIGHT_H */
