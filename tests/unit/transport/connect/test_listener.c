#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "transport/connect/dial.h"
#include "transport/connect/listener.h"
#include "transport/loop/loop.h"
#include "transport/socket/addr.h"

#define FDS_MAX 4096

static struct {
	struct loop *loop;
	struct listener *listener;
	char dir[64];
	char path[100];
	char err[512];
	int accepted;
	int fds[FDS_MAX]; /* accepted; closed at the end */
	bool free_in_callback;

	struct dial *dial;
	int dialled, dial_fd, dial_error;
} t;

static void
on_accept(struct listener *l, int fd, void *arg)
{
	assert_ptr_equal(arg, &t);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_true(t.accepted < FDS_MAX);
	t.fds[t.accepted++] = fd;
	if (t.free_in_callback) {
		listener_free(l);
		t.listener = NULL;
	}
}

static void
on_dialled(const struct dial_result *r, int error, void *arg)
{
	assert_ptr_equal(arg, &t);
	t.dialled++;
	t.dial_fd = r != NULL ? r->fd : -1;
	t.dial_error = error;
	dial_free(t.dial);
	t.dial = NULL;
}

static int
setup(void **state)
{
	memset(&t, 0, sizeof(t));
	t.dial_fd = -1;
	t.loop = loop_new();
	strcpy(t.dir, "/tmp/test_listener.XXXXXX");
	if (t.loop == NULL || mkdtemp(t.dir) == NULL)
		return -1;
	snprintf(t.path, sizeof(t.path), "%s/socket", t.dir);
	return 0;
}

static int
teardown(void **state)
{
	dial_free(t.dial);
	listener_free(t.listener);
	loop_free(t.loop);
	while (t.accepted > 0)
		close(t.fds[--t.accepted]);
	if (t.dial_fd >= 0)
		close(t.dial_fd);
	unlink(t.path);
	return rmdir(t.dir);
}

#define RUN_UNTIL(cond)                                                        \
	do {                                                                   \
		long rounds_ = 0;                                              \
		while (!(cond)) {                                              \
			loop_run_once(t.loop);                                 \
			assert_true(rounds_++ < 20000000);                     \
		}                                                              \
	} while (0)

static struct listener *
try_listen(const char *text, bool allow_remote)
{
	struct addr a;

	t.err[0] = '\0';
	assert_int_equal(addr_parse(&a, text, t.err, sizeof(t.err)), 0);
	return listener_new(t.loop, &(struct listener_setup){ .addr = &a,
	    .allow_remote = allow_remote, .fn = on_accept, .arg = &t }, t.err,
	    sizeof(t.err));
}

static void
listens(const char *text)
{
	t.listener = try_listen(text, false);
	if (t.listener == NULL)
		fail_msg("%s", t.err);
}

static void
refuses(const char *text, bool allow_remote, const char *because)
{
	struct listener *l = try_listen(text, allow_remote);

	assert_null(l);
	if (strstr(t.err, because) == NULL)
		fail_msg("\"%s\" lacks \"%s\"", t.err, because);
}

static void
dials(const char *text)
{
	struct addr a;

	assert_int_equal(addr_parse(&a, text, t.err, sizeof(t.err)), 0);
	t.dialled = 0;
	t.dial = dial_new(t.loop, &(struct dial_request){ .addr = &a,
	    .fn = on_dialled, .arg = &t }, t.err, sizeof(t.err));
	assert_non_null(t.dial);
	assert_int_equal(t.dialled, 0);
}

static void
connects(const char *text)
{
	int before = t.accepted;

	dials(text);
	RUN_UNTIL(t.dialled && t.accepted > before);
	assert_true(t.dial_fd >= 0);
	assert_int_equal(t.dialled, 1);
	close(t.dial_fd);
	t.dial_fd = -1;
}

static void
a_path_is_listened_at_and_its_file_goes_away(void **state)
{
	struct stat st;

	listens(t.path);
	connects(t.path);
	connects(t.path);
	assert_int_equal(listener_port(t.listener), 0);
	listener_free(t.listener);
	t.listener = NULL;
	assert_int_equal(stat(t.path, &st), -1);
}

