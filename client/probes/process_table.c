#include "client/probes/process_table.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Open files of one process that are remembered. */
#define OPEN_FILES_MAX 65536u

struct process *
process_table_find(const struct process_table *t, int32_t pid)
{
	struct process *p;

	HASH_MAP_FOREACH_OF(p, &t->by_pid, hash_number((uint32_t)pid), by_pid)
		if (p->pid == pid)
			return p;
	return NULL;
}

struct process *
process_table_get(struct process_table *t, int32_t pid)
{
	struct process *p;
	int i;

	if ((p = process_table_find(t, pid)) != NULL)
		return p;
	if ((p = calloc(1, sizeof(*p))) == NULL)
		return NULL;
	p->pid = pid;
	for (i = 0; i < PROCESS_FILES; i++)
		p->fds[i] = -1;
	hash_map_put(&t->by_pid, &p->by_pid, hash_number((uint32_t)pid));
	return p;
}

static void
process_free(struct process_table *t, struct process *p, int *fds_left)
{
	hash_map_remove(&t->by_pid, &p->by_pid);
	process_reset(p, fds_left);
	free(p->open_files);
	free(p);
}

void
process_table_done(struct process_table *t, int *fds_left)
{
	struct hash_cursor at;
	struct process *p;

	HASH_MAP_FOREACH(p, &t->by_pid, &at, by_pid)
		process_free(t, p, fds_left);
	hash_map_done(&t->by_pid);
}

void
process_table_sweep(struct process_table *t, unsigned round, int *fds_left)
{
	struct hash_cursor at;
	struct process *p;

	HASH_MAP_FOREACH(p, &t->by_pid, &at, by_pid)
		if (p->round != round)
			process_free(t, p, fds_left);
}

void
process_table_each(struct process_table *t,
    void (*fn)(struct process *p, void *arg), void *arg)
{
	struct hash_cursor at;
	struct process *p;

	HASH_MAP_FOREACH(p, &t->by_pid, &at, by_pid)
		fn(p, arg);
}

void
process_forget_values(struct process *p)
{
	p->counters.present = 0;
	p->has_oom = p->has_times = p->has_dmabuf = false;
	p->n_open_files = 0;
}

void
process_reset(struct process *p, int *fds_left)
{
	int i;

	for (i = 0; i < PROCESS_FILES; i++) {
		if (p->fds[i] < 0)
			continue;
		close(p->fds[i]);
		p->fds[i] = -1;
		++*fds_left;
	}
	process_forget_values(p);
	p->described = false;
	p->no_memory = false;
}

bool
process_note_open_file(struct process *p, uint64_t fd)
{
	size_t low = 0, high = p->n_open_files, mid, room;
	uint64_t *grown;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (p->open_files[mid] == fd)
			return false;
		if (p->open_files[mid] < fd)
			low = mid + 1;
		else
			high = mid;
	}
	if (p->n_open_files == p->open_files_room) {
		room = p->open_files_room == 0 ? 16 : p->open_files_room * 2;
		if (room > OPEN_FILES_MAX)
			return false;
		grown = realloc(p->open_files, room * sizeof(*grown));
		if (grown == NULL)
			return false;
		p->open_files = grown;
		p->open_files_room = room;
	}
	memmove(p->open_files + low + 1, p->open_files + low,
	    (p->n_open_files - low) * sizeof(*p->open_files));
	p->open_files[low] = fd;
	p->n_open_files++;
	return true;
}
