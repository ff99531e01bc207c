#include "tests/bench/load/fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/library/clock_voice.h"
#include "tests/bench/load/device.h"
#include "tests/bench/load/line.h"
#include "tests/bench/load/link_relay.h"
#include "tests/bench/load/load_totals.h"
#include "tests/bench/load/place.h"
#include "tests/bench/load/relay_port.h"
#include "transport/clock/this_machine.h"
#include "transport/loop/loop.h"

#define TICK_MS 10u
/* Connections under way at a time: a backlog is not the aim. */
#define CONNECTING_MAX 256u
/* Who is gone comes again after so long. */
#define AGAIN_MS 200u

struct coming {
	uint32_t device;
	uint64_t due_ms;
};

struct fleet {
	struct device_shared shared;
	const struct place *places;
	size_t n_places;
	struct device **devices; /* owned, as the next */
	uint32_t n;
	struct link_relay **links;  /* of --relays; NULL: none */
	struct relay_port **classic; /* the same, with --classic */
	/*
	 * Devices without a relay are this machine's own, and one producer
	 * without data has its clocks measured for all.  NULL: not wanted.
	 */
	struct clock_voice *voice;
	struct line_identity own;
	char machine[256], clocks[96];
	struct coming *coming; /* ring of n: who connects, in turn */
	uint32_t coming_at, n_coming;
	struct loop_timer *tick;
	uint64_t last_ms;
	double ramp_owed, churn_owed;
	bool churning, finished;
	uint64_t churned;
	size_t connecting, connected, ready, most;
	bool *counted; /* of each device: in connecting */
	void (*changed)(void *arg);
	void *arg;
};

static void
come(struct fleet *f, uint32_t device, uint64_t due_ms)
{
	f->coming[(f->coming_at + f->n_coming++) % f->n] =
	    (struct coming){ device, due_ms };
}

/* Where the kernel does not say who they are. */
static int
be_this_machine(struct fleet *f)
{
	const struct clock_voice_setup voice = {
		.to = &f->places[0].addr,
		.how = &f->places[0].how,
		.name = "tributary-load",
	};

	if (f->shared.options->relays > 0 ||
	    f->places[0].addr.kind == ADDR_UNIX)
		return 0;
	this_machine_name(f->machine, sizeof(f->machine));
	this_machine_clocks(f->clocks, sizeof(f->clocks));
	f->own = (struct line_identity){ .machine_id_hint = f->clocks,
		.machine_name = f->machine, .clocks = f->clocks };
	/* With a certificate each, they are as many machines. */
	if (f->places[0].certs != NULL)
		return 0;
	f->voice = clock_voice_new(f->shared.loop, &voice);
	return f->voice == NULL ? -1 : 0;
}

static struct line *
connect_cb(void *arg, struct device *d, const struct line_ops *ops, char *err,
    size_t err_size)
{
	struct fleet *f = arg;
	const struct load_options *o = f->shared.options;
	uint32_t i = device_index(d), relay;

	relay = o->relays > 0 ? i / o->producers : i;
	if (f->links != NULL)
		return link_relay_line(f->links[relay], ops, d, err,
		    err_size);
	return line_direct_new(f->shared.loop,
	    &f->places[relay % f->n_places], "ProducerPort", relay,
	    f->classic != NULL ? relay_port_identity(f->classic[relay]) :
	    f->own.machine_id_hint != NULL ? &f->own : NULL,
	    ops, d, err, err_size);
}

static void
arrived(struct fleet *f, uint32_t device)
{
	if (f->counted[device])
		f->connecting--;
	f->counted[device] = false;
}

static void
ready_cb(void *arg, struct device *d)
{
	struct fleet *f = arg;

	arrived(f, device_index(d));
	if (++f->ready > f->most)
		f->most = f->ready;
	f->changed(f->arg);
}

