#include "client/archiver/retention/retention.h"

#include <stdlib.h>
#include <string.h>

#include "transport/base/glob.h"
#include "transport/base/hash_map.h"

/* Segments that share a limit. */
struct group {
	struct hash_link link;
	struct group *next; /* in the order in which they were made */
	enum retention_scope scope;
	const char *name;
	struct retention_limit keep;
	uint64_t bytes;     /* of the segments that stay */
	/* Segments that are too old and stay. */
	struct retention_excess old;
};

struct item {
	const struct retention_segment *segment;
	/* By scope; NULL: no limit of that kind is the segment's. */
	struct group *groups[RETENTION_ALL + 1];
	bool gone;
};

struct planner {
	const struct retention_policy *policy;
	const struct retention_segment *segments;
	struct retention_plan *plan;
	struct item *items; /* oldest first */
	size_t n;
	struct hash_map map;
	struct group *first, **last;
	struct group all;
	size_t n_groups;
	uint64_t now_ms;
};

static bool
is_held(const struct planner *p, const struct retention_segment *s)
{
	return s->pinned || (p->policy->waits_for_upload && !s->stored);
}

/* ---- groups ---- */

static bool
limits_anything(const struct retention_limit *keep)
{
	return keep->bytes != 0 || keep->age_ms != 0;
}

static const struct retention_limit *
limit_of_recording(const struct retention_policy *policy, const char *name)
{
	size_t i;

	for (i = 0; i < policy->n_rules; i++)
		if (glob_match(policy->rules[i].recording, name))
			return &policy->rules[i].keep;
	return NULL;
}

static struct group *
find_group(struct planner *p, enum retention_scope scope, const char *name)
{
	uint64_t hash = hash_bytes(name, strlen(name));
	struct group *g;

	HASH_MAP_FOREACH_OF(g, &p->map, hash, link) {
		if (g->scope == scope && strcmp(g->name, name) == 0)
			return g;
	}
	if ((g = calloc(1, sizeof(*g))) == NULL)
		return NULL;
	g->scope = scope;
	g->name = name;
	hash_map_put(&p->map, &g->link, hash);
	*p->last = g;
	p->last = &g->next;
	p->n_groups++;
	return g;
}

/* A group without limits is kept as well: its name is not matched again. */
static int
join_group(struct planner *p, struct item *item, enum retention_scope scope,
    const char *name)
{
	const struct retention_limit *keep;
	size_t groups = p->n_groups;
	struct group *g;

	if ((g = find_group(p, scope, name)) == NULL)
		return -1;
	if (p->n_groups > groups) {
		keep = scope == RETENTION_MACHINE ? &p->policy->each_machine :
		    limit_of_recording(p->policy, name);
		if (keep != NULL)
			g->keep = *keep;
	}
	if (limits_anything(&g->keep))
		item->groups[scope] = g;
	return 0;
}

static int
join_groups(struct planner *p, struct item *item)
{
	const struct retention_segment *s = item->segment;
	size_t i;

	item->groups[RETENTION_ALL] = &p->all;
	if (p->policy->n_rules > 0 &&
	    join_group(p, item, RETENTION_RECORDING, s->recording) != 0)
		return -1;
	if (limits_anything(&p->policy->each_machine) &&
	    s->machine[0] != '\0' &&
	    join_group(p, item, RETENTION_MACHINE, s->machine) != 0)
		return -1;
	for (i = 0; i <= RETENTION_ALL; i++)
		if (item->groups[i] != NULL)
			item->groups[i]->bytes += s->bytes;
	return 0;
}

/* ---- deletions ---- */

static struct retention_reason
bytes_reason(const struct group *g)
{
	return (struct retention_reason){ g->scope, false, g->name,
		g->keep.bytes, g->bytes };
}

