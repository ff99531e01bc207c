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

/* Names or patterns; "host" is a collector's own machine.  n 0: all. */
struct machines_words {
	const char *const *words;
	size_t n;
};

/* Machines of one collector. */
struct machines_list {
	const char *collector; /* NULL: the only one */
	const struct Tributary__QueryMachinesReply *reply;
};

/*
 * Prints the machines that fit one of the words.  Returns how many were
 * printed.
 */
size_t machines_print(FILE *out, const struct machines_list *lists, size_t n,
    const struct machines_words *words, enum list_form form);

/* "cut off", for people and programs alike; static, "unknown" for a new one. */
const char *machine_state_text(const struct Tributary__MachineState *m);

#endif /* CLIENT_SHOW_MACHINES_TEXT_H */
