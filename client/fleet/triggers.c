#include "client/fleet/triggers.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/collectors.h"
#include "client/fleet/trigger_pass.h"
#include "client/library/consumer_loop.h"
#include "client/library/trigger_call.h"
#include "client/tracing/consumer/consumer.h"
#include "protos/service_state.pb-c.h"
#include "protos/trace_config.pb-c.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

#define ERROR_BYTES 2048
/* Pause before a collector is tried again, or asked whether it is free. */
#define RETRY_MS 500u
/* The session is set up anew after a day: settings limit how long one lasts. */
#define SESSION_MS 86400000u
#define SESSION_NAME "fleet_triggers"
/* Producers of this program's kind pass nothing on, or it would go round. */
#define NOT_OF_A_FLEET "(?!" TRIGGER_CALL_FLEET ")(?s:.*)"

typedef Perfetto__Protos__TraceConfig trace_config;
typedef Perfetto__Protos__TraceConfig__TriggerConfig trigger_config;
typedef Perfetto__Protos__TraceConfig__TriggerConfig__Trigger trigger;

enum watch_state {
	WATCH_NEW,     /* nothing was said of it yet */
	WATCH_HELD,    /* our session is there */
	WATCH_STANDBY, /* another program's is */
	WATCH_GONE,    /* cannot be reached, or refuses */
};

/* One collector. */
struct watch {
	struct triggers *all;
	const struct collector *is;
	struct consumer *consumer; /* owned; NULL: retry is armed */
	struct loop_timer *retry;
	struct loop_timer *late; /* until the session is there */
	enum watch_state state;
};

struct triggers {
	const struct collectors *collectors;
	struct loop *loop;
	struct trigger_passes *passes;
	struct watch *watches; /* collectors->n */
	uint8_t *config;
	size_t config_bytes;
};

/* ---- the session at a collector ---- */

static void
init_triggers(trigger *all, trigger **list, const struct collectors *c)
{
	size_t i;

	for (i = 0; i < c->n_fleet_triggers; i++) {
		perfetto__protos__trace_config__trigger_config__trigger__init(
		    &all[i]);
		all[i].name = (char *)c->fleet_triggers[i];
		all[i].producer_name_regex = (char *)NOT_OF_A_FLEET;
		all[i].has_stop_delay_ms = true;
		all[i].stop_delay_ms = 1;
		list[i] = &all[i];
	}
}

/*
 * Config of a session with CLONE_SNAPSHOT triggers, which the collector tells
 * its consumer of.  No data source is in it, and no program clones it.
 */
static int
make_config(struct triggers *t)
{
	size_t n = t->collectors->n_fleet_triggers;
	Perfetto__Protos__TraceConfig__BufferConfig buffer, *buffers = &buffer;
	trigger *all = calloc(n, sizeof(*all));
	trigger **list = calloc(n, sizeof(*list));
	trigger_config triggers;
	trace_config config;

	perfetto__protos__trace_config__init(&config);
	perfetto__protos__trace_config__buffer_config__init(&buffer);
	perfetto__protos__trace_config__trigger_config__init(&triggers);
	buffer.has_size_kb = true;
	buffer.size_kb = 4;
	config.buffers = &buffers;
	config.n_buffers = 1;
	config.unique_session_name = (char *)SESSION_NAME;
	config.trigger_config = &triggers;
	triggers.has_trigger_mode = true;
	triggers.trigger_mode = PERFETTO__PROTOS__TRACE_CONFIG__TRIGGER_CONFIG__TRIGGER_MODE__CLONE_SNAPSHOT;
	triggers.has_trigger_timeout_ms = true;
	triggers.trigger_timeout_ms = SESSION_MS;
	triggers.triggers = list;
	triggers.n_triggers = n;
	if (all != NULL && list != NULL) {
		init_triggers(all, list, t->collectors);
		t->config = malloc(
		    perfetto__protos__trace_config__get_packed_size(&config));
	}
	if (t->config != NULL)
		t->config_bytes = perfetto__protos__trace_config__pack(&config,
		    t->config);
	free(all);
	free(list);
	return t->config == NULL ? -1 : 0;
}

/* Says a change, and not each attempt. */
static void
set_state(struct watch *w, enum watch_state state, const char *why)
{
	char text[512];

	if (w->state == state)
		return;
	w->state = state;
	switch (state) {
	case WATCH_HELD:
		log_info("%s: its triggers are passed on", w->is->name);
		break;
	case WATCH_STANDBY:
		log_info("%s: another program passes its triggers on; waiting "
		    "to take over", w->is->name);
		break;
	case WATCH_GONE:
		log_warn("%s: %s", w->is->name, log_escape(text, sizeof(text),
		    why, strlen(why)));
		break;
	case WATCH_NEW:
		break;
	}
}

static void
let_go(struct watch *w)
{
	consumer_free(w->consumer);
	w->consumer = NULL;
	loop_timer_clear(w->late);
	loop_timer_set(w->retry, RETRY_MS, 0);
}

static void
late_cb(void *arg)
{
	struct watch *w = arg;

	set_state(w, WATCH_GONE, "the collector does not answer");
	let_go(w);
}

static void
disconnected_cb(void *arg, const char *why)
{
	struct watch *w = arg;

	set_state(w, WATCH_GONE, why);
	let_go(w);
}

