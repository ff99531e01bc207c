#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/archive/catalog.h"
#include "client/archive/segment_entry.h"
#include "client/archive/segment_json.h"

#define ERR 512
/* Of a sample in all tables: five of them are terms, with a posting each. */
#define ROWS 17

struct folder {
	char path[64];
	char err[ERR];
};

static int
setup(void **state)
{
	struct folder *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->path, "/tmp/test_catalog.XXXXXX");
	assert_non_null(mkdtemp(f->path));
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct folder *f = *state;
	char err[ERR];

	assert_int_equal(catalog_destroy(f->path, err, sizeof(err)), 0);
	/* Nothing else was left there. */
	assert_int_equal(rmdir(f->path), 0);
	free(f);
	return 0;
}

static struct catalog *
open_it(struct folder *f, enum catalog_mode mode)
{
	struct catalog *c = catalog_open(f->path, mode, f->err, ERR);

	if (c == NULL)
		fail_msg("%s", f->err);
	return c;
}

/* A segment with one of everything. */
struct sample {
	struct segment_entry e;
	struct segment_machine machine;
	struct segment_loss loss;
	struct segment_trigger trigger;
	struct segment_process process;
	char *source;
};

static void
sample(struct sample *s, const char *path, const char *process)
{
	*s = (struct sample){
		.machine = { .id = 7, .name = (char *)"kiosk-7", .packets = 3,
			.wall = { true, 1000, 2000 } },
		.loss = { .text = (char *)"1 chunk lost",
			.cause = (char *)"lost", .unit = "chunk",
			.place = "session", .count = 1, .buffer = 0,
			.machine_id = -1 },
		.trigger = { .name = (char *)"drop",
			.producer = (char *)"app", .has_wall = true,
			.wall_ns = 1500 },
		.process = { .machine_id = 7, .pid = 42,
			.name = (char *)process },
		.source = (char *)"track_event",
	};
	s->e = (struct segment_entry){
		.path = (char *)path, .bytes = 100, .mtime_ns = 5,
		.sha256 = { 1 }, .verdict = (char *)"whole", .number = 2,
		.cause = "time", .recording = (char *)"always", .packets = 3, .lost = 1,
		.wall = { true, 1000, 2000 }, .boot = { true, 10, 1010 },
		.machines = &s->machine, .n_machines = 1,
		.losses = &s->loss, .n_losses = 1,
		.triggers = &s->trigger, .n_triggers = 1,
		.data_sources = &s->source, .n_data_sources = 1,
		.processes = &s->process, .n_processes = 1,
	};
}

static void
put(struct folder *f, struct catalog *c, const struct segment_entry *e)
{
	if (catalog_put(c, e, false, f->err, ERR) < 0)
		fail_msg("%s", f->err);
}

/* A number that SQL yields. */
static int64_t
number(struct folder *f, struct catalog *c, const char *sql)
{
	struct catalog_statement *s = catalog_prepare(c, sql, f->err, ERR);
	int64_t v;

	assert_non_null(s);
	assert_int_equal(catalog_step(c, s, f->err, ERR), 1);
	v = catalog_int(s, 0);
	catalog_reset(s);
	return v;
}

/* Rows in all tables. */
static int64_t
count(struct folder *f, struct catalog *c)
{
	return number(f, c, "SELECT (SELECT count(*) FROM segments) + "
	    "(SELECT count(*) FROM machines) + (SELECT count(*) FROM losses) + "
	    "(SELECT count(*) FROM triggers) + (SELECT count(*) FROM "
	    "data_sources) + (SELECT count(*) FROM processes) + "
	    "(SELECT count(*) FROM seen) + (SELECT count(*) FROM terms) + "
	    "(SELECT count(*) FROM postings)");
}

static bool
keep_row(void *arg, const struct catalog_row *row)
{
	struct catalog_row *out = arg;

	*out = *row;
	return false;
}

static struct catalog_row
find(struct folder *f, struct catalog *c, const char *path)
{
	struct catalog_row row = { .id = -1 };

	assert_true(catalog_find(c, path, keep_row, &row, f->err, ERR) >= 0);
	return row;
}

