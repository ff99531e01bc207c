#include "transport/segment/segment_writer.h"

#include <stdlib.h>
#include <string.h>

#include "transport/base/tailq.h"
#include "transport/segment/segment_files.h"
#include "transport/segment/segment_folder.h"
#include "transport/segment/segment_path.h"
#include "transport/segment/segment_splitter.h"

struct segment {
	TAILQ_ENTRY(segment) of_writer;
	struct segment_file *file; /* NULL: ended */
	char *machine;             /* owned */
	struct segment_summary of; /* number and machine from the begin on */
};

struct segment_writer {
	struct segment_writer_options o; /* its strings are owned */
	struct segment_splitter *splitter;
	struct segment_files *files;
	TAILQ_HEAD(, segment) segments; /* not settled, in order */
	uint32_t number;
	const char *err; /* of the splitter; NULL: see the files */
};

/* ---- answers to the splitter ---- */

static void
segment_free(struct segment_writer *w, struct segment *g)
{
	TAILQ_REMOVE(&w->segments, g, of_writer);
	free(g->machine);
	free(g);
}

static int
begin_segment(void *arg, const struct segment_id *id, void **segment)
{
	struct segment_writer *w = arg;
	const char *machine = id->machine_name != NULL ? id->machine_name : "";
	const struct segment_name name = { w->o.recording, machine,
		id->machine, id->number, id->begin_realtime_ns };
	char path[SEGMENT_PATH_MAX];
	struct segment *g = calloc(1, sizeof(*g));

	if (g == NULL)
		return -1;
	TAILQ_INSERT_TAIL(&w->segments, g, of_writer);
	g->of.number = id->number;
	g->of.machine = id->machine;
	segment_path_expand(path, w->o.pattern, &name);
	g->machine = strdup(machine);
	if (g->machine != NULL)
		g->file = segment_files_begin(w->files, path, g);
	if (g->file == NULL) {
		segment_free(w, g);
		return -1;
	}
	w->number = id->number > w->number ? id->number : w->number;
	*segment = g;
	return 0;
}

static int
put_packets(void *arg, void *segment, const uint8_t *packets, size_t len)
{
	struct segment_writer *w = arg;
	struct segment *g = segment;

	return segment_files_put(w->files, g->file, packets, len);
}

static int
end_segment(void *arg, void *segment, const struct segment_summary *of)
{
	struct segment_writer *w = arg;
	struct segment *g = segment;

	g->of = *of;
	segment_files_end(w->files, g->file);
	g->file = NULL;
	return 0;
}

static const struct segment_ops ops = {
	.begin = begin_segment,
	.put = put_packets,
	.end = end_segment,
};

static void
settled(void *arg, void *tag, const char *path, uint64_t bytes)
{
	struct segment_writer *w = arg;
	struct segment *g = tag;
	const struct segment_written of = { .path = path, .bytes = bytes,
		.packets = g->of.packets, .number = g->of.number,
		.machine = g->of.machine, .machine_name = g->machine,
		.last = g->of.last };

	if (w->o.written != NULL)
		w->o.written(w->o.arg, &of);
	segment_free(w, g);
}

static bool
gives_up(void *arg)
{
	struct segment_writer *w = arg;

	return w->o.give_up != NULL && w->o.give_up(w->o.arg);
}

/* ---- the writer ---- */

static void
free_parts(struct segment_writer *w)
{
	segment_splitter_free(w->splitter);
	free((char *)w->o.pattern);
	free((char *)w->o.recording);
	free(w);
}

struct segment_writer *
segment_writer_new(struct segment_folder *folder,
    const struct segment_writer_options *o)
{
	const struct segment_options split = { .recording = o->recording,
		.begin_realtime_ns = o->begin_realtime_ns, .uid = o->uid,
		.begun_by = o->begun_by, .begun_by_len = o->begun_by_len,
		.by_machine = o->by_machine };
	struct segment_writer *w = calloc(1, sizeof(*w));
	const struct segment_files_options files = {
		.compression = o->compression, .give_up = gives_up,
		.settled = settled, .arg = w };

	if (w == NULL)
		return NULL;
	TAILQ_INIT(&w->segments);
	w->o = *o;
	w->o.begun_by = NULL;
	w->number = 1;
	w->o.pattern = strdup(o->pattern);
	w->o.recording = strdup(o->recording);
	w->splitter = segment_splitter_new(&split, &ops, w);
	if (w->o.pattern == NULL || w->o.recording == NULL ||
	    w->splitter == NULL)
		goto fail;
	if ((w->files = segment_files_new(folder, &files)) == NULL)
		goto fail;
	return w;

fail:
	free_parts(w);
	return NULL;
}

void
segment_writer_free(struct segment_writer *w)
{
	struct segment *g;

	if (w == NULL)
		return;
	segment_files_free(w->files);
	while ((g = TAILQ_FIRST(&w->segments)) != NULL)
		segment_free(w, g);
	free_parts(w);
}

/* Gives segments that are whole their names; the answer of a call. */
static int
done(struct segment_writer *w, enum segment_result split)
{
	segment_files_settle(w->files);
	switch (split) {
	case SEGMENT_OK:
		break;
	case SEGMENT_NO_MEMORY:
	case SEGMENT_REFUSED: /* by begin_segment(), put_packets() */
		w->err = "segments end early: out of memory";
		break;
	case SEGMENT_NO_PACKETS:
		w->err = "segments end early: the stream is no trace";
		break;
	}
	return segment_writer_error(w) != NULL ? -1 : 0;
}

int
segment_writer_put(struct segment_writer *w, const uint8_t *packets, size_t len)
{
	enum segment_result split;

	if (w->err != NULL)
		return -2;
	split = segment_splitter_put(w->splitter, packets, len);
	return done(w, split) == 0 ? 0 : split == SEGMENT_OK ? -1 : -2;
}

int
segment_writer_flush(struct segment_writer *w)
{
	segment_files_flush(w->files);
	return segment_writer_error(w) != NULL ? -1 : 0;
}

int
segment_writer_sync(struct segment_writer *w)
{
	segment_files_sync(w->files);
	return segment_writer_error(w) != NULL ? -1 : 0;
}

int
segment_writer_finish(struct segment_writer *w)
{
	if (w->err != NULL)
		return -1;
	return done(w, segment_splitter_finish(w->splitter));
}

void
segment_writer_leave(struct segment_writer *w)
{
	segment_files_leave(w->files);
}

const char *
segment_writer_error(const struct segment_writer *w)
{
	return w->err != NULL ? w->err : segment_files_error(w->files);
}

void
segment_writer_lost(const struct segment_writer *w,
    void (*lost)(void *arg, const uint8_t *packets, size_t len), void *arg)
{
	segment_files_lost(w->files, lost, arg);
}

uint64_t
segment_writer_total(const struct segment_writer *w)
{
	return segment_files_total(w->files);
}

uint32_t
segment_writer_number(const struct segment_writer *w)
{
	return w->number;
}

uint64_t
segment_writer_largest(const struct segment_writer *w)
{
	const struct segment *g;
	uint64_t fresh = 2 * segment_splitter_fresh(w->splitter);
	uint64_t most = 0, n;

	TAILQ_FOREACH(g, &w->segments, of_writer) {
		if (g->file == NULL || g->of.number != w->number)
			continue;
		n = segment_file_bytes(g->file);
		most = n > most ? n : most;
	}
	return most < fresh ? most : fresh;
}
