#include "transport/process/process_stats.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

/* Fields of /proc/PID/stat, counted from the first one behind the name. */
enum { STAT_THREADS = 17, STAT_START = 19, STAT_VIRTUAL = 20, STAT_RESIDENT };

int
process_stats_parse(const char *text, uint64_t page, struct process_stats *out,
    uint64_t *start_ticks)
{
	/* The name may hold spaces and parentheses: its last one ends it. */
	const char *at = strrchr(text, ')');
	uint64_t values[STAT_RESIDENT + 1];
	char *end;
	size_t i;

	if (at == NULL || strlen(at) < 4)
		return -1;
	at += 3; /* and the state, a letter */
	for (i = 1; i <= STAT_RESIDENT; i++) {
		values[i] = strtoull(at, &end, 10);
		if (end == at)
			return -1;
		at = end;
	}
	out->threads = values[STAT_THREADS];
	out->virtual_bytes = values[STAT_VIRTUAL];
	out->resident_bytes = values[STAT_RESIDENT] * page;
	*start_ticks = values[STAT_START];
	return 0;
}

static uint64_t
ns_of(clockid_t clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t) != 0)
		return 0;
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

/*
 * The start as it was found first: computed anew it would move by some
 * nanoseconds, and where the clock is set, and look like a restart.
 */
static uint64_t
keep_start(uint64_t ns)
{
	static _Atomic uint64_t first;
	uint64_t none = 0;

	return atomic_compare_exchange_strong(&first, &none, ns) ? ns : none;
}

static void
read_stat(struct process_stats *out)
{
	const long tick = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	uint64_t ticks, now = ns_of(CLOCK_REALTIME);
	char text[1024];
	ssize_t n;

	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0 || tick <= 0 || page <= 0)
		return;
	text[n] = '\0';
	if (process_stats_parse(text, (uint64_t)page, out, &ticks) == 0)
		out->start_ns = keep_start(now - ns_of(CLOCK_BOOTTIME) +
		    ticks * (SECOND_NS / (uint64_t)tick));
}

static uint64_t
count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	const struct dirent *e;
	uint64_t n = 0;

	if (d == NULL)
		return 0;
	while ((e = readdir(d)) != NULL)
		n += e->d_name[0] != '.';
	closedir(d);
	return n - 1; /* the folder's own */
}

void
process_stats_read(struct process_stats *out)
{
	struct rlimit r;

	memset(out, 0, sizeof(*out));
	out->cpu_ns = ns_of(CLOCK_PROCESS_CPUTIME_ID);
	out->open_fds = count_fds();
	if (getrlimit(RLIMIT_NOFILE, &r) == 0)
		out->max_fds = r.rlim_cur;
	read_stat(out);
}
