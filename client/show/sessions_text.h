/*
 * sessions_text: the sessions of a collector, for people and as JSON.  Pure but
 * for the file that it prints to.
 */
#ifndef CLIENT_SHOW_SESSIONS_TEXT_H
#define CLIENT_SHOW_SESSIONS_TEXT_H

#include <stddef.h>
#include <stdio.h>

#include "client/command/control_ask.h"

struct Tributary__SessionState;

/*
 * Prints the sessions of n collectors, in this order.  A field that a reply
 * leaves out is not known and shown as "-", or not at all.
 */
void sessions_print(FILE *out, const struct control_sessions_list *lists,
    size_t n, enum list_form form);

/* "session 7 (robots)", for messages; returns out. */
const char *session_label(const struct Tributary__SessionState *s, char *out,
    size_t size);
/* "started", "waits for a trigger", "stopped" ...; static. */
const char *session_state_text(const struct Tributary__SessionState *s);
#endif /* CLIENT_SHOW_SESSIONS_TEXT_H */
