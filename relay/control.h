/*
 * control: the socket in the state folder by which `tributary-relay --status`
 * asks a relay how it is.  Serves the same user and root, and waits for nobody:
 * who does not take the answer within a second goes without.
 */
#ifndef RELAY_CONTROL_H
#define RELAY_CONTROL_H

#include <stddef.h>

#include "transport/compiler.h"

struct control;
struct loop;
struct report_sources;

/* from is copied; what it names is borrowed.  NULL with a sentence in err. */
struct control *control_new(struct loop *l, const char *state_dir,
    const struct report_sources *from, char *err, size_t err_size) MUST_CHECK;
/* NULL is fine. */
void control_free(struct control *c);

#endif /* RELAY_CONTROL_H */
