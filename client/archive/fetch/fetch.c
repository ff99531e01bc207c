#include "client/archive/fetch/fetch.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/archive/catalog.h"
#include "client/archive/fetch/fetch_join.h"
#include "client/archive/fetch/fetch_store.h"
#include "client/archive/find/find_nothing.h"
#include "client/archive/join/segment_plan.h"
#include "client/archive/selection.h"
#include "client/archive/store/store_program.h"
#include "client/text/progress.h"
#include "client/text/time_text.h"
#include "protos/plain_text.h"
#include "transport/base/failure.h"
#include "transport/base/flags.h"
#include "transport/base/human_numbers.h"
#include "transport/process/fd_limit.h"

#define ERROR_BYTES 1024

enum { EXIT_FETCHED = 0, EXIT_NOTHING = 1, EXIT_WRONG = 2 };

struct fetch {
	struct selection select;
	const char *output;
	const char *settings; /* of tributary-upload */
	bool trim;
	/* Files to be joined. */
	char **paths; /* owned */
	size_t n_paths, room;
	uint64_t lost;        /* as the catalogue says */
	struct fetch_store store;
	char failure[ERROR_BYTES]; /* of a walk; "": none */
};

static const char help[] =
    "Usage: tributary fetch [--at TIME | --from TIME --to TIME] [CONDITION...]\n"
    "       -o FILE [--trim]\n"
    "       tributary fetch SEGMENT... -o FILE [--trim --from TIME --to TIME]\n"
    "\n"
    "Joins segments of an archive into one trace that opens: exactly the packets\n"
    "that it would have without the cuts. Segments that are named may be any files;\n"
    "they need no archive. What is missing in between is told, and marked.\n"
    "\n"
    "  -o, --output FILE the trace; \"-\": standard output\n"
    "      --trim        only the events of this time, with all that they need;\n"
    "                    else the segments as a whole\n"
    SELECTION_HELP
    SELECTION_COLLECTOR_HELP
    STORE_PROGRAM_HELP
    "  -h, --help        print this\n"
    "\n"
    "Segments that are only in an object store are fetched by tributary-upload,\n"
    "their checksums compared, and kept no longer than it takes.\n"
    "\n"
    "Segments of several recordings, as after a restart of the collector, become a\n"
    "TAR archive with a trace of each, which Perfetto's UI shows on one time line.\n"
    "\n"
    "Exit status: 0; 1 when there is no such segment; 2 when the command line is\n"
    "wrong, or a file cannot be read or written.\n";

static const struct flag table[] = {
	SELECTION_FLAGS(offsetof(struct fetch, select)),
	{ "help", FLAG_HELP, .letter = 'h' },
	{ "output", FLAG_TEXT, .letter = 'o',
	    .at = offsetof(struct fetch, output) },
	{ "store", FLAG_TEXT, .at = offsetof(struct fetch, settings) },
	{ "trim", FLAG_BOOL, .at = offsetof(struct fetch, trim) },
	{ .name = NULL },
};

static const struct flags flags = {
	.table = table,
	.speaker = "tributary fetch",
	.help_is_at = "see tributary fetch --help",
	.help = help,
	.bad_status = EXIT_WRONG,
};

/* ---- which files ---- */

static bool
add_path(struct fetch *f, char *path)
{
	char **grown;

	if (path != NULL && f->n_paths == f->room) {
		f->room = f->room == 0 ? 16 : 2 * f->room;
		grown = realloc(f->paths, f->room * sizeof(*grown));
		if (grown == NULL) {
			free(path);
			path = NULL;
		} else {
			f->paths = grown;
		}
	}
	if (path == NULL) {
		snprintf(f->failure, sizeof(f->failure), "out of memory");
		return false;
	}
	f->paths[f->n_paths++] = path;
	return true;
}

static bool
row_cb(void *arg, const struct catalog_row *row)
{
	struct fetch *f = arg;
	char *path;

	f->lost += row->lost;
	if (!row->local)
		return fetch_store_want(&f->store, row, f->failure,
		    sizeof(f->failure)) == 0;
	if (asprintf(&path, "%s/%s", f->select.folder, row->path) < 0)
		path = NULL;
	return add_path(f, path);
}

static bool
stored_cb(void *arg, const struct catalog_row *row)
{
	return row->local || row_cb(arg, row);
}

/*
 * 1: a word that is no file is the path of a segment that is only in the store;
 * 0: it is not, as without a folder's catalogue.  -1 with a sentence.
 */