static void
a_segment_is_put_found_and_removed(void **state)
{
	struct folder *f = *state;
	struct catalog *c = open_it(f, CATALOG_WRITE);
	struct catalog_row row;
	struct sample s;

	sample(&s, "a/1.pftrace", "chromium");
	put(f, c, &s.e);
	assert_int_equal(count(f, c), ROWS);
	row = find(f, c, "a/1.pftrace");
	assert_int_equal(row.number, 2);
	assert_true(row.has_wall && row.first_ns == 1000 &&
	    row.last_ns == 2000);
	assert_true(row.local && !row.pinned);
	assert_int_equal(catalog_remove(c, row.id, f->err, ERR), 0);
	assert_int_equal(count(f, c), 0);
	assert_int_equal(find(f, c, "a/1.pftrace").id, -1);
	catalog_close(c);
}

static void
a_segment_that_changed_replaces_its_row(void **state)
{
	const struct catalog_stored there = { "stored", "s3://b/k", "\"e\"",
		NULL, 9 };
	struct folder *f = *state;
	struct catalog *c = open_it(f, CATALOG_WRITE);
	struct sample s;
	int64_t id;

	sample(&s, "1.pftrace", "chromium");
	put(f, c, &s.e);
	id = find(f, c, "1.pftrace").id;
	assert_int_equal(catalog_set_stored(c, id, &there, f->err, ERR), 0);
	put(f, c, &s.e);
	assert_int_equal(count(f, c), ROWS);
	assert_int_equal(number(f, c, "SELECT count(*) FROM segments WHERE "
	    "stored_url = 's3://b/k' AND stored_ns = 9"), 1);
	/* Other bytes: those are not in the store. */
	s.e.sha256[0]++;
	put(f, c, &s.e);
	assert_int_equal(number(f, c, "SELECT count(*) FROM segments WHERE "
	    "stored_state IS NULL AND stored_url IS NULL"), 1);
	assert_int_equal(find(f, c, "1.pftrace").id, id);
	catalog_close(c);
}

/* The index of what can be asked for has the row's times: none is left. */
static void
a_segment_whose_times_changed_is_indexed_anew(void **state)
{
	struct folder *f = *state;
	struct catalog *c = open_it(f, CATALOG_WRITE);
	struct sample s;

	sample(&s, "1.pftrace", "chromium");
	put(f, c, &s.e);
	s.e.wall = (struct segment_span){ true, 5000, 900000 };
	s.trigger.name = (char *)"stall";
	put(f, c, &s.e);
	assert_int_equal(count(f, c), ROWS);
	assert_int_equal(number(f, c, "SELECT count(*) FROM postings WHERE "
	    "first_ns = 5000 AND class = 20"), 5);
	assert_int_equal(number(f, c, "SELECT count(*) FROM terms WHERE "
	    "name = 'drop'"), 0);
	/* A file whose clocks are not known any more. */
	s.e.wall.known = false;
	put(f, c, &s.e);
	assert_int_equal(number(f, c, "SELECT count(*) FROM postings WHERE "
	    "first_ns = 0 AND class = -1"), 5);
	assert_int_equal(count(f, c), ROWS);
	assert_int_equal(catalog_remove(c, find(f, c, "1.pftrace").id, f->err,
	    ERR), 0);
	assert_int_equal(count(f, c), 0);
	catalog_close(c);
}

static void
a_process_of_two_segments_is_kept_until_both_are_gone(void **state)
{
	struct folder *f = *state;
	struct catalog *c = open_it(f, CATALOG_WRITE);
	struct sample s;

	sample(&s, "1.pftrace", "chromium");
	put(f, c, &s.e);
	sample(&s, "2.pftrace", "chromium");
	put(f, c, &s.e);
	assert_int_equal(number(f, c, "SELECT count(*) FROM processes"), 1);
	assert_int_equal(number(f, c, "SELECT count(*) FROM seen"), 2);
	assert_int_equal(number(f, c, "SELECT segments FROM processes"), 2);
	assert_int_equal(number(f, c, "SELECT count(*) FROM terms"), 5);
	assert_int_equal(catalog_remove(c, find(f, c, "1.pftrace").id, f->err,
	    ERR), 0);
	assert_int_equal(number(f, c, "SELECT count(*) FROM processes"), 1);
	assert_int_equal(catalog_remove(c, find(f, c, "2.pftrace").id, f->err,
	    ERR), 0);
	assert_int_equal(count(f, c), 0);
	catalog_close(c);
}

