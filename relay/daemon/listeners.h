/* listeners: the sockets that local producers connect to. */
#ifndef RELAY_DAEMON_LISTENERS_H
#define RELAY_DAEMON_LISTENERS_H

#include <stddef.h>

#include "transport/base/compiler.h"

struct loop;
struct passed_sockets;
struct producers;
struct relay_listeners;
struct relay_settings;

/*
 * Takes the sockets that were passed, and opens every producer socket of the
 * settings that is not among them (the default one only where none was passed):
 * from then on producers are served.  All is borrowed.  NULL with a sentence in
 * err.
 */
struct relay_listeners *relay_listeners_new(struct loop *l,
    const struct relay_settings *s, const struct passed_sockets *passed,
    struct producers *ps, char *err, size_t err_size) MUST_CHECK;

/* Accepts no more connections; open ones stay. */
void relay_listeners_close(struct relay_listeners *d);
/* Ends all connections; their memory goes away with later turns of the loop. */
void relay_listeners_send_away(struct relay_listeners *d);
/* Frees it; legal when all connections are gone.  NULL is fine. */
void relay_listeners_free(struct relay_listeners *d);

#endif /* RELAY_DAEMON_LISTENERS_H */
