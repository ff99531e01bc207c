#include "tests/bench/load/load_totals.h"

#include <stdio.h>
#include <string.h>

void
load_totals_error(struct load_totals *t, const char *kind, const char *text)
{
	struct load_error *e;
	size_t i;

	for (i = 0; i < t->n_errors; i++)
		if (strcmp(t->errors[i].kind, kind) == 0)
			break;
	if (i == LOAD_ERRORS_MAX)
		i--;
	e = &t->errors[i];
	if (i == t->n_errors) {
		snprintf(e->kind, sizeof(e->kind), "%s", kind);
		snprintf(e->text, sizeof(e->text), "%s", text);
		t->n_errors++;
	}
	e->count++;
}
