#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "client/archive/catalog.h"
#include "client/archiver/keeper_internal.h"
#include "transport/base/hash_map.h"
#include "transport/base/human_numbers.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

/*
 * A plan of all segments takes a second for a million: the next one waits so
 * many times as long as the last one took.
 */
#define REST_FACTOR 50u

/* After a deletion that failed, as the reason may be every segment's. */
#define FAILED_REST_MS 3000u

/* Enough oldest segments for a disk that is full before the next such plan. */
#define OLDEST "1000"

struct name {
	struct hash_link link;
	char text[];
};

struct table {
	struct retention_segment *segments; /* owned */
	size_t n, room;
	struct hash_map names; /* owned: of the segments */
	uint64_t pinned, waiting;
};

/* ---- segments of the catalogue ---- */

static const char *
name_of(struct table *t, const char *text)
{
	uint64_t hash = hash_bytes(text, strlen(text));
	size_t len = strlen(text) + 1;
	struct name *n;

	HASH_MAP_FOREACH_OF(n, &t->names, hash, link) {
		if (strcmp(n->text, text) == 0)
			return n->text;
	}
	if ((n = malloc(sizeof(*n) + len)) == NULL)
		return NULL;
	memcpy(n->text, text, len);
	hash_map_put(&t->names, &n->link, hash);
	return n->text;
}

static void
table_done(struct table *t)
{
	struct hash_cursor c;
	struct name *n;

	HASH_MAP_FOREACH(n, &t->names, &c, link) {
		hash_map_remove(&t->names, &n->link);
		free(n);
	}
	hash_map_done(&t->names);
	free(t->segments);
}

enum column { ID, RECORDING, MACHINE, LAST, MTIME, BYTES, PINNED, STORED };

/*
 * The end is what the trace says, but not later than the file was written: a
 * clock that was wrong would keep it for ever.
 */
static uint64_t
end_ms(struct catalog_statement *s)
{
	int64_t end = catalog_int(s, MTIME);

	if (!catalog_is_null(s, LAST) &&
	    catalog_int(s, LAST) < end)
		end = catalog_int(s, LAST);
	return end > 0 ? (uint64_t)end / 1000000 : 0;
}

static int
add_row(struct table *t, struct catalog_statement *s)
{
	struct retention_segment *grown, *to;

	if (t->n == t->room) {
		t->room = t->room == 0 ? 256 : 2 * t->room;
		grown = reallocarray(t->segments, t->room, sizeof(*grown));
		if (grown == NULL)
			return -1;
		t->segments = grown;
	}
	to = &t->segments[t->n];
	*to = (struct retention_segment){
		.id = (uint64_t)catalog_int(s, ID),
		.recording = name_of(t,
		    catalog_text(s, RECORDING)),
		.machine = name_of(t,
		    catalog_text(s, MACHINE)),
		.end_ms = end_ms(s),
		.bytes = (uint64_t)catalog_int(s, BYTES),
		.pinned = catalog_int(s, PINNED) != 0,
		.stored = catalog_int(s, STORED) != 0,
	};
	if (to->recording == NULL || to->machine == NULL)
		return -1;
	t->n++;
	t->pinned += to->pinned;
	t->waiting += !to->stored;
	return 0;
}

#define COLUMNS(machine)                                                      \
	"SELECT s.id, s.recording, " machine ", s.last_ns, s.mtime_ns,"       \
	" s.bytes, s.pinned, s.stored_state IS 'stored'"                      \
	" FROM segments AS s WHERE s.local"

static const char sql_all[] = COLUMNS("s.machine");
/* A recording of a single machine is that machine's, split or not. */
static const char sql_machines[] = COLUMNS("CASE WHEN s.machine <> ''"
	" THEN s.machine ELSE (SELECT CASE WHEN COUNT(*) = 1 THEN MAX(m.name)"
	" ELSE '' END FROM machines AS m WHERE m.segment = s.id AND"
	" m.packets > 0) END");
static const char sql_oldest[] = COLUMNS("''") " AND NOT s.pinned"
	" ORDER BY s.last_ns LIMIT " OLDEST;
static const char sql_oldest_stored[] = COLUMNS("''") " AND NOT s.pinned"
	" AND s.stored_state = 'stored' ORDER BY s.last_ns LIMIT " OLDEST;

static bool
is_stuck(const struct keeper *k, int64_t id)
{
	size_t i;

	for (i = 0; i < k->n_stuck && i < KEEPER_STUCK_MAX; i++)
		if (k->stuck[i] == id)
			return true;
	return false;
}

