/*
 * Identity of a process: its message in a ProcessTree, and those of its
 * threads.
 */
#include <stdio.h>
#include <string.h>

#include "client/probes/process_stats_internal.h"
#include "protos/fields.h"

/* Arguments of a process beyond it are cut. */
#define CMDLINE_MAX (32u * 1024u)

static void
put_pids(struct pb_writer *w, uint32_t field, const struct proc_status *st)
{
	size_t i;

	for (i = 0; i < st->n_nspid; i++)
		pb_put_int(w, field, st->nspid[i]);
}

/* Arguments; a process that has none (zombie, kernel) shows its name. */
static void
put_cmdline(struct process_stats *s, struct pb_writer *w,
    const struct proc_status *st)
{
	size_t len;

	if (process_dir_read(&s->dir, st->pid, "cmdline") == 0) {
		len = s->dir.text.len;
		if (len > CMDLINE_MAX)
			len = CMDLINE_MAX;
		if (proc_text_cmdline(s->dir.text.data, len, w,
		    ProcessTree_Process_cmdline) > 0)
			return;
	}
	pb_put_string(w, ProcessTree_Process_cmdline, st->name);
	pb_put_uint(w, ProcessTree_Process_cmdline_is_comm, 1);
}

static void
put_process(struct process_stats *s, const struct proc_status *st)
{
	struct pb_writer *w = process_packet_tree(&s->packet);
	struct proc_times times;
	size_t mark;

	tid_set_add(&s->told, st->pid);
	mark = pb_nest_begin(w, ProcessTree_processes);
	pb_put_int(w, ProcessTree_Process_pid, st->pid);
	pb_put_int(w, ProcessTree_Process_ppid, st->ppid);
	put_cmdline(s, w, st);
	pb_put_int(w, ProcessTree_Process_uid, st->uid);
	put_pids(w, ProcessTree_Process_nspid, st);
	if (s->age && process_dir_read(&s->dir, st->pid, "stat") == 0 &&
	    proc_text_stat(s->dir.text.data, s->dir.text.len, &times) == 0)
		pb_put_uint(w, ProcessTree_Process_process_start_from_boot,
		    times.start * s->env->ns_per_tick);
	if (st->kthread >= 0)
		pb_put_uint(w, ProcessTree_Process_is_kthread,
		    (uint64_t)st->kthread);
	pb_nest_end(w, mark);
}

/* st NULL: only the ids are known. */
static void
put_thread(struct process_stats *s, int32_t tid, int32_t tgid,
    const struct proc_status *st)
{
	struct pb_writer *w = process_packet_tree(&s->packet);
	size_t mark;

	tid_set_add(&s->told, tid);
	mark = pb_nest_begin(w, ProcessTree_threads);
	pb_put_int(w, ProcessTree_Thread_tid, tid);
	pb_put_int(w, ProcessTree_Thread_tgid, tgid);
	if (st != NULL && s->thread_names)
		pb_put_string(w, ProcessTree_Thread_name, st->name);
	if (st != NULL)
		put_pids(w, ProcessTree_Thread_nstid, st);
	pb_nest_end(w, mark);
	process_packet_split(&s->packet);
}

/*
 * Threads beyond the main one.  The name alone is cheaper to read than the
 * status, which also has the ids in namespaces.
 */
static void
put_other_threads(struct process_stats *s, int32_t pid, bool namespaced)
{
	struct text *text = &s->dir.text;
	struct proc_status st;
	char path[64];
	int32_t tid;
	DIR *d;

	if ((d = process_dir_open(&s->dir, pid, "task")) == NULL)
		return;
	while ((tid = process_dir_next(d)) != 0) {
		if (tid == pid)
			continue;
		if (!namespaced && !s->thread_names) {
			put_thread(s, tid, pid, NULL);
			continue;
		}
		snprintf(path, sizeof(path), "%d/%s", (int)tid,
		    namespaced ? "status" : "comm");
		if (text_read_at(text, dirfd(d), path) < 0)
			continue; /* it has ended */
		memset(&st, 0, sizeof(st));
		if (!namespaced)
			proc_text_comm(text->data, text->len, st.name);
		else if (proc_text_status(text->data, text->len, &st) < 0)
			continue;
		put_thread(s, tid, pid, &st);
	}
	closedir(d);
}

void
process_tree_describe(struct process_stats *s, struct process *p)
{
	struct proc_status st;

	if (process_dir_read(&s->dir, p->pid, "status") < 0 ||
	    proc_text_status(s->dir.text.data, s->dir.text.len, &st) < 0 ||
	    st.pid != p->pid || st.tgid != p->pid)
		return;
	p->described = true;
	put_process(s, &st);
	if (s->thread_names && s->main_threads)
		put_thread(s, p->pid, p->pid, &st);
	put_other_threads(s, p->pid, st.n_nspid > 0);
	process_packet_split(&s->packet);
}

void
process_tree_describe_thread(struct process_stats *s,
    const struct proc_status *st)
{
	put_thread(s, st->pid, st->tgid, st);
}
