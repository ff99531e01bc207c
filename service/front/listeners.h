/*
 * listeners: the sockets that are listened on, and the services offered at
 * each.  Accepted connections are handed to the gate (service/front/gate.h).
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

/* All pointers are borrowed, and outlive the listeners. */
struct listeners_setup {
	struct loop *loop;
	const struct settings *settings;
	struct gate *gate;
	struct certificates *certificates; /* may be NULL: nothing has TLS */
};

/*
 * Opens every listener of the settings and takes the sockets of a: from then
 * on peers can connect.  Closes sockets that the daemon before an upgrade made
 * for an address that is not in the settings any more.  NULL with a sentence in
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
 * Paced: connections at other doors than consumers' are accepted only in
 * listeners_let_some_in(), a few at a time at each door; the others wait in the
 * backlog.
 */
void listeners_pace(struct listeners *d, bool paced);
void listeners_let_some_in(struct listeners *d);

/*
 * Adds the sockets that are listened on to h, for the next program; they stay
 * ours.  -1: no memory, or too many.
 */
int listeners_list(const struct listeners *d, struct handover *h) MUST_CHECK;
/*
 * Like listeners_close(), but the sockets of listeners_list() stay open, and
 * their files stay.
 */
void listeners_leave(struct listeners *d);

/* After the last connection is gone.  NULL is fine. */
void listeners_free(struct listeners *d);

#endif /* SERVICE_FRONT_LISTENERS_H */
