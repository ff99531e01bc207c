#include "service/session/trigger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "transport/log.h"
#include "service/session/event_log.h"
#include "service/session/match.h"
#include "service/session/model.h"
#include "service/session/session.h"
#include "service/session/session_life.h"
#include "service/session/settings.h"

typedef Perfetto__Protos__TraceConfig__TriggerConfig trigger_config_pb;
typedef Perfetto__Protos__TraceConfig__TriggerConfig__Trigger trigger_pb;

#define MODE(m)                                                               \
	PERFETTO__PROTOS__TRACE_CONFIG__TRIGGER_CONFIG__TRIGGER_MODE__##m

#define DAY_NS (24ull * 3600 * 1000000000)
/* Past hits that are remembered; the oldest give way. */
#define HISTORY_MAX 4096u

struct hit {
	uint64_t name_hash;
	uint64_t ts;
};

struct trigger_state {
	struct hit history[HISTORY_MAX]; /* a ring */
	size_t next;
};

/* A CLONE_SNAPSHOT that is told after its delay. */
struct delayed_clone {
	struct session *session;
	struct loop_timer *timer;
	char *name;
	char *producer_name;
	struct clone_trigger t;
};

static uint64_t
hash_name(const char *name)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (; *name != '\0'; name++)
		h = (h ^ (uint8_t)*name) * 0x100000001b3ull;
	return h;
}

struct trigger_state *
trigger_state_new(void)
{
	long seed = (long)loop_boottime_ns();

	/* For skip_probability: each daemon draws its own numbers. */
	(void)!getrandom(&seed, sizeof(seed), 0);
	srand48(seed);
	return calloc(1, sizeof(struct trigger_state));
}

void
trigger_state_free(struct trigger_state *t)
{
	free(t);
}

static uint32_t
hits_of_day(const struct trigger_state *t, const char *name, uint64_t now)
{
	uint64_t h = hash_name(name);
	uint32_t n = 0;
	size_t i;

	for (i = 0; i < HISTORY_MAX; i++)
		n += t->history[i].name_hash == h && t->history[i].ts != 0 &&
		    now - t->history[i].ts < DAY_NS;
	return n;
}

