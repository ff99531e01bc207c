/*
 * Threads that another data source mentions: each is described once, together
 * with its process.
 */
#include <string.h>

#include "client/probes/process_stats.h"
#include "client/probes/process_stats_internal.h"

/* The thread is another one than was told, or has another name. */
static void
forget(struct process_stats *s, int32_t tid)
{
	struct process *p;

	tid_set_remove(&s->told, tid);
	p = process_table_find(&s->table, tid);
	if (p != NULL)
		p->described = false;
}

static void
tell(struct process_stats *s, int32_t tid)
{
	struct proc_status st;
	struct process *p;

	if (tid_set_has(&s->told, tid))
		return;
	/* A thread that has ended already is not asked for again. */
	tid_set_add(&s->told, tid);
	if (process_dir_read(&s->dir, tid, "status") < 0 ||
	    proc_text_status(s->dir.text.data, s->dir.text.len, &st) < 0 ||
	    st.pid != tid || (p = process_table_get(&s->table, st.tgid)) ==
	    NULL)
		return;
	/* Seen in the last scan of all: the next one finds out if it ended. */
	p->round = s->round;
	if (p->described)
		process_tree_describe_thread(s, &st);
	else
		process_tree_describe(s, p);
}

void
process_stats_tell_threads(struct process_stats *s, const int32_t *tids,
    size_t n, bool changed)
{
	size_t i;

	if (!s->on_demand)
		return;
	process_packet_begin_scan(&s->packet);
	for (i = 0; i < n; i++) {
		if (changed)
			forget(s, tids[i]);
		tell(s, tids[i]);
	}
	process_packet_end(&s->packet);
}