static int
read_rows(struct keeper *k, struct table *t, const char *sql)
{
	char err[ARCHIVER_ERROR_SIZE];
	struct catalog_statement *s;
	int more = -1;

	s = catalog_prepare(k->catalog, sql, err, sizeof(err));
	while (s != NULL && (more = catalog_step(k->catalog, s, err,
	    sizeof(err))) > 0)
		if (!is_stuck(k, catalog_int(s, ID)) &&
		    add_row(t, s) != 0) {
			catalog_reset(s);
			snprintf(err, sizeof(err), "no memory for a list of "
			    "all segments");
			more = -1;
			break;
		}
	if (more < 0)
		keeper_fail(k, "%s", err);
	return more;
}

/* ---- what to say ---- */

static void
copy_path(char out[KEEPER_NAME_MAX], const char *path)
{
	snprintf(out, KEEPER_NAME_MAX, "%.*s", (int)KEEPER_NAME_MAX - 1, path);
}

static bool
take_path(void *arg, const struct catalog_row *row)
{
	copy_path(arg, row->path);
	return false;
}

/* "" where the row is gone. */
static void
find_path(struct keeper *k, const struct retention_segment *of,
    char out[KEEPER_NAME_MAX])
{
	const struct catalog_value id = CATALOG_INT((int64_t)of->id);
	char err[ARCHIVER_ERROR_SIZE];

	out[0] = '\0';
	if (catalog_each(k->catalog, "WHERE s.id = ?", &id, 1, take_path, out,
	    err, sizeof(err)) != 0)
		log_debug("%s", err);
}

static void
name_next(struct keeper *k, const struct table *t,
    const struct retention_plan *plan)
{
	char names[RETENTION_NEXT_MAX][KEEPER_NAME_MAX] = { "" };
	size_t i;

	for (i = 0; i < plan->n_next; i++)
		find_path(k, &t->segments[plan->next[i]], names[i]);
	pthread_mutex_lock(&k->lock);
	memcpy(k->view.next, names, sizeof(names));
	k->view.n_next = plan->n_next;
	pthread_mutex_unlock(&k->lock);
}

/* The segment that goes first for room, now or later; NULL: there is none. */
static const struct retention_segment *
first_for_room(const struct table *t, const struct retention_plan *plan)
{
	size_t i;

	for (i = 0; i < plan->n_deletions; i++)
		if (plan->deletions[i].why.scope == RETENTION_DISK)
			return &t->segments[plan->deletions[i].segment];
	return plan->n_next > 0 ? &t->segments[plan->next[0]] : NULL;
}

/* Before the first deletion that it announces. */
static void
warn_if_near(struct keeper *k, const struct table *t,
    const struct retention_plan *plan, uint64_t free_bytes)
{
	const struct retention_segment *first = first_for_room(t, plan);
	char has[HUMAN_TEXT_MAX], least[HUMAN_TEXT_MAX];
	uint64_t min_free = k->settings.policy.min_free;
	char name[KEEPER_NAME_MAX] = "";
	bool near;

	near = free_bytes < min_free || free_bytes - min_free < min_free / 10;
	if (near && !k->was_near) {
		if (first != NULL)
			find_path(k, first, name);
		log_warn("the disk has %s free, and is to have %s: below that "
		    "the oldest segments are deleted%s%s", human_bytes(has,
		    free_bytes), human_bytes(least, min_free),
		    first != NULL ? ", at first " : "", name);
	}
	k->was_near = near;
}

static bool
was_told(const struct keeper *k, const struct retention_reason *of)
{
	size_t i;

	for (i = 0; i < k->n_told; i++)
		if (k->told[i].scope == of->scope &&
		    k->told[i].by_age == of->by_age &&
		    strncmp(k->told[i].name, of->name,
			KEEPER_NAME_MAX - 1) == 0)
			return true;
	return false;
}

static void
tell_excesses(struct keeper *k, const struct retention_plan *plan)
{
	size_t n = plan->n_excesses < KEEPER_EXCESSES_MAX ? plan->n_excesses :
	    KEEPER_EXCESSES_MAX, i;
	struct told_excess told[KEEPER_EXCESSES_MAX] = { { .name = "" } };
	const struct retention_reason *of;
	char text[RETENTION_TEXT_MAX];

	pthread_mutex_lock(&k->lock);
	for (i = 0; i < n; i++) {
		of = &plan->excesses[i].over;
		retention_excess_text(text, &plan->excesses[i]);
		memcpy(k->view.excesses[i], text, sizeof(text));
		if (!was_told(k, of))
			log_warn("a limit cannot be kept: %s", text);
		told[i].scope = of->scope;
		told[i].by_age = of->by_age;
		copy_path(told[i].name, of->name);
	}
	k->view.n_excesses = n;
	pthread_mutex_unlock(&k->lock);
	memcpy(k->told, told, n * sizeof(*told));
	k->n_told = n;
}

static void
tell_totals(struct keeper *k, const struct table *t,
    const struct retention_plan *plan)
{
	pthread_mutex_lock(&k->lock);
	k->view.segments = t->n - plan->n_deletions;
	k->view.bytes = plan->bytes;
	k->view.pinned = t->pinned;
	k->view.waiting = k->settings.policy.waits_for_upload ? t->waiting : 0;
	pthread_mutex_unlock(&k->lock);
}

