/*
 * control: asks a collector of ours what Perfetto's ports do not tell
 * (the service "TributaryControl", protos/control.proto).
 */
#ifndef CLIENT_CONTROL_H
#define CLIENT_CONTROL_H

#include <stddef.h>

#include "transport/compiler.h"

struct Tributary__QueryMachinesReply;
struct addr;
struct control;
struct dial_options;
struct loop;

/* The largest answer, in bytes. */
#define CONTROL_MAX_ANSWER (64u << 20)

/*
 * The answer, once, from the loop; borrowed.  NULL: there is none, and why is a
 * sentence.  control_free() is legal inside.
 */
typedef void (*control_machines_fn)(void *arg,
    const struct Tributary__QueryMachinesReply *reply, const char *why);

/*
 * Connects and asks for the machines.  how may be NULL.  NULL with a sentence in
 * err.
 */
struct control *control_query_machines(struct loop *l, const struct addr *a,
    const struct dial_options *how, control_machines_fn fn, void *arg,
    char *err, size_t err_size) MUST_CHECK;
void control_free(struct control *c);

#endif /* CLIENT_CONTROL_H */
