#include "service/session/trigger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "service/config/name_filter.h"
#include "service/model/model.h"
#include "service/packet/event_log.h"
#include "service/session/cut.h"
#include "service/session/session.h"
#include "service/session/session_internal.h"
#include "service/session/trigger_history.h"
#include "service/settings/settings.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"

typedef Perfetto__Protos__TraceConfig__TriggerConfig trigger_config_pb;
typedef Perfetto__Protos__TraceConfig__TriggerConfig__Trigger trigger_pb;

#define MODE(m)                                                               \
	PERFETTO__PROTOS__TRACE_CONFIG__TRIGGER_CONFIG__TRIGGER_MODE__##m

struct trigger_state {
	struct trigger_history *history;
	struct trigger_world world;
	unsigned short chance[3]; /* each daemon draws its own numbers */
};

/* A CLONE_SNAPSHOT that is told after its delay. */
struct delayed_clone {
	struct delayed_clone *next; /* of the same session */
	struct session *session;
	struct loop_timer *timer;
	char *name;
	char *producer_name;
	struct clone_trigger t;
};

static uint64_t
boottime(void *arg)
{
	return loop_boottime_ns();
}

static double
chance(void *arg)
{
	return erand48(((struct trigger_state *)arg)->chance);
}

struct trigger_state *
trigger_state_new(void)
{
	struct trigger_state *t;

	if ((t = calloc(1, sizeof(*t))) == NULL ||
	    (t->history = trigger_history_new()) == NULL) {
		free(t);
		return NULL;
	}
	/* Zeroes are a seed like any other. */
	(void)!getrandom(t->chance, sizeof(t->chance), 0);
	t->world = (struct trigger_world){ boottime, chance, t };
	return t;
}

void
trigger_state_free(struct trigger_state *t)
{
	if (t == NULL)
		return;
	trigger_history_free(t->history);
	free(t);
}

void
trigger_state_set_world(struct trigger_state *t, const struct trigger_world *w)
{
	t->world = *w;
}

static void
timeout_cb(void *arg)
{
	struct session *s = arg;

	log_limited(&s->service->session_log, loop_now_ms(), LOG_LEVEL_INFO,
	    "session %llu: trigger_timeout_ms is over",
	    (unsigned long long)s->id);
	session_disable(s, NULL);
}

static void
stop_cb(void *arg)
{
	session_disable(arg, NULL);
}

/* Makes one matcher for each trigger; NULL where any producer may pull it. */
static int
make_matchers(struct session *s, const trigger_config_pb *t, char *err,
    size_t err_size)
{
	const char *regex;
	size_t i;

	snprintf(err, err_size, "out of memory");
	s->trigger_producers = calloc(t->n_triggers + 1,
	    sizeof(*s->trigger_producers));
	if (s->trigger_producers == NULL)
		return -1;
	for (i = 0; i < t->n_triggers; i++) {
		regex = t->triggers[i]->producer_name_regex;
		if (regex == NULL || regex[0] == '\0')
			continue;
		if ((s->trigger_producers[i] = name_filter_new()) == NULL ||
		    name_filter_add_regex(s->trigger_producers[i], regex, err,
		    err_size) != 0)
			return -1;
	}
	return 0;
}

static int
check_mode(const trigger_config_pb *t, char *err, size_t err_size)
{
	if (t->use_clone_snapshot_if_available &&
	    t->trigger_mode != MODE(STOP_TRACING))
		return FAILURE(err, err_size, "trigger_mode must be "
		    "STOP_TRACING where use_clone_snapshot_if_available is "
		    "set");
	switch (t->trigger_mode) {
	case MODE(START_TRACING):
	case MODE(STOP_TRACING):
	case MODE(CLONE_SNAPSHOT):
		return 0;
	default:
		return FAILURE(err, err_size, "trigger_mode %d is not known",
		    (int)t->trigger_mode);
	}
}

bool
trigger_starts(const struct session *s)
{
	return config_trigger_mode(s->config) == MODE(START_TRACING);
}

int
trigger_arm(struct session *s, char *err, size_t err_size)
{
	const trigger_config_pb *t = s->config->pb->trigger_config;
	struct loop *l = s->service->loop;

	if (config_trigger_mode(s->config) == MODE(UNSPECIFIED))
		return 0;
	if (check_mode(t, err, err_size) != 0 ||
	    make_matchers(s, t, err, err_size) != 0)
		return -1;
	/*
	 * As in Perfetto's service, the time-out of these modes is the
	 * duration.
	 */
	s->trigger_timer = session_timer_new(s,
	    s->config->pb->prefer_suspend_clock_for_duration &&
	    t->trigger_mode != MODE(START_TRACING), timeout_cb);
	s->trigger_stop_timer = loop_timer_new(l, stop_cb, s);
	if (s->trigger_timer == NULL || s->trigger_stop_timer == NULL)
		return FAILURE(err, err_size, "out of memory");
	if (trigger_starts(s))
		loop_timer_set(s->trigger_timer, t->trigger_timeout_ms, 0);
	return 0;
}

void
trigger_session_started(struct session *s)
{
	if (s->trigger_timer == NULL)
		return;
	if (trigger_starts(s))
		loop_timer_clear(s->trigger_timer);
	else if (s->n_triggers_hit == 0 && !s->standing)
		loop_timer_set(s->trigger_timer,
		    s->config->pb->trigger_config->trigger_timeout_ms, 0);
}

static void
delayed_free(struct delayed_clone *d)
{
	loop_timer_free(d->timer);
	free(d->name);
	free(d->producer_name);
	free(d);
}

