/*
 * fake_tree: folders that look like /proc and /sys, and the packets that a
 * probe makes of them.
 */
#ifndef TESTS_UNIT_CLIENT_PROBES_FAKE_TREE_H
#define TESTS_UNIT_CLIENT_PROBES_FAKE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/probes/probe.h"
#include "protos/trace_packet.pb-c.h"

#define TREE_PACKETS 512

struct tree {
	char dir[64];
	char proc[80];
	char sys[80];
	struct probe_env env;
	Perfetto__Protos__TracePacket *packets[TREE_PACKETS];
	size_t n;
	bool full; /* packets are dropped */
};

/* env.fds_left is 1000; the clock counts from 1. */
void tree_init(struct tree *t);
/* Asserts that all descriptors were given back. */
void tree_done(struct tree *t);

/* Writes a file below dir, with its folders; text NULL: removes the folder. */
void tree_file(struct tree *t, const char *path, const char *text);
void tree_remove(struct tree *t, const char *path);
void tree_link(struct tree *t, const char *path, const char *target);
/* A process with a status, comm, cmdline, oom_score_adj and stat. */
void tree_process(struct tree *t, int pid, int ppid, const char *name,
    unsigned rss_kb);
/* A kernel thread: a process without memory. */
void tree_kthread(struct tree *t, int pid, const char *name);
void tree_thread(struct tree *t, int pid, int tid, const char *name);

/* A probe_packet_fn: arg is the tree. */
bool tree_packet(void *arg, const void *packet, size_t len);
/* Forgets the packets. */
void tree_forget(struct tree *t);

#endif /* TESTS_UNIT_CLIENT_PROBES_FAKE_TREE_H */
