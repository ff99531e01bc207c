/* How long a file that takes nothing is waited for, in time turned by hand. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "service/sink/file_sink.h"
#include "tests/unit/fake_time.h"
#include "transport/loop/loop.h"
#include "transport/sink/sink_writer.h"

#define PACKET_BYTES 100u
#define BATCH        1000u /* packets: more than a pipe holds */

/* A write that hangs in the kernel until it is let go. */
static struct {
	atomic_bool hangs;
	atomic_int inside;
	sem_t go;
} disk;

int __real_sink_writer_write(struct sink_writer *w, const uint8_t *data,
    size_t len, char *err, size_t err_size);
int __wrap_sink_writer_write(struct sink_writer *w, const uint8_t *data,
    size_t len, char *err, size_t err_size);

int
__wrap_sink_writer_write(struct sink_writer *w, const uint8_t *data,
    size_t len, char *err, size_t err_size)
{
	if (atomic_load(&disk.hangs)) {
		atomic_fetch_add(&disk.inside, 1);
		while (sem_wait(&disk.go) != 0)
			;
		atomic_fetch_sub(&disk.inside, 1);
	}
	return __real_sink_writer_write(w, data, len, err, err_size);
}

/*
 * A write whose first signal comes before it waits, and is taken in vain.  From
 * `waits` on it sleeps nowhere but in the kernel's write().
 */
static struct {
	atomic_int fd; /* -1: none */
	atomic_int thread;
	atomic_bool begins, waits, returned;
} held_write = { .fd = -1 };

ssize_t __real_write(int fd, const void *data, size_t len);
ssize_t __wrap_write(int fd, const void *data, size_t len);

ssize_t
__wrap_write(int fd, const void *data, size_t len)
{
	sigset_t urgent, before;
	ssize_t n;

	if (fd != atomic_load(&held_write.fd))
		return __real_write(fd, data, len);
	atomic_store(&held_write.fd, -1);
	atomic_store(&held_write.thread, gettid());
	sigemptyset(&urgent);
	sigaddset(&urgent, SIGURG);
	pthread_sigmask(SIG_BLOCK, &urgent, &before);
	atomic_store(&held_write.begins, true);
	sigsuspend(&before);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	atomic_store(&held_write.waits, true);
	n = __real_write(fd, data, len);
	atomic_store(&held_write.returned, true);
	return n;
}

/* In the kernel, until something wakes it. */
static bool
held_write_sleeps(void)
{
	char path[64], name[64], state = '?';
	FILE *stat;

	if (!atomic_load(&held_write.waits))
		return false;
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat",
	    atomic_load(&held_write.thread));
	if ((stat = fopen(path, "re")) == NULL)
		return false;
	if (fscanf(stat, "%*d %63s %c", name, &state) != 2)
		state = '?';
	fclose(stat);
	return state == 'S';
}

struct fixture {
	struct loop *l;
	struct file_sink *s;
	int reader;
	int written, failed, closed;
	size_t submitted, lost;
	char err[256];
};

static void
on_written(struct file_sink *s, uint64_t total, void *arg)
{
	struct fixture *f = arg;

	f->written++;
}

static void
on_failed(struct file_sink *s, const char *err, void *arg)
{
	struct fixture *f = arg;

	f->failed++;
	snprintf(f->err, sizeof(f->err), "%s", err);
}

static void
on_lost(struct file_sink *s, const uint8_t *data, size_t len, void *arg)
{
	struct fixture *f = arg;

	f->lost += len;
}

static void
on_closed(struct file_sink *s, const char *err, void *arg)
{
	struct fixture *f = arg;

	f->closed++;
	f->s = NULL;
	snprintf(f->err, sizeof(f->err), "%s", err != NULL ? err : "");
}

static const struct file_sink_ops ops = {
	.written = on_written,
	.failed = on_failed,
	.lost = on_lost,
	.closed = on_closed,
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	fake_time_reset();
	atomic_store(&disk.hangs, false);
	assert_int_equal(sem_init(&disk.go, 0, 0), 0);
	f->l = loop_new();
	f->reader = -1;
	*state = f;
	return f->l != NULL ? 0 : -1;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	assert_null(f->s);
	if (f->reader >= 0)
		close(f->reader);
	loop_free(f->l);
	sem_destroy(&disk.go);
	free(f);
	return 0;
}

