#include "transport/this_machine.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

void
this_machine_boot_id(char *out, size_t out_size)
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	out[0] = '\0';
	if (f == NULL)
		return;
	if (fgets(out, (int)out_size, f) != NULL)
		out[strcspn(out, "\n")] = '\0';
	fclose(f);
}

void
this_machine_clocks(char *out, size_t out_size)
{
	char boot_id[64];
	struct stat ns;

	this_machine_boot_id(boot_id, sizeof(boot_id));
	out[0] = '\0';
	if (boot_id[0] == '\0')
		return;
	/* A kernel without time namespaces has the same clocks for all. */
	if (stat("/proc/self/ns/time", &ns) != 0)
		ns.st_ino = 0;
	snprintf(out, out_size, "%s.%ju", boot_id, (uintmax_t)ns.st_ino);
}

void
this_machine_name(char *out, size_t out_size)
{
	struct utsname name;

	if (uname(&name) != 0)
		name.nodename[0] = '\0';
	snprintf(out, out_size, "%s", name.nodename);
}
