/*
 * A buffer of the kernel's: set up with its first session, and given up, all put
 * back, with its last.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ftrace/session/ftrace_internal.h"
#include "transport/base/log.h"

void
ring_path(const struct ring *r, char path[TRACEFS_PATH_MAX], const char *name)
{
	snprintf(path, TRACEFS_PATH_MAX, "%.200s%.300s", r->prefix, name);
}

int
ring_set(struct ring *r, const char *name, const char *value)
{
	char path[TRACEFS_PATH_MAX];

	ring_path(r, path, name);
	return changes_set(r->ftrace->changes, path, value);
}

static void
set_or_warn(struct ring *r, const char *name, const char *value)
{
	if (ring_set(r, name, value) < 0)
		log_warn("ftrace: %s/%s%s cannot be set to \"%s\": %s",
		    tracefs_root(r->ftrace->tracefs), r->prefix, name, value,
		    strerror(errno));
}

/* ---- the clock ---- */

static const struct {
	const char *name;
	enum ring_clock clock;
	clockid_t id; /* -1: no program can read it */
} clocks[] = {
	{ "mono_raw", RING_MONO_RAW, CLOCK_MONOTONIC_RAW },
	/* In the order in which they are taken. */
	{ "boot", RING_BOOT, CLOCK_BOOTTIME },
	{ "global", RING_GLOBAL, -1 },
	{ "local", RING_LOCAL, -1 },
};
#define CLOCKS (sizeof(clocks) / sizeof(clocks[0]))

uint64_t
ring_now(const struct ring *r)
{
	struct timespec ts;
	size_t i;

	for (i = 0; i < CLOCKS; i++) {
		if (clocks[i].clock != r->clock)
			continue;
		if (clocks[i].id < 0 || clock_gettime(clocks[i].id, &ts) < 0)
			return 0;
		return (uint64_t)ts.tv_sec * 1000000000u +
		    (uint64_t)ts.tv_nsec;
	}
	return 0;
}

/* Changing the clock empties the buffer: one that is kept keeps its clock. */
static void
find_clock(struct ring *r)
{
	char path[TRACEFS_PATH_MAX], *value;
	size_t i;

	r->clock = RING_UNKNOWN;
	ring_path(r, path, "trace_clock");
	if ((value = tracefs_value(r->ftrace->tracefs, path)) == NULL)
		return;
	for (i = 0; i < CLOCKS; i++) {
		if (strcmp(value, clocks[i].name) == 0)
			r->clock = clocks[i].clock;
	}
	free(value);
}

static void
set_clock(struct ring *r, bool monotonic_raw)
{
	char path[TRACEFS_PATH_MAX];
	size_t i;

	ring_path(r, path, "trace_clock");
	for (i = monotonic_raw ? 0 : 1; i < CLOCKS; i++) {
		if (!tracefs_offers(r->ftrace->tracefs, path, clocks[i].name))
			continue;
		if (ring_set(r, "trace_clock", clocks[i].name) == 0)
			break;
	}
	find_clock(r);
}

/* ---- the buffer ---- */

static uint64_t
memory_bytes(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

	return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
}

/* The largest that any session asked for. */
static void
set_buffer_size(struct ring *r, const struct ftrace_config *c)
{
	uint32_t kb = ftrace_config_buffer_kb(c, memory_bytes());
	char text[16];

	if (kb <= r->buffer_kb)
		return;
	snprintf(text, sizeof(text), "%u", kb);
	set_or_warn(r, "buffer_size_kb", text);
	r->buffer_kb = kb;
}

/* Events that another program has switched on are told, once. */
static void
look_for_others(struct ring *r)
{
	char path[TRACEFS_PATH_MAX], *value;

	ring_path(r, path, "set_event");
	value = tracefs_value(r->ftrace->tracefs, path);
	if (value != NULL && value[0] != '\0')
		log_warn("ftrace: another program has events on in %s/%s; the "
		    "buffer is shared with it, and its events, or ours, may "
		    "be missing: give the session an instance_name of its own",
		    tracefs_root(r->ftrace->tracefs), r->prefix);
	free(value);
}

