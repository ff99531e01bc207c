#include "client/web/web_open.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/base/failure.h"

void
web_open_name(char *out, size_t size, const char *path)
{
	const char *base = strrchr(path, '/');
	char *c;

	snprintf(out, size, "%s", base != NULL ? base + 1 : path);
	for (c = out; *c != '\0'; c++)
		if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
		    (*c >= '0' && *c <= '9') || *c == '-' || *c == '_' ||
		    (*c == '.' && c != out)))
			*c = '_';
}

int
web_open_file(struct web_open *o, const char *path, char *err,
    size_t err_size)
{
	struct stat st;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) != 0)
		(void)FAILURE(err, err_size, "cannot open %s: %s", path,
		    strerror(errno));
	else if (!S_ISREG(st.st_mode))
		(void)FAILURE(err, err_size, "%s is no regular file", path);
	else if (st.st_size == 0)
		(void)FAILURE(err, err_size, "%s is empty", path);
	else {
		o->fd = fd;
		o->bytes = (uint64_t)st.st_size;
		web_open_name(o->name, sizeof(o->name), path);
		return 0;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

void
web_open_close(struct web_open *o)
{
	if (o->fd >= 0)
		close(o->fd);
	o->fd = -1;
}

static bool
has_screen(void)
{
	return getenv("DISPLAY") != NULL || getenv("WAYLAND_DISPLAY") != NULL;
}

bool
web_open_browser(const char *address)
{
	const char *browser = getenv("BROWSER");
	char *argv[] = { NULL, (char *)address, NULL };
	posix_spawn_file_actions_t files;
	pid_t pid;
	int rc;

	if (browser == NULL || browser[0] == '\0')
		/* Without a screen it would put a browser into the terminal. */
		browser = has_screen() ? "xdg-open" : NULL;
	if (browser == NULL || posix_spawn_file_actions_init(&files) != 0)
		return false;
	argv[0] = (char *)browser;
	rc = posix_spawn_file_actions_addopen(&files, STDIN_FILENO,
	    "/dev/null", O_RDONLY, 0);
	if (rc == 0)
		rc = posix_spawn_file_actions_addopen(&files, STDOUT_FILENO,
		    "/dev/null", O_WRONLY, 0);
	if (rc == 0)
		rc = posix_spawnp(&pid, browser, &files, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	return rc == 0;
}
