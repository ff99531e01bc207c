#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "relay/outbox/outbox_internal.h"
#include "relay/state/state_dir.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

/* The spool's folder: its lock, the relay's id, and what its files hold. */

#define LOCK_FILE     "lock"
#define ID_FILE       "relay-id"
#define SEGMENT_MIN   (128u * 1024u)
#define SEGMENT_MAX   (8u * 1024u * 1024u)

/* Opens and locks the folder. fds: of the folder and of its lock. */
static int
open_folder(const char *dir, int fds[2], char *err, size_t err_size)
{
	fds[1] = -1;
	/* If it cannot be made, opening it says why. */
	(void)mkdir(dir, 0700);
	fds[0] = state_dir_open_ours("spool", dir, err, err_size);
	if (fds[0] < 0)
		return -1;
	fds[1] = openat(fds[0], LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC |
	    O_NOFOLLOW, 0600);
	if (fds[1] < 0) {
		snprintf(err, err_size, "cannot write into the spool folder "
		    "%s: %s", dir, strerror(errno));
		goto fail;
	}
	if (flock(fds[1], LOCK_EX | LOCK_NB) != 0) {
		snprintf(err, err_size, "another relay uses the spool folder "
		    "%s", dir);
		goto fail;
	}
	return 0;

fail:
	if (fds[1] >= 0)
		close(fds[1]);
	close(fds[0]);
	return -1;
}

static int
take_folder(struct ob_spool *s, const char *dir, char *err, size_t err_size)
{
	int fds[2];

	if ((s->dir = strdup(dir)) == NULL)
		return FAILURE(err, err_size, "no memory");
	if (open_folder(dir, fds, err, err_size) != 0)
		return -1;
	s->dirfd = fds[0];
	s->lock = fds[1];
	return 0;
}

void
ob_spool_find_folder(struct outbox *o)
{
	struct ob_spool *s = &o->spool;
	struct stat is, was;
	char err[300];
	int fds[2];

	if (fstat(s->dirfd, &was) == 0 && stat(s->dir, &is) == 0 &&
	    is.st_dev == was.st_dev && is.st_ino == was.st_ino)
		return;
	if (open_folder(s->dir, fds, err, sizeof(err)) != 0)
		return; /* the next failed write is reported */
	/* Under their old numbers, which the disk's thread knows. */
	if (dup3(fds[0], s->dirfd, O_CLOEXEC) >= 0 &&
	    dup3(fds[1], s->lock, O_CLOEXEC) >= 0)
		log_warn("The spool folder %s is another one than before; "
		    "blocks that are not in it any more are lost", s->dir);
	close(fds[0]);
	close(fds[1]);
}

int
ob_spool_open(struct outbox *o, const struct outbox_setup *setup, char *err,
    size_t err_size)
{
	struct ob_spool *s = &o->spool;

	s->limit = setup->spool_bytes;
	s->fsync = setup->fsync;
	s->segment_bytes = s->limit / 16 & ~(uint64_t)(SPOOL_ALIGN - 1);
	if (s->segment_bytes < SEGMENT_MIN)
		s->segment_bytes = SEGMENT_MIN;
	if (s->segment_bytes > SEGMENT_MAX)
		s->segment_bytes = SEGMENT_MAX;
	return take_folder(s, setup->spool_dir, err, err_size);
}

void
ob_spool_close(struct outbox *o)
{
	struct ob_spool *s = &o->spool;
	struct ob_segment *g;

	disk_free(s->disk);
	s->disk = NULL;
	while ((g = TAILQ_FIRST(&s->segments)) != NULL) {
		TAILQ_REMOVE(&s->segments, g, link);
		free(g);
	}
	loop_timer_free(s->sync);
	loop_timer_free(s->retry);
	free(s->dir);
	if (s->lock >= 0)
		close(s->lock);
	if (s->dirfd >= 0)
		close(s->dirfd);
}

