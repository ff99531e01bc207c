/*
 * machines_text: the machines that a collector knows, for people and as JSON.
 * Pure but for the file that it prints to.
 */
#ifndef CLIENT_SHOW_MACHINES_TEXT_H
#define CLIENT_SHOW_MACHINES_TEXT_H

#include <stdio.h>

#include "client/command/command_line.h"

struct Tributary__MachineState;
struct Tributary__QueryMachinesReply;

/*
 * Prints the machines of the reply that fit one of the n names (patterns;
 * "host" is the collector's own); n 0: all.  Returns how many were printed.
 */
size_t machines_print(FILE *out, const struct Tributary__QueryMachinesReply *r,
    const char *const *names, size_t n, enum list_form form);

/* "cut off", for people and programs alike; static, "unknown" for a new one. */
const char *machine_state_text(const struct Tributary__MachineState *m);

#endif /* CLIENT_SHOW_MACHINES_TEXT_H */
