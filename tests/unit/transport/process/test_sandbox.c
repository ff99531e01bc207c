/*
 * What a process can and cannot do once it has confined itself.  Everything
 * happens in a forked child; its exit status is the answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "transport/process/sandbox.h"

/* Exit statuses of a child; 0: all as it should be. */
enum { NOT_CONFINED = 100, NO_FILTER, WRONG };

static char dir[64];
static char err[SANDBOX_ERROR_SIZE];

static int
setup(void **state)
{
	strcpy(dir, "/tmp/test_confine.XXXXXX");
	err[0] = '\0';
	return mkdtemp(dir) == NULL || chmod(dir, 0777) != 0 ? -1 : 0;
}

static int
teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

/* In a child.  Its status as of waitpid(). */
static int
in_child(int (*body)(void))
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(body());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* Runs body in a child behind the filter; skips where there is none. */
static int (*confined_body)(void);

/* prctl() could say it, too, but not behind the filter. */
static bool
has_no_new_privs(void)
{
	char text[4096];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	close(fd);
	text[n] = '\0';
	return strstr(text, "\nNoNewPrivs:\t1\n") != NULL;
}

static int
confine_and_run(void)
{
	bool filtered;

	if (sandbox_system_calls(SANDBOX_NOTHING_ELSE, &filtered, err,
		sizeof(err)) != 0) {
		fprintf(stderr, "%s\n", err);
		return NOT_CONFINED;
	}
	if (!has_no_new_privs())
		return NOT_CONFINED;
	return filtered ? confined_body() : NO_FILTER;
}

static int
confined(int (*body)(void))
{
	int status;

	confined_body = body;
	status = in_child(confine_and_run);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTER) {
		print_message("skipped: a sanitizer needs more calls\n");
		skip();
	}
	return status;
}

static void
assert_ends_well(int status)
{
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void
assert_killed(int status)
{
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
}

/* ---- system calls ---- */

static int
run_a_program(void)
{
	execl("/bin/true", "true", (char *)NULL);
	return WRONG;
}

static void
a_program_that_is_started_kills_the_process(void **state)
{
	assert_killed(confined(run_a_program));
}

static int
trace_a_process(void)
{
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	return WRONG;
}

static void
ptrace_kills_the_process(void **state)
{
	assert_killed(confined(trace_a_process));
}

static int
make_an_io_uring(void)
{
	char params[256];

	memset(params, 0, sizeof(params));
	syscall(425 /* io_uring_setup, on every architecture */, 4, params);
	return WRONG;
}

static void
io_uring_which_would_pass_by_the_filter_kills_the_process(void **state)
{
	assert_killed(confined(make_an_io_uring));
}

static int
become_root(void)
{
	if (setuid(0) != 0)
		return WRONG;
	return WRONG;
}

static void
changing_the_user_kills_the_process(void **state)
{
	assert_killed(confined(become_root));
}

static int
do_what_is_refused(void)
{
	pid_t pid;

	if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != EPERM)
		return 1;
	if (socket(AF_NETLINK, SOCK_RAW, 0) >= 0 || errno != EPERM)
		return 2;
	if (mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED ||
	    errno != EPERM)
		return 3;
	if ((pid = fork()) == 0)
		_exit(0);
	if (pid > 0 || errno != EPERM)
		return 4;
	if (kill(getppid(), 0) == 0 || errno != EPERM)
		return 5;
	if (chmod("/tmp", 0700) == 0 || errno != EPERM)
		return 6;
	if (symlink("to", "confine") == 0 || errno != EPERM)
		return 7;
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0 || errno != EPERM)
		return 8;
	return 0;
}

static void
other_calls_are_refused_and_the_process_goes_on(void **state)
{
	assert_ends_well(confined(do_what_is_refused));
}

static int
change_the_priority(void)
{
	const struct sched_param none = { 0 };
	int nice = getpriority(PRIO_PROCESS, 0);

	if (sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none) !=
	    0 || sched_getscheduler(0) < 0)
		return 1;
	if (setpriority(PRIO_PROCESS, 0, nice + 1) != 0 ||
	    getpriority(PRIO_PROCESS, 0) != nice + 1)
		return 2;
	if (setpriority(PRIO_USER, 0, 19) == 0 || errno != EPERM)
		return 3;
	if (setpriority(PRIO_PROCESS, (id_t)getppid(), 19) == 0 ||
	    errno != EPERM)
		return 4;
	if (sched_setscheduler(getppid(), SCHED_OTHER, &none) == 0 ||
	    errno != EPERM)
		return 5;
	return 0;
}

