#include <fcntl.h>
#include <setjmp.h>
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

#include "client/archive/archive_path.h"
#include "client/archive/catalog.h"
#include "client/archive/index/archive_files.h"
#include "client/archive/index/archive_sync.h"
#include "client/archive/index/segment_index.h"
#include "client/archive/segment_entry.h"
#include "protos/fields.h"
#include "transport/wire/pb_writer.h"

#define ERR 1024
#define SECOND INT64_C(1000000000)
/* The wall clock, when the boot clock shows 0. */
#define WALL (INT64_C(1700000000) * SECOND)

struct fixture {
	char path[64];
	int fd;
	struct catalog *c;
	struct pb_writer trace;
	char err[ERR];
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->path, "/tmp/test_archive_sync.XXXXXX");
	assert_non_null(mkdtemp(f->path));
	f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->fd >= 0);
	f->c = catalog_open(f->path, CATALOG_WRITE, f->err, ERR);
	assert_non_null(f->c);
	pb_writer_init(&f->trace);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;
	char command[96];

	catalog_close(f->c);
	close(f->fd);
	pb_writer_done(&f->trace);
	snprintf(command, sizeof(command), "rm -r %s", f->path);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

static size_t
begin(struct fixture *f, uint32_t sequence, uint32_t machine, int64_t ns)
{
	size_t mark = pb_nest_begin(&f->trace, 1);

	pb_put_uint(&f->trace, TracePacket_trusted_packet_sequence_id,
	    sequence);
	if (machine != 0)
		pb_put_uint(&f->trace, TracePacket_machine_id, machine);
	if (ns != 0)
		pb_put_uint(&f->trace, TracePacket_timestamp, (uint64_t)ns);
	return mark;
}

static void
clocks(struct fixture *f, int64_t boot)
{
	const uint32_t ids[] = { ClockSnapshot_Clock_BOOTTIME,
		ClockSnapshot_Clock_REALTIME };
	size_t mark = begin(f, 1, 0, 0), snapshot, one, i;

	snapshot = pb_nest_begin(&f->trace, TracePacket_clock_snapshot);
	for (i = 0; i < 2; i++) {
		one = pb_nest_begin(&f->trace, ClockSnapshot_clocks);
		pb_put_uint(&f->trace, ClockSnapshot_Clock_clock_id, ids[i]);
		pb_put_uint(&f->trace, ClockSnapshot_Clock_timestamp,
		    (uint64_t)(i == 0 ? boot : boot + WALL));
		pb_nest_end(&f->trace, one);
	}
	pb_nest_end(&f->trace, snapshot);
	pb_nest_end(&f->trace, mark);
}

static void
event(struct fixture *f, uint32_t machine, int64_t ns, bool repeated)
{
	size_t mark = begin(f, 2 + machine, machine, ns);

	pb_put_string(&f->trace, TracePacket_for_testing, "");
	if (repeated)
		pb_put_uint(&f->trace, TracePacket_tributary_repeated, 1);
	pb_nest_end(&f->trace, mark);
}

static void
process(struct fixture *f, uint32_t machine, int32_t pid, const char *name)
{
	size_t mark = begin(f, 2 + machine, machine, 0), tree, one;

	tree = pb_nest_begin(&f->trace, TracePacket_process_tree);
	one = pb_nest_begin(&f->trace, ProcessTree_processes);
	pb_put_uint(&f->trace, ProcessTree_Process_pid, (uint64_t)pid);
	pb_put_string(&f->trace, ProcessTree_Process_cmdline, name);
	pb_put_string(&f->trace, ProcessTree_Process_cmdline, "--flag");
	pb_nest_end(&f->trace, one);
	pb_nest_end(&f->trace, tree);
	pb_nest_end(&f->trace, mark);
}

static void
trigger(struct fixture *f, const char *name, int64_t ns)
{
	size_t mark = begin(f, 1, 0, ns), one;

	one = pb_nest_begin(&f->trace, TracePacket_trigger);
	pb_put_string(&f->trace, Trigger_trigger_name, name);
	pb_put_string(&f->trace, Trigger_producer_name, "app");
	pb_nest_end(&f->trace, one);
	pb_nest_end(&f->trace, mark);
}

