/*
 * session_internal: what the files of one session's life share: session.c (what
 * it is), session_new.c, session_timers.c, session_start.c, session_end.c.  For
 * them only; others use session.h.
 */
#ifndef SERVICE_SESSION_SESSION_INTERNAL_H
#define SERVICE_SESSION_SESSION_INTERNAL_H

#include <stdbool.h>

#include "transport/base/compiler.h"

struct data_source;
struct loop_timer;
struct service;
struct session;

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
/* An instance for each of its data sources that wants ds and has none yet. */
void session_set_up(struct session *s, struct data_source *ds);
/* Says that all have started, when they have. */
void session_check_started(struct session *s);

#endif /* SERVICE_SESSION_SESSION_INTERNAL_H */