static void
delayed_cb(void *arg)
{
	struct delayed_clone *d = arg, **p;
	struct session *s = d->session;

	for (p = &s->delayed_clones; *p != d; p = &(*p)->next)
		;
	*p = d->next;
	s->n_delayed_clones--;
	if (s->ops != NULL)
		s->ops->clone_trigger_hit(s->port, s->id, &d->t);
	delayed_free(d);
}

void
trigger_session_gone(struct session *s)
{
	const trigger_config_pb *t;
	struct delayed_clone *d;
	size_t i;

	while ((d = s->delayed_clones) != NULL) {
		s->delayed_clones = d->next;
		delayed_free(d);
	}
	if (s->trigger_producers == NULL)
		return;
	t = s->config->pb->trigger_config;
	for (i = 0; i < t->n_triggers; i++)
		name_filter_free(s->trigger_producers[i]);
	free(s->trigger_producers);
	s->trigger_producers = NULL;
}

static void
say_lost(struct service *sv, const char *producer)
{
	char text[128];

	log_limited(&sv->memory_log, loop_now_ms(), LOG_LEVEL_ERROR,
	    "no memory for a trigger of %s: it is lost", log_escape(text,
	    sizeof(text), producer, strlen(producer)));
}

static void
hit_clone(struct session *s, const trigger_pb *t, const struct producer *p,
    uint64_t now)
{
	struct delayed_clone *d;

	if (s->n_delayed_clones >= TRIGGER_DELAYED_MAX) {
		log_limited(&s->service->session_log, loop_now_ms(),
		    LOG_LEVEL_WARN, "session %llu: a trigger for a snapshot "
		    "is not told: %u are due already",
		    (unsigned long long)s->id, TRIGGER_DELAYED_MAX);
		return;
	}
	if ((d = calloc(1, sizeof(*d))) == NULL) {
		say_lost(s->service, p->name);
		return;
	}
	d->session = s;
	d->name = strdup(t->name);
	d->producer_name = strdup(p->name);
	d->timer = loop_timer_new(s->service->loop, delayed_cb, d);
	if (d->name == NULL || d->producer_name == NULL || d->timer == NULL) {
		delayed_free(d);
		say_lost(s->service, p->name);
		return;
	}
	d->t.name = d->name;
	d->t.producer_name = d->producer_name;
	d->t.producer_uid = p->uid;
	d->t.machine = p->machine->id;
	d->t.boot_time_ns = now;
	d->t.delay_ms = t->stop_delay_ms;
	d->next = s->delayed_clones;
	s->delayed_clones = d;
	s->n_delayed_clones++;
	loop_timer_set(d->timer, t->stop_delay_ms, 0);
}

static void
hit(struct session *s, const trigger_pb *t, const struct producer *p,
    uint64_t now)
{
	struct service_trigger record = {
		.name = t->name,
		.producer_name = p->name,
		.producer_uid = p->uid,
		.ts = now,
		.stop_delay_ms = t->stop_delay_ms,
	};
	bool first = s->n_triggers_hit++ == 0;

	event_log_snapshot(s->events);
	event_log_trigger(s->events, &record);
	switch (config_trigger_mode(s->config)) {
	case MODE(START_TRACING):
		if (s->state != SESSION_AWAITS_TRIGGER)
			return;
		/* stop_delay_ms is how long the session runs; 0: no end. */
		if (t->stop_delay_ms > 0)
			loop_timer_set(s->trigger_stop_timer,
			    t->stop_delay_ms, 0);
		session_start_by_trigger(s);
		return;
	case MODE(STOP_TRACING):
		if (!first)
			return;
		loop_timer_clear(s->trigger_timer);
		loop_timer_set(s->trigger_stop_timer, t->stop_delay_ms, 0);
		return;
	case MODE(CLONE_SNAPSHOT):
		hit_clone(s, t, p, now);
		return;
	default:
		return;
	}
}

/* Whether skip_probability and max_per_24_h let the trigger pass. */
static bool
may_pass(struct trigger_state *st, const trigger_pb *t, size_t hits_today)
{
	if (st->world.random(st->world.arg) < t->skip_probability)
		return false;
	return t->max_per_24_h == 0 || (hits_today < t->max_per_24_h &&
	    hits_today < TRIGGER_HISTORY_HITS_MAX);
}

/* The session's trigger of this name; NULL: none that producer may pull. */
static const trigger_pb *
find_trigger(const struct session *s, const char *name, const char *producer)
{
	const trigger_config_pb *t = s->config->pb->trigger_config;
	struct name_filter *m;
	size_t i;

	if (s->trigger_producers == NULL || !session_state_is_live(s->state))
		return NULL;
	for (i = 0; i < t->n_triggers; i++) {
		if (strcmp(t->triggers[i]->name, name) != 0)
			continue;
		m = s->trigger_producers[i];
		return m == NULL || name_filter_test(m, producer) ?
		    t->triggers[i] : NULL;
	}
	return NULL;
}

void
trigger_activate(struct producer *p, const char *name, size_t len)
{
	struct service *sv = p->service;
	struct trigger_state *st = sv->triggers;
	struct session *s, *next;
	const trigger_pb *t;
	uint64_t now = st->world.now_ns(st->world.arg);
	size_t hits_today;
	char *copy;
	bool any = false;

	if (len > sv->settings->limits.max_name_bytes)
		return;
	if ((copy = strndup(name, len)) == NULL) {
		say_lost(sv, p->name);
		return;
	}
	hits_today = trigger_history_count(st->history, copy, now);
	TAILQ_FOREACH_SAFE(s, &sv->sessions, link, next) {
		t = find_trigger(s, copy, p->name);
		if (t == NULL || !may_pass(st, t, hits_today))
			continue;
		any = true;
		hit(s, t, p, now);
	}
	/* Counted once, however many sessions it reached. */
	if (any)
		trigger_history_add(st->history, copy, now);
	cut_trigger(p, copy);
	free(copy);
}
