#include "service/recordings/flight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/onlookers/clone.h"
#include "service/recordings/recording.h"
#include "service/session/session.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

enum flight_state {
	FLIGHT_IDLE,
	FLIGHT_WRITES, /* cloned() comes */
	FLIGHT_RESTS,  /* `rest` is armed; then the trigger that waits, if any */
};

/* A trigger that was pulled; its strings are owned. */
struct pulled {
	char *name; /* NULL: none */
	char *producer;
	uint64_t session;
	struct clone_trigger t;
};

struct flight {
	struct service *service;
	const char *recording;
	const struct trace_folder *archive;
	enum flight_state state;
	struct pulled now;   /* while WRITES; and its delay while RESTS */
	struct pulled waits; /* its turn comes when the rest is over */
	struct loop_timer *rest;
	struct flight_counts counts;
	struct log_limit shared_log;
};

static void
pulled_done(struct pulled *p)
{
	free(p->name);
	free(p->producer);
	memset(p, 0, sizeof(*p));
}

static int
pulled_copy(struct pulled *p, uint64_t session, const struct clone_trigger *t)
{
	p->name = strdup(t->name);
	p->producer = strdup(t->producer_name);
	if (p->name == NULL || p->producer == NULL) {
		pulled_done(p);
		return -1;
	}
	p->session = session;
	p->t = *t;
	p->t.name = p->name;
	p->t.producer_name = p->producer;
	return 0;
}

static void
note_failure(struct flight *f, const char *why)
{
	f->counts.failed++;
	snprintf(f->counts.error, sizeof(f->counts.error), "%s", why);
	log_error("recording %s: the segment of a trigger could not be written: "
	    "%s", f->recording, why);
}

static void
rest(struct flight *f)
{
	uint64_t ms = f->now.t.delay_ms;

	f->state = FLIGHT_RESTS;
	loop_timer_set(f->rest, ms > FLIGHT_REST_MS ? ms : FLIGHT_REST_MS, 0);
}

static void
cloned(void *arg, struct session *clone, bool was_file, const char *error)
{
	struct flight *f = arg;
	char name[160], producer[160];

	if (clone == NULL) {
		note_failure(f, error);
	} else {
		f->counts.written++;
		f->counts.error[0] = '\0';
		f->service->counters.flight_segments++;
		log_info("recording %s: the segment of trigger \"%s\" of %s is "
		    "written", f->recording, log_escape(name, sizeof(name),
		    f->now.name, strlen(f->now.name)),
		    log_escape(producer, sizeof(producer), f->now.producer,
		    strlen(f->now.producer)));
		session_free(clone);
	}
	rest(f);
}

static void
write_segment(struct flight *f)
{
	const struct principal who = recording_owner();
	const struct clone_request r = {
		.session_id = f->now.session,
		.trigger = &f->now.t,
		.who = &who,
		.fd = -1,
		.archive = f->archive,
	};

	f->state = FLIGHT_WRITES;
	clone_start(f->service, &r, cloned, f);
}

static void
rested_cb(void *arg)
{
	struct flight *f = arg;

	pulled_done(&f->now);
	f->now = f->waits;
	memset(&f->waits, 0, sizeof(f->waits));
	f->state = FLIGHT_IDLE;
	if (f->now.name != NULL)
		write_segment(f);
}

void
flight_trigger(struct flight *f, uint64_t session,
    const struct clone_trigger *t)
{
	bool idle = f->state == FLIGHT_IDLE;

	if (f->waits.name != NULL) {
		f->counts.shared++;
		log_limited(&f->shared_log, loop_now_ms(), LOG_LEVEL_INFO,
		    "recording %s: triggers come faster than segments: some "
		    "share one", f->recording);
	} else if (pulled_copy(idle ? &f->now : &f->waits, session, t) != 0) {
		note_failure(f, "no memory");
	} else if (idle) {
		write_segment(f);
	}
}

const struct flight_counts *
flight_counts(const struct flight *f)
{
	return &f->counts;
}

struct flight *
flight_new(struct service *s, const char *name,
    const struct trace_folder *archive)
{
	struct flight *f;

	if ((f = calloc(1, sizeof(*f))) == NULL)
		return NULL;
	f->service = s;
	f->recording = name;
	f->archive = archive;
	if ((f->rest = loop_timer_new(s->loop, rested_cb, f)) != NULL)
		return f;
	free(f);
	return NULL;
}

void
flight_free(struct flight *f)
{
	if (f == NULL)
		return;
	clone_forget(f->service, f);
	loop_timer_free(f->rest);
	pulled_done(&f->now);
	pulled_done(&f->waits);
	free(f);
}
