#include "transport/socket/tunnel_process.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A file of a process' folder in /proc; its length, 0: cannot be read. */
static size_t
read_proc(pid_t pid, const char *name, char *out, size_t size)
{
	char path[48];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return 0;
	n = read(fd, out, size - 1);
	close(fd);
	if (n <= 0)
		return 0;
	out[n] = '\0';
	return (size_t)n;
}

/* `tributary connect`, not `tributary record` and its like. */
static bool
is_tributary_connect(pid_t pid)
{
	char line[256];
	size_t n = read_proc(pid, "cmdline", line, sizeof(line));
	size_t program = strlen(n > 0 ? line : "") + 1;

	return program < n && strcmp(line + program, "connect") == 0;
}

bool
is_tunnel_process(pid_t pid)
{
	static const char *const names[] = { "ssh", "sshd", "sshd-session",
		"socat" };
	char comm[32];
	size_t i;

	if (read_proc(pid, "comm", comm, sizeof(comm)) == 0)
		return false;
	comm[strcspn(comm, "\n")] = '\0';
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(comm, names[i]) == 0)
			return true;
	return strcmp(comm, "tributary") == 0 && is_tributary_connect(pid);
}
