/*
 * this_machine: what tells this machine from others in a trace.  Labels only.
 */
#ifndef TRANSPORT_THIS_MACHINE_H
#define TRANSPORT_THIS_MACHINE_H

#include <stddef.h>

/*
 * The boot id: the same for all processes of a machine, new at each boot; ""
 * where the kernel does not say.
 */
void this_machine_boot_id(char *out, size_t out_size);
/*
 * What runs on the same clocks says the same: the boot id and the time namespace
 * (containers may have clocks of their own).  "" where the kernel does not say.
 */
void this_machine_clocks(char *out, size_t out_size);
/* Its host name. */
void this_machine_name(char *out, size_t out_size);

#endif /* TRANSPORT_THIS_MACHINE_H */
