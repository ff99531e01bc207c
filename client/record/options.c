#include "client/record/options.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/record/config_from_names.h"
#include "transport/base/failure.h"
#include "transport/base/size_duration.h"
#include "transport/connect/dial_flags.h"

static int
take_fd(void *options, const struct flag *flag, const char *text, char *err,
    size_t err_size)
{
	struct record_options *o = options;
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (end == text || *end != '\0' || errno != 0 || v < 0 || v > INT_MAX ||
	    fcntl((int)v, F_GETFD) < 0)
		return FAILURE(err, err_size, "--notify-fd %.40s is not the "
		    "number of an open descriptor", text);
	o->notify_fd = (int)v;
	return 0;
}

static int
take_machine(void *options, const struct flag *flag, const char *name,
    char *err, size_t err_size)
{
	struct machine_filter *m = &((struct record_options *)options)->machines;

	if (name[0] == '\0')
		return FAILURE(err, err_size, "the name of a machine "
		    "(--machine) is empty");
	if (m->n_names == MACHINE_FILTER_MAX)
		return FAILURE(err, err_size, "--machine is given more than %u "
		    "times; a pattern (\"robot-*\") stands for many",
		    MACHINE_FILTER_MAX);
	m->names[m->n_names++] = name;
	return 0;
}

/* A mode that excludes the others; key may be NULL. */
static int
set_mode(struct record_options *o, enum record_mode mode, const char *key,
    char *err, size_t err_size)
{
	if (o->mode != RECORD_MODE_RECORD && (o->mode != mode || key != NULL))
		return FAILURE(err, err_size, "choose one of --detach, "
		    "--attach, --is_detached, --clone, --clone-by-name and "
		    "--query");
	if (key != NULL && key[0] == '\0')
		return FAILURE(err, err_size, "the key or name is empty");
	o->mode = mode;
	return 0;
}

/* --detach, --attach and --is_detached; id: the mode. */
static int
take_key(void *options, const struct flag *flag, const char *key, char *err,
    size_t err_size)
{
	struct record_options *o = options;

	o->key = key;
	return set_mode(o, (enum record_mode)flag->id, key, err, err_size);
}

static int
take_clone(void *options, const struct flag *flag, const char *text, char *err,
    size_t err_size)
{
	struct record_options *o = options;
	char *end;

	errno = 0;
	o->clone_id = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0)
		return FAILURE(err, err_size, "--clone wants the number of a "
		    "session (see tributary record --query), not \"%.60s\"; "
		    "--clone-by-name takes a name", text);
	return set_mode(o, RECORD_MODE_CLONE, text, err, err_size);
}

static int
take_clone_name(void *options, const struct flag *flag, const char *name,
    char *err, size_t err_size)
{
	struct record_options *o = options;

	o->clone_name = name;
	return set_mode(o, RECORD_MODE_CLONE, name, err, err_size);
}

/* id: whether the answer is wanted as bytes. */
static int
take_query(void *options, const struct flag *flag, const char *value, char *err,
    size_t err_size)
{
	struct record_options *o = options;

	o->query_raw |= flag->id != 0;
	return set_mode(o, RECORD_MODE_QUERY, NULL, err, err_size);
}

static int
take_background_wait(void *options, const struct flag *flag, const char *value,
    char *err, size_t err_size)
{
	struct record_options *o = options;

	o->background_wait = true;
	o->background = true;
	return 0;
}

/* -t, -b and -s. */
static int
take_light(void *options, const struct flag *flag, const char *value, char *err,
    size_t err_size)
{
	struct record_options *o = options;

	o->light = true;
	o->has_duration |= flag->letter == 't';
	if (flag->letter == 't')
		return size_duration_parse_ms(value, &o->duration_ms, err,
		    err_size);
	return size_duration_parse_bytes(value, flag->letter == 'b' ?
	    &o->buffer_bytes : &o->max_file_bytes, err, err_size);
}

