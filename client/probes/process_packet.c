#include "client/probes/process_packet.h"

#include "protos/fields.h"
#include "transport/base/log.h"

/* A packet that has grown beyond it is ended after the current process. */
#define PACKET_SPLIT (16u * 1024u)

void
process_packet_init(struct process_packet *k, struct probe_env *env,
    probe_packet_fn fn, void *arg)
{
	k->env = env;
	k->fn = fn;
	k->arg = arg;
	k->cleared = true; /* a sequence begins with it */
	k->dropped = false;
	k->open = PACKET_NONE;
	k->open_pid = 0;
	k->scan_ns = 0;
	pb_writer_init(&k->w);
}

void
process_packet_done(struct process_packet *k)
{
	pb_writer_done(&k->w);
}

void
process_packet_begin_scan(struct process_packet *k)
{
	k->scan_ns = k->env->now_ns();
}

static void
end_process(struct process_packet *k)
{
	if (k->open_pid == 0)
		return;
	pb_nest_end(&k->w, k->process_mark);
	k->open_pid = 0;
}

void
process_packet_end(struct process_packet *k)
{
	if (k->open == PACKET_NONE)
		return;
	end_process(k);
	pb_put_uint(&k->w,
	    k->open == PACKET_TREE ? ProcessTree_collection_end_timestamp :
	    ProcessStats_collection_end_timestamp, k->env->now_ns());
	pb_nest_end(&k->w, k->mark);
	if (k->w.failed)
		log_warn("no memory for a packet");
	if (k->w.failed || !k->fn(k->arg, k->w.data, k->w.len))
		k->dropped = true;
	k->open = PACKET_NONE;
}

static void
begin(struct process_packet *k, enum process_packet_kind kind)
{
	if (k->open == kind)
		return;
	process_packet_end(k);
	pb_writer_reset(&k->w);
	pb_put_uint(&k->w, TracePacket_timestamp, k->scan_ns);
	if (k->cleared)
		pb_put_uint(&k->w, TracePacket_incremental_state_cleared, 1);
	k->cleared = false;
	k->mark = pb_nest_begin(&k->w, kind == PACKET_TREE ?
	    TracePacket_process_tree : TracePacket_process_stats);
	k->open = kind;
}

struct pb_writer *
process_packet_tree(struct process_packet *k)
{
	begin(k, PACKET_TREE);
	return &k->w;
}

struct pb_writer *
process_packet_process(struct process_packet *k, int32_t pid)
{
	begin(k, PACKET_STATS);
	if (k->open_pid != pid) {
		end_process(k);
		k->process_mark = pb_nest_begin(&k->w,
		    ProcessStats_processes);
		pb_put_int(&k->w, ProcessStats_Process_pid, pid);
		k->open_pid = pid;
	}
	return &k->w;
}

void
process_packet_split(struct process_packet *k)
{
	if (k->w.len > PACKET_SPLIT)
		process_packet_end(k);
}
