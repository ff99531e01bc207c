/*
 * session_internal: the state of a recording, private to its parts:
 *
 *	record_session   states and ends
 *	record_begin     connected: how the trace travels, and how it begins
 *	record_reading   packets out of the collector's buffers
 *	record_progress  progress: line, advice, start, triggers
 */
#ifndef CLIENT_RECORD_SESSION_INTERNAL_H
#define CLIENT_RECORD_SESSION_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/record/live_line.h"
#include "client/record/session.h"
#include "transport/base/compiler.h"

struct Perfetto__Protos__ObservableEvents;
struct Perfetto__Protos__TracingServiceState;
struct consumer;
struct loop_timer;
struct trace_follow;

/* A service that does not end a session this long after its time is stuck. */
#define RECORD_END_GRACE_MS 60000
/* While the trace is read, something comes at least this often. */
#define RECORD_READ_STALL_MS 30000
/* A copy is flushed before, and may be written into a file. */
#define RECORD_CLONE_MS 120000
/* Attach and Detach only need to be answered. */
#define RECORD_ASK_MS 30000
/* Bytes of a growing file that one turn of the loop looks at. */
#define RECORD_FOLLOW_A_TURN (64ull << 20)

enum record_travel {
	TRAVEL_READ_AT_END, /* the buffers are read after the session */
	TRAVEL_STREAM,      /* they are read during it, too */
	TRAVEL_SERVICE,     /* the service writes into our file */
	TRAVEL_REMOTE,      /* it writes into a file that we do not hold */
};

enum record_state {
	DELAYED,    /* deadline timer: when to connect */
	CONNECTING, /* connect timer: the kernel's */
	ASKING,     /* CloneSession, Attach or Detach is out; deadline timer */
	RECORDING,  /* EnableTracing is out; end timer if there is a duration */
	STOPPING,   /* flush, then disable; end timer */
	SAVING,     /* the last read, or snapshots; stall timer for the former */
	DRAINING,   /* a pipe takes the rest; no timer: its reader may think */
	DONE,       /* the owner was told */
};

struct record_session {
	struct record_session_setup with;
	record_session_fn done;
	void *arg;
	struct record_config *config;   /* with.config, or attached; or NULL */
	struct record_config *attached; /* owned; of RECORD_ATTACH */
	struct consumer *consumer;      /* owned; NULL when DONE */
	struct trace_follow *follow;    /* owned; TRAVEL_SERVICE */
	struct loop_timer *deadline;    /* by state */
	struct loop_timer *tick;        /* the live line */
	struct loop_timer *stream;      /* TRAVEL_STREAM: the next read */
	struct loop_timer *starting;    /* record_notify's time-out */
	enum record_state state;
	enum record_travel travel;
	uint64_t began_ms;
	uint64_t max_file_bytes; /* TRAVEL_STREAM; 0: no limit */
	uint64_t read_bytes;     /* TRAVEL_STREAM: of the read under way */
	bool reading;            /* ReadBuffers is under way */
	bool ended;              /* the session is over at the service */
	bool full;               /* max_file_bytes was reached */
	bool paused;             /* the pipe is full */
	bool stats_asked;
	unsigned stops;    /* calls of record_session_stop() */
	uint64_t buffered; /* bytes that came into the buffers, ever */
	uint64_t stored;   /* packets, the same; 0: not known */
	struct record_numbers numbers;
	struct record_result result;
};

/* session.c */

void record_set_state(struct record_session *s, enum record_state to);
/* The recording failed: saves what can be saved, then reports.  Once. */
void record_fail(struct record_session *s, const char *fmt, ...)
    PRINTF_LIKE(2, 3);
/* All packets are there: makes them durable and reports. */
void record_finish(struct record_session *s);
/* Tells the owner, once; the result is set. */
void record_report(struct record_session *s);
/* Takes in what the service wrote into the file.  -1: it is no trace. */
int record_catch_up(struct record_session *s, uint64_t max, char *err,
    size_t err_size) MUST_CHECK;
/* Flushes, then ends the session. */
void record_end_session(struct record_session *s);

/* session_begin.c */

void record_connected_cb(void *arg);
/* Empties the file and readies it; 0, or -1 after record_fail(). */
int record_begin_file(struct record_session *s) MUST_CHECK;
/*
 * Whether an error of EnableTracing only says that the descriptor got lost on
 * the way; then record_stream_instead() tries again without.
 */
bool record_descriptor_was_lost(const struct record_session *s,
    const char *error);
void record_stream_instead(struct record_session *s);

/* session_reading.c */

void record_save(struct record_session *s);
void record_stream_cb(void *arg);
void record_packet_cb(void *arg, const uint8_t *data, size_t len);
void record_read_done_cb(void *arg, const char *error);
/* Called when all that waited for a pipe is written. */
void record_drained_cb(void *arg);

/* session_progress.c */

/* Names for the summary; advice when the recording begins. */
void record_query_state(struct record_session *s, bool advise);
void record_tick_cb(void *arg);
void record_starting_cb(void *arg);
void record_observed_cb(void *arg,
    const struct Perfetto__Protos__ObservableEvents *events);
/* Returns the events that have to be observed, as a mask. */
uint32_t record_observes(const struct record_session *s);

#endif /* CLIENT_RECORD_SESSION_INTERNAL_H */