static void
set_options(struct ring *r, const struct ftrace_config *c)
{
	char name[TRACEFS_PATH_MAX];
	size_t i;

	for (i = 0; i < c->n_options; i++) {
		snprintf(name, sizeof(name), "options/%.200s",
		    c->options[i].name);
		set_or_warn(r, name, c->options[i].on ? "1" : "0");
	}
	if (c->cpumask != NULL)
		set_or_warn(r, "tracing_cpumask", c->cpumask);
}

static void
set_up(struct ring *r, const struct ftrace_config *c)
{
	char path[TRACEFS_PATH_MAX];

	look_for_others(r);
	if (c->preserve_buffer) {
		find_clock(r);
		set_options(r, c);
		return;
	}
	/* The kernel writes nothing while it is set up. */
	set_or_warn(r, "tracing_on", "0");
	set_clock(r, c->monotonic_raw);
	set_buffer_size(r, c);
	ring_path(r, path, "trace");
	if (tracefs_write(r->ftrace->tracefs, path, "") < 0)
		log_warn("ftrace: %s/%s cannot be emptied: %s",
		    tracefs_root(r->ftrace->tracefs), path, strerror(errno));
	set_options(r, c);
}

/* ---- processors ---- */

static int
open_cpus(struct ring *r, char why[FTRACE_WHY_MAX])
{
	char path[TRACEFS_PATH_MAX], name[64];
	unsigned i, n_open = 0;

	r->n_cpus = tracefs_cpus(r->ftrace->tracefs, r->prefix);
	if (r->n_cpus == 0 ||
	    (r->cpus = calloc(r->n_cpus, sizeof(*r->cpus))) == NULL) {
		snprintf(why, FTRACE_WHY_MAX, "%.200s/%.200sper_cpu: %s",
		    tracefs_root(r->ftrace->tracefs), r->prefix,
		    strerror(errno));
		r->n_cpus = 0;
		return -1;
	}
	for (i = 0; i < r->n_cpus; i++) {
		snprintf(name, sizeof(name), "per_cpu/cpu%u/trace_pipe_raw", i);
		ring_path(r, path, name);
		r->cpus[i].fd = tracefs_open_file(r->ftrace->tracefs, path,
		    O_RDONLY | O_NONBLOCK);
		n_open += r->cpus[i].fd >= 0;
	}
	if (n_open > 0)
		return 0;
	snprintf(why, FTRACE_WHY_MAX, "%.200s/%.200s cannot be read: %s",
	    tracefs_root(r->ftrace->tracefs), path, strerror(errno));
	return -1;
}

static void
close_cpus(struct ring *r)
{
	unsigned i;

	for (i = 0; i < r->n_cpus; i++) {
		if (r->cpus[i].full != NULL)
			event_free(r->cpus[i].full);
		if (r->cpus[i].fd >= 0)
			close(r->cpus[i].fd);
	}
	free(r->cpus);
	r->cpus = NULL;
	r->n_cpus = 0;
}

/* ---- life ---- */

/* Frees it, and puts back what was changed for it. */
static void
give_up(struct ring *r)
{
	char failed[TRACEFS_PATH_MAX], prefix[TRACEFS_PATH_MAX];
	struct ftrace *f = r->ftrace;

	strcpy(prefix, r->prefix);
	TAILQ_REMOVE(&f->rings, r, next);
	loop_call_cancel(&r->turn);
	loop_timer_free(r->tick);
	/* An instance with open files cannot be removed. */
	close_cpus(r);
	free(r);
	if (changes_undo_below(f->changes, prefix, failed, sizeof(failed)) > 0)
		log_warn("linux.ftrace: %s/%s cannot be put back",
		    tracefs_root(f->tracefs), failed);
}

/* Makes the instance that the ring is of.  -1: errno says why. */
static int
make_instance(struct ring *r, const char *name)
{
	char path[TRACEFS_PATH_MAX];

	snprintf(path, sizeof(path), "instances/%.200s", name);
	snprintf(r->prefix, sizeof(r->prefix), "instances/%.200s/", name);
	return changes_make_instance(r->ftrace->changes, path);
}

