#include "client/ftrace/events/syscall_filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct syscall_name {
	const char *name;
	unsigned number;
};

/* Sorted by name. */
static const struct syscall_name names[] = {
#include "client/ftrace/events/syscall_names.h"
};

static int
by_name(const void *key, const void *row)
{
	return strcmp(key, ((const struct syscall_name *)row)->name);
}

bool
syscall_filter_add(struct syscall_filter *f, const char *name)
{
	const struct syscall_name *found;

	if (strncmp(name, "sys_", 4) == 0)
		name += 4;
	found = bsearch(name, names, sizeof(names) / sizeof(names[0]),
	    sizeof(names[0]), by_name);
	if (found == NULL || found->number >= SYSCALL_FILTER_MAX)
		return false;
	f->bits[found->number / 64] |= UINT64_C(1) << found->number % 64;
	return true;
}

void
syscall_filter_join(struct syscall_filter *f,
    const struct syscall_filter *other)
{
	size_t i;

	for (i = 0; i < SYSCALL_FILTER_MAX / 64; i++)
		f->bits[i] |= other->bits[i];
}

bool
syscall_filter_text(const struct syscall_filter *f,
    char out[SYSCALL_FILTER_TEXT_MAX + 1])
{
	size_t len = 0;
	unsigned id;

	for (id = 0; id < SYSCALL_FILTER_MAX; id++) {
		if (!syscall_filter_has(f, id))
			continue;
		len += (size_t)snprintf(out + len,
		    SYSCALL_FILTER_TEXT_MAX + 1 - len, "%sid == %u",
		    len > 0 ? " || " : "", id);
		if (len > SYSCALL_FILTER_TEXT_MAX)
			break;
	}
	if (len > 0 && len <= SYSCALL_FILTER_TEXT_MAX)
		return true;
	strcpy(out, "0");
	return false;
}
