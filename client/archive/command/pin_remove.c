#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/archive/catalog.h"
#include "client/archive/command/actions.h"
#include "client/archive/command/choice.h"
#include "client/archive/index/archive_files.h"
#include "transport/base/failure.h"
#include "transport/base/human_numbers.h"

static int
pin_one(const struct archive_open *a, const struct chosen *s, bool pinned,
    char *err, size_t err_size)
{
	if (!s->local)
		return FAILURE(err, err_size, "%s is only in the store, where "
		    "nothing is deleted", s->path);
	if (faccessat(a->folder, s->path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return FAILURE(err, err_size, "%s: %s", s->path,
		    strerror(errno));
	if (archive_files_pin(a->folder, s->path, pinned, err, err_size) < 0)
		return -1;
	return catalog_set_pinned(a->catalog, s->id, pinned, err, err_size);
}

/* The file goes first: a row without one goes with the next reindex. */
static int
remove_one(const struct archive_open *a, const struct chosen *s, char *err,
    size_t err_size)
{
	if (!s->local)
		return FAILURE(err, err_size, "%s is only in the store: delete "
		    "it there", s->path);
	if (archive_files_is_pinned(a->folder, s->path))
		return FAILURE(err, err_size, "%s is pinned, and stays: unpin "
		    "it first", s->path);
	if (unlinkat(a->folder, s->path, 0) < 0 && errno != ENOENT)
		return FAILURE(err, err_size, "%s: %s", s->path,
		    strerror(errno));
	return s->stored ? catalog_set_local(a->catalog, s->id, false, err,
	    err_size) : catalog_remove(a->catalog, s->id, err, err_size);
}

/*
 * In a transaction that keeps other writers out, retention among them: none
 * deletes a segment while it is pinned.
 */
static int
change_one(const struct archive_open *a, const struct chosen *s)
{
	enum archive_action action = a->options->action;
	char err[ARCHIVE_ERROR_SIZE];
	int rc;

	if ((rc = catalog_begin(a->catalog, err, sizeof(err))) == 0) {
		rc = action == ARCHIVE_REMOVE ?
		    remove_one(a, s, err, sizeof(err)) :
		    pin_one(a, s, action == ARCHIVE_PIN, err, sizeof(err));
		if (rc == 0)
			rc = catalog_commit(a->catalog, err, sizeof(err));
		if (rc != 0)
			catalog_rollback(a->catalog);
	}
	if (rc != 0)
		(void)archive_refuse(err);
	return rc;
}

int
archive_pin(const struct archive_open *a, bool pinned)
{
	int status = ARCHIVE_DONE;
	uint64_t done = 0;
	struct choice c;
	size_t i;

	if (choice_make(&c, a) < 0)
		return ARCHIVE_NOT_DONE;
	for (i = 0; i < c.n; i++) {
		if (change_one(a, &c.all[i]) == 0)
			done++;
		else
			status = ARCHIVE_NOT_DONE;
	}
	printf("%" PRIu64 " segment%s %s\n", done, human_s(done),
	    pinned ? "pinned" : "not pinned any more");
	choice_done(&c);
	return status;
}

int
archive_remove(const struct archive_open *a)
{
	uint64_t done = 0, bytes = 0;
	char text[HUMAN_TEXT_MAX];
	int status = ARCHIVE_DONE;
	struct choice c;
	size_t i;

	if (choice_make(&c, a) < 0)
		return ARCHIVE_NOT_DONE;
	for (i = 0; i < c.n; i++) {
		if (change_one(a, &c.all[i]) == 0) {
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
