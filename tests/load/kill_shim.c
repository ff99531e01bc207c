/*
 * kill_shim: SIGKILL at a chosen change of files, for a program that knows
 * nothing of it: LD_PRELOAD.
 *
 * KILL_AT is a number: before the change of that number (from 1) the process is
 * killed.  Changes are what a file system could have seen before the end: writes
 * to regular files, cuts, syncs, links, renames and removals.  Without KILL_AT
 * nothing happens.
 */
/* The names as they are, not the 64-bit ones for them. */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static _Atomic long left; /* 0: no matter */

__attribute__((constructor)) static void
begin(void)
{
	const char *at = getenv("KILL_AT");

	if (at != NULL)
		left = atol(at);
}

/* The function that this one stands before. */
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void
count(void)
{
	if (atomic_load(&left) > 0 && atomic_fetch_sub(&left, 1) == 1) {
		kill(getpid(), SIGKILL);
		/* Other threads run until the signal has arrived. */
		for (;;)
			pause();
	}
}

static void
count_file(int fd)
{
	struct stat st;

	if (atomic_load(&left) > 0 && fstat(fd, &st) == 0 &&
	    S_ISREG(st.st_mode))
		count();
}

ssize_t
write(int fd, const void *buf, size_t len)
{
	/* Logs are no files that matter. */
	if (fd > STDERR_FILENO)
		count_file(fd);
	return NEXT(write)(fd, buf, len);
}

ssize_t
pwrite(int fd, const void *buf, size_t len, off_t at)
{
	count_file(fd);
	return NEXT(pwrite)(fd, buf, len, at);
}

ssize_t
pwrite64(int fd, const void *buf, size_t len, off64_t at)
{
	count_file(fd);
	return NEXT(pwrite64)(fd, buf, len, at);
}

int
ftruncate(int fd, off_t len)
{
	count_file(fd);
	return NEXT(ftruncate)(fd, len);
}

int
ftruncate64(int fd, off64_t len)
{
	count_file(fd);
	return NEXT(ftruncate64)(fd, len);
}

int
fsync(int fd)
{
	count_file(fd);
	return NEXT(fsync)(fd);
}

int
fdatasync(int fd)
{
	count_file(fd);
	return NEXT(fdatasync)(fd);
}

int
unlink(const char *path)
{
	count();
	return NEXT(unlink)(path);
}

int
unlinkat(int fd, const char *path, int flags)
{
	count();
	return NEXT(unlinkat)(fd, path, flags);
}

int
rename(const char *from, const char *to)
{
	count();
	return NEXT(rename)(from, to);
}

int
renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	count();
	return NEXT(renameat)(from_fd, from, to_fd, to);
}

int
linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
	count();
	return NEXT(linkat)(from_fd, from, to_fd, to, flags);
}