/* ---- plans ---- */

/* False: not all of it is done, for want of time or by a failure. */
static bool
delete_all(struct keeper *k, const struct table *t,
    const struct retention_plan *plan)
{
	const struct retention_deletion *d;
	char why[RETENTION_TEXT_MAX];
	int64_t id;
	size_t i;

	for (i = 0; i < plan->n_deletions &&
	    !work_queue_is_stopped(k->queue); i++) {
		d = &plan->deletions[i];
		id = (int64_t)t->segments[d->segment].id;
		retention_reason_text(why, &d->why);
		if (keeper_delete(k, &(struct keeper_deletion){
		    .id = id,
		    .cause = 2 * d->why.scope + d->why.by_age,
		    .why = why }) == 0)
			continue;
		k->stuck[k->n_stuck++ % KEEPER_STUCK_MAX] = id;
		break;
	}
	return i == plan->n_deletions;
}

/* The next plan has what is left of this one. */
static void
rest_after_failure(struct keeper *k)
{
	k->changed = true;
	k->resume_ms = loop_now_ms() + FAILED_REST_MS;
}

/* Room on the disk alone, by the oldest segments. */
static void
make_room(struct keeper *k, uint64_t free_bytes)
{
	const struct retention_policy disk = {
		.min_free = k->settings.policy.min_free,
		.waits_for_upload = k->settings.policy.waits_for_upload,
	};
	struct retention_plan plan;
	struct table t = { 0 };

	if (read_rows(k, &t, disk.waits_for_upload ? sql_oldest_stored :
	    sql_oldest) == 0 &&
	    retention_plan_make(&plan, &disk, t.segments, t.n,
		keeper_wall_ms(), free_bytes) == 0) {
		warn_if_near(k, &t, &plan, free_bytes);
		if (!delete_all(k, &t, &plan))
			rest_after_failure(k);
		retention_plan_done(&plan);
	}
	table_done(&t);
}

static void
plan_all(struct keeper *k, uint64_t free_bytes)
{
	const struct retention_policy *policy = &k->settings.policy;
	uint64_t began = loop_now_ms();
	struct retention_plan plan;
	struct table t = { 0 };

	k->changed = false;
	if (read_rows(k, &t, policy->each_machine.bytes != 0 ||
	    policy->each_machine.age_ms != 0 ? sql_machines : sql_all) == 0 &&
	    retention_plan_make(&plan, policy, t.segments, t.n,
		keeper_wall_ms(), free_bytes) == 0) {
		name_next(k, &t, &plan);
		warn_if_near(k, &t, &plan, free_bytes);
		if (delete_all(k, &t, &plan)) {
			tell_excesses(k, &plan);
			tell_totals(k, &t, &plan);
		} else {
			rest_after_failure(k);
		}
		k->due_ms = plan.due_ms;
		retention_plan_done(&plan);
	}
	table_done(&t);
	k->not_before_ms = loop_now_ms() +
	    REST_FACTOR * (loop_now_ms() - began);
}

/* Other programs pin, remove and store segments. */
static void
see_changes(struct keeper *k)
{
	char err[ARCHIVER_ERROR_SIZE];
	int64_t version;
	struct catalog_statement *s;

	s = catalog_prepare(k->catalog, "PRAGMA data_version", err,
	    sizeof(err));
	if (s == NULL || catalog_step(k->catalog, s, err, sizeof(err)) <= 0)
		return;
	version = catalog_int(s, 0);
	catalog_reset(s);
	if (version != k->data_version)
		k->changed = true;
	k->data_version = version;
}

/* -1: it cannot be asked. */
static int
ask_disk(struct keeper *k, uint64_t *free_bytes)
{
	struct statvfs st;

	if (fstatvfs(k->fd, &st) != 0)
		return -1;
	*free_bytes = (uint64_t)st.f_bavail * st.f_frsize;
	pthread_mutex_lock(&k->lock);
	k->view.free = *free_bytes;
	k->view.min_free = k->settings.policy.min_free;
	pthread_mutex_unlock(&k->lock);
	return 0;
}

void
keeper_retain(struct keeper *k)
{
	uint64_t least = k->settings.policy.min_free, free_bytes;
	bool near;

	if (ask_disk(k, &free_bytes) != 0 || loop_now_ms() < k->resume_ms)
		return;
	see_changes(k);
	near = free_bytes < least || free_bytes - least < least / 10;
	if (loop_now_ms() >= k->not_before_ms) {
		if (k->changed || near != k->was_near || free_bytes < least ||
		    keeper_wall_ms() >= k->due_ms)
			plan_all(k, free_bytes);
	} else if (free_bytes < least) {
		make_room(k, free_bytes);
	}
}
