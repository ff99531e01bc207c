#include <stdlib.h>
#include <string.h>

#include "relay/outbox/outbox_internal.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

/* Most files: a channel that is not sent may keep a record in each. */
#define SEGMENTS_MAX 4096u

static void
done_with(struct disk_job *j)
{
	free(j);
}

static void
synced(struct disk_job *j)
{
	struct outbox *o = j->owner;

	if (j->error != 0)
		log_limited(&o->spool.log_limit, loop_now_ms(),
		    LOG_LEVEL_WARN, "Blocks in the spool in %s may not survive "
		    "a power cut: %s", o->spool.dir,
		    strerror(j->error));
	free(j);
}

static void
sync_segment(struct outbox *o)
{
	struct disk_job *j;

	if (o->spool.current == NULL)
		return;
	j = disk_job_new(DISK_SYNC, o->spool.current->id, synced, o);
	if (j != NULL)
		disk_submit(o->spool.disk, j);
}

/* The segment that takes size more bytes. */
static struct ob_segment *
segment_for(struct outbox *o, uint64_t size)
{
	struct ob_spool *s = &o->spool;
	struct ob_segment *g = s->current;
	uint64_t left;

	if (g != NULL && g->size + size <= s->segment_bytes)
		return g;
	if (s->n_segments >= SEGMENTS_MAX)
		return NULL;
	if ((g = calloc(1, sizeof(*g))) == NULL)
		return NULL;
	if (loop_timer_left(s->sync, &left))
		sync_segment(o);
	g->id = s->next_id++;
	TAILQ_INSERT_TAIL(&s->segments, g, link);
	s->n_segments++;
	s->current = g;
	return g;
}

static void
segment_drop(struct outbox *o, struct ob_segment *g)
{
	struct ob_spool *s = &o->spool;
	struct disk_job *j;

	if (s->current == g)
		s->current = NULL;
	s->used -= g->held;
	TAILQ_REMOVE(&s->segments, g, link);
	s->n_segments--;
	if ((j = disk_job_new(DISK_UNLINK, g->id, done_with, o)) != NULL)
		disk_submit(s->disk, j);
	free(g);
}

static void
punched(struct disk_job *j)
{
	struct outbox *o = j->owner;

	if (j->error != 0)
		o->spool.no_punch = true;
	free(j);
}

bool
ob_segment_place(struct outbox *o, struct ob_block *b)
{
	uint64_t size = spool_size(b->used);
	struct ob_segment *g;

	if ((g = segment_for(o, size)) == NULL)
		return false;
	b->segment = g;
	b->offset = g->size;
	b->length = b->used;
	g->size += size;
	g->held += size;
	g->live++;
	o->spool.used += size;
	return true;
}

void
ob_segment_unplace(struct outbox *o, struct ob_block *b)
{
	struct ob_segment *g = b->segment;
	struct ob_spool *s = &o->spool;

	b->segment = NULL;
	g->held -= spool_size(b->length);
	s->used -= spool_size(b->length);
	if (s->current == g)
		s->current = NULL;
	if (--g->live == 0)
		segment_drop(o, g);
}

void
ob_segment_release(struct outbox *o, struct ob_block *b)
{
	struct ob_segment *g = b->segment;
	struct ob_spool *s = &o->spool;
	struct disk_job *j;

	if (g == NULL)
		return;
	b->segment = NULL;
	if (--g->live == 0) {
		segment_drop(o, g);
		return;
	}
	if (!s->no_punch) {
		s->used -= spool_size(b->length);
		g->held -= spool_size(b->length);
	}
	if ((j = disk_job_new(DISK_PUNCH, g->id, punched, o)) == NULL)
		return;
	j->offset = b->offset;
	j->len = spool_size(b->length);
	disk_submit(s->disk, j);
}

void
ob_segment_describe(const struct ob_block *b, struct disk_job *j)
{
	j->offset = b->offset;
	memcpy(j->record.tag, b->tag, LINK_ID_BYTES);
	j->record.channel = b->channel != NULL ? b->channel->id :
	    b->old_channel;
	j->record.len = b->length;
	j->record.first = b->first;
	j->record.last = b->last;
	j->record.time_ms = b->time_ms;
	j->record.closes = b->closes;
	j->record.chunks = b->chunks;
	j->record.packets = b->packets;
	j->record.bytes = b->bytes;
}

void
ob_segment_sync_cb(void *arg)
{
	sync_segment(arg);
}
