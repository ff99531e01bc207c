#include <dirent.h>
#include <errno.h>
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
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "transport/connect/dial.h"
#include "transport/loop/loop.h"
#include "transport/process/child.h"
#include "transport/socket/addr.h"
#include "transport/socket/peer.h"

/*
 * This program is its own ssh: $TRIBUTARY_SSH names it, and FAKE_SSH says what
 * it shall do then.
 */
static char self[256];

static struct {
	struct loop *loop;
	struct dial *dial;
	char dir[64];
	char err[1024];
	int done;
	int fd;
	int error;
	struct child *child;
	struct peer peer;
	char detail[1024];
} t;

/* ---- the fake ssh ---- */

static const char *
after(int argc, char **argv, const char *flag)
{
	int i;

	for (i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], flag) == 0)
			return argv[i + 1];
	return "";
}

static int
echo(int in, int out, const char *first)
{
	char data[256];
	ssize_t n;

	if (write(out, first, strlen(first)) < 0)
		return 1;
	while ((n = read(in, data, sizeof(data))) > 0)
		if (write(out, data, (size_t)n) != n)
			return 1;
	return 0;
}

/* -L local:remote, and one connection to it. */
static int
forward(const char *spec)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const char *colon = strchr(spec, ':');
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), c;

	snprintf(un.sun_path, sizeof(un.sun_path), "%.*s",
	    (int)(colon - spec), spec);
	if (bind(fd, (struct sockaddr *)&un, sizeof(un)) != 0 ||
	    listen(fd, 1) != 0 || (c = accept(fd, NULL, NULL)) < 0)
		return 1;
	return echo(c, c, colon + 1);
}

static int
fake_ssh(const char *how, int argc, char **argv)
{
	if (strcmp(how, "forward") == 0)
		return forward(after(argc, argv, "-L"));
	if (strcmp(how, "command") == 0)
		return echo(STDIN_FILENO, STDOUT_FILENO, argv[argc - 1]);
	if (strcmp(how, "hang") == 0)
		return echo(STDIN_FILENO, STDOUT_FILENO, "") + pause();
	fprintf(stderr, "%s\r\n", how);
	return 255;
}

/* ---- the tests ---- */

static void
on_dialled(const struct dial_result *r, int error, void *arg)
{
	assert_ptr_equal(arg, &t);
	t.done++;
	t.error = error;
	if (r != NULL) {
		t.fd = r->fd;
		t.child = r->child;
		assert_null(r->tls);
		if (r->peer != NULL)
			t.peer = *r->peer;
	}
	snprintf(t.detail, sizeof(t.detail), "%s",
	    dial_error_detail(t.dial));
	dial_free(t.dial);
	t.dial = NULL;
}

static int
setup(void **state)
{
	memset(&t, 0, sizeof(t));
	t.fd = -1;
	t.loop = loop_new();
	strcpy(t.dir, "/tmp/test_dial.XXXXXX");
	if (t.loop == NULL || mkdtemp(t.dir) == NULL)
		return -1;
	setenv("XDG_RUNTIME_DIR", t.dir, 1);
	setenv("TRIBUTARY_SSH", self, 1);
	return 0;
}

static int
teardown(void **state)
{
	dial_free(t.dial);
	child_free(t.child);
	loop_free(t.loop);
	if (t.fd >= 0)
		close(t.fd);
	unsetenv("FAKE_SSH");
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	/* Nothing of it stays behind. */
	return rmdir(t.dir);
}

#define RUN_UNTIL(cond)                                                        \
	do {                                                                   \
		uint64_t start_ = loop_now_ms();                               \
		while (!(cond)) {                                              \
			loop_run_once(t.loop);                                 \
			assert_true(loop_now_ms() - start_ < 30000);           \
		}                                                              \
	} while (0)

static void
dial(const char *text, const struct dial_options *o)
{
	struct addr a;

	if (addr_parse(&a, text, t.err, sizeof(t.err)) != 0)
		fail_msg("%s", t.err);
	t.dial = dial_new(t.loop, &(struct dial_request){ .addr = &a, .how = o,
	    .fn = on_dialled, .arg = &t }, t.err, sizeof(t.err));
	assert_int_equal(t.done, 0);
}

static void
dials(const char *text, const struct dial_options *o, const char *fake)
{
	setenv("FAKE_SSH", fake, 1);
	dial(text, o);
	if (t.dial == NULL)
		fail_msg("%s", t.err);
	RUN_UNTIL(t.done);
}