/* The first packet of segment 3, which a trigger began. */
static void
segment_begin(struct fixture *f)
{
	size_t mark = begin(f, 1, 0, 0), segment, cut;

	segment = pb_nest_begin(&f->trace, TracePacket_tributary_segment);
	pb_put_bytes(&f->trace, Segment_recording_uuid, "0123456789abcdef",
	    16);
	pb_put_string(&f->trace, Segment_recording, "always");
	pb_put_uint(&f->trace, Segment_number, 3);
	cut = pb_nest_begin(&f->trace, Segment_begun_by);
	pb_put_uint(&f->trace, SegmentCut_cause, SegmentCut_TRIGGER);
	pb_put_uint(&f->trace, SegmentCut_realtime_ns,
	    (uint64_t)(WALL + 5 * SECOND));
	pb_put_string(&f->trace, SegmentCut_trigger, "drop");
	pb_put_string(&f->trace, SegmentCut_trigger_producer, "watcher");
	pb_nest_end(&f->trace, cut);
	pb_nest_end(&f->trace, segment);
	pb_nest_end(&f->trace, mark);
}

static void
segment_end(struct fixture *f)
{
	size_t mark = begin(f, 1, 0, 0), segment, end;

	segment = pb_nest_begin(&f->trace, TracePacket_tributary_segment);
	pb_put_uint(&f->trace, Segment_number, 3);
	end = pb_nest_begin(&f->trace, Segment_end);
	pb_put_uint(&f->trace, End_unanswered, 2);
	pb_put_uint(&f->trace, End_cause, SegmentCut_SIZE);
	pb_nest_end(&f->trace, end);
	pb_nest_end(&f->trace, segment);
	pb_nest_end(&f->trace, mark);
}