static void
gone_cb(void *arg, struct device *d, bool by_us)
{
	struct fleet *f = arg;
	bool was_ready = !f->counted[device_index(d)];

	arrived(f, device_index(d));
	if (was_ready && f->ready > 0)
		f->ready--;
	if (!f->finished)
		come(f, device_index(d), loop_now_ms() +
		    (by_us ? 0 : AGAIN_MS));
	f->changed(f->arg);
}

static void
connect_some(struct fleet *f, uint64_t now)
{
	uint32_t ramp = f->shared.options->ramp;
	struct coming c;

	while (f->n_coming > 0 && f->connecting < CONNECTING_MAX &&
	    (ramp == 0 || f->ramp_owed >= 1)) {
		c = f->coming[f->coming_at];
		if (c.due_ms > now)
			break;
		f->coming_at = (f->coming_at + 1) % f->n;
		f->n_coming--;
		f->ramp_owed -= ramp > 0;
		f->connecting++;
		f->counted[c.device] = true;
		device_connect(f->devices[c.device]);
	}
}

static enum line_cut
how_to_end(struct fleet *f)
{
	switch (f->shared.options->churn_how) {
	case CHURN_CLEAN:
		return LINE_CLEAN;
	case CHURN_CUT:
		return LINE_RESET;
	case CHURN_VANISH:
		return LINE_VANISH;
	case CHURN_MIXED:
		return f->churned % 2 == 0 ? LINE_CLEAN : LINE_RESET;
	}
	return LINE_CLEAN;
}

static void
end_some(struct fleet *f)
{
	struct load_totals *t = f->shared.totals;
	enum line_cut how;
	struct device *d;

	for (; f->churn_owed >= 1; f->churn_owed--) {
		d = f->devices[device_random(&f->shared, f->n)];
		if (!device_is_ready(d))
			continue;
		how = how_to_end(f);
		f->churned++;
		if (how == LINE_CLEAN)
			t->ended_clean++;
		else
			t->ended_cut++;
		device_end(d, how);
	}
}

static void
tick_cb(void *arg)
{
	struct fleet *f = arg;
	uint64_t now = loop_now_ms();
	double s = (double)(now - f->last_ms) / 1000;

	f->last_ms = now;
	f->ramp_owed += s * f->shared.options->ramp;
	if (f->n_coming == 0)
		f->ramp_owed = 0;
	if (f->finished)
		return;
	connect_some(f, now);
	if (f->churning) {
		f->churn_owed += s * f->shared.options->churn;
		end_some(f);
	}
}

static int
make_relays(struct fleet *f, const struct load_options *o)
{
	const struct place *p;
	uint32_t i;

	if (o->relay_protocol == RELAYS_CLASSIC)
		f->classic = calloc(o->relays, sizeof(struct relay_port *));
	else
		f->links = calloc(o->relays, sizeof(struct link_relay *));
	if (f->classic == NULL && f->links == NULL)
		return -1;
	for (i = 0; i < o->relays; i++) {
		p = &f->places[i % f->n_places];
		if (f->classic != NULL)
			f->classic[i] = relay_port_new(f->shared.loop, p, i,
			    f->shared.totals);
		else
			f->links[i] = link_relay_new(f->shared.loop, p, i,
			    f->shared.totals);
		if (f->classic != NULL ? f->classic[i] == NULL :
		    f->links[i] == NULL)
			return -1;
	}
	return 0;
}

static void
free_relays(struct fleet *f)
{
	uint32_t i, n = f->shared.options->relays;

	for (i = 0; f->classic != NULL && i < n; i++)
		relay_port_free(f->classic[i]);
	for (i = 0; f->links != NULL && i < n; i++)
		link_relay_free(f->links[i]);
	free(f->classic);
	free(f->links);
}

struct fleet *
fleet_new(struct loop *l, const struct load_options *o,
    const struct place *places, size_t n_places, struct load_ledger *ledger,
    struct load_totals *totals, void (*changed)(void *arg), void *arg)
{
	struct fleet *f = calloc(1, sizeof(*f));
	uint32_t i, slow = 0, k = 0;

