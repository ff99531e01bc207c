#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "transport/clock/clock_snapshot.h"
#include "transport/process/sd_notify.h"

/* A datagram socket at name, in $NOTIFY_SOCKET. */
static int
manager(const char *name)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	socklen_t len;
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	strcpy(un.sun_path, name);
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
	    strlen(name));
	if (name[0] == '@')
		un.sun_path[0] = '\0';
	assert_int_equal(bind(fd, (struct sockaddr *)&un, len), 0);
	setenv("NOTIFY_SOCKET", name, 1);
	return fd;
}

static void
hears(const char *name)
{
	int fd = manager(name);
	char buf[32];
	ssize_t n;

	assert_int_equal(sd_notify_send("READY=1"), 1);
	n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
	assert_int_equal(n, 7);
	assert_memory_equal(buf, "READY=1", 7);
	close(fd);
	assert_int_equal(sd_notify_send("STOPPING=1"), -1);
}

static void
systemd_hears_at_a_path_and_at_an_abstract_name(void **state)
{
	char dir[] = "/tmp/test_sd_notify.XXXXXX", path[64];

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/n", dir);
	hears(path);
	unlink(path);
	rmdir(dir);
	snprintf(path, sizeof(path), "@tributary-test-%d", getpid());
	hears(path);
}

static void
without_systemd_nothing_is_sent(void **state)
{
	char name[200];

	unsetenv("NOTIFY_SOCKET");
	assert_int_equal(sd_notify_send("READY=1"), 0);
	setenv("NOTIFY_SOCKET", "relative", 1);
	assert_int_equal(sd_notify_send("READY=1"), -1);
	memset(name, '/', sizeof(name));
	name[199] = '\0';
	setenv("NOTIFY_SOCKET", name, 1);
	assert_int_equal(sd_notify_send("READY=1"), -1);
	assert_int_equal(errno, EINVAL);
	unsetenv("NOTIFY_SOCKET");
}

static void
the_watchdog_interval_is_for_the_named_process(void **state)
{
	char pid[16];

	unsetenv("WATCHDOG_PID");
	unsetenv("WATCHDOG_USEC");
	assert_int_equal(sd_notify_watchdog_usec(), 0);
	setenv("WATCHDOG_USEC", "30000000", 1);
	assert_int_equal(sd_notify_watchdog_usec(), 30000000);
	setenv("WATCHDOG_PID", "1", 1);
	assert_int_equal(sd_notify_watchdog_usec(), 0);
	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv("WATCHDOG_PID", pid, 1);
	assert_int_equal(sd_notify_watchdog_usec(), 30000000);
	setenv("WATCHDOG_USEC", "30s", 1);
	assert_int_equal(sd_notify_watchdog_usec(), 0);
}

static void
a_notify_descriptor_gets_a_one_and_is_closed(void **state)
{
	char number[16], got[4];
	int p[2];

	assert_int_equal(pipe(p), 0);
	snprintf(number, sizeof(number), "%d", p[1]);
	setenv("TRACED_NOTIFY_FD", number, 1);
	notify_fd_from_env("TRACED_NOTIFY_FD");
	assert_int_equal(read(p[0], got, sizeof(got)), 1);
	assert_int_equal(got[0], '1');
	assert_int_equal(read(p[0], got, sizeof(got)), 0);
	assert_null(getenv("TRACED_NOTIFY_FD"));
	notify_fd_from_env("TRACED_NOTIFY_FD");
	setenv("TRACED_NOTIFY_FD", "one", 1);
	notify_fd_from_env("TRACED_NOTIFY_FD");
	close(p[0]);
}

static void
the_clocks_are_read_together(void **state)
{
	struct clock_snapshot a, b;
	uint64_t boot, mono;
	int i;

	clock_snapshot_take(&a);
	clock_snapshot_take(&b);
	for (i = 1; i <= 6; i++) {
		assert_true(clock_snapshot_ns(&a, (enum clock_id)i) > 0);
		assert_true(clock_snapshot_ns(&b, (enum clock_id)i) >=
		    clock_snapshot_ns(&a, (enum clock_id)i));
	}
	boot = clock_snapshot_ns(&a, CLOCK_ID_BOOTTIME);
	mono = clock_snapshot_ns(&a, CLOCK_ID_MONOTONIC);
	/* BOOTTIME counts sleep too; it was read first, by a little. */
	assert_true(boot + 1000000000u > mono);
	assert_true(clock_snapshot_ns(&a, CLOCK_ID_REALTIME) >
	    1600000000000000000u);
	assert_int_equal(clock_snapshot_ns(&a, (enum clock_id)7), 0);
#ifdef __x86_64__
	assert_true(a.tsc > 0 && b.tsc >= a.tsc);
#endif
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    systemd_hears_at_a_path_and_at_an_abstract_name),
		cmocka_unit_test(without_systemd_nothing_is_sent),
		cmocka_unit_test(the_watchdog_interval_is_for_the_named_process),
		cmocka_unit_test(a_notify_descriptor_gets_a_one_and_is_closed),
		cmocka_unit_test(the_clocks_are_read_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
