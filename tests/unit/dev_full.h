/*
 * dev_full: a device that is full, for tests of what fails to be written.
 */
#ifndef TESTS_UNIT_DEV_FULL_H
#define TESTS_UNIT_DEV_FULL_H

#include <fcntl.h>
#include <sys/stat.h>

/*
 * Opened for writing; the caller's.  Where somebody made a file of that name, or
 * a container has none, the test fails with what is to be done.
 */
static inline int
dev_full_open(void)
{
	struct stat st;
	int fd;

	fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISCHR(st.st_mode))
		fail_msg("/dev/full is not a device here, and this test needs "
		    "it: rm -f /dev/full; mknod -m 666 /dev/full c 1 7");
	return fd;
}

#endif /* TESTS_UNIT_DEV_FULL_H */
