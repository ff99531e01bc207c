/*
 * trigger_call: activates triggers of tracing sessions, once, as a producer
 * that connects, names the triggers and disconnects.
 *
 * The collector does not tell which sessions waited for them.
 */
#ifndef CLIENT_LIBRARY_TRIGGER_CALL_H
#define CLIENT_LIBRARY_TRIGGER_CALL_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct addr;
struct dial_options;
struct loop;
struct trigger_call;

/* Name of the producer: configs of triggers may name it. */
#define TRIGGER_CALL_PRODUCER "perfetto_cmd_producer"
/*
 * Prefix of the names of producers that activate triggers at all collectors of a
 * fleet: no program has to pass these on.
 */
#define TRIGGER_CALL_FLEET "fleet/"
/* Time-out for the collector's answer. */
#define TRIGGER_CALL_MS 10000

/*
 * The outcome, called once, from the loop.  why: NULL when the collector took
 * the triggers, else a sentence that is borrowed for the call.
 */
typedef void (*trigger_call_fn)(void *arg, const char *why);

/* Pointers in it are borrowed until the outcome. */
struct trigger_call_setup {
	const struct addr *addr;
	const struct dial_options *how; /* NULL: defaults */
	const char *const *names;       /* n triggers */
	size_t n;
	const char *producer; /* NULL: TRIGGER_CALL_PRODUCER */
	uint32_t timeout_ms;  /* 0: TRIGGER_CALL_MS */
	trigger_call_fn fn;
	void *arg;
};

/*
 * Begins to connect to a producer socket.  NULL with a sentence in err, and no
 * outcome.
 */
struct trigger_call *trigger_call_new(struct loop *l,
    const struct trigger_call_setup *setup, char *err, size_t err_size)
    MUST_CHECK;
/* Legal inside fn, which is not called afterwards.  NULL is fine. */
void trigger_call_free(struct trigger_call *t);

#endif /* CLIENT_LIBRARY_TRIGGER_CALL_H */