static int
take_attribute(void *options, const struct flag *flag, const char *value,
    char *err, size_t err_size)
{
	struct record_options *o = options;

	return record_additions_attribute(&o->additions, value, err, err_size);
}

/* id: an enum of StatsdMetadata's fields. */
static int
take_statsd(void *options, const struct flag *flag, const char *value,
    char *err, size_t err_size)
{
	struct record_options *o = options;
	char name[32];

	snprintf(name, sizeof(name), "--%s", flag->name);
	return record_additions_statsd(&o->additions, flag->id, name, value,
	    err, err_size);
}

static int
refuse_guardrails(void *options, const struct flag *flag, const char *value,
    char *err, size_t err_size)
{
	snprintf(err, err_size, "there are no guardrails to reset");
	return FLAGS_NOTHING;
}

/* --txt: the form of a config is told apart; --no-guardrails: there are none. */
static int
ignore(void *options, const struct flag *flag, const char *value, char *err,
    size_t err_size)
{
	return 0;
}

enum android_only { HANDS_TO_ANDROID, APPS, BUGREPORTS };

/* Flags that mean something on Android only, by id. */
static int
refuse_android(void *options, const struct flag *flag, const char *value,
    char *err, size_t err_size)
{
	static const char *const why[] = {
		[HANDS_TO_ANDROID] = "--upload and --dropbox hand traces to "
		    "Android, and there only: name a file with -o",
		[APPS] = "-a (--app) is for Android's atrace: give a config "
		    "with ftrace_config { atrace_apps: \"...\" }",
		[BUGREPORTS] = "--save-for-bugreport and "
		    "--save-all-for-bugreport write into a folder that only "
		    "Android has: save a copy with --clone ID "
		    "--clone-for-bugreport -o FILE",
	};

	return FAILURE(err, err_size, "%s", why[flag->id]);
}

/* id: an enum segment_flag. */
static int
take_segment(void *options, const struct flag *flag, const char *value,
    char *err, size_t err_size)
{
	struct record_options *o = options;
	char why[400];

	if (segment_options_take(&o->segments, (enum segment_flag)flag->id,
	    value, why, sizeof(why)) == 0)
		return 0;
	return FAILURE(err, err_size, "--%s: %s", flag->name, why);
}

#define AT(member)    .at = offsetof(struct record_options, member)
#define KEY(mode)     FLAG_VALUE, .take = take_key, .id = mode
#define STATSD(what)  FLAG_VALUE, .take = take_statsd, .id = what
#define SEGMENT(what) FLAG_VALUE, .take = take_segment, .id = what
#define ANDROID(what) .take = refuse_android, .id = what

