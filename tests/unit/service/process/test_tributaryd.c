/*
 * The program itself: how it starts, says that it is ready, refuses to start,
 * and ends.  usage: test_tributaryd PROGRAM
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define WAIT_MS  20000
#define OUT_MAX  16384
#define ARGS_MAX 24
#define ENV_MAX  8

static char *program;
static char dir[64]; /* of this test; also the child's working directory */

/* What a child is given besides its arguments. */
static struct {
	const char *env[ENV_MAX]; /* "NAME=value" */
	size_t n_env;
	int keep_fd;   /* passed on; -1: none */
	int as_fd;     /* under this number */
	bool listen_pid;
} give;

static struct {
	pid_t pid;
	int out;       /* its standard output and error */
	char text[OUT_MAX];
	size_t len;
	int status;    /* of waitpid() */
} child;

static int
setup(void **state)
{
	memset(&give, 0, sizeof(give));
	memset(&child, 0, sizeof(child));
	give.keep_fd = -1;
	child.out = -1;
	strcpy(dir, "/tmp/test_tributaryd.XXXXXX");
	return mkdtemp(dir) == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	char command[128];

	if (child.pid > 0) {
		kill(child.pid, SIGKILL);
		waitpid(child.pid, NULL, 0);
	}
	if (child.out != -1)
		close(child.out);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

/* The child's variables, and where its pid is put in. */
struct child_env {
	char *vars[512];
	char listen_pid[32];
};

static void
make_env(struct child_env *e)
{
	size_t n = 0, i;

	for (i = 0; environ[i] != NULL; i++) {
		assert_true(n < 480);
		e->vars[n++] = environ[i];
	}
	for (i = 0; i < give.n_env; i++)
		e->vars[n++] = (char *)give.env[i];
	if (give.listen_pid)
		e->vars[n++] = e->listen_pid;
	e->vars[n] = NULL;
}

/* After fork(): nothing here may need memory, or a lock of the parent's. */
static void
run_child(char **argv, struct child_env *e)
{
	if (chdir(dir) != 0)
		_exit(99);
	snprintf(e->listen_pid, sizeof(e->listen_pid), "LISTEN_PID=%d",
	    (int)getpid());
	if (give.keep_fd != -1 && give.keep_fd != give.as_fd) {
		if (dup2(give.keep_fd, give.as_fd) < 0)
			_exit(99);
		close(give.keep_fd);
	}
	execve(program, argv, e->vars);
	_exit(99);
}

/* Starts the program with the words of line. */
static void
start(const char *line)
{
	char copy[2048], *argv[ARGS_MAX + 1], *save = NULL, *word;
	struct child_env env;
	int fds[2], n = 0;

	make_env(&env);
	snprintf(copy, sizeof(copy), "tributaryd %s", line);
	for (word = strtok_r(copy, " ", &save); word != NULL;
	    word = strtok_r(NULL, " ", &save)) {
		assert_true(n < ARGS_MAX);
		argv[n++] = word;
	}
	argv[n] = NULL;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_true((child.pid = fork()) >= 0);
	if (child.pid == 0) {
		dup2(fds[1], STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		run_child(argv, &env);
	}
	close(fds[1]);
	child.out = fds[0];
	child.len = 0;
	child.text[0] = '\0';
}

/* Reads some of what the child says; false at the end. */
static bool
listen_to_child(void)
{
	struct pollfd p = { .fd = child.out, .events = POLLIN };
	ssize_t n;

	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	n = read(child.out, child.text + child.len, OUT_MAX - 1 - child.len);
	assert_true(n >= 0);
	child.len += (size_t)n;
	child.text[child.len] = '\0';
	return n > 0;
}

static void
wait_for_text(const char *text)
{
	while (strstr(child.text, text) == NULL)
		if (!listen_to_child())
			fail_msg("\"%s\" was not said, but \"%s\"", text,
			    child.text);
}

/* All it says until it ends; returns the exit status, or minus the signal. */
static int
wait_for_end(void)
{
	while (listen_to_child())
		;
	assert_int_equal(waitpid(child.pid, &child.status, 0), child.pid);
	child.pid = 0;
	return WIFEXITED(child.status) ? WEXITSTATUS(child.status) :
	    -WTERMSIG(child.status);
}

static void
expect_failure(const char *line, int status, const char *text)
{
	if (child.out != -1)
		close(child.out);
	start(line);
	assert_int_equal(wait_for_end(), status);
	if (strstr(child.text, text) == NULL)
		fail_msg("\"%s\" was not said, but \"%s\"", text, child.text);
}

static bool
exists(const char *name)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return lstat(path, &st) == 0;
}

static void
write_file(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_non_null(f = fopen(path, "w"));
	fputs(text, f);
	fclose(f);
}

/* A connected socket, or -1. */
static int
connect_to(const char *name)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s/%s", dir, name);
	assert_true(fd >= 0);
	if (connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0)
		return fd;
	close(fd);
	return -1;
}