static void
an_abstract_name_is_listened_at(void **state)
{
	char name[64];

	snprintf(name, sizeof(name), "@tributary-listener-%d", getpid());
	listens(name);
	connects(name);
	refuses(name, false, "Address already in use");
}

/* A socket file that nobody accepts on. */
static void
leave_stale_socket(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", t.path);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	close(fd);
}

static void
a_stale_socket_file_is_replaced(void **state)
{
	leave_stale_socket();
	listens(t.path);
	connects(t.path);
}

static void
a_socket_in_use_is_not_replaced(void **state)
{
	listens(t.path);
	refuses(t.path, false, "another program listens at");
	connects(t.path);
}

static void
a_plain_file_is_not_replaced(void **state)
{
	int fd = open(t.path, O_CREAT | O_WRONLY, 0600);
	struct stat st;

	close(fd);
	refuses(t.path, false, "exists and is no socket");
	assert_int_equal(stat(t.path, &st), 0);
}

static void
a_folder_that_does_not_exist_is_told(void **state)
{
	refuses("/nonexistent/dir/socket", false,
	    "cannot listen at /nonexistent/dir/socket: No such file");
}

static void
the_file_of_another_listener_is_not_removed(void **state)
{
	struct stat st;
	struct listener *second;

	listens(t.path);
	unlink(t.path);
	second = try_listen(t.path, false);
	assert_non_null(second);
	listener_free(t.listener);
	t.listener = second;
	assert_int_equal(stat(t.path, &st), 0);
	connects(t.path);
}

static void
loopback_tcp_is_listened_at_on_a_port_of_the_kernels(void **state)
{
	char text[64];

	listens("127.0.0.1:0");
	assert_in_range(listener_port(t.listener), 1, 65535);
	snprintf(text, sizeof(text), "127.0.0.1:%d",
	    listener_port(t.listener));
	connects(text);
	refuses(text, false, "Address already in use");
}

static void
a_name_with_several_addresses_has_one_port(void **state)
{
	char text[64];

	listens("localhost:0");
	snprintf(text, sizeof(text), "localhost:%d",
	    listener_port(t.listener));
	connects(text);
}

static void
v6_loopback_is_listened_at_where_the_kernel_has_it(void **state)
{
	char text[64];

	t.listener = try_listen("[::1]:0", false);
	if (t.listener == NULL) {
		assert_non_null(strstr(t.err, "cannot listen at [::1]:0"));
		skip();
	}
	snprintf(text, sizeof(text), "[::1]:%d", listener_port(t.listener));
	connects(text);
}

static void
tcp_off_the_loopback_needs_a_flag_that_is_named(void **state)
{
	refuses("0.0.0.0:0", false,
	    "plain TCP address 0.0.0.0:0 is reachable from other machines; "
	    "pass --allow-remote 0.0.0.0:0 (or use 127.0.0.1)");
	refuses("[::]:0", false, "--allow-remote [::]:0");
	t.listener = try_listen("0.0.0.0:0", true);
	assert_non_null(t.listener);
}

static void
vsock_is_listened_at_where_the_kernel_has_it(void **state)
{
	char text[64];

	t.listener = try_listen("vsock://-1:-1", false);
	if (t.listener == NULL) {
		assert_non_null(strstr(t.err, "cannot listen at vsock"));
		skip();
	}
	snprintf(text, sizeof(text), "vsock://1:%u",
	    (unsigned)listener_port(t.listener));
	dials(text);
	RUN_UNTIL(t.dialled);
	if (t.dial_fd < 0)
		skip(); /* no loopback transport */
	RUN_UNTIL(t.accepted == 1);
}

