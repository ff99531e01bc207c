/* A catalogue is asked, and so is a list of what is in it: both agree. */
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/archive/catalog.h"
#include "client/archive/segment_entry.h"
#include "client/archive/selection.h"
#include "transport/base/glob.h"

#define ERR      512
#define SEGMENTS 5000u
#define ROUNDS   120u
#define TIMES    1000000u

/* What a segment of the test has; the numbers name things. */
struct known {
	int64_t first, last, machine_first, machine_last;
	unsigned machine, recording;
	unsigned trigger, process; /* 0: none; 1 is common, others are rare */
	bool lost, has_wall;
	int64_t id;
};

struct fixture {
	char path[64];
	char err[ERR];
	struct catalog *catalog;
	struct known known[SEGMENTS];
	uint32_t seed;
};

static uint32_t
chance(struct fixture *f, uint32_t below)
{
	f->seed = f->seed * 1664525u + 1013904223u;
	return (f->seed >> 8) % below;
}

static void
make_known(struct fixture *f, struct known *k)
{
	/* Most are short, few are long. */
	uint32_t span = 1u << chance(f, chance(f, 20) == 0 ? 20 : 11);

	k->first = 1 + chance(f, TIMES);
	k->last = k->first + chance(f, span);
	k->machine_first = k->first + (k->last - k->first) / 4;
	k->machine_last = k->last - (k->last - k->first) / 4;
	k->machine = chance(f, 100);
	k->recording = chance(f, 3);
	k->trigger = chance(f, 30) == 0 ? 2 + chance(f, 3) : chance(f, 20) != 0;
	k->process = chance(f, 30) == 0 ? 2 + chance(f, 3) : chance(f, 20) != 0;
	k->lost = chance(f, 10) == 0;
	k->has_wall = chance(f, 50) != 0;
}

static bool
id_cb(void *arg, const struct catalog_row *row)
{
	*(int64_t *)arg = row->id;
	return true;
}

static void
put_known(struct fixture *f, struct known *k, size_t n)
{
	char path[64], machine[32], recording[32], trigger[32], process[64];
	struct segment_machine m = { .name = machine, .packets = 1,
		.wall = { k->has_wall, k->machine_first, k->machine_last } };
	struct segment_trigger t = { .name = trigger,
		.producer = (char *)"p" };
	struct segment_process p = { .pid = 1, .name = process };
	struct segment_entry e = { .path = path, .verdict = (char *)"whole",
		.problem = (char *)"", .recording = recording,
		.machine = (char *)"", .lost = k->lost,
		.wall = { k->has_wall, k->first, k->last }, .machines = &m,
		.n_machines = 1, .triggers = &t, .n_triggers = k->trigger > 0,
		.processes = &p, .n_processes = k->process > 0 };

	snprintf(path, sizeof(path), "day/%zu.pftrace", n);
	snprintf(machine, sizeof(machine), "kiosk-%u", k->machine);
	snprintf(recording, sizeof(recording), "always[%u]", k->recording);
	snprintf(trigger, sizeof(trigger), "drop-%u", k->trigger);
	snprintf(process, sizeof(process), "/usr/bin/app-%u", k->process);
	assert_int_equal(catalog_put(f->catalog, &e, false, f->err, ERR), 0);
	assert_int_equal(catalog_find(f->catalog, path, id_cb, &k->id, f->err,
	    ERR), 1);
}

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	size_t i;

	assert_non_null(f);
	f->seed = 18;
	strcpy(f->path, "/tmp/test_selection.XXXXXX");
	assert_non_null(mkdtemp(f->path));
	f->catalog = catalog_open(f->path, CATALOG_WRITE, f->err, ERR);
	assert_non_null(f->catalog);
	assert_int_equal(catalog_begin(f->catalog, f->err, ERR), 0);
	for (i = 0; i < SEGMENTS; i++) {
		make_known(f, &f->known[i]);
		put_known(f, &f->known[i], i);
	}
	assert_int_equal(catalog_commit(f->catalog, f->err, ERR), 0);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	catalog_close(f->catalog);
	assert_int_equal(catalog_destroy(f->path, f->err, ERR), 0);
	assert_int_equal(rmdir(f->path), 0);
	free(f);
	return 0;
}

/* ---- the second opinion ---- */

static bool
means(const char *pattern, const char *format, unsigned n)
{
	char name[64];

	snprintf(name, sizeof(name), format, n);
	return glob_match(pattern, name);
}

static bool
overlaps(const struct selection *s, int64_t first, int64_t last)
{
	return !s->has_time || (first <= s->to_ns && last >= s->from_ns);
}

