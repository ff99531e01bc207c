#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "relay/outbox/outbox_internal.h"
#include "tests/unit/relay/outbox/outbox_model.h"
#include "tests/unit/relay/outbox/outbox_world.h"

/*
 * A child plays until it is killed; the model lies in memory that is shared, and
 * says what the child was about to do.  What the child sends never arrives; the
 * parent is the collector in between.
 *
 * The outbox is compiled so that it calls us wherever its code branches.  A
 * child kills itself at the n-th time that it comes to one of some such places:
 * those that it seldom comes to are as likely as those where it spends its
 * time, which is where a clock would find it.  OUTBOX_SEED=N plays one seed,
 * many times.
 */

#define MEMORY  (1u << 20)
#define KILLS   12u
/* Places are sorted by chance into so many kinds, one of which kills. */
#define KINDS   256u
/* Instead of all, those where something is counted, and so many behind. */
#define BEHIND  40u
/* Who does not come to its place is killed from outside. */
#define LIFE_MS 60u

struct how {
	const char *name;
	uint64_t spool;
	enum relay_drop drop;
	bool synchronous;
	bool rough; /* it puts more although it is told to wait */
};

struct play {
	struct outbox_world w;
	struct model *m;
	const struct how *how;
};

/* The child's: 0: it lives on. */
static _Atomic uint32_t lives;
static uint32_t kind;
static bool counting;
static uint32_t behind;
static const struct play *playing;

void __sanitizer_cov_trace_pc(void);

static bool
is_counting(void)
{
	const struct outbox *o = playing->w.o;

	if (o == NULL || o->arena.undo == NULL)
		return false;
	if (o->arena.undo->armed != 0)
		behind = BEHIND;
	return behind > 0 && behind-- > 0;
}

/* Called by the outbox, of any thread. */
void
__sanitizer_cov_trace_pc(void)
{
	uintptr_t place = (uintptr_t)__builtin_return_address(0);

	if (atomic_load_explicit(&lives, memory_order_relaxed) == 0 ||
	    (counting && !is_counting()) ||
	    ((uint32_t)(place * 2654435761u) >> 8) % KINDS != kind)
		return;
	if (atomic_fetch_sub(&lives, 1) == 1)
		kill(getpid(), SIGKILL);
}

/*
 * What must not be dropped piles up while nobody takes it: with no room left
 * for it a link would have to begin anew, which the model does not know.
 */
static bool
has_room(const struct play *p)
{
	uint32_t pages = p->w.o->arena.free_pages;

	if (!model_has_room(p->m))
		return false;
	if (p->how->rough)
		return pages > 4;
	return pages > p->w.o->arena.pages / 6 && !outbox_is_busy(p->w.o);
}

/* As the next process.  False: it ends the link, which is not looked at here. */
static bool
begin(struct play *p)
{
	world_open(&p->w);
	p->m->overflowed |= arena_link(&p->w.o->arena)->overflowed != 0;
	if (p->m->overflowed)
		return false;
	model_resume(p->m, p->w.o);
	model_put_again(p->m, p->w.o);
	return true;
}

static void
child(struct play *p)
{
	struct outbox_block b;
	bool goes_on = begin(p);

	while (goes_on) {
		if (model_random(p->m, 30) == 0)
			model_acknowledge(p->m, p->w.o);
		else if (model_random(p->m, 20) == 0)
			(void)outbox_next(p->w.o, &b);
		else if (has_room(p))
			model_put(p->m, p->w.o);
		world_turn(&p->w);
		p->m->overflowed |= p->w.overflows > 0;
	}
	for (;;)
		pause();
}

/* The parent is the next process, for a while. */
static void
collect(struct play *p)
{
	unsigned n = model_random(p->m, 60);

	for (n = begin(p) ? n : 0; n > 0; n--) {
		model_take(p->m, p->w.o);
		if (model_random(p->m, 4) == 0)
			model_consume(p->m, p->w.o);
		if (model_random(p->m, 9) == 0)
			model_acknowledge(p->m, p->w.o);
		world_turn(&p->w);
	}
	outbox_close(p->w.o);
	p->w.o = NULL;
}

