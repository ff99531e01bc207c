#include "client/record/options.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/record/config_from_names.h"
#include "transport/base/size_duration.h"
#include "transport/base/unknown_flag.h"
#include "transport/connect/dial_flags.h"

enum long_only {
	OPT_TXT = 1000,
	OPT_ALL_MACHINES,
	OPT_MACHINE,
	OPT_NO_CLOBBER,
	OPT_NOTIFY_FD,
	OPT_CONNECT,
	OPT_VERSION,
	OPT_DETACH,
	OPT_ATTACH,
	OPT_IS_DETACHED,
	OPT_STOP,
	OPT_CLONE,
	OPT_CLONE_BY_NAME,
	OPT_CLONE_FOR_BUGREPORT,
	OPT_QUERY,
	OPT_QUERY_RAW,
	OPT_LONG,
	OPT_ADD_ATTRIBUTE,
	OPT_NO_GUARDRAILS,
	OPT_RESET_GUARDRAILS,
	OPT_ALERT_ID,
	OPT_CONFIG_ID,
	OPT_CONFIG_UID,
	OPT_SUBSCRIPTION_ID,
	OPT_UPLOAD,
	OPT_DROPBOX,
	OPT_BUGREPORT,
	OPT_BUGREPORT_ALL,
};

static const char short_options[] = ":hc:o:dDt:b:s:a:q";

static const struct option long_options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "config", required_argument, NULL, 'c' },
	{ "txt", no_argument, NULL, OPT_TXT },
	{ "out", required_argument, NULL, 'o' },
	{ "no-clobber", no_argument, NULL, OPT_NO_CLOBBER },
	{ "time", required_argument, NULL, 't' },
	{ "buffer", required_argument, NULL, 'b' },
	{ "size", required_argument, NULL, 's' },
	{ "all-machines", no_argument, NULL, OPT_ALL_MACHINES },
	{ "machine", required_argument, NULL, OPT_MACHINE },
	{ "background", no_argument, NULL, 'd' },
	{ "background-wait", no_argument, NULL, 'D' },
	{ "notify-fd", required_argument, NULL, OPT_NOTIFY_FD },
	{ "connect", required_argument, NULL, OPT_CONNECT },
	DIAL_FLAGS_LONG,
	{ "quiet", no_argument, NULL, 'q' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "detach", required_argument, NULL, OPT_DETACH },
	{ "attach", required_argument, NULL, OPT_ATTACH },
	{ "is_detached", required_argument, NULL, OPT_IS_DETACHED },
	{ "is-detached", required_argument, NULL, OPT_IS_DETACHED },
	{ "stop", no_argument, NULL, OPT_STOP },
	{ "clone", required_argument, NULL, OPT_CLONE },
	{ "clone-by-name", required_argument, NULL, OPT_CLONE_BY_NAME },
	{ "clone-for-bugreport", no_argument, NULL, OPT_CLONE_FOR_BUGREPORT },
	{ "query", no_argument, NULL, OPT_QUERY },
	{ "query-raw", no_argument, NULL, OPT_QUERY_RAW },
	{ "long", no_argument, NULL, OPT_LONG },
	{ "add-attribute", required_argument, NULL, OPT_ADD_ATTRIBUTE },
	/* What Android's tools say. */
	{ "no-guardrails", no_argument, NULL, OPT_NO_GUARDRAILS },
	{ "reset-guardrails", no_argument, NULL, OPT_RESET_GUARDRAILS },
	{ "alert-id", required_argument, NULL, OPT_ALERT_ID },
	{ "config-id", required_argument, NULL, OPT_CONFIG_ID },
	{ "config-uid", required_argument, NULL, OPT_CONFIG_UID },
	{ "subscription-id", required_argument, NULL, OPT_SUBSCRIPTION_ID },
	{ "upload", no_argument, NULL, OPT_UPLOAD },
	{ "dropbox", required_argument, NULL, OPT_DROPBOX },
	{ "app", required_argument, NULL, 'a' },
	{ "save-for-bugreport", no_argument, NULL, OPT_BUGREPORT },
	{ "save-all-for-bugreport", no_argument, NULL, OPT_BUGREPORT_ALL },
	{ NULL, 0, NULL, 0 },
};

static int
parse_fd(const char *text, int *fd, char *err, size_t err_size)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (end == text || *end != '\0' || errno != 0 || v < 0 || v > INT_MAX ||
	    fcntl((int)v, F_GETFD) < 0) {
		snprintf(err, err_size, "--notify-fd %.40s is not the number of "
		    "an open descriptor", text);
		return -1;
	}
	*fd = (int)v;
	return 0;
}

