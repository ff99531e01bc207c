/*
 * session_snapshots: saves the snapshots that CLONE_SNAPSHOT triggers cause
 * while a session goes on: FILE.0, FILE.1 and so on, named as by Perfetto's
 * command.
 *
 * One at a time, each over a connection of its own, as a connection has one
 * session.  Hits that come meanwhile are queued, up to a limit.
 */
#ifndef CLIENT_RECORD_SESSION_SNAPSHOTS_H
#define CLIENT_RECORD_SESSION_SNAPSHOTS_H

#include <stdbool.h>

#include "transport/base/compiler.h"

struct Perfetto__Protos__ObservableEvents__CloneTriggerHit;
struct addr;
struct dial_options;
struct loop;
struct record_live;
struct record_snapshots;

/* Most hits in the queue; further ones fail. */
#define RECORD_SNAPSHOTS_QUEUE_MAX 32u

/* Borrowed for the life of the snapshots. */
struct record_snapshots_setup {
	struct loop *loop;
	const struct addr *addr;
	const struct dial_options *how;
	struct record_live *live;
	const char *out;  /* FILE */
	bool no_clobber;  /* skip numbers whose file exists */
};

/* NULL: no memory. */
struct record_snapshots *record_snapshots_new(
    const struct record_snapshots_setup *setup) MUST_CHECK;
/* Gives up the current snapshot: its file ends on a whole packet. */
void record_snapshots_free(struct record_snapshots *s);

/* Saves a copy of the session that the hit names.  hit is copied. */
void record_snapshots_take(struct record_snapshots *s,
    const struct Perfetto__Protos__ObservableEvents__CloneTriggerHit *hit);

/* Snapshots asked for so far, and how many of them could not be saved. */
unsigned record_snapshots_taken(const struct record_snapshots *s);
unsigned record_snapshots_failed(const struct record_snapshots *s);

/* Calls fn once, from the loop, when none is under way and none queued. */
void record_snapshots_when_idle(struct record_snapshots *s,
    void (*fn)(void *arg), void *arg);

#endif /* CLIENT_RECORD_SESSION_SNAPSHOTS_H */
