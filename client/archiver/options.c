#include "client/archiver/options.h"

#include <stdio.h>
#include <string.h>

#include "transport/base/failure.h"

static const char help_text[] =
"Usage: tributary-archiver --archive DIR [FLAG]...\n"
"       tributary-archiver --config FILE [FLAG]...\n"
"       tributary-archiver --status [--json] --archive DIR\n"
"\n"
"Keeps the archive in a folder: enters each trace that appears there into its\n"
"catalogue, and deletes the oldest beyond the limits of the settings.\n"
"`tributary archive` and `tributary find` use the catalogue.\n"
"\n"
"  --archive DIR      the folder.  Default: archive_dir of the settings\n"
"  --config FILE      read settings (protobuf text, message ArchiveSettings);\n"
"                     without it nothing is deleted\n"
"  --check-config     only check the settings: print OK, or the fault and exit\n"
"                     with status 1\n"
"  --status           show the archive, the disk, and what was deleted, as the\n"
"                     archiver of this folder has it\n"
"  --json             with --status: for programs\n"
"  --log-level LEVEL  error, warn, info or debug.  Default: info\n"
"  --version          print the version\n"
"  --help             print this\n"
"\n"
"SIGHUP reads the settings again.  SIGTERM and SIGINT end it; a second one ends\n"
"it at once.  It speaks with systemd (NOTIFY_SOCKET, WATCHDOG_USEC).\n"
"\n"
"Exit status: 0 ended as asked, 1 could not start (--status: no archiver runs),\n"
"2 wrong usage.\n";

#define AT(member) .at = offsetof(struct archiver_options, member)

static const struct flag table[] = {
	{ "archive", FLAG_TEXT, AT(archive) },
	{ "config", FLAG_TEXT, AT(config) },
	{ "check-config", FLAG_BOOL, AT(check) },
	{ "status", FLAG_BOOL, AT(status) },
	{ "json", FLAG_BOOL, AT(json) },
	{ "log-level", FLAG_TEXT, AT(log_level) },
	{ "version", .kind = FLAG_VERSION },
	{ "help", .kind = FLAG_HELP },
	{ .name = NULL },
};

const struct flags archiver_flags = {
	.table = table,
	.speaker = "tributary-archiver",
	.help_is_at = "see tributary-archiver --help",
	.help = help_text,
	.version = "tributary-archiver " TRIBUTARY_VERSION,
	.bad_status = 2,
};

enum flags_verdict
archiver_options_parse(struct archiver_options *o, int argc, char **argv,
    char *err, size_t err_size)
{
	struct flags_words words = { .argc = argc, .argv = argv };
	enum flags_verdict verdict;

	memset(o, 0, sizeof(*o));
	verdict = flags_parse(&archiver_flags, o, &words, err, err_size);
	if (verdict != FLAGS_RUN)
		return verdict;
	if (words.argc > 0)
		return FAILURE(err, err_size, "\"%s\": it takes flags alone; "
		    "the folder is --archive %s", words.argv[0],
		    words.argv[0]);
	if (o->check && o->status)
		return FAILURE(err, err_size, "--check-config and --status are "
		    "different things to do: give one of them");
	if (o->json && !o->status)
		return FAILURE(err, err_size, "--json goes with --status");
	if (o->archive == NULL && o->config == NULL)
		return FAILURE(err, err_size, "which archive? Give its folder "
		    "with --archive, or settings with --config");
	return FLAGS_RUN;
}

static int
apply(const struct archiver_options *o, struct archiver_settings *s, char *err,
    size_t err_size)
{
	if (o->config != NULL &&
	    archiver_settings_read(s, o->config, err, err_size) != 0)
		return -1;
	if (o->archive != NULL &&
	    archiver_settings_set_folder(s, o->archive) != 0)
		return FAILURE(err, err_size, "no memory");
	if (o->log_level != NULL &&
	    log_level_parse(o->log_level, &s->log_level) != 0)
		return FAILURE(err, err_size,
		    "--log-level: must be error, warn, info or debug");
	if (s->folder == NULL || s->folder[0] == '\0')
		return FAILURE(err, err_size, "%s: error: archive_dir: name "
		    "the folder of the archive, here or with --archive",
		    o->config != NULL ? o->config : "--archive");
	return 0;
}

int
archiver_options_settings(const struct archiver_options *o,
    struct archiver_settings *s, char *err, size_t err_size)
{
	archiver_settings_init(s);
	if (apply(o, s, err, err_size) == 0)
		return 0;
	archiver_settings_done(s);
	return -1;
}