static bool
is_meant(const struct selection *s, const struct known *k)
{
	if (s->has_time && (!k->has_wall || !overlaps(s, k->first, k->last)))
		return false;
	if (s->machine != NULL && (!means(s->machine, "kiosk-%u",
	    k->machine) || (k->has_wall && !overlaps(s, k->machine_first,
	    k->machine_last))))
		return false;
	if (s->recording != NULL && !means(s->recording, "always[%u]",
	    k->recording))
		return false;
	if (s->trigger != NULL && (k->trigger == 0 || !means(s->trigger,
	    "drop-%u", k->trigger)))
		return false;
	if (s->process != NULL && (k->process == 0 || !(means(s->process,
	    "app-%u", k->process) || means(s->process, "/usr/bin/app-%u",
	    k->process))))
		return false;
	return !s->lost || k->lost;
}

static const struct known *
known_of(const struct fixture *f, int64_t id)
{
	size_t i;

	for (i = 0; i < SEGMENTS; i++) {
		if (f->known[i].id == id)
			return &f->known[i];
	}
	fail_msg("no segment has the id %lld", (long long)id);
	return NULL;
}

static void
compare(struct fixture *f, const struct selection *s, size_t limit)
{
	struct selection_found found;
	const struct known *k, *before = NULL;
	size_t i, wanted = 0;

	for (i = 0; i < SEGMENTS; i++)
		wanted += is_meant(s, &f->known[i]);
	if (limit != 0 && wanted > limit)
		wanted = limit;
	if (selection_run(&found, f->catalog, s, limit, f->err, ERR) != 0)
		fail_msg("%s", f->err);
	assert_int_equal(found.n, wanted);
	for (i = 0; i < found.n; i++) {
		k = known_of(f, found.ids[i]);
		assert_true(is_meant(s, k));
		/* Newest first, those without a time last. */
		if (before != NULL && before->has_wall && k->has_wall)
			assert_true(before->first > k->first ||
			    (before->first == k->first &&
			    before->id > k->id));
		if (before != NULL && k->has_wall)
			assert_true(before->has_wall);
		before = k;
	}
	selection_found_done(&found);
}

/* ---- cases ---- */

static void
all_ways_to_ask_find_what_there_is(void **state)
{
	static const char *const machines[] = { NULL, "kiosk-7", "kiosk-1*",
		"kiosk-*", "kiosk-?", "*", "nowhere" };
	static const char *const triggers[] = { NULL, NULL, "drop-1", "drop-2",
		"drop-*", "none" };
	static const char *const processes[] = { NULL, NULL, "app-1", "app-2",
		"app-*", "none" };
	static const char *const recordings[] = { NULL, NULL, "always[1]",
		"always[*" };
	static const size_t limits[] = { 0, 0, 1, 20 };
	struct fixture *f = *state;
	struct selection s;
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		s = (struct selection){
			.machine = machines[chance(f, 7)],
			.trigger = triggers[chance(f, 6)],
			.process = processes[chance(f, 6)],
			.recording = recordings[chance(f, 4)],
			.lost = chance(f, 4) == 0,
			.has_time = chance(f, 3) != 0,
		};
		s.from_ns = chance(f, TIMES);
		s.to_ns = s.from_ns + chance(f, 1u << chance(f, 21));
		/*
		 * Of a machine, the first ones are by its own times: a limit
		 * may take others.
		 */
		compare(f, &s, limits[chance(f, 4)]);
	}
}

static void
the_nearest_ones_are_named(void **state)
{
	struct fixture *f = *state;
	struct selection s = { .machine = "kiosk-7", .has_time = true,
		.from_ns = TIMES * 3ll, .to_ns = TIMES * 3ll + 5 };
	int64_t near[2];

	compare(f, &s, 0);
	assert_int_equal(selection_nearest(near, f->catalog, &s, f->err, ERR),
	    0);
	assert_int_not_equal(near[0], 0);
	assert_int_equal(near[1], 0);
	assert_int_equal(known_of(f, near[0])->machine, 7);
	s.from_ns = s.to_ns = 0;
	assert_int_equal(selection_nearest(near, f->catalog, &s, f->err, ERR),
	    0);
	assert_int_equal(near[0], 0);
	assert_int_not_equal(near[1], 0);
	assert_true(known_of(f, near[1])->machine_first <= TIMES / 10);
}

/* ---- plans ---- */

#define STATEMENTS 512u

/* Texts of the statements that were run, each once. */
struct statements {
	char *sql[STATEMENTS]; /* owned */
	size_t n;
};

static int
keep_sql(unsigned event, void *arg, void *stmt, void *text)
{
	struct statements *all = arg;
	const char *sql = sqlite3_sql(stmt);
	size_t i;

	(void)event;
	(void)text;
	for (i = 0; i < all->n; i++) {
		if (strcmp(all->sql[i], sql) == 0)
			return 0;
	}
	assert_true(all->n < STATEMENTS);
	all->sql[all->n] = strdup(sql);
	assert_non_null(all->sql[all->n++]);
	return 0;
}

