/*
 * retention against what it promises, for archives and policies at random, of a
 * fixed seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/archiver/retention/retention.h"

#define ROUNDS   3000
#define SEGMENTS 40
#define NOW      10000u

static const char *const recordings[] = { "always", "alone", "once" };
static const char *const machines[] = { "", "kiosk-1", "kiosk-2", "host" };

static const struct retention_rule rules_of_each[3][2] = {
	{ { "al*", { 200, 3000 } }, { "*", { 0, 0 } } },
	{ { "once", { 100, 0 } }, { "al*", { 0, 5000 } } },
	{ { "*", { 300, 0 } }, { "once", { 1, 1 } } },
};

struct archive {
	struct retention_segment segments[SEGMENTS];
	size_t n;
	struct retention_policy policy;
	uint64_t free;
	bool gone[SEGMENTS];
};

static uint32_t seed = 20241123;

static uint32_t
below(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static void
make_archive(struct archive *a)
{
	struct retention_segment *s;

	memset(a, 0, sizeof(*a));
	a->n = below(SEGMENTS + 1);
	for (s = a->segments; s < a->segments + a->n; s++)
		*s = (struct retention_segment){
			.id = (uint64_t)(s - a->segments),
			.recording = recordings[below(3)],
			.machine = machines[below(4)],
			.end_ms = below(NOW + 100),
			.bytes = 1 + below(40),
			.pinned = below(6) == 0,
			.stored = below(2) == 0,
		};
	a->free = below(400);
	a->policy = (struct retention_policy){
		.all = { below(2) * below(900), below(2) * below(NOW) },
		.each_machine = { below(2) * below(300),
		    below(2) * below(NOW) },
		.rules = rules_of_each[below(3)],
		.n_rules = below(3),
		.min_free = below(2) * below(600),
		.waits_for_upload = below(3) == 0,
	};
}

static bool
is_held(const struct archive *a, size_t i)
{
	return a->segments[i].pinned ||
	    (a->policy.waits_for_upload && !a->segments[i].stored);
}

/* The limit of a scope that holds for a segment; all 0: none. */
static struct retention_limit
limit_of(const struct archive *a, size_t i, enum retention_scope scope)
{
	const struct retention_segment *s = &a->segments[i];
	size_t k;

	if (scope == RETENTION_ALL)
		return a->policy.all;
	if (scope == RETENTION_MACHINE && s->machine[0] != '\0')
		return a->policy.each_machine;
	for (k = 0; scope == RETENTION_RECORDING && k < a->policy.n_rules; k++)
		if (strcmp(a->policy.rules[k].recording, "*") == 0 ||
		    strcmp(a->policy.rules[k].recording, s->recording) == 0 ||
		    (strcmp(a->policy.rules[k].recording, "al*") == 0 &&
			strncmp(s->recording, "al", 2) == 0))
			return a->policy.rules[k].keep;
	return (struct retention_limit){ 0, 0 };
}

static bool
share(const struct archive *a, size_t i, size_t k, enum retention_scope scope)
{
	switch (scope) {
	case RETENTION_RECORDING:
		return strcmp(a->segments[i].recording,
		    a->segments[k].recording) == 0;
	case RETENTION_MACHINE:
		return strcmp(a->segments[i].machine,
		    a->segments[k].machine) == 0;
	case RETENTION_ALL:
	case RETENTION_DISK:
		break;
	}
	return true;
}

/* Bytes of what stays beside segment i, itself included. */
static uint64_t
bytes_of(const struct archive *a, size_t i, enum retention_scope scope)
{
	uint64_t bytes = 0;
	size_t k;

	for (k = 0; k < a->n; k++)
		if (!a->gone[k] && share(a, i, k, scope))
			bytes += a->segments[k].bytes;
	return bytes;
}

static bool
is_older(const struct archive *a, size_t i, size_t k)
{
	if (a->segments[i].end_ms != a->segments[k].end_ms)
		return a->segments[i].end_ms < a->segments[k].end_ms;
	return i < k;
}

static bool
is_too_old(const struct archive *a, size_t i, enum retention_scope scope)
{
	uint64_t age_ms = limit_of(a, i, scope).age_ms;

	return age_ms != 0 && a->segments[i].end_ms + age_ms < NOW;
}

