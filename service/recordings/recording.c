#include "service/recordings/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "protos/fields.h"
#include "service/config/config.h"
#include "service/output/file_writer.h"
#include "service/recordings/flight.h"
#include "service/recordings/recording_plan.h"
#include "service/session/cut.h"
#include "service/session/session.h"
#include "service/settings/settings.h"
#include "transport/base/backoff.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/wire/pb_writer.h"

/* The rate for people is that of the last so many milliseconds, or twice. */
#define RATE_MS 5000u
/* Orders that wait for one recording. */
#define ORDERS_MAX 64u

enum recording_state {
	RECORDING_STOPPED,  /* by a person; begin() is not called by itself */
	RECORDING_WAITING,  /* `retry` is armed, or nothing was begun yet */
	RECORDING_STARTING, /* `session`, whose file is being created */
	RECORDING_RUNNING,  /* `session` */
	RECORDING_ENDING,   /* `session`, or over_call, after which it goes on */
};

/* START or STOP that is not answered yet. */
struct recording_wait {
	TAILQ_ENTRY(recording_wait) link;
	enum recording_verb verb;
	recording_done_fn done; /* NULL: forgotten */
	void *arg;
};

struct recording {
	struct service *service;
	const struct trace_folder *archive; /* borrowed */
	char *name; /* of every plan */
	struct recording_plan *plan;
	struct flight *flight; /* NULL: the plan is none */
	struct recording_plan *next; /* for after the session; NULL: the same */
	void (*gone)(struct recording *r, void *arg);
	void *gone_arg;
	enum recording_state state;
	struct session *session; /* NULL: none */
	bool stopped;            /* by a person */
	bool again;              /* START came while the session ended */
	bool removed;
	unsigned failures;       /* sessions that ended soon, in a row */
	uint64_t n_begun;
	uint64_t began_ms;       /* loop_now_ms() of the session's begin */
	uint64_t began_ns;       /* likewise, CLOCK_REALTIME */
	uint64_t since_ns;       /* of the state, CLOCK_REALTIME */
	uint64_t retry_ns;       /* WAITING: when it begins again */
	char reason[RECORDING_TEXT]; /* of the last end; "": none yet */
	uint64_t ended_ns;
	struct loop_timer *retry;
	struct loop_timer *sample;
	uint64_t sampled_ms;
	uint64_t sampled_bytes;
	uint64_t rate; /* bytes per second */
	struct loop_call over_call;
	TAILQ_HEAD(, recording_wait) waits;
	size_t n_waits;
};

static uint64_t
realtime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

const char *
recording_name(const struct recording *r)
{
	return r->name;
}

static void
set_state(struct recording *r, enum recording_state state)
{
	if (r->state == state)
		return;
	r->state = state;
	r->since_ns = realtime_ns();
}

/* ---- orders ---- */

/* Answers the orders of this kind that wait. */
static void
answer(struct recording *r, enum recording_verb verb, const char *error)
{
	struct recording_wait *w = NULL, *next;
	TAILQ_HEAD(, recording_wait) due = TAILQ_HEAD_INITIALIZER(due);

	TAILQ_FOREACH_SAFE(w, &r->waits, link, next) {
		if (w->verb != verb)
			continue;
		TAILQ_REMOVE(&r->waits, w, link);
		r->n_waits--;
		TAILQ_INSERT_TAIL(&due, w, link);
	}
	while ((w = TAILQ_FIRST(&due)) != NULL) {
		TAILQ_REMOVE(&due, w, link);
		if (w->done != NULL)
			w->done(w->arg, error);
		free(w);
	}
}

void
recording_forget(struct recording *r, void *arg)
{
	struct recording_wait *w;

	TAILQ_FOREACH(w, &r->waits, link)
		if (w->arg == arg)
			w->done = NULL;
}

/* ---- a session ---- */

static uint64_t
bytes_of(const struct session *s)
{
	return s->file != NULL ? file_writer_bytes(s->file) : s->file_bytes;
}

static void
sample_cb(void *arg)
{
	struct recording *r = arg;
	uint64_t now = loop_now_ms(), bytes;

	if (r->session == NULL || now <= r->sampled_ms)
		return;
	bytes = bytes_of(r->session);
	r->rate = (bytes - r->sampled_bytes) * 1000 / (now - r->sampled_ms);
	r->sampled_bytes = bytes;
	r->sampled_ms = now;
}

static void go_on(struct recording *r);

