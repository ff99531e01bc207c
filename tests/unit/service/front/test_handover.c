#include <fcntl.h>
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

#include "service/front/activation.h"
#include "service/front/handover.h"
#include "transport/connect/listener.h"

static struct activation a;
static char err[512];

static int
setup(void **state)
{
	memset(&a, 0, sizeof(a));
	unsetenv("LISTEN_FDS");
	return 0;
}

static int
teardown(void **state)
{
	activation_done(&a);
	return 0;
}

static int
descriptor(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_true(fd > 2);
	return fd;
}

/* As the environment of the daemon that follows. */
static void
hand_over(const struct handover *h)
{
	const char *value = strchr(h->text, '=') + 1;

	assert_memory_equal(h->text, HANDOVER_VARIABLE "=",
	    strlen(HANDOVER_VARIABLE) + 1);
	assert_int_equal(setenv(HANDOVER_VARIABLE, value, 1), 0);
}

static int
read_text(const char *fmt, long pid, int fd)
{
	char text[512];

	snprintf(text, sizeof(text), fmt, pid, fd);
	setenv(HANDOVER_VARIABLE, text, 1);
	err[0] = '\0';
	return activation_from_environment(&a, err, sizeof(err));
}

static void
what_is_handed_over_arrives(void **state)
{
	int fds[4] = { descriptor(), descriptor(), descriptor(), descriptor() };
	int taken[LISTENER_SOCKETS_MAX];
	struct handover h;

	assert_int_equal(handover_begin(&h), 0);
	assert_int_equal(handover_add_passed(&h, fds[0], LISTEN_CONSUMER, true),
	    0);
	assert_int_equal(handover_add_made(&h, fds[1], LISTEN_PRODUCER,
	    "tls://a name:7"), 0);
	assert_int_equal(handover_add_made(&h, fds[2], LISTEN_PRODUCER,
	    "tls://a name:7"), 0);
	assert_int_equal(handover_add_made(&h, fds[3], LISTEN_RELAY,
	    "127.0.0.1:0"), 0);
	assert_int_equal(h.n, 4);
	hand_over(&h);
	handover_done(&h);
	assert_int_equal(activation_from_environment(&a, err, sizeof(err)), 0);
	assert_null(getenv(HANDOVER_VARIABLE));
	assert_true(a.inherited);
	assert_false(a.trial);
	assert_int_equal(a.n, 1);
	assert_int_equal(a.sockets[0].fd, fds[0]);
	assert_int_equal(a.sockets[0].port, LISTEN_CONSUMER);
	assert_true(a.sockets[0].tls);
	assert_int_equal(fcntl(fds[0], F_GETFD), FD_CLOEXEC);

	/* Both sockets of the name, whatever is spoken there. */
	assert_int_equal(activation_take_made(&a, LISTEN_PRODUCER,
	    "a name:7", taken, LISTENER_SOCKETS_MAX), 2);
	assert_int_equal(taken[0], fds[1]);
	assert_int_equal(taken[1], fds[2]);
	assert_int_equal(activation_take_made(&a, LISTEN_PRODUCER,
	    "a name:7", taken, LISTENER_SOCKETS_MAX), 0);
	/* For another port where none is for this one. */
	assert_int_equal(activation_take_made(&a, LISTEN_CONSUMER,
	    "127.0.0.1:0", taken, LISTENER_SOCKETS_MAX), 1);
	close(fds[1]);
	close(fds[2]);
	close(fds[3]);
}

static void
the_socket_of_the_same_port_comes_first(void **state)
{
	int fds[2] = { descriptor(), descriptor() }, taken[LISTENER_SOCKETS_MAX];
	struct handover h;

	assert_int_equal(handover_begin(&h), 0);
	assert_int_equal(handover_add_made(&h, fds[0], LISTEN_PRODUCER,
	    "127.0.0.1:0"), 0);
	assert_int_equal(handover_add_made(&h, fds[1], LISTEN_CONSUMER,
	    "127.0.0.1:0"), 0);
	hand_over(&h);
	handover_done(&h);
	assert_int_equal(activation_from_environment(&a, err, sizeof(err)), 0);
	assert_int_equal(activation_take_made(&a, LISTEN_CONSUMER,
	    "127.0.0.1:0", taken, LISTENER_SOCKETS_MAX), 1);
	assert_int_equal(taken[0], fds[1]);
	close(fds[1]);
}

static void
what_is_not_wanted_goes_with_its_file_but_not_in_a_trial(void **state)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct stat st;
	int fd, trial;

	for (trial = 1; trial >= 0; trial--) {
		fd = descriptor();
		snprintf(un.sun_path, sizeof(un.sun_path),
		    "/tmp/test_handover.%ld", (long)getpid());
		unlink(un.sun_path);
		assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)),
		    0);
		assert_int_equal(read_text("1 %ld\n%d made producer /x\n",
		    trial ? (long)getppid() : (long)getpid(), fd), 0);
		assert_int_equal(a.trial, trial);
		activation_drop_made(&a);
		assert_int_equal(stat(un.sun_path, &st), trial ? 0 : -1);
		assert_int_equal(fcntl(fd, F_GETFD), -1);
		unlink(un.sun_path);
		activation_done(&a);
		memset(&a, 0, sizeof(a));
	}
}

static void
another_processs_sockets_are_not_ours(void **state)
{
	int fd = descriptor();

	assert_int_equal(read_text("1 %ld\n%d made producer /x\n", 1, fd), 0);
	assert_false(a.inherited);
	assert_int_equal(a.n_made, 0);
	assert_int_equal(fcntl(fd, F_GETFD), 0);
	close(fd);
}

static void
what_is_not_understood_is_refused(void **state)
{
	static const char *const wrong[] = {
		"", "x", "2 %ld\n%d made producer /x\n", "1 %ld",
		"1 %ld\n%d made nobody /x\n", "1 %ld\n%d made producer\n",
		"1 %ld\n%d stolen producer /x\n", "1 %ld\n%d made producer /x",
		"1 %ld\n%d passed producer-ssl\n", "1 %ld\n-%d passed relay\n",
		"1 %ld\n0%d9999999999 passed relay\n", "1 %ld\n1 passed relay\n",
		"1 %ld\n\n%d passed relay\n",
	};
	int fd = descriptor();
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		memset(&a, 0, sizeof(a));
		assert_int_equal(read_text(wrong[i], (long)getpid(), fd), -1);
		assert_non_null(strstr(err, "not understood"));
	}
	memset(&a, 0, sizeof(a));
	close(fd);
}

static void
an_address_that_would_be_two_lines_is_not_handed_over(void **state)
{
	struct handover h;

	assert_int_equal(handover_begin(&h), 0);
	assert_int_equal(handover_add_made(&h, 7, LISTEN_PRODUCER, "/a\nb"),
	    -1);
	handover_done(&h);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_handed_over_arrives),
		TEST(the_socket_of_the_same_port_comes_first),
		TEST(what_is_not_wanted_goes_with_its_file_but_not_in_a_trial),
		TEST(another_processs_sockets_are_not_ours),
		TEST(what_is_not_understood_is_refused),
		TEST(an_address_that_would_be_two_lines_is_not_handed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
