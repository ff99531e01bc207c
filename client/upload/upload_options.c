#include "client/upload/upload_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/base/failure.h"

static const char help_text[] =
"Usage: tributary-upload --config FILE [FLAG]...\n"
"       tributary-upload --status [--json] --archive DIR\n"
"       tributary-upload [FLAG]... [--sha256 HEX] --get s3://BUCKET/KEY FILE\n"
"       tributary-upload [FLAG]... --descriptions\n"
"\n"
"Sends the finished segments of an archive to S3-compatible object storage, each\n"
"once and whole, with a small description (.json) beside it, which comes last: a\n"
"segment without one does not count.  No object is ever replaced.\n"
"\n"
"  --config FILE      read settings (protobuf text, message UploadSettings)\n"
"  --archive DIR      the folder of the archive\n"
"  --url URL          where segments go: s3://bucket/prefix\n"
"  --endpoint URL     the store: https://host[:port].  Default: Amazon's\n"
"  --region NAME      its region.  Default: us-east-1\n"
"  --credentials-file FILE\n"
"                     aws_access_key_id and aws_secret_access_key.  Default: as\n"
"                     AWS_ACCESS_KEY_ID and so on of the environment\n"
"  --catalog URL      a catalogue that collectors share: postgresql://...\n"
"  --once             send what the store has not got, and end\n"
"  --check-config     only check the settings: print OK, or the fault and exit\n"
"                     with status 1\n"
"  --status           show what was sent and what waits\n"
"  --json             with --status: for programs\n"
"  --get URL          write this object to the file that is named behind it, or\n"
"                     to standard output (-), which then has to be a file, too\n"
"  --sha256 HEX       with --get: fail unless the object has this checksum\n"
"  --descriptions     print the descriptions below --url, a line each\n"
"  --log-level LEVEL  error, warn, info or debug.  Default: info\n"
"  --version          print the version\n"
"  --help             print this\n"
"\n"
"SIGHUP reads the credentials again and tries at once what waits for its turn.\n"
"SIGTERM and SIGINT end it; a segment under way is gone on with at the next start.\n"
"It speaks with systemd (NOTIFY_SOCKET).\n"
"\n"
"Exit status: 0 done or ended as asked; 1 could not start, --once: not all could\n"
"be sent, --get: there is no such object, --status: it does not run; 2 wrong\n"
"usage.\n";

#define AT(member) .at = offsetof(struct upload_options, member)

static const struct flag table[] = {
	{ "config", FLAG_TEXT, AT(config) },
	{ "archive", FLAG_TEXT, AT(archive_dir) },
	{ "url", FLAG_TEXT, AT(url) },
	{ "endpoint", FLAG_TEXT, AT(endpoint) },
	{ "region", FLAG_TEXT, AT(region) },
	{ "credentials-file", FLAG_TEXT, AT(credentials_file) },
	{ "catalog", FLAG_TEXT, AT(catalog) },
	{ "once", FLAG_CHOICE, AT(command), .id = UPLOAD_ONCE },
	{ "check-config", FLAG_CHOICE, AT(command), .id = UPLOAD_CHECK },
	{ "status", FLAG_CHOICE, AT(command), .id = UPLOAD_STATUS },
	{ "descriptions", FLAG_CHOICE, AT(command),
	    .id = UPLOAD_DESCRIPTIONS },
	{ "get", FLAG_TEXT, AT(get) },
	{ "sha256", FLAG_TEXT, AT(sha256) },
	{ "json", FLAG_BOOL, AT(json) },
	{ "log-level", FLAG_TEXT, AT(log_level) },
	{ "version", .kind = FLAG_VERSION },
	{ "help", .kind = FLAG_HELP },
	{ .name = NULL },
};

const struct flags upload_flags = {
	.table = table,
	.speaker = "tributary-upload",
	.help_is_at = "see tributary-upload --help",
	.help = help_text,
	.version = "tributary-upload " TRIBUTARY_VERSION,
	.bad_status = 2,
};

