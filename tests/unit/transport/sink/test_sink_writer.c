#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/dev_full.h"
#include "transport/sink/packet_boundary.h"
#include "transport/sink/sink_path.h"
#include "transport/sink/sink_writer.h"

#define PACKET_BYTES 100u /* 0x0a, one byte of length, 98 of payload */
#define DATA_BYTES   (1000u * PACKET_BYTES)

struct fixture {
	char dir[PATH_MAX];
	char path[PATH_MAX + 8];
	uint8_t data[DATA_BYTES];
	struct sink_writer w;
	char err[SINK_ERR_MAX];
	pthread_t writer;
	atomic_bool returned;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const char *tmp = getenv("TMPDIR");
	size_t i;

	snprintf(f->dir, sizeof(f->dir), "%s/sink_writer.XXXXXX",
	    tmp != NULL ? tmp : "/tmp");
	if (mkdtemp(f->dir) == NULL)
		return -1;
	snprintf(f->path, sizeof(f->path), "%s/file", f->dir);
	for (i = 0; i < DATA_BYTES; i++) {
		f->data[i] = (uint8_t)(i / PACKET_BYTES);
		if (i % PACKET_BYTES == 0)
			f->data[i] = 0x0a;
		if (i % PACKET_BYTES == 1)
			f->data[i] = PACKET_BYTES - 2;
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	unlink(f->path);
	rmdir(f->dir);
	free(f);
	return 0;
}

static int
put(struct fixture *f, size_t len)
{
	return sink_writer_write(&f->w, f->data, len, f->err, sizeof(f->err));
}

static void
open_file(struct fixture *f, int flags)
{
	int fd = open(f->path, O_RDWR | O_CREAT | O_CLOEXEC | flags, 0600);

	assert_true(fd >= 0);
	sink_writer_init(&f->w, fd, false);
}

static void
close_file(struct fixture *f)
{
	assert_int_equal(sink_writer_close(&f->w, true, f->err, sizeof(f->err)), 0);
}

static size_t
file_size(struct fixture *f)
{
	struct stat st;

	assert_int_equal(stat(f->path, &st), 0);
	return (size_t)st.st_size;
}

/* The file is `from` bytes of something, then the first len bytes of data. */
static void
assert_contents(struct fixture *f, size_t from, size_t len)
{
	uint8_t *got = malloc(len + 1);
	int fd = open(f->path, O_RDONLY);

	assert_int_equal(file_size(f), from + len);
	assert_int_equal(pread(fd, got, len + 1, (off_t)from), len);
	assert_memory_equal(got, f->data, len);
	close(fd);
	free(got);
}

static void
a_regular_file_gets_every_byte_and_the_total_counts_them(void **state)
{
	struct fixture *f = *state;

	open_file(f, 0);
	assert_int_equal(put(f, DATA_BYTES), 0);
	assert_int_equal(f->w.total, DATA_BYTES);
	assert_int_equal(sink_writer_sync(&f->w, f->err, sizeof(f->err)), 0);
	close_file(f);
	assert_contents(f, 0, DATA_BYTES);
}

static void
a_file_that_somebody_cut_is_left_as_it_is(void **state)
{
	struct fixture *f = *state;

	open_file(f, 0);
	assert_int_equal(put(f, DATA_BYTES), 0);
	assert_int_equal(truncate(f->path, 100), 0);
	assert_int_equal(put(f, DATA_BYTES), -1);
	assert_non_null(strstr(f->err, "cut"));
	assert_int_equal(f->w.kept, 0);
	assert_int_equal(sink_writer_close(&f->w, true, f->err,
	    sizeof(f->err)), -1);
	assert_int_equal(file_size(f), 100);
}

static void
a_file_that_is_appended_to_may_be_emptied_by_others(void **state)
{
	struct fixture *f = *state;

	open_file(f, O_APPEND);
	assert_int_equal(put(f, DATA_BYTES), 0);
	assert_int_equal(truncate(f->path, 0), 0);
	assert_int_equal(put(f, DATA_BYTES), 0);
	close_file(f);
	assert_contents(f, 0, DATA_BYTES);
}

/* RLIMIT_FSIZE: the kernel takes a part, then refuses, like a full disk. */
static void
put_limited(struct fixture *f, size_t limit, size_t len)
{
	struct rlimit old, now;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	now = old;
	now.rlim_cur = limit;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
	assert_int_equal(put(f, len), -1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_non_null(strstr(f->err, "largest size"));
	assert_null(strstr(f->err, "middle"));
}

static void
a_write_that_stops_inside_a_packet_is_cut_back_to_the_last_whole_one(
    void **state)
{
	struct fixture *f = *state;

	open_file(f, 0);
	assert_int_equal(put(f, 10 * PACKET_BYTES), 0);
	put_limited(f, 13 * PACKET_BYTES + 57, 20 * PACKET_BYTES);
	assert_int_equal(f->w.total, 13 * PACKET_BYTES);
	close_file(f);
	assert_int_equal(file_size(f), 13 * PACKET_BYTES);
}

static void
a_write_that_stops_between_packets_keeps_them_all(void **state)
{
	struct fixture *f = *state;

	open_file(f, 0);
	put_limited(f, 7 * PACKET_BYTES, 20 * PACKET_BYTES);
	assert_int_equal(f->w.total, 7 * PACKET_BYTES);
	close_file(f);
	assert_contents(f, 0, 7 * PACKET_BYTES);
}

static void
a_write_that_stores_nothing_leaves_the_file_as_it_was(void **state)
{
	struct fixture *f = *state;

	open_file(f, 0);
	assert_int_equal(put(f, 3 * PACKET_BYTES), 0);
	put_limited(f, 3 * PACKET_BYTES, 20 * PACKET_BYTES);
	close_file(f);
	assert_contents(f, 0, 3 * PACKET_BYTES);
}

static void
a_file_that_is_appended_to_keeps_what_was_in_it(void **state)
{
	struct fixture *f = *state;
	int fd = open(f->path, O_WRONLY | O_CREAT, 0600);

	assert_int_equal(write(fd, "before", 6), 6);
	close(fd);
	open_file(f, O_APPEND);
	put_limited(f, 6 + 5 * PACKET_BYTES + 1, 20 * PACKET_BYTES);
	assert_int_equal(f->w.total, 5 * PACKET_BYTES);
	close_file(f);
	assert_contents(f, 6, 5 * PACKET_BYTES);
}

static void
a_descriptor_in_the_middle_of_a_file_never_shortens_it(void **state)
{
	struct fixture *f = *state;

	open_file(f, 0);
	assert_int_equal(write(f->w.fd, f->data, 50 * PACKET_BYTES),
	    50 * PACKET_BYTES);
	assert_int_equal(lseek(f->w.fd, 0, SEEK_SET), 0);
	sink_writer_init(&f->w, f->w.fd, false);
	assert_int_equal(put(f, PACKET_BYTES), 0);
	f->err[0] = '\0';
	{
		struct rlimit old, now;

		getrlimit(RLIMIT_FSIZE, &old);
		now = old;
		now.rlim_cur = PACKET_BYTES + 5;
		setrlimit(RLIMIT_FSIZE, &now);
		assert_int_equal(put(f, 5 * PACKET_BYTES), -1);
		setrlimit(RLIMIT_FSIZE, &old);
	}
	assert_non_null(strstr(f->err, "middle of a packet"));
	close_file(f);
	assert_int_equal(file_size(f), 50 * PACKET_BYTES);
}

/* In a child: it mounts a small tmpfs over the folder, for itself alone. */
static int
fill_small_disk(struct fixture *f)
{
	struct stat st;
	size_t put_ok = 0;

	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", f->dir, "tmpfs", 0, "size=256k") < 0)
		return 77;
	f->w.fd = open(f->path, O_WRONLY | O_CREAT, 0600);
	if (f->w.fd < 0)
		return 2;
	sink_writer_init(&f->w, f->w.fd, false);
	while (put(f, DATA_BYTES - PACKET_BYTES) == 0)
		put_ok++;
	if (strstr(f->err, "no space left") == NULL || put_ok != 2)
		return 3;
	if (fstat(f->w.fd, &st) < 0 || (uint64_t)st.st_size != f->w.total)
		return 4;
	/* 256 KiB hold 2,621 whole packets */
	return f->w.total == 2621u * PACKET_BYTES ? 0 : 5;
}

static void
a_full_disk_leaves_every_packet_that_fits(void **state)
{
	struct fixture *f = *state;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fill_small_disk(f));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("not allowed to mount: no small disk\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void
a_device_that_is_full_is_an_error(void **state)
{
	struct fixture *f = *state;
	int fd = dev_full_open();

	sink_writer_init(&f->w, fd, false);
	assert_int_equal(put(f, PACKET_BYTES), -1);
	assert_non_null(strstr(f->err, "no space left"));
	assert_int_equal(f->w.total, 0);
	close_file(f);
}

static void
an_io_error_is_an_error(void **state)
{
	struct fixture *f = *state;
	/* Nothing is mapped at 0: the kernel answers EIO */
	int fd = open("/proc/self/mem", O_WRONLY);

	assert_true(fd >= 0);
	sink_writer_init(&f->w, fd, false);
	assert_int_equal(put(f, PACKET_BYTES), -1);
	assert_non_null(strstr(f->err, "I/O error"));
	close_file(f);
}

static void
a_descriptor_for_reading_is_an_error(void **state)
{
	struct fixture *f = *state;

	open_file(f, 0);
	close_file(f);
	sink_writer_init(&f->w, open(f->path, O_RDONLY), false);
	assert_int_equal(put(f, PACKET_BYTES), -1);
	assert_non_null(strstr(f->err, "not opened for writing"));
	close_file(f);
}

struct reader {
	int fd;
	uint8_t got[4 * DATA_BYTES];
	size_t len;
};

static void *
read_all(void *arg)
{
	struct reader *r = arg;
	size_t room;
	ssize_t n;

	/* In odd pieces, so that the writer finds the pipe full and empty */
	do {
		room = sizeof(r->got) - r->len;
		n = read(r->fd, r->got + r->len, room < 4093 ? room : 4093);
		if (n > 0)
			r->len += (size_t)n;
	} while (n > 0);
	return NULL;
}

static void
through_pipe(struct fixture *f, int writer_flags)
{
	static struct reader r;
	pthread_t thread;
	int fds[2];
	size_t i;

	r.len = 0;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_true(fcntl(fds[1], F_SETPIPE_SZ, 8192) >= 0);
	assert_int_equal(fcntl(fds[1], F_SETFL, writer_flags), 0);
	r.fd = fds[0];
	sink_writer_init(&f->w, fds[1], false);
	assert_int_equal(pthread_create(&thread, NULL, read_all, &r), 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(put(f, DATA_BYTES), 0);
	assert_int_equal(sink_writer_sync(&f->w, f->err, sizeof(f->err)), 0);
	assert_int_equal(fcntl(fds[1], F_GETFL) & O_NONBLOCK, writer_flags);
	close_file(f);
	pthread_join(thread, NULL);
	close(fds[0]);
	assert_int_equal(f->w.total, 4 * DATA_BYTES);
	assert_int_equal(r.len, 4 * DATA_BYTES);
	for (i = 0; i < 4; i++)
		assert_memory_equal(r.got + i * DATA_BYTES, f->data,
		    DATA_BYTES);
}

static void
a_pipe_gets_every_byte(void **state)
{
	through_pipe(*state, 0);
}

static void
a_non_blocking_pipe_gets_every_byte(void **state)
{
	through_pipe(*state, O_NONBLOCK);
}

static void
a_pipe_without_a_reader_is_an_error_and_no_signal(void **state)
{
	struct fixture *f = *state;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	close(fds[0]);
	sink_writer_init(&f->w, fds[1], false);
	assert_int_equal(put(f, PACKET_BYTES), -1);
	assert_non_null(strstr(f->err, "closed it"));
	close_file(f);
}

static bool
fourth_time(void *arg)
{
	return ++*(int *)arg == 4;
}

static void
a_reader_that_takes_nothing_can_be_given_up(void **state)
{
	struct fixture *f = *state;
	int fds[2], asked = 0;

	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	sink_writer_init(&f->w, fds[1], false);
	f->w.give_up = fourth_time;
	f->w.give_up_arg = &asked;
	/* A pipe holds 64 KiB */
	assert_int_equal(put(f, DATA_BYTES), -1);
	assert_int_equal(asked, 4);
	assert_non_null(strstr(f->err, "takes nothing"));
	close_file(f);
	close(fds[0]);
}

static void
nothing_happens(int signo)
{
}

static void *
interrupt_often(void *arg)
{
	const struct timespec step = { .tv_nsec = 20000000 };
	struct fixture *f = arg;

	while (!atomic_load(&f->returned)) {
		pthread_kill(f->writer, SIGURG);
		nanosleep(&step, NULL);
	}
	return NULL;
}

/* A write to a blocking descriptor waits in the kernel. */
static void
a_signal_lets_a_write_that_waits_be_given_up(void **state)
{
	const struct sigaction nothing = { .sa_handler = nothing_happens };
	struct fixture *f = *state;
	pthread_t t;
	int fds[2], asked = 0;

	assert_int_equal(sigaction(SIGURG, &nothing, NULL), 0);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	sink_writer_init(&f->w, fds[1], false);
	f->w.give_up = fourth_time;
	f->w.give_up_arg = &asked;
	f->writer = pthread_self();
	assert_int_equal(pthread_create(&t, NULL, interrupt_often, f), 0);
	assert_int_equal(put(f, DATA_BYTES), -1);
	atomic_store(&f->returned, true);
	pthread_join(t, NULL);
	assert_non_null(strstr(f->err, "takes nothing"));
	/* Whole packets of the 64 KiB that are in the pipe. */
	assert_int_equal(f->w.kept, 65500);
	close_file(f);
	close(fds[0]);
	signal(SIGURG, SIG_DFL);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_regular_file_gets_every_byte_and_the_total_counts_them),
		T(a_file_that_somebody_cut_is_left_as_it_is),
		T(a_file_that_is_appended_to_may_be_emptied_by_others),
		T(a_write_that_stops_inside_a_packet_is_cut_back_to_the_last_whole_one),
		T(a_write_that_stops_between_packets_keeps_them_all),
		T(a_write_that_stores_nothing_leaves_the_file_as_it_was),
		T(a_file_that_is_appended_to_keeps_what_was_in_it),
		T(a_descriptor_in_the_middle_of_a_file_never_shortens_it),
		T(a_full_disk_leaves_every_packet_that_fits),
		T(a_device_that_is_full_is_an_error),
		T(an_io_error_is_an_error),
		T(a_descriptor_for_reading_is_an_error),
		T(a_pipe_gets_every_byte),
		T(a_non_blocking_pipe_gets_every_byte),
		T(a_pipe_without_a_reader_is_an_error_and_no_signal),
		T(a_reader_that_takes_nothing_can_be_given_up),
		T(a_signal_lets_a_write_that_waits_be_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
