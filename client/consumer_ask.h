/*
 * consumer_ask: for commands that ask a collector's consumer port something,
 * print the answer and end.
 */
#ifndef CLIENT_CONSUMER_ASK_H
#define CLIENT_CONSUMER_ASK_H

#include "transport/compiler.h"

struct consumer;
struct consumer_ask;
struct dial_options;

/* A collector that does not answer for so long does not answer. */
#define CONSUMER_ASK_MS 30000

/* Called once, with the connection up: makes the calls. */
typedef void (*consumer_ask_fn)(struct consumer_ask *a, struct consumer *c,
    void *arg);

/*
 * Connects to the consumer socket (connect NULL: the default), calls ask, and
 * runs until consumer_ask_end(): returns the status it was given.  1, with a
 * sentence on standard error that begins with command, when the collector
 * cannot be reached, hangs up or does not answer.
 */
int consumer_ask(const char *command, const char *connect,
    const struct dial_options *how, consumer_ask_fn ask, void *arg);

/* The answer is there. */
void consumer_ask_end(struct consumer_ask *a, int status);
/* The same, with status 1 and a sentence. */
void consumer_ask_fail(struct consumer_ask *a, const char *sentence);

#endif /* CLIENT_CONSUMER_ASK_H */
