#include "transport/background.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport/log.h"

int
background_wait(pid_t child, int fd)
{
	ssize_t n;
	char ready;
	int status;

	do
		n = read(fd, &ready, 1);
	while (n < 0 && errno == EINTR);
	close(fd);
	if (n == 1)
		return 0;
	if (waitpid(child, &status, 0) == child && WIFEXITED(status) &&
	    WEXITSTATUS(status) != 0)
		return WEXITSTATUS(status);
	return 1;
}

void
background_detach(int fd)
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
	if (write(fd, "1", 1) != 1)
		log_warn("the program that started us is gone");
	close(fd);
}

pid_t
background_fork(int *fd)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) != 0) {
		log_error("pipe: %s", strerror(errno));
		return -1;
	}
	if ((pid = fork()) < 0) {
		log_error("fork: %s", strerror(errno));
		close(fds[0]);
		close(fds[1]);
		return -1;
	}
	if (pid == 0)
		setsid();
	close(fds[pid == 0 ? 0 : 1]);
	*fd = fds[pid == 0 ? 1 : 0];
	return pid;
}
