/*
 * ask_once: connection of a command that asks a collector's consumer port one
 * thing, prints the answer and ends.
 */
#ifndef CLIENT_COMMAND_ASK_ONCE_H
#define CLIENT_COMMAND_ASK_ONCE_H

struct consumer;
struct ask_once;
struct dial_options;

/* Time-out for the connection and the answer together. */
#define ASK_ONCE_MS 30000

/* Called once, with the connection up: makes the calls; c is borrowed. */
typedef void (*ask_once_fn)(struct ask_once *a, struct consumer *c,
    void *arg);

/*
 * Connects to the consumer socket (connect NULL: the default), calls ask, and
 * runs a loop until ask_once_end(), whose status it returns.  1, with a
 * sentence on standard error that begins with command, when the collector
 * cannot be reached, closes the connection or does not answer in time.
 */
int ask_once(const char *command, const char *connect,
    const struct dial_options *how, ask_once_fn ask, void *arg);

/* Ends ask_once() with this status; only the first call counts. */
void ask_once_end(struct ask_once *a, int status);
/* Prints a sentence on standard error and ends ask_once() with status 1. */
void ask_once_fail(struct ask_once *a, const char *sentence);

#endif /* CLIENT_COMMAND_ASK_ONCE_H */
