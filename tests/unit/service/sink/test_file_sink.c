#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
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

#include "service/sink/file_sink.h"
#include "tests/unit/dev_full.h"
#include "transport/loop/loop.h"
#include "transport/sink/packet_boundary.h"
#include "transport/sink/sink_path.h"

#define PACKET_BYTES 100u
#define MANY         8

struct fixture {
	struct loop *l;
	char dir[PATH_MAX];
	int dirfd;
	struct sink_dir place; /* dirfd */
	unsigned fds; /* open before the test */
};

/* What a sink told; also the arg of its callbacks. */
struct told {
	struct loop *l;
	struct file_sink *s;
	int opened;
	int written;
	int failed;
	int closed;
	uint64_t total;
	size_t submitted; /* bytes */
	size_t lost;
	char open_err[256];
	char err[256];       /* failed() */
	char closed_err[256];
	bool close_in_opened;
	bool close_in_written;
	bool close_in_failed;
};

static void
keep(char out[256], const char *err)
{
	snprintf(out, 256, "%s", err != NULL ? err : "");
}

static void
on_opened(struct file_sink *s, const char *err, void *arg)
{
	struct told *t = arg;

	t->opened++;
	keep(t->open_err, err);
	if (t->close_in_opened)
		file_sink_close(s);
	loop_stop(t->l);
}

static void
on_written(struct file_sink *s, uint64_t total, void *arg)
{
	struct told *t = arg;

	t->written++;
	t->total = total;
	if (t->close_in_written)
		file_sink_close(s);
	loop_stop(t->l);
}

static void
on_failed(struct file_sink *s, const char *err, void *arg)
{
	struct told *t = arg;

	t->failed++;
	keep(t->err, err);
	if (t->close_in_failed)
		file_sink_close(s);
	loop_stop(t->l);
}

static void
on_lost(struct file_sink *s, const uint8_t *data, size_t len, void *arg)
{
	struct told *t = arg;

	t->lost += len;
}

static void
on_closed(struct file_sink *s, const char *err, void *arg)
{
	struct told *t = arg;

	t->closed++;
	keep(t->closed_err, err);
	loop_stop(t->l);
}

static const struct file_sink_ops ops = {
	.opened = on_opened,
	.written = on_written,
	.failed = on_failed,
	.lost = on_lost,
	.closed = on_closed,
};

static unsigned
count_entries(const char *dir)
{
	DIR *d = opendir(dir);
	unsigned n = 0;

	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const char *tmp = getenv("TMPDIR");

	snprintf(f->dir, sizeof(f->dir), "%s/file_sink.XXXXXX",
	    tmp != NULL ? tmp : "/tmp");
	if (mkdtemp(f->dir) == NULL || (f->l = loop_new()) == NULL)
		return -1;
	f->dirfd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->place.fd = f->dirfd;
	f->fds = count_entries("/proc/self/fd");
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;
	char name[16];
	int i;

	assert_int_equal(count_entries("/proc/self/fd"), f->fds);
	for (i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "file%d", i);
		unlinkat(f->dirfd, name, 0);
	}
	close(f->dirfd);
	assert_int_equal(rmdir(f->dir), 0);
	loop_free(f->l);
	free(f);
	return 0;
}

/* Each callback stops the loop; the test's timeout is meson's. */
#define RUN_UNTIL(f, cond)               \
	do {                             \
		while (!(cond))          \
			loop_run((f)->l); \
	} while (0)

static int
open_new(struct fixture *f, int i)
{
	char name[16];

	snprintf(name, sizeof(name), "file%d", i);
	return openat(f->dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
	    0600);
}

static void
sink_fd(struct fixture *f, struct told *t, int fd)
{
	memset(t, 0, sizeof(*t));
	assert_true(fd >= 0);
	t->l = f->l;
	t->s = file_sink_new_fd(f->l, fd, NULL, &ops, t);
	assert_non_null(t->s);
}

