#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "transport/loop/loop.h"
#include "transport/process/child.h"

static struct {
	struct loop *loop;
	struct child *child;
	int fd;
	int ended;
	bool free_in_callback;
	int fds_before;
	char err[256];
} t;

static int
count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

/* Whether this process has a child, running or zombie. */
static bool
has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static int
setup(void **state)
{
	memset(&t, 0, sizeof(t));
	t.fds_before = count_fds();
	t.fd = -1;
	return (t.loop = loop_new()) != NULL ? 0 : -1;
}

static int
teardown(void **state)
{
	child_free(t.child);
	loop_free(t.loop);
	if (t.fd >= 0)
		close(t.fd);
	assert_false(has_children());
	assert_int_equal(count_fds(), t.fds_before);
	return 0;
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
starts(const char *script)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)script, NULL };

	t.child = child_new(t.loop, argv, &t.fd, t.err, sizeof(t.err));
	if (t.child == NULL)
		fail_msg("%s", t.err);
	assert_true(t.fd >= 0);
}

static void
on_end(void *arg)
{
	assert_ptr_equal(arg, &t);
	t.ended++;
	if (t.free_in_callback) {
		child_free(t.child);
		t.child = NULL;
	}
}

static void
ends(void)
{
	child_when_ended(t.child, 30000, on_end, &t);
	RUN_UNTIL(t.ended);
}

/* Reads what the child writes, until it has said all of text. */
static void
says(const char *text)
{
	char got[1024] = "";
	size_t len = 0;
	ssize_t n;

	RUN_UNTIL((n = read(t.fd, got + len, sizeof(got) - 1 - len)) >= 0 ?
	    (len += (size_t)n, len >= strlen(text)) : errno != EAGAIN);
	assert_string_equal(got, text);
}

