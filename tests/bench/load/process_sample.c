#include "tests/bench/load/process_sample.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int
read_times(struct process_sample *s, pid_t pid)
{
	unsigned long user, system;
	char path[64];
	FILE *f;
	int n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if ((f = fopen(path, "r")) == NULL)
		return -1;
	n = fscanf(f, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u "
	    "%*u %lu %lu", &user, &system);
	fclose(f);
	if (n != 2)
		return -1;
	s->user = (double)user / (double)sysconf(_SC_CLK_TCK);
	s->system = (double)system / (double)sysconf(_SC_CLK_TCK);
	return 0;
}

static void
read_clock(struct process_sample *s, pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) == 0 &&
	    clock_gettime(clock, &t) == 0)
		s->cpu = (double)t.tv_sec + (double)t.tv_nsec / 1e9;
	else
		s->cpu = s->user + s->system;
}

static void
read_status(struct process_sample *s, pid_t pid)
{
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if ((f = fopen(path, "r")) == NULL)
		return;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, "VmRSS:", 6) == 0)
			s->rss_kb = strtoull(line + 6, NULL, 10);
		else if (strncmp(line, "VmHWM:", 6) == 0)
			s->peak_kb = strtoull(line + 6, NULL, 10);
		else if (strncmp(line, "Threads:", 8) == 0)
			s->threads = strtoull(line + 8, NULL, 10);
	}
	fclose(f);
}

static void
count_descriptors(struct process_sample *s, pid_t pid)
{
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	if ((dir = opendir(path)) == NULL)
		return;
	while (readdir(dir) != NULL)
		s->descriptors++;
	closedir(dir);
	s->descriptors -= s->descriptors >= 2 ? 2 : 0; /* "." and ".." */
}

int
process_sample_take(struct process_sample *s, pid_t pid)
{
	struct process_sample new = { 0 };

	if (read_times(&new, pid) != 0)
		return -1;
	read_clock(&new, pid);
	read_status(&new, pid);
	count_descriptors(&new, pid);
	*s = new;
	return 0;
}
