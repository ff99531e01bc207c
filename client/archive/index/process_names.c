#include "client/archive/index/process_names.h"

#include <stdlib.h>
#include <string.h>

#include "client/archive/segment_entry.h"
#include "client/trace/packet_facts.h"
#include "protos/fields.h"
#include "transport/wire/pb_reader.h"

struct process {
	struct hash_link link;
	struct segment_process p; /* its name is owned */
};

void
process_names_done(struct process_names *p)
{
	struct hash_cursor at;
	struct process *q;

	HASH_MAP_FOREACH(q, &p->all, &at, link) {
		free(q->p.name);
		free(q);
	}
	hash_map_done(&p->all);
}

/* The name as text: up to its first zero byte. */
static size_t
name_length(const struct pb_field *name)
{
	size_t len = name->len < PROCESS_NAME_MAX ? name->len :
	    PROCESS_NAME_MAX;

	return name->len == 0 ? 0 : strnlen((const char *)name->data, len);
}

static int
add(struct process_names *all, uint32_t machine, int32_t pid,
    const char *name, size_t len)
{
	/* With the name: one pid may have thousands, where a trace is forged. */
	uint64_t hash = hash_numbers(hash_numbers(machine, (uint32_t)pid),
	    hash_bytes(name, len));
	struct process *q;

	HASH_MAP_FOREACH_OF(q, &all->all, hash, link) {
		if (q->p.machine_id == machine && q->p.pid == pid &&
		    strlen(q->p.name) == len &&
		    memcmp(q->p.name, name, len) == 0)
			return 0;
	}
	if (all->all.n == PROCESS_NAMES_MAX)
		return 0;
	if ((q = calloc(1, sizeof(*q))) == NULL ||
	    (q->p.name = strndup(name, len)) == NULL) {
		free(q);
		return -1;
	}
	q->p.machine_id = machine;
	q->p.pid = pid;
	hash_map_put(&all->all, &q->link, hash);
	return 0;
}

/* Adds a process whose name is known; one without says nothing to anyone. */
static int
add_named(struct process_names *all, uint32_t machine, int32_t pid,
    const struct pb_field *name)
{
	size_t len = name_length(name);

	if (pid <= 0 || len == 0)
		return 0;
	return add(all, machine, pid, (const char *)name->data, len);
}

/* ProcessTree.Process; its name is the first word of its command line. */
static int
take_tree_process(struct process_names *all, uint32_t machine,
    const struct pb_field *process)
{
	struct pb_field f, name = { .len = 0 };
	struct pb_reader r;
	int32_t pid = 0;

	PB_FOREACH(&f, &r, process->data, process->len) {
		if (f.number == ProcessTree_Process_pid)
			pid = (int32_t)f.value;
		else if (f.number == ProcessTree_Process_cmdline &&
		    f.wire == PB_BYTES && name.len == 0)
			name = f;
	}
	return add_named(all, machine, pid, &name);
}

static int
take_tree(struct process_names *all, const struct packet_facts *p)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, p->payload.data, p->payload.len) {
		if (f.number == ProcessTree_processes && f.wire == PB_BYTES &&
		    take_tree_process(all, p->machine_id, &f) < 0)
			return -1;
	}
	return 0;
}

/* ProcessDescriptor, in a packet of its own or in a track. */
static int
take_descriptor(struct process_names *all, uint32_t machine,
    const struct pb_field *process)
{
	struct pb_field f, name = { .len = 0 }, word = { .len = 0 };
	struct pb_reader r;
	int32_t pid = 0;

	PB_FOREACH(&f, &r, process->data, process->len) {
		if (f.number == ProcessDescriptor_pid)
			pid = (int32_t)f.value;
		else if (f.number == ProcessDescriptor_process_name &&
		    f.wire == PB_BYTES)
			name = f;
		else if (f.number == ProcessDescriptor_cmdline &&
		    f.wire == PB_BYTES && word.len == 0)
			word = f;
	}
	return add_named(all, machine, pid, name.len > 0 ? &name : &word);
}

static int
take_track(struct process_names *all, const struct packet_facts *p)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, p->payload.data, p->payload.len) {
		if (f.number == TrackDescriptor_process &&
		    f.wire == PB_BYTES &&
		    take_descriptor(all, p->machine_id, &f) < 0)
			return -1;
	}
	return 0;
}

int
process_names_take(struct process_names *all, const struct packet_facts *p)
{
	if (p->payload.wire != PB_BYTES)
		return 0;
	switch (p->type) {
	case TracePacket_process_tree:
		return take_tree(all, p);
	case TracePacket_track_descriptor:
		return take_track(all, p);
	case TracePacket_process_descriptor:
		return take_descriptor(all, p->machine_id, &p->payload);
	default:
		return 0;
	}
}

static int
in_order(const void *a, const void *b)
{
	const struct segment_process *x = a, *y = b;

	if (x->machine_id != y->machine_id)
		return x->machine_id < y->machine_id ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return strcmp(x->name, y->name);
}

int
process_names_list(struct process_names *all, struct segment_process **out,
    size_t *n)
{
	struct segment_process *list;
	struct hash_cursor at;
	struct process *q;
	size_t i = 0;

	*n = 0;
	*out = NULL;
	if (all->all.n == 0)
		return 0;
	if ((list = calloc(all->all.n, sizeof(*list))) == NULL)
		return -1;
	HASH_MAP_FOREACH(q, &all->all, &at, link) {
		list[i++] = q->p;
		q->p.name = NULL;
	}
	qsort(list, i, sizeof(*list), in_order);
	process_names_done(all);
	*out = list;
	*n = i;
	return 0;
}
