/*
 * session_internal: what the files of this room share and other rooms do not
 * see: one session's life in session.c (what it is), session_new.c,
 * session_timers.c, session_start.c and session_end.c, and what producers,
 * instances and triggers tell it.
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

/* Frees their memory and ids; no producer writes there any more. */
void session_release_buffers(struct session *s);
/* Frees what is left; nothing may run any more.  s is dead. */
void session_destroy(struct session *s);
/* Tells the daemon when it waits for the end and nothing is busy any more. */
void session_maybe_idle(struct service *sv);

/* counts_sleep: the time that the machine sleeps counts. */
struct loop_timer *session_timer_new(struct session *s, bool counts_sleep,
    void (*fn)(void *session)) MUST_CHECK;
int session_timers_make(struct session *s) MUST_CHECK;
/* Arms the config's timers: duration, flush, snapshot, incremental state. */
void session_timers_arm(struct session *s);
void session_timers_clear(struct session *s);

/* The file_ops of a session whose own file is open: what waited for it starts. */
void session_file_opened(struct session *s);

/* Sets up what the producers there offer; then a start may come. */
void session_set_up_all(struct session *s);
/* Starts as soon as its file is open, and all is set up. */
void session_want_start(struct session *s);
/* Says that all have started, when they have. */
void session_check_started(struct session *s);

/* ---- called by producers, instances and triggers ---- */

/* A producer registered a data source: sessions that want it take it. */
void sessions_data_source_added(struct service *s, struct data_source *ds);
/* A producer is gone: its patches are not waited for any more. */
void sessions_give_up_patches(struct service *s, uint32_t producer);
/* A producer is gone: its sequences get no new packets. */
void sessions_producer_gone(struct service *s, uint32_t producer);
/* An instance was set up: its consumer hears of it, as of one that stands. */
void session_instance_made(struct session *s, const struct ds_instance *i);
/* An instance changed its state. */
void session_instance_changed(struct session *s, struct ds_instance *i);
/* An instance is no more: the end waits for it no longer. */
void session_instance_gone(struct session *s);
/* A trigger that it waits for was hit: start now (START_TRACING). */
void session_start_by_trigger(struct session *s);

#endif /* SERVICE_SESSION_SESSION_INTERNAL_H */
