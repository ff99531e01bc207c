#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/archive/catalog.h"
#include "client/archive/catalog_copy.h"
#include "client/archive/segment_entry.h"

#define ERR 512
/* More than one statement has. */
#define PROCESSES 250

struct fixture {
	struct catalog *from, *to;
	char err[ERR];
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->from = catalog_scratch(f->err, ERR);
	f->to = catalog_scratch(f->err, ERR);
	assert_non_null(f->from);
	assert_non_null(f->to);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	catalog_close(f->from);
	catalog_close(f->to);
	free(f);
	return 0;
}

static int64_t
number(struct fixture *f, struct catalog *c, const char *sql)
{
	struct catalog_statement *s = catalog_prepare(c, sql, f->err, ERR);
	int64_t v;

	assert_non_null(s);
	assert_int_equal(catalog_step(c, s, f->err, ERR), 1);
	v = catalog_int(s, 0);
	catalog_reset(s);
	return v;
}

/* Puts a segment, and says that a store has it there.  Returns its id. */
static int64_t
put(struct fixture *f, const char *path, const char *url, uint8_t first_byte)
{
	static struct segment_process processes[PROCESSES];
	struct segment_machine machine = { .id = 7, .name = (char *)"kiosk-7",
		.packets = 3, .wall = { true, 1000, 2000 } };
	struct segment_loss loss = { .text = (char *)"1 lost",
		.cause = (char *)"lost", .unit = "chunk", .place = "session",
		.count = 1, .buffer = -1, .machine_id = -1 };
	struct segment_trigger trigger = { .name = (char *)"drop",
		.producer = (char *)"app" };
	char *source = (char *)"track_event";
	struct segment_entry e = { .path = (char *)path, .bytes = 9,
		.sha256 = { first_byte }, .verdict = (char *)"whole",
		.problem = (char *)"", .recording = (char *)"always",
		.machine = (char *)"", .packets = 3, .lost = 1,
		.wall = { true, 1000, 2000 }, .machines = &machine,
		.n_machines = 1, .losses = &loss, .n_losses = 1,
		.triggers = &trigger, .n_triggers = 1, .data_sources = &source,
		.n_data_sources = 1, .processes = processes,
		.n_processes = PROCESSES };
	const struct catalog_stored stored = { .state = "stored", .url = url,
		.etag = "e", .at_ns = 5 };
	int64_t id = 0;
	size_t i;

	for (i = 0; i < PROCESSES; i++)
		processes[i] = (struct segment_process){ 7, (int32_t)i,
			(char *)"app" };
	assert_int_equal(catalog_put(f->from, &e, true, f->err, ERR), 0);
	id = number(f, f->from, "SELECT id FROM segments ORDER BY stored_state "
	    "IS NOT NULL, id DESC");
	assert_int_equal(catalog_set_stored(f->from, id, &stored, f->err, ERR),
	    0);
	return id;
}

#define ALL "SELECT (SELECT count(*) FROM machines) + (SELECT count(*) FROM " \
	"losses) + (SELECT count(*) FROM triggers) + (SELECT count(*) FROM "   \
	"data_sources) + (SELECT count(*) FROM seen) + (SELECT count(*) FROM " \
	"processes) + (SELECT count(*) FROM terms) + "                         \
	"(SELECT count(*) FROM postings)"

static void
a_copy_has_all_of_it_under_the_collectors_name(void **state)
{
	struct fixture *f = *state;
	int64_t id = put(f, "a/1.pftrace", "s3://b/fleet/c1/a/1.pftrace", 1);

	assert_int_equal(catalog_copy(f->to, f->from, id, f->err, ERR),
	    CATALOG_COPY_ADDED);
	assert_int_equal(number(f, f->to, "SELECT count(*) FROM segments WHERE "
	    "path = 'c1/a/1.pftrace' AND local = 0 AND pinned = 0 AND "
	    "stored_etag = 'e' AND stored_ns = 5 AND class = 10"), 1);
	assert_int_equal(number(f, f->to, ALL), number(f, f->from, ALL));
	assert_int_equal(number(f, f->to, "SELECT sum(segments) FROM "
	    "processes"), PROCESSES);
}

