#include "client/web/web_archive_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "client/archive/archive_path.h"
#include "client/archive/catalog.h"
#include "client/archive/fetch/fetch_join.h"
#include "client/archive/join/segment_plan.h"
#include "client/web/web_open.h"
#include "transport/base/failure.h"
#include "transport/base/nameless_file.h"
#include "transport/loop/loop.h"

#define OK          200u
#define BAD         400u
#define NOT_FOUND   404u
#define CONFLICT    409u
#define TOO_MUCH    413u
#define UNAVAILABLE 503u

#define ROW_BYTES (1 << 20)

/* ---- the catalogue ---- */

static int
is_over(void *arg)
{
	const struct web_archive_place *p = arg;

	return atomic_load(p->stop) || loop_now_ms() >= p->until_ms;
}

struct catalog *
web_archive_catalog(const struct web_archive_place *p, char *err,
    size_t err_size)
{
	struct catalog *c = p->catalog != NULL ?
	    catalog_connect(p->catalog, CATALOG_READ, err, err_size) :
	    catalog_open(p->folder, CATALOG_READ, err, err_size);

	if (c == NULL)
		return NULL;
	catalog_bound(c, ROW_BYTES, is_over, (void *)p);
	return c;
}

/* ---- which segments ---- */

static const char *
given(const char *text)
{
	return text[0] == '\0' ? NULL : text;
}

int
web_archive_select(struct selection *out, const struct web_archive_place *p,
    const struct web_search *q, char *err, size_t err_size)
{
	struct timespec now;

	*out = (struct selection){ .folder = p->folder,
		.catalog = p->catalog, .collector = given(q->collector),
		.machine = given(q->machine), .recording = given(q->recording),
		.trigger = given(q->trigger), .process = given(q->process),
		.at = given(q->at), .around = given(q->around),
		.from = given(q->from), .to = given(q->to), .lost = q->lost };
	clock_gettime(CLOCK_REALTIME, &now);
	return selection_settle(out, (int64_t)now.tv_sec * 1000000000 +
	    now.tv_nsec, err, err_size);
}

/* ---- one segment ---- */

/* -1 with a sentence. */
static int
open_segment(int folder, const char *path, struct stat *st, char *err,
    size_t err_size)
{
	const struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
		    RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));

	if (fd < 0)
		return FAILURE(err, err_size, "%s cannot be opened: %s", path,
		    errno == ELOOP ? "links are not followed" :
		    strerror(errno));
	if (fstat(fd, st) == 0 && S_ISREG(st->st_mode))
		return fd;
	close(fd);
	return FAILURE(err, err_size, "%s is no regular file", path);
}

struct one {
	bool found, local;
};

static bool
one_cb(void *arg, const struct catalog_row *row)
{
	struct one *one = arg;

	one->found = true;
	one->local = row->local;
	return false;
}

unsigned
web_archive_open(struct web_archive_file *out,
    const struct web_archive_place *p, const struct web_search *q, char *err,
    size_t err_size)
{
	struct one one = { false, false };
	struct catalog *c;
	struct stat st;
	int rc;

	if (!archive_path_is_segment(q->path)) {
		snprintf(err, err_size, "This is no path of a segment.");
		return NOT_FOUND;
	}
	c = web_archive_catalog(p, err, err_size);
	if (c == NULL)
		return UNAVAILABLE;
	rc = catalog_find(c, q->path, one_cb, &one, err, err_size);
	catalog_close(c);
	if (rc < 0)
		return UNAVAILABLE;
	if (!one.found || !one.local) {
		snprintf(err, err_size, one.found ? "%.700s is in the store "
		    "alone: tributary fetch brings it" :
		    "The archive has no segment %.700s.", q->path);
		return NOT_FOUND;
	}
	out->fd = open_segment(p->fd, q->path, &st, err, err_size);
	if (out->fd < 0)
		return NOT_FOUND;
	out->bytes = (size_t)st.st_size;
	web_open_name(out->name, sizeof(out->name), q->path);
	return OK;
}

/* ---- several ---- */

/* Files that are open under paths of ours, which name them by number. */
struct joining {
	const struct web_archive_place *place;
	struct selection select;
	struct {
		int fd;
		char path[32];
	} files[WEB_JOIN_FILES];
	const char *paths[WEB_JOIN_FILES];
	size_t n;
	uint64_t bytes;
	unsigned status;
	char *err;
	size_t err_size;
};

static bool
refuse(struct joining *j, unsigned status)
{
	j->status = status;
	return false;
}

