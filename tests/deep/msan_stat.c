/*
 * clang 14's MemorySanitizer does not know that lstat() and some of its kin
 * write, which are functions of their own since glibc 2.33; these tell it.
 * tests/deep/run links them before the C library.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <sanitizer/msan_interface.h>
#include <stddef.h>
#include <sys/stat.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int
written(int result, const struct stat *status)
{
	if (result == 0)
		__msan_unpoison(status, sizeof(*status));
	return result;
}

int
fstat(int fd, struct stat *status)
{
	return written(REAL(fstat)(fd, status), status);
}

int
stat(const char *path, struct stat *status)
{
	return written(REAL(stat)(path, status), status);
}

int
lstat(const char *path, struct stat *status)
{
	return written(REAL(lstat)(path, status), status);
}

int
fstatat(int folder, const char *path, struct stat *status, int flags)
{
	return written(REAL(fstatat)(folder, path, status, flags), status);
}

/* As programs name them that ask for files of any size: the same on 64 bits. */
#define ALIAS(name) __attribute__((alias(name)))

int fstat64(int fd, struct stat64 *status) ALIAS("fstat");
int stat64(const char *path, struct stat64 *status) ALIAS("stat");
int lstat64(const char *path, struct stat64 *status) ALIAS("lstat");
int fstatat64(int folder, const char *path, struct stat64 *status, int flags)
    ALIAS("fstatat");