static void
its_own_priority_can_be_set_and_no_others(void **state)
{
	assert_ends_well(confined(change_the_priority));
}

static int
write_a_file(void)
{
	char path[96], text[8];
	int fd;

	snprintf(path, sizeof(path), "%s/trace", dir);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, "packets", 7) != 7 || fdatasync(fd) != 0 ||
	    ftruncate(fd, 4) != 0 || pread(fd, text, sizeof(text), 0) != 4)
		return 1;
	if (close(fd) != 0 || access(path, R_OK) != 0 || unlink(path) != 0)
		return 2;
	return 0;
}

static void
files_can_be_written(void **state)
{
	assert_ends_well(confined(write_a_file));
}

static void *
say_hello(void *arg)
{
	return write(*(int *)arg, "hello", 5) == 5 ? arg : NULL;
}

static int
start_a_thread(void)
{
	pthread_t thread;
	void *result;
	char text[8];
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) != 0 ||
	    pthread_create(&thread, NULL, say_hello, &fds[1]) != 0)
		return 1;
	if (pthread_join(thread, &result) != 0 || result != &fds[1])
		return 2;
	return read(fds[0], text, sizeof(text)) == 5 ? 0 : 3;
}

static void
threads_can_be_started(void **state)
{
	assert_ends_well(confined(start_a_thread));
}

/* A sealed memfd goes through a socket, as a producer's memory does. */
static int
pass_memory(void)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 'x';
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int pair[2], fd = memfd_create("m", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, 4096) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return 1;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	if (sendmsg(pair[0], &m, MSG_NOSIGNAL) != 1)
		return 2;
	if (recvmsg(pair[1], &m, MSG_CMSG_CLOEXEC) != 1)
		return 3;
	c = CMSG_FIRSTHDR(&m);
	if (c == NULL)
		return 4;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) ==
	    MAP_FAILED)
		return 5;
	return 0;
}

static void
memory_can_be_passed_through_sockets(void **state)
{
	assert_ends_well(confined(pass_memory));
}

static int listening = -1;

static int
accept_one(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ep = epoll_create1(EPOLL_CLOEXEC), fd;

	if (ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, listening, &ev) != 0 ||
	    epoll_wait(ep, &ev, 1, 5000) != 1)
		return 1;
	fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	return fd < 0 ? 2 : 0;
}

static void
sockets_that_were_opened_before_go_on_accepting(void **state)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s/s", dir);
	listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listening, (struct sockaddr *)&un, sizeof(un)),
	    0);
	assert_int_equal(listen(listening, 1), 0);
	assert_int_equal(connect(client, (struct sockaddr *)&un, sizeof(un)),
	    0);
	assert_ends_well(confined(accept_one));
	close(client);
	close(listening);
}

static int
abort_it(void)
{
	abort();
}