static int
find_in_store(struct fetch *f, const char *word, char *err, size_t err_size)
{
	struct catalog *c = selection_open(&f->select, err, err_size);
	size_t before = f->store.n;
	int rc;

	if (c == NULL)
		return f->select.catalog != NULL ? -1 : 0;
	rc = catalog_find(c, word, stored_cb, f, err, err_size);
	catalog_close(c);
	if (f->failure[0] != '\0')
		return FAILURE(err, err_size, "%s", f->failure);
	if (rc == 0 && f->select.catalog != NULL)
		return FAILURE(err, err_size, "the catalogue %.500s has no "
		    "segment %.300s", f->select.name, word);
	return rc < 0 && f->select.catalog != NULL ? -1 :
	    f->store.n > before;
}

/* Names of segments are paths as a shell has them, or below the archive. */
static int
take_words(struct fetch *f, char *err, size_t err_size)
{
	const char *word, *folder = f->select.folder;
	char *path;
	size_t i;
	int rc;

	for (i = 0; i < f->select.n_paths; i++) {
		word = f->select.paths[i];
		if (folder == NULL)
			path = strdup(word);
		else if (asprintf(&path, "%s/%s", folder, word) < 0)
			path = NULL;
		if (path != NULL && (access(word, F_OK) == 0 ||
		    access(path, F_OK) != 0)) {
			free(path);
			rc = access(word, F_OK) == 0 ? 0 :
			    find_in_store(f, word, err, err_size);
			if (rc < 0)
				return -1;
			if (rc == 1)
				continue;
			path = strdup(word);
		}
		if (!add_path(f, path))
			return FAILURE(err, err_size, "out of memory");
	}
	return 0;
}

/* 0: there are any; else the exit status. */
static int
look_up(struct fetch *f, struct catalog *c, char *err, size_t err_size)
{
	struct selection_found found;
	int rc;

	if (selection_run(&found, c, &f->select, 0, err, err_size) < 0)
		return flags_refuse(&flags, err);
	if (found.n == 0) {
		find_nothing_say(flags.speaker, c, &f->select);
		selection_found_done(&found);
		return EXIT_NOTHING;
	}
	rc = selection_each(c, &found, row_cb, f, err, err_size);
	selection_found_done(&found);
	if (rc == 0 && f->failure[0] != '\0')
		rc = FAILURE(err, err_size, "%s", f->failure);
	return rc < 0 ? flags_refuse(&flags, err) : 0;
}

static int
find_files(struct fetch *f, char *err, size_t err_size)
{
	struct catalog *c;
	int status;

	if (f->select.n_paths > 0)
		return take_words(f, err, err_size) < 0 ?
		    flags_refuse(&flags, err) : 0;
	c = selection_open(&f->select, err, err_size);
	if (c == NULL)
		return flags_refuse(&flags, err);
	status = look_up(f, c, err, err_size);
	catalog_close(c);
	return status;
}

/* Brings what is only in the store.  -1 with a sentence. */
static int
bring(struct fetch *f, char *err, size_t err_size)
{
	char bytes[HUMAN_TEXT_MAX];
	char *path;
	int rc = 0;
	size_t i;

	if (f->store.n > 0)
		plain_printf(stderr, "%s: %zu segment%s, %s, of the store\n",
		    flags.speaker, f->store.n, human_s(f->store.n),
		    human_bytes(bytes, f->store.bytes));
	progress_begin_bytes(&f->store.progress, "brought", f->store.bytes);
	for (i = 0; rc == 0 && i < f->store.n; i++) {
		path = fetch_store_bring(&f->store, i, f->settings, err,
		    err_size);
		if (path == NULL)
			rc = -1;
		else if (!add_path(f, path))
			rc = FAILURE(err, err_size, "out of memory");
	}
	progress_clear(&f->store.progress);
	return rc;
}

/* ---- what is done with them ---- */