/* Whether a service of this name can be bound on the connection. */
static bool
can_bind(int fd, const char *service)
{
	uint8_t frame[64], reply[4096];
	size_t len = strlen(service), got = 0, want = 4;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	/* request_id 1, msg_bind_service { service_name } */
	frame[0] = (uint8_t)(len + 6);
	memset(frame + 1, 0, 3);
	memcpy(frame + 4, "\x10\x01\x1a", 3);
	frame[7] = (uint8_t)(len + 2);
	frame[8] = 0x0a;
	frame[9] = (uint8_t)len;
	memcpy(frame + 10, service, len);
	assert_int_equal(send(fd, frame, len + 10, MSG_NOSIGNAL), len + 10);
	while (got < want) {
		assert_int_equal(poll(&p, 1, WAIT_MS), 1);
		n = read(fd, reply + got, want - got);
		assert_true(n > 0);
		got += (size_t)n;
		if (got == 4 && want == 4)
			want = 4u + reply[0] + 256u * reply[1];
	}
	/* request_id 1, msg_bind_service_reply { success: true ... } */
	return got > 10 && memcmp(reply + 4, "\x10\x01\x22", 3) == 0 &&
	    memmem(reply + 7, 6, "\x08\x01", 2) != NULL;
}

static void
stop(int signal)
{
	assert_int_equal(kill(child.pid, signal), 0);
	assert_int_equal(wait_for_end(), 0);
}

/* ---- cases ---- */

static void
it_listens_where_it_is_told_and_ends_at_sigterm_without_a_trace(void **state)
{
	int fd;

	start("--producer-socket p --producer-socket 127.0.0.1:0"
	      " --consumer-socket c");
	wait_for_text("listening for producers on p\n");
	wait_for_text("listening for producers on 127.0.0.1:");
	wait_for_text("listening for consumers on c\n");
	assert_null(strstr(child.text, "127.0.0.1:0\n"));
	assert_null(strstr(child.text, "relays"));
	assert_true((fd = connect_to("p")) >= 0);
	assert_true(can_bind(fd, "ProducerPort"));
	close(fd);
	assert_true((fd = connect_to("c")) >= 0);
	assert_true(can_bind(fd, "ConsumerPort"));
	stop(SIGTERM);
	close(fd);
	assert_non_null(strstr(child.text, "stopped"));
	assert_false(exists("p"));
	assert_false(exists("c"));
}

static void
a_port_offers_only_its_own_service(void **state)
{
	int fd;

	start("--producer-socket p --consumer-socket c");
	wait_for_text("consumers on c\n");
	assert_true((fd = connect_to("p")) >= 0);
	assert_false(can_bind(fd, "ConsumerPort"));
	assert_false(can_bind(fd, "RelayPort"));
	assert_true(can_bind(fd, "ProducerPort"));
	close(fd);
	assert_true((fd = connect_to("c")) >= 0);
	assert_false(can_bind(fd, "ProducerPort"));
	assert_false(can_bind(fd, "RelayPort"));
	assert_true(can_bind(fd, "ConsumerPort"));
	close(fd);
	stop(SIGINT);
}

static void
relays_are_accepted_only_where_it_is_said(void **state)
{
	int fd;

	start("--producer-socket p --producer-socket q --consumer-socket c"
	      " --enable-relay-endpoint-on q --enable-relay-endpoint-on r");
	wait_for_text("listening for relays on q\n");
	wait_for_text("listening for relays on r\n");
	assert_null(strstr(child.text, "relays on p"));
	assert_true((fd = connect_to("p")) >= 0);
	assert_false(can_bind(fd, "RelayPort"));
	close(fd);
	assert_true((fd = connect_to("q")) >= 0);
	assert_true(can_bind(fd, "RelayPort"));
	close(fd);
	assert_true((fd = connect_to("q")) >= 0);
	assert_true(can_bind(fd, "ProducerPort"));
	close(fd);
	/* A relay's producers come through the socket of the relay. */
	assert_true((fd = connect_to("r")) >= 0);
	assert_true(can_bind(fd, "ProducerPort"));
	close(fd);
	assert_true((fd = connect_to("r")) >= 0);
	assert_true(can_bind(fd, "RelayPort"));
	assert_false(can_bind(fd, "ConsumerPort"));
	close(fd);
	stop(SIGTERM);
	assert_false(exists("r"));
}