static bool
is_too_much(const struct archive *a, size_t i, enum retention_scope scope)
{
	uint64_t bytes;

	if (scope == RETENTION_DISK)
		return a->free < a->policy.min_free;
	bytes = limit_of(a, i, scope).bytes;
	return bytes != 0 && bytes_of(a, i, scope) > bytes;
}

/* One deletion is needed, and no older segment would have done. */
static void
take(struct archive *a, const struct retention_deletion *d)
{
	size_t k;

	assert_false(is_held(a, d->segment));
	assert_false(a->gone[d->segment]);
	if (d->why.by_age) {
		assert_true(is_too_old(a, d->segment, d->why.scope));
	} else {
		assert_true(is_too_much(a, d->segment, d->why.scope));
		for (k = 0; k < a->n; k++)
			assert_false(!a->gone[k] && !is_held(a, k) &&
			    share(a, d->segment, k, d->why.scope) &&
			    is_older(a, k, d->segment));
	}
	a->gone[d->segment] = true;
	a->free += a->segments[d->segment].bytes;
}

static bool
is_told(const struct retention_plan *plan, const struct retention_reason *of)
{
	size_t i;

	for (i = 0; i < plan->n_excesses; i++)
		if (plan->excesses[i].over.scope == of->scope &&
		    plan->excesses[i].over.by_age == of->by_age &&
		    strcmp(plan->excesses[i].over.name, of->name) == 0)
			return true;
	return false;
}

static const char *
name_of(const struct archive *a, size_t i, enum retention_scope scope)
{
	if (scope == RETENTION_RECORDING)
		return a->segments[i].recording;
	return scope == RETENTION_MACHINE ? a->segments[i].machine : "";
}

/* Every limit is kept, or only held segments are left, and it is told. */
static void
check_limits(const struct archive *a, const struct retention_plan *plan)
{
	struct retention_reason of = { 0 };
	size_t i, scope;

	for (i = 0; i < a->n; i++) {
		if (a->gone[i])
			continue;
		for (scope = 0; scope <= RETENTION_DISK; scope++) {
			of.scope = (enum retention_scope)scope;
			of.name = name_of(a, i, of.scope);
			if (is_too_much(a, i, of.scope)) {
				assert_true(is_held(a, i));
				of.by_age = false;
				assert_true(is_told(plan, &of));
			}
			if (scope <= RETENTION_ALL &&
			    is_too_old(a, i, of.scope)) {
				assert_true(is_held(a, i));
				of.by_age = true;
				assert_true(is_told(plan, &of));
			}
		}
	}
}

/* At due_ms the next segment goes by its age, and not before. */
static void
check_due(const struct archive *a, const struct retention_plan *plan)
{
	struct retention_segment left[SEGMENTS];
	struct retention_plan later;
	uint64_t now = plan->due_ms;
	size_t i, n = 0, early;

	for (i = 0; i < a->n; i++)
		if (!a->gone[i])
			left[n++] = a->segments[i];
	if (now == UINT64_MAX)
		now = 100 * (uint64_t)NOW;
	for (early = 0; early < 2; early++) {
		assert_int_equal(retention_plan_make(&later, &a->policy, left,
		    n, now - early, a->free), 0);
		assert_int_equal(later.n_deletions > 0,
		    early == 0 && plan->due_ms != UINT64_MAX);
		retention_plan_done(&later);
	}
}

static void
every_plan_keeps_its_promises(void **state)
{
	struct retention_plan plan;
	struct archive a;
	size_t i, total = 0;
	int round;

	for (round = 0; round < ROUNDS; round++) {
		make_archive(&a);
		assert_int_equal(retention_plan_make(&plan, &a.policy,
		    a.segments, a.n, NOW, a.free), 0);
		for (i = 0; i < plan.n_deletions; i++)
			take(&a, &plan.deletions[i]);
		total += plan.n_deletions;
		assert_int_equal(plan.free, a.free);
		check_limits(&a, &plan);
		check_due(&a, &plan);
		retention_plan_done(&plan);
	}
	assert_true(total > ROUNDS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_plan_keeps_its_promises),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
