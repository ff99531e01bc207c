/*
 * A socket's file that somebody removed, in time that the test turns on.
 */
#include <dirent.h>
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/fake_time.h"
#include "transport/base/log.h"
#include "transport/connect/listener.h"
#include "transport/loop/loop.h"
#include "transport/socket/addr.h"

#define REMAKE_MS 1000u

static struct {
	struct loop *loop;
	struct listener *listener;
	char dir[64];
	char path[100];
	int accepted;
	bool refuse_events;
} t;

int __real_event_add(struct event *ev, const struct timeval *tv);
int __wrap_event_add(struct event *ev, const struct timeval *tv);

int
__wrap_event_add(struct event *ev, const struct timeval *tv)
{
	return t.refuse_events ? -1 : __real_event_add(ev, tv);
}

static void
on_accept(struct listener *l, int fd, void *arg)
{
	t.accepted++;
	close(fd);
}

static void
turn(void)
{
	loop_run_once(t.loop);
}

static int
setup(void **state)
{
	struct addr a;
	char err[256];

	memset(&t, 0, sizeof(t));
	fake_time_reset();
	log_init("test", LOG_LEVEL_ERROR);
	strcpy(t.dir, "/tmp/test_listener.XXXXXX");
	if ((t.loop = loop_new()) == NULL || mkdtemp(t.dir) == NULL)
		return -1;
	snprintf(t.path, sizeof(t.path), "%s/socket", t.dir);
	assert_int_equal(addr_parse(&a, t.path, err, sizeof(err)), 0);
	t.listener = listener_new(t.loop, &(struct listener_setup){ .addr = &a,
	    .fn = on_accept, .arg = &t }, err, sizeof(err));
	return t.listener != NULL ? 0 : -1;
}

static int
teardown(void **state)
{
	listener_free(t.listener);
	loop_free(t.loop);
	return rmdir(t.dir);
}

static unsigned
mode_of_file(void)
{
	struct stat st;

	return stat(t.path, &st) == 0 ? st.st_mode & 0777 : 0;
}

static int
open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

/* Until it has been seen. */
static void
remove_file(void)
{
	assert_int_equal(unlink(t.path), 0);
	while (fake_time_next() == UINT64_MAX)
		turn();
}

static void
expect_served(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), before = t.accepted;

	strcpy(un.sun_path, t.path);
	assert_int_equal(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	while (t.accepted == before)
		turn();
	close(fd);
}

static void
it_is_made_anew_for_the_same_people(void **state)
{
	mode_t old = umask(0);

	umask(old);
	assert_int_equal(mode_of_file(), 0777 & ~old);
	remove_file();
	fake_time_pass(REMAKE_MS, turn);
	assert_int_equal(mode_of_file(), 0777 & ~old);
	expect_served();
}

static void
one_that_was_made_for_its_owner_alone_stays_so(void **state)
{
	struct addr a;
	char err[256];
	mode_t old;

	listener_free(t.listener);
	assert_int_equal(addr_parse(&a, t.path, err, sizeof(err)), 0);
	old = umask(0177);
	t.listener = listener_new(t.loop, &(struct listener_setup){ .addr = &a,
	    .fn = on_accept, .arg = &t }, err, sizeof(err));
	umask(old);
	assert_non_null(t.listener);
	assert_int_equal(mode_of_file(), 0600);
	remove_file();
	fake_time_pass(REMAKE_MS, turn);
	assert_int_equal(mode_of_file(), 0600);
	expect_served();
}

static void
permissions_that_were_set_are_set_again(void **state)
{
	char err[256];

	assert_int_equal(listener_set_permissions(t.listener, 0640, -1, err,
	    sizeof(err)), 0);
	remove_file();
	fake_time_pass(REMAKE_MS, turn);
	assert_int_equal(mode_of_file(), 0640);
	expect_served();
}

static void
without_memory_for_it_it_is_tried_again_and_nothing_leaks(void **state)
{
	int before = open_descriptors(), i;

	remove_file();
	t.refuse_events = true;
	for (i = 0; i < 3; i++) {
		fake_time_pass(REMAKE_MS, turn);
		assert_int_equal(mode_of_file(), 0);
		/* The old one is gone, and the new one not there yet. */
		assert_int_equal(open_descriptors(), before - 1);
	}
	t.refuse_events = false;
	fake_time_pass(REMAKE_MS, turn);
	assert_int_equal(open_descriptors(), before);
	expect_served();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(it_is_made_anew_for_the_same_people),
		T(one_that_was_made_for_its_owner_alone_stays_so),
		T(permissions_that_were_set_are_set_again),
		T(without_memory_for_it_it_is_tried_again_and_nothing_leaks),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