static struct ring *
ring_new(struct ftrace *f, const struct ftrace_config *c,
    char why[FTRACE_WHY_MAX])
{
	struct ring *r;

	if ((r = calloc(1, sizeof(*r))) == NULL ||
	    (r->tick = loop_timer_new(f->loop, ring_tick_cb, r)) == NULL) {
		free(r);
		snprintf(why, FTRACE_WHY_MAX, "no memory");
		return NULL;
	}
	r->ftrace = f;
	TAILQ_INIT(&r->sessions);
	TAILQ_INSERT_TAIL(&f->rings, r, next);
	if (c->instance != NULL && make_instance(r, c->instance) < 0) {
		snprintf(why, FTRACE_WHY_MAX, "%.200s/%.200s cannot be made: "
		    "%s", tracefs_root(f->tracefs), r->prefix,
		    strerror(errno));
		give_up(r);
		return NULL;
	}
	if (open_cpus(r, why) < 0) {
		give_up(r);
		return NULL;
	}
	set_up(r, c);
	ring_losses_begin(r);
	return r;
}

struct ring *
ring_get(struct ftrace *f, const struct ftrace_config *c,
    char why[FTRACE_WHY_MAX])
{
	char prefix[TRACEFS_PATH_MAX] = "";
	struct ring *r;

	if (c->instance != NULL)
		snprintf(prefix, sizeof(prefix), "instances/%.200s/",
		    c->instance);
	TAILQ_FOREACH(r, &f->rings, next) {
		if (strcmp(r->prefix, prefix) != 0)
			continue;
		if (!c->preserve_buffer)
			set_buffer_size(r, c);
		return r;
	}
	return ring_new(f, c, why);
}

void
ring_leave(struct ring *r)
{
	if (!TAILQ_EMPTY(&r->sessions)) {
		ring_set_filters(r);
		ring_sessions_changed(r);
		return;
	}
	ring_losses_end(r);
	give_up(r);
}

/* The lowest that a session asks for; 0: none does. */
static unsigned
lowest_percent(const struct ring *r, bool *all)
{
	const struct ftrace_session *s;
	unsigned lowest = 0, percent;

	*all = true;
	TAILQ_FOREACH(s, &r->sessions, next) {
		percent = s->config->drain_percent;
		if (percent == 0)
			*all = false;
		else if (lowest == 0 || percent < lowest)
			lowest = percent;
	}
	return lowest;
}

static void
watch_full_buffers(struct ring *r, unsigned percent)
{
	char text[16];
	unsigned i;

	if (percent > 0) {
		snprintf(text, sizeof(text), "%u", percent);
		set_or_warn(r, "buffer_percent", text);
	}
	for (i = 0; i < r->n_cpus; i++) {
		struct ring_cpu *cpu = &r->cpus[i];

		if (percent > 0 && cpu->full == NULL && cpu->fd >= 0) {
			cpu->full = event_new(loop_base(r->ftrace->loop),
			    cpu->fd, EV_READ | EV_PERSIST, ring_full_cb, r);
			/* Without it the timer alone has it read. */
			if (cpu->full != NULL)
				event_add(cpu->full, NULL);
		} else if (percent == 0 && cpu->full != NULL) {
			event_free(cpu->full);
			cpu->full = NULL;
		}
	}
}

void
ring_sessions_changed(struct ring *r)
{
	uint32_t period = FTRACE_DRAIN_MAX_MS;
	const struct ftrace_session *s;
	bool any = false, all;
	unsigned percent;

	TAILQ_FOREACH(s, &r->sessions, next) {
		if (s->state != SESSION_STARTED)
			continue;
		any = true;
		if (s->config->drain_percent == 0 &&
		    s->config->drain_ms < period)
			period = s->config->drain_ms;
	}
	percent = lowest_percent(r, &all);
	if (all)
		period = POLL_BACKING_MS;
	watch_full_buffers(r, any ? percent : 0);
	if (any) {
		set_or_warn(r, "tracing_on", "1");
		loop_timer_set(r->tick, period, 1);
	} else {
		set_or_warn(r, "tracing_on", "0");
		loop_timer_clear(r->tick);
	}
}