static int
add_machine(struct machine_filter *m, const char *name, char *err,
    size_t err_size)
{
	if (name[0] == '\0') {
		snprintf(err, err_size, "the name of a machine (--machine) is "
		    "empty");
		return -1;
	}
	if (m->n_names == MACHINE_FILTER_MAX) {
		snprintf(err, err_size, "--machine is given more than %u times; "
		    "a pattern (\"robot-*\") stands for many",
		    MACHINE_FILTER_MAX);
		return -1;
	}
	m->names[m->n_names++] = name;
	return 0;
}

/* A mode that excludes the others; key may be NULL. */
static int
set_mode(struct record_options *o, enum record_mode mode, const char *key,
    char *err, size_t err_size)
{
	if (o->mode != RECORD_MODE_RECORD && (o->mode != mode || key != NULL)) {
		snprintf(err, err_size, "choose one of --detach, --attach, "
		    "--is_detached, --clone, --clone-by-name and --query");
		return -1;
	}
	if (key != NULL && key[0] == '\0') {
		snprintf(err, err_size, "the key or name is empty");
		return -1;
	}
	o->mode = mode;
	return 0;
}

static int
set_key(struct record_options *o, enum record_mode mode, const char *key,
    char *err, size_t err_size)
{
	o->key = key;
	return set_mode(o, mode, key, err, err_size);
}

static int
set_clone(struct record_options *o, const char *text, char *err,
    size_t err_size)
{
	char *end;

	errno = 0;
	o->clone_id = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0) {
		snprintf(err, err_size, "--clone wants the number of a session "
		    "(see tributary record --query), not \"%.60s\"; "
		    "--clone-by-name takes a name", text);
		return -1;
	}
	return set_mode(o, RECORD_MODE_CLONE, text, err, err_size);
}

/* Why a flag of Android's tools is refused; NULL: it is none. */
static const char *
android_only(int flag)
{
	switch (flag) {
	case OPT_UPLOAD:
	case OPT_DROPBOX:
		return "--upload and --dropbox hand traces to Android, and "
		       "there only: name a file with -o";
	case 'a':
		return "-a (--app) is for Android's atrace: give a config with "
		       "ftrace_config { atrace_apps: \"...\" }";
	case OPT_BUGREPORT:
	case OPT_BUGREPORT_ALL:
		return "--save-for-bugreport and --save-all-for-bugreport "
		       "write into a folder that only Android has: save a copy "
		       "with --clone ID --clone-for-bugreport -o FILE";
	default:
		return NULL;
	}
}

/* One flag without a value. */
static int
plain_flag(struct record_options *o, int flag, char *err, size_t err_size)
{
	switch (flag) {
	case 'D':
		o->background_wait = true;
		o->background = true;
		return 0;
	case 'd':
		o->background = true;
		return 0;
	case 'q':
		o->quiet = true;
		return 0;
	case OPT_ALL_MACHINES:
		o->machines.all = true;
		return 0;
	case OPT_NO_CLOBBER:
		o->no_clobber = true;
		return 0;
	case OPT_STOP:
		o->stop = true;
		return 0;
	case OPT_CLONE_FOR_BUGREPORT:
		o->clone_for_bugreport = true;
		return 0;
	case OPT_LONG:
		o->query_long = true;
		return 0;
	case OPT_QUERY_RAW:
	case OPT_QUERY:
		o->query_raw |= flag == OPT_QUERY_RAW;
		return set_mode(o, RECORD_MODE_QUERY, NULL, err, err_size);
	default:
		return 0; /* --txt: told apart; --no-guardrails: there are none */
	}
}

/* One flag that takes a value; 0, or -1 and a sentence. */
static int
value_flag(struct record_options *o, int flag, const char *value, char *err,
    size_t err_size)
{
	switch (flag) {
	case 'c':
		o->config = value;
		return 0;
	case 'o':
		o->out = value;
		return 0;
	case OPT_CONNECT:
		o->connect = value;
		return 0;
	case OPT_MACHINE:
		return add_machine(&o->machines, value, err, err_size);
	case 't':
		return size_duration_parse_ms(value, &o->duration_ms, err,
		    err_size);
	case 'b':
		return size_duration_parse_bytes(value, &o->buffer_bytes, err,
		    err_size);
	case 's':
		return size_duration_parse_bytes(value, &o->max_file_bytes,
		    err, err_size);
	case OPT_DETACH:
		return set_key(o, RECORD_MODE_DETACH, value, err, err_size);
	case OPT_ATTACH:
		return set_key(o, RECORD_MODE_ATTACH, value, err, err_size);
	case OPT_IS_DETACHED:
		return set_key(o, RECORD_MODE_IS_DETACHED, value, err,
		    err_size);
	case OPT_CLONE:
		return set_clone(o, value, err, err_size);
	case OPT_CLONE_BY_NAME:
		o->clone_name = value;
		return set_mode(o, RECORD_MODE_CLONE, value, err, err_size);
	case OPT_ADD_ATTRIBUTE:
		return record_additions_attribute(&o->additions, value, err,
		    err_size);
	case OPT_ALERT_ID:
		return record_additions_statsd(&o->additions, STATSD_ALERT_ID,
		    "--alert-id", value, err, err_size);
	case OPT_CONFIG_ID:
		return record_additions_statsd(&o->additions, STATSD_CONFIG_ID,
		    "--config-id", value, err, err_size);
	case OPT_CONFIG_UID:
		return record_additions_statsd(&o->additions,
		    STATSD_CONFIG_UID, "--config-uid", value, err, err_size);
	case OPT_SUBSCRIPTION_ID:
		return record_additions_statsd(&o->additions,
		    STATSD_SUBSCRIPTION_ID, "--subscription-id", value, err,
		    err_size);
	default:
		return parse_fd(value, &o->notify_fd, err, err_size);
	}
}