static void
the_environment_names_its_sockets(void **state)
{
	give.env[give.n_env++] = "PERFETTO_PRODUCER_SOCK_NAME=p1,p2";
	give.env[give.n_env++] = "PERFETTO_CONSUMER_SOCK_NAME=c1";
	start("--enable-relay-endpoint");
	wait_for_text("producers on p1\n");
	wait_for_text("relays on p1\n");
	wait_for_text("producers on p2\n");
	wait_for_text("relays on p2\n");
	wait_for_text("consumers on c1\n");
	stop(SIGTERM);
}

static void
readiness_is_written_to_the_descriptor_once_the_sockets_are_open(void **state)
{
	char got[8];
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	give.keep_fd = fds[1];
	give.as_fd = 7;
	give.env[give.n_env++] = "TRACED_NOTIFY_FD=7";
	start("--producer-socket p --consumer-socket c");
	close(fds[1]);
	/* "1" and then the end: the descriptor was closed. */
	assert_int_equal(read(fds[0], got, sizeof(got)), 1);
	assert_int_equal(got[0], '1');
	assert_int_equal(read(fds[0], got, sizeof(got)), 0);
	close(fds[0]);
	assert_true(exists("p") && exists("c"));
	stop(SIGTERM);
}

/* The notification socket of a service manager, in the test's directory. */
static int
open_notify_socket(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct timeval t = { .tv_sec = WAIT_MS / 1000 };
	static char env[128];
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/notify", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t,
		sizeof(t)), 0);
	snprintf(env, sizeof(env), "NOTIFY_SOCKET=%s", un.sun_path);
	give.env[give.n_env++] = env;
	return fd;
}

static void
receive_datagram(int fd, char got[64])
{
	ssize_t n = recv(fd, got, 63, 0);

	assert_true(n > 0);
	got[n] = '\0';
}

static void
expect_datagram(int fd, const char *text)
{
	char got[64];

	receive_datagram(fd, got);
	assert_string_equal(got, text);
}

/* As many more signs of life may come before it as there was time for. */
static void
expect_datagram_after_life(int fd, const char *text)
{
	char got[64];

	do {
		receive_datagram(fd, got);
	} while (strcmp(got, "WATCHDOG=1") == 0);
	assert_string_equal(got, text);
}

static void
the_service_manager_is_told_of_readiness_life_and_stop(void **state)
{
	int fd = open_notify_socket();

	give.env[give.n_env++] = "WATCHDOG_USEC=100000";
	start("--producer-socket p --consumer-socket c");
	expect_datagram(fd, "READY=1");
	assert_true(exists("p") && exists("c"));
	expect_datagram(fd, "WATCHDOG=1");
	expect_datagram(fd, "WATCHDOG=1");
	assert_int_equal(kill(child.pid, SIGTERM), 0);
	expect_datagram_after_life(fd, "STOPPING=1");
	assert_int_equal(wait_for_end(), 0);
	close(fd);
}