/* Frees the session that has ended: its own calls have returned by now. */
static void
over_cb(void *arg)
{
	struct recording *r = arg;
	struct session *s = r->session;

	r->session = NULL;
	loop_timer_clear(r->sample);
	r->rate = 0;
	if (s != NULL)
		session_free(s);
	go_on(r);
}

static void
note_end(struct recording *r, const char *why)
{
	snprintf(r->reason, sizeof(r->reason), "%s", why);
	r->ended_ns = realtime_ns();
	set_state(r, RECORDING_ENDING);
	loop_defer(r->service->loop, &r->over_call, over_cb, r);
}

static void
disabled_cb(void *port, const char *error)
{
	struct recording *r = port;

	if (r->session != NULL && r->session->stopped_on_command)
		r->stopped = true;
	if (error != NULL)
		note_end(r, error);
	else if (r->removed || r->next != NULL)
		note_end(r, "the settings have changed");
	else if (r->stopped)
		note_end(r, "stopped on command");
	else
		note_end(r, "it ended as its config says (duration_ms, "
		    "max_file_size_bytes)");
}

static void
freed_cb(void *port)
{
	struct recording *r = port;

	r->session = NULL;
	r->stopped = true;
	note_end(r, "stopped and discarded on command");
}

static void
say_running(struct recording *r)
{
	if (r->state != RECORDING_STARTING || r->session == NULL ||
	    session_awaits_file(r->session) || r->session->end_error != NULL)
		return;
	set_state(r, RECORDING_RUNNING);
	answer(r, RECORDING_DO_START, NULL);
}

static void
file_known_cb(void *port)
{
	say_running(port);
}

static void
all_started_cb(void *port)
{
}

static void
instance_changed_cb(void *port, const char *producer, const char *data_source,
    bool started)
{
}

static void
clone_trigger_cb(void *port, uint64_t session, const struct clone_trigger *t)
{
	struct recording *r = port;

	flight_trigger(r->flight, session, t);
}

static const struct consumer_ops session_ops = {
	.disabled = disabled_cb,
	.instance_changed = instance_changed_cb,
	.all_started = all_started_cb,
	.clone_trigger_hit = clone_trigger_cb,
	.freed = freed_cb,
	.file_known = file_known_cb,
};

struct principal
recording_owner(void)
{
	return (struct principal){ .auth = PEER_UNIX, .uid = geteuid(),
		.admin = true };
}

static struct session *
make_session(struct recording *r, char *err, size_t err_size)
{
	const struct principal owner = recording_owner();
	struct config *config;

	if (r->plan->is_flight && r->flight == NULL &&
	    (r->flight = flight_new(r->service, r->name, r->archive)) == NULL) {
		snprintf(err, err_size, "no memory");
		return NULL;
	}
	config = config_new(r->plan->config, r->plan->config_len, false,
	    &r->service->settings->limits, err, err_size);
	return config == NULL ? NULL : session_new(r->service,
	    &(struct session_request){
		.config = config,
		.fd = -1,
		.owner = &owner,
		.ops = &session_ops,
		.port = r,
		.folder = r->archive,
		.standing = true,
	    }, err, err_size);
}

/* ---- again and again ---- */

static void
begin(struct recording *r)
{
	char err[RECORDING_TEXT];

	loop_timer_clear(r->retry);
	set_state(r, RECORDING_STARTING);
	r->n_begun++;
	r->began_ms = r->sampled_ms = loop_now_ms();
	r->began_ns = realtime_ns();
	r->sampled_bytes = 0;
	if ((r->session = make_session(r, err, sizeof(err))) == NULL) {
		note_end(r, err);
		return;
	}
	log_info("recording %s: begins as session %llu", r->name,
	    (unsigned long long)r->session->id);
	loop_timer_set(r->sample, RATE_MS, 1);
	say_running(r);
}

static void
retry_cb(void *arg)
{
	begin(arg);
}

static void
wait_and_retry(struct recording *r)
{
	uint32_t random = 0;
	uint64_t ms;

	if (loop_now_ms() - r->began_ms >= RECORDING_STEADY_MS)
		r->failures = 0;
	r->failures++;
	/* Without randomness there is no jitter. */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = 0;
	ms = backoff_ms(r->failures, RECORDING_PAUSE_MIN_MS,
	    RECORDING_PAUSE_MAX_MS, random);
	r->retry_ns = realtime_ns() + ms * 1000000u;
	set_state(r, RECORDING_WAITING);
	loop_timer_set(r->retry, ms, 0);
	/* At the daemon's end all sessions end, which it says itself. */
	if (r->service->shutdown == NULL)
		log_warn("recording %s: ended: %s; it begins again in %.1f s",
		    r->name, r->reason, (double)ms / 1000);
	answer(r, RECORDING_DO_START, r->reason);
}

