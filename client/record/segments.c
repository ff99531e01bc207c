#include "client/record/segments.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/record/live_line.h"
#include "client/record/segment_command.h"
#include "client/record/segment_keep.h"
#include "transport/base/failure.h"
#include "transport/base/human_numbers.h"
#include "transport/segment/segment_folder.h"
#include "transport/segment/segment_writer.h"

struct record_segments {
	struct record_segments_setup with;
	char *folder; /* without a slash at its end */
	int fd;       /* of the folder */
	struct segment_writer *writer;   /* NULL: not begun */
	struct segment_keep *keep;       /* likewise */
	struct segment_command *command; /* NULL: not begun, or not wanted */
	const struct record_segments_ops *ops;
	void *arg;
	uint64_t count;
	unsigned recovered;
	bool finished;
	char error[300];
};

/* NULL: no memory. */
static char *
folder_name(const char *text)
{
	size_t n = strlen(text);

	while (n > 1 && text[n - 1] == '/')
		n--;
	return strndup(text, n);
}

struct record_segments *
record_segments_open(const struct record_segments_setup *setup, char *err,
    size_t err_size)
{
	struct record_segments *s = calloc(1, sizeof(*s));

	if (s == NULL || (s->folder = folder_name(setup->folder)) == NULL) {
		snprintf(err, err_size, "out of memory");
		free(s);
		return NULL;
	}
	s->with = *setup;
	s->fd = segment_folder_of_user(s->folder, err, err_size);
	if (s->fd >= 0)
		return s;
	free(s->folder);
	free(s);
	return NULL;
}

void
record_segments_free(struct record_segments *s)
{
	if (s == NULL)
		return;
	segment_writer_free(s->writer);
	segment_command_free(s->command);
	segment_keep_free(s->keep);
	close(s->fd);
	free(s->folder);
	free(s);
}

static void
recovered(const char *path, void *arg)
{
	struct record_segments *s = arg;

	s->recovered++;
}

static void
written(void *arg, const struct segment_written *of)
{
	struct record_segments *s = arg;

	s->count++;
	segment_keep_add(s->keep, of->path, of->bytes);
	if (s->command != NULL)
		segment_command_add(s->command, of);
}

/* After segments became whole, or time went by. */
static void
look_after(struct record_segments *s)
{
	segment_keep_look(s->keep, s->command == NULL ? NULL :
	    segment_command_path(s->command));
}

static void
idle_cb(void *arg)
{
	struct record_segments *s = arg;

	look_after(s);
	s->ops->idle(s->arg);
}

static uint64_t
realtime_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int
fail(struct record_segments *s, const char *why)
{
	if (s->error[0] == '\0')
		snprintf(s->error, sizeof(s->error), "%s", why);
	return -1;
}

/* The folder is read by paths, the writer reads its own descriptor. */
static int
dup_of(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

static int
make_writer(struct record_segments *s)
{
	const struct segment_folder_options folder = {
		.owner = { 0, -1, -1 }, .recovered = recovered, .arg = s };
	const struct segment_writer_options o = { .pattern = s->with.pattern,
		.recording = s->with.recording,
		.by_machine = s->with.by_machine, .uid = (int32_t)getuid(),
		.begin_realtime_ns = realtime_ns(),
		.compression = s->with.compression, .written = written,
		.arg = s };
	char err[300];
	struct segment_folder *f;
	int fd = dup_of(s->fd);

	if (fd < 0)
		return fail(s, strerror(errno));
	f = segment_folder_open(fd, &folder, err, sizeof(err));
	if (f == NULL)
		return fail(s, err);
	if ((s->writer = segment_writer_new(f, &o)) != NULL)
		return 0;
	segment_folder_free(f);
	return fail(s, "out of memory");
}

static int
make_keep(struct record_segments *s, struct record_live *live)
{
	const struct segment_keep_setup setup = { .live = live,
		.folder_fd = s->fd, .folder = s->folder,
		.recording = s->with.recording, .bytes = s->with.keep_bytes,
		.ms = s->with.keep_ms };
	char err[300];

	if ((s->keep = segment_keep_new(&setup)) == NULL)
		return fail(s, "out of memory");
	return segment_keep_adopt(s->keep, err, sizeof(err)) == 0 ? 0 :
	    fail(s, err);
}

static int
make_command(struct record_segments *s, struct loop *l,
    struct record_live *live)
{
	const struct segment_command_setup setup = { .loop = l, .live = live,
		.command = s->with.command, .folder_fd = s->fd,
		.folder = s->folder, .recording = s->with.recording,
		.idle = idle_cb, .arg = s };

	if (s->with.command == NULL)
		return 0;
	s->command = segment_command_new(&setup);
	return s->command != NULL ? 0 : fail(s, "out of memory");
}

int
record_segments_begin(struct record_segments *s, struct loop *l,
    struct record_live *live, const struct record_segments_ops *ops, void *arg)
{
	s->ops = ops;
	s->arg = arg;
	/* Parts of a crash are closed first, so that they are adopted. */
	if (make_writer(s) != 0 || make_command(s, l, live) != 0 ||
	    make_keep(s, live) != 0)
		return -1;
	look_after(s);
	if (s->recovered > 0)
		record_live_say(live, "%u segment%s that a crash left in %s "
		    "end%s with the last whole packet", s->recovered,
		    human_s(s->recovered), s->folder,
		    s->recovered == 1 ? "s" : "");
	return 0;
}

static int
answer(struct record_segments *s, int rc)
{
	return rc == 0 ? 0 : fail(s, segment_writer_error(s->writer));
}

static void
look_at_size(struct record_segments *s)
{
	if (s->with.max_bytes != 0 &&
	    segment_writer_largest(s->writer) >= s->with.max_bytes)
		s->ops->full(s->arg, segment_writer_number(s->writer));
}

int
record_segments_put(struct record_segments *s, const uint8_t *packets,
    size_t len)
{
	int rc = answer(s, segment_writer_put(s->writer, packets, len));

	if (rc == 0)
		look_at_size(s);
	return rc;
}

int
record_segments_flush(struct record_segments *s)
{
	int rc = answer(s, segment_writer_flush(s->writer));

	look_after(s);
	if (rc == 0)
		look_at_size(s);
	return rc;
}

int
record_segments_finish(struct record_segments *s)
{
	if (!s->finished) {
		s->finished = true;
		if (answer(s, segment_writer_finish(s->writer)) != 0)
			return -1;
		look_after(s);
	}
	return record_segments_commands(s) > 0 ? 0 : 1;
}

unsigned
record_segments_commands(const struct record_segments *s)
{
	return s->command == NULL ? 0 : segment_command_left(s->command);
}

void
record_segments_give_up(struct record_segments *s)
{
	if (s->command != NULL)
		segment_command_give_up(s->command);
}

const char *
record_segments_folder(const struct record_segments *s)
{
	return s->folder;
}

const char *
record_segments_error(const struct record_segments *s)
{
	return s->error;
}

uint64_t
record_segments_count(const struct record_segments *s)
{
	return s->count;
}