static void
standard_input_and_output_are_the_stream(void **state)
{
	starts("read line; echo \"got $line\"");
	assert_int_equal(fcntl(t.fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	assert_int_equal(fcntl(t.fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(child_status(t.child), -1);
	assert_int_equal(write(t.fd, "ping\n", 5), 5);
	says("got ping\n");
	ends();
	assert_int_equal(child_status(t.child), 0);
}

static void
standard_error_is_kept(void **state)
{
	starts("echo 'no such thing' >&2; exit 7");
	ends();
	assert_string_equal(child_stderr(t.child), "no such thing\n");
	assert_int_equal(child_status(t.child), 7);
}

static void
of_a_long_standard_error_the_end_is_kept(void **state)
{
	const char *text;

	starts("seq 0 2999 >&2");
	ends();
	text = child_stderr(t.child);
	assert_int_equal(strlen(text), CHILD_STDERR_MAX - 1);
	assert_non_null(strstr(text, "\n2998\n2999\n"));
}

static void
a_zero_byte_does_not_end_the_text(void **state)
{
	starts("printf 'a\\000b' >&2");
	ends();
	assert_string_equal(child_stderr(t.child), "a b");
}

static void
a_signal_is_a_status_above_128(void **state)
{
	starts("kill -KILL $$");
	ends();
	assert_int_equal(child_status(t.child), 128 + SIGKILL);
}

static void
a_program_that_is_not_there_is_said(void **state)
{
	char *argv[] = { (char *)"tributary-no-such-program", NULL };

	t.child = child_new(t.loop, argv, &t.fd, t.err, sizeof(t.err));
	assert_null(t.child);
	assert_string_equal(t.err, "cannot start tributary-no-such-program: "
	    "No such file or directory");
	assert_false(has_children());
}

static void
no_descriptor_but_three_is_there(void **state)
{
	int leaked = open("/dev/null", O_RDONLY); /* not close-on-exec */

	/* One is the directory that ls itself reads. */
	starts("ls /proc/self/fd | tr '\\n' ' '");
	says("0 1 2 3 ");
	close(leaked);
}

static void
signals_are_as_the_system_has_them(void **state)
{
	sigset_t set;

	/* The loop ignores SIGPIPE; somebody blocks SIGUSR1. */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	starts("grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -d '\\t'");
	says("SigBlk:0000000000000000\n"
	    "SigIgn:0000000000000000\n");
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void
our_own_signals_are_left_alone(void **state)
{
	struct sigaction chld, pipe;
	sigset_t before, after;

	memset(&before, 0, sizeof(before));
	memset(&after, 0, sizeof(after));
	sigprocmask(SIG_BLOCK, NULL, &before);
	starts("exit 0");
	ends();
	sigaction(SIGCHLD, NULL, &chld);
	assert_ptr_equal(chld.sa_handler, SIG_DFL);
	sigaction(SIGPIPE, NULL, &pipe);
	assert_ptr_equal(pipe.sa_handler, SIG_IGN);
	sigprocmask(SIG_BLOCK, NULL, &after);
	assert_memory_equal(&before, &after, sizeof(before));
}

static void
who_waits_is_told_once_and_may_free(void **state)
{
	t.free_in_callback = true;
	starts("exit 3");
	ends();
	loop_run_once(t.loop);
	assert_int_equal(t.ended, 1);
}

static void
who_asks_late_is_told_on_a_later_turn(void **state)
{
	starts("exit 3");
	RUN_UNTIL(child_status(t.child) != -1);
	child_when_ended(t.child, 30000, on_end, &t);
	assert_int_equal(t.ended, 0);
	RUN_UNTIL(t.ended);
}

static void
who_waits_is_told_after_its_time(void **state)
{
	starts("echo busy >&2; read line");
	RUN_UNTIL(*child_stderr(t.child) != '\0');
	child_when_ended(t.child, 1, on_end, &t);
	RUN_UNTIL(t.ended);
	assert_int_equal(child_status(t.child), -1);
	assert_string_equal(child_stderr(t.child), "busy\n");
}

static void
the_wait_can_be_taken_back(void **state)
{
	starts("exit 0");
	child_when_ended(t.child, 30000, on_end, &t);
	child_when_ended(t.child, 0, NULL, NULL);
	RUN_UNTIL(child_status(t.child) != -1);
	loop_run_once(t.loop);
	assert_int_equal(t.ended, 0);
}

/* An ssh may leave another behind that holds standard error. */
static void
the_end_does_not_wait_for_whoever_is_left_behind(void **state)
{
	char pid[32] = "";

	starts("setsid sleep 1000 & echo $!; echo last words >&2; exit 1");
	RUN_UNTIL(read(t.fd, pid, sizeof(pid) - 1) > 0);
	ends();
	assert_string_equal(child_stderr(t.child), "last words\n");
	kill(atoi(pid), SIGKILL);
}

static bool
is_gone(int pid)
{
	char path[64], line[512] = "", *state;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if ((f = fopen(path, "re")) == NULL)
		return true;
	if (fgets(line, sizeof(line), f) == NULL)
		line[0] = '\0';
	fclose(f);
	state = strrchr(line, ')'); /* a zombie is init's to reap */
	return state == NULL || state[2] == 'Z';
}

static void
its_process_group_ends_with_it(void **state)
{
	char pid[32] = "";

	starts("sleep 1000 & echo $!; read line");
	RUN_UNTIL(read(t.fd, pid, sizeof(pid) - 1) > 0);
	child_free(t.child);
	t.child = NULL;
	RUN_UNTIL(is_gone(atoi(pid)));
	RUN_UNTIL(!has_children());
}

static void
one_that_runs_is_asked_to_end_and_reaped(void **state)
{
	starts("read line");
	child_free(t.child);
	t.child = NULL;
	RUN_UNTIL(!has_children());
}

static void
one_that_does_not_want_to_end_is_killed(void **state)
{
	starts("trap '' TERM; echo ready; while :; do sleep 1000; done");
	says("ready\n");
	child_free(t.child);
	t.child = NULL;
	RUN_UNTIL(!has_children());
}

static void
the_loop_may_end_before_the_child(void **state)
{
	starts("trap '' TERM; echo ready; while :; do sleep 1000; done");
	says("ready\n");
	child_free(t.child);
	t.child = NULL; /* teardown looks for zombies */
}

static void
free_inside_the_loops_end(void *arg)
{
	child_free(arg);
}

static void
the_owner_may_free_while_the_loop_ends(void **state)
{
	static struct loop_call free_call; /* outlives this: teardown runs it */

	starts("read line");
	loop_defer(t.loop, &free_call, free_inside_the_loops_end, t.child);
	t.child = NULL;
}

static void
one_that_somebody_else_reaped_has_ended(void **state)
{
	starts("exit 0");
	assert_true(wait(NULL) > 0);
	ends();
	assert_int_equal(child_status(t.child), 255);
}

/* As before Linux 5.3: no pidfd_open(2). */
static int
without_pidfd(void)
{
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* In a process of its own, as a filter cannot be taken away. */
static void
in_an_older_kernel(void)
{
	int before = count_fds();

	if (without_pidfd() != 0)
		_exit(77);
	starts("echo bye >&2; exit 5");
	assert_int_equal(count_fds(), before + 2); /* no pidfd */
	ends();
	assert_int_equal(child_status(t.child), 5);
	assert_string_equal(child_stderr(t.child), "bye\n");
	child_free(t.child);
	starts("read line");
	child_free(t.child);
	RUN_UNTIL(!has_children());
	starts("read line");
	child_free(t.child);
	loop_free(t.loop);
	_exit(has_children() ? 1 : 0);
}

static void
without_pidfd_its_end_is_noticed_too(void **state)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		in_an_older_kernel();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(standard_input_and_output_are_the_stream),
		TEST(standard_error_is_kept),
		TEST(of_a_long_standard_error_the_end_is_kept),
		TEST(a_zero_byte_does_not_end_the_text),
		TEST(a_signal_is_a_status_above_128),
		TEST(a_program_that_is_not_there_is_said),
		TEST(no_descriptor_but_three_is_there),
		TEST(signals_are_as_the_system_has_them),
		TEST(our_own_signals_are_left_alone),
		TEST(who_waits_is_told_once_and_may_free),
		TEST(who_asks_late_is_told_on_a_later_turn),
		TEST(who_waits_is_told_after_its_time),
		TEST(the_wait_can_be_taken_back),
		TEST(the_end_does_not_wait_for_whoever_is_left_behind),
		TEST(its_process_group_ends_with_it),
		TEST(one_that_runs_is_asked_to_end_and_reaped),
		TEST(one_that_does_not_want_to_end_is_killed),
		TEST(the_loop_may_end_before_the_child),
		TEST(the_owner_may_free_while_the_loop_ends),
		TEST(one_that_somebody_else_reaped_has_ended),
		TEST(without_pidfd_its_end_is_noticed_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
