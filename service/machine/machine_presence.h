/*
 * machine_presence: keeps up what people are told of a machine's connections
 * (struct machine_contact in machine.h).
 */
#ifndef SERVICE_MACHINE_MACHINE_PRESENCE_H
#define SERVICE_MACHINE_MACHINE_PRESENCE_H

#include <stdbool.h>

#include "service/machine/machine.h"

/*
 * A connection of the machine, as the ports know it; copied.  NULL: not known.
 */
struct machine_visitor {
	enum machine_reach reach;
	const char *address;
	const char *authenticated;
	const char *software;
};

/* A relay has connected (reach LINK or CLASSIC), or a producer (DIRECT). */
void machine_presence_came(struct machine *m, const struct machine_visitor *v);
/* A link is cut off; waited: it has producers that are kept for it. */
void machine_presence_cut(struct machine *m, bool waited);
/*
 * Tells that a connection has gone for good.  connected: it was up until now;
 * otherwise its grace period is over.
 */
void machine_presence_gone(struct machine *m, bool connected);
/* Tells it of a connection that came as DIRECT. */
void machine_presence_left(struct machine *m);

#endif /* SERVICE_MACHINE_MACHINE_PRESENCE_H */
