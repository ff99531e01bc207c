/*
 * fault_shim: a disk that fails, clocks that jump and a processor that is too
 * slow for what comes in, for a program that knows nothing of it: LD_PRELOAD.
 *
 * FAULT_SHIM names a file that holds one struct plan, which a test maps as well
 * and changes while the program runs (tests/e2e/harness/faults.py).  What
 * writes, syncs or cuts a regular file whose path contains plan.match gets what
 * the plan says; so does whoever asks for the time, or reads from a connection
 * that can pass no descriptors (by recv() or readv()).  All else is untouched.
 * Without FAULT_SHIM nothing happens.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MATCH_MAX 256

/* Eight bytes each: harness/faults.py has the same list. */
struct plan {
	_Atomic int64_t write_errno; /* 0: none */
	_Atomic int64_t write_after; /* writes that still succeed */
	_Atomic int64_t write_times; /* that fail; below 0: all */
	_Atomic int64_t short_bytes; /* a write takes at most these; 0: all */
	_Atomic int64_t write_delay_us;
	_Atomic int64_t sync_errno;
	_Atomic int64_t sync_after;
	_Atomic int64_t sync_delay_us;
	_Atomic int64_t truncate_errno;
	_Atomic int64_t realtime_ns; /* what is added to the clocks */
	_Atomic int64_t boottime_ns;
	_Atomic int64_t read_delay_us;
	/* Said by the shim. */
	_Atomic int64_t loaded;
	_Atomic int64_t writes;
	_Atomic int64_t syncs;
	_Atomic int64_t failed;
	char match[MATCH_MAX];
};

static struct plan *plan;

__attribute__((constructor)) static void
begin(void)
{
	const char *path = getenv("FAULT_SHIM");
	void *map;
	int fd;

	if (path == NULL || (fd = open(path, O_RDWR | O_CLOEXEC)) < 0)
		return;
	map = mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
	    0);
	close(fd);
	if (map == MAP_FAILED)
		return;
	plan = map;
	atomic_fetch_add(&plan->loaded, 1);
}

