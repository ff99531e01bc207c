#include "client/record/run.h"

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "client/orders/trigger.h"
#include "client/record/config.h"
#include "client/record/file.h"
#include "client/record/fleet.h"
#include "client/record/live_line.h"
#include "client/record/notify.h"
#include "client/record/options.h"
#include "client/record/segments.h"
#include "client/record/session.h"
#include "client/record/session_snapshots.h"
#include "client/record/size_cuts.h"
#include "client/trace/trace_report.h"
#include "client/trace/trace_summary.h"
#include "client/tracing/consumer/consumer.h"
#include "protos/config_support.h"
#include "protos/plain_text.h"
#include "protos/trace_config.pb-c.h"
#include "transport/base/human_numbers.h"
#include "transport/connect/dial_flags.h"
#include "transport/loop/loop.h"
#include "transport/segment/segment_path.h"
#include "transport/socket/addr.h"
#include "transport/wire/frame.h"

#define ERROR_BYTES 2048
/* The rest of the frame that carries it. */
#define CONFIG_MAX_BYTES (FRAME_PAYLOAD_MAX - 256u)

/* Beside enum record_status: --attach found nothing. */
#define STATUS_NOT_DETACHED 2

/* All that a run owns; filled step by step, emptied by run_done(). */
struct run {
	const struct record_options *options; /* borrowed */
	struct record_config *config; /* NULL: that of an existing session */
	struct record_file *file; /* NULL with an output_path, or attached */
	struct record_live *live;
	struct record_notify notify;
	struct trace_summary *summary;
	struct record_snapshots *snapshots; /* NULL: not asked for */
	struct size_cuts *size_cuts;        /* likewise */
	struct loop *loop;
	struct record_session *session;
	struct consumer_clone clone;
	struct addr addr;
	uint64_t delay_ms;
	struct record_result result;
};

static void
run_done(struct run *r)
{
	record_session_free(r->session);
	record_snapshots_free(r->snapshots);
	size_cuts_free(r->size_cuts);
	record_live_free(r->live);
	record_file_free(r->file);
	trace_summary_free(r->summary);
	record_config_free(r->config);
	if (r->loop != NULL)
		loop_free(r->loop);
}

/* Prints an error from before there is a record_live.  Returns -1. */
static int
refuse(const char *text)
{
	fputs("tributary: ", stderr);
	plain_text_put(stderr, text);
	fputc('\n', stderr);
	return -1;
}

static bool
has_config(const struct record_options *o)
{
	return o->mode == RECORD_MODE_RECORD || o->mode == RECORD_MODE_DETACH;
}

static bool
activates_triggers(const struct run *r)
{
	return r->config != NULL &&
	    record_config_message(r->config)->n_activate_triggers > 0;
}

/* Whether this command splits the trace into segments. */
static bool
makes_segments(const struct run *r)
{
	return r->options->mode == RECORD_MODE_RECORD && r->config != NULL &&
	    record_config_makes_segments(r->config);
}

/* As contradiction(), for segments. */
static const char *
contradiction_of_segments(const struct run *r)
{
	const char *out = r->options->out;

	if (!makes_segments(r))
		return !segment_options_care(&r->options->segments) ? NULL :
			"--on-segment, --keep and --keep-for are for segments "
			"that this command writes: say when a new one begins, "
			"with --rotate-every, --rotate-size or --split machine, "
			"and take output_path out of the config";
	if (out != NULL && strcmp(out, "-") == 0)
		return "segments are many files: name a folder with -o";
	if (record_config_takes_snapshots(r->config))
		return "a session whose triggers cause snapshots has no trace "
		       "of its own to be cut: leave out the flags of segments";
	if (record_config_message(r->config)->max_file_size_bytes != 0)
		return "-s (max_file_size_bytes) limits one file, and segments "
		       "are many: --rotate-size says how large each gets, "
		       "--keep how much stays";
	return NULL;
}

/* Whether the config and the flags fit each other; NULL: they do. */
static const char *
contradiction(const struct run *r)
{
	bool snapshots = record_config_takes_snapshots(r->config);
	const char *out = r->options->out;

	if (activates_triggers(r))
		return r->options->line.connect == NULL &&
		    !record_options_fleet(r->options) ? NULL : "the config has "
			"activate_triggers, which go to the producer socket: "
			"use `tributary trigger` with --connect or --fleet, or set "
			"PERFETTO_PRODUCER_SOCK_NAME in place of --connect";
	if (contradiction_of_segments(r) != NULL)
		return contradiction_of_segments(r);
	if (r->options->mode == RECORD_MODE_DETACH &&
	    !record_config_service_writes(r->config))
		return "the collector has to write the trace of a session that "
		       "is left behind: set write_into_file: true in the "
		       "config (-s with names)";
	if (r->options->mode == RECORD_MODE_DETACH && snapshots)
		return "no program would save the snapshots after --detach";
	if (snapshots && out != NULL && strcmp(out, "-") == 0)
		return "each snapshot gets a file of its own: name one with "
		       "-o FILE, for FILE.0, FILE.1 and so on";
	return NULL;
}

