#include "client/unknown_flag.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "protos/nearest.h"

void
unknown_flag(const char *word, const struct option *flags, const char *command,
    char *err, size_t err_size)
{
	const char *meant = NULL;
	struct nearest n;
	char name[64];

	/* "--outt=x": compare what stands before the = */
	snprintf(name, sizeof(name), "%s", word);
	name[strcspn(name, "=")] = '\0';
	if (strncmp(name, "--", 2) == 0) {
		nearest_init(&n, name + 2, strlen(name + 2));
		for (; flags->name != NULL; flags++)
			nearest_offer(&n, flags->name);
		meant = nearest_best(&n);
	}
	if (meant != NULL)
		snprintf(err, err_size, "there is no flag %s; did you mean "
		    "--%s?", name, meant);
	else
		snprintf(err, err_size, "there is no flag %s; see tributary "
		    "%s --help", name, command);
}