/* The function that this one stands before. */
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int
is_meant(int fd)
{
	char link[40], path[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (plan == NULL || plan->match[0] == '\0' || fstat(fd, &st) != 0 ||
	    !S_ISREG(st.st_mode))
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if ((n = readlink(link, path, sizeof(path) - 1)) < 0)
		return 0;
	path[n] = '\0';
	return strstr(path, plan->match) != NULL;
}

/* For as long as the plan says, which may change meanwhile. */
static void
pause_us(const _Atomic int64_t *us)
{
	const int64_t step = 50000;
	struct timespec t = { 0 };
	int64_t slept = 0, left;

	while ((left = atomic_load(us) - slept) > 0) {
		if (left > step)
			left = step;
		t.tv_nsec = left * 1000;
		nanosleep(&t, NULL);
		slept += left;
	}
}

/* One less, down to zero.  Whether there was one. */
static int
take(_Atomic int64_t *n)
{
	int64_t was = atomic_load(n);

	while (was > 0 && !atomic_compare_exchange_weak(n, &was, was - 1))
		;
	return was > 0;
}

/* The error a write has now; 0: it goes on. */
static int
write_error(void)
{
	int error = (int)atomic_load(&plan->write_errno);

	atomic_fetch_add(&plan->writes, 1);
	pause_us(&plan->write_delay_us);
	if (error == 0 || take(&plan->write_after))
		return 0;
	if (atomic_load(&plan->write_times) >= 0 && !take(&plan->write_times))
		return 0;
	atomic_fetch_add(&plan->failed, 1);
	return error;
}

static size_t
at_most(size_t len)
{
	int64_t most = atomic_load(&plan->short_bytes);

	return most > 0 && len > (size_t)most ? (size_t)most : len;
}

ssize_t
write(int fd, const void *data, size_t len)
{
	if (fd > STDERR_FILENO && is_meant(fd)) {
		if ((errno = write_error()) != 0)
			return -1;
		len = at_most(len);
	}
	return NEXT(write)(fd, data, len);
}

ssize_t
pwrite(int fd, const void *data, size_t len, off_t at)
{
	if (is_meant(fd)) {
		if ((errno = write_error()) != 0)
			return -1;
		len = at_most(len);
	}
	return NEXT(pwrite)(fd, data, len, at);
}

/* As much of iov as a short write would take. */
static int
shorten(const struct iovec *iov, int n, struct iovec *out)
{
	size_t left = at_most(SIZE_MAX);
	int i;

	for (i = 0; i < n && left > 0; i++) {
		out[i] = iov[i];
		if (out[i].iov_len > left)
			out[i].iov_len = left;
		left -= out[i].iov_len;
	}
	return i;
}

ssize_t
writev(int fd, const struct iovec *iov, int n)
{
	struct iovec some[16];

	if (n > 0 && n <= 16 && is_meant(fd)) {
		if ((errno = write_error()) != 0)
			return -1;
		n = shorten(iov, n, some);
		iov = some;
	}
	return NEXT(writev)(fd, iov, n);
}

ssize_t
pwritev(int fd, const struct iovec *iov, int n, off_t at)
{
	struct iovec some[16];

	if (n > 0 && n <= 16 && is_meant(fd)) {
		if ((errno = write_error()) != 0)
			return -1;
		n = shorten(iov, n, some);
		iov = some;
	}
	return NEXT(pwritev)(fd, iov, n, at);
}

static int
sync_error(void)
{
	int error = (int)atomic_load(&plan->sync_errno);

	atomic_fetch_add(&plan->syncs, 1);
	pause_us(&plan->sync_delay_us);
	if (error == 0 || take(&plan->sync_after))
		return 0;
	atomic_fetch_add(&plan->failed, 1);
	return error;
}

int
fsync(int fd)
{
	if (is_meant(fd) && (errno = sync_error()) != 0)
		return -1;
	return NEXT(fsync)(fd);
}

int
fdatasync(int fd)
{
	if (is_meant(fd) && (errno = sync_error()) != 0)
		return -1;
	return NEXT(fdatasync)(fd);
}

int
ftruncate(int fd, off_t len)
{
	if (is_meant(fd) &&
	    (errno = (int)atomic_load(&plan->truncate_errno)) != 0)
		return -1;
	return NEXT(ftruncate)(fd, len);
}

static void
add_ns(struct timespec *t, int64_t ns)
{
	int64_t all = (int64_t)t->tv_sec * 1000000000 + t->tv_nsec + ns;

	t->tv_sec = all / 1000000000;
	t->tv_nsec = all % 1000000000;
}

int
clock_gettime(clockid_t id, struct timespec *t)
{
	int ret = NEXT(clock_gettime)(id, t);

	if (ret != 0 || plan == NULL)
		return ret;
	if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
		add_ns(t, atomic_load(&plan->realtime_ns));
	else if (id == CLOCK_BOOTTIME)
		add_ns(t, atomic_load(&plan->boottime_ns));
	return 0;
}

int
gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec t;

	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &t) != 0)
		return -1;
	tv->tv_sec = t.tv_sec;
	tv->tv_usec = t.tv_nsec / 1000;
	return 0;
}

time_t
time(time_t *out)
{
	struct timespec t;

	if (clock_gettime(CLOCK_REALTIME, &t) != 0)
		return -1;
	if (out != NULL)
		*out = t.tv_sec;
	return t.tv_sec;
}

/* ---- input ---- */

ssize_t
recv(int fd, void *data, size_t len, int flags)
{
	if (plan != NULL)
		pause_us(&plan->read_delay_us);
	return NEXT(recv)(fd, data, len, flags);
}

ssize_t
readv(int fd, const struct iovec *iov, int n)
{
	if (plan != NULL)
		pause_us(&plan->read_delay_us);
	return NEXT(readv)(fd, iov, n);
}