/* For as long as it takes: the writer is a thread of its own. */
#define WAIT_FOR(f, cond)                                                    \
	do {                                                                   \
		time_t until_ = time(NULL) + 30;                               \
		while (!(cond)) {                                              \
			if (time(NULL) > until_)                               \
				fail_msg("it never came true: %s", #cond);     \
			loop_run_once((f)->l);                         \
			sched_yield();                                         \
		}                                                              \
	} while (0)

static void
into_pipe(struct fixture *f)
{
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	f->reader = fds[0];
	assert_int_equal(fcntl(f->reader, F_SETFL, O_NONBLOCK), 0);
	f->s = file_sink_new_fd(f->l, fds[1], NULL, &ops, f);
	assert_non_null(f->s);
}

/* Whose "disk" hangs; the file is gone when it is closed. */
static void
into_file_of(struct fixture *f, const struct file_sink_options *o)
{
	char path[] = "/tmp/patience.XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);

	assert_true(fd >= 0);
	unlink(path);
	atomic_store(&disk.hangs, true);
	/* Threads of an earlier test may be about to end. */
	while ((f->s = file_sink_new_fd(f->l, fd, o, &ops, f)) == NULL)
		sched_yield();
}

static void
into_file(struct fixture *f)
{
	into_file_of(f, NULL);
}

static void
submit(struct fixture *f)
{
	struct sink_batch *b = file_sink_batch(f->s);
	unsigned i;

	assert_non_null(b);
	assert_true(file_sink_reserve(b, BATCH * PACKET_BYTES));
	for (i = 0; i < BATCH; i++) {
		b->data[b->len] = 0x0a;
		b->data[b->len + 1] = PACKET_BYTES - 2;
		memset(b->data + b->len + 2, 'x', PACKET_BYTES - 2);
		b->len += PACKET_BYTES;
	}
	f->submitted += b->len;
	file_sink_submit(f->s, false);
}

/* Both batches are with the writer, and none comes back. */
static void
get_stuck(struct fixture *f)
{
	submit(f);
	submit(f);
	assert_null(file_sink_batch(f->s));
}

static void
turns(struct fixture *f)
{
	int i;

	for (i = 0; i < 50; i++)
		loop_run_once(f->l);
}

static size_t
read_all(struct fixture *f)
{
	static char buf[65536];
	size_t got = 0;
	ssize_t n;

	while ((n = read(f->reader, buf, sizeof(buf))) > 0)
		got += (size_t)n;
	return got;
}

static void
close_it(struct fixture *f)
{
	file_sink_close(f->s);
	WAIT_FOR(f, f->closed == 1);
}

static void
while_nobody_is_in_a_hurry_a_reader_may_take_a_day(void **state)
{
	struct fixture *f = *state;

	into_pipe(f);
	get_stuck(f);
	fake_time_pass(24 * 3600 * 1000, NULL);
	turns(f);
	assert_int_equal(f->failed, 0);
	WAIT_FOR(f, (read_all(f), file_sink_idle(f->s)));
	close_it(f);
	assert_string_equal(f->err, "");
	assert_int_equal(f->lost, 0);
}

static void
a_stuck_reader_is_given_up_after_five_seconds_of_hurry(void **state)
{
	struct fixture *f = *state;

	into_pipe(f);
	get_stuck(f);
	fake_time_pass(3600 * 1000, NULL);
	file_sink_hurry(f->s, SINK_WAIT_MS);
	fake_time_pass(4900, NULL);
	/* Asking again does not make it longer. */
	file_sink_hurry(f->s, SINK_WAIT_MS);
	turns(f);
	assert_int_equal(f->failed, 0);
	fake_time_pass(200, NULL);
	WAIT_FOR(f, f->failed == 1);
	assert_non_null(strstr(f->err, "takes nothing"));
	WAIT_FOR(f, file_sink_idle(f->s));
	/* A pipe holds 64 KiB, of which whole packets count. */
	assert_int_equal(f->lost, f->submitted - read_all(f) / PACKET_BYTES *
	    PACKET_BYTES);
	close_it(f);
}

static void
a_stuck_reader_is_given_up_after_five_seconds_of_closing(void **state)
{
	struct fixture *f = *state;

	into_pipe(f);
	get_stuck(f);
	file_sink_close(f->s);
	fake_time_pass(4900, NULL);
	turns(f);
	assert_int_equal(f->closed, 0);
	fake_time_pass(200, NULL);
	WAIT_FOR(f, f->closed == 1);
	assert_non_null(strstr(f->err, "takes nothing"));
}

static void
a_reader_that_gets_on_has_its_time_anew_with_each_batch(void **state)
{
	struct fixture *f = *state;
	int i, before;

	into_pipe(f);
	submit(f);
	file_sink_hurry(f->s, SINK_WAIT_MS);
	for (i = 0; i < 10; i++) {
		submit(f);
		fake_time_pass(4000, NULL);
		before = f->written;
		WAIT_FOR(f, (read_all(f), f->written > before));
	}
	assert_int_equal(f->failed, 0);
	WAIT_FOR(f, (read_all(f), file_sink_idle(f->s)));
	/* With nothing to write there is nothing to be late with. */
	fake_time_pass(3600 * 1000, NULL);
	submit(f);
	WAIT_FOR(f, (read_all(f), file_sink_idle(f->s)));
	close_it(f);
	assert_string_equal(f->err, "");
}

static void
after_the_last_call_getting_on_does_not_help(void **state)
{
	struct fixture *f = *state;
	int before = 0;

	into_pipe(f);
	file_sink_hurry(f->s, SINK_WAIT_MS);
	file_sink_last_call(f->s, 5000);
	submit(f);
	fake_time_pass(3000, NULL);
	WAIT_FOR(f, (read_all(f), f->written > before));
	submit(f);
	fake_time_pass(1900, NULL);
	turns(f);
	assert_int_equal(f->failed, 0);
	file_sink_last_call(f->s, 5000);
	fake_time_pass(200, NULL);
	WAIT_FOR(f, f->failed == 1);
	close_it(f);
}

/*
 * poll() says that there is room, and the write of a batch does not fit: the
 * flags of a shared description are changed by others at any time.
 */
static void
a_write_that_its_user_makes_block_is_interrupted(void **state)
{
	struct fixture *f = *state;
	struct timespec moment = { .tv_nsec = 20000000 };
	char some[8192];
	int fds[2], writer, held, i;

	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	f->reader = fds[0];
	writer = dup(fds[1]);
	f->s = file_sink_new_fd(f->l, fds[1], NULL, &ops, f);
	get_stuck(f);
	do
		assert_int_equal(ioctl(f->reader, FIONREAD, &held), 0);
	while (held < 60000);
	assert_int_equal(fcntl(writer, F_SETFL, 0), 0);
	assert_int_equal(read(f->reader, some, sizeof(some)), sizeof(some));
	do
		assert_int_equal(ioctl(f->reader, FIONREAD, &held), 0);
	while (held < 60000);
	file_sink_close(f->s);
	fake_time_pass(5000, NULL);
	for (i = 0; i < 9 && f->closed == 0; i++) {
		nanosleep(&moment, NULL);
		turns(f);
		fake_time_pass(SINK_CANCEL_STEP_MS, NULL);
	}
	assert_int_equal(f->closed, 1);
	assert_non_null(strstr(f->err, "takes nothing"));
	assert_null(strstr(f->err, "does not return"));
	close(writer);
}

/* Not one byte fits: what it returns is what the signal makes of it. */
static void
a_signal_that_comes_before_a_write_waits_is_not_the_last(void **state)
{
	static const char fill[4096];
	struct fixture *f = *state;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	f->reader = fds[0];
	while (write(fds[1], fill, sizeof(fill)) > 0)
		;
	assert_int_equal(fcntl(fds[1], F_SETFL, 0), 0);
	atomic_store(&held_write.fd, fds[1]);
	f->s = file_sink_new_fd(f->l, fds[1], NULL, &ops, f);
	submit(f);
	file_sink_close(f->s);
	WAIT_FOR(f, atomic_load(&held_write.begins));
	fake_time_pass(5000, NULL);
	while (!atomic_load(&held_write.returned) && f->closed == 0) {
		WAIT_FOR(f, held_write_sleeps() ||
		    atomic_load(&held_write.returned));
		fake_time_pass(SINK_CANCEL_STEP_MS, NULL);
		turns(f);
	}
	WAIT_FOR(f, f->closed == 1);
	assert_non_null(strstr(f->err, "takes nothing"));
	assert_null(strstr(f->err, "does not return"));
	assert_int_equal(f->lost, f->submitted);
}

static void
a_disk_is_waited_for_longer_and_then_left_to_itself(void **state)
{
	struct fixture *f = *state;

	into_file(f);
	get_stuck(f);
	WAIT_FOR(f, atomic_load(&disk.inside) == 1);
	file_sink_hurry(f->s, SINK_WAIT_MS);
	file_sink_last_call(f->s, SINK_WAIT_MS);
	fake_time_pass(60900, NULL);
	turns(f);
	assert_int_equal(f->failed, 0);
	fake_time_pass(200, NULL);
	assert_int_equal(f->failed, 1);
	assert_non_null(strstr(f->err, "does not return"));
	assert_int_equal(f->lost, f->submitted);
	close_it(f);
	/* The loop's side is gone; the disk comes back to life. */
	atomic_store(&disk.hangs, false);
	sem_post(&disk.go);
	while (atomic_load(&disk.inside) > 0)
		sched_yield();
}

static void
a_disk_may_come_back_between_the_end_and_the_close(void **state)
{
	struct fixture *f = *state;

	into_file(f);
	get_stuck(f);
	WAIT_FOR(f, atomic_load(&disk.inside) == 1);
	file_sink_close(f->s);
	fake_time_pass(61100, NULL);
	assert_int_equal(f->closed, 0);
	atomic_store(&disk.hangs, false);
	sem_post(&disk.go);
	while (atomic_load(&disk.inside) > 0)
		sched_yield();
	WAIT_FOR(f, f->closed == 1);
	assert_int_equal(f->lost, f->submitted);
	turns(f);
}

static void
nobody_but_their_owner_is_refused_for_threads_that_hang(void **state)
{
	const struct file_sink_options mine = { .owner = 1 };
	const struct file_sink_options others = { .owner = 2 };
	struct fixture *f = *state;
	unsigned i;
	int fds[2];

	for (i = 0; i < SINK_ORPHANS_OF_OWNER; i++) {
		f->closed = f->failed = 0;
		into_file_of(f, &mine);
		submit(f);
		file_sink_close(f->s);
		WAIT_FOR(f, atomic_load(&disk.inside) == (int)i + 1);
		fake_time_pass(61100, NULL);
		WAIT_FOR(f, f->closed == 1);
	}
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_null(file_sink_new_fd(f->l, fds[1], &mine, &ops, f));
	atomic_store(&disk.hangs, false);
	f->s = file_sink_new_fd(f->l, fds[1], &others, &ops, f);
	assert_non_null(f->s);
	f->closed = 0;
	close_it(f);
	close(fds[0]);
	for (i = 0; i < SINK_ORPHANS_OF_OWNER; i++)
		sem_post(&disk.go);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	while ((f->s = file_sink_new_fd(f->l, fds[1], &mine, &ops, f)) == NULL)
		sched_yield();
	f->closed = 0;
	close_it(f);
	close(fds[0]);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(while_nobody_is_in_a_hurry_a_reader_may_take_a_day),
		T(a_stuck_reader_is_given_up_after_five_seconds_of_hurry),
		T(a_stuck_reader_is_given_up_after_five_seconds_of_closing),
		T(a_reader_that_gets_on_has_its_time_anew_with_each_batch),
		T(after_the_last_call_getting_on_does_not_help),
		T(a_write_that_its_user_makes_block_is_interrupted),
		T(a_signal_that_comes_before_a_write_waits_is_not_the_last),
		T(a_disk_is_waited_for_longer_and_then_left_to_itself),
		T(a_disk_may_come_back_between_the_end_and_the_close),
		T(nobody_but_their_owner_is_refused_for_threads_that_hang),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
