/*
 * consumer_loop: a consumer whose connection is on the event loop.
 */
#ifndef CLIENT_LIBRARY_CONSUMER_LOOP_H
#define CLIENT_LIBRARY_CONSUMER_LOOP_H

#include <stddef.h>

#include "transport/base/compiler.h"

struct addr;
struct consumer;
struct consumer_ops;
struct dial_options;
struct loop;

struct consumer_loop_setup {
	const struct addr *address;     /* copied */
	const struct dial_options *how; /* copied; NULL: defaults */
	const struct consumer_ops *ops; /* borrowed; outlives the consumer */
	void *arg;                      /* of ops */
};

/*
 * Begins to connect: connected or disconnected follows, from the loop as all
 * callbacks.  NULL with a sentence in err, and no callback.  The consumer is
 * freed with consumer_free().
 */
struct consumer *consumer_loop_new(struct loop *l,
    const struct consumer_loop_setup *setup, char *err, size_t err_size)
    MUST_CHECK;

#endif /* CLIENT_LIBRARY_CONSUMER_LOOP_H */
