#include "client/probes/probe_source.h"

#include <stdlib.h>
#include <time.h>

#include "client/probes/process_stats.h"
#include "client/probes/sys_stats.h"
#include "protos/data_source_config.pb-c.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

typedef Perfetto__Protos__DataSourceConfig Config;

/* One of the two probes is set. */
struct probe_instance {
	struct probe_sources *sources; /* borrowed */
	struct process_stats *process_stats;
	struct sys_stats *sys_stats;
	struct producer_instance *instance; /* borrowed */
	struct trace_writer *writer;        /* the instance's */
	struct loop_timer *timer;
	uint32_t period_ms;
	uint64_t dropped; /* packets, as last logged */
};

static void
write_packet(void *arg, const void *packet, size_t len)
{
	struct probe_instance *i = arg;

	trace_writer_write(i->writer, packet, len);
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
	uint64_t n = trace_writer_dropped(i->writer);

	if (n == i->dropped)
		return;
	log_warn("instance %llu: %llu packets dropped, the memory is full",
	    (unsigned long long)producer_instance_id(i->instance),
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
destroy(void *ctx)
{
	struct probe_instance *i = ctx;

	if (i == NULL)
		return;
	loop_timer_free(i->timer);
	process_stats_free(i->process_stats);
	sys_stats_free(i->sys_stats);
	free(i);
}

/* Stalls by default: a scan may be larger than the shared memory. */
static enum trace_writer_policy
policy_of(const Config *c)
{
	return c->buffer_exhausted_policy ==
	    PERFETTO__PROTOS__DATA_SOURCE_CONFIG__BUFFER_EXHAUSTED_POLICY__BUFFER_EXHAUSTED_DROP ?
	    TRACE_WRITER_DROP : TRACE_WRITER_STALL;
}

static struct probe_instance *
instance_new(struct probe_sources *s, struct producer_instance *pi,
    const Config *c)
{
	struct probe_instance *i;

	if ((i = calloc(1, sizeof(*i))) == NULL)
		return NULL;
	i->sources = s;
	i->instance = pi;
	i->timer = loop_timer_new(s->loop, poll_cb, i);
	i->writer = producer_instance_writer(pi, policy_of(c));
	if (i->timer == NULL || i->writer == NULL) {
		destroy(i);
		return NULL;
	}
	return i;
}

/* Makes the probe that src stands for; -1: no memory, or no /proc. */
static int
make_probe(struct probe_instance *i, const struct producer_source *src,
    const Config *c)
{
	struct probe_sources *s = i->sources;

	if (src == &s->process_stats) {
		i->process_stats = process_stats_new(s->env,
		    c->process_stats_config, write_packet, i);
		if (i->process_stats == NULL)
			return -1;
		i->period_ms = process_stats_period_ms(i->process_stats);
	} else {
		i->sys_stats = sys_stats_new(s->env, c->sys_stats_config,
		    write_packet, i);
		if (i->sys_stats == NULL)
			return -1;
		i->period_ms = sys_stats_period_ms(i->sys_stats);
	}
	return 0;
}

static void *
setup(struct probe_sources *s, const struct producer_source *src,
    struct producer_instance *pi, const uint8_t *config, size_t len)
{
	struct probe_instance *i = NULL;
	Config *c;

	c = perfetto__protos__data_source_config__unpack(NULL, len, config);
	if (c == NULL || (i = instance_new(s, pi, c)) == NULL ||
	    make_probe(i, src, c) < 0)
		goto fail;
	perfetto__protos__data_source_config__free_unpacked(c, NULL);
	return i;

fail:
	log_warn("cannot set up %s", src->name);
	destroy(i);
	perfetto__protos__data_source_config__free_unpacked(c, NULL);
	return NULL;
}

static void *
setup_process_stats(void *arg, struct producer_instance *pi,
    const uint8_t *config, size_t len)
{
	struct probe_sources *s = arg;

	return setup(s, &s->process_stats, pi, config, len);
}

static void *
setup_sys_stats(void *arg, struct producer_instance *pi,
    const uint8_t *config, size_t len)
{
	struct probe_sources *s = arg;

	return setup(s, &s->sys_stats, pi, config, len);
}

static void
start(void *ctx)
{
	struct probe_instance *i = ctx;

	if (i->process_stats != NULL)
		process_stats_start(i->process_stats);
	if (i->period_ms != 0)
		poll_cb(i);
}

static void
stop(void *ctx)
{
	struct probe_instance *i = ctx;

	loop_timer_clear(i->timer);
	log_dropped(i);
}

static void
clear_incremental_state(void *ctx)
{
	struct probe_instance *i = ctx;

	process_stats_clear_incremental_state(i->process_stats);
}

void
probe_sources_init(struct probe_sources *s, struct loop *l,
    struct probe_env *env)
{
	s->loop = l;
	s->env = env;
	s->process_stats = (struct producer_source){
		.name = "linux.process_stats",
		.handles_incremental_state_clear = true,
		.setup = setup_process_stats,
		.start = start,
		.clear_incremental_state = clear_incremental_state,
		.stop = stop,
		.destroy = destroy,
		.arg = s,
	};
	s->sys_stats = (struct producer_source){
		.name = "linux.sys_stats",
		.setup = setup_sys_stats,
		.start = start,
		.stop = stop,
		.destroy = destroy,
		.arg = s,
	};
}

int
probe_sources_register(struct probe_sources *s, struct producer *p)
{
	if (producer_add_source(p, &s->process_stats) < 0 ||
	    producer_add_source(p, &s->sys_stats) < 0)
		return -1;
	return 0;
}