/* n packets whose payload is all `seed`. */
static void
fill(struct sink_batch *b, size_t n, uint8_t seed)
{
	for (; n > 0; n--) {
		assert_true(file_sink_reserve(b, PACKET_BYTES));
		memset(b->data + b->len, seed, PACKET_BYTES);
		b->data[b->len] = 0x0a;
		b->data[b->len + 1] = PACKET_BYTES - 2;
		b->len += PACKET_BYTES;
	}
}

static void
submit(struct told *t, size_t n, uint8_t seed)
{
	struct sink_batch *b = file_sink_batch(t->s);

	assert_non_null(b);
	fill(b, n, seed);
	t->submitted += b->len;
	file_sink_submit(t->s, false);
}

static void
close_and_wait(struct fixture *f, struct told *t)
{
	file_sink_close(t->s);
	RUN_UNTIL(f, t->closed);
	assert_int_equal(t->closed, 1);
}

/* The i-th file holds n packets of each seed from first on, in order. */
static void
assert_file(struct fixture *f, int i, size_t n, uint8_t first, uint8_t count)
{
	uint8_t packet[PACKET_BYTES];
	char name[16];
	struct stat st;
	size_t k;
	int fd;

	snprintf(name, sizeof(name), "file%d", i);
	fd = openat(f->dirfd, name, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, n * count * PACKET_BYTES);
	for (k = 0; k < n * count; k++) {
		assert_int_equal(pread(fd, packet, PACKET_BYTES,
		    (off_t)(k * PACKET_BYTES)), PACKET_BYTES);
		assert_int_equal(packet[0], 0x0a);
		assert_int_equal(packet[PACKET_BYTES - 1], first + k / n);
	}
	close(fd);
}

static void
a_batch_is_written_answered_and_closed(void **state)
{
	struct fixture *f = *state;
	struct told t;

	sink_fd(f, &t, open_new(f, 0));
	assert_true(file_sink_idle(t.s));
	submit(&t, 10, 1);
	assert_false(file_sink_idle(t.s));
	RUN_UNTIL(f, t.written);
	assert_true(file_sink_idle(t.s));
	assert_int_equal(t.total, 10 * PACKET_BYTES);
	assert_file(f, 0, 10, 1, 1);
	close_and_wait(f, &t);
	assert_string_equal(t.closed_err, "");
	assert_int_equal(t.opened, 0);
	assert_int_equal(t.failed, 0);
}

static void
there_are_no_more_batches_than_promised(void **state)
{
	struct fixture *f = *state;
	struct told t;
	unsigned i;

	sink_fd(f, &t, open_new(f, 0));
	for (i = 0; i < SINK_BATCHES; i++)
		submit(&t, 10, (uint8_t)i);
	/* Written or not: they come back on a turn of the loop only */
	assert_null(file_sink_batch(t.s));
	RUN_UNTIL(f, file_sink_idle(t.s));
	assert_non_null(file_sink_batch(t.s));
	assert_ptr_equal(file_sink_batch(t.s), file_sink_batch(t.s));
	close_and_wait(f, &t);
	assert_file(f, 0, 10, 0, SINK_BATCHES);
}

static void
many_batches_arrive_in_order(void **state)
{
	struct fixture *f = *state;
	struct told t;
	uint8_t seed;

	sink_fd(f, &t, open_new(f, 0));
	for (seed = 0; seed < 100; seed++) {
		RUN_UNTIL(f, file_sink_batch(t.s) != NULL);
		submit(&t, 1200, seed);
	}
	close_and_wait(f, &t);
	assert_file(f, 0, 1200, 0, 100);
}

