/*
 * line: how one device talks to a collector: over a connection of its own
 * (line_direct.c), or as a channel of a relay's link (line_link.c,
 * tests/bench/load/link_relay.h).
 *
 * The device says what it would say to a ProducerPort and does not know the
 * difference.
 */
#ifndef TESTS_BENCH_LOAD_LINE_H
#define TESTS_BENCH_LOAD_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct line;
struct loop;
struct place;

enum line_call {
	LINE_INITIALIZE,
	LINE_COMMANDS,
	LINE_REGISTER_SOURCE,
	LINE_REGISTER_WRITER,
	LINE_UNREGISTER_WRITER,
	LINE_COMMIT,
	LINE_STARTED,
	LINE_STOPPED,
	LINE_SYNC,
	/* Of relays only: TributaryLink, RelayPort. */
	LINE_LINK_OPEN,
	LINE_LINK_UP,
	LINE_LINK_DOWN,
	LINE_INIT_RELAY,
	LINE_CALLS
};

enum line_cut {
	LINE_CLEAN, /* what was said is delivered first */
	LINE_RESET, /* TCP: both ends lose what was on the way */
	/* The other end is not told (needs CAP_NET_ADMIN; else a reset). */
	LINE_VANISH,
};

/* From the loop, never from inside a call. */
struct line_ops {
	void (*up)(void *arg);
	/*
	 * A GetAsyncCommandResponse (or what else LINE_LINK_DOWN is answered
	 * with); fd >= 0 is the callee's.
	 */
	void (*command)(void *arg, const uint8_t *msg, size_t len, int fd);
	/* The call that got this ticket was answered (not: LINE_COMMANDS). */
	void (*replied)(void *arg, uint64_t ticket, bool ok,
	    const uint8_t *msg, size_t len);
	/* What was queued has gone. */
	void (*drained)(void *arg);
	/*
	 * The other end ended it, or it never came about.  kind is one of few
	 * words, for counting.  The line wants line_free().
	 */
	void (*down)(void *arg, const char *kind, const char *text);
};

struct line_type {
	/*
	 * wants_reply: returns a ticket, not 0, that replied() names later.
	 */
	uint64_t (*call)(struct line *l, enum line_call what, const void *args,
	    size_t len, bool wants_reply);
	size_t (*queued)(const struct line *l);
	bool (*has_fds)(const struct line *l);
	void (*pause)(struct line *l, bool pause);
	/* Bytes as they are, in place of a frame (hostile devices). */
	void (*raw)(struct line *l, const void *data, size_t len);
	void (*end)(struct line *l, enum line_cut how);
};
/* The first member of each kind of line. */
struct line {
	const struct line_type *type;
};

/* Ends it; its callbacks are not called any more.  NULL is fine. */
static inline void
line_free(struct line *l, enum line_cut how)
{
	if (l != NULL)
		l->type->end(l, how);
}

/* Who a device says it is, where it speaks for a machine. */
struct line_identity {
	const char *machine_id_hint; /* NULL: says nothing */
	const char *machine_name;
	const char *clocks; /* transport/clock/this_machine.h; NULL: not said */
	int32_t pid;
};

/*
 * service: "ProducerPort", or NULL: binds nothing, up() follows the
 * connection.  device chooses the certificate.  NULL with a sentence in err.
 */
struct line *line_direct_new(struct loop *l, const struct place *p,
    const char *service, uint32_t device, const struct line_identity *id,
    const struct line_ops *ops, void *arg, char *err, size_t err_size)
    MUST_CHECK;

#endif /* TESTS_BENCH_LOAD_LINE_H */
