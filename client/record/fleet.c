#include "client/record/fleet.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/record/config.h"
#include "client/record/fleet_internal.h"
#include "client/record/live_line.h"
#include "client/record/options.h"
#include "protos/plain_text.h"
#include "transport/base/failure.h"
#include "transport/loop/loop.h"

#define ERROR_BYTES 1024

static size_t
count(const struct fleet *f, enum part_state state)
{
	size_t i, n = 0;

	for (i = 0; i < f->collectors.n; i++)
		n += f->parts[i].state == state;
	return n;
}

/* Before the start: sessions that are armed end with their connections. */
static void
give_up(struct fleet *f)
{
	size_t i;

	f->given_up = true;
	for (i = 0; i < f->collectors.n; i++)
		loop_timer_clear(f->parts[i].late);
	loop_stop(f->loop);
}

/* ---- the start ---- */

static void
start_if_all_are_armed(struct fleet *f)
{
	size_t i;

	if (f->started || f->given_up)
		return;
	for (i = 0; i < f->collectors.n; i++)
		if (f->parts[i].state == PART_ARMING ||
		    (f->parts[i].state == PART_ARMED &&
		    !f->parts[i].clock_is_done))
			return;
	if (count(f, PART_ARMED) == 0) {
		give_up(f);
		return;
	}
	f->started = true;
	for (i = 0; i < f->collectors.n; i++)
		if (f->parts[i].state == PART_ARMED) {
			f->parts[i].state = PART_RECORDING;
			record_session_start(f->parts[i].session);
		}
}

static void
armed_cb(void *arg)
{
	struct fleet_part *p = arg;

	if (p->state != PART_ARMING)
		return;
	p->state = PART_ARMED;
	loop_timer_clear(p->late);
	start_if_all_are_armed(p->fleet);
}

static void
clock_cb(void *arg, const struct collector_clock_reading *r)
{
	struct fleet_part *p = arg;

	/*
	 * A difference that may be the way's is none: wall clocks that NTP holds
	 * are better than what a slow line tells.
	 */
	if (r != NULL && (r->ahead_ns > (int64_t)r->within_ns ||
	    -r->ahead_ns > (int64_t)r->within_ns))
		p->clock = *r;
	p->clock_is_done = true;
	collector_clock_free(p->measuring);
	p->measuring = NULL;
	start_if_all_are_armed(p->fleet);
}

/* Leaves the collector out; whether the rest goes on is decided here. */
static void
miss(struct fleet_part *p, const char *why)
{
	struct fleet *f = p->fleet;

	p->state = PART_MISSING;
	loop_timer_clear(p->late);
	snprintf(p->result.failure, sizeof(p->result.failure), "%s", why);
	record_live_say(p->live, "%s", why);
	if (!f->options->line.allow_missing && !f->given_up)
		give_up(f);
	else
		start_if_all_are_armed(f);
}

static void
late_cb(void *arg)
{
	struct fleet_part *p = arg;

	record_session_free(p->session);
	p->session = NULL;
	miss(p, "the collector does not answer");
}

static void
done_cb(void *arg, const struct record_result *result)
{
	struct fleet_part *p = arg;
	struct fleet *f = p->fleet;

	if (p->state == PART_MISSING || p->state == PART_ENDED || f->given_up)
		return;
	if (!f->started) {
		miss(p, result->failure[0] != '\0' ? result->failure :
		    "the collector ended the session before all were armed");
		return;
	}
	p->result = *result;
	p->state = PART_ENDED;
	if (!result->whole)
		record_live_say(p->live, "%s", result->failure);
	if (count(f, PART_RECORDING) == 0)
		loop_stop(f->loop);
}

/* ---- the live line ---- */

static const char *
phase(const struct fleet *f, const char *of_part)
{
	return f->started ? of_part : "Arming";
}

static void
tick_cb(void *arg)
{
	struct fleet *f = arg;
	struct record_numbers all = { .phase = "Saving",
		.expected_ms = record_config_longest_ms(f->config),
		.packets_known = true };
	const struct record_numbers *n;
	size_t i;

	for (i = 0; i < f->collectors.n; i++) {
		if (f->parts[i].session == NULL ||
		    f->parts[i].state == PART_MISSING)
			continue;
		n = record_session_numbers(f->parts[i].session);
		if (f->parts[i].state != PART_ENDED)
			all.phase = phase(f, n->phase);
		if (n->elapsed_ms > all.elapsed_ms)
			all.elapsed_ms = n->elapsed_ms;
		all.packets_known &= n->packets_known;
		all.bytes += n->bytes;
		all.packets += n->packets;
		all.chunks += n->chunks;
		all.producers += n->producers;
		all.losses += n->losses;
	}
	record_live_show(f->live, &all);
}

/* ---- the whole ---- */

