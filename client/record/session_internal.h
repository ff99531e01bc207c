/*
 * session_internal: the state of a recording, private to its parts:
 *
 *	session.c           states and ends
 *	session_begin.c     connected: how the trace travels, and how it begins
 *	session_reading.c   packets out of the collector's buffers
 *	session_progress.c  progress: line, advice, start, triggers
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
struct consumer;
struct loop_timer;
struct trace_follow;

/* A session that still runs this long after its expected end is ended. */
#define RECORD_END_GRACE_MS 60000
/* Longest pause between packets while the trace is read. */
#define RECORD_READ_STALL_MS 30000
/* Time-out of CloneSession, in which the service flushes and may write. */
#define RECORD_CLONE_MS 120000
/* Time-out of Attach and Detach. */
#define RECORD_ASK_MS 30000
/* Bytes of a growing file that one turn of the loop reads. */
#define RECORD_FOLLOW_A_TURN (64ull << 20)

enum record_travel {
	TRAVEL_READ_AT_END, /* the buffers are read after the session */
	TRAVEL_STREAM,      /* the buffers are read during the session, too */
	TRAVEL_SERVICE,     /* the service writes into our descriptor */
	TRAVEL_REMOTE,      /* the service writes into a file not open here */
};

enum record_state {
	/* In brackets: what the deadline timer is set to. */
	DELAYED,    /* waits to connect [delay_ms] */
	CONNECTING, /* [not set: the kernel's time-out counts] */
	ASKING,     /* CloneSession, Attach or Detach is out [CLONE, ASK] */
	RECORDING,  /* EnableTracing is out [expected end, if there is one] */
	STOPPING,   /* flush, then disable [END_GRACE and time-outs] */
	SAVING,     /* the last read [READ_STALL], or snapshots [not set] */
	/* A pipe takes the rest, or commands run [not set: may be slow]. */
	DRAINING,
	DONE,       /* done was called */
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
	bool failed;       /* result has the sentence; DRAINING or DONE */
	unsigned stops;    /* calls of record_session_stop() */
	uint64_t buffered; /* bytes ever written into the buffers */
	uint64_t stored;   /* packets, likewise; 0: not known */
	struct record_numbers numbers;
	struct record_result result;
};

/* session.c */

void record_set_state(struct record_session *s, enum record_state to);
/*
 * Fails the recording with a sentence: writes out or reads back what there is,
 * then record_report().  Does nothing when DONE.
 */
void record_fail(struct record_session *s, const char *fmt, ...)
    PRINTF_LIKE(2, 3);
/* All packets are there: makes them durable and reports. */
void record_finish(struct record_session *s);
/*
 * Frees the consumer and calls done with s->result, once.  done may free s: do
 * not touch it afterwards.
 */
void record_report(struct record_session *s);
/*
 * Reads up to max bytes more of the file that the service writes into the
 * summary; as trace_follow_read().
 */
int record_catch_up(struct record_session *s, uint64_t max, char *err,
    size_t err_size) MUST_CHECK;
/* Flushes, then ends the session. */
void record_end_session(struct record_session *s);

/* session_begin.c */

void record_connected_cb(void *arg);
/* Empties the file, if any, and readies it; 0, or -1 after record_fail(). */
int record_begin_file(struct record_session *s) MUST_CHECK;
/*
 * Whether an error of EnableTracing means that the descriptor did not reach the
 * service; then record_stream_instead() starts the session without it.
 */
bool record_descriptor_was_lost(const struct record_session *s,
    const char *error);
void record_stream_instead(struct record_session *s);

/* session_reading.c */

void record_save(struct record_session *s);
void record_stream_cb(void *arg);
void record_packet_cb(void *arg, const uint8_t *data, size_t len);
void record_read_done_cb(void *arg, const char *error);
/* As `drained` of record_file_begin(). */
void record_drained_cb(void *arg);

/* session_progress.c */

/* Asks for the service's state: names for the summary; advise: for advice. */
void record_query_state(struct record_session *s, bool advise);
void record_tick_cb(void *arg);
void record_starting_cb(void *arg);
/* events: encoded ObservableEvents. */
void record_observed_cb(void *arg, const uint8_t *events, size_t len);
/* Returns the events that have to be observed, as a mask. */
uint32_t record_observes(const struct record_session *s);

#endif /* CLIENT_RECORD_SESSION_INTERNAL_H */
