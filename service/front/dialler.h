/*
 * dialler: the devices that the collector connects to, over ssh, because they
 * cannot connect to it (`dial` in the settings).  Each is called again, with
 * growing pauses, for as long as the daemon lives; who answers is led to the
 * gate like one that connected.
 *
 * ssh://host: a program there carries one connection over its standard input
 * and output.  ssh://host/path: sshd listens on path there, and leads every
 * connection to a UNIX socket of ours that nobody else can reach.
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
 * Calls from the loop, and goes on when one cannot be reached.  All is borrowed.
 * NULL with a sentence in err: an address that is none, no memory.
 */
struct dialler *dialler_new(struct loop *l, const struct settings *settings,
    struct gate *gate, char *err, size_t err_size) MUST_CHECK;

/* Calls nobody any more; connections go on. */
void dialler_stop(struct dialler *d);

/* After dialler_stop(): calls again. */
void dialler_resume(struct dialler *d);

/* Ends the children.  After the last connection is gone.  NULL is fine. */
void dialler_free(struct dialler *d);

/*
 * The pause after `failures` vain attempts (1...): doubles from half a second
 * up to max_ms, of which a random (0...UINT32_MAX) half is taken off.  Pure.
 */
uint64_t dialler_pause_ms(unsigned failures, uint64_t max_ms, uint32_t random);

#endif /* SERVICE_FRONT_DIALLER_H */