static void
live_and_be_killed(struct play *p)
{
	struct timespec t = { .tv_nsec = 1000000 };
	unsigned ms = 1 + model_random(p->m, LIFE_MS);
	uint32_t n = 1 + model_random(p->m, 1u << model_random(p->m, 12));
	bool of_all = model_random(p->m, 3) == 0;
	int status;
	pid_t pid;

	kind = model_random(p->m, KINDS);
	assert_true((pid = fork()) >= 0);
	if (pid == 0) {
		playing = p;
		counting = !of_all;
		lives = n;
		child(p);
	}
	for (; ms > 0 && waitpid(pid, &status, WNOHANG) != pid; ms--)
		nanosleep(&t, NULL);
	if (ms == 0) {
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

/*
 * How much is put before a kill is the machine's speed.  Where not a page was
 * left for what may not be dropped, a new link begins, which test_outbox_spool
 * and test_uplink look at: there is no old one to check.  Returns whether there
 * was one.
 */
static bool
judge(struct play *p)
{
	struct outbox_stats s;

	p->w.setup.synchronous = true;
	if (begin(p)) {
		model_finish(p->m, p->w.o);
		model_drain(p->m, &p->w);
	}
	if (p->m->overflowed || p->w.overflows > 0) {
		printf("overflowed: not judged\n");
		return false;
	}
	model_check(p->m);
	outbox_stats(p->w.o, &s);
	assert_int_equal(s.memory_bytes + s.spool_bytes, 0);
	return true;
}

static bool
play(uint64_t seed, const struct how *how)
{
	struct play p = { .how = how };
	bool judged;
	unsigned i;

	printf("seed %llu, killed, %s\n", (unsigned long long)seed, how->name);
	p.m = mmap(NULL, sizeof(*p.m), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(p.m != MAP_FAILED);
	world_init(&p.w, MEMORY);
	if (how->spool > 0)
		world_spool(&p.w, how->spool);
	p.w.setup.drop = how->drop;
	p.w.setup.synchronous = how->synchronous;
	world_open(&p.w);
	model_init(p.m, seed, p.w.o);
	p.m->rough = how->rough;
	outbox_close(p.w.o);
	p.w.o = NULL;
	for (i = 0; i < KILLS; i++) {
		live_and_be_killed(&p);
		if (model_random(p.m, 3) != 0)
			collect(&p);
	}
	judged = judge(&p);
	world_done(&p.w);
	munmap(p.m, sizeof(*p.m));
	return judged;
}

static void
play_all(const struct how *how, uint64_t n)
{
	const char *one = getenv("OUTBOX_SEED");
	uint64_t seed = one != NULL ? strtoull(one, NULL, 10) : 1, last, i;
	unsigned judged = 0, plays = 0;

	last = model_last_seed(seed, n);
	for (i = seed; i <= last; i++, plays++)
		judged += play(one != NULL ? seed : i, how);
	assert_true(judged * 2 >= plays);
}

static void
a_spool_with_room_has_all_that_it_was_given(void **state)
{
	static const struct how with = { "a thread", 64 * MEMORY,
		RELAY_DROP_OLDEST, false, false };
	static const struct how without = { "no thread", 64 * MEMORY,
		RELAY_DROP_OLDEST, true, false };

	play_all(&with, 4);
	play_all(&without, 4);
}

/* Full before they are killed: what is oldest is dropped. */
static void
what_a_full_spool_drops_is_told(void **state)
{
	static const struct how with = { "a thread, a small spool", 2 * MEMORY,
		RELAY_DROP_OLDEST, false, false };
	static const struct how without = { "no thread, a small spool",
		2 * MEMORY, RELAY_DROP_OLDEST, true, false };
	static const struct how newest = { "a thread, a small spool, newest",
		2 * MEMORY, RELAY_DROP_NEWEST, false, false };

	play_all(&with, 8);
	play_all(&without, 4);
	play_all(&newest, 4);
}

/*
 * Who puts more although there is no room: packets across many holes may be
 * told twice, but none that is missing is told to nobody.
 */
static void
what_finds_no_room_is_told(void **state)
{
	static const struct how newest = { "no spool, newest", 0,
		RELAY_DROP_NEWEST, true, true };
	static const struct how oldest = { "no spool, oldest", 0,
		RELAY_DROP_OLDEST, true, true };

	play_all(&newest, 6);
	play_all(&oldest, 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_spool_with_room_has_all_that_it_was_given),
		cmocka_unit_test(what_a_full_spool_drops_is_told),
		cmocka_unit_test(what_finds_no_room_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
