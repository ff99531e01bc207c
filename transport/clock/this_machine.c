#include "transport/clock/this_machine.h"

#include <stdio.h>
#include <string.h>
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

struct offset {
	long long s, ns;
};

/*
 * How far the clocks of this time namespace are from the kernel's.  The
 * namespace's number would say less: kernels give it again.
 */
static void
read_offsets(struct offset *monotonic, struct offset *boottime)
{
	FILE *f = fopen("/proc/self/timens_offsets", "re");
	struct offset o;
	char name[16];

	if (f == NULL)
		return;
	while (fscanf(f, "%15s %lld %lld", name, &o.s, &o.ns) == 3) {
		if (strcmp(name, "monotonic") == 0)
			*monotonic = o;
		else if (strcmp(name, "boottime") == 0)
			*boottime = o;
	}
	fclose(f);
}

void
this_machine_clocks(char *out, size_t out_size)
{
	struct offset monotonic = { 0, 0 }, boottime = { 0, 0 };
	char boot_id[64];

	this_machine_boot_id(boot_id, sizeof(boot_id));
	read_offsets(&monotonic, &boottime);
	if (boot_id[0] == '\0' || (monotonic.s == 0 && monotonic.ns == 0 &&
	    boottime.s == 0 && boottime.ns == 0))
		snprintf(out, out_size, "%s", boot_id);
	else
		snprintf(out, out_size, "%s+%lld.%09lld+%lld.%09lld", boot_id,
		    monotonic.s, monotonic.ns, boottime.s, boottime.ns);
}

void
this_machine_name(char *out, size_t out_size)
{
	struct utsname name;

	if (uname(&name) != 0)
		name.nodename[0] = '\0';
	snprintf(out, out_size, "%s", name.nodename);
}