static const struct flag table[] = {
	{ "help", FLAG_HELP, .letter = 'h' },
	{ "config", FLAG_TEXT, .letter = 'c', AT(config) },
	{ "txt", FLAG_NOTE, .take = ignore },
	{ "out", FLAG_TEXT, .letter = 'o', AT(out) },
	{ "no-clobber", FLAG_BOOL, AT(no_clobber) },
	{ "time", FLAG_VALUE, .letter = 't', .take = take_light },
	{ "buffer", FLAG_VALUE, .letter = 'b', .take = take_light },
	{ "size", FLAG_VALUE, .letter = 's', .take = take_light },
	{ "rotate-every", SEGMENT(SEGMENT_EVERY) },
	{ "rotate-size", SEGMENT(SEGMENT_SIZE) },
	{ "split", SEGMENT(SEGMENT_SPLIT) },
	{ "pattern", SEGMENT(SEGMENT_PATTERN) },
	{ "on-segment", SEGMENT(SEGMENT_COMMAND) },
	{ "keep", SEGMENT(SEGMENT_KEEP) },
	{ "keep-for", SEGMENT(SEGMENT_KEEP_FOR) },
	{ "all-machines", FLAG_BOOL, AT(machines.all) },
	{ "machine", FLAG_VALUE, .take = take_machine },
	{ "background", FLAG_BOOL, .letter = 'd', AT(background) },
	{ "background-wait", FLAG_NOTE, .letter = 'D',
	    .take = take_background_wait },
	{ "notify-fd", FLAG_VALUE, .take = take_fd },
	{ "connect", FLAG_VALUE, .take = command_line_take_connect, AT(line) },
	{ "fleet", FLAG_TEXT, AT(line.fleet) },
	{ "allow-missing", FLAG_BOOL, AT(line.allow_missing) },
	DIAL_FLAGS(offsetof(struct record_options, line.how)),
	{ "quiet", FLAG_BOOL, .letter = 'q', AT(quiet) },
	{ "version", .kind = FLAG_VERSION },
	{ "detach", KEY(RECORD_MODE_DETACH) },
	{ "attach", KEY(RECORD_MODE_ATTACH) },
	{ "is_detached", KEY(RECORD_MODE_IS_DETACHED) },
	{ "is-detached", .kind = FLAG_ALIAS },
	{ "stop", FLAG_BOOL, AT(stop) },
	{ "clone", FLAG_VALUE, .take = take_clone },
	{ "clone-by-name", FLAG_VALUE, .take = take_clone_name },
	{ "clone-for-bugreport", FLAG_BOOL, AT(clone_for_bugreport) },
	{ "query", FLAG_NOTE, .take = take_query },
	{ "query-raw", FLAG_NOTE, .take = take_query, .id = true },
	{ "long", FLAG_BOOL, AT(query_long) },
	{ "add-attribute", FLAG_VALUE, .take = take_attribute },
	/* Flags of Android's tools. */
	{ "no-guardrails", FLAG_NOTE, .take = ignore },
	{ "reset-guardrails", FLAG_NOTE, .take = refuse_guardrails },
	{ "alert-id", STATSD(STATSD_ALERT_ID) },
	{ "config-id", STATSD(STATSD_CONFIG_ID) },
	{ "config-uid", STATSD(STATSD_CONFIG_UID) },
	{ "subscription-id", STATSD(STATSD_SUBSCRIPTION_ID) },
	{ "upload", FLAG_NOTE, ANDROID(HANDS_TO_ANDROID) },
	{ "dropbox", FLAG_VALUE, ANDROID(HANDS_TO_ANDROID) },
	{ "app", FLAG_VALUE, .letter = 'a', ANDROID(APPS) },
	{ "save-for-bugreport", FLAG_NOTE, ANDROID(BUGREPORTS) },
	{ "save-all-for-bugreport", FLAG_NOTE, ANDROID(BUGREPORTS) },
	{ .name = NULL },
};

const struct flags record_options_flags = {
	.table = table,
	.speaker = "tributary",
	.help_is_at = "see tributary record --help",
	.help = record_options_help,
	.version = "tributary " TRIBUTARY_VERSION,
	.bad_status = 1,
};

bool
record_options_fleet(const struct record_options *o)
{
	return o->line.fleet != NULL || o->line.n_connects > 1;
}

/* Whether the flags fit the mode; NULL: they do. */
static const char *
wrong_for_mode(const struct record_options *o)
{
	bool config = o->config != NULL || o->light || o->n_names > 0 ||
	    o->machines.n_names > 0 || o->machines.all ||
	    record_additions_any(&o->additions);

	if (o->mode != RECORD_MODE_RECORD && (segment_options_cut(&o->segments) ||
	    segment_options_care(&o->segments)))
		return "--rotate-every, --rotate-size, --split, --pattern, "
		       "--on-segment, --keep and --keep-for go with a recording "
		       "that this command starts and stays with";
	if (record_options_fleet(o) && o->mode != RECORD_MODE_RECORD)
		return "--fleet, and several --connect, go with a recording "
		       "that this command starts and stays with";
	if (record_options_fleet(o) && (o->background || o->notify_fd >= 0))
		return "a recording of several collectors stays in front: leave "
		       "out -d, -D and --notify-fd";
	if (o->stop && o->mode != RECORD_MODE_ATTACH)
		return "--stop ends a session that --attach comes back to: it "
		       "goes with --attach only";
	if (o->query_long && o->mode != RECORD_MODE_QUERY)
		return "--long goes with --query only";
	if (o->clone_for_bugreport && o->mode != RECORD_MODE_CLONE)
		return "--clone-for-bugreport goes with --clone or "
		       "--clone-by-name only";
	switch (o->mode) {
	case RECORD_MODE_RECORD:
		return NULL;
	case RECORD_MODE_DETACH:
		return !o->background ? NULL : "--detach leaves the session "
			"behind and ends: leave out -d and -D";
	case RECORD_MODE_CLONE:
		return !config ? NULL : "a copy has the config of its session: "
			"leave out -c, names and their flags";
	case RECORD_MODE_ATTACH:
		if (o->out != NULL)
			return "the file was given with --detach: leave out "
			       "-o";
		break;
	case RECORD_MODE_IS_DETACHED:
	case RECORD_MODE_QUERY:
		if (o->out != NULL || o->background)
			return "--query and --is_detached only ask: leave out "
			       "-o, -d and -D";
		break;
	}
	return !config ? NULL : "the session has a config already: leave out "
		"-c, names and their flags";
}

