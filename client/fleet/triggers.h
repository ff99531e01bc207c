/*
 * triggers: `tributary fleet triggers`, which passes triggers that are activated
 * at one collector of a fleet on to the others.
 *
 * It has a session without data at each collector, whose unique name only one
 * such program can hold: the others wait to take over.  So no trigger is passed
 * on twice, and collectors need not know of each other.
 */
#ifndef CLIENT_FLEET_TRIGGERS_H
#define CLIENT_FLEET_TRIGGERS_H

#include <stddef.h>

#include "transport/base/compiler.h"

struct collectors;

/* Runs until SIGTERM, SIGINT or SIGHUP.  -1 with a sentence. */
int triggers_run(const struct collectors *c, char *err, size_t err_size)
    MUST_CHECK;

#endif /* CLIENT_FLEET_TRIGGERS_H */
