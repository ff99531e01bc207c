/*
 * tributaryd: the collector.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service/activation.h"
#include "service/confine.h"
#include "service/daemon.h"
#include "service/options.h"
#include "service/session/settings.h"
#include "transport/log.h"

enum { EXIT_COULD_NOT_START = 1, EXIT_USAGE = 2 };

/*
 * The parent's part of --background: waits until the child's sockets are open,
 * prints its process id as Perfetto's programs do, and leaves.  A child that
 * fails has said why on standard error.
 */
static int
wait_for_child(pid_t pid, int from_child)
{
	ssize_t n;
	char ready;
	int status;

	do
		n = read(from_child, &ready, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1) {
		printf("%d\n", (int)pid);
		return 0;
	}
	if (waitpid(pid, &status, 0) == pid && WIFEXITED(status))
		return WEXITSTATUS(status);
	return EXIT_COULD_NOT_START;
}

/*
 * Leaves the terminal and tells the parent.  Standard error stays when it is a
 * file: somebody wants the log there.  The working directory stays too, as
 * socket paths may be relative to it and are removed at the end.
 */
static void
detach(int to_parent)
{
	struct stat st;
	int null;

	if ((null = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		if (fstat(STDERR_FILENO, &st) != 0 || !S_ISREG(st.st_mode))
			dup2(null, STDERR_FILENO);
		if (null > STDERR_FILENO)
			close(null);
	}
	if (write(to_parent, "1", 1) != 1)
		log_warn("the program that started us is gone");
	close(to_parent);
}

/*
 * Forks.  In the child: returns -1, with *to_parent to be given to detach().
 * In the parent: the exit status.
 */
static int
go_to_background(int *to_parent)
{
	int fds[2], rc;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) != 0) {
		log_error("pipe: %s", strerror(errno));
		return EXIT_COULD_NOT_START;
	}
	switch (pid = fork()) {
	case -1:
		log_error("fork: %s", strerror(errno));
		close(fds[0]);
		close(fds[1]);
		return EXIT_COULD_NOT_START;
	case 0:
		close(fds[0]);
		*to_parent = fds[1];
		setsid();
		return -1;
	default:
		close(fds[1]);
		rc = wait_for_child(pid, fds[0]);
		close(fds[0]);
		return rc;
	}
}

static int
serve(const struct settings *s, struct activation *a, bool background)
{
	char err[SETTINGS_ERROR_SIZE];
	int rc, to_parent = -1;
	struct daemon *d;

	if (background && (rc = go_to_background(&to_parent)) != -1)
		return rc;
	if ((d = daemon_new(s, a, err, sizeof(err))) == NULL) {
		log_error("%s", err);
		return EXIT_COULD_NOT_START;
	}
	if (confine_as_set(s, err, sizeof(err)) != 0) {
		log_error("%s", err);
		daemon_free(d);
		return EXIT_COULD_NOT_START;
	}
	if (to_parent != -1)
		detach(to_parent);
	daemon_tell_ready(d);
	if (daemon_run(d) != 0)
		_exit(1); /* not daemon_free(): a thread still uses it */
	daemon_free(d);
	return 0;
}

int
main(int argc, char **argv)
{
	char err[SETTINGS_ERROR_SIZE];
	struct activation a;
	struct options o;
	struct settings s;
	int rc;

	log_init("tributaryd", LOG_LEVEL_INFO);
	if (options_parse(&o, argc, argv, err, sizeof(err)) != 0) {
		fprintf(stderr, "tributaryd: %s\n", err);
		return EXIT_USAGE;
	}
	if (o.help) {
		fputs(options_help(), stdout);
		return 0;
	}
	if (o.version) {
		puts("tributaryd " TRIBUTARY_VERSION);
		return 0;
	}
	if (activation_from_environment(&a, err, sizeof(err)) != 0 ||
	    options_settings(&o, &a, &s, err, sizeof(err)) != 0) {
		/* As it is: a message about a file has lines and a caret. */
		fprintf(stderr, "%s\n", err);
		return EXIT_COULD_NOT_START;
	}
	if (o.check_config) {
		puts("OK");
		rc = 0;
	} else {
		log_init("tributaryd", s.log_level);
		rc = serve(&s, &a, o.background);
	}
	activation_done(&a);
	settings_done(&s);
	return rc;
}
