#include "client/ui/web_program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "tributary-web"

bool
web_program_helps(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 ||
		    strcmp(argv[i], "-h") == 0)
			return true;
	return false;
}

int
web_program_run(const char *speaker, const char *flag, int argc, char **argv)
{
	char **words = calloc((size_t)argc + 2, sizeof(*words));
	int i;

	if (words == NULL) {
		fprintf(stderr, "%s: no memory\n", speaker);
		return 1;
	}
	words[0] = (char *)PROGRAM;
	words[1] = (char *)flag;
	for (i = 1; i < argc; i++)
		words[i + 1] = argv[i];
	(void)execvp(PROGRAM, words);
	if (errno == ENOENT)
		fprintf(stderr, "%s: there is no " PROGRAM " in PATH, which "
		    "is what speaks with browsers\n", speaker);
	else
		fprintf(stderr, "%s: cannot start " PROGRAM ": %s\n", speaker,
		    strerror(errno));
	free(words);
	return 1;
}
