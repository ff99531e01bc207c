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

#include "service/front/activation.h"

/* Descriptors begin at 3: what the test has open there is kept aside. */
#define FIRST 3
#define SOCKETS 4

static struct activation a;
static char err[512];

static socklen_t
abstract_address(struct sockaddr_un *un, int i)
{
	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1,
	    "test-activation-%d-%d", (int)getpid(), i);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
	    strlen(un->sun_path + 1));
}

static int
setup(void **state)
{
	struct sockaddr_un un;
	socklen_t len;
	int i, fd;

	memset(&a, 0, sizeof(a));
	for (i = 0; i < SOCKETS; i++) {
		len = abstract_address(&un, i);
		if ((fd = socket(AF_UNIX, SOCK_STREAM, 0)) < 0 ||
		    bind(fd, (struct sockaddr *)&un, len) != 0 ||
		    listen(fd, 1) != 0)
			return -1;
		if (fd != FIRST + i && dup2(fd, FIRST + i) < 0)
			return -1;
		if (fd != FIRST + i)
			close(fd);
	}
	return 0;
}

static int
teardown(void **state)
{
	int i;

	activation_done(&a);
	for (i = 0; i < SOCKETS; i++)
		close(FIRST + i);
	return 0;
}

static int
read_environment(long pid, const char *n, const char *names)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", pid);
	setenv("LISTEN_PID", text, 1);
	setenv("LISTEN_FDS", n, 1);
	if (names != NULL)
		setenv("LISTEN_FDNAMES", names, 1);
	else
		unsetenv("LISTEN_FDNAMES");
	err[0] = '\0';
	return activation_from_environment(&a, err, sizeof(err));
}

static void
without_variables_nothing_was_passed(void **state)
{
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	assert_int_equal(activation_from_environment(&a, err, sizeof(err)), 0);
	assert_int_equal(a.n, 0);
	assert_false(activation_has(&a, LISTEN_PRODUCER));
}

static void
sockets_for_another_process_are_left_alone(void **state)
{
	assert_int_equal(read_environment((long)getpid() + 1, "2", NULL), 0);
	assert_int_equal(a.n, 0);
	assert_null(getenv("LISTEN_FDS"));
}

static void
without_names_the_first_is_for_producers_and_the_second_for_consumers(
    void **state)
{
	assert_int_equal(read_environment(getpid(), "2", NULL), 0);
	assert_int_equal(a.n, 2);
	assert_int_equal(a.sockets[0].fd, 3);
	assert_int_equal(a.sockets[0].port, LISTEN_PRODUCER);
	assert_int_equal(a.sockets[1].fd, 4);
	assert_int_equal(a.sockets[1].port, LISTEN_CONSUMER);
	assert_true(fcntl(3, F_GETFD) & FD_CLOEXEC);
	assert_null(getenv("LISTEN_PID"));
	assert_null(getenv("LISTEN_FDS"));
}

static void
the_name_of_a_unit_counts_as_none(void **state)
{
	assert_int_equal(read_environment(getpid(), "2",
		"tributaryd.socket:tributaryd.socket"), 0);
	assert_int_equal(a.sockets[0].port, LISTEN_PRODUCER);
	assert_int_equal(a.sockets[1].port, LISTEN_CONSUMER);
}

static void
names_say_which_port_a_socket_serves(void **state)
{
	assert_int_equal(read_environment(getpid(), "4",
		"consumer:relay:producer:consumer"), 0);
	assert_int_equal(a.n, 4);
	assert_int_equal(a.sockets[0].port, LISTEN_CONSUMER);
	assert_int_equal(a.sockets[1].port, LISTEN_RELAY);
	assert_int_equal(a.sockets[2].port, LISTEN_PRODUCER);
	assert_int_equal(a.sockets[3].port, LISTEN_CONSUMER);
	assert_true(activation_has(&a, LISTEN_RELAY));
}

/* In the place of one of setup()'s. */
static void
put_tcp_socket(int i)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(dup2(fd, FIRST + i), FIRST + i);
	close(fd);
}

static void
a_name_says_whether_a_socket_is_for_tls(void **state)
{
	put_tcp_socket(1);
	put_tcp_socket(2);
	assert_int_equal(read_environment(getpid(), "3",
		"producer:producer-tls:consumer-tls"), 0);
	assert_false(a.sockets[0].tls);
	assert_true(a.sockets[1].tls);
	assert_int_equal(a.sockets[1].port, LISTEN_PRODUCER);
	assert_true(a.sockets[2].tls);
	assert_int_equal(a.sockets[2].port, LISTEN_CONSUMER);
	assert_true(activation_has_tls(&a));
}

static void
a_tls_socket_without_a_port_is_refused(void **state)
{
	put_tcp_socket(0);
	assert_int_equal(read_environment(getpid(), "1", "x-tls"), -1);
	assert_non_null(strstr(err, "\"x-tls\""));
	assert_int_equal(read_environment(getpid(), "1", "-tls"), -1);
	assert_non_null(strstr(err, "\"-tls\""));
}

static void
a_unix_socket_for_tls_is_refused(void **state)
{
	assert_int_equal(read_environment(getpid(), "1", "producer-tls"), -1);
	assert_non_null(strstr(err, "TLS is for TCP"));
}

static void
a_third_socket_without_a_name_is_refused(void **state)
{
	assert_int_equal(read_environment(getpid(), "3", "producer:consumer:x"),
	    -1);
	assert_non_null(strstr(err, "\"x\""));
	assert_non_null(strstr(err, "FileDescriptorName="));
	assert_int_equal(a.n, 0);
}

static void
nonsense_in_the_variables_is_refused_or_ignored(void **state)
{
	assert_int_equal(read_environment(getpid(), "-1", NULL), 0);
	assert_int_equal(read_environment(getpid(), "2x", NULL), 0);
	assert_int_equal(read_environment(getpid(), "", NULL), 0);
	assert_int_equal(a.n, 0);
	assert_int_equal(read_environment(getpid(), "17", NULL), -1);
	assert_int_equal(read_environment(getpid(), "99999999999999999999",
		NULL), -1);
	close(FIRST + 1);
	assert_int_equal(read_environment(getpid(), "2", NULL), -1);
	assert_non_null(strstr(err, "descriptor 4"));
}

static void
an_activated_address_is_recognised(void **state)
{
	struct sockaddr_storage sa;
	socklen_t len;
	char text[64];

	assert_int_equal(read_environment(getpid(), "1", "consumer"), 0);
	memset(&sa, 0, sizeof(sa));
	len = abstract_address((struct sockaddr_un *)&sa, 0);
	assert_true(activation_is_bound_to(&a, &sa, len));
	len = abstract_address((struct sockaddr_un *)&sa, 1);
	assert_false(activation_is_bound_to(&a, &sa, len));
	passed_socket_address(3, text, sizeof(text));
	assert_int_equal(strncmp(text, "@test-activation-", 17), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(without_variables_nothing_was_passed),
		CASE(sockets_for_another_process_are_left_alone),
		CASE(without_names_the_first_is_for_producers_and_the_second_for_consumers),
		CASE(the_name_of_a_unit_counts_as_none),
		CASE(names_say_which_port_a_socket_serves),
		CASE(a_name_says_whether_a_socket_is_for_tls),
		CASE(a_tls_socket_without_a_port_is_refused),
		CASE(a_unix_socket_for_tls_is_refused),
		CASE(a_third_socket_without_a_name_is_refused),
		CASE(nonsense_in_the_variables_is_refused_or_ignored),
		CASE(an_activated_address_is_recognised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
