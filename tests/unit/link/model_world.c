#include "tests/unit/link/model_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIRES_MAX 4
/* With a wire that works, all is there after so many turns. */
#define SETTLE_TURNS 100000

uint64_t model_seed;
unsigned model_step;
static uint64_t state_of_chance;

void
model_srand(uint64_t seed)
{
	model_seed = seed;
	state_of_chance = seed * 0x9e3779b97f4a7c15u + 1;
}

static uint64_t
next_random(void)
{
	uint64_t z = state_of_chance += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

uint32_t
model_below(uint32_t n)
{
	return n > 0 ? (uint32_t)(next_random() % n) : 0;
}

bool
model_chance(uint32_t percent)
{
	return model_below(100) < percent;
}

void
model_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "seed %llu, step %u, %s:%d: %s\n",
	    (unsigned long long)model_seed, model_step, file, line, what);
	abort();
}

uint64_t
model_number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text != NULL ? strtoull(text, NULL, 0) : otherwise;
}

uint64_t
model_count(uint64_t all)
{
	uint64_t share = model_number("MODEL_SHARE", 1);

	return model_number("count", getenv("seed") != NULL ? 1 :
	    all / (share == 0 ? 1 : share));
}

void
world_init(struct world *w, bool real)
{
	struct relay_plan plan = {
		.memory_bytes = (1u + model_below(2)) << 20,
		.spool_bytes = model_chance(50) ?
		    (1u + model_below(4)) << 20 : 0,
		.drop_newest = model_chance(30),
		.chunk_max = model_chance(70) ? 4000 : 30000,
		.level = model_chance(30) ? 1 + (int)model_below(5) : 0,
	};

	memset(w, 0, sizeof(*w));
	book_init(&w->book);
	w->book.real = real;
	w->relay = relay_new(&w->book, &plan);
	w->collector = collector_new(&w->book,
	    (256u + model_below(1024)) * 1024);
	w->cuts = 1 + model_below(6);
	w->kills = model_below(2);
	w->ends = model_below(2);
}

void
world_done(struct world *w)
{
	struct wire *wire;

	relay_free(w->relay);
	collector_free(w->collector);
	while ((wire = w->wires) != NULL) {
		w->wires = wire->next;
		pipe_clear(&wire->up);
		pipe_clear(&wire->down);
		free(wire);
	}
	book_done(&w->book);
}

/* ---- wires ---- */

static bool
is_over(const struct wire *wire)
{
	return wire->relay_hung_up && wire->collector_hung_up;
}

static void
remove_dead_wires(struct world *w)
{
	struct wire **at = &w->wires, *wire;

	while ((wire = *at) != NULL) {
		if (!is_over(wire)) {
			at = &wire->next;
			continue;
		}
		*at = wire->next;
		pipe_clear(&wire->up);
		pipe_clear(&wire->down);
		free(wire);
	}
}

static size_t
count_wires(const struct world *w)
{
	const struct wire *wire;
	size_t n = 0;

	for (wire = w->wires; wire != NULL; wire = wire->next)
		n++;
	return n;
}

void
world_connect(struct world *w)
{
	struct wire *wire;

	if (count_wires(w) == WIRES_MAX)
		return;
	MODEL_CHECK((wire = calloc(1, sizeof(*wire))) != NULL);
	wire->next = w->wires;
	w->wires = wire;
	relay_connect(w->relay, wire);
}

/* Some bytes of every wire get through, in one direction or both. */
void
world_move(struct world *w, bool all)
{
	struct wire *wire, *next;
	uint32_t most = model_chance(50) ? 3000 : 200000;

	for (wire = w->wires; wire != NULL; wire = next) {
		next = wire->next;
		if (all || model_chance(70)) {
			pipe_move(&wire->up, all ? SIZE_MAX :
			    model_below(most));
			collector_receive(w->collector, wire);
		}
		if (all || model_chance(70))
			pipe_move(&wire->down, all ? SIZE_MAX :
			    model_below(most));
	}
	relay_receive(w->relay);
}

/* An end that has gone may leave behind what it said, or not. */
static void
lose_tail(struct world *w)
{
	struct wire *wire;

	for (wire = w->wires; wire != NULL; wire = wire->next) {
		if (wire->relay_hung_up && model_chance(50))
			wire->up.len = wire->up.arrived;
		if (wire->collector_hung_up && model_chance(50))
			wire->down.len = wire->down.arrived;
	}
}

/* ---- schedules ---- */

static void
cut(struct world *w)
{
	switch (model_below(3)) {
	case 0:
		relay_hang_up(w->relay);
		break;
	case 1:
		collector_hang_up(w->collector);
		break;
	case 2:
		/* The relay alone sees it, and is back at once. */
		world_connect(w);
		return;
	}
	if (model_chance(70))
		lose_tail(w);
}

static void
end_something(struct world *w)
{
	switch (model_below(8)) {
	case 0:
	case 1:
		collector_restart(w->collector);
		break;
	case 2:
		collector_give_up(w->collector);
		break;
	default:
		collector_end_grace(w->collector);
		break;
	}
}

static void
say(struct world *w)
{
	switch (model_below(10)) {
	case 0:
		relay_begin_producer(w->relay);
		break;
	case 1:
		if (model_chance(30))
			relay_end_producer(w->relay);
		break;
	case 2:
	case 3:
		relay_say_control(w->relay);
		break;
	case 4:
		collector_say_command(w->collector);
		break;
	default:
		relay_say_chunks(w->relay, model_chance(10) ?
		    model_below(200) : model_below(10));
		break;
	}
}

void
world_step(struct world *w)
{
	uint32_t what = model_below(1000);

	if (what < w->cuts * 10)
		cut(w);
	else if (what < w->cuts * 10 + w->kills * 4)
		relay_kill(w->relay);
	else if (what < w->cuts * 10 + w->kills * 4 + w->ends * 4)
		end_something(w);
	else if (what < 500)
		say(w);
	else if (what < 600)
		relay_send(w->relay, model_below(8));
	else if (what < 700)
		collector_send(w->collector, model_below(4));
	else if (what < 780)
		collector_consume(w->collector, false);
	else if (what < 840 && relay_wire(w->relay) == NULL)
		world_connect(w);
	else
		world_move(w, model_chance(20));
	remove_dead_wires(w);
}

/* The network works, and nobody says more: all comes to its end. */
void
world_settle(struct world *w)
{
	unsigned i;

	for (i = 0; i < SETTLE_TURNS; i++) {
		if (relay_wire(w->relay) == NULL)
			world_connect(w);
		relay_send(w->relay, 100);
		world_move(w, true);
		collector_consume(w->collector, true);
		collector_send(w->collector, 100);
		world_move(w, true);
		remove_dead_wires(w);
		if (relay_is_open(w->relay) && relay_is_empty(w->relay) &&
		    collector_is_empty(w->collector))
			break;
	}
	if (i == SETTLE_TURNS)
		model_fail(__FILE__, __LINE__, "it does not come to an end");
}