static void
stop_cb(void *arg)
{
	struct fleet *f = arg;
	size_t i;

	if (!f->started) {
		record_live_say(f->live, "interrupted before the recording "
		    "began");
		give_up(f);
		return;
	}
	if (f->stops++ == 0)
		record_live_note(f->live, "stopping; once more to give up the "
		    "unsaved rest");
	for (i = 0; i < f->collectors.n; i++)
		if (f->parts[i].state == PART_RECORDING)
			record_session_stop(f->parts[i].session);
}

static int
begin_part(struct fleet *f, struct fleet_part *p, char *err, size_t err_size)
{
	const struct collector_end *to = &p->is->consumer;
	const struct record_session_setup setup = {
		.loop = f->loop,
		.addr = &to->addr,
		.how = &to->how,
		.kind = RECORD_START,
		.config = p->config,
		.file = p->file,
		.live = p->live,
		.no_line = true,
		.notify = &p->notify,
		.summary = p->summary,
		.delay_ms = f->delay_ms,
		.armed = armed_cb,
	};

	if ((p->late = loop_timer_new(f->loop, late_cb, p)) == NULL)
		return FAILURE(err, err_size, "out of memory");
	p->session = record_session_new(&setup, done_cb, p, err, err_size);
	if (p->session == NULL)
		return -1;
	loop_timer_set(p->late, f->delay_ms + p->is->timeout_ms, 0);
	p->measuring = collector_clock_new(f->loop, &to->addr, &to->how,
	    clock_cb, p, err, err_size);
	return p->measuring == NULL ? -1 : 0;
}

static int
begin(struct fleet *f, char *err, size_t err_size)
{
	char why[ERROR_BYTES];
	size_t i;

	signal(SIGPIPE, SIG_IGN); /* writes say EPIPE, */
	signal(SIGXFSZ, SIG_IGN); /* and EFBIG */
	f->loop = loop_new();
	f->live = record_live_new(f->options->quiet);
	if (f->loop == NULL || f->live == NULL ||
	    (f->tick = loop_timer_new(f->loop, tick_cb, f)) == NULL)
		return FAILURE(err, err_size, "out of memory");
	if (fleet_parts_make(f, err, err_size) != 0)
		return -1;
	for (i = 0; i < f->collectors.n; i++)
		if (begin_part(f, &f->parts[i], why, sizeof(why)) != 0)
			return FAILURE(err, err_size, "%s: %s",
			    f->parts[i].is->name, why);
	if (loop_on_signal(f->loop, SIGINT, stop_cb, f) < 0 ||
	    loop_on_signal(f->loop, SIGTERM, stop_cb, f) < 0 ||
	    loop_on_signal(f->loop, SIGHUP, stop_cb, f) < 0)
		return FAILURE(err, err_size, "cannot watch for signals");
	if (record_live_enabled(f->live))
		loop_timer_set(f->tick, RECORD_LIVE_PERIOD_MS, 1);
	return 0;
}

/* Whether config and flags go with several collectors. */
static int
check(const struct fleet *f, char *err, size_t err_size)
{
	const struct record_options *o = f->options;

	if (o->out == NULL)
		return FAILURE(err, err_size, "say where the trace goes: -o "
		    "FILE.zip, or -o - for standard output");
	if (record_config_output_path(f->config) != NULL)
		return FAILURE(err, err_size, "the config has an output_path: "
		    "take it out, a recording of several collectors is one "
		    "ZIP here");
	if (record_config_makes_segments(f->config))
		return FAILURE(err, err_size, "segments of several collectors "
		    "are made by their own recordings: leave out the flags of "
		    "segments (tributary_segments)");
	if (record_config_takes_snapshots(f->config))
		return FAILURE(err, err_size, "snapshots of several collectors "
		    "are not put together: take the CLONE_SNAPSHOT triggers "
		    "out of the config");
	if (o->no_clobber && access(o->out, F_OK) == 0)
		return FAILURE(err, err_size, "%s exists", o->out);
	return collectors_want_consumers(&f->collectors, err, err_size);
}

static void
done(struct fleet *f, bool keep_parts)
{
	fleet_parts_free(f, keep_parts);
	record_live_free(f->live);
	loop_timer_free(f->tick);
	if (f->loop != NULL)
		loop_free(f->loop);
	collectors_done(&f->collectors);
}

int
record_fleet(const struct record_options *o,
    const struct record_config *config, uint64_t delay_ms)
{
	struct fleet f = { .options = o, .config = config,
		.delay_ms = delay_ms };
	int status = RECORD_STATUS_FAILED;
	bool keep_parts = false;
	char err[2 * ERROR_BYTES];

	if (collectors_of_line(&f.collectors, &o->line, err,
		sizeof(err)) != 0 || check(&f, err, sizeof(err)) != 0 ||
	    begin(&f, err, sizeof(err)) != 0) {
		plain_printf(stderr, "tributary: %s\n", err);
	} else {
		loop_run(f.loop);
		record_live_clear(f.live);
		loop_timer_clear(f.tick);
		status = fleet_result(&f, &keep_parts);
	}
	done(&f, keep_parts);
	return status;
}
