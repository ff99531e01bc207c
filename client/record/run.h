/*
 * run: carries out a command line of `tributary record`: reads the config,
 * opens the file, watches for signals, and reports the outcome.
 */
#ifndef CLIENT_RECORD_RUN_H
#define CLIENT_RECORD_RUN_H

struct record_options;

/*
 * Status, beside enum record_status: the trace is whole, without something that
 * was asked for and could not be recorded.
 */
#define RECORD_RUN_NOT_ALL 3

/* The exit status.  Not for RECORD_MODE_QUERY and _IS_DETACHED. */
int record_run(const struct record_options *o);

#endif /* CLIENT_RECORD_RUN_H */
