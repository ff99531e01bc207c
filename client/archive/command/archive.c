#include "client/archive/command/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/archive/catalog.h"
#include "client/archive/command/actions.h"
#include "client/archive/command/options.h"
#include "protos/plain_text.h"

int
archive_refuse(const char *text)
{
	plain_printf(stderr, "tributary archive: %s\n", text);
	return ARCHIVE_NOT_DONE;
}

static bool
go_on(void *arg, const struct catalog_row *row)
{
	return true;
}

static bool
is_sound(struct catalog *c)
{
	char err[ARCHIVE_ERROR_SIZE];
	struct catalog_statement *s;
	bool sound;

	s = catalog_prepare(c, "PRAGMA integrity_check(1)", err, sizeof(err));
	if (s == NULL || catalog_step(c, s, err, sizeof(err)) != 1)
		return false;
	sound = strcmp(catalog_text(s, 0), "ok") == 0;
	catalog_reset(s);
	return sound && catalog_each(c, "", NULL, 0, go_on, NULL, err,
	    sizeof(err)) == 0;
}

/*
 * Opens the catalogue; one that is of no use is thrown away where all of it is
 * to be made anew, if no process has it open.
 */
static struct catalog *
open_folder(const struct archive_options *o, char *err, size_t err_size)
{
	enum catalog_mode mode = o->action == ARCHIVE_USAGE ||
	    o->action == ARCHIVE_VERIFY || o->action == ARCHIVE_EXPORT ?
	    CATALOG_READ : CATALOG_WRITE;
	const char *folder = o->select.folder;
	struct catalog *c = catalog_open(folder, mode, err, err_size);

	if (!o->full || (c != NULL && is_sound(c)))
		return c;
	if (c == NULL && access(folder, F_OK) < 0)
		return NULL;
	catalog_close(c);
	if (catalog_destroy(folder, err, err_size) < 0)
		return NULL;
	return catalog_open(folder, mode, err, err_size);
}

static int
run(const struct archive_open *a)
{
	switch (a->options->action) {
	case ARCHIVE_REINDEX:
		return a->options->from != NULL ? archive_reindex_from(a) :
		    archive_reindex(a);
	case ARCHIVE_VERIFY:
		return archive_verify(a);
	case ARCHIVE_USAGE:
		return archive_usage(a);
	case ARCHIVE_PIN:
		return archive_pin(a, true);
	case ARCHIVE_UNPIN:
		return archive_pin(a, false);
	case ARCHIVE_REMOVE:
		return archive_remove(a);
	case ARCHIVE_EXPORT:
		return archive_export(a);
	}
	return ARCHIVE_NOT_DONE;
}

/* A reindex reads descriptions into a catalogue in memory first. */
static int
open_shared(struct archive_open *a, char *err, size_t err_size)
{
	const struct archive_options *o = a->options;

	if (o->action != ARCHIVE_REINDEX) {
		a->catalog = selection_open(&o->select, err, err_size);
		return a->catalog == NULL ? -1 : 0;
	}
	a->shared = catalog_connect(o->select.catalog, CATALOG_WRITE, err,
	    err_size);
	if (a->shared != NULL)
		a->catalog = catalog_scratch(err, err_size);
	return a->catalog == NULL ? -1 : 0;
}

static int
open_archive(struct archive_open *a, char *err, size_t err_size)
{
	const struct archive_options *o = a->options;

	if (o->select.catalog != NULL)
		return open_shared(a, err, err_size);
	if ((a->catalog = open_folder(o, err, err_size)) == NULL)
		return -1;
	a->folder = open(o->select.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (a->folder >= 0)
		return 0;
	snprintf(err, err_size, "%s", strerror(errno));
	return -1;
}

static int
open_and_run(const struct archive_options *o)
{
	struct archive_open a = { .options = o, .folder = -1 };
	char err[ARCHIVE_ERROR_SIZE];
	int status;

	status = open_archive(&a, err, sizeof(err)) < 0 ?
	    archive_refuse(err) : run(&a);
	if (a.folder >= 0)
		close(a.folder);
	catalog_close(a.catalog);
	catalog_close(a.shared);
	if (fflush(stdout) != 0 && status == ARCHIVE_DONE)
		return archive_refuse("cannot write to standard output");
	return status;
}

int
archive_main(int argc, char **argv)
{
	char err[ARCHIVE_ERROR_SIZE];
	struct archive_options o;
	struct timespec now;
	int status;

	clock_gettime(CLOCK_REALTIME, &now);
	status = flags_answer(&archive_options_flags,
	    archive_options_parse(&o, argc, argv, now.tv_sec *
	    INT64_C(1000000000) + now.tv_nsec, err, sizeof(err)), err);
	return status >= 0 ? status : open_and_run(&o);
}
