/*
 * Preloaded into a test program, leaves an empty file of its name in
 * $THREAD_NOTES when it starts a thread: that is how ./check knows what
 * ThreadSanitizer has to look at.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *),
    void *);

static void
note(void)
{
	const char *folder = getenv("THREAD_NOTES");
	int saved = errno, fd, n;
	char path[PATH_MAX];

	if (folder == NULL)
		return;
	n = snprintf(path, sizeof(path), "%s/%s", folder,
	    program_invocation_short_name);
	if (n > 0 && (size_t)n < sizeof(path) &&
	    (fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644)) >= 0)
		close(fd);
	errno = saved;
}

int
pthread_create(pthread_t *thread, const pthread_attr_t *attr,
    void *(*start)(void *), void *arg)
{
	create_fn *next = (create_fn *)dlsym(RTLD_NEXT, "pthread_create");

	note();
	return next != NULL ? next(thread, attr, start, arg) : ENOSYS;
}
