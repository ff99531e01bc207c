/*
 * ftrace_source: linux.ftrace as a data source of libtributary, where tracefs
 * can be used.
 */
#ifndef CLIENT_PROBES_FTRACE_SOURCE_H
#define CLIENT_PROBES_FTRACE_SOURCE_H

#include <stdbool.h>

#include "transport/base/compiler.h"

struct ftrace_source;
struct probe_sources;

/*
 * Registers the data source.  s is borrowed for ever; threads that events
 * mention go to its linux.process_stats of the same session.  reset: tracefs is
 * set as after a boot first.  NULL: tracefs cannot be used, or there is no
 * memory; the reason is logged.
 */
struct ftrace_source *ftrace_source_add(struct probe_sources *s,
    bool reset) MUST_CHECK;
/* When the library has stopped.  NULL is fine. */
void ftrace_source_free(struct ftrace_source *s);

/*
 * Puts back what a process that was killed left changed in tracefs, and sets it
 * as after a boot.  The exit status of the program; a failure is logged.
 */
int ftrace_source_clean_up(void);

#endif /* CLIENT_PROBES_FTRACE_SOURCE_H */
