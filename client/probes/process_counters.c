/* A process's use of memory and time: its message in a ProcessStats. */
#include <string.h>
#include <unistd.h>

#include "client/probes/process_stats_internal.h"
#include "client/probes/scan.h"
#include "protos/fields.h"

static const uint8_t counter_fields[PROC_COUNTERS] = {
	[PROC_VM_SIZE] = ProcessStats_Process_vm_size_kb,
	[PROC_VM_RSS] = ProcessStats_Process_vm_rss_kb,
	[PROC_RSS_ANON] = ProcessStats_Process_rss_anon_kb,
	[PROC_RSS_FILE] = ProcessStats_Process_rss_file_kb,
	[PROC_RSS_SHMEM] = ProcessStats_Process_rss_shmem_kb,
	[PROC_VM_SWAP] = ProcessStats_Process_vm_swap_kb,
	[PROC_VM_LOCKED] = ProcessStats_Process_vm_locked_kb,
	[PROC_VM_HWM] = ProcessStats_Process_vm_hwm_kb,
	[PROC_SMR_RSS] = ProcessStats_Process_smr_rss_kb,
	[PROC_SMR_PSS] = ProcessStats_Process_smr_pss_kb,
	[PROC_SMR_PSS_ANON] = ProcessStats_Process_smr_pss_anon_kb,
	[PROC_SMR_PSS_FILE] = ProcessStats_Process_smr_pss_file_kb,
	[PROC_SMR_PSS_SHMEM] = ProcessStats_Process_smr_pss_shmem_kb,
	[PROC_SMR_SWAP_PSS] = ProcessStats_Process_smr_swap_pss_kb,
};

/* A link's target is a file name: any bytes, up to PATH_MAX. */
static void
put_open_file(struct process_stats *s, struct process *p, DIR *d,
    const char *name)
{
	struct pb_writer *w;
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
	w = process_packet_process(&s->packet, p->pid);
	mark = pb_nest_begin(w, ProcessStats_Process_fds);
	pb_put_uint(w, FDInfo_fd, fd);
	pb_put_bytes(w, FDInfo_path, target, (size_t)len);
	pb_nest_end(w, mark);
	process_packet_split(&s->packet);
}

void
process_counters_open_files(struct process_stats *s, struct process *p)
{
	struct dirent *e;
	DIR *d;

	if ((d = process_dir_open(&s->dir, p->pid, "fd")) == NULL)
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

	if (process_dir_read_kept(&s->dir, p, PROCESS_STAT) < 0 ||
	    proc_text_stat(s->dir.text.data, s->dir.text.len, &t) < 0)
		return;
	if (!p->has_times || t.user != p->times.user)
		pb_put_uint(process_packet_process(&s->packet, p->pid),
		    ProcessStats_Process_runtime_user_mode,
		    t.user * s->env->ns_per_tick);
	if (!p->has_times || t.kernel != p->times.kernel)
		pb_put_uint(process_packet_process(&s->packet, p->pid),
		    ProcessStats_Process_runtime_kernel_mode,
		    t.kernel * s->env->ns_per_tick);
	p->times = t;
	p->has_times = true;
}

/* Reads a file that only kernels of phones have. */
static void
put_dmabuf_rss(struct process_stats *s, struct process *p)
{
	struct scan n;
	uint64_t bytes;

	if (process_dir_read(&s->dir, p->pid, "dmabuf_rss") < 0)
		return;
	n = scan_text(s->dir.text.data, s->dir.text.len);
	if (!scan_u64(&n, &bytes) ||
	    (p->has_dmabuf && p->dmabuf_kb == bytes / 1024))
		return;
	p->dmabuf_kb = bytes / 1024;
	p->has_dmabuf = true;
	pb_put_uint(process_packet_process(&s->packet, p->pid),
	    ProcessStats_Process_dmabuf_rss_kb, p->dmabuf_kb);
}

static void
put_oom_score_adj(struct process_stats *s, struct process *p)
{
	struct scan n;
	int32_t v;

	if (process_dir_read_kept(&s->dir, p, PROCESS_OOM) < 0)
		return;
	n = scan_text(s->dir.text.data, s->dir.text.len);
	if (!scan_i32(&n, &v) || (p->has_oom && p->oom_score_adj == v))
		return;
	p->oom_score_adj = v;
	p->has_oom = true;
	pb_put_int(process_packet_process(&s->packet, p->pid),
	    ProcessStats_Process_oom_score_adj, v);
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
		pb_put_uint(process_packet_process(&s->packet, p->pid),
		    counter_fields[i], c->kb[i]);
		p->counters.kb[i] = c->kb[i];
		p->counters.present |= bit;
	}
}

static void
put_memory(struct process_stats *s, struct process *p)
{
	struct proc_counters c;

	proc_text_memory(s->dir.text.data, s->dir.text.len, &c);
	if ((c.present & 1u << PROC_VM_SIZE) == 0) {
		p->no_memory = true;
		process_dir_drop(&s->dir, p, PROCESS_STATUS);
		return;
	}
	if (s->smaps_rollup &&
	    process_dir_read(&s->dir, p->pid, "smaps_rollup") == 0)
		proc_text_smaps(s->dir.text.data, s->dir.text.len, &c);
	if (s->dmabuf_rss)
		put_dmabuf_rss(s, p);
	put_changed(s, p, &c);
	put_oom_score_adj(s, p);
	if (s->resolve_fds)
		process_counters_open_files(s, p);
}

void
process_counters_poll(struct process_stats *s, struct process *p)
{
	if (!p->no_memory &&
	    process_dir_read_kept(&s->dir, p, PROCESS_STATUS) < 0) {
		/*
		 * The process has ended; its pid, if still listed, is another
		 * process's.
		 */
		process_reset(p, &s->env->fds_left);
		if (process_dir_read_kept(&s->dir, p, PROCESS_STATUS) < 0)
			return;
	}
	if (!p->no_memory)
		put_memory(s, p);
	if (s->runtime)
		put_runtime(s, p);
	process_packet_split(&s->packet);
}