static void
remember(struct trigger_state *t, const char *name, uint64_t now)
{
	t->history[t->next].name_hash = hash_name(name);
	t->history[t->next].ts = now;
	t->next = (t->next + 1) % HISTORY_MAX;
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

static int
check_regexes(const trigger_config_pb *t, char *err, size_t err_size)
{
	struct match *m;
	size_t i;
	int ret = 0;

	for (i = 0; i < t->n_triggers && ret == 0; i++) {
		if (t->triggers[i]->producer_name_regex == NULL ||
		    t->triggers[i]->producer_name_regex[0] == '\0')
			continue;
		if ((m = match_new()) == NULL) {
			snprintf(err, err_size, "out of memory");
			return -1;
		}
		ret = match_add_regex(m, t->triggers[i]->producer_name_regex,
		    err, err_size);
		match_free(m);
	}
	return ret;
}

int
trigger_arm(struct session *s, char *err, size_t err_size)
{
	const trigger_config_pb *t = s->config->pb->trigger_config;
	struct loop *l = s->service->loop;

	if (t == NULL || t->trigger_mode == MODE(UNSPECIFIED))
		return 0;
	if (check_regexes(t, err, err_size) != 0)
		return -1;
	/* As today's service has it: the time-out of these is the duration. */
	s->trigger_timer = session_timer_new(s,
	    s->config->pb->prefer_suspend_clock_for_duration &&
	    t->trigger_mode != MODE(START_TRACING), timeout_cb);
	s->trigger_stop_timer = loop_timer_new(l, stop_cb, s);
	if (s->trigger_timer == NULL || s->trigger_stop_timer == NULL) {
		snprintf(err, err_size, "out of memory");
		return -1;
	}
	s->wait_for_start_trigger = t->trigger_mode == MODE(START_TRACING);
	loop_timer_set(s->trigger_timer, t->trigger_timeout_ms, 0);
	return 0;
}

static bool
fits(const trigger_pb *t, const char *name, const char *producer)
{
	struct match *m;
	char err[64];
	bool ok;

	if (strcmp(t->name, name) != 0)
		return false;
	if (t->producer_name_regex == NULL ||
	    t->producer_name_regex[0] == '\0')
		return true;
	if ((m = match_new()) == NULL)
		return false;
	ok = match_add_regex(m, t->producer_name_regex, err, sizeof(err)) ==
	    0 && match_test(m, producer);
	match_free(m);
	return ok;
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
tell_clone(struct session *s, const struct clone_trigger *t)
{
	if (s->ops != NULL)
		s->ops->clone_trigger_hit(s->port, s->id, t);
}

static void
delayed_cb(void *arg)
{
	struct delayed_clone *d = arg;

	tell_clone(d->session, &d->t);
	d->session->delayed_clone = NULL;
	delayed_free(d);
}

void
trigger_session_gone(struct session *s)
{
	if (s->delayed_clone != NULL)
		delayed_free(s->delayed_clone);
	s->delayed_clone = NULL;
}

static void
hit_clone(struct session *s, const trigger_pb *t, const struct producer *p,
    uint64_t now)
{
	struct delayed_clone *d;

	/* One at a time: a snapshot that is due covers those after it. */
	if (s->delayed_clone != NULL || (d = calloc(1, sizeof(*d))) == NULL)
		return;
	d->session = s;
	d->name = strdup(t->name);
	d->producer_name = strdup(p->name);
	d->timer = loop_timer_new(s->service->loop, delayed_cb, d);
	if (d->name == NULL || d->producer_name == NULL || d->timer == NULL) {
		delayed_free(d);
		return;
	}
	d->t.name = d->name;
	d->t.producer_name = d->producer_name;
	d->t.producer_uid = p->uid;
	d->t.boot_time_ns = now;
	d->t.delay_ms = t->stop_delay_ms;
	s->delayed_clone = d;
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

	switch (s->config->pb->trigger_config->trigger_mode) {
	case MODE(START_TRACING):
		event_log_trigger(s->events, &record);
		if (!first)
			return;
		loop_timer_clear(s->trigger_timer);
		session_start_by_trigger(s);
		loop_timer_set(s->trigger_stop_timer, t->stop_delay_ms, 0);
		return;
	case MODE(STOP_TRACING):
		event_log_trigger(s->events, &record);
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

void
trigger_activate(struct producer *p, const char *name, size_t len)
{
	struct service *sv = p->service;
	struct session *s, *next;
	uint64_t now = loop_boottime_ns();
	char *copy;
	bool any = false;
	size_t i;

	if (len > sv->settings->limits.max_name_bytes ||
	    (copy = strndup(name, len)) == NULL)
		return;
	TAILQ_FOREACH_SAFE(s, &sv->sessions, link, next) {
		const trigger_config_pb *t = s->config->pb->trigger_config;

		if (t == NULL || s->ending || (s->state !=
		    SESSION_CONFIGURED && s->state != SESSION_STARTED))
			continue;
		for (i = 0; i < t->n_triggers; i++) {
			if (!fits(t->triggers[i], copy, p->name))
				continue;
			if (t->triggers[i]->max_per_24_h != 0 &&
			    hits_of_day(sv->triggers, copy, now) >=
			    t->triggers[i]->max_per_24_h)
				break;
			if (t->triggers[i]->skip_probability > 0 &&
			    drand48() < t->triggers[i]->skip_probability)
				break;
			any = true;
			hit(s, t->triggers[i], p, now);
			break;
		}
	}
	if (any)
		remember(sv->triggers, copy, now);
	free(copy);
}