static void
abort_still_ends_it_as_abort(void **state)
{
	int status = confined(abort_it);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

/* ---- the user ---- */

static void
only_root(void)
{
	if (geteuid() == 0 && getpwnam("nobody") != NULL)
		return;
	print_message("skipped: only root can become somebody else\n");
	skip();
}

static int
become_nobody(void)
{
	const struct passwd *pw = getpwnam("nobody");
	uid_t nobody = pw->pw_uid;
	gid_t group = pw->pw_gid;

	if (sandbox_become_user("nobody", err, sizeof(err)) != 0) {
		fprintf(stderr, "%s\n", err);
		return 1;
	}
	if (getuid() != nobody || geteuid() != nobody || getgid() != group ||
	    getegid() != group)
		return 2;
	if (setuid(0) == 0 || setgid(0) == 0)
		return 3;
	if (open("/etc/shadow", O_RDONLY | O_CLOEXEC) >= 0)
		return 4;
	/* Again is nothing to do. */
	if (sandbox_become_user("nobody", err, sizeof(err)) != 0)
		return 5;
	return 0;
}

static void
root_becomes_somebody_else_for_good(void **state)
{
	only_root();
	assert_ends_well(in_child(become_nobody));
}

static int
become_nobody_by_number(void)
{
	char uid[16];

	snprintf(uid, sizeof(uid), "%u", (unsigned)getpwnam("nobody")->pw_uid);
	return sandbox_become_user(uid, err, sizeof(err)) == 0 &&
	    getuid() == getpwnam("nobody")->pw_uid ? 0 : WRONG;
}

static void
a_user_may_be_named_by_number(void **state)
{
	only_root();
	assert_ends_well(in_child(become_nobody_by_number));
}

static void
a_user_that_does_not_exist_is_refused(void **state)
{
	assert_int_equal(sandbox_become_user("no\nsuch", err, sizeof(err)), -1);
	assert_string_equal(err, "there is no user \"no\\x0asuch\", which the "
	    "setting user (--user) names");
	assert_int_equal(sandbox_become_user("4294967295", err, sizeof(err)),
	    -1);
	assert_non_null(strstr(err, "there is no user"));
	assert_int_equal(sandbox_become_user("", err, sizeof(err)), -1);
	assert_non_null(strstr(err, "there is no user"));
}

static void
root_is_not_somebody_to_become(void **state)
{
	assert_int_equal(sandbox_become_user("root", err, sizeof(err)), -1);
	assert_non_null(strstr(err, "which is root"));
}

static int
become_daemon_as_nobody(void)
{
	if (sandbox_become_user("nobody", err, sizeof(err)) != 0)
		return 1;
	if (sandbox_become_user("daemon", err, sizeof(err)) == 0)
		return 2;
	return strstr(err, "only root can become the user \"daemon\"") ==
	    NULL ? 3 : 0;
}

static void
who_is_not_root_cannot_become_somebody_else(void **state)
{
	only_root();
	if (getpwnam("daemon") == NULL)
		skip();
	assert_ends_well(in_child(become_daemon_as_nobody));
}

/* ---- files ---- */

static char key_path[96];

static int
check_key_as_nobody(void)
{
	if (sandbox_become_user("nobody", err, sizeof(err)) != 0)
		return 1;
	if (sandbox_check_file("the TLS key", key_path, err,
		sizeof(err)) == 0)
		return 2;
	if (strstr(err, "the TLS key ") != err || strstr(err, key_path) == NULL ||
	    strstr(err, "the user \"nobody\"") == NULL ||
	    strstr(err, "belongs to 0:0, mode 0600") == NULL ||
	    strstr(err, "chgrp") == NULL) {
		fprintf(stderr, "%s\n", err);
		return 3;
	}
	return 0;
}

static void
a_key_that_a_reload_could_not_read_is_refused(void **state)
{
	int fd;

	only_root();
	snprintf(key_path, sizeof(key_path), "%s/key.pem", dir);
	fd = open(key_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(sandbox_check_file("the TLS key", key_path, err,
	    sizeof(err)), 0);
	assert_ends_well(in_child(check_key_as_nobody));
}

static int
check_directory_as_nobody(void)
{
	if (sandbox_become_user("nobody", err, sizeof(err)) != 0)
		return 1;
	if (sandbox_check_directory("the trace directory", dir, err,
		sizeof(err)) == 0)
		return 2;
	return strstr(err, "the user \"nobody\" can create files") == NULL ?
	    3 : 0;
}

static void
a_directory_that_the_user_cannot_write_to_is_refused(void **state)
{
	only_root();
	assert_int_equal(sandbox_check_directory("the trace directory", dir,
	    err, sizeof(err)), 0);
	assert_int_equal(chmod(dir, 0755), 0);
	assert_ends_well(in_child(check_directory_as_nobody));
}

static int
shut_memory(void)
{
	if (sandbox_memory(err, sizeof(err)) != 0)
		return 1;
	return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : 2;
}

static void
memory_is_shut_to_others(void **state)
{
	assert_ends_well(in_child(shut_memory));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_program_that_is_started_kills_the_process),
		CASE(ptrace_kills_the_process),
		CASE(io_uring_which_would_pass_by_the_filter_kills_the_process),
		CASE(changing_the_user_kills_the_process),
		CASE(other_calls_are_refused_and_the_process_goes_on),
		CASE(its_own_priority_can_be_set_and_no_others),
		CASE(files_can_be_written),
		CASE(threads_can_be_started),
		CASE(memory_can_be_passed_through_sockets),
		CASE(sockets_that_were_opened_before_go_on_accepting),
		CASE(abort_still_ends_it_as_abort),
		CASE(root_becomes_somebody_else_for_good),
		CASE(a_user_may_be_named_by_number),
		CASE(a_user_that_does_not_exist_is_refused),
		CASE(root_is_not_somebody_to_become),
		CASE(who_is_not_root_cannot_become_somebody_else),
		CASE(a_key_that_a_reload_could_not_read_is_refused),
		CASE(a_directory_that_the_user_cannot_write_to_is_refused),
		CASE(memory_is_shut_to_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