static void
a_passed_listening_socket_is_adopted_and_no_other(void **state)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", t.path);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_null(listener_adopt(t.loop, fd, on_accept, &t, t.err,
	    sizeof(t.err)));
	assert_non_null(strstr(t.err, "is no listening socket"));
	assert_int_equal(listen(fd, 1), 0);
	t.listener = listener_adopt(t.loop, fd, on_accept, &t, t.err,
	    sizeof(t.err));
	assert_non_null(t.listener);
	connects(t.path);
	listener_free(t.listener);
	t.listener = NULL;
	/* Somebody else's file stays. */
	assert_int_equal(access(t.path, F_OK), 0);
}

static void
permissions_are_set_on_the_file(void **state)
{
	struct stat st;

	listens(t.path);
	assert_int_equal(listener_set_permissions(t.listener, 0640, getegid(),
	    t.err, sizeof(t.err)), 0);
	assert_int_equal(stat(t.path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	listener_free(t.listener);
	listens("127.0.0.1:0");
	assert_int_equal(listener_set_permissions(t.listener, 0640, -1, t.err,
	    sizeof(t.err)), -1);
	assert_non_null(strstr(t.err, "UNIX socket files only"));
}

static void
a_listener_may_be_freed_in_its_callback(void **state)
{
	t.free_in_callback = true;
	listens(t.path);
	dials(t.path);
	RUN_UNTIL(t.accepted == 1 && t.dialled == 1);
	assert_null(t.listener);
}

static void
two_thousand_clients_are_accepted(void **state)
{
	enum { N = 2000 };
	static int fds[N];
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct rlimit rl;
	int i;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &rl), 0);
	rl.rlim_cur = rl.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &rl), 0);
	if (rl.rlim_cur < 2 * N + 100)
		skip();
	listens(t.path);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", t.path);
	for (i = 0; i < N; i++) {
		fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		while (connect(fds[i], (struct sockaddr *)&un, sizeof(un))) {
			assert_int_equal(errno, EAGAIN);
			loop_run_once(t.loop);
		}
	}
	RUN_UNTIL(t.accepted == N);
	for (i = 0; i < N; i++)
		close(fds[i]);
}

static void
without_descriptors_accepting_pauses_and_goes_on(void **state)
{
	static int hogs[1024];
	struct rlimit old, rl;
	uint64_t begin;
	int n = 0, i;

	listens(t.path);
	dials(t.path);
	RUN_UNTIL(t.dialled == 1 && t.accepted == 1);
	close(t.dial_fd);
	close(t.fds[--t.accepted]);
	/* A client waits in the backlog; then all descriptors are taken. */
	dials(t.path);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	rl = old;
	rl.rlim_cur = 256;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &rl), 0);
	while ((hogs[n] = open("/dev/null", O_RDONLY)) >= 0)
		n++;
	close(hogs[--n]); /* one for the dialler */
	RUN_UNTIL(t.dialled == 1);
	assert_true(t.dial_fd >= 0);
	begin = loop_now_ms();
	for (i = 0; i < 20; i++)
		loop_run_once(t.loop);
	assert_int_equal(t.accepted, 0);
	while (n > 0)
		close(hogs[--n]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	RUN_UNTIL(t.accepted == 1);
	assert_true(loop_now_ms() - begin >= 50);
}

static void
dialling_nobody_gives_the_reason(void **state)
{
	struct addr a;
	char text[400];

	dials(t.path);
	RUN_UNTIL(t.dialled);
	assert_int_equal(t.dial_fd, -1);
	assert_int_equal(t.dial_error, ENOENT);
	leave_stale_socket();
	dials(t.path);
	RUN_UNTIL(t.dialled);
	assert_int_equal(t.dial_error, ECONNREFUSED);

	assert_int_equal(addr_parse(&a, t.path, t.err, sizeof(t.err)), 0);
	dial_error_text(&a, ENOENT, "VARIABLE", text, sizeof(text));
	assert_non_null(strstr(text, "start tributaryd, or set VARIABLE"));
	dial_error_text(&a, EACCES, "VARIABLE", text, sizeof(text));
	assert_non_null(strstr(text, "no permission to connect to"));
	dial_error_text(&a, ETIMEDOUT, "VARIABLE", text, sizeof(text));
	assert_non_null(strstr(text, "no answer from"));
	dial_error_text(&a, EHOSTUNREACH, "VARIABLE", text, sizeof(text));
	assert_non_null(strstr(text, "No route to host"));
}

