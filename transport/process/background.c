#include "transport/process/background.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport/base/log.h"

/* False: the other process closed its end, or has ended. */
static bool
hear(int fd)
{
	ssize_t n;
	char c;

	do
		n = read(fd, &c, 1);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

int
background_wait(pid_t child, int fd, FILE *out)
{
	bool serves = hear(fd);
	int status;

	if (serves && out != NULL) {
		fprintf(out, "%d\n", (int)child);
		fflush(out);
	}
	if (serves) {
		/*
		 * The child's turn: it lets go when it is done with our
		 * terminal.
		 */
		shutdown(fd, SHUT_WR);
		(void)hear(fd);
	}
	close(fd);
	if (serves)
		return 0;
	if (waitpid(child, &status, 0) != child)
		return 1;
	/* The child's log was held back, and is lost. */
	if (WIFSIGNALED(status))
		log_error("the daemon was ended by signal %d (%s) before it "
		    "served; without --background its log says more",
		    WTERMSIG(status), strsignal(WTERMSIG(status)));
	return WIFEXITED(status) && WEXITSTATUS(status) != 0 ?
	    WEXITSTATUS(status) : 1;
}

void
background_detach(int fd)
{
	bool heard = send(fd, "1", 1, MSG_NOSIGNAL) == 1;
	struct stat st;
	int null;

	if (heard)
		(void)hear(fd); /* until the process id is printed */
	else
		log_warn("the program that started us is gone");
	log_release();
	if ((null = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		if (fstat(STDERR_FILENO, &st) != 0 || !S_ISREG(st.st_mode))
			dup2(null, STDERR_FILENO);
		if (null > STDERR_FILENO)
			close(null);
	}
	close(fd);
}

pid_t
background_fork(int *fd)
{
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
		log_error("socketpair: %s", strerror(errno));
		return -1;
	}
	if ((pid = fork()) < 0) {
		log_error("fork: %s", strerror(errno));
		close(fds[0]);
		close(fds[1]);
		return -1;
	}
	if (pid == 0) {
		setsid();
		log_hold();
	}
	close(fds[pid == 0 ? 0 : 1]);
	*fd = fds[pid == 0 ? 1 : 0];
	return pid;
}
