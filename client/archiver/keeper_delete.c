#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/archive/catalog.h"
#include "client/archive/index/archive_files.h"
#include "client/archiver/keeper_internal.h"
#include "transport/base/failure.h"
#include "transport/base/human_numbers.h"
#include "transport/base/log.h"
#include "transport/sink/sink_path.h"

/* The row, as it is now. */
struct doomed {
	char *path; /* owned; NULL: there is no row, or no file */
	uint64_t bytes;
	bool pinned;
	bool stored;
};

static bool
take_row(void *arg, const struct catalog_row *row)
{
	struct doomed *d = arg;

	d->path = strdup(row->path);
	d->bytes = row->bytes;
	d->pinned = row->pinned;
	d->stored = row->stored.state != NULL &&
	    strcmp(row->stored.state, "stored") == 0;
	return false;
}

/* 0 also where it is gone already. */
static int
remove_file(struct keeper *k, const char *path)
{
	const char *name;
	int parent, rc, e;

	if ((parent = sink_path_open_parent(k->fd, path, true, &name)) < 0)
		return errno == ENOENT ? 0 : -1;
	rc = unlinkat(parent, name, 0);
	e = errno;
	close(parent);
	errno = e;
	return rc == 0 || errno == ENOENT ? 0 : -1;
}

static void
tell(struct keeper *k, const struct keeper_deletion *d,
    const struct doomed *row)
{
	char size[HUMAN_TEXT_MAX];

	log_info("deleted %s (%s): %s", row->path, human_bytes(size,
	    row->bytes), d->why);
	pthread_mutex_lock(&k->lock);
	k->view.deleted[d->cause].segments++;
	k->view.deleted[d->cause].bytes += row->bytes;
	pthread_mutex_unlock(&k->lock);
}

/*
 * In a transaction that keeps other writers out: a segment that is pinned
 * meanwhile either stays, or is gone and cannot be pinned.
 */
static int
delete_row(struct keeper *k, const struct keeper_deletion *d,
    struct doomed *row, char *err, size_t err_size)
{
	const struct catalog_value id = CATALOG_INT(d->id);

	if (catalog_each(k->catalog, "WHERE s.id = ? AND s.local", &id, 1,
	    take_row, row, err, err_size) != 0)
		return -1;
	if (row->path == NULL || row->pinned ||
	    archive_files_is_pinned(k->fd, row->path) ||
	    (k->settings.policy.waits_for_upload && !row->stored))
		return 0;
	if (remove_file(k, row->path) != 0)
		return FAILURE(err, err_size, "cannot delete %s: %s; it is "
		    "tried again when the folder is looked through", row->path, strerror(errno));
	if ((row->stored ? catalog_set_local(k->catalog, d->id, false, err,
	    err_size) : catalog_remove(k->catalog, d->id, err, err_size)) != 0)
		return -1;
	tell(k, d, row);
	return 0;
}

int
keeper_delete(struct keeper *k, const struct keeper_deletion *d)
{
	struct doomed row = { 0 };
	char err[ARCHIVER_ERROR_SIZE];
	int rc;

	if ((rc = catalog_begin(k->catalog, err, sizeof(err))) == 0) {
		rc = delete_row(k, d, &row, err, sizeof(err));
		if (rc == 0)
			rc = catalog_commit(k->catalog, err, sizeof(err));
		if (rc != 0)
			catalog_rollback(k->catalog);
	}
	if (rc != 0)
		keeper_fail(k, "%s", err);
	free(row.path);
	return rc;
}
