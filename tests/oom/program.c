#include "tests/oom/program.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/oom/fail_malloc.h"

/* Between two looks at it; and of those, until nobody waits any longer. */
#define LOOK_US   500
#define LOOKS_MAX 40000
/* In a row that find the same. */
#define LOOKS_SAME 10

bool
program_is_ready(int fd)
{
	char byte;
	bool ready = read(fd, &byte, 1) == 1;

	close(fd);
	return ready;
}

int
program_begin(struct program *p, const struct program_start *how)
{
	char path[128], number[16];
	int fd, ready[2];

	snprintf(path, sizeof(path), "%s/%s", how->dir, how->name);
	(void)unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && ftruncate(fd, sizeof(*p->memory)) == 0);
	p->memory = mmap(NULL, sizeof(*p->memory), PROT_READ | PROT_WRITE,
	    MAP_SHARED, fd, 0);
	assert_true(p->memory != MAP_FAILED);
	close(fd);
	atomic_store(&p->memory->first, how->first);
	atomic_store(&p->memory->count, 1);
	atomic_store(&p->memory->armed, how->first > 0);
	assert_int_equal(pipe(ready), 0);
	p->pid = fork();
	if (p->pid == 0) {
		close(ready[0]);
		snprintf(number, sizeof(number), "%d", ready[1]);
		setenv(how->variable, number, 1);
		setenv(FAIL_MALLOC_FILE, path, 1);
		setenv("LD_PRELOAD", how->fail_malloc, 1);
		execv(how->argv[0], (char *const *)how->argv);
		_exit(127);
	}
	close(ready[1]);
	return ready[0];
}

int
program_wait(struct program *p)
{
	int status;

	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	p->pid = 0;
	munmap(p->memory, sizeof(*p->memory));
	if (!WIFEXITED(status))
		fail_msg("a program ended with %#x", (unsigned)status);
	return WEXITSTATUS(status);
}

void
program_stop(struct program *p)
{
	if (p->pid == 0)
		return;
	kill(p->pid, SIGTERM);
	assert_int_equal(program_wait(p), 0);
}

static int
count_descriptors(pid_t pid)
{
	char path[32];
	DIR *d;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static bool
thread_sleeps(pid_t pid, const char *tid)
{
	char path[300], line[256] = "", *state;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", (int)pid, tid);
	if ((f = fopen(path, "re")) == NULL)
		return false;
	if (fgets(line, sizeof(line), f) == NULL)
		line[0] = '\0';
	fclose(f);
	state = strrchr(line, ')');
	return state != NULL && strncmp(state, ") S", 3) == 0;
}

static bool
sleeps(pid_t pid)
{
	bool all = true;
	char path[32];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	assert_non_null(d);
	while ((e = readdir(d)) != NULL)
		if (e->d_name[0] != '.')
			all &= thread_sleeps(pid, e->d_name);
	closedir(d);
	return all;
}

void
program_settle(struct program *p)
{
	int i, same = 0;
	long bytes;

	p->bytes = -1;
	for (i = 0; i < LOOKS_MAX && same < LOOKS_SAME; i++) {
		bytes = atomic_load(&p->memory->live);
		same = sleeps(p->pid) && bytes == p->bytes ? same + 1 : 0;
		p->bytes = bytes;
		usleep(LOOK_US);
	}
	assert_int_equal(same, LOOKS_SAME);
	p->descriptors = count_descriptors(p->pid);
}

bool
program_comes_back(struct program *p, long more, char *err, size_t err_size)
{
	long bytes = 0;
	int i, n = 0;

	for (i = 0; i < LOOKS_MAX; i++) {
		bytes = atomic_load(&p->memory->live);
		if (bytes <= p->bytes + more &&
		    (n = count_descriptors(p->pid)) <= p->descriptors)
			return true;
		usleep(LOOK_US);
	}
	snprintf(err, err_size, "%ld bytes and %d descriptors are left, "
	    "%ld and %d before", bytes, n, p->bytes, p->descriptors);
	return false;
}
