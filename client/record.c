#include "client/record.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/record_config.h"
#include "client/record_file.h"
#include "client/record_live.h"
#include "client/record_notify.h"
#include "client/record_options.h"
#include "client/record_session.h"
#include "client/trace_report.h"
#include "client/trace_summary.h"
#include "protos/config_support.h"
#include "protos/trace_config.pb-c.h"
#include "transport/addr.h"
#include "transport/dial_flags.h"
#include "transport/frame.h"
#include "transport/human.h"
#include "transport/loop.h"

#define ERROR_BYTES 2048
/* The rest of the frame that carries it. */
#define CONFIG_MAX_BYTES (FRAME_PAYLOAD_MAX - 256u)

/* All that a run owns; filled step by step, emptied by run_done(). */
struct run {
	struct record_options options;
	struct record_config *config;
	struct record_file *file; /* NULL with an output_path */
	struct record_live *live;
	struct record_notify notify;
	struct trace_summary *summary;
	struct loop *loop;
	struct record_session *session;
	struct addr addr;
	struct record_result result;
};

static void
run_done(struct run *r)
{
	record_session_free(r->session);
	record_live_free(r->live);
	record_file_free(r->file);
	trace_summary_free(r->summary);
	record_config_free(r->config);
	if (r->loop != NULL)
		loop_free(r->loop);
}

/* Before anything runs: a sentence, or what a config's error looks like. */
static int
refuse(const char *text)
{
	fprintf(stderr, "tributary: %s\n", text);
	return -1;
}

/* What Perfetto's command does with these, this one does not. */
static const char *
unsupported(const Perfetto__Protos__TraceConfig *m)
{
	if (m->n_activate_triggers > 0)
		return "the config has activate_triggers, which this command "
		       "does not know: it records";
	if (m->trigger_config != NULL && m->trigger_config->trigger_mode ==
	    PERFETTO__PROTOS__TRACE_CONFIG__TRIGGER_CONFIG__TRIGGER_MODE__CLONE_SNAPSHOT)
		return "the config asks for snapshots at triggers "
		       "(CLONE_SNAPSHOT), which this command does not know";
	return NULL;
}

static void
warn_cb(void *arg, const char *path, const char *text)
{
	fprintf(stderr, "tributary: warning: %s\n", text);
}

static int
load_config(struct run *r)
{
	char err[ERROR_BYTES], size[HUMAN_TEXT_MAX];
	const uint8_t *bytes;
	const char *why;
	size_t len;

	r->config = record_config_load(&r->options, err, sizeof(err));
	if (r->config == NULL) {
		/* "FILE:3:5: error: ..." stands alone, as editors expect. */
		if (strchr(err, '\n') == NULL)
			return refuse(err);
		fprintf(stderr, "%s\n", err);
		return -1;
	}
	if ((why = unsupported(record_config_message(r->config))) != NULL)
		return refuse(why);
	bytes = record_config_bytes(r->config, &len);
	config_support_check(bytes, len, warn_cb, NULL);
	if (len <= CONFIG_MAX_BYTES)
		return 0;
	snprintf(err, sizeof(err), "the config has %s when it is encoded; "
	    "collectors take at most 128 KiB", human_bytes(size, len));
	return refuse(err);
}

static int
open_file(struct run *r)
{
	const char *remote = record_config_output_path(r->config);
	char err[ERROR_BYTES];

	if (!record_config_service_writes(r->config))
		remote = NULL;
	if (remote != NULL && r->options.out != NULL)
		return refuse("the config has an output_path, where the "
		    "collector writes: leave out -o, or take it out of the "
		    "config");
	if (remote != NULL)
		return 0;
	if (r->options.out == NULL)
		return refuse("say where the trace goes: -o FILE, or -o - for "
		    "standard output");
	r->file = record_file_open(r->options.out, r->options.no_clobber, err,
	    sizeof(err));
	return r->file == NULL ? refuse(err) : 0;
}

