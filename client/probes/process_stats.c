#include "client/probes/process_stats.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/probes/process_table.h"
#include "client/probes/scan.h"
#include "client/probes/text_file.h"
#include "transport/log.h"
#include "transport/pb_writer.h"

/* A packet that has grown beyond it is ended after the current process. */
#define PACKET_SPLIT (16u * 1024u)
/* Arguments of a process beyond it are cut. */
#define CMDLINE_MAX (32u * 1024u)

/* ProcessTree, ProcessStats */
#define FIELD_PROCESSES      1
#define FIELD_THREADS        2
#define FIELD_TREE_END       3
#define FIELD_STATS_END      2
/* ProcessStats.Process; those of counters are in counter_fields */
#define FIELD_OOM_SCORE_ADJ  10
#define FIELD_FDS            15
#define FIELD_RUNTIME_USER   21
#define FIELD_RUNTIME_KERNEL 22
#define FIELD_DMABUF_RSS     24

static const uint8_t counter_fields[PROC_COUNTERS] = {
	[PROC_VM_SIZE] = 2,
	[PROC_VM_RSS] = 3,
	[PROC_RSS_ANON] = 4,
	[PROC_RSS_FILE] = 5,
	[PROC_RSS_SHMEM] = 6,
	[PROC_VM_SWAP] = 7,
	[PROC_VM_LOCKED] = 8,
	[PROC_VM_HWM] = 9,
	[PROC_SMR_RSS] = 16,
	[PROC_SMR_PSS] = 17,
	[PROC_SMR_PSS_ANON] = 18,
	[PROC_SMR_PSS_FILE] = 19,
	[PROC_SMR_PSS_SHMEM] = 20,
	[PROC_SMR_SWAP_PSS] = 23,
};

static const char *const file_names[PROCESS_FILES] = {
	[PROCESS_STATUS] = "status",
	[PROCESS_OOM] = "oom_score_adj",
	[PROCESS_STAT] = "stat",
};

enum packet { PACKET_NONE, PACKET_TREE, PACKET_STATS };

struct process_stats {
	struct probe_env *env; /* borrowed */
	probe_packet_fn fn;
	void *arg;

	/* the config */
	bool scan_on_start;
	bool thread_names;
	bool main_threads;
	bool smaps_rollup;
	bool age;
	bool runtime;
	bool dmabuf_rss;
	bool resolve_fds;
	uint32_t period_ms;
	uint32_t ttl_polls; /* after as many, unchanged values are repeated */

	DIR *proc;
	struct process_table table;
	unsigned round;
	uint32_t polls; /* since values were forgotten */
	bool cleared;   /* the next packet says so */
	struct text text;

	/* the packet being written */
	struct pb_writer w;
	enum packet open;
	size_t packet_mark;
	int32_t open_pid; /* PACKET_STATS: of the open process, or 0 */
	size_t process_mark;
	uint64_t scan_ns; /* when the scan began */
};

/* ---- packets ---- */

static void
end_process(struct process_stats *s)
{
	if (s->open_pid == 0)
		return;
	pb_nest_end(&s->w, s->process_mark);
	s->open_pid = 0;
}

static void
end_packet(struct process_stats *s)
{
	if (s->open == PACKET_NONE)
		return;
	end_process(s);
	pb_put_uint(&s->w, s->open == PACKET_TREE ? FIELD_TREE_END :
	    FIELD_STATS_END, s->env->now_ns());
	pb_nest_end(&s->w, s->packet_mark);
	if (s->w.failed)
		log_warn("no memory for a packet");
	else
		s->fn(s->arg, s->w.data, s->w.len);
	s->open = PACKET_NONE;
}

static void
need_packet(struct process_stats *s, enum packet kind)
{
	if (s->open == kind)
		return;
	end_packet(s);
	pb_writer_reset(&s->w);
	pb_put_uint(&s->w, TRACE_PACKET_TIMESTAMP, s->scan_ns);
	if (s->cleared)
		pb_put_uint(&s->w, TRACE_PACKET_INCREMENTAL_STATE_CLEARED, 1);
	s->cleared = false;
	s->packet_mark = pb_nest_begin(&s->w, kind == PACKET_TREE ?
	    TRACE_PACKET_PROCESS_TREE : TRACE_PACKET_PROCESS_STATS);
	s->open = kind;
}