static void
write_bytes(struct fixture *f, const char *path, const void *data, size_t len)
{
	int fd = openat(f->fd, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	assert_int_equal(close(fd), 0);
}

/* Writes the trace so far, and begins another. */
static void
write_trace(struct fixture *f, const char *path)
{
	write_bytes(f, path, f->trace.data, f->trace.len);
	f->trace.len = 0;
}

static void
write_segment(struct fixture *f, const char *path)
{
	segment_begin(f);
	clocks(f, 10 * SECOND);
	event(f, 0, 4 * SECOND, true);
	event(f, 0, 11 * SECOND, false);
	event(f, 7, 12 * SECOND, false);
	event(f, 7, 14 * SECOND, false);
	process(f, 7, 42, "/usr/bin/chromium");
	process(f, 7, 42, "/usr/bin/chromium");
	trigger(f, "late", 13 * SECOND);
	segment_end(f);
	write_trace(f, path);
}

static void
index_it(struct fixture *f, const char *path, struct segment_entry *e)
{
	*e = (struct segment_entry){ .bytes = 0 };
	if (segment_index_file(e, f->fd, path, f->err, ERR) != 0)
		fail_msg("%s", f->err);
}

static void
a_segment_is_described_by_its_bytes(void **state)
{
	struct fixture *f = *state;
	struct segment_entry e;

	write_segment(f, "1.pftrace");
	index_it(f, "1.pftrace", &e);
	assert_string_equal(e.recording, "always");
	assert_int_equal(e.number, 3);
	assert_memory_equal(e.recording_uuid, "0123456789abcdef", 16);
	assert_string_equal(e.cause, "trigger");
	assert_string_equal(e.end_cause, "size");
	assert_int_equal(e.unanswered, 2);
	assert_false(e.is_last);
	assert_true(e.wall.known);
	assert_int_equal(e.wall.first_ns, WALL + 10 * SECOND);
	/* Machine 7 has no clock in common with the collector. */
	assert_int_equal(e.wall.last_ns, WALL + 13 * SECOND);
	assert_int_equal(e.boot.first_ns, 10 * SECOND);
	assert_int_equal(e.n_triggers, 2);
	assert_string_equal(e.triggers[0].name, "drop");
	assert_true(e.triggers[0].begun_by);
	assert_int_equal(e.triggers[0].wall_ns, WALL + 5 * SECOND);
	assert_string_equal(e.triggers[1].name, "late");
	assert_int_equal(e.triggers[1].wall_ns, WALL + 13 * SECOND);
	segment_entry_done(&e);
}

static void
machines_and_processes_are_listed_once(void **state)
{
	struct fixture *f = *state;
	struct segment_entry e;

	write_segment(f, "1.pftrace");
	index_it(f, "1.pftrace", &e);
	assert_int_equal(e.n_machines, 2);
	assert_string_equal(e.machines[0].name, "host");
	/* A packet that the segment before has, too, is not counted. */
	assert_int_equal(e.machines[0].packets, 1);
	assert_int_equal(e.machines[0].wall.first_ns, WALL + 11 * SECOND);
	assert_int_equal(e.machines[1].id, 7);
	assert_int_equal(e.machines[1].packets, 4);
	assert_false(e.machines[1].wall.known);
	assert_int_equal(e.n_processes, 1);
	assert_int_equal(e.processes[0].pid, 42);
	assert_string_equal(e.processes[0].name, "/usr/bin/chromium");
	segment_entry_done(&e);
}

static void
files_that_are_no_traces_have_a_description_too(void **state)
{
	struct fixture *f = *state;
	struct segment_entry e;

	write_bytes(f, "1.pftrace", "", 0);
	index_it(f, "1.pftrace", &e);
	assert_string_equal(e.verdict, "no_trace");
	assert_non_null(strstr(e.problem, "empty"));
	segment_entry_done(&e);
	write_bytes(f, "2.pftrace", "PK\x03\x04 zip", 8);
	index_it(f, "2.pftrace", &e);
	assert_non_null(strstr(e.problem, "zip archive"));
	segment_entry_done(&e);
	event(f, 0, SECOND, false);
	write_bytes(f, "3.pftrace", f->trace.data, f->trace.len - 1);
	index_it(f, "3.pftrace", &e);
	assert_string_equal(e.verdict, "no_trace");
	segment_entry_done(&e);
	event(f, 0, SECOND, false);
	write_bytes(f, "4.pftrace", f->trace.data, f->trace.len - 1);
	index_it(f, "4.pftrace", &e);
	assert_string_equal(e.verdict, "cut_off");
	segment_entry_done(&e);
}

/* A process may be given any number of names. */
static void
thousands_of_names_of_one_process_are_listed(void **state)
{
	struct fixture *f = *state;
	struct segment_entry e;
	char name[32];
	unsigned i;

	clocks(f, SECOND);
	for (i = 0; i < 60000; i++) {
		snprintf(name, sizeof(name), "name-%u", i);
		process(f, 7, 42, name);
	}
	write_trace(f, "1.pftrace");
	index_it(f, "1.pftrace", &e);
	assert_int_equal(e.n_processes, 60000);
	segment_entry_done(&e);
}

/* TraceStats of so many buffers, each of which overwrote so many chunks. */
static void
losses(struct fixture *f, unsigned buffers, uint64_t chunks)
{
	size_t mark = begin(f, 1, 0, 0), stats, one;
	unsigned i;

	stats = pb_nest_begin(&f->trace, TracePacket_trace_stats);
	for (i = 0; i < buffers; i++) {
		one = pb_nest_begin(&f->trace, TraceStats_buffer_stats);
		pb_put_uint(&f->trace, BufferStats_chunks_overwritten, chunks);
		pb_nest_end(&f->trace, one);
	}
	pb_nest_end(&f->trace, stats);
	pb_nest_end(&f->trace, mark);
}

static void
every_loss_is_counted(void **state)
{
	struct fixture *f = *state;
	struct segment_entry e;

	clocks(f, SECOND);
	event(f, 0, SECOND, false);
	losses(f, 1000, 3);
	write_trace(f, "1.pftrace");
	index_it(f, "1.pftrace", &e);
	assert_int_equal(e.n_losses, 1000);
	assert_int_equal(e.lost, 3000);
	segment_entry_done(&e);
	/* A forged number is the largest, not a negative one. */
	clocks(f, SECOND);
	event(f, 0, SECOND, false);
	losses(f, 3, UINT64_MAX / 2);
	write_trace(f, "2.pftrace");
	index_it(f, "2.pftrace", &e);
	assert_true(e.lost == INT64_MAX);
	segment_entry_done(&e);
}

static void
links_and_folders_are_no_segments(void **state)
{
	struct fixture *f = *state;
	struct segment_entry e = { .bytes = 0 };

	assert_int_equal(symlinkat("/etc/passwd", f->fd, "1.pftrace"), 0);
	assert_int_equal(mkdirat(f->fd, "2.pftrace", 0755), 0);
	assert_int_equal(segment_index_file(&e, f->fd, "1.pftrace", f->err,
	    ERR), -1);
	assert_non_null(strstr(f->err, "is a link"));
	assert_int_equal(segment_index_file(&e, f->fd, "2.pftrace", f->err,
	    ERR), -1);
	assert_int_equal(segment_index_file(&e, f->fd, "3.pftrace", f->err,
	    ERR), 1);
	segment_entry_done(&e);
}

static void
names_tell_segments_from_other_files(void **state)
{
	(void)state;
	assert_true(archive_path_is_segment("a.pftrace"));
	assert_true(archive_path_is_segment("k/2026-11-24/1.perfetto-trace"));
	assert_false(archive_path_is_segment("a.pftrace.part"));
	assert_false(archive_path_is_segment("a.pftrace.pinned"));
	assert_false(archive_path_is_segment(".a.pftrace"));
	assert_false(archive_path_is_segment("k/.hidden/a.pftrace"));
	assert_false(archive_path_is_segment(".pftrace"));
	assert_false(archive_path_is_segment("catalog.db"));
}

static void
times_of_change_may_be_of_any_year(void **state)
{
	struct stat st = { .st_mtim = { .tv_sec = 5, .tv_nsec = 7 } };

	(void)state;
	assert_int_equal(archive_files_mtime(&st), 5 * SECOND + 7);
	st.st_mtim.tv_sec = INT64_MAX;
	assert_int_equal(archive_files_mtime(&st), 0);
	st.st_mtim.tv_sec = INT64_MIN;
	assert_int_equal(archive_files_mtime(&st), 0);
}

static void
remember_failure(void *arg, const char *path, enum archive_change change,
    const char *why)
{
	(void)path;
	if (change == ARCHIVE_FAILED)
		snprintf(arg, ERR, "%s", why);
}

/* As a user who may not read all folders. */
static int
sync_as_nobody(struct fixture *f)
{
	char why[ERR] = "";
	const struct archive_sync_ops ops = { .changed = remember_failure,
		.arg = why };
	struct archive_sync_counts n;

	if (setgid(65534) != 0 || setuid(65534) != 0)
		return 2;
	f->c = catalog_open(f->path, CATALOG_WRITE, f->err, ERR);
	if (f->c == NULL || archive_sync_all(f->c, f->fd, &ops, &n, f->err,
	    ERR) < 0) {
		fprintf(stderr, "%s\n", f->err);
		return 1;
	}
	catalog_close(f->c);
	return n.taken == 1 && n.failed == 1 &&
	    strstr(why, "cannot read the folder closed: ") != NULL ? 0 : 1;
}

static void
a_folder_that_cannot_be_read_hides_no_other(void **state)
{
	struct fixture *f = *state;
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	write_segment(f, "1.pftrace");
	assert_int_equal(mkdirat(f->fd, "closed", 0), 0);
	/* A disk that is mounted there has one. */
	assert_int_equal(mkdirat(f->fd, "lost+found", 0), 0);
	catalog_close(f->c);
	assert_int_equal(catalog_destroy(f->path, f->err, ERR), 0);
	assert_int_equal(chmod(f->path, 0777), 0);
	fflush(NULL);
	if ((pid = fork()) == 0)
		_exit(sync_as_nobody(f));
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	f->c = catalog_open(f->path, CATALOG_WRITE, f->err, ERR);
	assert_non_null(f->c);
}

static struct archive_sync_counts
sync_all(struct fixture *f, bool full)
{
	const struct archive_sync_ops ops = { .full = full };
	struct archive_sync_counts n;

	if (archive_sync_all(f->c, f->fd, &ops, &n, f->err, ERR) < 0)
		fail_msg("%s", f->err);
	return n;
}

static int64_t
number(struct fixture *f, const char *sql)
{
	struct catalog_statement *s = catalog_prepare(f->c, sql, f->err, ERR);
	int64_t v;

	assert_non_null(s);
	assert_int_equal(catalog_step(f->c, s, f->err, ERR), 1);
	v = catalog_int(s, 0);
	catalog_reset(s);
	return v;
}

static void
the_catalogue_follows_its_folder(void **state)
{
	struct fixture *f = *state;
	struct archive_sync_counts n;

	assert_int_equal(mkdirat(f->fd, "k", 0755), 0);
	write_segment(f, "k/1.pftrace");
	write_segment(f, "2.pftrace");
	write_bytes(f, "3.pftrace.part", "x", 1);
	n = sync_all(f, false);
	assert_int_equal(n.taken, 2);
	n = sync_all(f, false);
	assert_int_equal(n.unchanged, 2);
	assert_int_equal(n.taken, 0);
	n = sync_all(f, true);
	assert_int_equal(n.taken, 2);
	event(f, 0, SECOND, false);
	write_trace(f, "2.pftrace");
	assert_int_equal(unlinkat(f->fd, "k/1.pftrace", 0), 0);
	n = sync_all(f, false);
	assert_int_equal(n.taken, 1);
	assert_int_equal(n.gone, 1);
	assert_int_equal(number(f, "SELECT count(*) FROM segments"), 1);
	assert_int_equal(number(f, "SELECT count(*) FROM seen"), 0);
}

static void
a_pin_outlives_the_catalogue(void **state)
{
	struct fixture *f = *state;

	write_segment(f, "1.pftrace");
	sync_all(f, false);
	assert_int_equal(archive_files_pin(f->fd, "1.pftrace", true, f->err,
	    ERR), 0);
	sync_all(f, false);
	assert_int_equal(number(f, "SELECT pinned FROM segments"), 1);
	catalog_close(f->c);
	assert_int_equal(catalog_destroy(f->path, f->err, ERR), 0);
	f->c = catalog_open(f->path, CATALOG_WRITE, f->err, ERR);
	sync_all(f, false);
	assert_int_equal(number(f, "SELECT pinned FROM segments"), 1);
	assert_int_equal(archive_files_pin(f->fd, "1.pftrace", false, f->err,
	    ERR), 0);
	sync_all(f, false);
	assert_int_equal(number(f, "SELECT pinned FROM segments"), 0);
}

static void
a_stored_segment_stays_without_its_file(void **state)
{
	const struct catalog_stored there = { .state = "stored",
		.url = "s3://b/1" };
	struct fixture *f = *state;
	struct archive_sync_counts n;

	write_segment(f, "1.pftrace");
	sync_all(f, false);
	assert_int_equal(catalog_set_stored(f->c,
	    number(f, "SELECT id FROM segments"), &there, f->err, ERR), 0);
	assert_int_equal(unlinkat(f->fd, "1.pftrace", 0), 0);
	n = sync_all(f, false);
	assert_int_equal(n.moved, 1);
	assert_int_equal(number(f, "SELECT local FROM segments"), 0);
	n = sync_all(f, false);
	assert_int_equal(n.moved + n.gone, 0);
	/* It is fetched back: the same bytes are still in the store. */
	write_segment(f, "1.pftrace");
	n = sync_all(f, false);
	assert_int_equal(n.taken, 1);
	assert_int_equal(number(f, "SELECT local AND stored_url = 's3://b/1' "
	    "FROM segments"), 1);
}

int
main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_segment_is_described_by_its_bytes),
		CASE(machines_and_processes_are_listed_once),
		CASE(files_that_are_no_traces_have_a_description_too),
		CASE(thousands_of_names_of_one_process_are_listed),
		CASE(every_loss_is_counted),
		CASE(links_and_folders_are_no_segments),
		cmocka_unit_test(times_of_change_may_be_of_any_year),
		CASE(a_folder_that_cannot_be_read_hides_no_other),
		cmocka_unit_test(names_tell_segments_from_other_files),
		CASE(the_catalogue_follows_its_folder),
		CASE(a_pin_outlives_the_catalogue),
		CASE(a_stored_segment_stays_without_its_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