static enum flags_verdict
take_words(struct upload_options *o, const struct flags_words *w, char *err,
    size_t err_size)
{
	if (o->get != NULL && w->argc == 1 && o->command == UPLOAD_SERVE) {
		o->command = UPLOAD_GET;
		o->file = w->argv[0];
		return FLAGS_RUN;
	}
	if (o->get != NULL && w->argc != 1)
		return FAILURE(err, err_size, "--get takes an object and one "
		    "file: --get s3://bucket/key FILE");
	if (o->get != NULL)
		return FAILURE(err, err_size, "--get is a thing to do by "
		    "itself: leave out the other one");
	if (w->argc > 0)
		return FAILURE(err, err_size, "\"%s\": it takes flags alone; "
		    "the folder is --archive %s", w->argv[0], w->argv[0]);
	if (o->json && o->command != UPLOAD_STATUS)
		return FAILURE(err, err_size, "--json goes with --status");
	if (o->sha256 != NULL)
		return FAILURE(err, err_size, "--sha256 goes with --get");
	return FLAGS_RUN;
}

enum flags_verdict
upload_options_parse(struct upload_options *o, int argc, char **argv,
    char *err, size_t err_size)
{
	struct flags_words words = { .argc = argc, .argv = argv };
	enum flags_verdict verdict;

	*o = (struct upload_options){ .command = UPLOAD_SERVE };
	verdict = flags_parse(&upload_flags, o, &words, err, err_size);
	if (verdict != FLAGS_RUN)
		return verdict;
	if (take_words(o, &words, err, err_size) != FLAGS_RUN)
		return FLAGS_BAD;
	if (o->config == NULL && o->url == NULL &&
	    o->command != UPLOAD_STATUS && o->command != UPLOAD_GET)
		return FAILURE(err, err_size, "where to? Give settings with "
		    "--config, or --archive and --url");
	return FLAGS_RUN;
}

/* The bucket of an object's URL is all that its place has to know. */
static int
take_bucket(struct upload_settings *s, const char *url)
{
	char *bucket;
	size_t len = strlen("s3://");
	int rc;

	if (strncmp(url, "s3://", len) == 0)
		len += strcspn(url + len, "/");
	if ((bucket = strndup(url, len)) == NULL)
		return -1;
	rc = upload_settings_set(&s->url, bucket);
	free(bucket);
	return rc;
}

static int
override(struct upload_settings *s, const struct upload_options *o, char *err,
    size_t err_size)
{
	const struct {
		char **slot;
		const char *value;
		const char *flag;
	} flags[] = {
		{ &s->archive_dir, o->archive_dir, "--archive" },
		{ &s->url, o->url, "--url" },
		{ &s->endpoint, o->endpoint, "--endpoint" },
		{ &s->region, o->region, "--region" },
		{ &s->credentials_file, o->credentials_file,
		    "--credentials-file" },
		{ &s->catalog, o->catalog, "--catalog" },
	};
	size_t i;

	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (flags[i].value != NULL &&
		    upload_settings_set(flags[i].slot, flags[i].value) != 0)
			return FAILURE(err, err_size, "%s: it is empty",
			    flags[i].flag);
	if (o->get != NULL && take_bucket(s, o->get) != 0)
		return FAILURE(err, err_size, "--get: it is empty");
	if (o->log_level == NULL ||
	    log_level_parse(o->log_level, &s->log_level) == 0)
		return 0;
	return FAILURE(err, err_size,
	    "--log-level: must be error, warn, info or debug");
}

static bool
needs_archive(const struct upload_options *o)
{
	switch (o->command) {
	case UPLOAD_SERVE:
	case UPLOAD_ONCE:
	case UPLOAD_CHECK:
	case UPLOAD_STATUS:
		return true;
	case UPLOAD_GET:
	case UPLOAD_DESCRIPTIONS:
		return false;
	}
	return true;
}

static int
apply(const struct upload_options *o, struct upload_settings *s, char *err,
    size_t err_size)
{
	if ((o->config != NULL &&
		upload_settings_read(s, o->config, err, err_size) != 0) ||
	    override(s, o, err, err_size) != 0)
		return -1;
	if (s->archive_dir == NULL && needs_archive(o))
		return FAILURE(err, err_size, "which archive? Set archive_dir "
		    "in the settings, or give --archive");
	if (o->command == UPLOAD_STATUS)
		return 0;
	return upload_settings_check(s, err, err_size);
}

int
upload_options_settings(const struct upload_options *o,
    struct upload_settings *s, char *err, size_t err_size)
{
	upload_settings_init(s);
	if (apply(o, s, err, err_size) == 0)
		return 0;
	upload_settings_done(s);
	return -1;
}