/* The message of this process in a ProcessStats, begun if need be. */
static void
need_process(struct process_stats *s, int32_t pid)
{
	need_packet(s, PACKET_STATS);
	if (s->open_pid == pid)
		return;
	end_process(s);
	s->process_mark = pb_nest_begin(&s->w, FIELD_PROCESSES);
	pb_put_int(&s->w, 1, pid);
	s->open_pid = pid;
}

static void
split_if_long(struct process_stats *s)
{
	if (s->w.len > PACKET_SPLIT)
		end_packet(s);
}

static void
begin_scan(struct process_stats *s)
{
	s->scan_ns = s->env->now_ns();
}

/* ---- files ---- */

static int
read_by_path(struct process_stats *s, int32_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%d/%s", (int)pid, name);
	return text_read_at(&s->text, dirfd(s->proc), path);
}

/*
 * Reads a file of p into s->text, keeping it open when we may.  A kept file
 * belongs to the process it was opened for: when that is gone the read fails,
 * also if the pid is another's by now.
 */
static int
read_file(struct process_stats *s, struct process *p, enum process_file which)
{
	char path[64];

	if (p->fds[which] >= 0)
		return text_read_fd(&s->text, p->fds[which]);
	if (s->env->fds_left <= 0)
		return read_by_path(s, p->pid, file_names[which]);
	snprintf(path, sizeof(path), "%d/%s", (int)p->pid, file_names[which]);
	p->fds[which] = openat(dirfd(s->proc), path, O_RDONLY | O_CLOEXEC);
	if (p->fds[which] < 0)
		return -1;
	s->env->fds_left--;
	return text_read_fd(&s->text, p->fds[which]);
}

static void
drop_file(struct process_stats *s, struct process *p, enum process_file which)
{
	if (p->fds[which] < 0)
		return;
	close(p->fds[which]);
	p->fds[which] = -1;
	s->env->fds_left++;
}

/* The next entry of a folder that is a number; 0 at the end. */
static int32_t
next_number(DIR *d)
{
	struct dirent *e;
	struct scan s;
	int32_t n;

	while ((e = readdir(d)) != NULL) {
		s = scan_text(e->d_name, strlen(e->d_name));
		if (scan_i32(&s, &n) && n > 0 && s.p == s.end)
			return n;
	}
	return 0;
}

