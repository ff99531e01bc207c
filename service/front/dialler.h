/*
 * dialler: connects, over ssh, to devices that cannot connect to the collector
 * (`dial` in the settings).  Each is dialled again, with exponential backoff
 * and jitter, for as long as the daemon lives; its connections pass the gate
 * like accepted ones.
 *
 * ssh://host: a program there carries one connection over its standard input
 * and output.  ssh://host/path: sshd listens on path there, and forwards every
 * connection to a UNIX socket of ours, in a directory that only the daemon's
 * user can enter.
 */
#ifndef SERVICE_FRONT_DIALLER_H
#define SERVICE_FRONT_DIALLER_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct dialler;
struct gate;
struct loop;
struct settings;

/*
 * Dials from later turns of the loop; a device that cannot be reached holds up
 * no other.  Everything is borrowed.  NULL with a sentence in err: an address
 * that does not parse, or no memory.
 */
struct dialler *dialler_new(struct loop *l, const struct settings *settings,
    struct gate *gate, char *err, size_t err_size) MUST_CHECK;

/*
 * Stops dialling, and listening for forwarded connections; connections go on.
 */
void dialler_stop(struct dialler *d);

/* After dialler_stop(): dials again. */
void dialler_resume(struct dialler *d);

/* Ends the ssh processes.  After the last connection is gone.  NULL is fine. */
void dialler_free(struct dialler *d);

/*
 * Exponential backoff after `failures` failed attempts in a row (1...), in ms:
 * doubles from half a second up to max_ms, less a jitter of up to half of it
 * (random: 0...UINT32_MAX).  Pure.
 */
uint64_t dialler_pause_ms(unsigned failures, uint64_t max_ms, uint32_t random);

#endif /* SERVICE_FRONT_DIALLER_H */