static void
dialling_over_tcp_where_nobody_listens_is_refused(void **state)
{
	char text[64];

	listens("127.0.0.1:0");
	snprintf(text, sizeof(text), "127.0.0.1:%d",
	    listener_port(t.listener));
	listener_free(t.listener);
	t.listener = NULL;
	dials(text);
	RUN_UNTIL(t.dialled);
	assert_int_equal(t.dial_error, ECONNREFUSED);
}

static void
a_dial_that_is_given_up_calls_nobody(void **state)
{
	int i;

	listens(t.path);
	dials(t.path);
	dial_free(t.dial);
	t.dial = NULL;
	for (i = 0; i < 10; i++)
		loop_run_once(t.loop);
	assert_int_equal(t.dialled, 0);
	assert_int_equal(t.accepted, 0);
}

static void
a_full_backlog_is_asked_again(void **state)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), first, i;

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", t.path);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(listen(fd, 0), 0);
	first = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(connect(first, (struct sockaddr *)&un, sizeof(un)),
	    0);
	dials(t.path);
	for (i = 0; i < 10; i++)
		loop_run_once(t.loop);
	assert_int_equal(t.dialled, 0);
	t.fds[t.accepted++] = accept(fd, NULL, NULL);
	RUN_UNTIL(t.dialled);
	assert_true(t.dial_fd >= 0);
	close(first);
	close(fd);
}

static void
turns(int n)
{
	while (n-- > 0)
		loop_run_once(t.loop);
}

static void
a_paced_listener_lets_a_few_in_at_a_time(void **state)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int clients[40], i;

	listens(t.path);
	strcpy(sun.sun_path, t.path);
	listener_pace(t.listener, true);
	for (i = 0; i < 40; i++) {
		clients[i] = socket(AF_UNIX, SOCK_STREAM, 0);
		assert_int_equal(connect(clients[i], (struct sockaddr *)&sun,
		    sizeof(sun)), 0);
	}
	turns(10);
	assert_int_equal(t.accepted, 16);
	/* While it rests nobody comes in, whatever the pace. */
	listener_rest(t.listener);
	listener_let_some_in(t.listener);
	turns(10);
	assert_int_equal(t.accepted, 16);
	listener_wake(t.listener);
	turns(10);
	assert_int_equal(t.accepted, 32);
	turns(10);
	assert_int_equal(t.accepted, 32);
	listener_pace(t.listener, false);
	turns(10);
	assert_int_equal(t.accepted, 40);
	for (i = 0; i < 40; i++)
		close(clients[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_path_is_listened_at_and_its_file_goes_away),
		TEST(an_abstract_name_is_listened_at),
		TEST(a_stale_socket_file_is_replaced),
		TEST(a_socket_in_use_is_not_replaced),
		TEST(a_plain_file_is_not_replaced),
		TEST(a_folder_that_does_not_exist_is_told),
		TEST(the_file_of_another_listener_is_not_removed),
		TEST(loopback_tcp_is_listened_at_on_a_port_of_the_kernels),
		TEST(a_name_with_several_addresses_has_one_port),
		TEST(v6_loopback_is_listened_at_where_the_kernel_has_it),
		TEST(tcp_off_the_loopback_needs_a_flag_that_is_named),
		TEST(vsock_is_listened_at_where_the_kernel_has_it),
		TEST(a_passed_listening_socket_is_adopted_and_no_other),
		TEST(permissions_are_set_on_the_file),
		TEST(a_listener_may_be_freed_in_its_callback),
		TEST(two_thousand_clients_are_accepted),
		TEST(without_descriptors_accepting_pauses_and_goes_on),
		TEST(a_paced_listener_lets_a_few_in_at_a_time),
		TEST(dialling_nobody_gives_the_reason),
		TEST(dialling_over_tcp_where_nobody_listens_is_refused),
		TEST(a_dial_that_is_given_up_calls_nobody),
		TEST(a_full_backlog_is_asked_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