static void
a_walk_yields_what_its_condition_selects(void **state)
{
	struct catalog_value v = CATALOG_STR("2.pftrace");
	struct folder *f = *state;
	struct catalog *c = open_it(f, CATALOG_WRITE);
	struct catalog_row row = { .id = -1 };
	struct sample s;

	sample(&s, "1.pftrace", "a");
	put(f, c, &s.e);
	sample(&s, "2.pftrace", "b");
	put(f, c, &s.e);
	assert_int_equal(catalog_each(c, "WHERE s.path = ? ORDER BY s.last_ns",
	    &v, 1, keep_row, &row, f->err, ERR), 0);
	assert_int_equal(row.id, find(f, c, "2.pftrace").id);
	assert_int_equal(catalog_each(c, "WHERE nonsense", NULL, 0, keep_row,
	    &row, f->err, ERR), -1);
	catalog_close(c);
}

static void
changes_that_are_rolled_back_leave_nothing(void **state)
{
	struct folder *f = *state;
	struct catalog *c = open_it(f, CATALOG_WRITE);
	struct sample s;

	sample(&s, "1.pftrace", "a");
	assert_int_equal(catalog_begin(c, f->err, ERR), 0);
	put(f, c, &s.e);
	assert_int_equal(count(f, c), ROWS);
	catalog_rollback(c);
	assert_int_equal(count(f, c), 0);
	put(f, c, &s.e);
	assert_int_equal(count(f, c), ROWS);
	catalog_close(c);
}

static void
readers_see_what_is_written_beside_them(void **state)
{
	struct folder *f = *state;
	struct catalog *w = open_it(f, CATALOG_WRITE);
	struct catalog *r = open_it(f, CATALOG_READ);
	struct sample s;

	assert_int_equal(count(f, r), 0);
	sample(&s, "1.pftrace", "a");
	put(f, w, &s.e);
	assert_int_equal(count(f, r), ROWS);
	/* Nobody throws away what others have open. */
	assert_int_equal(catalog_destroy(f->path, f->err, ERR), -1);
	assert_non_null(strstr(f->err, "is in use"));
	catalog_close(r);
	catalog_close(w);
}

static void
no_folder_and_no_catalogue_are_told_apart(void **state)
{
	struct folder *f = *state;

	assert_null(catalog_open("/nonexistent/x", CATALOG_WRITE, f->err, ERR));
	assert_non_null(strstr(f->err, "there is no archive"));
	assert_null(catalog_open(f->path, CATALOG_READ, f->err, ERR));
	assert_non_null(strstr(f->err, "reindex"));
}

static void
another_programs_database_is_no_catalogue(void **state)
{
	struct folder *f = *state;
	char path[128];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/%s", f->path, CATALOG_FILE);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "CREATE TABLE segments (id INTEGER);"
	    "PRAGMA user_version = 1", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	assert_null(catalog_open(f->path, CATALOG_READ, f->err, ERR));
	assert_non_null(strstr(f->err, "is no catalogue"));
	assert_non_null(strstr(f->err, "reindex --full"));
}

/* As a user who may only read the folder. */
static int
read_as_nobody(struct folder *f)
{
	struct catalog *c;

	if (setgid(65534) != 0 || setuid(65534) != 0)
		return 2;
	if ((c = catalog_open(f->path, CATALOG_READ, f->err, ERR)) == NULL) {
		fprintf(stderr, "%s\n", f->err);
		return 1;
	}
	if (count(f, c) != ROWS)
		return 1;
	catalog_close(c);
	return 0;
}

