/*
 * trigger: named events from producers that start, stop or snapshot the
 * sessions that wait for them (TraceConfig.trigger_config).
 */
#ifndef SERVICE_SESSION_TRIGGER_H
#define SERVICE_SESSION_TRIGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct producer;
struct service;
struct session;
struct trigger_state;

/* Delayed CLONE_SNAPSHOT hits of one session; further ones are dropped. */
#define TRIGGER_DELAYED_MAX 16u

/* Past hits (max_per_24_h) and a random source.  NULL: no memory. */
struct trigger_state *trigger_state_new(void) MUST_CHECK;
void trigger_state_free(struct trigger_state *t);

/* Clock and random source; tests bring their own. */
struct trigger_world {
	uint64_t (*now_ns)(void *arg);
	double (*random)(void *arg); /* in [0, 1) */
	void *arg;
};
/* Copied; the functions are called as long as t lives. */
void trigger_state_set_world(struct trigger_state *t,
    const struct trigger_world *w);

/* Whether the session's config waits for a trigger to start (START_TRACING). */
bool trigger_starts(const struct session *s);
/*
 * Prepares a new session for its triggers.  -1 with a sentence in err (a bad
 * producer_name_regex).
 */
int trigger_arm(struct session *s, char *err, size_t err_size) MUST_CHECK;
/*
 * Rearms trigger_timeout_ms at the start: from now on it limits the time that
 * STOP_TRACING and CLONE_SNAPSHOT run, and no longer ends one that waited for
 * START_TRACING.
 */
void trigger_session_started(struct session *s);

/* Drops the delayed hits and trigger filters of a session that is freed. */
void trigger_session_gone(struct session *s);

/* ActivateTriggers of p; name is len untrusted bytes, not terminated. */
void trigger_activate(struct producer *p, const char *name, size_t len);

#endif /* SERVICE_SESSION_TRIGGER_H */
