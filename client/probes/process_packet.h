/*
 * process_packet: the packet that linux.process_stats is writing, a
 * ProcessTree or a ProcessStats.
 */
#ifndef CLIENT_PROBES_PROCESS_PACKET_H
#define CLIENT_PROBES_PROCESS_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/probes/probe.h"
#include "transport/wire/pb_writer.h"

enum process_packet_kind { PACKET_NONE, PACKET_TREE, PACKET_STATS };

struct process_packet {
	struct probe_env *env; /* borrowed */
	probe_packet_fn fn;
	void *arg;
	bool cleared;     /* mark the next packet: incremental state cleared */
	bool dropped;     /* a packet was; until its reader says false */
	uint64_t scan_ns; /* when the scan began: the packets' timestamp */

	struct pb_writer w;
	enum process_packet_kind open;
	size_t mark;
	int32_t open_pid; /* PACKET_STATS: of the open process, or 0 */
	size_t process_mark;
};

void process_packet_init(struct process_packet *k, struct probe_env *env,
    probe_packet_fn fn, void *arg);
void process_packet_done(struct process_packet *k);

/* Sets the timestamp of the following packets to now. */
void process_packet_begin_scan(struct process_packet *k);

/* Returns where to write processes and threads of a tree. */
struct pb_writer *process_packet_tree(struct process_packet *k);
/* Returns where to write counters of this process. */
struct pb_writer *process_packet_process(struct process_packet *k, int32_t pid);

/* Hands the open packet, if any, to fn. */
void process_packet_end(struct process_packet *k);
/* Ends the packet if it has become long; not while a nested message is open. */
void process_packet_split(struct process_packet *k);

#endif /* CLIENT_PROBES_PROCESS_PACKET_H */
