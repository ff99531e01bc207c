/*
 * A filter: lines are patterns when they begin with '/', else names; the last
 * line is the name that is tried.  Nothing takes long, and a name that was
 * added fits.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "service/config/name_filter.h"
#include "tests/fuzz/texts/texts.h"

#define INPUT_MAX 4096

static void
add(struct name_filter *m, const char *line)
{
	char err[256] = "";

	if (line[0] != '/') {
		if (name_filter_add_name(m, line) == 0 && !name_filter_test(m,
		    line))
			abort();
	} else if (name_filter_add_regex(m, line + 1, err, sizeof(err)) != 0 &&
	    (err[0] == '\0' || strchr(err, '\n') != NULL)) {
		abort();
	}
}

void
fuzz_match(const uint8_t *data, size_t size)
{
	char *text, *line, *next;
	struct name_filter *m;

	if (size > INPUT_MAX || (text = malloc(size + 1)) == NULL)
		return;
	if ((m = name_filter_new()) == NULL) {
		free(text);
		return;
	}
	memcpy(text, data, size);
	text[size] = '\0';
	for (line = text; (next = strchr(line, '\n')) != NULL; line = next + 1) {
		*next = '\0';
		add(m, line);
	}
	if (name_filter_test(m, line) != name_filter_test(m, line))
		abort();
	name_filter_free(m);
	free(text);
}
