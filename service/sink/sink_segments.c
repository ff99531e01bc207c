#include "service/sink/sink_segments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "service/sink/file_sink.h"
#include "transport/base/failure.h"
#include "transport/segment/segment_folder.h"
#include "transport/segment/segment_writer.h"

struct sink_segments {
	struct file_sink_segments o; /* its strings are owned */
	uint8_t *begun_by; /* owned */
	struct packet_compression compression;
	struct segment_writer *writer; /* NULL: not opened */
	unsigned recovered;
	bool (*give_up)(void *arg);
	void *arg;
};

struct sink_segments *
sink_segments_new(const struct file_sink_options *o)
{
	struct sink_segments *g = calloc(1, sizeof(*g));

	if (g == NULL)
		return NULL;
	g->compression = o->compression;
	g->o.by_machine = o->segments->by_machine;
	if (o->segments->begun_by_len > 0) {
		g->begun_by = malloc(o->segments->begun_by_len);
		if (g->begun_by == NULL) {
			free(g);
			return NULL;
		}
		g->o.begun_by_len = o->segments->begun_by_len;
		memcpy(g->begun_by, o->segments->begun_by, g->o.begun_by_len);
	}
	g->o.pattern = strdup(o->segments->pattern);
	g->o.recording = strdup(o->segments->recording);
	if (g->o.pattern != NULL && g->o.recording != NULL)
		return g;
	sink_segments_free(g);
	return NULL;
}

void
sink_segments_free(struct sink_segments *g)
{
	if (g == NULL)
		return;
	segment_writer_free(g->writer);
	free((char *)g->o.pattern);
	free((char *)g->o.recording);
	free(g->begun_by);
	free(g);
}

static void
recovered(const char *path, void *arg)
{
	struct sink_segments *g = arg;

	g->recovered++;
}

static bool
gives_up(void *arg)
{
	struct sink_segments *g = arg;

	return g->give_up(g->arg);
}

static uint64_t
realtime_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int
sink_segments_open(struct sink_segments *g,
    const struct file_sink_place *place, bool (*give_up)(void *arg), void *arg,
    char *err, size_t err_size)
{
	const struct segment_folder_options folder = {
		.owner = { place->dir->mode, place->uid, place->gid },
		.give_up = gives_up, .recovered = recovered, .arg = g };
	const struct segment_writer_options o = { .pattern = g->o.pattern,
		.recording = g->o.recording, .by_machine = g->o.by_machine,
		.begun_by = g->begun_by, .begun_by_len = g->o.begun_by_len,
		.uid = (int32_t)getuid(), .begin_realtime_ns = realtime_ns(),
		.compression = g->compression, .give_up = gives_up, .arg = g };
	struct segment_folder *f;
	int fd;

	g->give_up = give_up;
	g->arg = arg;
	fd = sink_path_open_folder(place->dir, place->path, &folder.owner, err,
	    err_size);
	if (fd < 0 ||
	    (f = segment_folder_open(fd, &folder, err, err_size)) == NULL)
		return -1;
	if ((g->writer = segment_writer_new(f, &o)) != NULL)
		return 0;
	segment_folder_free(f);
	return FAILURE(err, err_size, "out of memory");
}

static int
answer(const struct sink_segments *g, int rc, char *err, size_t err_size)
{
	if (rc != 0)
		snprintf(err, err_size, "%s", segment_writer_error(g->writer));
	return rc;
}

int
sink_segments_put(struct sink_segments *g, const uint8_t *data, size_t len,
    bool full, char *err, size_t err_size)
{
	int rc = segment_writer_put(g->writer, data, len);

	if (rc == 0 && !(full && g->o.by_machine))
		rc = segment_writer_flush(g->writer);
	return answer(g, rc, err, err_size);
}

int
sink_segments_sync(struct sink_segments *g, char *err, size_t err_size)
{
	return answer(g, segment_writer_sync(g->writer), err, err_size);
}

int
sink_segments_close(struct sink_segments *g, bool broken, char *err,
    size_t err_size)
{
	int rc = 0;

	if (g->writer == NULL)
		return 0;
	if (!broken)
		rc = answer(g, segment_writer_finish(g->writer), err, err_size);
	segment_writer_leave(g->writer);
	return rc;
}

void
sink_segments_lost(const struct sink_segments *g,
    void (*lost)(void *arg, const uint8_t *data, size_t len), void *arg)
{
	if (g->writer != NULL)
		segment_writer_lost(g->writer, lost, arg);
}

uint64_t
sink_segments_total(const struct sink_segments *g)
{
	return g->writer != NULL ? segment_writer_total(g->writer) : 0;
}

uint64_t
sink_segments_largest(const struct sink_segments *g)
{
	return g->writer != NULL ? segment_writer_largest(g->writer) : 0;
}

uint32_t
sink_segments_number(const struct sink_segments *g)
{
	return g->writer != NULL ? segment_writer_number(g->writer) : 0;
}

unsigned
sink_segments_recovered(const struct sink_segments *g)
{
	return g->recovered;
}