/* Refuses flags that no config makes right. */
static int
check(const struct record_options *o, char *err, size_t err_size)
{
	const char *wrong = wrong_for_mode(o);
	bool starts = o->mode == RECORD_MODE_RECORD ||
	    o->mode == RECORD_MODE_DETACH;

	if (wrong != NULL)
		; /* said already */
	else if (starts && o->config != NULL && (o->light || o->n_names > 0))
		wrong = "a config (-c) says itself what, how long and how "
			"much: give either it or names with -t, -b and -s";
	else if (starts && o->config == NULL && o->n_names == 0)
		wrong = "say what to record: a config (-c FILE), or names such "
			"as linux.sys_stats linux.process_stats track_event";
	else if (o->background && o->out != NULL && strcmp(o->out, "-") == 0)
		wrong = "-d and -D print a process id to standard output, "
			"which is where -o - puts the trace: choose one";
	else if (o->machines.all && o->machines.n_names > 0)
		wrong = "--all-machines records them all: leave out --machine";
	else if (o->out != NULL && o->out[0] == '\0')
		wrong = "the name of the output file (-o) is empty";
	else if (o->out != NULL && strcmp(o->out, "-") == 0 &&
	    isatty(STDOUT_FILENO))
		wrong = "a trace is binary and standard output is a terminal: "
			"name a file (-o FILE) or redirect";
	else if (o->mode == RECORD_MODE_CLONE && o->out == NULL)
		wrong = "say where the copy goes: -o FILE, or -o - for "
			"standard output";
	else if (o->mode == RECORD_MODE_QUERY && o->query_raw &&
	    isatty(STDOUT_FILENO))
		wrong = "--query-raw prints bytes and standard output is a "
			"terminal: redirect it, or use --query";
	if (wrong == NULL)
		return 0;
	return FAILURE(err, err_size, "%s", wrong);
}

enum flags_verdict
record_options_parse(struct record_options *o, int argc, char **argv,
    char *err, size_t err_size)
{
	struct record_options parsed = {
		.duration_ms = CONFIG_FROM_NAMES_DURATION_MS,
		.buffer_bytes = CONFIG_FROM_NAMES_BUFFER_BYTES,
		.notify_fd = -1,
		.line.how.service = "consumer",
	};
	struct flags_words words = { .argc = argc, .argv = argv };
	enum flags_verdict verdict;

	verdict = flags_parse(&record_options_flags, &parsed, &words, err,
	    err_size);
	if (verdict != FLAGS_RUN)
		return verdict;
	if (segment_options_cut(&parsed.segments) && !parsed.has_duration)
		parsed.duration_ms = 0; /* segments are for recordings without end */
	parsed.names = (const char *const *)words.argv;
	parsed.n_names = (size_t)words.argc;
	if (check(&parsed, err, err_size) < 0)
		return FLAGS_BAD;
	*o = parsed;
	return FLAGS_RUN;
}
