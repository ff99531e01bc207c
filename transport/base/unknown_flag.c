#include "transport/base/unknown_flag.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "protos/nearest.h"
#include "transport/base/log.h"

void
unknown_flag(const char *word, const struct option *flags, const char *help,
    char *err, size_t err_size)
{
	/* "--outt=x": what stands before the = */
	size_t len = strcspn(word, "=");
	struct nearest near;
	char shown[64];

	log_escape(shown, sizeof(shown), word, len);
	while (len > 0 && *word == '-') {
		word++;
		len--;
	}
	nearest_init(&near, word, len);
	for (; flags->name != NULL; flags++)
		nearest_offer(&near, flags->name);
	if (nearest_best(&near) != NULL)
		snprintf(err, err_size,
		    "there is no flag %s; did you mean --%s?", shown,
		    nearest_best(&near));
	else
		snprintf(err, err_size, "there is no flag %s; %s", shown,
		    help);
}
