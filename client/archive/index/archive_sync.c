#include "client/archive/index/archive_sync.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/archive/catalog.h"
#include "client/archive/index/archive_files.h"
#include "client/archive/index/segment_index.h"
#include "client/archive/segment_entry.h"
#include "transport/base/failure.h"

/* The catalogue's row of a path, as far as it matters here. */
struct known {
	int64_t id;
	uint64_t bytes;
	int64_t mtime_ns;
	bool there, pinned, local, stored;
};

static bool
keep_known(void *arg, const struct catalog_row *row)
{
	*(struct known *)arg = (struct known){
		.id = row->id, .bytes = row->bytes, .mtime_ns = row->mtime_ns,
		.there = true, .pinned = row->pinned, .local = row->local,
		.stored = row->stored.state != NULL &&
		    strcmp(row->stored.state, "stored") == 0,
	};
	return false;
}

/* Drops the row of a file that is gone, unless the store has it. */
static int
drop(struct catalog *c, const struct known *k, enum archive_change *change,
    char *err, size_t err_size)
{
	*change = ARCHIVE_GONE;
	if (!k->there)
		return 0;
	if (!k->stored)
		return catalog_remove(c, k->id, err, err_size);
	*change = k->local ? ARCHIVE_MOVED : ARCHIVE_UNCHANGED;
	return k->local ? catalog_set_local(c, k->id, false, err, err_size) : 0;
}

static int
take(struct catalog *c, int folder, const char *path, const struct known *k,
    enum archive_change *change, char *err, size_t err_size)
{
	struct segment_entry e = { .bytes = 0 };
	int rc;

	rc = segment_index_file(&e, folder, path, err, err_size);
	if (rc == 0) {
		*change = ARCHIVE_TAKEN;
		rc = catalog_put(c, &e, archive_files_is_pinned(folder, path),
		    err, err_size);
	} else if (rc == 1) {
		rc = drop(c, k, change, err, err_size);
	} else {
		*change = ARCHIVE_FAILED;
		rc = 0;
	}
	segment_entry_done(&e);
	return rc;
}

int
archive_sync_file(struct catalog *c, int folder, const char *path, bool full,
    enum archive_change *change, char *err, size_t err_size)
{
	struct known k = { .there = false };
	struct stat st = { .st_size = 0 };
	bool is_read, pinned;

	if (catalog_find(c, path, keep_known, &k, err, err_size) < 0)
		return -1;
	is_read = fstatat(folder, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!is_read && (errno == ENOENT || errno == ENOTDIR))
		return drop(c, &k, change, err, err_size);
	if (full || !is_read || !k.there || !k.local ||
	    k.bytes != (uint64_t)st.st_size ||
	    k.mtime_ns != archive_files_mtime(&st))
		return take(c, folder, path, &k, change, err, err_size);
	*change = ARCHIVE_UNCHANGED;
	pinned = archive_files_is_pinned(folder, path);
	if (pinned == k.pinned)
		return 0;
	return catalog_set_pinned(c, k.id, pinned, err, err_size);
}

static void
count(struct archive_sync_counts *n, enum archive_change change,
    uint64_t bytes)
{
	switch (change) {
	case ARCHIVE_UNCHANGED:
		n->unchanged++;
		break;
	case ARCHIVE_TAKEN:
		n->taken++;
		n->bytes += bytes;
		break;
	case ARCHIVE_GONE:
		n->gone++;
		break;
	case ARCHIVE_MOVED:
		n->moved++;
		break;
	case ARCHIVE_FAILED:
		n->failed++;
		break;
	}
}

static void
tell_unread(const struct archive_files *files,
    const struct archive_sync_ops *ops, struct archive_sync_counts *out,
    char *err, size_t err_size)
{
	if (files->n_unread == 0)
		return;
	out->failed += files->n_unread;
	if (ops->changed == NULL)
		return;
	snprintf(err, err_size, "cannot read the folder %s: %s%s",
	    files->unread, strerror(files->unread_error),
	    files->n_unread > 1 ? ", nor others" : "");
	ops->changed(ops->arg, files->unread, ARCHIVE_FAILED, err);
}

static int
sync_list(struct catalog *c, int folder, const struct archive_files *files,
    const struct archive_sync_ops *ops, bool full,
    struct archive_sync_counts *out, char *err, size_t err_size)
{
	enum archive_change change;
	size_t i;

	for (i = 0; i < files->n; i++) {
		if (ops->stop != NULL && ops->stop(ops->arg))
			return 0;
		if (ops->progress != NULL)
			ops->progress(ops->arg, i, files->n);
		if (archive_sync_file(c, folder, files->all[i].path, full,
		    &change, err, err_size) < 0)
			return -1;
		count(out, change, files->all[i].bytes);
		if (change != ARCHIVE_UNCHANGED && ops->changed != NULL)
			ops->changed(ops->arg, files->all[i].path, change, err);
	}
	return 0;
}

static bool
is_in(const struct archive_files *f, const char *path)
{
	size_t low = 0, high = f->n, mid;
	int order;

	while (low < high) {
		mid = low + (high - low) / 2;
		if ((order = strcmp(path, f->all[mid].path)) == 0)
			return true;
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return false;
}

/* Keeps those rows that have no file. */
static void
subtract(struct archive_files *rows, const struct archive_files *files)
{
	size_t i, n = 0;

	for (i = 0; i < rows->n; i++) {
		if (is_in(files, rows->all[i].path))
			free(rows->all[i].path);
		else
			rows->all[n++] = rows->all[i];
	}
	rows->n = n;
}

int
archive_sync_all(struct catalog *c, int folder,
    const struct archive_sync_ops *ops, struct archive_sync_counts *out,
    char *err, size_t err_size)
{
	struct archive_files files, rows = { .n = 0 };
	int rc;

	*out = (struct archive_sync_counts){ .taken = 0 };
	if (archive_files_list(&files, folder, err, err_size) < 0)
		return -1;
	tell_unread(&files, ops, out, err, err_size);
	rc = archive_files_catalogued(&rows, c, err, err_size);
	if (rc == 0) {
		subtract(&rows, &files);
		rc = sync_list(c, folder, &rows, ops, false, out, err,
		    err_size);
	}
	if (rc == 0)
		rc = sync_list(c, folder, &files, ops, ops->full, out, err,
		    err_size);
	archive_files_done(&files);
	archive_files_done(&rows);
	return rc;
}