/*
 * No step of the plan reads a table or index from end to end, or sorts: such a
 * step's time grows with the archive.  Recursion, constants and lists of ids are
 * short.
 */
static void
check_plan(struct fixture *f, const char *sql)
{
	static const char *const fine[] = { "SCAN k", "SCAN CONSTANT ROW",
		"SCAN (subquery", "SCAN 2 CONSTANT ROWS" };
	char *explain = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sql);
	const char *step;
	sqlite3_stmt *s;
	size_t i;

	assert_int_equal(sqlite3_prepare_v2(catalog_handle(f->catalog),
	    explain, -1, &s, NULL), SQLITE_OK);
	while (sqlite3_step(s) == SQLITE_ROW) {
		step = (const char *)sqlite3_column_text(s, 3);
		for (i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
			if (strncmp(step, fine[i], strlen(fine[i])) == 0)
				break;
		}
		if (i == sizeof(fine) / sizeof(fine[0]) &&
		    (strncmp(step, "SCAN", 4) == 0 ||
		    strstr(step, "TEMP B-TREE") != NULL ||
		    strstr(step, "AUTOMATIC") != NULL))
			fail_msg("%s: %s", step, sql);
	}
	sqlite3_finalize(s);
	sqlite3_free(explain);
}

/* Each condition by itself and with each other one, with and without a time. */
static void
ask_everything(struct fixture *f)
{
	static const char *const machines[] = { NULL, "kiosk-7", "kiosk-*" };
	static const char *const names[][3] = {
		{ NULL, NULL, NULL }, { "drop-1", NULL, NULL },
		{ NULL, "app-1", NULL }, { "drop-*", "app-*", NULL },
		{ NULL, "/usr/bin/app-1", "always[1]" },
		{ "drop-2", "app-2", "always*" },
	};
	struct selection s;
	int64_t near[2];
	size_t i, k;

	for (i = 0; i < 3 * 6 * 4; i++) {
		k = i / 3 % 6;
		s = (struct selection){ .machine = machines[i % 3],
			.trigger = names[k][0], .process = names[k][1],
			.recording = names[k][2], .lost = i / 18 % 2 == 1,
			.has_time = i / 36 == 1, .from_ns = TIMES / 2,
			.to_ns = TIMES / 2 + 500 };
		compare(f, &s, i % 2 == 0 ? 20 : 0);
		if (s.has_time)
			assert_int_equal(selection_nearest(near, f->catalog,
			    &s, f->err, ERR), 0);
	}
}

static void
no_question_reads_a_table_from_end_to_end(void **state)
{
	struct fixture *f = *state;
	struct statements all = { .n = 0 };
	size_t i;

	assert_int_equal(sqlite3_trace_v2(catalog_handle(f->catalog),
	    SQLITE_TRACE_STMT, keep_sql, &all), SQLITE_OK);
	ask_everything(f);
	assert_int_equal(sqlite3_trace_v2(catalog_handle(f->catalog), 0, NULL,
	    NULL), SQLITE_OK);
	/* The conditions make texts of their own. */
	assert_true(all.n > 50);
	for (i = 0; i < all.n; i++) {
		check_plan(f, all.sql[i]);
		free(all.sql[i]);
	}
}

/* A segment of all machines names each, also those that were silent. */
static void
a_machine_without_packets_is_not_found(void **state)
{
	struct segment_machine m[] = {
		{ .id = 1, .name = (char *)"silent", .wall = { .known = false } },
		{ .id = 2, .name = (char *)"talking", .packets = 1,
		    .wall = { true, 5, 6 } },
	};
	struct segment_entry e = { .path = (char *)"both.pftrace",
		.verdict = (char *)"whole", .problem = (char *)"",
		.recording = (char *)"", .machine = (char *)"",
		.wall = { true, 5, 6 }, .machines = m, .n_machines = 2 };
	struct selection s = { .machine = "silent" };
	struct selection_found found;
	struct fixture *f = *state;

	assert_int_equal(catalog_put(f->catalog, &e, false, f->err, ERR), 0);
	assert_int_equal(selection_run(&found, f->catalog, &s, 0, f->err, ERR),
	    0);
	assert_int_equal(found.n, 0);
	selection_found_done(&found);
	s.machine = "talking";
	assert_int_equal(selection_run(&found, f->catalog, &s, 0, f->err, ERR),
	    0);
	assert_int_equal(found.n, 1);
	assert_int_equal(catalog_remove(f->catalog, found.ids[0], f->err, ERR),
	    0);
	selection_found_done(&found);
}

static bool
path_cb(void *arg, const struct catalog_row *row)
{
	char *out = arg;

	strcat(out, row->path);
	strcat(out, " ");
	return true;
}

