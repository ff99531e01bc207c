#include "client/archive/command/choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/archive/catalog.h"
#include "client/archive/command/actions.h"
#include "client/archive/selection.h"

static bool
keep_row(void *arg, const struct catalog_row *row)
{
	struct choice *c = arg;
	struct chosen *one = &c->all[c->n];

	if (c->n == c->max || (one->path = strdup(row->path)) == NULL)
		return false;
	one->id = row->id;
	one->bytes = row->bytes;
	memcpy(one->sha256, row->sha256, sizeof(one->sha256));
	one->local = row->local;
	one->pinned = row->pinned;
	one->stored = row->stored.state != NULL &&
	    strcmp(row->stored.state, "stored") == 0;
	c->n++;
	return true;
}

void
choice_done(struct choice *c)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		free(c->all[i].path);
	free(c->all);
}

int
choice_make(struct choice *out, const struct archive_open *a)
{
	struct selection_found found = { .n = 0 };
	char err[ARCHIVE_ERROR_SIZE];
	int rc;

	*out = (struct choice){ .n = 0 };
	if (selection_run(&found, a->catalog, &a->options->select, 0, err,
	    sizeof(err)) < 0) {
		(void)archive_refuse(err);
		return -1;
	}
	snprintf(err, sizeof(err), "out of memory");
	out->max = found.n;
	out->all = calloc(found.n + 1, sizeof(*out->all));
	rc = out->all == NULL ? -1 : selection_each(a->catalog, &found,
	    keep_row, out, err, sizeof(err));
	selection_found_done(&found);
	if (rc == 0 && out->n > 0)
		return 0;
	(void)archive_refuse(rc < 0 ? err : "no segment is like that");
	choice_done(out);
	return -1;
}