static void
says(const char *text)
{
	char got[256] = "";
	size_t len = 0;
	ssize_t n;

	RUN_UNTIL((n = read(t.fd, got + len, sizeof(got) - 1 - len)) >= 0 ?
	    (len += (size_t)n, len >= strlen(text)) : errno != EAGAIN);
	assert_string_equal(got, text);
}

static size_t
entries(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	size_t n = 0;

	while ((e = readdir(d)) != NULL)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static void
is_an_ssh_stream(const char *peer)
{
	assert_int_equal(t.error, 0);
	assert_true(t.fd >= 0);
	assert_non_null(t.child);
	assert_int_equal(t.peer.kind, ADDR_SSH);
	assert_int_equal(t.peer.auth, PEER_NOBODY);
	assert_int_equal(t.peer.uid, PEER_UID_UNKNOWN);
	assert_false(t.peer.can_pass_fds);
	assert_string_equal(t.peer.text, peer);
	assert_int_equal(child_status(t.child), -1);
}

static void
without_a_path_the_child_is_the_stream(void **state)
{
	struct dial_options o = { .service = "consumer" };

	dials("ssh://device-7", &o, "command");
	is_an_ssh_stream("ssh://device-7");
	says("tributary connect consumer");
	assert_int_equal(write(t.fd, "ping", 4), 4);
	says("ping");
}

static void
the_options_name_another_command(void **state)
{
	struct dial_options o = { .ssh_command = "tributary-relay --stdio" };

	dials("ssh://device-7", &o, "command");
	says("tributary-relay --stdio");
}

static void
with_a_path_the_stream_is_a_socket_of_which_nothing_is_left(void **state)
{
	dials("ssh://me@host:2222/run/x.sock", NULL, "forward");
	is_an_ssh_stream("ssh://host");
	assert_int_equal(entries(t.dir), 0);
	says("/run/x.sock");
	assert_int_equal(write(t.fd, "ping", 4), 4);
	says("ping");
}

static void
a_port_over_there_is_reached_the_same_way(void **state)
{
	dials("ssh://host/localhost:7443", NULL, "forward");
	is_an_ssh_stream("ssh://host");
	says("localhost:7443");
}

static void
a_directory_that_ssh_cannot_name_is_not_used(void **state)
{
	char odd[128];

	snprintf(odd, sizeof(odd), "%s/a:b", t.dir);
	assert_int_equal(mkdir(odd, 0700), 0);
	setenv("XDG_RUNTIME_DIR", odd, 1);
	dials("ssh://host/run/x.sock", NULL, "forward");
	is_an_ssh_stream("ssh://host");
	assert_int_equal(rmdir(odd), 0);
}

static void
what_ssh_fails_at_is_told_as_a_sentence(void **state)
{
	dials("ssh://host/run/x.sock", NULL, "Host key verification failed.");
	assert_int_equal(t.error, ECONNABORTED);
	assert_int_equal(t.fd, -1);
	assert_non_null(strstr(t.detail, "the host key of host is not known"));
}

static void
a_missing_ssh_says_what_to_install(void **state)
{
	setenv("TRIBUTARY_SSH", "/nonexistent/ssh", 1);
	dial("ssh://host/run/x.sock", NULL);
	assert_null(t.dial);
	assert_string_equal(t.err, "ssh://host/run/x.sock: cannot start "
	    "/nonexistent/ssh: No such file or directory on this machine: "
	    "install OpenSSH's client, or name another program with "
	    "$TRIBUTARY_SSH");
}

static void
given_up_it_leaves_nothing_behind(void **state)
{
	setenv("FAKE_SSH", "hang", 1);
	dial("ssh://host/run/x.sock", NULL);
	assert_non_null(t.dial);
	loop_run_once(t.loop);
	assert_int_equal(entries(t.dir), 1);
	dial_free(t.dial);
	t.dial = NULL;
	dial("ssh://host", NULL);
	dial_free(t.dial);
	t.dial = NULL;
	loop_run_once(t.loop);
	assert_int_equal(t.done, 0);
}

int
main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(without_a_path_the_child_is_the_stream),
		TEST(the_options_name_another_command),
		TEST(with_a_path_the_stream_is_a_socket_of_which_nothing_is_left),
		TEST(a_port_over_there_is_reached_the_same_way),
		TEST(a_directory_that_ssh_cannot_name_is_not_used),
		TEST(what_ssh_fails_at_is_told_as_a_sentence),
		TEST(a_missing_ssh_says_what_to_install),
		TEST(given_up_it_leaves_nothing_behind),
	};

	if (getenv("FAKE_SSH") != NULL)
		return fake_ssh(getenv("FAKE_SSH"), argc, argv);
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
