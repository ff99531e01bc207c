/*
 * this_machine: names that tell this machine from others in a trace.  Labels
 * only: nothing is trusted because of them.
 */
#ifndef TRANSPORT_CLOCK_THIS_MACHINE_H
#define TRANSPORT_CLOCK_THIS_MACHINE_H

#include <stddef.h>

/*
 * The boot id: the same for all processes of a machine, new at each boot; ""
 * where the kernel does not say.
 */
void this_machine_boot_id(char *out, size_t out_size);
/* Room for this_machine_clocks(). */
#define THIS_MACHINE_CLOCKS_MAX 96u
/*
 * An id of this process's clocks: equal for processes with the same clocks.
 * The boot id, and in a time namespace with offsets (in a container) these
 * offsets; "" where the kernel does not say.
 */
void this_machine_clocks(char *out, size_t out_size);
/* The host name of this machine. */
void this_machine_name(char *out, size_t out_size);

#endif /* TRANSPORT_CLOCK_THIS_MACHINE_H */
