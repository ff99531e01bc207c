/*
 * passage: a local socket whose bytes go to a service elsewhere and back,
 * through whatever its address says: TCP, TLS, ssh.
 *
 * Dials the service, and passes bytes both ways unread, with back-pressure.
 * When one of the two connections ends, what it sent last still reaches the
 * other.  Belongs to one loop.
 */
#ifndef CLIENT_TUNNEL_PASSAGE_H
#define CLIENT_TUNNEL_PASSAGE_H

#include <stddef.h>

#include "transport/base/compiler.h"

struct addr;
struct dial_options;
struct loop;
struct passage;
struct stream;

struct passage_ops {
	/*
	 * The service is connected: bytes written to far go before the near
	 * side's.  -1: no memory, and ended() follows.  May be NULL.
	 */
	int (*opened)(void *arg, struct stream *near, struct stream *far);
	/*
	 * The passage is over; to be freed inside, which closes the near side.
	 * why: a sentence, borrowed for the call, or NULL: in good order.
	 * Never from inside passage_new().
	 */
	void (*ended)(void *arg, const char *why);
};

/* Borrowed until the passage is freed. */
struct passage_setup {
	const struct addr *to;
	const struct dial_options *how; /* NULL: defaults */
	const char *variable; /* of the environment: names such addresses */
	const struct passage_ops *ops;
	void *arg;
};

/*
 * fd: the near side, connected; taken over in any case.  NULL with a sentence
 * in err, and ended() is not called.
 */
struct passage *passage_new(struct loop *l, int fd,
    const struct passage_setup *setup, char *err, size_t err_size) MUST_CHECK;
/* NULL is fine. */
void passage_free(struct passage *p);

#endif /* CLIENT_TUNNEL_PASSAGE_H */
