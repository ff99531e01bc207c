/*
 * session_state: the states in a session's life, in which order they come, and
 * what is armed in each.  session_set_state() of session.h is the one setter.
 */
#ifndef SERVICE_MODEL_SESSION_STATE_H
#define SERVICE_MODEL_SESSION_STATE_H

#include <stdbool.h>

enum session_state {
	/*
	 * Being made: it may still be refused.  Observers are not told of it.
	 */
	SESSION_NEW,
	/*
	 * Data sources are being set up (walk).  StartTracing is awaited; in
	 * AWAITS_TRIGGER also a START_TRACING trigger, and trigger_timer ends
	 * the session without one.
	 */
	SESSION_CONFIGURED,
	SESSION_AWAITS_TRIGGER,
	/* Starts when all is set up (walk) and the file is open (its sink). */
	SESSION_STARTING,
	/*
	 * Tracing.  Timers of the config: duration, flush, snapshot, clear, the
	 * file's; trigger_timer until a trigger is hit, trigger_stop_timer from
	 * then on; start_timer until all sources have started.  Flushes and
	 * change_walk come and go.
	 */
	SESSION_STARTED,
	/*
	 * The final flush is under way.  The rest of the timers goes on, but
	 * for duration and triggers; buffers are closing.
	 */
	SESSION_LAST_FLUSH,
	/* Producers are being told to stop (walk). */
	SESSION_STOPPING,
	/* The producers' acknowledgements are awaited: stop_timer. */
	SESSION_DISABLING,
	/* The file gets the rest, in bounded time (its sink). */
	SESSION_CLOSING,
	/* The trace is in its buffers or its file.  Nothing is armed. */
	SESSION_DISABLED,
	/* A read-only copy of a session.  Only its file's sink is armed. */
	SESSION_CLONED,
	/*
	 * Freed, and its buffers are gone, but producers are still being told
	 * to stop (walk).
	 */
	SESSION_GONE,
};

/* States as peers and observers see them: those of Perfetto's service. */
enum session_phase {
	SESSION_PHASE_NEW, /* not shown */
	SESSION_PHASE_CONFIGURED,
	SESSION_PHASE_STARTED,
	SESSION_PHASE_STOPPING,
	SESSION_PHASE_DISABLED,
	SESSION_PHASE_CLONED,
};

enum session_phase session_phase(enum session_state s);
/* Perfetto's word for its phase. */
const char *session_phase_name(enum session_phase p);
/*
 * Whether a session in this state may start, or runs, and takes data sources
 * and triggers: its end has not begun.
 */
bool session_state_is_live(enum session_state s);

#endif /* SERVICE_MODEL_SESSION_STATE_H */