/* Whether the name of the session is taken, by Perfetto's words or ours. */
static bool
is_taken(const char *error)
{
	return strstr(error, SESSION_NAME) != NULL &&
	    strstr(error, "already exists") != NULL;
}

static void
tracing_disabled_cb(void *arg, const char *error)
{
	struct watch *w = arg;

	if (error != NULL && is_taken(error))
		set_state(w, WATCH_STANDBY, NULL);
	else if (error != NULL)
		set_state(w, WATCH_GONE, error);
	let_go(w);
}

/* Answers come in order: the session is there. */
static void
stats_cb(void *arg, const uint8_t *data, size_t len)
{
	struct watch *w = arg;

	if (data == NULL)
		return; /* tracing_disabled says why */
	loop_timer_clear(w->late);
	set_state(w, WATCH_HELD, NULL);
}

static void
connected_cb(void *arg)
{
	struct watch *w = arg;

	consumer_observe_events(w->consumer,
	    PERFETTO__PROTOS__OBSERVABLE_EVENTS__TYPE__TYPE_CLONE_TRIGGER_HIT);
	consumer_enable_tracing(w->consumer, w->all->config,
	    w->all->config_bytes, -1);
	consumer_get_trace_stats(w->consumer, stats_cb, w);
}

static void
observed_cb(void *arg, const uint8_t *data, size_t len)
{
	Perfetto__Protos__ObservableEvents *events;
	struct watch *w = arg;
	size_t i;

	events = perfetto__protos__observable_events__unpack(NULL, len, data);
	if (events == NULL)
		return;
	for (i = 0; events->clone_trigger_hit != NULL &&
	    i < w->all->collectors->n; i++)
		if (&w->all->collectors->list[i] != w->is)
			trigger_passes_add(w->all->passes, w->is,
			    &w->all->collectors->list[i],
			    events->clone_trigger_hit);
	perfetto__protos__observable_events__free_unpacked(events, NULL);
}

static const struct consumer_ops ops = {
	.connected = connected_cb,
	.disconnected = disconnected_cb,
	.tracing_disabled = tracing_disabled_cb,
	.observed = observed_cb,
};

static void
retry_cb(void *arg)
{
	struct watch *w = arg;
	char err[ERROR_BYTES];

	w->consumer = consumer_loop_new(w->all->loop,
	    &(struct consumer_loop_setup){ .address = &w->is->consumer.addr,
		.how = &w->is->consumer.how, .ops = &ops, .arg = w }, err,
	    sizeof(err));
	if (w->consumer != NULL) {
		loop_timer_set(w->late, w->is->timeout_ms, 0);
		return;
	}
	set_state(w, WATCH_GONE, err);
	loop_timer_set(w->retry, RETRY_MS, 0);
}

/* ---- the whole ---- */

static void
stop_cb(void *arg)
{
	loop_stop(((struct triggers *)arg)->loop);
}

static int
begin_watch(struct triggers *t, size_t i)
{
	struct watch *w = &t->watches[i];

	w->all = t;
	w->is = &t->collectors->list[i];
	w->retry = loop_timer_new(t->loop, retry_cb, w);
	w->late = loop_timer_new(t->loop, late_cb, w);
	if (w->retry == NULL || w->late == NULL)
		return -1;
	retry_cb(w);
	return 0;
}

static int
begin(struct triggers *t)
{
	size_t i;

	signal(SIGPIPE, SIG_IGN);
	t->loop = loop_new();
	t->watches = calloc(t->collectors->n, sizeof(*t->watches));
	if (t->loop == NULL || t->watches == NULL || make_config(t) != 0 ||
	    (t->passes = trigger_passes_new(t->loop)) == NULL)
		return -1;
	for (i = 0; i < t->collectors->n; i++)
		if (begin_watch(t, i) != 0)
			return -1;
	if (loop_on_signal(t->loop, SIGINT, stop_cb, t) < 0 ||
	    loop_on_signal(t->loop, SIGTERM, stop_cb, t) < 0 ||
	    loop_on_signal(t->loop, SIGHUP, stop_cb, t) < 0)
		return -1;
	return 0;
}

static void
end(struct triggers *t)
{
	size_t i;

	for (i = 0; t->watches != NULL && i < t->collectors->n; i++) {
		consumer_free(t->watches[i].consumer);
		loop_timer_free(t->watches[i].retry);
		loop_timer_free(t->watches[i].late);
	}
	trigger_passes_free(t->passes);
	free(t->watches);
	free(t->config);
	if (t->loop != NULL)
		loop_free(t->loop);
}

int
triggers_run(const struct collectors *c, char *err, size_t err_size)
{
	struct triggers t = { .collectors = c };
	int rc = 0;

	if (c->n_fleet_triggers == 0)
		return FAILURE(err, err_size, "the fleet's file names no "
		    "triggers: add fleet_triggers: \"NAME\" for each that is "
		    "to reach all collectors");
	if (collectors_want_consumers(c, err, err_size) != 0 ||
	    collectors_want_producers(c, err, err_size) != 0)
		return -1;
	if (begin(&t) == 0)
		loop_run(t.loop);
	else
		rc = FAILURE(err, err_size, "out of memory, or of descriptors");
	end(&t);
	return rc;
}