	if (f == NULL)
		return NULL;
	f->n = o->producers * (o->relays > 0 ? o->relays : 1);
	f->shared = (struct device_shared){
		.loop = l,
		.options = o,
		.ledger = ledger,
		.totals = totals,
		.rate = o->total_rate > 0 && f->n > 0 ?
		    o->total_rate / f->n : o->rate,
		.random = o->seed * 2 + 88172645463325253u,
		.writing = true,
		.connect = connect_cb,
		.ready = ready_cb,
		.gone = gone_cb,
		.arg = f,
	};
	pb_writer_init(&f->shared.commit);
	pb_writer_init(&f->shared.packet);
	f->places = places;
	f->n_places = n_places;
	f->changed = changed;
	f->arg = arg;
	f->devices = calloc(f->n + 1, sizeof(struct device *));
	f->coming = calloc(f->n + 1, sizeof(*f->coming));
	f->counted = calloc(f->n + 1, sizeof(*f->counted));
	f->tick = loop_timer_new(l, tick_cb, f);
	if (f->devices == NULL || f->coming == NULL || f->counted == NULL ||
	    f->tick == NULL)
		goto fail;
	if (o->relays > 0 && make_relays(f, o) != 0)
		goto fail;
	if (be_this_machine(f) != 0)
		goto fail;
	for (i = 0; i < f->n; i++) {
		while (k < o->n_slow && slow == o->slow[k].count) {
			slow = 0;
			k++;
		}
		slow++;
		f->devices[i] = device_new(&f->shared, i, k < o->n_slow ?
		    (enum load_slow)o->slow[k].kind : SLOW_NOT);
		if (f->devices[i] == NULL)
			goto fail;
	}
	return f;

fail:
	fleet_free(f);
	return NULL;
}

void
fleet_free(struct fleet *f)
{
	uint32_t i;

	if (f == NULL)
		return;
	f->finished = true;
	for (i = 0; f->devices != NULL && i < f->n; i++)
		device_free(f->devices[i]);
	free_relays(f);
	clock_voice_free(f->voice);
	loop_timer_free(f->tick);
	pb_writer_done(&f->shared.commit);
	pb_writer_done(&f->shared.packet);
	free(f->devices);
	free(f->coming);
	free(f->counted);
	free(f);
}

void
fleet_start(struct fleet *f)
{
	uint32_t i;

	f->last_ms = loop_now_ms();
	for (i = 0; i < f->n; i++)
		come(f, i, 0);
	loop_timer_set(f->tick, TICK_MS, 1);
}

void
fleet_churn(struct fleet *f)
{
	f->churning = f->shared.options->churn > 0;
}

void
fleet_calm(struct fleet *f)
{
	f->churning = false;
}

void
fleet_finish(struct fleet *f)
{
	uint32_t i;

	f->finished = true;
	f->shared.writing = false;
	for (i = 0; i < f->n; i++)
		device_finish(f->devices[i]);
}

void
fleet_look(const struct fleet *f, struct fleet_state *out)
{
	uint32_t i;

	memset(out, 0, sizeof(*out));
	out->devices = f->n;
	out->most_connected = f->most;
	for (i = 0; i < f->n; i++) {
		out->connected += device_is_connected(f->devices[i]);
		out->ready += device_is_ready(f->devices[i]);
		out->writing += device_sequences(f->devices[i]) > 0;
		out->quiet += device_is_quiet(f->devices[i]);
		out->finished += device_has_written_all(f->devices[i]);
	}
}

static void
spread(const struct fleet *f, uint64_t (*of)(const struct device *),
    struct fleet_spread *out)
{
	uint64_t v;
	uint32_t i;

	memset(out, 0, sizeof(*out));
	for (i = 0; i < f->n; i++) {
		v = of(f->devices[i]);
		if (i == 0 || v < out->min)
			out->min = v;
		if (v > out->max)
			out->max = v;
		out->total += v;
	}
}

void
fleet_packets(const struct fleet *f, struct fleet_spread *out)
{
	spread(f, device_packets, out);
}

void
fleet_bytes(const struct fleet *f, struct fleet_spread *out)
{
	spread(f, device_bytes, out);
}
