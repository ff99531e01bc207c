#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/archive/catalog.h"
#include "client/archive/command/actions.h"
#include "client/archive/index/archive_files.h"
#include "client/archive/selection.h"
#include "protos/plain_text.h"
#include "transport/base/human_numbers.h"

/* A row, copied: it outlives the walk. */
struct chosen {
	int64_t id;
	char *path; /* owned */
	uint64_t bytes;
	bool local, stored;
};

struct choice {
	struct chosen *all; /* owned */
	size_t n, max;
};

static bool
keep_row(void *arg, const struct catalog_row *row)
{
	struct choice *c = arg;
	struct chosen *one = &c->all[c->n];

	if (c->n == c->max || (one->path = strdup(row->path)) == NULL)
		return false;
	one->id = row->id;
	one->bytes = row->bytes;
	one->local = row->local;
	one->stored = row->stored.state != NULL &&
	    strcmp(row->stored.state, "stored") == 0;
	c->n++;
	return true;
}

static void
choice_done(struct choice *c)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		free(c->all[i].path);
	free(c->all);
}

/* -1: told. */
static int
choose(struct choice *out, const struct archive_open *a)
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

int
archive_pin(const struct archive_open *a, bool pinned)
{
	char err[ARCHIVE_ERROR_SIZE];
	int status = ARCHIVE_DONE;
	uint64_t done = 0;
	struct choice c;
	size_t i;

	if (choose(&c, a) < 0)
		return ARCHIVE_NOT_DONE;
	for (i = 0; i < c.n; i++) {
		if (!c.all[i].local) {
			plain_printf(stderr, "tributary archive: %s is only in "
			    "the store, where nothing is deleted\n",
			    c.all[i].path);
			status = ARCHIVE_NOT_DONE;
		} else if (archive_files_pin(a->folder, c.all[i].path, pinned,
		    err, sizeof(err)) < 0 || catalog_set_pinned(a->catalog,
		    c.all[i].id, pinned, err, sizeof(err)) < 0) {
			status = archive_refuse(err);
		} else {
			done++;
		}
	}
	printf("%" PRIu64 " segment%s %s\n", done, human_s(done),
	    pinned ? "pinned" : "not pinned any more");
	choice_done(&c);
	return status;
}

/* The file goes first: a row without one goes with the next reindex. */
static int
remove_one(const struct archive_open *a, const struct chosen *s)
{
	char err[ARCHIVE_ERROR_SIZE];
	int rc;

	if (!s->local)
		snprintf(err, sizeof(err), "%s is only in the store: delete "
		    "it there", s->path);
	else if (archive_files_is_pinned(a->folder, s->path))
		snprintf(err, sizeof(err), "%s is pinned, and stays: unpin it "
		    "first", s->path);
	else if (unlinkat(a->folder, s->path, 0) < 0 && errno != ENOENT)
		snprintf(err, sizeof(err), "%s: %s", s->path, strerror(errno));
	else {
		rc = s->stored ? catalog_set_local(a->catalog, s->id, false,
		    err, sizeof(err)) : catalog_remove(a->catalog, s->id, err,
		    sizeof(err));
		if (rc == 0)
			return 0;
	}
	(void)archive_refuse(err);
	return -1;
}

int
archive_remove(const struct archive_open *a)
{
	uint64_t done = 0, bytes = 0;
	char text[HUMAN_TEXT_MAX];
	int status = ARCHIVE_DONE;
	struct choice c;
	size_t i;

	if (choose(&c, a) < 0)
		return ARCHIVE_NOT_DONE;
	for (i = 0; i < c.n; i++) {
		if (remove_one(a, &c.all[i]) == 0) {
			done++;
			bytes += c.all[i].bytes;
		} else {
			status = ARCHIVE_NOT_DONE;
		}
	}
	printf("%" PRIu64 " segment%s deleted (%s)\n", done, human_s(done),
	    human_bytes(text, bytes));
	choice_done(&c);
	return status;
}
