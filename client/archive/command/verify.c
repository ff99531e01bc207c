#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/archive/catalog.h"
#include "client/archive/command/actions.h"
#include "client/archive/index/archive_files.h"
#include "client/archive/index/segment_index.h"
#include "client/archive/segment_entry.h"
#include "client/text/colour.h"
#include "client/text/progress.h"
#include "protos/plain_text.h"
#include "transport/base/human_numbers.h"

struct check {
	const struct archive_open *a;
	uint64_t problems, segments;
	struct progress progress;
	bool coloured;
	bool gone; /* the file of the row that was looked at */
	char err[ARCHIVE_ERROR_SIZE];
};

static void
problem(struct check *k, const char *path, const char *what)
{
	progress_clear(&k->progress);
	plain_printf(stdout, "%s: ", path);
	fputs(colour_begin(k->coloured, COLOUR_BAD), stdout);
	plain_text_put(stdout, what);
	fputs(colour_end(k->coloured, COLOUR_BAD), stdout);
	fputc('\n', stdout);
	k->problems++;
}

/* A verdict that says that packets cannot be read. */
static bool
is_broken(const char *verdict)
{
	return strcmp(verdict, "damaged") == 0 ||
	    strcmp(verdict, "cut_off") == 0 ||
	    strcmp(verdict, "no_trace") == 0;
}

static void
compare(struct check *k, const struct catalog_row *row,
    const struct segment_entry *e)
{
	bool pinned = archive_files_is_pinned(k->a->folder, row->path);

	if (memcmp(row->sha256, e->sha256, SEGMENT_SHA256) != 0)
		problem(k, row->path, row->mtime_ns == e->mtime_ns &&
		    row->bytes == e->bytes ?
		    "its bytes are not those that were catalogued, though its "
		    "size and time are: the disk, or somebody, changed them" :
		    "it was changed since it was catalogued: reindex");
	if (is_broken(e->verdict))
		problem(k, row->path, e->problem);
	if (pinned != row->pinned)
		problem(k, row->path, pinned ? "it is pinned, and the "
		    "catalogue does not know: reindex" : "the catalogue has "
		    "it as pinned, and it is not: reindex");
}

/* A segment of the catalogue, as long as that is borrowed. */
static bool
row_cb(void *arg, const struct catalog_row *row)
{
	struct segment_entry e = { .bytes = 0 };
	struct check *k = arg;

	switch (segment_index_file(&e, k->a->folder, row->path, k->err,
	    sizeof(k->err))) {
	case 0:
		compare(k, row, &e);
		break;
	case 1:
		k->gone = true;
		break;
	default:
		problem(k, row->path, k->err);
	}
	segment_entry_done(&e);
	return false;
}

static bool
ignore_cb(void *arg, const struct catalog_row *row)
{
	return false;
}

/* 1: the catalogue has the path; 0: it does not; -1: failed. */
static int
is_catalogued(struct check *k, const char *path)
{
	return catalog_find(k->a->catalog, path, ignore_cb, NULL, k->err,
	    sizeof(k->err));
}

/*
 * Rows are looked up one by one, not in one walk, which would see the catalogue
 * of its begin: what is deleted meanwhile, by retention, is not missing.
 */
static int
check_rows(struct check *k)
{
	struct archive_files rows;
	int rc = 0;
	size_t i;

	if (archive_files_catalogued(&rows, k->a->catalog, k->err,
	    sizeof(k->err)) < 0)
		return -1;
	progress_begin(&k->progress, "segments read", rows.n);
	for (i = 0; rc >= 0 && i < rows.n; i++) {
		progress_show(&k->progress, i);
		k->gone = false;
		rc = catalog_find(k->a->catalog, rows.all[i].path, row_cb, k,
		    k->err, sizeof(k->err));
		k->segments += rc == 1;
		if (rc != 1 || !k->gone)
			continue;
		/* The file goes first, its row behind it. */
		if ((rc = is_catalogued(k, rows.all[i].path)) == 1)
			problem(k, rows.all[i].path,
			    "the file is gone: reindex");
	}
	progress_clear(&k->progress);
	archive_files_done(&rows);
	return rc < 0 ? -1 : 0;
}

/* Files that no row has. */
static int
check_folder(struct check *k)
{
	struct archive_files files;
	int rc = 0;
	size_t i;

	if (archive_files_list(&files, k->a->folder, k->err,
	    sizeof(k->err)) < 0)
		return -1;
	if (files.n_unread > 0)
		problem(k, files.unread, strerror(files.unread_error));
	for (i = 0; rc >= 0 && i < files.n; i++) {
		rc = is_catalogued(k, files.all[i].path);
		if (rc == 0 && faccessat(k->a->folder, files.all[i].path, F_OK,
		    AT_SYMLINK_NOFOLLOW) == 0)
			problem(k, files.all[i].path,
			    "it is not in the catalogue: reindex");
	}
	archive_files_done(&files);
	return rc < 0 ? -1 : 0;
}

/* The database itself: its pages, indices and tables. */
static int
check_database(struct check *k)
{
	struct catalog_statement *s;
	int rc;

	s = catalog_prepare(k->a->catalog, "PRAGMA integrity_check(20)", k->err,
	    sizeof(k->err));
	if (s == NULL)
		return -1;
	while ((rc = catalog_step(k->a->catalog, s, k->err,
	    sizeof(k->err))) == 1) {
		const char *text = catalog_text(s, 0);

		if (strcmp(text, "ok") != 0)
			problem(k, CATALOG_FILE, text);
	}
	return rc;
}

int
archive_verify(const struct archive_open *a)
{
	struct check k = { .a = a, .coloured = colour_is_on(stdout) };
	enum colour c;

	if (check_database(&k) < 0 || check_rows(&k) < 0 ||
	    check_folder(&k) < 0)
		return archive_refuse(k.err);
	c = k.problems > 0 ? COLOUR_BAD : COLOUR_GOOD;
	printf("%" PRIu64 " segment%s, %s%" PRIu64 " problem%s%s\n",
	    k.segments, human_s(k.segments), colour_begin(k.coloured, c),
	    k.problems, human_s(k.problems), colour_end(k.coloured, c));
	return k.problems > 0 ? ARCHIVE_WRONG : ARCHIVE_DONE;
}