/* The next step of a recording that has no session. */
static void
go_on(struct recording *r)
{
	bool again = r->again;

	r->again = false;
	answer(r, RECORDING_DO_STOP, NULL);
	if (r->removed) {
		log_info("recording %s: ended: %s", r->name, r->reason);
		answer(r, RECORDING_DO_START, r->reason);
		r->gone(r, r->gone_arg);
		return;
	}
	if (r->next != NULL) {
		recording_plan_free(r->plan);
		r->plan = r->next;
		r->next = NULL;
		r->failures = 0;
		if (!r->stopped) {
			begin(r);
			return;
		}
	}
	if (!r->stopped && again) {
		begin(r);
		return;
	}
	if (!r->stopped) {
		wait_and_retry(r);
		return;
	}
	log_info("recording %s: stopped", r->name);
	set_state(r, RECORDING_STOPPED);
	answer(r, RECORDING_DO_START, "it was stopped meanwhile");
}

/* Ends the session, if there is one; then, or at once, go_on(). */
static void
end(struct recording *r)
{
	switch (r->state) {
	case RECORDING_STARTING:
	case RECORDING_RUNNING:
		set_state(r, RECORDING_ENDING);
		session_disable(r->session, NULL);
		return;
	case RECORDING_WAITING:
		loop_timer_clear(r->retry);
		go_on(r);
		return;
	case RECORDING_STOPPED:
		go_on(r);
		return;
	case RECORDING_ENDING:
		return; /* over_cb() comes */
	}
}

void
recording_begin(struct recording *r)
{
	if (r->state == RECORDING_WAITING)
		begin(r);
}

void
recording_change(struct recording *r, struct recording_plan *plan)
{
	r->removed = false;
	if (r->state != RECORDING_ENDING &&
	    recording_plan_equal(r->plan, plan)) {
		recording_plan_free(r->plan);
		r->plan = plan;
		return;
	}
	recording_plan_free(r->next);
	r->next = plan;
	end(r);
}

void
recording_remove(struct recording *r)
{
	r->removed = true;
	end(r);
}

static void
wait_for(struct recording *r, enum recording_verb verb, recording_done_fn done,
    void *arg)
{
	struct recording_wait *w;

	if (r->n_waits >= ORDERS_MAX || (w = calloc(1, sizeof(*w))) == NULL) {
		done(arg, "too many orders wait for this recording");
		return;
	}
	w->verb = verb;
	w->done = done;
	w->arg = arg;
	TAILQ_INSERT_TAIL(&r->waits, w, link);
	r->n_waits++;
}

static void
start(struct recording *r, recording_done_fn done, void *arg)
{
	r->stopped = false;
	if (r->state == RECORDING_RUNNING) {
		done(arg, "it records already");
		return;
	}
	r->again = r->state == RECORDING_ENDING;
	wait_for(r, RECORDING_DO_START, done, arg);
	if (r->state == RECORDING_WAITING || r->state == RECORDING_STOPPED)
		begin(r);
}

static void
stop(struct recording *r, recording_done_fn done, void *arg)
{
	if (r->state == RECORDING_STOPPED) {
		done(arg, NULL);
		return;
	}
	r->stopped = true;
	r->again = false;
	wait_for(r, RECORDING_DO_STOP, done, arg);
	end(r);
}

static void
rotate(struct recording *r, recording_done_fn done, void *arg)
{
	if (r->plan->is_flight)
		done(arg, "a flight recorder has no segments to cut: a trigger "
		    "has one written");
	else if (r->session == NULL ||
	    cut_ask(r->session, SERVICE_CUT_REQUEST) == 0)
		done(arg, "it does not record at present");
	else
		done(arg, NULL);
}

void
recording_order(struct recording *r, enum recording_verb verb,
    recording_done_fn done, void *arg)
{
	switch (verb) {
	case RECORDING_DO_START:
		start(r, done, arg);
		return;
	case RECORDING_DO_STOP:
		stop(r, done, arg);
		return;
	case RECORDING_DO_ROTATE:
		rotate(r, done, arg);
		return;
	}
}

