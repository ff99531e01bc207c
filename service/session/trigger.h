/*
 * trigger: named events from producers that start, stop or snapshot the
 * sessions that wait for them (TraceConfig.trigger_config).
 */
#ifndef SERVICE_SESSION_TRIGGER_H
#define SERVICE_SESSION_TRIGGER_H

#include <stddef.h>

#include "transport/compiler.h"

struct producer;
struct service;
struct session;
struct trigger_state;

/* What is remembered of past hits, for max_per_24_h. */
struct trigger_state *trigger_state_new(void) MUST_CHECK;
void trigger_state_free(struct trigger_state *t);

/*
 * Prepares a new session for its triggers; sets wait_for_start_trigger and the
 * time-out.  -1 with a sentence (a bad producer_name_regex).
 */
int trigger_arm(struct session *s, char *err, size_t err_size) MUST_CHECK;

/* The session is being freed. */
void trigger_session_gone(struct session *s);

/* ActivateTriggers: name is len bytes, untrusted. */
void trigger_activate(struct producer *p, const char *name, size_t len);

#endif /* SERVICE_SESSION_TRIGGER_H */