static bool
row_cb(void *arg, const struct catalog_row *row)
{
	struct joining *j = arg;
	struct stat st;
	int fd;

	/* Rows of a catalogue that is not ours may have one id. */
	if (j->n == WEB_JOIN_FILES) {
		snprintf(j->err, j->err_size, "The catalogue is damaged: "
		    "tributary archive reindex --full makes it anew.");
		return refuse(j, UNAVAILABLE);
	}
	if (!row->local) {
		snprintf(j->err, j->err_size, "%.600s is in the store alone: "
		    "tributary fetch brings and joins such segments",
		    row->path);
		return refuse(j, NOT_FOUND);
	}
	if ((fd = open_segment(j->place->fd, row->path, &st, j->err,
	    j->err_size)) < 0)
		return refuse(j, NOT_FOUND);
	snprintf(j->files[j->n].path, sizeof(j->files[j->n].path),
	    "/proc/self/fd/%d", fd);
	j->files[j->n].fd = fd;
	j->paths[j->n] = j->files[j->n].path;
	j->n++;
	if ((j->bytes += (uint64_t)st.st_size) <= WEB_JOIN_BYTES)
		return true;
	snprintf(j->err, j->err_size, "These segments have more than %u MiB: "
	    "narrow the search, or use tributary fetch.",
	    (unsigned)(WEB_JOIN_BYTES >> 20));
	return refuse(j, TOO_MUCH);
}

static unsigned
find(struct joining *j, struct catalog *c)
{
	struct selection_found found;

	if (selection_run(&found, c, &j->select, WEB_JOIN_FILES + 1, j->err,
	    j->err_size) < 0)
		return UNAVAILABLE;
	if (found.n == 0) {
		snprintf(j->err, j->err_size, "No segment is as asked for.");
		j->status = NOT_FOUND;
	} else if (found.n > WEB_JOIN_FILES) {
		snprintf(j->err, j->err_size, "These are more than %u "
		    "segments: narrow the search, or use tributary fetch.",
		    WEB_JOIN_FILES);
		j->status = TOO_MUCH;
	} else if (selection_each(c, &found, row_cb, j, j->err,
	    j->err_size) < 0) {
		j->status = UNAVAILABLE;
	}
	selection_found_done(&found);
	return j->status;
}

static int
write_trace(struct joining *j, int fd, size_t *n_recordings)
{
	const struct fetch_order order = { .output = NULL, .fd = fd,
		.max_bytes = WEB_JOIN_BYTES, .stop = j->place->stop,
		.trim = j->select.has_time,
		.from_ns = (uint64_t)j->select.from_ns,
		.to_ns = (uint64_t)j->select.to_ns };
	struct fetch_result result;
	struct segment_plan plan = { .n = 0 };
	int rc;

	if (segment_plan_make(&plan, j->paths, j->n, j->err, j->err_size) < 0)
		return -1;
	*n_recordings = plan.n_recordings;
	rc = fetch_join(&result, &order, &plan, j->err, j->err_size);
	segment_plan_done(&plan);
	return rc;
}

static unsigned
join(struct joining *j, struct web_archive_file *out)
{
	size_t n_recordings = 0;
	struct stat st;
	int fd = nameless_file_open("tributary-web", j->err, j->err_size);

	if (fd < 0)
		return UNAVAILABLE;
	if (write_trace(j, fd, &n_recordings) < 0 || fstat(fd, &st) < 0) {
		close(fd);
		/* Numbers of ours say nothing to people. */
		if (strstr(j->err, "/proc/self/fd/") != NULL)
			snprintf(j->err, j->err_size, "One of these segments "
			    "is damaged: tributary archive verify says which.");
		return CONFLICT;
	}
	out->fd = fd;
	out->bytes = (size_t)st.st_size;
	snprintf(out->name, sizeof(out->name), n_recordings > 1 ?
	    "archive.tar" : "archive.pftrace");
	return OK;
}

unsigned
web_archive_join(struct web_archive_file *out,
    const struct web_archive_place *p, const struct web_search *q, char *err,
    size_t err_size)
{
	struct joining *j = calloc(1, sizeof(*j));
	unsigned status = UNAVAILABLE;
	struct catalog *c;

	if (j == NULL) {
		snprintf(err, err_size, "no memory");
		return status;
	}
	*j = (struct joining){ .place = p, .status = OK, .err = err,
		.err_size = err_size };
	if (web_archive_select(&j->select, p, q, err, err_size) < 0) {
		status = BAD;
	} else if ((c = web_archive_catalog(p, err,
	    err_size)) != NULL) {
		status = find(j, c);
		catalog_close(c);
		if (status == OK)
			status = join(j, out);
	}
	while (j->n > 0)
		close(j->files[--j->n].fd);
	free(j);
	return status;
}