static void
who_may_only_read_finds_what_was_written_before(void **state)
{
	struct folder *f = *state;
	struct catalog *c;
	struct sample s;
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(f->path, 0755), 0);
	c = open_it(f, CATALOG_WRITE);
	sample(&s, "1.pftrace", "a");
	put(f, c, &s.e);
	catalog_close(c);
	fflush(NULL);
	if ((pid = fork()) == 0)
		_exit(read_as_nobody(f));
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A process that was killed leaves its journal, which has the rows. */
static void
a_journal_without_its_catalogue_is_not_taken_over(void **state)
{
	struct folder *f = *state;
	struct catalog *c;
	struct sample s;
	char path[128];
	pid_t pid;

	fflush(NULL);
	if ((pid = fork()) == 0) {
		c = open_it(f, CATALOG_WRITE);
		sample(&s, "1.pftrace", "a");
		put(f, c, &s.e);
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	snprintf(path, sizeof(path), "%s/%s", f->path, CATALOG_FILE);
	assert_int_equal(unlink(path), 0);
	c = open_it(f, CATALOG_WRITE);
	assert_int_equal(count(f, c), 0);
	catalog_close(c);
}

static bool
take_odd_row(void *arg, const struct catalog_row *row)
{
	static const uint8_t none[SEGMENT_SHA256];

	assert_memory_equal(row->sha256, none, sizeof(none));
	assert_string_equal(row->verdict, "");
	*(bool *)arg = true;
	return true;
}

/* A catalogue may come from anywhere, with tables of another's making. */
static void
rows_of_other_shapes_do_no_harm(void **state)
{
	struct folder *f = *state;
	struct catalog *c = open_it(f, CATALOG_WRITE);
	bool taken = false;

	assert_int_equal(sqlite3_exec(catalog_handle(c),
	    "PRAGMA foreign_keys = OFF;"
	    "CREATE TABLE odd AS SELECT * FROM segments;"
	    "DROP TABLE segments; ALTER TABLE odd RENAME TO segments;"
	    "INSERT INTO segments (sha256, path) VALUES (x'00', 'a.pftrace')",
	    NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(catalog_each(c, "", NULL, 0, take_odd_row, &taken,
	    f->err, ERR), 0);
	assert_true(taken);
	catalog_close(c);
}

static void
another_version_is_refused_with_a_remedy(void **state)
{
	struct folder *f = *state;
	struct catalog *c = open_it(f, CATALOG_WRITE);

	assert_int_equal(sqlite3_exec(catalog_handle(c),
	    "PRAGMA user_version = 99", NULL, NULL, NULL), SQLITE_OK);
	catalog_close(c);
	assert_null(catalog_open(f->path, CATALOG_WRITE, f->err, ERR));
	assert_non_null(strstr(f->err, "newer version"));
	assert_non_null(strstr(f->err, "reindex --full"));
}

static void
a_damaged_catalogue_is_refused_with_a_remedy(void **state)
{
	struct folder *f = *state;
	char path[96];
	FILE *out;
	int i;

	snprintf(path, sizeof(path), "%s/%s", f->path, CATALOG_FILE);
	out = fopen(path, "w");
	assert_non_null(out);
	for (i = 0; i < 8192; i++)
		fputc('x', out);
	assert_int_equal(fclose(out), 0);
	assert_null(catalog_open(f->path, CATALOG_WRITE, f->err, ERR));
	assert_non_null(strstr(f->err, "is damaged"));
	assert_non_null(strstr(f->err, "reindex --full"));
}

static void
the_class_of_a_span_bounds_it(void **state)
{
	(void)state;
	assert_int_equal(catalog_span_class(5, 5), 0);
	assert_int_equal(catalog_span_class(5, 6), 1);
	assert_int_equal(catalog_span_class(0, 7), 3);
	assert_int_equal(catalog_span_class(0, 8), 4);
	assert_int_equal(catalog_span_class(INT64_MIN, INT64_MAX), 63);
}

static const struct catalog_stored in_store = {
	.state = "stored", .url = "s3://b/x", .etag = "abc", .at_ns = 7,
};

static void
a_row_becomes_a_line_and_the_same_row_again(void **state)
{
	struct folder *f = *state;
	struct catalog *c = open_it(f, CATALOG_WRITE);
	char *line, *again;
	struct sample s;

	sample(&s, "a/b \"x\".pftrace", "chromium");
	put(f, c, &s.e);
	line = segment_json_write(c, 1, f->err, ERR);
	assert_non_null(line);
	assert_null(segment_json_write(c, 2, f->err, ERR));
	assert_int_equal(segment_json_put(c, line, &in_store, f->err, ERR),
	    SEGMENT_JSON_KNOWN);
	assert_int_equal(number(f, c, "SELECT local FROM segments WHERE "
	    "stored_url = 's3://b/x'"), 1);
	assert_int_equal(catalog_remove(c, 1, f->err, ERR), 0);
	assert_int_equal(segment_json_put(c, line, &in_store, f->err, ERR),
	    SEGMENT_JSON_ADDED);
	again = segment_json_write(c, number(f, c, "SELECT id FROM segments "
	    "WHERE NOT local AND stored_ns = 7"), f->err, ERR);
	assert_string_equal(line, again);
	free(again);
	/* Another file of this path. */
	assert_int_equal(catalog_remove(c, number(f, c, "SELECT id FROM "
	    "segments"), f->err, ERR), 0);
	s.e.sha256[0] = 2;
	put(f, c, &s.e);
	assert_int_equal(segment_json_put(c, line, &in_store, f->err, ERR),
	    SEGMENT_JSON_OTHER);
	assert_int_equal(number(f, c, "SELECT count(*) FROM segments WHERE "
	    "stored_state IS NULL AND local"), 1);
	free(line);
	catalog_close(c);
}

/* Replaces the first `from` in a copy of line, the caller's. */
static char *
changed(const char *line, const char *from, const char *to)
{
	const char *at = strstr(line, from);
	char *copy;

	assert_non_null(at);
	assert_true(asprintf(&copy, "%.*s%s%s", (int)(at - line), line, to,
	    at + strlen(from)) > 0);
	return copy;
}

static void
a_line_that_describes_no_segment_changes_nothing(void **state)
{
	static const char *const changes[][2] = {
		{ "{", "" }, { "\"tributary\":1", "\"tributary\":2" },
		{ "\"a.pftrace\"", "\"../a.pftrace\"" },
		{ "\"a.pftrace\"", "\"/a.pftrace\"" },
		{ "\"a.pftrace\"", "\"b/./a.pftrace\"" },
		{ "\"a.pftrace\"", "7" }, { "\"a.pftrace\"", "\"\"" },
		{ "\"sha256\":\"0", "\"sha256\":\"" },
		{ "\"sha256\":\"0", "\"sha256\":\"g" },
		{ "\"bytes\":100", "\"bytes\":\"many\"" },
		{ "\"last_ns\":2000", "\"last_ns\":1" },
		{ "\"machines\":[", "\"machines\":[7," },
		{ "\"count\":1", "\"count\":null" },
	};
	struct folder *f = *state;
	struct catalog *c = open_it(f, CATALOG_WRITE);
	char *line, *bad;
	struct sample s;
	size_t i;

	sample(&s, "a.pftrace", "chromium");
	put(f, c, &s.e);
	line = segment_json_write(c, 1, f->err, ERR);
	assert_non_null(line);
	assert_int_equal(catalog_remove(c, 1, f->err, ERR), 0);
	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		bad = changed(line, changes[i][0], changes[i][1]);
		if (segment_json_put(c, bad, &in_store, f->err, ERR) !=
		    SEGMENT_JSON_FAILED)
			fail_msg("taken: %s", bad);
		assert_int_equal(number(f, c, "SELECT count(*) FROM "
		    "segments"), 0);
		free(bad);
	}
	assert_int_equal(segment_json_put(c, line, &in_store, f->err, ERR),
	    SEGMENT_JSON_ADDED);
	free(line);
	catalog_close(c);
}

int
main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_segment_is_put_found_and_removed),
		CASE(a_segment_that_changed_replaces_its_row),
		CASE(a_segment_whose_times_changed_is_indexed_anew),
		CASE(a_process_of_two_segments_is_kept_until_both_are_gone),
		CASE(a_walk_yields_what_its_condition_selects),
		CASE(changes_that_are_rolled_back_leave_nothing),
		CASE(readers_see_what_is_written_beside_them),
		CASE(no_folder_and_no_catalogue_are_told_apart),
		CASE(another_programs_database_is_no_catalogue),
		CASE(who_may_only_read_finds_what_was_written_before),
		CASE(a_journal_without_its_catalogue_is_not_taken_over),
		CASE(rows_of_other_shapes_do_no_harm),
		CASE(another_version_is_refused_with_a_remedy),
		CASE(a_damaged_catalogue_is_refused_with_a_remedy),
		cmocka_unit_test(the_class_of_a_span_bounds_it),
		CASE(a_row_becomes_a_line_and_the_same_row_again),
		CASE(a_line_that_describes_no_segment_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
