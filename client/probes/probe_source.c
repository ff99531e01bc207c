#include "client/probes/probe_source.h"

#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <tributary/data_source.h>

#include "client/probes/process_stats.h"
#include "client/probes/sys_stats.h"
#include "protos/data_source_config.pb-c.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

typedef Perfetto__Protos__DataSourceConfig Config;

/* After a packet was dropped: the memory may have room again. */
#define RETELL_MS 1000u

/* One of the two probes is set. */
struct probe_instance {
	TAILQ_ENTRY(probe_instance) next; /* of processes */
	struct probe_sources *sources;    /* borrowed */
	struct process_stats *process_stats;
	struct sys_stats *sys_stats;
	struct tributary_instance *instance; /* borrowed */
	struct loop_timer *timer;
	struct loop_timer *retell; /* armed by a dropped packet */
	uint32_t period_ms;
	uint64_t dropped; /* packets, as last logged */
	bool started;
};

struct encoded {
	const void *data;
	size_t len;
};

static void
put_encoded(struct tributary_packet *p, struct tributary_instance *i,
    void *context, bool first, void *arg)
{
	const struct encoded *e = arg;

	tributary_put_encoded(p, e->data, e->len);
}

/* Drops are counted: log_dropped(). */
static bool
write_packet(void *arg, const void *packet, size_t len)
{
	struct probe_instance *i = arg;
	struct encoded e = { packet, len };

	if (tributary_instance_write(i->instance, put_encoded, &e))
		return true;
	if (i->process_stats != NULL)
		loop_timer_set(i->retell, RETELL_MS, 0);
	return false;
}

/*
 * Polls are aligned to multiples of the period on the wall clock, so that polls
 * of several machines and data sources coincide.
 */