static void
delete(struct planner *p, struct item *item, struct retention_reason why)
{
	struct retention_plan *plan = p->plan;
	size_t i;

	plan->deletions[plan->n_deletions++] = (struct retention_deletion){
		(size_t)(item->segment - p->segments), why };
	item->gone = true;
	plan->free += item->segment->bytes;
	for (i = 0; i <= RETENTION_ALL; i++)
		if (item->groups[i] != NULL)
			item->groups[i]->bytes -= item->segment->bytes;
}

static void
count_held(struct retention_excess *e, const struct retention_segment *s)
{
	if (s->pinned) {
		e->n_pinned++;
		e->pinned_bytes += s->bytes;
	} else {
		e->n_waiting++;
		e->waiting_bytes += s->bytes;
	}
}

/* The oldest segment is the first that stays, so its age is told. */
static void
hold_old(struct group *g, const struct retention_segment *s,
    struct retention_reason why)
{
	if (g->old.n_pinned + g->old.n_waiting == 0)
		g->old.over = why;
	count_held(&g->old, s);
}

static void
delete_if_old(struct planner *p, struct item *item)
{
	const struct retention_segment *s = item->segment;
	struct retention_reason why;
	struct group *g;
	uint64_t age;
	size_t i;

	age = s->end_ms < p->now_ms ? p->now_ms - s->end_ms : 0;
	for (i = 0; i <= RETENTION_ALL; i++) {
		g = item->groups[i];
		if (g == NULL || g->keep.age_ms == 0 || age <= g->keep.age_ms)
			continue;
		why = (struct retention_reason){ g->scope, true, g->name,
			g->keep.age_ms, age };
		if (!is_held(p, s)) {
			delete(p, item, why);
			return;
		}
		hold_old(g, s, why);
	}
}

static void
delete_by_bytes(struct planner *p, enum retention_scope scope)
{
	struct group *g;
	size_t i;

	for (i = 0; i < p->n; i++) {
		g = p->items[i].groups[scope];
		if (g != NULL && !p->items[i].gone && g->keep.bytes != 0 &&
		    g->bytes > g->keep.bytes &&
		    !is_held(p, p->items[i].segment))
			delete(p, &p->items[i], bytes_reason(g));
	}
}

static struct retention_reason
disk_reason(const struct planner *p)
{
	return (struct retention_reason){ RETENTION_DISK, false, "",
		p->policy->min_free, p->plan->free };
}

static void
delete_for_disk(struct planner *p)
{
	size_t i;

	for (i = 0; i < p->n && p->plan->free < p->policy->min_free; i++)
		if (!p->items[i].gone && !is_held(p, p->items[i].segment))
			delete(p, &p->items[i], disk_reason(p));
}

/* ---- what is left ---- */

static void
name_next(struct planner *p)
{
	struct retention_plan *plan = p->plan;
	uint64_t min_free = p->policy->min_free;
	size_t i;

	plan->near = plan->free < min_free ||
	    plan->free - min_free < min_free / 10;
	if (!plan->near)
		return;
	for (i = 0; i < p->n && plan->n_next < RETENTION_NEXT_MAX; i++)
		if (!p->items[i].gone && !is_held(p, p->items[i].segment))
			plan->next[plan->n_next++] =
			    (size_t)(p->items[i].segment - p->segments);
}

static void
find_due(struct planner *p)
{
	const struct group *g;
	uint64_t due;
	size_t i, k;

	p->plan->due_ms = UINT64_MAX;
	for (i = 0; i < p->n; i++) {
		if (p->items[i].gone || is_held(p, p->items[i].segment))
			continue;
		for (k = 0; k <= RETENTION_ALL; k++) {
			g = p->items[i].groups[k];
			if (g == NULL || g->keep.age_ms == 0)
				continue;
			due = p->items[i].segment->end_ms + g->keep.age_ms + 1;
			/* An end that no clock shows is never reached. */
			if (due > g->keep.age_ms && due < p->plan->due_ms)
				p->plan->due_ms = due;
		}
	}
}

/* Segments that keep the bytes of a group, or with NULL of the disk, up. */
static struct retention_excess
held_of(const struct planner *p, const struct group *g,
    struct retention_reason over)
{
	struct retention_excess e = { .over = over };
	size_t i;