struct recording *
recording_new(struct service *s, struct recording_plan *plan,
    const struct trace_folder *archive,
    void (*gone)(struct recording *r, void *arg), void *arg)
{
	struct recording *r;

	if ((r = calloc(1, sizeof(*r))) == NULL) {
		recording_plan_free(plan);
		return NULL;
	}
	r->service = s;
	r->plan = plan;
	r->name = strdup(plan->name);
	r->archive = archive;
	r->gone = gone;
	r->gone_arg = arg;
	r->state = RECORDING_WAITING;
	r->since_ns = realtime_ns();
	TAILQ_INIT(&r->waits);
	r->retry = loop_timer_new(s->loop, retry_cb, r);
	r->sample = loop_timer_new(s->loop, sample_cb, r);
	if (r->name != NULL && r->retry != NULL && r->sample != NULL)
		return r;
	recording_free(r);
	return NULL;
}

void
recording_free(struct recording *r)
{
	if (r == NULL)
		return;
	answer(r, RECORDING_DO_STOP, "the recording is gone");
	answer(r, RECORDING_DO_START, "the recording is gone");
	loop_call_cancel(&r->over_call);
	loop_timer_free(r->retry);
	loop_timer_free(r->sample);
	if (r->session != NULL)
		session_free(r->session);
	flight_free(r->flight);
	recording_plan_free(r->plan);
	recording_plan_free(r->next);
	free(r->name);
	free(r);
}

/* ---- for people ---- */

uint64_t
recording_state_number(const struct recording *r)
{
	switch (r->state) {
	case RECORDING_STOPPED:
		return RecordingState_STOPPED;
	case RECORDING_WAITING:
		return RecordingState_WAITING;
	case RECORDING_STARTING:
		return RecordingState_STARTING;
	case RECORDING_RUNNING:
		return RecordingState_RUNNING;
	case RECORDING_ENDING:
		return RecordingState_ENDING;
	}
	return RecordingState_STATE_UNSPECIFIED;
}

static void
put_unless_0(struct pb_writer *w, uint32_t field, uint64_t v)
{
	if (v != 0)
		pb_put_uint(w, field, v);
}

static void
report_session(const struct recording *r, struct pb_writer *w)
{
	uint64_t every_ns = r->plan->every_ms * 1000000u;

	pb_put_uint(w, RecordingState_session, r->session->id);
	pb_put_uint(w, RecordingState_began_ns, r->began_ns);
	pb_put_uint(w, RecordingState_bytes, bytes_of(r->session));
	pb_put_uint(w, RecordingState_bytes_per_second, r->rate);
	if (r->plan->is_flight)
		return;
	pb_put_uint(w, RecordingState_segment, cut_number(r->session));
	if (every_ns > 0)
		pb_put_uint(w, RecordingState_next_cut_ns,
		    (realtime_ns() / every_ns + 1) * every_ns);
}

static void
report_flight(const struct flight_counts *c, struct pb_writer *w)
{
	pb_put_uint(w, RecordingState_snapshots, c->written);
	pb_put_uint(w, RecordingState_shared, c->shared);
	pb_put_uint(w, RecordingState_snapshots_failed, c->failed);
	if (c->error[0] != '\0')
		pb_put_string(w, RecordingState_snapshot_error, c->error);
}

void
recording_report(const struct recording *r, struct pb_writer *w)
{
	const struct recording_plan *p = r->plan;

	pb_put_string(w, RecordingState_name, p->name);
	pb_put_uint(w, RecordingState_state, recording_state_number(r));
	pb_put_uint(w, RecordingState_since_ns, r->since_ns);
	pb_put_uint(w, RecordingState_begun, r->n_begun);
	if (r->session != NULL)
		report_session(r, w);
	if (r->state == RECORDING_WAITING)
		put_unless_0(w, RecordingState_retry_ns, r->retry_ns);
	if (r->reason[0] != '\0') {
		pb_put_string(w, RecordingState_reason, r->reason);
		pb_put_uint(w, RecordingState_ended_ns, r->ended_ns);
	}
	put_unless_0(w, RecordingState_every_ms, p->every_ms);
	put_unless_0(w, RecordingState_max_bytes, p->max_bytes);
	put_unless_0(w, RecordingState_keep_bytes, p->keep_bytes);
	put_unless_0(w, RecordingState_keep_ms, p->keep_ms);
	put_unless_0(w, RecordingState_by_machine, p->by_machine);
	put_unless_0(w, RecordingState_flight, p->is_flight);
	if (r->flight != NULL)
		report_flight(flight_counts(r->flight), w);
}
