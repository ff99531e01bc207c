/*
 * doors: the sockets that are listened on, and what is offered at each.  Who
 * comes in is led to the gate (service/gate.h).
 */
#ifndef SERVICE_DOORS_H
#define SERVICE_DOORS_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/compiler.h"

struct activation;
struct certificates;
struct doors;
struct gate;
struct handover;
struct loop;
struct settings;

/*
 * Opens every listener of the settings and takes the sockets of a: from then
 * on clients can connect.  What the daemon before us made for an address that
 * is not in the settings any more is closed.  All is borrowed; certificates may be NULL where
 * nothing listens with TLS.  NULL with a sentence in err.
 */
struct doors *doors_new(struct loop *l, const struct settings *settings,
    struct gate *gate, struct certificates *certificates,
    struct activation *a, char *err, size_t err_size) MUST_CHECK;

/* Nobody comes in any more; those who did stay. */
void doors_close(struct doors *d);

/* Who comes waits in front of the door, until doors_wake(). */
void doors_rest(struct doors *d);
void doors_wake(struct doors *d);

/*
 * Paced: everybody but consumers comes in only as doors_let_some_in() is
 * called, a few at a time at each door; the others wait in front of it.
 */
void doors_pace(struct doors *d, bool paced);
void doors_let_some_in(struct doors *d);

/* All that is listened on, for whoever comes after us.  -1: no memory. */
int doors_list(const struct doors *d, struct handover *h) MUST_CHECK;
/* As doors_close(), but the sockets of doors_list() stay, with their files. */
void doors_leave(struct doors *d);

/* After the last connection is gone.  NULL is fine. */
void doors_free(struct doors *d);

#endif /* SERVICE_DOORS_H */
