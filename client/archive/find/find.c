#include "client/archive/find/find.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/archive/catalog.h"
#include "client/archive/find/find_nothing.h"
#include "client/archive/find/find_text.h"
#include "client/archive/selection.h"
#include "protos/plain_text.h"
#include "transport/base/failure.h"
#include "transport/base/flags.h"

#define ERROR_BYTES   1024
#define DEFAULT_LIMIT 50u

enum { EXIT_FOUND = 0, EXIT_NOTHING = 1, EXIT_WRONG = 2 };

struct find {
	struct selection select;
	bool json;
	size_t limit; /* 0: all */
};

static const char help[] =
    "Usage: tributary find [--at TIME | --from TIME --to TIME] [CONDITION...]\n"
    "       [--json] [--limit N] [SEGMENT...]\n"
    "\n"
    "Lists the segments of an archive that have a moment, the newest first:\n"
    "when, of which machines and recording, what they lost, and where they are.\n"
    "`tributary fetch` joins them into one trace.\n"
    "\n"
    SELECTION_HELP
    SELECTION_COLLECTOR_HELP
    "      --limit N     at most so many; 0: all; default: 50\n"
    "      --json        for programs, with times in nanoseconds and UTC\n"
    "  -h, --help        print this\n"
    "\n"
    "Exit status: 0 when there are any; 1 when there is none; 2 for a wrong\n"
    "command line or an archive that cannot be read.\n";

static int
take_limit(void *options, const struct flag *flag, const char *value, char *err,
    size_t err_size)
{
	struct find *f = options;
	unsigned long v;
	char *end;

	(void)flag;
	errno = 0;
	v = strtoul(value, &end, 10);
	if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 ||
	    v >= SIZE_MAX)
		return FAILURE(err, err_size, "--limit wants a number, not %s",
		    value);
	f->limit = (size_t)v;
	return 0;
}

static const struct flag table[] = {
	SELECTION_FLAGS(offsetof(struct find, select)),
	{ "help", FLAG_HELP, .letter = 'h' },
	{ "json", FLAG_BOOL, .at = offsetof(struct find, json) },
	{ "limit", FLAG_VALUE, .take = take_limit },
	{ .name = NULL },
};

static const struct flags flags = {
	.table = table,
	.speaker = "tributary find",
	.help_is_at = "see tributary find --help",
	.help = help,
	.bad_status = EXIT_WRONG,
};

/* Prints the found segments, of which the last may be one too many. */
static int
print(struct find *f, struct catalog *c, struct selection_found *found,
    char *err, size_t err_size)
{
	bool more = f->limit != 0 && found->n > f->limit;
	int rc;

	if (more)
		found->n = f->limit;
	if (f->json)
		rc = find_text_json(stdout, c, f->select.name, found, more,
		    err, err_size);
	else if (found->n > 0)
		rc = find_text_table(stdout, c, found, err, err_size);
	else
		rc = 0;
	if (rc == 0 && fflush(stdout) != 0)
		rc = FAILURE(err, err_size, "%s", strerror(errno));
	if (rc == 0 && more && !f->json)
		plain_printf(stderr, "tributary find: there are more than %zu; "
		    "--limit 0 lists all\n", f->limit);
	return rc;
}

static int
find(struct find *f, struct catalog *c)
{
	struct selection_found found = { NULL, 0 };
	char err[ERROR_BYTES];
	int status = EXIT_FOUND;

	if (selection_run(&found, c, &f->select, f->limit == 0 ? 0 :
	    f->limit + 1, err, sizeof(err)) < 0)
		return flags_refuse(&flags, err);
	if (print(f, c, &found, err, sizeof(err)) < 0)
		status = flags_refuse(&flags, err);
	else if (found.n == 0) {
		find_nothing_say(flags.speaker, c, &f->select);
		status = EXIT_NOTHING;
	}
	selection_found_done(&found);
	return status;
}

int
find_main(int argc, char **argv)
{
	struct flags_words words = { .argc = argc, .argv = argv };
	struct find f = { .limit = DEFAULT_LIMIT };
	char err[ERROR_BYTES];
	struct timespec now;
	struct catalog *c;
	int status;

	status = flags_answer(&flags, flags_parse(&flags, &f, &words, err,
	    sizeof(err)), err);
	if (status >= 0)
		return status;
	f.select.paths = (const char *const *)words.argv;
	f.select.n_paths = (size_t)words.argc;
	clock_gettime(CLOCK_REALTIME, &now);
	if (selection_settle(&f.select, (int64_t)now.tv_sec * 1000000000 +
	    now.tv_nsec, err, sizeof(err)) < 0)
		return flags_refuse(&flags, err);
	c = selection_open(&f.select, err, sizeof(err));
	if (c == NULL)
		return flags_refuse(&flags, err);
	status = find(&f, c);
	catalog_close(c);
	return status;
}