static void
arm(struct probe_instance *i)
{
	struct timespec ts;
	uint64_t now_ms;

	clock_gettime(CLOCK_REALTIME, &ts);
	now_ms = (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
	loop_timer_set(i->timer, i->period_ms - now_ms % i->period_ms, 0);
}

static void
log_dropped(struct probe_instance *i)
{
	uint64_t n = tributary_instance_dropped(i->instance);

	if (n == i->dropped)
		return;
	log_warn("session %llu: %llu packets dropped, the memory is full",
	    (unsigned long long)tributary_instance_session(i->instance),
	    (unsigned long long)(n - i->dropped));
	i->dropped = n;
}

static void
poll_cb(void *arg)
{
	struct probe_instance *i = arg;

	arm(i);
	if (i->process_stats != NULL)
		process_stats_poll(i->process_stats);
	else
		sys_stats_poll(i->sys_stats);
	log_dropped(i);
}

static void
retell_cb(void *arg)
{
	struct probe_instance *i = arg;

	process_stats_retell(i->process_stats);
	log_dropped(i);
}

static void
instance_free(struct probe_instance *i)
{
	if (i == NULL)
		return;
	if (i->process_stats != NULL)
		TAILQ_REMOVE(&i->sources->processes, i, next);
	loop_timer_free(i->timer);
	loop_timer_free(i->retell);
	process_stats_free(i->process_stats);
	sys_stats_free(i->sys_stats);
	free(i);
}

/* NULL: no memory, no /proc, or a config that cannot be read. */
static struct probe_instance *
instance_new(struct probe_sources *s, struct tributary_instance *of)
{
	struct probe_instance *i;

	if ((i = calloc(1, sizeof(*i))) == NULL)
		return NULL;
	i->sources = s;
	i->instance = of;
	i->timer = loop_timer_new(s->loop, poll_cb, i);
	i->retell = loop_timer_new(s->loop, retell_cb, i);
	if (i->timer == NULL || i->retell == NULL) {
		instance_free(i);
		return NULL;
	}
	return i;
}

static bool
make_process_stats(struct probe_instance *i, struct probe_sources *s,
    const Config *c)
{
	i->process_stats = process_stats_new(s->env, c->process_stats_config,
	    write_packet, i);
	if (i->process_stats == NULL)
		return false;
	TAILQ_INSERT_TAIL(&s->processes, i, next);
	i->period_ms = process_stats_period_ms(i->process_stats);
	return true;
}

static bool
make_sys_stats(struct probe_instance *i, struct probe_sources *s,
    const Config *c)
{
	i->sys_stats = sys_stats_new(s->env, c->sys_stats_config, write_packet,
	    i);
	if (i->sys_stats != NULL)
		i->period_ms = sys_stats_period_ms(i->sys_stats);
	return i->sys_stats != NULL;
}

struct probe_kind {
	const char *name;
	bool (*make)(struct probe_instance *i, struct probe_sources *s,
	    const Config *c);
};

static const struct probe_kind process_stats_kind = {
	"linux.process_stats", make_process_stats,
};
static const struct probe_kind sys_stats_kind = {
	"linux.sys_stats", make_sys_stats,
};

static struct probe_instance *
set_up(const struct probe_kind *kind, struct tributary_instance *of,
    const void *config, size_t len, struct probe_sources *s)
{
	struct probe_instance *i = NULL;
	Config *c;

	c = perfetto__protos__data_source_config__unpack(NULL, len, config);
	if (c == NULL || (i = instance_new(s, of)) == NULL ||
	    !kind->make(i, s, c)) {
		log_warn("cannot set up %s", kind->name);
		instance_free(i);
		i = NULL;
	}
	perfetto__protos__data_source_config__free_unpacked(c, NULL);
	return i;
}

static bool
setup_process_stats(struct tributary_instance *of, const void *config,
    size_t len, void *arg, void **context)
{
	*context = set_up(&process_stats_kind, of, config, len, arg);
	return *context != NULL;
}

static bool
setup_sys_stats(struct tributary_instance *of, const void *config, size_t len,
    void *arg, void **context)
{
	*context = set_up(&sys_stats_kind, of, config, len, arg);
	return *context != NULL;
}

static void
start(struct tributary_instance *of, void *context)
{
	struct probe_instance *i = context;

	i->started = true;
	if (i->process_stats != NULL)
		process_stats_start(i->process_stats);
	if (i->period_ms != 0)
		poll_cb(i);
}

static bool
stop(struct tributary_instance *of, void *context)
{
	struct probe_instance *i = context;

	loop_timer_clear(i->timer);
	loop_timer_clear(i->retell);
	i->started = false;
	log_dropped(i);
	return true;
}

static void
destroy(struct tributary_instance *of, void *context)
{
	instance_free(context);
}

static void
clear_incremental_state(struct tributary_instance *of, void *context)
{
	struct probe_instance *i = context;

	process_stats_clear_incremental_state(i->process_stats);
}

static const struct tributary_source_ops process_stats_ops = {
	.size = sizeof(process_stats_ops),
	.setup = setup_process_stats,
	.start = start,
	.clear_incremental_state = clear_incremental_state,
	.stop = stop,
	.destroy = destroy,
};

static const struct tributary_source_ops sys_stats_ops = {
	.size = sizeof(sys_stats_ops),
	.setup = setup_sys_stats,
	.start = start,
	.stop = stop,
	.destroy = destroy,
};

static int
add(struct probe_sources *s, const char *name,
    const struct tributary_source_ops *ops)
{
	const struct tributary_source_options o = {
		.size = sizeof(o),
		.name = name,
		/* A scan may be larger than the shared memory. */
		.full = TRIBUTARY_FULL_STALL,
		/* One session's wish is not to end the data of all others. */
		.no_abort = true,
		.arg = s,
	};

	return tributary_source_add(&o, ops) != NULL ? 0 : -1;
}

void
probe_sources_tell_threads(struct probe_sources *s, uint64_t session,
    const struct probe_threads *threads)
{
	struct probe_instance *i;

	TAILQ_FOREACH(i, &s->processes, next) {
		if (i->started &&
		    tributary_instance_session(i->instance) == session)
			process_stats_tell_threads(i->process_stats,
			    threads->tids, threads->n, threads->changed);
	}
}

int
probe_sources_add(struct probe_sources *s)
{
	TAILQ_INIT(&s->processes);
	if (add(s, process_stats_kind.name, &process_stats_ops) != 0 ||
	    add(s, sys_stats_kind.name, &sys_stats_ops) != 0)
		return -1;
	return 0;
}
