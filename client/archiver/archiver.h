/*
 * archiver: the process tributary-archiver: its folder, its signals, and its
 * end.
 */
#ifndef CLIENT_ARCHIVER_ARCHIVER_H
#define CLIENT_ARCHIVER_ARCHIVER_H

#include "client/archiver/options.h"
#include "transport/base/compiler.h"

/*
 * Keeps the archive of the settings, which are taken, until a signal.  The
 * options are borrowed: SIGHUP reads the file again.  Returns the exit status.
 */
int archiver_run(const struct archiver_options *o,
    struct archiver_settings *settings) MUST_CHECK;

#endif /* CLIENT_ARCHIVER_ARCHIVER_H */
