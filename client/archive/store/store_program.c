#include "client/archive/store/store_program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport/base/failure.h"
#include "transport/base/nameless_file.h"

#define PROGRAM   "tributary-upload"
#define WORDS_MAX 8u
#define HEX_MAX   128u

/* Starts it with standard output `out`.  -1 with a sentence. */
static int
start(pid_t *pid, const char *settings, const char *const *words, int out,
    char *err, size_t err_size)
{
	const char *argv[WORDS_MAX + 4] = { PROGRAM };
	posix_spawn_file_actions_t actions;
	size_t n = 1;
	int rc;

	if (settings == NULL)
		settings = getenv("TRIBUTARY_STORE");
	if (settings != NULL) {
		argv[n++] = "--config";
		argv[n++] = settings;
	}
	while (*words != NULL)
		argv[n++] = *words++;
	if ((rc = posix_spawn_file_actions_init(&actions)) == 0) {
		rc = posix_spawn_file_actions_adddup2(&actions, out,
		    STDOUT_FILENO);
		if (rc == 0)
			rc = posix_spawnp(pid, PROGRAM, &actions, NULL,
			    (char *const *)argv, environ);
		posix_spawn_file_actions_destroy(&actions);
	}
	if (rc == ENOENT)
		return FAILURE(err, err_size, "there is no " PROGRAM " in "
		    "PATH, which is what reads from a store");
	if (rc != 0)
		return FAILURE(err, err_size, "cannot start " PROGRAM ": %s",
		    strerror(rc));
	return 0;
}

/* -1: it did not do what it was started for, and has said why. */
static int
wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

/* ---- an object ---- */

#define TICK_MS 250

/* Calls tick until the program has ended; without pidfds only once. */
static void
watch(pid_t pid, int fd, void (*tick)(void *arg, uint64_t bytes), void *arg)
{
	struct pollfd p = { .events = POLLIN };
	struct stat st;

	p.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	do {
		if (fstat(fd, &st) == 0)
			tick(arg, (uint64_t)st.st_size);
	} while (p.fd >= 0 && poll(&p, 1, TICK_MS) == 0);
	if (p.fd >= 0)
		close(p.fd);
}

static void
to_hex(char hex[HEX_MAX + 1], const uint8_t *bytes, size_t len)
{
	size_t i;

	*hex = '\0';
	for (i = 0; i < len && 2 * i < HEX_MAX; i++)
		snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
}

int
store_program_get(const char *settings, const char *url,
    const uint8_t *sha256, size_t sha256_len,
    void (*tick)(void *arg, uint64_t bytes), void *arg, char *err,
    size_t err_size)
{
	char hex[HEX_MAX + 1];
	const char *const words[] = { "--sha256", hex, "--get", url, "-",
		NULL };
	pid_t pid;
	int fd;

	to_hex(hex, sha256, sha256_len);
	if ((fd = nameless_file_open("tributary", err, err_size)) < 0)
		return -1;
	if (start(&pid, settings, words, fd, err, err_size) != 0)
		goto fail;
	watch(pid, fd, tick, arg);
	if (wait_for(pid) == 0)
		return fd;
	snprintf(err, err_size, "%s was not fetched", url);
fail:
	close(fd);
	return -1;
}

/* ---- descriptions ---- */

static int
read_lines(FILE *from, int (*fn)(void *arg, const char *line, char *err,
    size_t err_size), void *arg, char *err, size_t err_size)
{
	char *line = NULL;
	size_t room = 0;
	int rc = 0;

	while (rc == 0 && getline(&line, &room, from) >= 0)
		rc = fn(arg, line, err, err_size);
	free(line);
	return rc;
}

int
store_program_each(const char *settings, const char *url,
    int (*fn)(void *arg, const char *line, char *err, size_t err_size),
    void *arg, char *err, size_t err_size)
{
	const char *const words[] = { "--url", url, "--descriptions", NULL };
	int ends[2], rc;
	FILE *from;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return FAILURE(err, err_size, "no pipe: %s", strerror(errno));
	rc = start(&pid, settings, words, ends[1], err, err_size);
	close(ends[1]);
	if (rc != 0) {
		close(ends[0]);
		return -1;
	}
	if ((from = fdopen(ends[0], "r")) == NULL) {
		close(ends[0]);
		rc = FAILURE(err, err_size, "no memory");
	} else {
		rc = read_lines(from, fn, arg, err, err_size);
		/* A program that has more to say ends by the closed pipe. */
		fclose(from);
	}
	if (wait_for(pid) != 0 && rc == 0)
		rc = FAILURE(err, err_size, "%s was not read whole", url);
	return rc;
}
