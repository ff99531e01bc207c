/*
 * machine_presence: keeps the record of a machine's connections for people
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
/* A link was cut; waited: its producers are kept for the grace period. */
void machine_presence_cut(struct machine *m, bool waited);
/*
 * A relay or link has gone for good.  connected: it was connected until now;
 * otherwise it was cut, and its grace period is over.
 */
void machine_presence_gone(struct machine *m, bool connected);
/* A connection that came as MACHINE_DIRECT has ended. */
void machine_presence_left(struct machine *m);

#endif /* SERVICE_MACHINE_MACHINE_PRESENCE_H */