static void
say_result(const struct fetch *f, const struct segment_plan *p,
    const struct fetch_result *r)
{
	char bytes[HUMAN_TEXT_MAX], packets[HUMAN_TEXT_MAX];
	char lost[HUMAN_TEXT_MAX];

	plain_printf(stderr, "%s: %s, %s packets, of %zu segment%s",
	    f->output, human_bytes(bytes, r->bytes), human_count(packets,
	    r->packets), r->files, human_s(r->files));
	if (p->n_recordings > 1)
		plain_printf(stderr, " of %zu recordings, a trace each",
		    p->n_recordings);
	else if (p->files[0].head.recording != NULL)
		plain_printf(stderr, " of the recording %s",
		    p->files[0].head.recording);
	fputc('\n', stderr);
	if (f->lost > 0)
		plain_printf(stderr, "  %s things were lost while it was "
		    "recorded: tributary find --json says which\n",
		    human_count(lost, f->lost));
	if (r->unfinished > 0)
		plain_printf(stderr, "  %" PRIu32 " segment%s without "
		    "an end, as after a crash\n", r->unfinished,
		    human_s(r->unfinished));
	if (r->timeless > 0)
		plain_printf(stderr, "  %s events stay whose time cannot be "
		    "told\n", human_count(packets, r->timeless));
	if (strcmp(f->output, "-") != 0)
		plain_printf(stderr, "  open it in https://ui.perfetto.dev%s\n",
		    p->n_recordings > 1 ? "" : ", or see tributary inspect");
}

static bool
is_pipe(const char *output)
{
	struct stat st;

	return strcmp(output, "-") == 0 ||
	    (stat(output, &st) == 0 && S_ISFIFO(st.st_mode));
}

static int
join(struct fetch *f, const struct segment_plan *plan, char *err,
    size_t err_size)
{
	const struct fetch_order order = { .output = f->output,
		.speaker = flags.speaker, .trim = f->trim,
		.from_ns = (uint64_t)f->select.from_ns,
		.to_ns = (uint64_t)f->select.to_ns };
	struct fetch_result result;

	if (plan->n_recordings > 1 && is_pipe(f->output))
		return FAILURE(err, err_size, "these are %zu recordings: give "
		    "-o a file, as an archive cannot go through a pipe",
		    plan->n_recordings);
	if (fetch_join(&result, &order, plan, err, err_size) < 0)
		return -1;
	say_result(f, plan, &result);
	return 0;
}

static int
fetch(struct fetch *f)
{
	struct segment_plan plan = { .n = 0 };
	char err[ERROR_BYTES];
	int status;

	if ((status = find_files(f, err, sizeof(err))) != 0)
		return status;
	/* The files of all machines of a number are open at once. */
	fd_limit_raise();
	if (bring(f, err, sizeof(err)) < 0 ||
	    segment_plan_make(&plan, (const char *const *)f->paths,
	    f->n_paths, err, sizeof(err)) < 0 ||
	    join(f, &plan, err, sizeof(err)) < 0)
		status = flags_refuse(&flags, err);
	segment_plan_done(&plan);
	return status;
}

/* Named segments have no conditions, but perhaps a time to be cut to. */
static int
settle(struct fetch *f, char *err, size_t err_size)
{
	size_t words = f->select.n_paths;
	struct selection whose = f->select;
	struct timespec now;

	whose.at = whose.from = whose.to = NULL;
	whose.n_paths = 0;
	if (f->trim && !selection_is_set(&whose))
		f->select.n_paths = 0;
	clock_gettime(CLOCK_REALTIME, &now);
	if (selection_settle(&f->select, (int64_t)now.tv_sec * 1000000000 +
	    now.tv_nsec, err, err_size) < 0)
		return -1;
	f->select.n_paths = words;
	if (f->output == NULL)
		return FAILURE(err, err_size, "-o FILE: where is the trace to "
		    "be written?");
	if (strcmp(f->output, "-") == 0 && isatty(STDOUT_FILENO))
		return FAILURE(err, err_size, "a trace is no text: standard "
		    "output is a terminal");
	if (!selection_is_set(&f->select))
		return FAILURE(err, err_size, "which segments? --at, or --from "
		    "and --to, or other conditions; see tributary find");
	if (f->trim && !f->select.has_time)
		return FAILURE(err, err_size, "--trim wants --at, or --from or "
		    "--to: cut to which time?");
	return 0;
}

int
fetch_main(int argc, char **argv)
{
	struct flags_words words = { .argc = argc, .argv = argv };
	struct fetch f = { .output = NULL };
	char err[ERROR_BYTES];
	int status;

	status = flags_answer(&flags, flags_parse(&flags, &f, &words, err,
	    sizeof(err)), err);
	if (status >= 0)
		return status;
	f.select.paths = (const char *const *)words.argv;
	f.select.n_paths = (size_t)words.argc;
	status = settle(&f, err, sizeof(err)) < 0 ? flags_refuse(&flags, err) :
	    fetch(&f);
	while (f.n_paths > 0)
		free(f.paths[--f.n_paths]);
	free(f.paths);
	fetch_store_done(&f.store);
	return status;
}
