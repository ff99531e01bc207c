/*
 * retention: which segments of an archive are to be deleted, by limits on their
 * age and bytes and on the room that the disk has left, and why.
 *
 * Pure: neither files nor a clock.  Oldest first, by a segment's end.  Pinned
 * segments are never chosen, nor, where uploads are waited for, those that the
 * store has not got; a limit that cannot be kept because of them is named.
 */
#ifndef CLIENT_ARCHIVER_RETENTION_RETENTION_H
#define CLIENT_ARCHIVER_RETENTION_RETENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

/* 0: none. */
struct retention_limit {
	uint64_t bytes;
	uint64_t age_ms;
};

/* Each recording that fits the pattern is held to `keep` by itself. */
struct retention_rule {
	const char *recording;
	struct retention_limit keep;
};

/* The first rule that fits a recording counts. */
struct retention_policy {
	struct retention_limit all;
	struct retention_limit each_machine;
	const struct retention_rule *rules;
	size_t n_rules;
	uint64_t min_free; /* bytes of the disk; 0: none */
	bool waits_for_upload;
};

struct retention_segment {
	uint64_t id;           /* the caller's; decides between equal ends */
	const char *recording;
	const char *machine;   /* "": of several machines, so of none's limit */
	uint64_t end_ms;       /* since 1970 */
	uint64_t bytes;        /* on this disk */
	bool pinned;
	bool stored;           /* elsewhere, too */
};

enum retention_scope {
	RETENTION_RECORDING,
	RETENTION_MACHINE,
	RETENTION_ALL,
	RETENTION_DISK,
};

/* A limit that is exceeded. */
struct retention_reason {
	enum retention_scope scope;
	bool by_age;       /* else by bytes */
	const char *name;  /* of the recording or machine; borrowed; else "" */
	uint64_t limit;    /* milliseconds or bytes */
	uint64_t value;    /* age of the segment, bytes of all, or bytes free */
};

struct retention_deletion {
	size_t segment;    /* its place in the caller's array */
	struct retention_reason why;
};

/* A limit that stays exceeded, and the segments that are in its way. */
struct retention_excess {
	struct retention_reason over;
	uint64_t n_pinned, pinned_bytes;
	uint64_t n_waiting, waiting_bytes; /* not stored yet, and not pinned */
};

/* At most so many segments are named as the next to go. */
#define RETENTION_NEXT_MAX 4u

struct retention_plan {
	struct retention_deletion *deletions; /* in the order to go */
	size_t n_deletions;
	struct retention_excess *excesses;
	size_t n_excesses;
	uint64_t bytes;     /* of the segments that stay */
	uint64_t free;      /* bytes of the disk, after the deletions */
	/*
	 * The disk has less than a tenth more than min_free left: so many
	 * segments, the first of them by place, go when it is reached.
	 */
	bool near;
	size_t next[RETENTION_NEXT_MAX];
	size_t n_next;
	uint64_t due_ms;    /* when the next one is too old; UINT64_MAX: never */
};

/*
 * Fills *plan; its names are the segments'.  free_bytes: of the disk, before
 * the deletions.  -1: no memory; *plan is then empty.
 */
int retention_plan_make(struct retention_plan *plan,
    const struct retention_policy *policy,
    const struct retention_segment *segments, size_t n, uint64_t now_ms,
    uint64_t free_bytes) MUST_CHECK;
void retention_plan_done(struct retention_plan *plan);

/* Enough for the sentences below, but for names, which are cut. */
#define RETENTION_TEXT_MAX 400

/* "machine kiosk-7 has 10.2 GiB of segments, and keeps 10.0 GiB" */
char *retention_reason_text(char out[RETENTION_TEXT_MAX],
    const struct retention_reason *why);
/*
 * Names the limit, and the segments that are in the way: "...; 3 pinned segments
 * (1.0 GiB) are in the way".
 */
char *retention_excess_text(char out[RETENTION_TEXT_MAX],
    const struct retention_excess *e);

#endif /* CLIENT_ARCHIVER_RETENTION_RETENTION_H */