static void
a_batch_grows_for_a_large_packet_and_shrinks_again(void **state)
{
	struct fixture *f = *state;
	struct sink_batch *b;
	struct told t;
	unsigned i;

	sink_fd(f, &t, open_new(f, 0));
	b = file_sink_batch(t.s);
	assert_true(b->cap >= SINK_BATCH_BYTES);
	assert_true(file_sink_reserve(b, 3u << 20));
	assert_true(b->cap - b->len >= 3u << 20);
	fill(b, (3u << 20) / PACKET_BYTES, 1);
	file_sink_submit(t.s, false);
	RUN_UNTIL(f, file_sink_idle(t.s));
	for (i = 0; i < SINK_BATCHES; i++) {
		b = file_sink_batch(t.s);
		assert_int_equal(b->len, 0);
		assert_true(b->cap < 2 * SINK_BATCH_BYTES);
		submit(&t, 1, 2);
	}
	assert_false(file_sink_reserve(b, SIZE_MAX - 5));
	close_and_wait(f, &t);
}

static void
a_submission_without_bytes_only_syncs(void **state)
{
	struct fixture *f = *state;
	struct told t;

	sink_fd(f, &t, open_new(f, 0));
	assert_non_null(file_sink_batch(t.s));
	file_sink_submit(t.s, false);
	assert_true(file_sink_idle(t.s));
	file_sink_submit(t.s, true);
	file_sink_submit(t.s, true);
	assert_false(file_sink_idle(t.s));
	submit(&t, 1, 1);
	submit(&t, 1, 1);
	file_sink_submit(t.s, true);
	RUN_UNTIL(f, file_sink_idle(t.s));
	assert_int_equal(t.total, 2 * PACKET_BYTES);
	close_and_wait(f, &t);
	assert_string_equal(t.closed_err, "");
}

static void
closing_while_busy_writes_what_was_submitted_and_only_says_closed(void **state)
{
	struct fixture *f = *state;
	struct sink_batch *b;
	struct told t;

	sink_fd(f, &t, open_new(f, 0));
	submit(&t, 1300, 0);
	submit(&t, 1300, 1);
	file_sink_close(t.s);
	file_sink_close(t.s);
	if ((b = file_sink_batch(t.s)) != NULL)
		fill(b, 1, 9);
	file_sink_submit(t.s, true);
	RUN_UNTIL(f, t.closed);
	assert_int_equal(t.written, 0);
	assert_int_equal(t.closed, 1);
	assert_string_equal(t.closed_err, "");
	assert_file(f, 0, 1300, 0, 2);
}

static struct file_sink *
new_path(struct fixture *f, const char *path, struct told *t)
{
	struct file_sink_place place = { &f->place, path, -1, -1 };

	return file_sink_new_path(f->l, &place, NULL, &ops, t);
}

static void
closing_is_legal_in_every_callback(void **state)
{
	struct fixture *f = *state;
	struct told t;

	sink_fd(f, &t, open_new(f, 0));
	t.close_in_written = true;
	submit(&t, 1, 1);
	RUN_UNTIL(f, t.closed);
	assert_int_equal(t.written, 1);

	sink_fd(f, &t, dev_full_open());
	t.close_in_failed = true;
	submit(&t, 1, 1);
	RUN_UNTIL(f, t.closed);
	assert_int_equal(t.failed, 1);

	memset(&t, 0, sizeof(t));
	t.l = f->l;
	t.close_in_opened = true;
	t.s = new_path(f, "file1", &t);
	assert_non_null(t.s);
	RUN_UNTIL(f, t.closed);
	assert_int_equal(t.opened, 1);
}

static void
a_path_is_created_and_takes_what_came_before_it_was_open(void **state)
{
	struct fixture *f = *state;
	struct told t = { .l = f->l };
	char path[] = "file0";

	t.s = new_path(f, path, &t);
	assert_non_null(t.s);
	memset(path, 'x', sizeof(path) - 1);
	submit(&t, 5, 3);
	RUN_UNTIL(f, t.opened && t.written);
	assert_int_equal(t.opened, 1);
	assert_string_equal(t.open_err, "");
	close_and_wait(f, &t);
	assert_file(f, 0, 5, 3, 1);
}

