#include "tests/unit/client/probes/fake_tree.h"

#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static uint64_t
fake_now(void)
{
	static uint64_t now;

	return ++now;
}

void
tree_init(struct tree *t)
{
	memset(t, 0, sizeof(*t));
	strcpy(t->dir, "/tmp/tributary-tree-XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	snprintf(t->proc, sizeof(t->proc), "%s/proc", t->dir);
	snprintf(t->sys, sizeof(t->sys), "%s/sys", t->dir);
	mkdir(t->proc, 0700);
	mkdir(t->sys, 0700);
	t->env.proc = t->proc;
	t->env.sys = t->sys;
	t->env.fds_left = 1000;
	t->env.now_ns = fake_now;
	t->env.ns_per_tick = 10000000;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void
remove_all(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void
tree_done(struct tree *t)
{
	assert_int_equal(t->env.fds_left, 1000);
	tree_forget(t);
	remove_all(t->dir);
}

void
tree_forget(struct tree *t)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		perfetto__protos__trace_packet__free_unpacked(t->packets[i],
		    NULL);
	t->n = 0;
}

static void
make_path(struct tree *t, const char *path, char *out, size_t size)
{
	char *slash;

	snprintf(out, size, "%s/%s", t->dir, path);
	for (slash = out + strlen(t->dir) + 1;
	    (slash = strchr(slash, '/')) != NULL; slash++) {
		*slash = '\0';
		assert_true(mkdir(out, 0700) == 0 || errno == EEXIST);
		*slash = '/';
	}
}

static void
write_bytes(struct tree *t, const char *path, const char *data, size_t len)
{
	char full[256];
	FILE *f;

	make_path(t, path, full, sizeof(full));
	f = fopen(full, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	fclose(f);
}

void
tree_file(struct tree *t, const char *path, const char *text)
{
	write_bytes(t, path, text, strlen(text));
}

void
tree_remove(struct tree *t, const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/%s", t->dir, path);
	remove_all(full);
}

void
tree_link(struct tree *t, const char *path, const char *target)
{
	char full[256];

	make_path(t, path, full, sizeof(full));
	unlink(full);
	assert_int_equal(symlink(target, full), 0);
}

static void
process_file(struct tree *t, int pid, const char *file, const char *fmt, ...)
{
	char path[128], text[1024];
	va_list ap;

	snprintf(path, sizeof(path), "proc/%d/%s", pid, file);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	tree_file(t, path, text);
}

void
tree_process(struct tree *t, int pid, int ppid, const char *name,
    unsigned rss_kb)
{
	char path[128], args[128];
	int n;

	process_file(t, pid, "status", "Name:\t%s\nTgid:\t%d\nPid:\t%d\n"
	    "PPid:\t%d\nUid:\t33\t0\t0\t0\nNSpid:\t%d\nKthread:\t0\n"
	    "VmSize:\t%u kB\nVmRSS:\t%u kB\nRssAnon:\t1 kB\n", name, pid, pid,
	    ppid, pid, rss_kb * 2, rss_kb);
	process_file(t, pid, "comm", "%s\n", name);
	process_file(t, pid, "oom_score_adj", "-%d\n", pid % 1000);
	process_file(t, pid, "stat", "%d (%s) S %d 1 1 0 -1 4 1 0 0 0 %d %d 0 "
	    "0 20 0 1 0 %d 1 1 1\n", pid, name, ppid, pid, pid * 2, pid * 3);
	snprintf(path, sizeof(path), "proc/%d/cmdline", pid);
	n = snprintf(args, sizeof(args), "/bin/%s%c--flag%c", name, 0, 0);
	write_bytes(t, path, args, (size_t)n);
	tree_thread(t, pid, pid, name);
}

void
tree_kthread(struct tree *t, int pid, const char *name)
{
	process_file(t, pid, "status", "Name:\t%s\nTgid:\t%d\nPid:\t%d\n"
	    "PPid:\t2\nUid:\t0\t0\t0\t0\nNSpid:\t%d\nKthread:\t1\n", name, pid,
	    pid, pid);
	process_file(t, pid, "comm", "%s\n", name);
	process_file(t, pid, "cmdline", "%s", "");
}

void
tree_thread(struct tree *t, int pid, int tid, const char *name)
{
	char file[64];

	snprintf(file, sizeof(file), "task/%d/comm", tid);
	process_file(t, pid, file, "%s\n", name);
}

bool
tree_packet(void *arg, const void *packet, size_t len)
{
	struct tree *t = arg;

	if (t->full)
		return false;
	assert_true(t->n < TREE_PACKETS);
	t->packets[t->n] = perfetto__protos__trace_packet__unpack(NULL, len,
	    packet);
	assert_non_null(t->packets[t->n]);
	t->n++;
	return true;
}