	for (i = 0; i < p->n; i++)
		if (!p->items[i].gone &&
		    (g == NULL || p->items[i].groups[g->scope] == g))
			count_held(&e, p->items[i].segment);
	return e;
}

static void
add_excess(struct planner *p, struct retention_excess e)
{
	p->plan->excesses[p->plan->n_excesses++] = e;
}

static void
tell_excess_of(struct planner *p, const struct group *g)
{
	if (g->old.n_pinned + g->old.n_waiting > 0)
		add_excess(p, g->old);
	if (g->keep.bytes != 0 && g->bytes > g->keep.bytes)
		add_excess(p, held_of(p, g, bytes_reason(g)));
}

static int
tell_excesses(struct planner *p)
{
	const struct group *g;

	/* At most two a group, two of the archive, and one of the disk. */
	p->plan->excesses = calloc(2 * p->n_groups + 3,
	    sizeof(*p->plan->excesses));
	if (p->plan->excesses == NULL)
		return -1;
	for (g = p->first; g != NULL; g = g->next)
		tell_excess_of(p, g);
	tell_excess_of(p, &p->all);
	if (p->plan->free < p->policy->min_free)
		add_excess(p, held_of(p, NULL, disk_reason(p)));
	return 0;
}

/* ---- the plan ---- */

static int
compare_ages(const void *left, const void *right)
{
	const struct retention_segment *a =
	    ((const struct item *)left)->segment;
	const struct retention_segment *b =
	    ((const struct item *)right)->segment;

	if (a->end_ms != b->end_ms)
		return a->end_ms < b->end_ms ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

static int
begin(struct planner *p)
{
	size_t i;

	p->last = &p->first;
	p->all.scope = RETENTION_ALL;
	p->all.name = "";
	p->all.keep = p->policy->all;
	/* One more, as calloc(0) may return NULL. */
	p->items = calloc(p->n + 1, sizeof(*p->items));
	p->plan->deletions = calloc(p->n + 1, sizeof(*p->plan->deletions));
	if (p->items == NULL || p->plan->deletions == NULL)
		return -1;
	for (i = 0; i < p->n; i++)
		p->items[i].segment = &p->segments[i];
	qsort(p->items, p->n, sizeof(*p->items), compare_ages);
	for (i = 0; i < p->n; i++)
		if (join_groups(p, &p->items[i]) != 0)
			return -1;
	return 0;
}

static int
run(struct planner *p)
{
	size_t i;

	if (begin(p) != 0)
		return -1;
	for (i = 0; i < p->n; i++)
		delete_if_old(p, &p->items[i]);
	/* The narrower limit first: it may do for the wider one, too. */
	delete_by_bytes(p, RETENTION_RECORDING);
	delete_by_bytes(p, RETENTION_MACHINE);
	delete_by_bytes(p, RETENTION_ALL);
	delete_for_disk(p);
	p->plan->bytes = p->all.bytes;
	name_next(p);
	find_due(p);
	return tell_excesses(p);
}

int
retention_plan_make(struct retention_plan *plan,
    const struct retention_policy *policy,
    const struct retention_segment *segments, size_t n, uint64_t now_ms,
    uint64_t free_bytes)
{
	struct planner p = {
		.policy = policy,
		.segments = segments,
		.plan = plan,
		.n = n,
		.now_ms = now_ms,
	};
	struct group *g;
	int status;

	*plan = (struct retention_plan){ .free = free_bytes };
	if ((status = run(&p)) != 0)
		retention_plan_done(plan);
	free(p.items);
	hash_map_done(&p.map);
	while ((g = p.first) != NULL) {
		p.first = g->next;
		free(g);
	}
	return status;
}

void
retention_plan_done(struct retention_plan *plan)
{
	free(plan->deletions);
	free(plan->excesses);
	*plan = (struct retention_plan){ .due_ms = UINT64_MAX };
}