/* Whether the flags fit the mode; NULL: they do. */
static const char *
wrong_for_mode(const struct record_options *o, bool light)
{
	bool config = o->config != NULL || light || o->n_names > 0 ||
	    o->machines.n_names > 0 || o->machines.all ||
	    record_additions_any(&o->additions);

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
			"leave out -c, names and what goes with them";
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
		"-c, names and what goes with them";
}

/* What can be said without looking at the config. */
static int
check(const struct record_options *o, bool light, char *err, size_t err_size)
{
	const char *wrong = wrong_for_mode(o, light);
	bool starts = o->mode == RECORD_MODE_RECORD ||
	    o->mode == RECORD_MODE_DETACH;

	if (wrong != NULL)
		; /* said already */
	else if (starts && o->config != NULL && (light || o->n_names > 0))
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
	snprintf(err, err_size, "%s", wrong);
	return -1;
}

static void
unknown(char **argv, char *err, size_t err_size)
{
	if (optopt > 0 && optopt < 128)
		snprintf(err, err_size, "there is no flag -%c; see tributary "
		    "record --help", optopt);
	else
		unknown_flag(argv[optind - 1], long_options,
		    "see tributary record --help", err, err_size);
}

/* All flags; RECORD_OPTIONS_RUN: go on. */
static enum record_options_verdict
parse_flags(struct record_options *o, int argc, char **argv, bool *light,
    char *err, size_t err_size)
{
	const char *why;
	int flag;

	opterr = 0;
	optind = 0; /* anew: glibc keeps state between calls */
	while ((flag = getopt_long(argc, argv, short_options, long_options,
	    NULL)) != -1) {
		if (flag == 'h')
			return RECORD_OPTIONS_HELP;
		if (flag == OPT_VERSION)
			return RECORD_OPTIONS_VERSION;
		if (flag == ':') {
			snprintf(err, err_size, "%s wants a value",
			    argv[optind - 1]);
			return RECORD_OPTIONS_BAD;
		}
		if (flag == '?') {
			unknown(argv, err, err_size);
			return RECORD_OPTIONS_BAD;
		}
		if (flag == OPT_RESET_GUARDRAILS) {
			snprintf(err, err_size, "there are no guardrails to "
			    "reset");
			return RECORD_OPTIONS_NOTHING;
		}
		if ((why = android_only(flag)) != NULL) {
			snprintf(err, err_size, "%s", why);
			return RECORD_OPTIONS_BAD;
		}
		if (dial_flags_take(&o->how, flag, optarg))
			continue;
		*light |= flag == 't' || flag == 'b' || flag == 's';
		if ((optarg == NULL ? plain_flag(o, flag, err, err_size) :
		    value_flag(o, flag, optarg, err, err_size)) < 0)
			return RECORD_OPTIONS_BAD;
	}
	return RECORD_OPTIONS_RUN;
}

enum record_options_verdict
record_options_parse(struct record_options *o, int argc, char **argv,
    char *err, size_t err_size)
{
	struct record_options parsed = {
		.duration_ms = CONFIG_FROM_NAMES_DURATION_MS,
		.buffer_bytes = CONFIG_FROM_NAMES_BUFFER_BYTES,
		.notify_fd = -1,
		.how.service = "consumer",
	};
	enum record_options_verdict verdict;
	bool light = false;

	verdict = parse_flags(&parsed, argc, argv, &light, err, err_size);
	if (verdict != RECORD_OPTIONS_RUN)
		return verdict;
	parsed.names = (const char *const *)argv + optind;
	parsed.n_names = (size_t)(argc - optind);
	if (check(&parsed, light, err, err_size) < 0)
		return RECORD_OPTIONS_BAD;
	*o = parsed;
	return RECORD_OPTIONS_RUN;
}