static void
a_path_that_is_refused_is_told_once_and_only_closing_follows(void **state)
{
	struct fixture *f = *state;
	struct told t = { .l = f->l };

	t.s = new_path(f, "../file0", &t);
	assert_non_null(t.s);
	submit(&t, 5, 3);
	RUN_UNTIL(f, t.opened);
	assert_non_null(strstr(t.open_err, "trace directory"));
	close_and_wait(f, &t);
	assert_int_equal(t.opened, 1);
	assert_int_equal(t.written, 0);
	assert_int_equal(t.failed, 0);
	assert_string_equal(t.closed_err, t.open_err);
}

static void
an_error_is_told_once_and_again_when_closed(void **state)
{
	struct fixture *f = *state;
	struct told t;

	sink_fd(f, &t, dev_full_open());
	submit(&t, 1, 1);
	RUN_UNTIL(f, t.failed);
	assert_non_null(strstr(t.err, "no space left"));
	submit(&t, 1, 1);
	file_sink_submit(t.s, true);
	close_and_wait(f, &t);
	assert_int_equal(t.failed, 1);
	assert_int_equal(t.written, 0);
	assert_string_equal(t.closed_err, t.err);
	assert_int_equal(t.lost, t.submitted);
}

static void
a_file_that_is_removed_is_an_error_when_it_is_ours(void **state)
{
	struct fixture *f = *state;
	struct told t = { .l = f->l };

	t.s = new_path(f, "file0", &t);
	assert_non_null(t.s);
	submit(&t, 5, 3);
	RUN_UNTIL(f, t.written);
	assert_int_equal(unlinkat(f->dirfd, "file0", 0), 0);
	t.submitted = 0;
	submit(&t, 5, 3);
	RUN_UNTIL(f, t.failed);
	assert_non_null(strstr(t.err, "removed"));
	assert_int_equal(t.lost, t.submitted);
	close_and_wait(f, &t);
}