static void
a_socket_that_was_passed_in_is_served_and_left_in_place(void **state)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char env[128];
	int fd, conn;

	snprintf(un.sun_path, sizeof(un.sun_path), "%s/passed", dir);
	assert_true((fd = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(listen(fd, 5), 0);
	give.keep_fd = fd;
	give.as_fd = 3;
	give.listen_pid = true;
	give.env[give.n_env++] = "LISTEN_FDS=1";
	give.env[give.n_env++] = "LISTEN_FDNAMES=consumer";
	/* As its own name says: not opened a second time. */
	snprintf(env, sizeof(env), "PERFETTO_CONSUMER_SOCK_NAME=%s",
	    un.sun_path);
	give.env[give.n_env++] = env;
	start("--producer-socket p");
	wait_for_text("producers on p\n");
	wait_for_text("listening for consumers on /");
	close(fd);
	assert_true((conn = connect_to("passed")) >= 0);
	assert_true(can_bind(conn, "ConsumerPort"));
	close(conn);
	stop(SIGTERM);
	assert_true(exists("passed"));
	assert_false(exists("p"));
}

static void
in_the_background_it_returns_when_its_sockets_are_open(void **state)
{
	char *end;
	long pid;
	int fd;

	start("--background --producer-socket p --consumer-socket c");
	assert_int_equal(wait_for_end(), 0);
	wait_for_text("\n");
	/* Lines of the log, if any, come behind the id. */
	pid = strtol(child.text, &end, 10);
	assert_true(pid > 1 && *end == '\n');
	assert_true((fd = connect_to("c")) >= 0);
	assert_true(can_bind(fd, "ConsumerPort"));
	assert_int_equal(getsid((pid_t)pid), pid);
	assert_int_equal(kill((pid_t)pid, SIGTERM), 0);
	/* It is nobody's child here; its sockets close when it is gone. */
	while (read(fd, &pid, sizeof(pid)) > 0)
		;
	close(fd);
}

static void
in_the_background_a_failure_is_reported_by_the_status(void **state)
{
	write_file("plain", "");
	expect_failure("--background --producer-socket plain"
		       " --consumer-socket c", 1, "is no socket");
}

static void
a_second_signal_ends_it_at_once(void **state)
{
	start("--producer-socket p --consumer-socket c");
	wait_for_text("consumers on c\n");
	/* Held, it has got both before it can end by the first. */
	assert_int_equal(kill(child.pid, SIGSTOP), 0);
	assert_int_equal(kill(child.pid, SIGTERM), 0);
	assert_int_equal(kill(child.pid, SIGINT), 0);
	assert_int_equal(kill(child.pid, SIGCONT), 0);
	assert_int_equal(wait_for_end(), 1);
	assert_non_null(strstr(child.text, "at once"));
}

static void
a_socket_that_is_in_use_is_refused(void **state)
{
	pid_t first;
	int out;

	start("--producer-socket p --consumer-socket c");
	wait_for_text("consumers on c\n");
	first = child.pid;
	out = child.out;
	child.out = -1;
	expect_failure("--producer-socket p --consumer-socket d", 1,
	    "another program listens at p");
	expect_failure("--producer-socket e --consumer-socket c", 1,
	    "another program listens at c");
	assert_false(exists("e"));
	close(child.out);
	child.pid = first;
	child.out = out;
	stop(SIGTERM);
}

static void
a_stale_socket_is_replaced(void **state)
{
	start("--producer-socket p --consumer-socket c");
	wait_for_text("consumers on c\n");
	assert_int_equal(kill(child.pid, SIGKILL), 0);
	assert_int_equal(wait_for_end(), -SIGKILL);
	assert_true(exists("p"));
	close(child.out);
	start("--producer-socket p --consumer-socket c");
	wait_for_text("consumers on c\n");
	stop(SIGTERM);
}

static void
paths_that_cannot_be_sockets_are_refused(void **state)
{
	char line[512], name[200];

	write_file("plain", "precious");
	expect_failure("--producer-socket plain --consumer-socket c", 1,
	    "is no socket");
	assert_true(exists("plain"));
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	snprintf(line, sizeof(line),
	    "--producer-socket /tmp/%s --consumer-socket c", name);
	expect_failure(line, 1, "long");
	expect_failure("--producer-socket none/p --consumer-socket c", 1,
	    "cannot listen at none/p");
}

static void
an_address_that_others_can_reach_has_to_be_allowed(void **state)
{
	expect_failure("--producer-socket 0.0.0.0:0 --consumer-socket c", 1,
	    "--allow-remote 0.0.0.0:0");
	close(child.out);
	start("--producer-socket 0.0.0.0:0 --allow-remote 0.0.0.0:0"
	      " --consumer-socket 127.0.0.1:0"
	      " --allow-plain-consumer 127.0.0.1:0");
	wait_for_text("producers on 0.0.0.0:");
	wait_for_text("reads all traces");
	stop(SIGTERM);
}

static void
the_trace_directory_has_to_be_there(void **state)
{
	write_file("plain", "");
	expect_failure("--producer-socket p --consumer-socket c"
		       " --trace-dir missing", 1, "trace directory missing");
	expect_failure("--producer-socket p --consumer-socket c"
		       " --trace-dir plain", 1, "trace directory plain");
	assert_false(exists("p"));
}

static void
socket_permissions_are_set(void **state)
{
	char path[128];
	struct stat st;

	expect_failure("--producer-socket p --consumer-socket c"
		       " --set-socket-permissions no-such-group:0660:root:0660",
	    1, "no-such-group");
	close(child.out);
	if (geteuid() != 0)
		skip(); /* groups are root's to give */
	start("--producer-socket p --consumer-socket c"
	      " --set-socket-permissions daemon:0666:root:0600");
	wait_for_text("consumers on c\n");
	snprintf(path, sizeof(path), "%s/p", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0666);
	assert_int_not_equal(st.st_gid, 0);
	snprintf(path, sizeof(path), "%s/c", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	stop(SIGTERM);
}

static void
wrong_usage_has_a_status_of_its_own(void **state)
{
	expect_failure("--prodcuer-socket p", 2, "did you mean");
	expect_failure("nonsense", 2, "nonsense");
}

static void
help_and_version_are_printed(void **state)
{
	expect_failure("--help", 0, "--enable-relay-endpoint-on");
	expect_failure("--version", 0, "tributaryd 0.");
}

static void
settings_can_be_checked_without_starting(void **state)
{
	write_file("good", "trace_dir: '/nonexistent'\n");
	write_file("bad", "limits { max_sessions: 0 }\n");
	expect_failure("--check-config --config good", 0, "OK\n");
	expect_failure("--check-config --config bad", 1, "limits.max_sessions");
	expect_failure("--check-config --config missing", 1, "missing");
	expect_failure("--check-config", 0, "OK\n");
}

static void
connections_over_the_limit_are_refused_and_room_is_found_again(void **state)
{
	struct pollfd p = { .events = POLLIN };
	int a, b, c, i;
	char said[256];

	write_file("conf", "limits { max_connections: 2 }\n");
	start("--config conf --producer-socket p --consumer-socket c");
	wait_for_text("consumers on c\n");
	assert_true((a = connect_to("p")) >= 0);
	assert_true(can_bind(a, "ProducerPort"));
	assert_true((b = connect_to("c")) >= 0);
	assert_true(can_bind(b, "ConsumerPort"));
	assert_true((p.fd = c = connect_to("p")) >= 0);
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	memset(said, 0, sizeof(said));
	assert_true(read(c, said, sizeof(said) - 1) > 0);
	assert_non_null(memmem(said, sizeof(said), "limits.max_connections",
	    strlen("limits.max_connections")));
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_true(read(c, said, 1) <= 0);
	close(c);
	wait_for_text("limits.max_connections");
	close(a);
	/* The daemon may see the next one before it sees that end. */
	for (i = 0; i < 1000; i++) {
		assert_true((p.fd = c = connect_to("p")) >= 0);
		if (poll(&p, 1, 10) == 0 && can_bind(c, "ProducerPort"))
			break;
		close(c);
	}
	assert_true(i < 1000);
	close(b);
	close(c);
	stop(SIGTERM);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CASE(it_listens_where_it_is_told_and_ends_at_sigterm_without_a_trace),
		CASE(a_port_offers_only_its_own_service),
		CASE(relays_are_accepted_only_where_it_is_said),
		CASE(the_environment_names_its_sockets),
		CASE(readiness_is_written_to_the_descriptor_once_the_sockets_are_open),
		CASE(the_service_manager_is_told_of_readiness_life_and_stop),
		CASE(a_socket_that_was_passed_in_is_served_and_left_in_place),
		CASE(in_the_background_it_returns_when_its_sockets_are_open),
		CASE(in_the_background_a_failure_is_reported_by_the_status),
		CASE(a_second_signal_ends_it_at_once),
		CASE(a_socket_that_is_in_use_is_refused),
		CASE(a_stale_socket_is_replaced),
		CASE(paths_that_cannot_be_sockets_are_refused),
		CASE(an_address_that_others_can_reach_has_to_be_allowed),
		CASE(the_trace_directory_has_to_be_there),
		CASE(socket_permissions_are_set),
		CASE(wrong_usage_has_a_status_of_its_own),
		CASE(help_and_version_are_printed),
		CASE(settings_can_be_checked_without_starting),
		CASE(connections_over_the_limit_are_refused_and_room_is_found_again),
	};

	int failed;

	if (argc != 2) {
		fprintf(stderr, "usage: %s PROGRAM\n", argv[0]);
		return 2;
	}
	/* Absolute, as children start in a folder of their own. */
	if ((program = realpath(argv[1], NULL)) == NULL) {
		perror(argv[1]);
		return 2;
	}
	unsetenv("PERFETTO_PRODUCER_SOCK_NAME");
	unsetenv("PERFETTO_CONSUMER_SOCK_NAME");
	unsetenv("NOTIFY_SOCKET");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(program);
	return failed;
}
