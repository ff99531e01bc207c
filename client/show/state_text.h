/*
 * state_text: the state of a service, printed for people
 * (`tributary record --query`).
 */
#ifndef CLIENT_SHOW_STATE_TEXT_H
#define CLIENT_SHOW_STATE_TEXT_H

#include <stdbool.h>
#include <stdio.h>

struct Perfetto__Protos__TracingServiceState;

/*
 * Producers, data sources and sessions, each in its table; in_full: all
 * categories of a data source, not the first few.
 */
void state_text_print(FILE *out,
    const struct Perfetto__Protos__TracingServiceState *state, bool in_full);

#endif /* CLIENT_SHOW_STATE_TEXT_H */
