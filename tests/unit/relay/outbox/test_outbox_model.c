#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>

#include "relay/outbox/outbox_internal.h"
#include "tests/unit/relay/outbox/outbox_model.h"
#include "tests/unit/relay/outbox/outbox_world.h"

/*
 * Random producers, cuts, restarts and a slow collector, against a model that
 * knows of every packet.  OUTBOX_SEED=N runs one seed; else a few, printed: one
 * in MODEL_SHARE of them (slow builds play fewer).
 */

#define MEMORY (1u << 20)
#define STEPS  4000u

struct play {
	struct outbox_world w;
	struct model *m;
	bool stalled;
	bool sick; /* the disk, now and then */
};

static void
reopen(struct play *p)
{
	world_reopen(&p->w);
	model_resume(p->m, p->w.o);
}

/* Nothing can be written to the disk, or all again. */
static void
disk_fails(struct play *p, bool fails)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = fails ? 4096 : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	if (!fails)
		ob_retry_cb(p->w.o);
}

static void
step(struct play *p)
{
	struct outbox *o = p->w.o;
	unsigned n;

	if (p->sick && model_random(p->m, 40) == 0)
		disk_fails(p, model_random(p->m, 3) != 0);
	switch (model_random(p->m, 40)) {
	case 0:
		p->stalled = true;
		break;
	case 1:
	case 2:
		p->stalled = false;
		break;
	case 3:
		if (model_random(p->m, 5) == 0)
			reopen(p);
		else
			model_resume(p->m, o);
		break;
	case 4:
	case 5:
	case 6:
		model_consume(p->m, o);
		break;
	case 7:
	case 8:
		model_acknowledge(p->m, o);
		break;
	case 9:
	case 10:
	case 11:
	case 12:
		for (n = model_random(p->m, 6); n > 0 && !p->stalled; n--)
			model_take(p->m, o);
		break;
	default:
		model_put(p->m, o);
		break;
	}
	world_turn(&p->w);
	assert_int_equal(p->w.overflows, 0);
}

static void
play_with(uint64_t seed, enum relay_drop drop, uint64_t spool, bool sick)
{
	struct play p = { .sick = sick };
	struct outbox_stats s;
	unsigned i;

	printf("seed %llu, %s first, a %sspool of %llu\n",
	    (unsigned long long)seed, drop == RELAY_DROP_OLDEST ? "oldest" :
	    "newest", sick ? "sick " : "", (unsigned long long)spool);
	assert_non_null(p.m = malloc(sizeof(*p.m)));
	world_init(&p.w, MEMORY);
	p.w.setup.drop = drop;
	if (spool > 0)
		world_spool(&p.w, spool);
	world_open(&p.w);
	model_init(p.m, seed, p.w.o);
	p.m->stretched = sick;
	for (i = 0; i < STEPS; i++)
		step(&p);
	if (sick)
		disk_fails(&p, false);
	model_finish(p.m, p.w.o);
	model_drain(p.m, &p.w);
	model_check(p.m);
	outbox_stats(p.w.o, &s);
	assert_int_equal(s.memory_bytes, 0);
	assert_int_equal(s.spool_bytes, 0);
	assert_int_equal(s.spool_damaged, 0);
	if (spool > 16 * MEMORY && !sick)
		assert_int_equal(s.chunks_lost[1], 0);
	world_done(&p.w);
	free(p.m);
}

static void
play(uint64_t seed, enum relay_drop drop, uint64_t spool)
{
	play_with(seed, drop, spool, false);
}

static void
every_packet_arrives_or_is_told_to_be_lost(void **state)
{
	const char *one = getenv("OUTBOX_SEED");
	uint64_t seed = one != NULL ? strtoull(one, NULL, 10) : 1, last;

	last = one != NULL ? seed : model_last_seed(seed, 10);
	for (; seed <= last; seed++) {
		play(seed, RELAY_DROP_OLDEST, 0);
		play(seed, RELAY_DROP_NEWEST, 0);
		play(seed, RELAY_DROP_OLDEST, MEMORY);
		play(seed, RELAY_DROP_NEWEST, MEMORY);
		play(seed, RELAY_DROP_OLDEST, 64 * MEMORY);
	}
	/* A version that a counted chunk relied on went after others behind. */
	if (one == NULL)
		play(1002, RELAY_DROP_NEWEST, MEMORY);
	/* Read-ahead took the memory that the next chunk needed. */
	if (one == NULL)
		play(514, RELAY_DROP_OLDEST, 64 * MEMORY);
}

/*
 * Of packets across many chunks, some blocks of which the disk takes: those
 * between others that are lost must not have them counted twice.  In the first
 * seeds that is what happens.
 */
static void
packets_across_what_a_failing_disk_took_are_lost_once(void **state)
{
	static const uint64_t seeds[] = { 65, 111, 119, 135, 136, 1, 2, 3 };
	const char *one = getenv("OUTBOX_SEED");
	size_t i, n = one != NULL ? 1 : sizeof(seeds) / sizeof(seeds[0]);

	signal(SIGXFSZ, SIG_IGN);
	for (i = 0; i < n; i++)
		play_with(one != NULL ? strtoull(one, NULL, 10) : seeds[i],
		    RELAY_DROP_OLDEST, 64 * MEMORY, true);
	signal(SIGXFSZ, SIG_DFL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_packet_arrives_or_is_told_to_be_lost),
		cmocka_unit_test(
		    packets_across_what_a_failing_disk_took_are_lost_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
