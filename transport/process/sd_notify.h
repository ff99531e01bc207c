/*
 * sd_notify: tells systemd, or the program that started a daemon, that the
 * daemon is ready, stopping or alive, without linking to libsystemd.
 */
#ifndef TRANSPORT_PROCESS_SD_NOTIFY_H
#define TRANSPORT_PROCESS_SD_NOTIFY_H

#include <stdint.h>

#include "transport/base/compiler.h"

/*
 * Sends state ("READY=1", "STOPPING=1", "WATCHDOG=1") to $NOTIFY_SOCKET, a path
 * or an @abstract name.  1: sent; 0: the variable is not set; -1 with errno
 * set.
 */
int sd_notify_send(const char *state);

/*
 * The time within which systemd expects "WATCHDOG=1" again, in microseconds; 0:
 * no watchdog.  Reads $WATCHDOG_USEC and $WATCHDOG_PID.
 */
uint64_t sd_notify_watchdog_usec(void);

/*
 * Notifies in Perfetto's way: when the environment variable var
 * (TRACED_NOTIFY_FD ...) holds the number of an open descriptor, writes "1" to
 * it and closes it.  The variable is removed, so that a second call and
 * children do nothing.
 */
void notify_fd_from_env(const char *var);

#endif /* TRANSPORT_PROCESS_SD_NOTIFY_H */
