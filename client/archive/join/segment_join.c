#include "client/archive/join/segment_join.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/archive/join/segment_judge.h"
#include "client/archive/join/stats_sum.h"
#include "transport/base/failure.h"
#include "transport/base/human_numbers.h"
#include "transport/wire/pb_writer.h"

#define NOTE_BYTES 4352

/* A file of the number that is being joined. */
struct input {
	const struct segment_file *file; /* borrowed */
	struct segment_reader *reader;   /* owned; NULL: at its end */
	struct segment_place place;
	struct segment_next next; /* read, and not yet joined */
	bool has_next;
	bool deferred;            /* stored packets so far: all kept, unwritten */
	bool whole;               /* its end was read */
	/* Time of the last packet of the service: none before it follows. */
	uint64_t at;
};

struct join {
	const struct segment_join_ops *ops; /* borrowed */
	struct segment_join_report *report;
	struct segment_judge judge;
	struct stats_sum *stats; /* owned */
	struct input *inputs; /* of this number; owned */
	size_t n;
	const struct segment_file *before; /* files of the number before */
	size_t n_before;
	bool *whole; /* of each file of `before`; owned */
	char *err;
	size_t err_size;
};

static int
out_of_memory(struct join *j)
{
	return FAILURE(j->err, j->err_size, "out of memory");
}

/* ---- output ---- */

static int
put_packet(void *arg, const uint8_t *data, size_t len)
{
	struct join *j = arg;

	j->report->packets++;
	return j->ops->packet(j->ops->arg, data, len) == 0 ? 0 : -1;
}

/* Writes the packets that were deferred before the current one. */
static int
end_deferring(struct join *j, struct input *in)
{
	if (!in->deferred)
		return 0;
	in->deferred = false;
	return segment_reader_again(in->reader, in->next.nth, put_packet, j);
}

/*
 * Packets that were stored together are written together where all of them are
 * kept, as they are.
 */
static int
keep(struct join *j, struct input *in)
{
	if (in->next.nth == 0)
		in->deferred = j->ops->stored != NULL;
	if (!in->deferred)
		return put_packet(j, in->next.packet.data, in->next.packet.len);
	if (!in->next.last)
		return 0;
	in->deferred = false;
	j->report->packets += in->next.nth + 1;
	return j->ops->stored(j->ops->arg, in->next.stored,
	    in->next.stored_len) == 0 ? 0 : -1;
}

static int
join_packet(struct join *j, struct input *in)
{
	enum segment_verdict verdict;

	in->has_next = false;
	verdict = segment_judge_packet(&j->judge, &in->place,
	    &in->next.packet);
	if (verdict == SEGMENT_KEEP)
		return keep(j, in);
	if (end_deferring(j, in) < 0)
		return -1;
	switch (verdict) {
	case SEGMENT_CHANGE:
		return put_packet(j, j->judge.changed.data,
		    j->judge.changed.len);
	case SEGMENT_STATS:
		return stats_sum_add(j->stats, &in->next.packet) < 0 ?
		    out_of_memory(j) : 0;
	case SEGMENT_LAST:
		in->whole = true;
		return 0;
	case SEGMENT_NO_MEMORY:
		return out_of_memory(j);
	case SEGMENT_KEEP:
	case SEGMENT_DROP:
		return 0;
	}
	return 0;
}

static void
note_cut_off(struct join *j, const struct input *in)
{
	char text[NOTE_BYTES];

	snprintf(text, sizeof(text), "%s ends within a packet or is damaged "
	    "at byte %" PRIu64 "; its packets up to there are in",
	    in->file->path, segment_reader_offset(in->reader));
	j->ops->note(j->ops->arg, text);
}

/* ---- the files of one number ---- */

static void
end_input(struct join *j, struct input *in)
{
	if (in->reader == NULL)
		return;
	segment_reader_close(in->reader);
	in->reader = NULL;
	if (!in->place.is_segment)
		in->whole = true;
	else if (!in->whole)
		j->report->unfinished++;
}