static void
warn_cb(void *arg, const char *path, const char *text)
{
	fputs("tributary: warning: ", stderr);
	plain_text_put(stderr, text);
	fputc('\n', stderr);
}

static int
load_config(struct run *r)
{
	char err[ERROR_BYTES], size[HUMAN_TEXT_MAX];
	uint64_t random = 0;
	const uint8_t *bytes;
	const char *why;
	size_t len;

	if (!has_config(r->options))
		return 0;
	r->config = record_config_load(r->options, err, sizeof(err));
	if (r->config == NULL) {
		/* "FILE:3:5: error: ..." stands alone, as editors expect. */
		if (strchr(err, '\n') == NULL)
			return refuse(err);
		plain_text_put(stderr, err);
		fputc('\n', stderr);
		return -1;
	}
	if ((why = contradiction(r)) != NULL)
		return refuse(why);
	(void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
	if (record_config_start_delay(r->config, random, &r->delay_ms, err,
	    sizeof(err)) < 0)
		return refuse(err);
	bytes = record_config_bytes(r->config, &len);
	config_support_check(bytes, len, warn_cb, NULL);
	if (len <= CONFIG_MAX_BYTES)
		return 0;
	snprintf(err, sizeof(err), "the config has %s when it is encoded; "
	    "collectors take at most 128 KiB", human_bytes(size, len));
	return refuse(err);
}

/* The file that the collector creates by itself, or NULL. */
static const char *
remote_file(const struct run *r)
{
	if (r->config == NULL || !record_config_service_writes(r->config))
		return NULL;
	return record_config_output_path(r->config);
}

static int
open_segments(struct run *r)
{
	const struct segment_options *o = &r->options->segments;
	const Perfetto__Protos__SegmentConfig *c =
	    record_config_message(r->config)->tributary_segments;
	bool by_machine = c->split ==
	    PERFETTO__PROTOS__SEGMENT_CONFIG__SPLIT__BY_MACHINE;
	struct record_segments_setup setup = { .folder = r->options->out,
		.pattern = c->file_pattern != NULL ? c->file_pattern :
		    segment_path_default(by_machine),
		.recording = c->recording, .by_machine = by_machine,
		.compression = record_config_compression(r->config),
		.max_bytes = c->max_bytes, .command = o->command,
		.keep_bytes = o->keep_bytes, .keep_ms = o->keep_ms };
	struct record_segments *segments;
	char err[ERROR_BYTES];

	if (segment_path_check(setup.pattern, by_machine, err,
	    sizeof(err)) != 0)
		return refuse(err);
	segments = record_segments_open(&setup, err, sizeof(err));
	if (segments == NULL)
		return refuse(err);
	if ((r->file = record_file_of_segments(segments)) != NULL)
		return 0;
	record_segments_free(segments);
	return refuse("out of memory");
}

static int
open_file(struct run *r)
{
	const struct record_options *o = r->options;
	char err[ERROR_BYTES];

	if (o->mode == RECORD_MODE_ATTACH)
		return 0;
	if (remote_file(r) != NULL && o->out != NULL)
		return refuse("the config has an output_path, where the "
		    "collector writes: leave out -o, or take it out of the "
		    "config");
	if (remote_file(r) != NULL)
		return 0;
	if (o->out == NULL)
		return refuse("say where the trace goes: -o FILE, or -o - for "
		    "standard output");
	if (makes_segments(r))
		return open_segments(r);
	r->file = record_file_open(o->out, o->no_clobber, err, sizeof(err));
	return r->file == NULL ? refuse(err) : 0;
}

static int
find_collector(struct run *r)
{
	const char *text = r->options->line.connect;
	char err[ERROR_BYTES];

	if (text == NULL)
		text = addr_default_consumer();
	if (addr_parse(&r->addr, text, err, sizeof(err)) < 0 ||
	    dial_flags_check(&r->options->line.how, &r->addr, err, sizeof(err)) < 0)
		return refuse(err);
	return 0;
}

static void
stop_cb(void *arg)
{
	struct run *r = arg;

	record_session_stop(r->session);
}

static void
done_cb(void *arg, const struct record_result *result)
{
	struct run *r = arg;

	r->result = *result;
	loop_stop(r->loop);
}

static enum record_kind
kind_of(enum record_mode mode)
{
	switch (mode) {
	case RECORD_MODE_DETACH:
		return RECORD_DETACH;
	case RECORD_MODE_ATTACH:
		return RECORD_ATTACH;
	case RECORD_MODE_CLONE:
		return RECORD_CLONE;
	case RECORD_MODE_RECORD:
	case RECORD_MODE_IS_DETACHED:
	case RECORD_MODE_QUERY:
		break;
	}
	return RECORD_START;
}

static int
make_snapshots(struct run *r)
{
	struct record_snapshots_setup setup = {
		.loop = r->loop,
		.addr = &r->addr,
		.how = &r->options->line.how,
		.live = r->live,
		.out = r->options->out,
		.no_clobber = r->options->no_clobber,
	};

	if (r->config == NULL || !record_config_takes_snapshots(r->config) ||
	    r->options->out == NULL)
		return 0;
	r->snapshots = record_snapshots_new(&setup);
	return r->snapshots == NULL ? -1 : 0;
}

static int
make_size_cuts(struct run *r)
{
	const struct size_cuts_setup setup = { .loop = r->loop,
		.addr = &r->addr, .how = &r->options->line.how, .live = r->live,
		.session = r->config == NULL ? NULL :
		    record_config_message(r->config)->unique_session_name };

	if (!makes_segments(r) || record_config_message(r->config)
	    ->tributary_segments->max_bytes == 0)
		return 0;
	r->size_cuts = size_cuts_new(&setup);
	return r->size_cuts == NULL ? -1 : 0;
}

static int
make_parts(struct run *r)
{
	const struct record_options *o = r->options;

	signal(SIGPIPE, SIG_IGN); /* writes say EPIPE, */
	signal(SIGXFSZ, SIG_IGN); /* and EFBIG */
	r->live = record_live_new(o->quiet || o->background);
	r->summary = trace_summary_new();
	r->loop = loop_new();
	if (r->live == NULL || r->summary == NULL || r->loop == NULL ||
	    make_snapshots(r) < 0 || make_size_cuts(r) < 0)
		return refuse("out of memory");
	r->clone = (struct consumer_clone){
		.session_id = o->clone_id,
		.name = o->clone_name,
		.skip_trace_filter = o->clone_for_bugreport,
		.for_bugreport = o->clone_for_bugreport,
		.fd = -1,
	};
	return 0;
}

static int
start(struct run *r)
{
	struct record_session_setup setup = {
		.addr = &r->addr,
		.how = &r->options->line.how,
		.kind = kind_of(r->options->mode),
		.key = r->options->key,
		.stop_attached = r->options->stop,
		.clone = &r->clone,
		.config = r->config,
		.file = r->file,
		.notify = &r->notify,
		.delay_ms = r->delay_ms,
	};
	char err[ERROR_BYTES];

	if (make_parts(r) < 0)
		return -1;
	setup.loop = r->loop;
	setup.live = r->live;
	setup.summary = r->summary;
	setup.snapshots = r->snapshots;
	setup.size_cuts = r->size_cuts;
	r->session = record_session_new(&setup, done_cb, r, err, sizeof(err));
	if (r->session == NULL)
		return refuse(err);
	if (loop_on_signal(r->loop, SIGINT, stop_cb, r) < 0 ||
	    loop_on_signal(r->loop, SIGTERM, stop_cb, r) < 0 ||
	    loop_on_signal(r->loop, SIGHUP, stop_cb, r) < 0)
		return refuse("cannot watch for signals");
	return 0;
}

/* Names the file that a failed recording leaves behind. */
static void
say_what_is_left(struct run *r)
{
	const struct trace_totals *t = trace_summary_totals(r->summary);
	uint64_t kept = t->packets, kept_bytes = t->bytes;
	char packets[HUMAN_TEXT_MAX], bytes[HUMAN_TEXT_MAX];

	if (!r->result.began || r->file == NULL || r->snapshots != NULL)
		return;
	/* Packets that arrived need not be in the file: counts the file's. */
	record_file_kept(r->file, &kept, &kept_bytes);
	if (kept == 0)
		record_live_say(r->live, "nothing was recorded into %s",
		    record_file_name(r->file));
	else
		record_live_say(r->live, "%s holds the first %s packet%s (%s)",
		    record_file_name(r->file),
		    human_count(packets, kept), human_s(kept),
		    human_bytes(bytes, kept_bytes));
}

/* Explains an empty trace of a session whose triggers did not come. */
static void
say_if_no_trigger_came(struct run *r)
{
	const Perfetto__Protos__TraceConfig__TriggerConfig *t;

	if (r->config == NULL ||
	    trace_summary_totals(r->summary)->packets > 0)
		return;
	t = record_config_message(r->config)->trigger_config;
	if (t != NULL && t->n_triggers > 0)
		record_live_note(r->live, "no trigger came, so the trace is "
		    "empty");
}

/* Where the trace is, with the segments that it has. */
static const char *
where(const struct run *r, char *out, size_t size)
{
	const struct record_segments *s = record_file_segments(r->file);
	char count[HUMAN_TEXT_MAX];

	if (s == NULL)
		return record_file_name(r->file);
	snprintf(out, size, "%s (%s segment%s)", record_file_name(r->file),
	    human_count(count, record_segments_count(s)),
	    human_s(record_segments_count(s)));
	return out;
}

static void
say_all_is_well(struct run *r)
{
	char place[PATH_MAX + 64];

	switch (r->options->mode) {
	case RECORD_MODE_DETACH:
		record_live_say(r->live, "the session goes on; `tributary "
		    "record --attach=%s` comes back to it", r->options->key);
		return;
	case RECORD_MODE_ATTACH:
		record_live_say(r->live, "the collector wrote the trace into "
		    "the file that was given with --detach");
		return;
	case RECORD_MODE_RECORD:
	case RECORD_MODE_CLONE:
	case RECORD_MODE_QUERY:
	case RECORD_MODE_IS_DETACHED:
		break;
	}
	if (r->snapshots != NULL && trace_summary_totals(r->summary)->packets
	    == 0) {
		if (record_snapshots_taken(r->snapshots) == 0)
			record_live_say(r->live, "no trigger came, so there is "
			    "no snapshot");
		return;
	}
	if (r->file == NULL) {
		record_live_say(r->live, "the collector wrote the trace into "
		    "%s, on its machine", remote_file(r));
		return;
	}
	/* wall_ms of a clone is the duration of cloning, not of the trace. */
	trace_report_print(stderr, r->summary, where(r, place, sizeof(place)),
	    r->options->mode == RECORD_MODE_CLONE ? 0 : r->result.wall_ms);
	say_if_no_trigger_came(r);
}

static void
say_how_it_went(struct run *r)
{
	record_live_clear(r->live);
	if (!r->result.whole) {
		record_live_say(r->live, "%s", r->result.failure);
		say_what_is_left(r);
	} else if (!r->options->quiet) {
		say_all_is_well(r);
	} else {
		trace_report_troubles(stderr, r->summary);
	}
}

/* Everything up to the end of the session; the exit status. */
static int
record(struct run *r)
{
	char err[ERROR_BYTES];

	if (open_file(r) < 0)
		return RECORD_STATUS_FAILED;
	if (r->options->background && record_notify_background(&r->notify,
	    r->options->background_wait, err, sizeof(err)) < 0) {
		refuse(err);
		return RECORD_STATUS_FAILED;
	}
	if (start(r) < 0)
		return RECORD_STATUS_FAILED;
	loop_run(r->loop);
	say_how_it_went(r);
	if (r->result.whole)
		return trace_summary_not_recorded(r->summary) ?
		    RECORD_RUN_NOT_ALL : RECORD_STATUS_OK;
	return r->result.not_detached ? STATUS_NOT_DETACHED :
	    RECORD_STATUS_FAILED;
}

/*
 * Activates the triggers of activate_triggers in a config: nothing is recorded.
 */
static int
pull_triggers(const struct run *r)
{
	const Perfetto__Protos__TraceConfig *m =
	    record_config_message(r->config);

	return trigger_activate(NULL, &r->options->line.how,
	    (const char *const *)m->activate_triggers,
	    m->n_activate_triggers, r->options->quiet);
}

int
record_run(const struct record_options *o)
{
	struct run r = { .options = o };
	int status = RECORD_STATUS_FAILED;

	record_notify_init(&r.notify, o->notify_fd);
	if (record_options_fleet(o)) {
		if (load_config(&r) == 0)
			status = record_fleet(o, r.config, r.delay_ms);
	} else if (find_collector(&r) == 0 && load_config(&r) == 0)
		status = activates_triggers(&r) ? pull_triggers(&r) :
		    record(&r);
	/* Snapshots lie beside the file, which stays empty then. */
	if (r.file != NULL && ((status != RECORD_STATUS_OK &&
	    status != RECORD_RUN_NOT_ALL) ||
	    r.snapshots != NULL))
		(void)record_file_remove_if_empty(r.file);
	record_notify_done(&r.notify, (enum record_status)status);
	run_done(&r);
	return status;
}
