/*
 * session_internal: functions that the files of this room share and other rooms
 * do not see: a session's life in session.c (its parts), session_new.c,
 * session_timers.c, session_start.c and session_end.c, and the events that
 * producers, instances and triggers report to it.
 */
#ifndef SERVICE_SESSION_SESSION_INTERNAL_H
#define SERVICE_SESSION_SESSION_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct data_source;
struct loop_timer;
struct ds_instance;
struct service;
struct session;

/* Frees the session's buffers and their ids; producers may not write there. */
void session_release_buffers(struct session *s);
/* Frees the session and all of its parts at once, without asking producers. */
void session_destroy(struct session *s);
/* Calls service.idle, once, when no session is unfinished. */
void session_maybe_idle(struct service *sv);

/* counts_sleep: time for which the machine is suspended counts. */
struct loop_timer *session_timer_new(struct session *s, bool counts_sleep,
    void (*fn)(void *session)) MUST_CHECK;
int session_timers_make(struct session *s) MUST_CHECK;
/* Arms the config's timers: duration, flush, snapshot, incremental state. */
void session_timers_arm(struct session *s);
void session_timers_clear(struct session *s);

/* file_ops.opened of a session's file: starts a session that waited for it. */
void session_file_opened(struct session *s);

/* Sets up instances of all producers, over turns of the loop. */
void session_set_up_all(struct session *s);
/* Starts the session as soon as its file is open and all is set up. */
void session_want_start(struct session *s);
/* Tells the consumer, once, when all instances have started. */
void session_check_started(struct session *s);

/* ---- called by producers, instances and triggers ---- */

/* A producer registered a data source: live sessions make instances of it. */
void sessions_data_source_added(struct service *s, struct data_source *ds);
/* A producer is gone: its patches are not waited for any more. */
void sessions_give_up_patches(struct service *s, uint32_t producer);
/* A producer is gone: its sequences get no new packets. */
void sessions_producer_gone(struct service *s, uint32_t producer);
/* An instance was set up: the consumer is told that it is stopped. */
void session_instance_made(struct session *s, const struct ds_instance *i);
/* An instance changed its state. */
void session_instance_changed(struct session *s, struct ds_instance *i);
/* An instance was freed: the session's end does not wait for it. */
void session_instance_gone(struct session *s);
/* A START_TRACING trigger was hit: starts the session if it awaits one. */
void session_start_by_trigger(struct session *s);

#endif /* SERVICE_SESSION_SESSION_INTERNAL_H */
