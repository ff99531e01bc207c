#include "client/record/snapshot.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/command/command_line.h"
#include "client/record/options.h"
#include "client/record/run.h"
#include "transport/base/failure.h"

#define ERROR_BYTES 2048
/* Files of one session and one second. */
#define NAMES_MAX 1000u
/* Most bytes of a session's name in a file's. */
#define NAME_BYTES 64

#define AT(member) .at = offsetof(struct record_options, member)

static const struct flag flags[] = {
	{ "help", FLAG_HELP, .letter = 'h' },
	{ "connect", FLAG_TEXT, AT(line.connect) },
	DIAL_FLAGS(offsetof(struct record_options, line.how)),
	{ "out", FLAG_TEXT, .letter = 'o', AT(out) },
	{ "no-clobber", FLAG_BOOL, AT(no_clobber) },
	{ "name", FLAG_TEXT, AT(clone_name) },
	{ "for-bugreport", FLAG_BOOL, AT(clone_for_bugreport) },
	{ "quiet", FLAG_BOOL, .letter = 'q', AT(quiet) },
	{ .name = NULL },
};

static const char help[] =
    "Usage: tributary snapshot ID|NAME [-o FILE]\n"
    "\n"
    "Saves the buffers of a running session, which goes on as before. The session is\n"
    "named by its number (tributary sessions), or by the unique_session_name of its\n"
    "config.\n"
    "\n"
    "  -o, --out FILE    the trace; - writes to standard output. Default: a new\n"
    "                    file here, called after the session and the time\n"
    "      --no-clobber  leave alone a file that exists\n"
    "      --name NAME   a name that would be taken for a number\n"
    "      --for-bugreport  without the session's trace_filter\n"
    "  -q, --quiet       print warnings and errors only\n"
    COMMAND_CONSUMER_HELP
    "\n"
    "Exit status: 0 when the whole snapshot is in the file; 1 when it is not, or\n"
    "there is no such session of yours.\n";

char *
snapshot_file_name(char *out, size_t out_size, const char *session,
    const struct tm *now)
{
	char name[NAME_BYTES + 1], when[32];
	size_t i;

	for (i = 0; i < NAME_BYTES && session[i] != '\0'; i++)
		name[i] = isalnum((unsigned char)session[i]) ||
		    (i > 0 && strchr("-_.", session[i]) != NULL) ?
		    session[i] : '_';
	name[i] = '\0';
	if (strftime(when, sizeof(when), "%Y%m%d-%H%M%S", now) == 0)
		when[0] = '\0';
	snprintf(out, out_size, "%s%s-%s.pftrace", strspn(name, "0123456789")
	    == i ? "session-" : "", name, when);
	return out;
}

/* "a.pftrace" becomes "a-1.pftrace" and so on, until no such file exists. */
static int
make_free(char *name, size_t size)
{
	size_t stem = strlen(name) - strlen(".pftrace");
	unsigned i;

	for (i = 1; access(name, F_OK) == 0; i++) {
		if (i > NAMES_MAX)
			return -1;
		snprintf(name + stem, size - stem, "-%u.pftrace", i);
	}
	return 0;
}

/* A word of digits is a number, any other a name. */
static int
parse_session(struct record_options *o, const char *word, char *err,
    size_t err_size)
{
	if (word[0] == '\0')
		return FAILURE(err, err_size, "the name of the session is "
		    "empty");
	if (word[strspn(word, "0123456789")] != '\0') {
		o->clone_name = word;
		return 0;
	}
	errno = 0;
	o->clone_id = strtoull(word, NULL, 10);
	if (errno == 0)
		return 0;
	return FAILURE(err, err_size, "there is no session %.40s", word);
}

/* Words and flags that need each other.  0, or -1 with a sentence. */
static int
check(struct record_options *o, const struct command_line *line, char *err,
    size_t err_size)
{
	size_t words = line->n_words + (o->clone_name != NULL);

	if (words != 1)
		return FAILURE(err, err_size, words == 0 ?
		    "name a session by its number or its unique_session_name; "
		    "`tributary sessions` lists them" : "name one session");
	if (o->clone_name == NULL && parse_session(o, line->words[0], err,
	    err_size) < 0)
		return -1;
	if (o->out != NULL && strcmp(o->out, "-") == 0 &&
	    isatty(STDOUT_FILENO))
		return FAILURE(err, err_size, "a trace is binary and standard "
		    "output is a terminal: name a file (-o FILE) or redirect");
	return 0;
}

static const struct flags command = COMMAND("snapshot", flags, help);

int
snapshot_main(int argc, char **argv)
{
	struct record_options o = {
		.mode = RECORD_MODE_CLONE,
		.notify_fd = -1,
		.line.how.service = "consumer",
	};
	struct command_line line;
	char name[NAME_BYTES + 64], number[32], err[ERROR_BYTES];
	time_t now = time(NULL);
	struct tm tm = { 0 };
	int status;

	status = command_line_parse(&line, &command, &o, argc, argv);
	if (status >= 0)
		return status;
	if (check(&o, &line, err, sizeof(err)) < 0)
		return flags_refuse(&command, err);
	if (o.out == NULL) {
		localtime_r(&now, &tm);
		snprintf(number, sizeof(number), "%llu",
		    (unsigned long long)o.clone_id);
		snapshot_file_name(name, sizeof(name), o.clone_name != NULL ?
		    o.clone_name : number, &tm);
		if (make_free(name, sizeof(name)) < 0)
			return flags_refuse(&command, "too many snapshots "
			    "in one second: name a file with -o");
		o.out = name;
		o.no_clobber = true;
	}
	return record_run(&o);
}
