#include "client/archive/command/options.h"

#include <stdio.h>
#include <string.h>

#include "client/archive/store/store_program.h"
#include "transport/base/failure.h"
#include "transport/base/flag_words.h"

static const struct {
	const char *word;
	enum archive_action action;
	bool selects; /* it wants to be told which segments */
} actions[] = {
	{ "reindex", ARCHIVE_REINDEX, false },
	{ "verify", ARCHIVE_VERIFY, false },
	{ "du", ARCHIVE_USAGE, false },
	{ "pin", ARCHIVE_PIN, true },
	{ "unpin", ARCHIVE_UNPIN, true },
	{ "rm", ARCHIVE_REMOVE, true },
	{ "export", ARCHIVE_EXPORT, true },
};

static const char help[] =
    "Usage: tributary archive reindex [--full | --from s3://BUCKET/PREFIX]\n"
    "       tributary archive verify\n"
    "       tributary archive du [--json]\n"
    "       tributary archive pin SEGMENT...|WHICH...\n"
    "       tributary archive unpin SEGMENT...|WHICH...\n"
    "       tributary archive rm SEGMENT...|WHICH...\n"
    "       tributary archive export --out DIR SEGMENT...|WHICH...\n"
    "\n"
    "Keeps an archive: a folder of trace files and the catalogue of them.\n"
    "\n"
    "reindex: brings the catalogue up to the files, and makes it where it is\n"
    "missing.\n"
    "      --full        read unchanged files too, and make a catalogue anew that\n"
    "                    is damaged or of another version\n"
    "      --from URL    of the descriptions in a store instead: makes a catalogue\n"
    "                    without the files, or says which of them the store has;\n"
    "                    with --catalog, that of all collectors below URL\n"
    STORE_PROGRAM_HELP
    "\n"
    "verify: reads all files, and says what is damaged, missing, or not as the\n"
    "catalogue has it.\n"
    "\n"
    "du: how much each machine, recording and day takes.\n"
    "      --json        for programs\n"
    "\n"
    "pin, unpin: whether segments are kept for good: neither retention nor rm\n"
    "deletes one that is pinned.\n"
    "\n"
    "rm: deletes segments; what a store has of them stays there.\n"
    "\n"
    "export: copies segments, each compared with the catalogue, into a folder that\n"
    "is an archive then, too. What is there is not copied twice, and never replaced.\n"
    "  -o, --out DIR     the folder, which is made where it is missing\n"
    "\n"
    "WHICH, as in tributary find:\n"
    SELECTION_HELP
    "  -h, --help        print this\n"
    "\n"
    "Exit status: 0 when it is done, 1 when it is not, or not for all; 2 when\n"
    "verify found something wrong.\n";

static const struct flag table[] = {
	{ "help", FLAG_HELP, .letter = 'h' },
	{ "full", FLAG_BOOL, .at = offsetof(struct archive_options, full) },
	{ "json", FLAG_BOOL, .at = offsetof(struct archive_options, json) },
	{ "store", FLAG_TEXT,
	    .at = offsetof(struct archive_options, settings) },
	{ "out", FLAG_TEXT, .letter = 'o',
	    .at = offsetof(struct archive_options, out) },
	SELECTION_FLAGS(offsetof(struct archive_options, select)),
	{ .name = NULL },
};

const struct flags archive_options_flags = {
	.table = table,
	.speaker = "tributary archive",
	.help_is_at = "see tributary archive --help",
	.help = help,
	.bad_status = 1,
};

/* --from of reindex is no time but a place in a store. */
static int
take_from(struct archive_options *o, char *err, size_t err_size)
{
	if (o->action != ARCHIVE_REINDEX || o->select.from == NULL)
		return 0;
	if (strncmp(o->select.from, "s3://", 5) != 0)
		return FAILURE(err, err_size, "archive reindex --from %.60s: "
		    "it takes a place in a store, s3://BUCKET/PREFIX",
		    o->select.from);
	o->from = o->select.from;
	o->select.from = NULL;
	return 0;
}

static int
check(const struct archive_options *o, size_t at, char *err, size_t err_size)
{
	const char *word = actions[at].word;

	if (o->select.catalog != NULL && o->action != ARCHIVE_USAGE &&
	    (o->action != ARCHIVE_REINDEX || o->from == NULL))
		return FAILURE(err, err_size, "archive %s is about the files "
		    "of a folder, --archive DIR; --catalog goes with du and "
		    "reindex --from s3://BUCKET/PREFIX", word);
	if (o->settings != NULL && o->from == NULL)
		return FAILURE(err, err_size, "--store goes with reindex "
		    "--from s3://BUCKET/PREFIX");
	if (o->full && o->from != NULL)
		return FAILURE(err, err_size, "--full reads files, and --from "
		    "takes descriptions: not both");
	if (o->full && o->action != ARCHIVE_REINDEX)
		return FAILURE(err, err_size, "--full means nothing to "
		    "archive %s", word);
	if (o->json && o->action != ARCHIVE_USAGE)
		return FAILURE(err, err_size, "--json means nothing to "
		    "archive %s", word);
	if (o->out != NULL && o->action != ARCHIVE_EXPORT)
		return FAILURE(err, err_size, "--out means nothing to "
		    "archive %s", word);
	if (o->action == ARCHIVE_EXPORT &&
	    (o->out == NULL || o->out[0] == '\0'))
		return FAILURE(err, err_size, "say where to: archive export "
		    "--out DIR");
	if (actions[at].selects && !selection_is_set(&o->select))
		return FAILURE(err, err_size, "archive %s wants to know which "
		    "segments: their paths, or --machine, --from and others; "
		    "see tributary archive --help", word);
	if (!actions[at].selects && selection_is_set(&o->select))
		return FAILURE(err, err_size, "archive %s is about the whole "
		    "archive: it takes no segments", word);
	return 0;
}

enum flags_verdict
archive_options_parse(struct archive_options *out, int argc, char **argv,
    int64_t now_ns, char *err, size_t err_size)
{
	struct flags_words words = { .argc = argc, .argv = argv };
	struct archive_options o = { .full = false };
	enum flags_verdict verdict;
	size_t at;

	verdict = flags_parse(&archive_options_flags, &o, &words, err,
	    err_size);
	if (verdict != FLAGS_RUN)
		return verdict;
	if (flag_words_find(&FLAG_WORDS("archive", actions),
	    words.argc == 0 ? NULL : words.argv[0], &at, err, err_size) < 0)
		return FLAGS_BAD;
	o.action = actions[at].action;
	o.select.paths = (const char *const *)words.argv + 1;
	o.select.n_paths = (size_t)words.argc - 1;
	if (take_from(&o, err, err_size) < 0 ||
	    selection_settle(&o.select, now_ns, err, err_size) < 0 ||
	    check(&o, at, err, err_size) < 0)
		return FLAGS_BAD;
	*out = o;
	return FLAGS_RUN;
}