static void
segments_can_be_named(void **state)
{
	const char *paths[] = { "day/17.pftrace", "day/4.pftrace" };
	struct fixture *f = *state;
	struct selection s = { .folder = f->path, .paths = paths,
		.n_paths = 2 };
	struct selection_found found;
	char text[256] = "";

	assert_int_equal(selection_run(&found, f->catalog, &s, 0, f->err, ERR),
	    0);
	assert_int_equal(found.n, 2);
	assert_int_equal(selection_each(f->catalog, &found, path_cb, text,
	    f->err, ERR), 0);
	assert_non_null(strstr(text, "day/17.pftrace "));
	assert_non_null(strstr(text, "day/4.pftrace "));
	selection_found_done(&found);
	paths[1] = "day/none";
	assert_int_equal(selection_run(&found, f->catalog, &s, 0, f->err, ERR),
	    -1);
	assert_non_null(strstr(f->err, "has no segment day/none"));
}

static void
rows_come_in_their_order(void **state)
{
	struct fixture *f = *state;
	struct selection s = { .lost = false };
	struct selection_found found;
	char *text = calloc(SEGMENTS, 32);

	/* More than are asked for at once. */
	assert_int_equal(selection_run(&found, f->catalog, &s, 700, f->err,
	    ERR), 0);
	assert_int_equal(found.n, 700);
	assert_int_equal(selection_each(f->catalog, &found, path_cb, text,
	    f->err, ERR), 0);
	{
		const char *p = text;
		size_t i;

		for (i = 0; i < found.n; i++) {
			assert_ptr_equal(&f->known[strtoul(p + 4, NULL, 10)],
			    known_of(f, found.ids[i]));
			p = strchr(p, ' ') + 1;
		}
	}
	free(text);
	selection_found_done(&found);
}

static void
wrong_words_are_refused(void **state)
{
	const char *const path = "a";
	struct selection s;
	char err[ERR] = "";

	(void)state;
	s = (struct selection){ .around = "30s" };
	assert_int_equal(selection_settle(&s, 1, err, ERR), -1);
	s = (struct selection){ .at = "14:32", .from = "14:00" };
	assert_int_equal(selection_settle(&s, 1, err, ERR), -1);
	s = (struct selection){ .from = "@20", .to = "@10" };
	assert_int_equal(selection_settle(&s, 1, err, ERR), -1);
	assert_string_equal(err, "--to @10 is before --from @20");
	s = (struct selection){ .paths = &path, .n_paths = 1, .lost = true };
	assert_int_equal(selection_settle(&s, 1, err, ERR), -1);
	assert_string_equal(err, "name segments, or say which kind of them: "
	    "not both");
}

static void
times_become_spans(void **state)
{
	struct selection s = { .at = "@100" };
	char err[ERR] = "";

	(void)state;
	setenv("TRIBUTARY_ARCHIVE", "/srv/traces", 1);
	assert_int_equal(selection_settle(&s, 1, err, ERR), 0);
	assert_string_equal(s.folder, "/srv/traces");
	assert_int_equal(s.from_ns, 70000000000);
	assert_int_equal(s.to_ns, 130000000000);
	/* No time is before 1970 or behind what can be said. */
	s = (struct selection){ .at = "@100", .around = "1h" };
	assert_int_equal(selection_settle(&s, 1, err, ERR), 0);
	assert_int_equal(s.from_ns, 0);
	s = (struct selection){ .at = "@9223372035", .around = "3000w" };
	assert_int_equal(selection_settle(&s, 1, err, ERR), 0);
	assert_int_equal(s.to_ns, INT64_MAX);
	unsetenv("TRIBUTARY_ARCHIVE");
	s = (struct selection){ .from = "@100" };
	assert_int_equal(selection_settle(&s, 1, err, ERR), 0);
	assert_string_equal(s.folder, SELECTION_DEFAULT_FOLDER);
	assert_int_equal(s.from_ns, 100000000000);
	assert_int_equal(s.to_ns, INT64_MAX);
	assert_true(selection_is_set(&s));
	s = (struct selection){ .folder = "x" };
	assert_int_equal(selection_settle(&s, 1, err, ERR), 0);
	assert_false(s.has_time);
	assert_false(selection_is_set(&s));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ways_to_ask_find_what_there_is),
		cmocka_unit_test(the_nearest_ones_are_named),
		cmocka_unit_test(no_question_reads_a_table_from_end_to_end),
		cmocka_unit_test(a_machine_without_packets_is_not_found),
		cmocka_unit_test(segments_can_be_named),
		cmocka_unit_test(rows_come_in_their_order),
		cmocka_unit_test(wrong_words_are_refused),
		cmocka_unit_test(times_become_spans),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
