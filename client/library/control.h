/*
 * control: one connection to a collector's service "TributaryControl"
 * (protos/control.proto), for questions and commands that Perfetto's ports do
 * not have.
 *
 * Questions and commands may be given before the connection is up, and any
 * number of times; each gets one answer, from the loop and never from inside
 * the asking function.  A collector answers the questions of one connection one
 * after the other: the next question is sent when the last one is answered;
 * commands are sent as soon as the connection is up.
 *
 * For commands that serve one person: without memory for a call the process
 * ends with status 1.
 */
#ifndef CLIENT_LIBRARY_CONTROL_H
#define CLIENT_LIBRARY_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct Tributary__QueryMachinesReply;
struct Tributary__DrainReply;
struct Tributary__QueryMetricsReply;
struct Tributary__QueryProducersReply;
struct Tributary__QueryRecordingsReply;
struct Tributary__QuerySessionsReply;
struct addr;
struct control;
struct dial_options;
struct loop;

/* The largest answer, in bytes. */
#define CONTROL_MAX_ANSWER (64u << 20)

/*
 * Answers.  reply and why are borrowed for the call; reply NULL: refused or
 * failed, and why is a sentence.  control_free() is legal inside.
 */
typedef void (*control_machines_fn)(void *arg,
    const struct Tributary__QueryMachinesReply *reply, const char *why);
typedef void (*control_sessions_fn)(void *arg,
    const struct Tributary__QuerySessionsReply *reply, const char *why);
typedef void (*control_producers_fn)(void *arg,
    const struct Tributary__QueryProducersReply *reply, const char *why);
typedef void (*control_recordings_fn)(void *arg,
    const struct Tributary__QueryRecordingsReply *reply, const char *why);
typedef void (*control_metrics_fn)(void *arg,
    const struct Tributary__QueryMetricsReply *reply, const char *why);
typedef void (*control_drain_fn)(void *arg,
    const struct Tributary__DrainReply *reply, const char *why);
/* error: NULL when the command was carried out, else a sentence. */
typedef void (*control_done_fn)(void *arg, const char *error);

/*
 * Begins to connect; when that fails, every call is answered with the reason.
 * a and how (NULL: defaults) are copied.  NULL with a sentence in err.
 */
struct control *control_new(struct loop *l, const struct addr *a,
    const struct dial_options *how, char *err, size_t err_size) MUST_CHECK;
/*
 * Closes the connection.  Outstanding calls get no answer; the collector still
 * carries out commands that were sent.  NULL is fine.
 */
void control_free(struct control *c);

void control_query_machines(struct control *c, control_machines_fn fn,
    void *arg);

void control_query_producers(struct control *c, control_producers_fn fn,
    void *arg);

void control_query_recordings(struct control *c, control_recordings_fn fn,
    void *arg);

void control_query_metrics(struct control *c, control_metrics_fn fn,
    void *arg);

struct control_drain_order {
	bool drain; /* false: no longer */
	uint32_t after_ms; /* DrainRequest.after_ms */
};
/* Drains the collector; o NULL: only asks how far it is. */
void control_drain(struct control *c, const struct control_drain_order *o,
    control_drain_fn fn, void *arg);

/* Selects sessions; all 0: every session that this principal may see. */
struct control_sessions {
	uint64_t id;      /* 0: any */
	const char *name; /* unique_session_name; NULL: any */
	bool with_stats;
};
void control_query_sessions(struct control *c,
    const struct control_sessions *which, control_sessions_fn fn, void *arg);

enum control_verb {
	CONTROL_START,
	CONTROL_FLUSH,
	CONTROL_STOP,
	CONTROL_CUT, /* done when it is planned: CutSession */
};

struct control_order {
	enum control_verb verb;
	uint64_t id;
	uint32_t timeout_ms; /* CONTROL_FLUSH; 0: as the session's config says */
	bool discard;        /* CONTROL_STOP */
	/*
	 * CONTROL_CUT, or NULL: gets the number of the segment that begins
	 * before the answer, unless that is an error.  Must live until then.
	 */
	uint32_t *segment;
};
/*
 * Gives a command; o is read during the call.  Answered when the command is
 * done, for which the collector may wait for producers.
 */
void control_command(struct control *c, const struct control_order *o,
    control_done_fn fn, void *arg);

enum control_recording_verb {
	CONTROL_RECORDING_START,
	CONTROL_RECORDING_STOP,
	CONTROL_RECORDING_ROTATE,
};
/* Gives a standing recording an order; name is read during the call. */
void control_recording(struct control *c, enum control_recording_verb verb,
    const char *name, control_done_fn fn, void *arg);

/*
 * Whether the collector does not know TributaryControl (Perfetto's traced) or,
 * being older, a method of it.  Meaningful inside a failed answer and
 * afterwards.
 */
bool control_is_foreign(const struct control *c);

#endif /* CLIENT_LIBRARY_CONTROL_H */
