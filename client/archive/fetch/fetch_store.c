#include "client/archive/fetch/fetch_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/archive/catalog.h"
#include "client/archive/store/store_program.h"
#include "transport/base/failure.h"

int
fetch_store_want(struct fetch_store *s, const struct catalog_row *row,
    char *err, size_t err_size)
{
	struct fetch_stored *grown, one = { .fd = -1 };

	if (row->stored.state == NULL || row->stored.url == NULL ||
	    strcmp(row->stored.state, "stored") != 0)
		return FAILURE(err, err_size, "%.400s is neither in the "
		    "archive nor in a store: see tributary archive reindex",
		    row->path);
	/* Options are no places: the URL is a word of a command line. */
	if (strncmp(row->stored.url, "s3://", 5) != 0)
		return FAILURE(err, err_size, "%.400s is said to be at "
		    "%.400s, which is no place in a store", row->path,
		    row->stored.url);
	grown = reallocarray(s->all, s->n + 1, sizeof(*grown));
	if (grown == NULL)
		return FAILURE(err, err_size, "out of memory");
	s->all = grown;
	if ((one.url = strdup(row->stored.url)) == NULL)
		return FAILURE(err, err_size, "out of memory");
	memcpy(one.sha256, row->sha256, sizeof(one.sha256));
	one.bytes = row->bytes;
	s->all[s->n++] = one;
	s->bytes += row->bytes;
	return 0;
}

static void
tick_cb(void *arg, uint64_t bytes)
{
	struct fetch_store *s = arg;

	progress_show(&s->progress, s->brought + bytes);
}

char *
fetch_store_bring(struct fetch_store *s, size_t i, const char *settings,
    char *err, size_t err_size)
{
	struct fetch_stored *one = &s->all[i];
	char *path;

	one->fd = store_program_get(settings, one->url, one->sha256,
	    sizeof(one->sha256), tick_cb, s, err, err_size);
	if (one->fd < 0)
		return NULL;
	s->brought += one->bytes;
	/* A file of its own each time that it is opened, from its begin. */
	if (asprintf(&path, "/proc/self/fd/%d", one->fd) >= 0)
		return path;
	snprintf(err, err_size, "out of memory");
	return NULL;
}

void
fetch_store_done(struct fetch_store *s)
{
	while (s->n-- > 0) {
		free(s->all[s->n].url);
		if (s->all[s->n].fd >= 0)
			close(s->all[s->n].fd);
	}
	free(s->all);
	*s = (struct fetch_store){ 0 };
}