/* Reads the next packet; at the file's end reader becomes NULL.  -1: failed. */
static int
read_next(struct join *j, struct input *in)
{
	if (j->ops->stop != NULL && atomic_load(j->ops->stop))
		return FAILURE(j->err, j->err_size, "the joining was stopped");
	switch (segment_reader_next(in->reader, &in->next)) {
	case SEGMENT_READ_PACKET:
		in->has_next = true;
		if (in->next.nth == 0)
			j->report->bytes += in->next.stored_len;
		return 0;
	case SEGMENT_READ_CUT_OFF:
		note_cut_off(j, in);
		/* next is still the last good packet, which was deferred, too. */
		in->next.nth++;
		if (end_deferring(j, in) < 0)
			return -1;
		/* FALLTHROUGH */
	case SEGMENT_READ_END:
		end_input(j, in);
		return 0;
	case SEGMENT_READ_FAILED:
		break;
	}
	return FAILURE(j->err, j->err_size, "cannot read %s: %s",
	    in->file->path, strerror(errno));
}

/* Whether the packet belongs behind others of the files beside this one. */
static bool
moves_time(const struct join *j, const struct input *in)
{
	const struct segment_packet *p = &in->next.packet;

	return j->n > 1 && segment_packet_is_common(p) && p->has_timestamp &&
	    p->timestamp > in->at;
}

/* Joins packets up to the next one of the service that may have to wait. */
static int
drain(struct join *j, struct input *in)
{
	while (in->reader != NULL) {
		if (!in->has_next) {
			if (read_next(j, in) < 0)
				return -1;
			if (in->reader == NULL)
				return 0;
			if (moves_time(j, in)) {
				in->at = in->next.packet.timestamp;
				return end_deferring(j, in);
			}
		}
		if (join_packet(j, in) < 0)
			return -1;
	}
	return 0;
}

/* The file whose next packets are the oldest; NULL: all are at their ends. */
static struct input *
oldest(const struct join *j)
{
	struct input *best = NULL;
	size_t i;

	for (i = 0; i < j->n; i++) {
		if (j->inputs[i].reader != NULL &&
		    (best == NULL || j->inputs[i].at < best->at))
			best = &j->inputs[i];
	}
	return best;
}

static bool
was_whole(const struct join *j, const struct segment_file *file)
{
	size_t i;

	for (i = 0; i < j->n_before; i++) {
		if (j->before[i].head.machine_id == file->head.machine_id)
			return j->whole[i] &&
			    j->before[i].head.number + 1 == file->head.number;
	}
	/* The first segment of all follows none. */
	return file->head.number == 1;
}

static int
open_input(struct join *j, struct input *in, const struct segment_file *file,
    bool covered)
{
	in->file = file;
	in->place = (struct segment_place){
		.is_segment = file->head.is_segment,
		.contiguous = was_whole(j, file),
		.covered = covered,
		.lead = !file->head.by_machine || file->head.machine_id == 0,
	};
	in->reader = segment_reader_open(file->path, j->err, j->err_size);
	return in->reader == NULL ? -1 : 0;
}

static int
remember_whole(struct join *j, const struct segment_file *files)
{
	bool *grown;
	size_t i;

	if ((grown = realloc(j->whole, j->n * sizeof(*grown))) == NULL)
		return out_of_memory(j);
	j->whole = grown;
	for (i = 0; i < j->n; i++)
		j->whole[i] = j->inputs[i].whole;
	j->before = files;
	j->n_before = j->n;
	return 0;
}

static void
close_inputs(struct join *j)
{
	size_t i;

	for (i = 0; i < j->n; i++)
		segment_reader_close(j->inputs[i].reader);
	free(j->inputs);
	j->inputs = NULL;
	j->n = 0;
}

static int
join_number(struct join *j, const struct segment_file *files, size_t n)
{
	bool covered = !files[0].head.by_machine ||
	    files[0].head.machine_id == 0;
	struct input *in;
	int rc = 0;

	if ((j->inputs = calloc(n, sizeof(*j->inputs))) == NULL)
		return out_of_memory(j);
	for (; rc == 0 && j->n < n; j->n++)
		rc = open_input(j, &j->inputs[j->n], &files[j->n], covered);
	while (rc == 0 && (in = oldest(j)) != NULL)
		rc = drain(j, in);
	j->report->files += n;
	if (rc == 0)
		rc = remember_whole(j, files);
	close_inputs(j);
	return rc;
}

/* ---- all of them ---- */

