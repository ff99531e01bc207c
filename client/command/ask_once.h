/*
 * ask_once: for commands that ask a collector's consumer port something,
 * print the answer and end.
 */
#ifndef CLIENT_COMMAND_ASK_ONCE_H
#define CLIENT_COMMAND_ASK_ONCE_H

#include "transport/base/compiler.h"

struct consumer;
struct ask_once;
struct dial_options;

/* A collector that does not answer for so long does not answer. */
#define ASK_ONCE_MS 30000

/* Called once, with the connection up: makes the calls. */
typedef void (*ask_once_fn)(struct ask_once *a, struct consumer *c,
    void *arg);

/*
 * Connects to the consumer socket (connect NULL: the default), calls ask, and
 * runs until ask_once_end(): returns the status it was given.  1, with a
 * sentence on standard error that begins with command, when the collector
 * cannot be reached, hangs up or does not answer.
 */
int ask_once(const char *command, const char *connect,
    const struct dial_options *how, ask_once_fn ask, void *arg);

/* The answer is there. */
void ask_once_end(struct ask_once *a, int status);
/* Ends with status 1 and a sentence. */
void ask_once_fail(struct ask_once *a, const char *sentence);

#endif /* CLIENT_COMMAND_ASK_ONCE_H */
