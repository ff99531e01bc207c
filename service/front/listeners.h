/*
 * listeners: the sockets that are listened on, and what is offered at each.
 * Who comes in is led to the gate (service/front/gate.h).
 */
#ifndef SERVICE_FRONT_LISTENERS_H
#define SERVICE_FRONT_LISTENERS_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

struct activation;
struct certificates;
struct listeners;
struct gate;
struct handover;
struct loop;
struct settings;

/* Borrowed, all of it; outlives the listeners. */
struct listeners_setup {
	struct loop *loop;
	const struct settings *settings;
	struct gate *gate;
	struct certificates *certificates; /* may be NULL: nothing has TLS */
};

/*
 * Opens every listener of the settings and takes the sockets of a: from then
 * on clients can connect.  Closes sockets that the daemon before us made for
 * an address that is not in the settings any more.  NULL with a sentence in
 * err.
 */
struct listeners *listeners_new(const struct listeners_setup *setup,
    struct activation *a, char *err, size_t err_size) MUST_CHECK;

/* Stops listening; connections that were accepted stay. */
void listeners_close(struct listeners *d);

/*
 * Stops accepting: new connections wait in the backlog until listeners_wake().
 */
void listeners_rest(struct listeners *d);
void listeners_wake(struct listeners *d);

/*
 * Paced: everybody but consumers comes in only as listeners_let_some_in() is
 * called, a few at a time at each door; the others wait in front of it.
 */
void listeners_pace(struct listeners *d, bool paced);
void listeners_let_some_in(struct listeners *d);

/*
 * Lists the sockets that are listened on, for the next daemon.  -1: no memory.
 */
int listeners_list(const struct listeners *d, struct handover *h) MUST_CHECK;
/*
 * Does what listeners_close() does, but the sockets of listeners_list() stay,
 * with their files.
 */
void listeners_leave(struct listeners *d);

/* After the last connection is gone.  NULL is fine. */
void listeners_free(struct listeners *d);

#endif /* SERVICE_FRONT_LISTENERS_H */