static int
find_collector(struct run *r)
{
	const char *text = r->options.connect;
	char err[ERROR_BYTES];

	if (text == NULL)
		text = addr_default_consumer();
	if (addr_parse(&r->addr, text, err, sizeof(err)) < 0 ||
	    dial_flags_check(&r->options.how, &r->addr, err, sizeof(err)) < 0)
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

static int
start(struct run *r)
{
	struct record_session_setup setup;
	char err[ERROR_BYTES];

	signal(SIGPIPE, SIG_IGN); /* writes say EPIPE, */
	signal(SIGXFSZ, SIG_IGN); /* and EFBIG */
	r->live = record_live_new(r->options.quiet || r->options.background);
	r->summary = trace_summary_new();
	r->loop = loop_new();
	if (r->live == NULL || r->summary == NULL || r->loop == NULL)
		return refuse("out of memory");
	setup = (struct record_session_setup){
		.loop = r->loop,
		.addr = &r->addr,
		.how = &r->options.how,
		.config = r->config,
		.file = r->file,
		.live = r->live,
		.notify = &r->notify,
		.summary = r->summary,
	};
	r->session = record_session_new(&setup, done_cb, r, err, sizeof(err));
	if (r->session == NULL)
		return refuse(err);
	if (loop_on_signal(r->loop, SIGINT, stop_cb, r) < 0 ||
	    loop_on_signal(r->loop, SIGTERM, stop_cb, r) < 0 ||
	    loop_on_signal(r->loop, SIGHUP, stop_cb, r) < 0)
		return refuse("cannot watch for signals");
	return 0;
}

/* What a recording that failed leaves behind. */
static void
say_what_is_left(struct run *r)
{
	const struct trace_totals *t = trace_summary_totals(r->summary);
	char packets[HUMAN_TEXT_MAX], bytes[HUMAN_TEXT_MAX];

	if (!r->result.began || r->file == NULL)
		return;
	if (t->packets == 0)
		record_live_say(r->live, "nothing was recorded into %s",
		    record_file_name(r->file));
	else
		record_live_say(r->live, "%s holds the first %s packet%s (%s)",
		    record_file_name(r->file),
		    human_count(packets, t->packets), human_s(t->packets),
		    human_bytes(bytes, t->bytes));
}

static void
say_how_it_went(struct run *r)
{
	const char *remote = record_config_output_path(r->config);

	record_live_clear(r->live);
	if (!r->result.whole) {
		record_live_say(r->live, "%s", r->result.failure);
		say_what_is_left(r);
	} else if (!r->options.quiet && r->file == NULL) {
		record_live_say(r->live, "the collector wrote the trace into "
		    "%s, on its machine", remote);
	} else if (!r->options.quiet) {
		trace_report_print(stderr, r->summary,
		    record_file_name(r->file), r->result.wall_ms);
	}
}

int
record_main(int argc, char **argv)
{
	struct run r = { .session = NULL };
	enum record_status status = RECORD_STATUS_FAILED;
	char err[ERROR_BYTES];

	switch (record_options_parse(&r.options, argc, argv, err,
	    sizeof(err))) {
	case RECORD_OPTIONS_HELP:
		fputs(record_options_help(), stdout);
		return 0;
	case RECORD_OPTIONS_BAD:
		refuse(err);
		return 1;
	case RECORD_OPTIONS_RUN:
		break;
	}
	record_notify_init(&r.notify, r.options.notify_fd);
	if (find_collector(&r) < 0 || load_config(&r) < 0 || open_file(&r) < 0)
		goto out;
	if (r.options.background &&
	    record_notify_background(&r.notify, r.options.background_wait, err,
	    sizeof(err)) < 0) {
		refuse(err);
		goto out;
	}
	if (start(&r) < 0)
		goto out;
	loop_run(r.loop);
	say_how_it_went(&r);
	if (r.result.whole)
		status = RECORD_STATUS_OK;

out:
	if (status != RECORD_STATUS_OK && r.file != NULL)
		record_file_remove_if_empty(r.file);
	record_notify_done(&r.notify, status);
	run_done(&r);
	return status;
}