static void
a_folder_is_looked_up_anew_for_each_file(void **state)
{
	struct fixture *f = *state;
	struct told t = { .l = f->l };
	char moved[sizeof(f->dir) + 8];

	f->place.path = f->dir;
	snprintf(moved, sizeof(moved), "%s.old", f->dir);
	assert_int_equal(rename(f->dir, moved), 0);
	t.s = new_path(f, "file0", &t);
	assert_non_null(t.s);
	RUN_UNTIL(f, t.opened);
	assert_non_null(strstr(t.open_err, f->dir));
	close_and_wait(f, &t);

	assert_int_equal(mkdir(f->dir, 0700), 0);
	memset(&t, 0, sizeof(t));
	t.l = f->l;
	t.s = new_path(f, "file0", &t);
	assert_non_null(t.s);
	RUN_UNTIL(f, t.opened);
	assert_string_equal(t.open_err, "");
	close_and_wait(f, &t);
	assert_int_equal(faccessat(f->dirfd, "file0", F_OK, 0), -1);
	snprintf(moved, sizeof(moved), "%s.old", f->dir);
	assert_int_equal(rmdir(moved), 0);
	close(f->dirfd);
	f->dirfd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void
an_error_while_closing_is_told_by_closed(void **state)
{
	struct fixture *f = *state;
	struct told t;

	sink_fd(f, &t, dev_full_open());
	submit(&t, 1, 1);
	close_and_wait(f, &t);
	assert_int_equal(t.failed, 0);
	assert_non_null(strstr(t.closed_err, "no space left"));
}

static void
a_broken_pipe_is_an_error_and_no_signal(void **state)
{
	struct fixture *f = *state;
	struct told t;
	int fds[2];

	signal(SIGPIPE, SIG_DFL);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	close(fds[0]);
	sink_fd(f, &t, fds[1]);
	submit(&t, 1, 1);
	RUN_UNTIL(f, t.failed);
	close_and_wait(f, &t);
}

static void
a_reader_that_takes_nothing_stops_no_other_file(void **state)
{
	struct fixture *f = *state;
	struct told slow, t;
	int fds[2];
	uint8_t seed;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	sink_fd(f, &slow, fds[1]);
	submit(&slow, 1300, 1); /* more than the pipe holds */
	submit(&slow, 1300, 1);
	sink_fd(f, &t, open_new(f, 0));
	for (seed = 0; seed < 10; seed++) {
		RUN_UNTIL(f, file_sink_batch(t.s) != NULL);
		submit(&t, 100, seed);
	}
	close_and_wait(f, &t);
	assert_file(f, 0, 100, 0, 10);
	assert_int_equal(slow.written, 0);
	close(fds[0]); /* now it fails, so that closing does not wait */
	close_and_wait(f, &slow);
	assert_non_null(strstr(slow.closed_err, "closed it"));
}

static void
several_files_are_written_at_once_and_leave_no_thread(void **state)
{
	struct fixture *f = *state;
	struct told t[MANY];
	unsigned threads = count_entries("/proc/self/task");
	uint8_t seed;
	int i;

	for (i = 0; i < MANY; i++)
		sink_fd(f, &t[i], open_new(f, i));
	for (seed = 0; seed < 20; seed++) {
		for (i = 0; i < MANY; i++) {
			RUN_UNTIL(f, file_sink_batch(t[i].s) != NULL);
			submit(&t[i], 100 + (size_t)i, seed);
		}
	}
	for (i = 0; i < MANY; i++)
		file_sink_close(t[i].s);
	for (i = 0; i < MANY; i++) {
		RUN_UNTIL(f, t[i].closed);
		assert_string_equal(t[i].closed_err, "");
		assert_file(f, i, 100 + (size_t)i, 0, 20);
	}
	/* A joined thread may linger in /proc for a moment, no longer */
	while (count_entries("/proc/self/task") > threads)
		sched_yield();
}

/* In a child: writes for ever, and says on fd how much was answered. */
static void
write_until_killed(struct fixture *f, int fd)
{
	struct told t;

	f->l = loop_new();
	sink_fd(f, &t, open_new(f, 0));
	for (;;) {
		RUN_UNTIL(f, file_sink_batch(t.s) != NULL);
		submit(&t, 1300, 7);
		if (write(fd, &t.total, sizeof(t.total)) < 0)
			_exit(1);
	}
}

static void
after_a_kill_the_file_holds_all_that_was_answered(void **state)
{
	struct fixture *f = *state;
	uint64_t total = 0, next;
	uint8_t *got;
	struct stat st;
	int fds[2], fd;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_true((pid = fork()) >= 0);
	if (pid == 0)
		write_until_killed(f, fds[1]);
	close(fds[1]);
	while (total < 2u << 20)
		assert_int_equal(read(fds[0], &total, sizeof(total)),
		    sizeof(total));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	while (read(fds[0], &next, sizeof(next)) == sizeof(next))
		total = next;
	close(fds[0]);

	fd = openat(f->dirfd, "file0", O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	got = malloc((size_t)st.st_size);
	assert_int_equal(read(fd, got, (size_t)st.st_size), st.st_size);
	close(fd);
	/* Whole packets from the beginning, at least as far as was told */
	assert_true(packet_boundary(got, (size_t)st.st_size) >= total);
	free(got);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_batch_is_written_answered_and_closed),
		T(there_are_no_more_batches_than_promised),
		T(many_batches_arrive_in_order),
		T(a_batch_grows_for_a_large_packet_and_shrinks_again),
		T(a_submission_without_bytes_only_syncs),
		T(closing_while_busy_writes_what_was_submitted_and_only_says_closed),
		T(closing_is_legal_in_every_callback),
		T(a_path_is_created_and_takes_what_came_before_it_was_open),
		T(a_path_that_is_refused_is_told_once_and_only_closing_follows),
		T(an_error_is_told_once_and_again_when_closed),
		T(a_file_that_is_removed_is_an_error_when_it_is_ours),
		T(a_folder_is_looked_up_anew_for_each_file),
		T(an_error_while_closing_is_told_by_closed),
		T(a_broken_pipe_is_an_error_and_no_signal),
		T(a_reader_that_takes_nothing_stops_no_other_file),
		T(several_files_are_written_at_once_and_leave_no_thread),
		T(after_a_kill_the_file_holds_all_that_was_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
