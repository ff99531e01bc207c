/*
 * The kernel's counts of a buffer, and the events that it lost while sessions
 * recorded, for a person who watches them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "client/ftrace/session/ftrace_internal.h"
#include "transport/loop/loop.h"

/* Reading a processor's counts costs some microseconds. */
#define LOOK_MS 1000u

void
ring_counts(const struct ring *r, unsigned cpu, struct cpu_stats *out)
{
	char path[TRACEFS_PATH_MAX], name[64], *text;
	size_t len;

	snprintf(name, sizeof(name), "per_cpu/cpu%u/stats", cpu);
	ring_path(r, path, name);
	if ((text = tracefs_read(r->ftrace->tracefs, path, &len)) == NULL)
		return;
	cpu_stats_parse(out, text, len);
	free(text);
}

/* Without memory a processor's losses are in the trace alone. */
static void
add_lost(struct ftrace *f, unsigned cpu, uint64_t events)
{
	uint64_t *more;

	if (cpu >= f->n_lost) {
		more = realloc(f->lost, (cpu + 1) * sizeof(*more));
		if (more == NULL)
			return;
		f->lost = more;
		while (f->n_lost <= cpu)
			more[f->n_lost++] = 0;
	}
	f->lost[cpu] += events;
}

void
ring_losses_begin(struct ring *r)
{
	struct cpu_stats now;
	unsigned i;

	for (i = 0; i < r->n_cpus; i++) {
		now = (struct cpu_stats){ 0 };
		ring_counts(r, i, &now);
		r->cpus[i].lost = cpu_stats_lost(&now);
	}
	r->looked_ms = loop_now_ms();
}

static void
look(struct ring *r)
{
	struct ftrace *f = r->ftrace;
	struct cpu_stats now;
	bool grew = false;
	uint64_t lost;
	unsigned i;

	r->looked_ms = loop_now_ms();
	for (i = 0; i < r->n_cpus; i++) {
		now = (struct cpu_stats){ 0 };
		ring_counts(r, i, &now);
		lost = cpu_stats_lost(&now);
		/* A buffer that was resized or emptied counts from 0. */
		if (lost > r->cpus[i].lost) {
			add_lost(f, i, lost - r->cpus[i].lost);
			grew = true;
		}
		r->cpus[i].lost = lost;
	}
	if (grew && f->on_lost != NULL)
		f->on_lost(f->lost_arg, f->lost, f->n_lost);
}

void
ring_losses_look(struct ring *r)
{
	if (r->ftrace->on_lost != NULL &&
	    loop_now_ms() - r->looked_ms >= LOOK_MS)
		look(r);
}

void
ring_losses_end(struct ring *r)
{
	if (r->ftrace->on_lost != NULL)
		look(r);
}

void
ftrace_watch_losses(struct ftrace *f, ftrace_lost_fn lost, void *arg)
{
	f->on_lost = lost;
	f->lost_arg = arg;
}