static void
note_gap(struct join *j, uint32_t last, uint32_t number)
{
	char text[NOTE_BYTES];

	j->report->gaps++;
	if (number - last == 2)
		snprintf(text, sizeof(text), "segment %" PRIu32 " of the "
		    "recording is missing", last + 1);
	else
		snprintf(text, sizeof(text), "segments %" PRIu32 " to %" PRIu32
		    " of the recording are missing", last + 1, number - 1);
	j->ops->note(j->ops->arg, text);
}

/* By machine, and then by number. */
static int
by_machine(const void *left, const void *right)
{
	const struct segment_head *a = *(const struct segment_head *const *)left;
	const struct segment_head *b =
	    *(const struct segment_head *const *)right;

	if (a->machine_id != b->machine_id)
		return a->machine_id < b->machine_id ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* Whether the recording has a file with a number between the two. */
static bool
has_between(const struct segment_recording *r, uint32_t low, uint32_t high)
{
	size_t begin = 0, end = r->n, mid;

	while (begin < end) {
		mid = begin + (end - begin) / 2;
		if (r->files[mid].head.number <= low)
			begin = mid + 1;
		else
			end = mid;
	}
	return begin < r->n && r->files[begin].head.number < high;
}

/*
 * A machine that writes nothing has no file, so that a file that is missing
 * beside those of others looks like silence: it is told as either.
 */
static int
note_machines(struct join *j, const struct segment_recording *r)
{
	const struct segment_head **all, *first = NULL;
	char text[NOTE_BYTES];
	size_t i, n = 0;

	if (!r->files[0].head.by_machine)
		return 0;
	if ((all = calloc(r->n, sizeof(*all))) == NULL)
		return out_of_memory(j);
	for (i = 0; i < r->n; i++)
		all[i] = &r->files[i].head;
	qsort(all, r->n, sizeof(*all), by_machine);
	for (i = 1; i < r->n; i++) {
		if (all[i]->machine_id == all[i - 1]->machine_id &&
		    has_between(r, all[i - 1]->number, all[i]->number) &&
		    n++ == 0)
			first = all[i - 1];
	}
	if (first != NULL) {
		snprintf(text, sizeof(text), "%zu time%s a machine has no file "
		    "where others have one, as %s behind segment %" PRIu32
		    ": it wrote nothing then, or the file is missing", n,
		    human_s(n), first->machine == NULL ? "the collector" :
		    first->machine, first->number);
		j->ops->note(j->ops->arg, text);
	}
	free(all);
	return 0;
}

static int
join_all(struct join *j, const struct segment_recording *r)
{
	size_t i, n;

	if (note_machines(j, r) < 0)
		return -1;
	for (i = 0; i < r->n; i += n) {
		if (i > 0 && r->files[i].head.number >
		    r->files[i - 1].head.number + 1)
			note_gap(j, r->files[i - 1].head.number,
			    r->files[i].head.number);
		for (n = 1; i + n < r->n && r->files[i + n].head.number ==
		    r->files[i].head.number; n++)
			;
		if (join_number(j, &r->files[i], n) < 0)
			return -1;
	}
	return 0;
}

static int
put_stats(struct join *j)
{
	struct pb_writer w;
	int rc = 0;

	pb_writer_init(&w);
	if (stats_sum_packet(j->stats, &w) < 0)
		rc = out_of_memory(j);
	else if (w.len > 0)
		rc = put_packet(j, w.data, w.len);
	pb_writer_done(&w);
	return rc;
}

int
segment_join_run(struct segment_join_report *out,
    const struct segment_recording *recording,
    const struct segment_join_ops *ops, char *err, size_t err_size)
{
	struct join j = { .ops = ops, .report = out, .err = err,
		.err_size = err_size };
	int rc;

	*out = (struct segment_join_report){ 0 };
	memcpy(j.judge.uuid, recording->files[0].head.uuid,
	    sizeof(j.judge.uuid));
	pb_writer_init(&j.judge.changed);
	if ((j.stats = stats_sum_new()) == NULL)
		rc = out_of_memory(&j);
	else if ((rc = join_all(&j, recording)) == 0)
		rc = put_stats(&j);
	stats_sum_free(j.stats);
	segment_judge_done(&j.judge);
	free(j.whole);
	return rc;
}