static void
twice_is_once(void **state)
{
	struct fixture *f = *state;
	int64_t id = put(f, "a/1.pftrace", "s3://b/c1/a/1.pftrace", 1);
	int64_t other = put(f, "a/2.pftrace", "s3://b/c1/a/2.pftrace", 1);

	assert_int_equal(catalog_copy(f->to, f->from, id, f->err, ERR),
	    CATALOG_COPY_ADDED);
	assert_int_equal(catalog_copy(f->to, f->from, other, f->err, ERR),
	    CATALOG_COPY_ADDED);
	assert_int_equal(catalog_copy(f->to, f->from, id, f->err, ERR),
	    CATALOG_COPY_KNOWN);
	assert_int_equal(number(f, f->to, ALL), number(f, f->from, ALL));
	assert_int_equal(number(f, f->to, "SELECT sum(segments) FROM "
	    "processes"), 2 * PROCESSES);
}

static void
another_file_in_the_same_place_replaces_it(void **state)
{
	struct fixture *f = *state;
	int64_t id = put(f, "a/1.pftrace", "s3://b/c1/a/1.pftrace", 1);

	assert_int_equal(catalog_copy(f->to, f->from, id, f->err, ERR),
	    CATALOG_COPY_ADDED);
	id = put(f, "a/1.pftrace", "s3://b/c1/a/1.pftrace", 2);
	assert_int_equal(catalog_copy(f->to, f->from, id, f->err, ERR),
	    CATALOG_COPY_ADDED);
	assert_int_equal(number(f, f->to, "SELECT count(*) FROM segments"), 1);
	assert_int_equal(number(f, f->to, ALL), number(f, f->from, ALL));
	assert_int_equal(number(f, f->to, "SELECT sum(segments) FROM "
	    "processes"), PROCESSES);
}

static void
what_cannot_be_a_shared_row_is_refused(void **state)
{
	struct fixture *f = *state;
	int64_t id = put(f, "1.pftrace", "s3://b/c1/1.pftrace", 1);

	assert_int_equal(catalog_copy(f->to, f->from, id, f->err, ERR),
	    CATALOG_COPY_ADDED);
	id = put(f, "1.pftrace", "s3://b/x/c1/1.pftrace", 1);
	assert_int_equal(catalog_copy(f->to, f->from, id, f->err, ERR),
	    CATALOG_COPY_REFUSED);
	assert_non_null(strstr(f->err, "s3://b/c1/1.pftrace"));
	id = put(f, "2.pftrace", NULL, 1);
	assert_int_equal(catalog_copy(f->to, f->from, id, f->err, ERR),
	    CATALOG_COPY_REFUSED);
	id = put(f, "../3.pftrace", "s3://b/c1/../3.pftrace", 1);
	assert_int_equal(catalog_copy(f->to, f->from, id, f->err, ERR),
	    CATALOG_COPY_REFUSED);
	assert_int_equal(catalog_copy(f->to, f->from, 99, f->err, ERR),
	    CATALOG_COPY_FAILED);
	assert_int_equal(number(f, f->to, "SELECT count(*) FROM segments"), 1);
}

static void
a_collector_is_called_as_the_last_folder(void **state)
{
	struct fixture *f = *state;
	static const char *const good[][3] = {
		{ "s3://b/fleet/c1", NULL, "c1" },
		{ "s3://b/fleet/c1/", NULL, "c1" },
		{ "s3://b/fleet/c1/a/x", "a/x", "c1" },
		{ "s3://b", NULL, "b" },
		{ "s3://b/a/x", "a/x", "b" },
	};
	static const char *const bad[] = { "", "/", "s3://b/.c1", "s3://b/.." };
	char name[CATALOG_COLLECTOR_MAX];
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(catalog_collector(name, good[i][0],
		    good[i][1], f->err, ERR), 0);
		assert_string_equal(name, good[i][2]);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(catalog_collector(name, bad[i], NULL, f->err,
		    ERR), -1);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_copy_has_all_of_it_under_the_collectors_name),
		CASE(twice_is_once),
		CASE(another_file_in_the_same_place_replaces_it),
		CASE(what_cannot_be_a_shared_row_is_refused),
		CASE(a_collector_is_called_as_the_last_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
