/*
 * this_machine: what tells this machine from others in a trace.  Labels only.
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
 * The machine as traces tell it from others: what runs on the same clocks says
 * the same.  The boot id, and in a time namespace whose clocks were moved (of a
 * container) how far; "" where the kernel does not say.
 */
void this_machine_clocks(char *out, size_t out_size);
/* The host name of this machine. */
void this_machine_name(char *out, size_t out_size);

#endif /* TRANSPORT_CLOCK_THIS_MACHINE_H */