static DIR *
open_folder(struct process_stats *s, int32_t pid, const char *name)
{
	char path[64];
	DIR *d;
	int fd;

	snprintf(path, sizeof(path), "%d/%s", (int)pid, name);
	fd = openat(dirfd(s->proc), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if ((d = fdopendir(fd)) == NULL)
		close(fd);
	return d;
}

/* ---- process tree ---- */

static void
put_pids(struct pb_writer *w, uint32_t field, const struct proc_status *st)
{
	size_t i;

	for (i = 0; i < st->n_nspid; i++)
		pb_put_int(w, field, st->nspid[i]);
}

/* Arguments; a process that has none (zombie, kernel) shows its name. */
static void
put_cmdline(struct process_stats *s, const struct proc_status *st)
{
	size_t len;

	if (read_by_path(s, st->pid, "cmdline") == 0) {
		len = s->text.len < CMDLINE_MAX ? s->text.len : CMDLINE_MAX;
		if (proc_text_cmdline(s->text.data, len, &s->w, 3) > 0)
			return;
	}
	pb_put_string(&s->w, 3, st->name);
	pb_put_uint(&s->w, 9, 1); /* cmdline_is_comm */
}

static void
put_process(struct process_stats *s, const struct proc_status *st)
{
	struct proc_times times;
	size_t mark;

	need_packet(s, PACKET_TREE);
	mark = pb_nest_begin(&s->w, FIELD_PROCESSES);
	pb_put_int(&s->w, 1, st->pid);
	pb_put_int(&s->w, 2, st->ppid);
	put_cmdline(s, st);
	pb_put_int(&s->w, 5, st->uid);
	put_pids(&s->w, 6, st);
	if (s->age && read_by_path(s, st->pid, "stat") == 0 &&
	    proc_text_stat(s->text.data, s->text.len, &times) == 0)
		pb_put_uint(&s->w, 7, times.start * s->env->ns_per_tick);
	if (st->kthread >= 0)
		pb_put_uint(&s->w, 8, (uint64_t)st->kthread);
	pb_nest_end(&s->w, mark);
}

/* st NULL: only the ids are known. */
static void
put_thread(struct process_stats *s, int32_t tid, int32_t tgid,
    const struct proc_status *st)
{
	size_t mark;

	need_packet(s, PACKET_TREE);
	mark = pb_nest_begin(&s->w, FIELD_THREADS);
	pb_put_int(&s->w, 1, tid);
	pb_put_int(&s->w, 3, tgid);
	if (st != NULL && s->thread_names)
		pb_put_string(&s->w, 2, st->name);
	if (st != NULL)
		put_pids(&s->w, 4, st);
	pb_nest_end(&s->w, mark);
	split_if_long(s);
}

/*
 * Threads beyond the main one.  The name alone is cheaper to read than the
 * status, which also has the ids in namespaces.
 */
static void
put_other_threads(struct process_stats *s, int32_t pid, bool namespaced)
{
	struct proc_status st;
	char path[64];
	int32_t tid;
	DIR *d;

	if ((d = open_folder(s, pid, "task")) == NULL)
		return;
	while ((tid = next_number(d)) != 0) {
		if (tid == pid)
			continue;
		if (!namespaced && !s->thread_names) {
			put_thread(s, tid, pid, NULL);
			continue;
		}
		snprintf(path, sizeof(path), "%d/%s", (int)tid,
		    namespaced ? "status" : "comm");
		if (text_read_at(&s->text, dirfd(d), path) < 0)
			continue; /* it has ended */
		memset(&st, 0, sizeof(st));
		if (!namespaced)
			proc_text_comm(s->text.data, s->text.len, st.name);
		else if (proc_text_status(s->text.data, s->text.len, &st) < 0)
			continue;
		put_thread(s, tid, pid, &st);
	}
	closedir(d);
}

/* Describes a process with its threads; not if it has just ended. */
static void
describe(struct process_stats *s, struct process *p)
{
	struct proc_status st;

	if (read_by_path(s, p->pid, "status") < 0 ||
	    proc_text_status(s->text.data, s->text.len, &st) < 0 ||
	    st.pid != p->pid || st.tgid != p->pid)
		return;
	p->described = true;
	put_process(s, &st);
	if (s->thread_names && s->main_threads)
		put_thread(s, p->pid, p->pid, &st);
	put_other_threads(s, p->pid, st.n_nspid > 0);
	split_if_long(s);
}

/* ---- process stats ---- */

/* A link's target is whatever a file is called: any bytes, up to PATH_MAX. */
static void
put_open_file(struct process_stats *s, struct process *p, DIR *d,
    const char *name)
{
	char target[4096];
	struct scan n = scan_text(name, strlen(name));
	uint64_t fd;
	ssize_t len;
	size_t mark;

	if (!scan_u64(&n, &fd) || n.p != n.end)
		return;
	len = readlinkat(dirfd(d), name, target, sizeof(target));
	if (len < 0 || !process_note_open_file(p, fd))
		return;
	proc_text_clean(target, (size_t)len);
	need_process(s, p->pid);
	mark = pb_nest_begin(&s->w, FIELD_FDS);
	pb_put_uint(&s->w, 1, fd);
	pb_put_bytes(&s->w, 2, target, (size_t)len);
	pb_nest_end(&s->w, mark);
	split_if_long(s);
}

static void
put_open_files(struct process_stats *s, struct process *p)
{
	struct dirent *e;
	DIR *d;

	if ((d = open_folder(s, p->pid, "fd")) == NULL)
		return; /* not ours to see */
	while ((e = readdir(d)) != NULL)
		if (e->d_name[0] != '.')
			put_open_file(s, p, d, e->d_name);
	closedir(d);
}

static void
put_runtime(struct process_stats *s, struct process *p)
{
	struct proc_times t;

	if (read_file(s, p, PROCESS_STAT) < 0 ||
	    proc_text_stat(s->text.data, s->text.len, &t) < 0)
		return;
	if (!p->has_times || t.user != p->times.user) {
		need_process(s, p->pid);
		pb_put_uint(&s->w, FIELD_RUNTIME_USER,
		    t.user * s->env->ns_per_tick);
	}
	if (!p->has_times || t.kernel != p->times.kernel) {
		need_process(s, p->pid);
		pb_put_uint(&s->w, FIELD_RUNTIME_KERNEL,
		    t.kernel * s->env->ns_per_tick);
	}
	p->times = t;
	p->has_times = true;
}

/* Only kernels of phones have this file. */
static void
put_dmabuf_rss(struct process_stats *s, struct process *p)
{
	struct scan n;
	uint64_t bytes;

	if (read_by_path(s, p->pid, "dmabuf_rss") < 0)
		return;
	n = scan_text(s->text.data, s->text.len);
	if (!scan_u64(&n, &bytes) ||
	    (p->has_dmabuf && p->dmabuf_kb == bytes / 1024))
		return;
	p->dmabuf_kb = bytes / 1024;
	p->has_dmabuf = true;
	need_process(s, p->pid);
	pb_put_uint(&s->w, FIELD_DMABUF_RSS, p->dmabuf_kb);
}

static void
put_oom_score_adj(struct process_stats *s, struct process *p)
{
	struct scan n;
	int32_t v;

	if (read_file(s, p, PROCESS_OOM) < 0)
		return;
	n = scan_text(s->text.data, s->text.len);
	if (!scan_i32(&n, &v) || (p->has_oom && p->oom_score_adj == v))
		return;
	p->oom_score_adj = v;
	p->has_oom = true;
	need_process(s, p->pid);
	pb_put_int(&s->w, FIELD_OOM_SCORE_ADJ, v);
}

static void
put_changed(struct process_stats *s, struct process *p,
    const struct proc_counters *c)
{
	uint32_t bit;
	int i;

	for (i = 0; i < PROC_COUNTERS; i++) {
		bit = 1u << i;
		if ((c->present & bit) == 0 || ((p->counters.present & bit) &&
		    p->counters.kb[i] == c->kb[i]))
			continue;
		need_process(s, p->pid);
		pb_put_uint(&s->w, counter_fields[i], c->kb[i]);
		p->counters.kb[i] = c->kb[i];
		p->counters.present |= bit;
	}
}

static void
put_memory(struct process_stats *s, struct process *p)
{
	struct proc_counters c;

	proc_text_memory(s->text.data, s->text.len, &c);
	if ((c.present & 1u << PROC_VM_SIZE) == 0) {
		p->no_memory = true;
		drop_file(s, p, PROCESS_STATUS);
		return;
	}
	if (s->smaps_rollup && read_by_path(s, p->pid, "smaps_rollup") == 0)
		proc_text_smaps(s->text.data, s->text.len, &c);
	if (s->dmabuf_rss)
		put_dmabuf_rss(s, p);
	put_changed(s, p, &c);
	put_oom_score_adj(s, p);
	if (s->resolve_fds)
		put_open_files(s, p);
}

static void
poll_process(struct process_stats *s, struct process *p)
{
	if (!p->no_memory && read_file(s, p, PROCESS_STATUS) < 0) {
		/* It has ended; if the pid is listed, it is another's now. */
		process_reset(p, &s->env->fds_left);
		if (read_file(s, p, PROCESS_STATUS) < 0)
			return;
	}
	if (!p->no_memory)
		put_memory(s, p);
	if (s->runtime)
		put_runtime(s, p);
	end_process(s);
	split_if_long(s);
}

/* ---- scans ---- */

static void
scan_all(struct process_stats *s,
    void (*fn)(struct process_stats *s, struct process *p))
{
	struct process *p;
	int32_t pid;

	begin_scan(s);
	s->round++;
	rewinddir(s->proc);
	while ((pid = next_number(s->proc)) != 0) {
		if ((p = process_table_get(&s->table, pid)) == NULL)
			continue;
		p->round = s->round;
		fn(s, p);
	}
	end_packet(s);
	process_table_sweep(&s->table, s->round, &s->env->fds_left);
}

static void
describe_new(struct process *p, void *arg)
{
	if (!p->described)
		describe(arg, p);
}

static void
forget_values(struct process *p, void *arg)
{
	process_forget_values(p);
}

static void
forget_all(struct process *p, void *arg)
{
	process_forget_values(p);
	p->described = false;
	p->no_memory = false;
}

static void
describe_all(struct process_stats *s)
{
	scan_all(s, describe);
	if (s->resolve_fds)
		scan_all(s, put_open_files);
}

void
process_stats_start(struct process_stats *s)
{
	if (s->scan_on_start)
		describe_all(s);
}

uint32_t
process_stats_period_ms(const struct process_stats *s)
{
	return s->period_ms;
}

void
process_stats_poll(struct process_stats *s)
{
	scan_all(s, poll_process);
	begin_scan(s);
	process_table_each(&s->table, describe_new, s);
	end_packet(s);
	if (++s->polls >= s->ttl_polls) {
		s->polls = 0;
		process_table_each(&s->table, forget_values, NULL);
	}
}

void
process_stats_clear_incremental_state(struct process_stats *s)
{
	process_table_each(&s->table, forget_all, NULL);
	s->polls = 0;
	s->cleared = true;
	if (s->period_ms == 0)
		process_stats_start(s);
}

/* ---- life ---- */

static void
read_config(struct process_stats *s,
    const Perfetto__Protos__ProcessStatsConfig *c)
{
	size_t i;

	s->scan_on_start = c->scan_all_processes_on_start;
	for (i = 0; i < c->n_quirks; i++)
		if (c->quirks[i] == PERFETTO__PROTOS__PROCESS_STATS_CONFIG__QUIRKS__DISABLE_INITIAL_DUMP)
			s->scan_on_start = false;
	s->thread_names = c->record_thread_names;
	s->main_threads = !c->skip_main_thread_message;
	s->smaps_rollup = c->scan_smaps_rollup;
	s->age = c->record_process_age;
	s->runtime = c->record_process_runtime;
	s->dmabuf_rss = c->record_process_dmabuf_rss;
	s->resolve_fds = c->resolve_process_fds;
	s->period_ms = c->proc_stats_poll_ms;
	if (s->period_ms > 0 && s->period_ms < PROCESS_STATS_MIN_PERIOD_MS)
		s->period_ms = PROCESS_STATS_MIN_PERIOD_MS;
	if (s->period_ms > 0)
		s->ttl_polls = c->proc_stats_cache_ttl_ms / s->period_ms;
}

struct process_stats *
process_stats_new(struct probe_env *env,
    const Perfetto__Protos__ProcessStatsConfig *config, probe_packet_fn fn,
    void *arg)
{
	Perfetto__Protos__ProcessStatsConfig empty =
	    PERFETTO__PROTOS__PROCESS_STATS_CONFIG__INIT;
	struct process_stats *s;

	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	s->env = env;
	s->fn = fn;
	s->arg = arg;
	s->cleared = true; /* a sequence begins with it */
	process_table_init(&s->table);
	text_init(&s->text);
	pb_writer_init(&s->w);
	read_config(s, config != NULL ? config : &empty);
	if ((s->proc = opendir(env->proc)) == NULL) {
		log_error("cannot open %s: %s", env->proc, strerror(errno));
		process_stats_free(s);
		return NULL;
	}
	return s;
}

void
process_stats_free(struct process_stats *s)
{
	if (s == NULL)
		return;
	process_table_done(&s->table, &s->env->fds_left);
	if (s->proc != NULL)
		closedir(s->proc);
	text_done(&s->text);
	pb_writer_done(&s->w);
	free(s);
}