int
ob_spool_relay_id(struct outbox *o, bool known)
{
	uint8_t *id = o->arena.head->relay_id, there[LINK_ID_BYTES];
	int fd = -1, ret = 0;
	bool have = false;

	if (o->spool.disk != NULL)
		fd = openat(o->spool.dirfd, ID_FILE, O_RDWR | O_CREAT |
		    O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0)
		have = pread(fd, there, sizeof(there), 0) ==
		    (ssize_t)sizeof(there);
	if (!known && have)
		memcpy(id, there, LINK_ID_BYTES);
	else if (!known && getrandom(id, LINK_ID_BYTES, 0) !=
	    (ssize_t)LINK_ID_BYTES)
		ret = -1;
	if (fd >= 0 && (!have || memcmp(id, there, LINK_ID_BYTES) != 0) &&
	    pwrite(fd, id, LINK_ID_BYTES, 0) != (ssize_t)LINK_ID_BYTES)
		log_warn("The relay's id cannot be kept in the spool folder: "
		    "%s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return ret;
}

/* ---- the records in the folder ---- */

static bool
read_head(void *arg, uint64_t at, uint8_t head[SPOOL_HEAD_BYTES])
{
	return pread(*(int *)arg, head, SPOOL_HEAD_BYTES, (off_t)at) ==
	    (ssize_t)SPOOL_HEAD_BYTES;
}

static uint32_t
epoch_of(const struct outbox *o, const uint8_t tag[LINK_ID_BYTES])
{
	const struct arena_link *l = o->arena.head->links;
	size_t i;

	for (i = 0; i < 2; i++)
		if (l[i].epoch != 0 &&
		    memcmp(l[i].tag, tag, LINK_ID_BYTES) == 0)
			return l[i].epoch;
	return 0;
}

static int
found(struct outbox *o, struct ob_found *f, struct ob_segment *g,
    const struct spool_record *r, uint64_t where)
{
	struct ob_block **more, *b;
	size_t cap;

	if (f->n == f->cap) {
		cap = f->cap ? 2 * f->cap : 64;
		more = realloc(f->blocks, cap * sizeof(f->blocks[0]));
		if (more == NULL)
			return -1;
		f->blocks = more;
		f->cap = cap;
	}
	if ((b = calloc(1, sizeof(*b))) == NULL)
		return -1;
	f->blocks[f->n++] = b;
	b->where = OB_SPOOLED;
	b->page = ARENA_NONE;
	b->used = b->length = r->len;
	b->first = r->first;
	b->last = r->last;
	b->time_ms = r->time_ms;
	b->segment = g;
	b->offset = where;
	b->chunks = r->chunks;
	b->packets = r->packets;
	b->bytes = r->bytes;
	b->closes = r->closes;
	b->old_channel = r->channel;
	b->old_epoch = epoch_of(o, r->tag);
	memcpy(b->tag, r->tag, LINK_ID_BYTES);
	g->live++;
	g->held += spool_size(r->len);
	o->spool.used += spool_size(r->len);
	return 0;
}

static int
scan_segment(struct outbox *o, struct ob_found *ff, struct ob_segment *g,
    int fd)
{
	struct spool_walk w = { .read = read_head, .arg = &fd };
	struct spool_record r;
	enum spool_step step;
	uint64_t where;
	struct stat st;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return 0;
	w.end = (uint64_t)st.st_size;
	g->size = w.end;
	while ((step = spool_step(&w, &r, &where)) != SPOOL_STEP_END) {
		switch (step) {
		case SPOOL_STEP_RECORD:
			if (found(o, ff, g, &r, where) != 0)
				return -1;
			break;
		case SPOOL_STEP_DAMAGE:
			o->spool.damaged++;
			break;
		case SPOOL_STEP_TORN:
			o->spool.cut_bytes += (uint64_t)st.st_size - where;
			if (ftruncate(fd, (off_t)where) != 0)
				log_warn("A torn end of the spool stays: %s",
				    strerror(errno));
			break;
		case SPOOL_STEP_END:
			break;
		}
	}
	return 0;
}

static int
add_segment(struct outbox *o, struct ob_found *f, uint64_t id)
{
	struct ob_spool *s = &o->spool;
	char name[DISK_NAME_BYTES];
	struct ob_segment *g;
	int fd, ret;

	disk_name(name, id);
	fd = openat(s->dirfd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		log_warn("The spool's file %s cannot be read: %s", name,
		    strerror(errno));
		return 0;
	}
	if ((g = calloc(1, sizeof(*g))) == NULL) {
		close(fd);
		return -1;
	}
	g->id = id;
	TAILQ_INSERT_TAIL(&s->segments, g, link);
	s->n_segments++;
	if (id >= s->next_id)
		s->next_id = id + 1;
	ret = scan_segment(o, f, g, fd);
	close(fd);
	if (g->live == 0) {
		unlinkat(s->dirfd, name, 0);
		TAILQ_REMOVE(&s->segments, g, link);
		s->n_segments--;
		free(g);
	}
	return ret;
}

int
ob_spool_scan(struct outbox *o, struct ob_found *f)
{
	struct dirent *e;
	uint64_t id;
	int ret = 0, fd;
	DIR *d;

	if (o->spool.disk == NULL)
		return 0;
	if ((fd = openat(o->spool.dirfd, ".", O_RDONLY | O_DIRECTORY |
	    O_CLOEXEC)) < 0)
		return -1;
	if ((d = fdopendir(fd)) == NULL) {
		close(fd);
		return -1;
	}
	while (ret == 0 && (e = readdir(d)) != NULL)
		if (disk_is_segment(e->d_name, &id))
			ret = add_segment(o, f, id);
	closedir(d);
	if (o->spool.cut_bytes > 0)
		log_info("The spool had a torn end: %llu bytes were cut off",
		    (unsigned long long)o->spool.cut_bytes);
	if (o->spool.damaged > 0)
		log_warn("The spool is damaged in %llu places, or another "
		    "version wrote them",
		    (unsigned long long)o->spool.damaged);
	return ret;
}
