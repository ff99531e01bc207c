/*
 * control_internal: declarations that the files of TributaryControl share:
 * control_port.c (the connection, and answers in parts), control_machines.c,
 * control_producers.c, control_sessions.c, control_metrics.c (questions),
 * control_recordings.c and control_commands.c.
 * For them only.
 */
#ifndef SERVICE_PORT_CONTROL_INTERNAL_H
#define SERVICE_PORT_CONTROL_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "service/access/principal.h"
#include "transport/base/compiler.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_host.h"
#include "transport/wire/pb_writer.h"

struct control;
struct control_command;
struct service;

/* A reply stays below the clients' 128 KiB. */
#define CONTROL_PART_BYTES (100u * 1024u)
/* Commands of one connection that are not answered yet. */
#define CONTROL_COMMANDS_MAX 64u

/*
 * Source of an answer's entries.  head: writes the fields that come once to
 * part.  entry: writes the next entry with its tag, or nothing where the thing
 * is gone by now; false: there are no more.
 */
struct control_question {
	void (*head)(struct control *p, struct pb_writer *part);
	bool (*entry)(struct control *p, struct pb_writer *entry);
};

/* A connection, which has one question at a time. */
struct control {
	struct service *service;
	struct rpc_conn *conn;
	struct principal who;

	const struct control_question *question;
	struct rpc_call call;   /* conn NULL: no question */
	size_t n_entries;       /* of the question's list below */
	size_t next;
	uint32_t *machines;     /* ids; some may be gone by now */
	uint64_t *sessions;     /* likewise */
	struct pb_writer told;  /* the whole answer about producers */
	bool with_stats;
	bool begun;
	struct pb_writer entry; /* written, but in no part yet; or empty */
	struct pb_writer part;
	struct loop_call send_call;

	TAILQ_HEAD(, control_command) commands;
	size_t n_commands;
};

/*
 * Begins to answer a question, after the caller has filled the lists of p that
 * q reads.
 */
void control_answer(struct control *p, struct rpc_call call,
    const struct control_question *q);
/* CLOCK_REALTIME now. */
uint64_t control_now_ns(void);
/* A command that waits for its answer.  NULL: too many, or no memory. */
struct control_command *control_command_new(struct control *p,
    struct rpc_call call) MUST_CHECK;
/* Answers it (SessionCommandReply) and frees it.  error NULL: done. */
void control_command_done(struct control_command *c, uint64_t id,
    const char *error);
/* The connection has ended: commands are not answered any more. */
void control_commands_forget(struct control *p);

/* The methods (rpc_method_fn). */
#define CONTROL_METHOD(name)                                                  \
	enum rpc_verdict control_##name(void *port, struct rpc_call call,     \
	    const uint8_t *args, size_t len)
CONTROL_METHOD(query_machines);
CONTROL_METHOD(query_sessions);
CONTROL_METHOD(query_producers);
CONTROL_METHOD(start_session);
CONTROL_METHOD(flush_session);
CONTROL_METHOD(stop_session);
CONTROL_METHOD(cut_session);
CONTROL_METHOD(query_recordings);
CONTROL_METHOD(start_recording);
CONTROL_METHOD(stop_recording);
CONTROL_METHOD(rotate_recording);
CONTROL_METHOD(query_metrics);
CONTROL_METHOD(drain);
#undef CONTROL_METHOD

/* ---- control_quota.c ---- */

struct quota_counts;
/* Appends a QuotaState as this field, unless no quota applies. */
void control_put_quota(struct pb_writer *w, uint32_t field,
    const struct quota_counts *c);

#endif /* SERVICE_PORT_CONTROL_INTERNAL_H */
