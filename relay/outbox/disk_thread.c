#include "relay/outbox/disk_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "transport/loop/loop.h"

/* Address space; a few frames of it are touched. */
#define STACK_BYTES (256u * 1024u)

TAILQ_HEAD(job_list, disk_job);

struct disk {
	struct loop *loop;
	int dirfd;
	bool synchronous;
	void (*reap)(void *arg);
	void *arg;
	bool has_thread;
	pthread_t thread;

	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct job_list jobs; /* under lock, like all that follows */
	struct job_list done;
	bool posted;          /* reap() will be called */
	bool ending;
	struct loop_post reap_post;

	/* The thread's own: the file that is written */
	int fd; /* -1: none */
	uint64_t fd_segment;
};

void
disk_name(char out[DISK_NAME_BYTES], uint64_t segment)
{
	snprintf(out, DISK_NAME_BYTES, "spool-%016llx",
	    (unsigned long long)segment);
}

bool
disk_is_segment(const char *name, uint64_t *segment)
{
	char again[DISK_NAME_BYTES];
	unsigned long long n;

	if (strncmp(name, "spool-", 6) != 0 || strlen(name) != 22)
		return false;
	n = strtoull(name + 6, NULL, 16);
	disk_name(again, n);
	*segment = n;
	return strcmp(again, name) == 0;
}

static int
open_for_writing(struct disk *d, uint64_t segment)
{
	char name[DISK_NAME_BYTES];
	struct stat st;

	if (d->fd >= 0 && d->fd_segment == segment) {
		/*
		 * The file was deleted: what is written to it could not be read
		 * again.
		 */
		if (fstat(d->fd, &st) != 0 || st.st_nlink > 0)
			return 0;
		close(d->fd);
		d->fd = -1;
		return ENOENT;
	}
	if (d->fd >= 0)
		close(d->fd);
	disk_name(name, segment);
	d->fd = openat(d->dirfd, name, O_WRONLY | O_CREAT | O_CLOEXEC |
	    O_NOFOLLOW, 0600);
	d->fd_segment = segment;
	return d->fd < 0 ? errno : 0;
}

static int
write_all(int fd, struct iovec iov[2], uint64_t at)
{
	ssize_t n;

	while (iov[0].iov_len + iov[1].iov_len > 0) {
		n = pwritev(fd, iov, 2, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : ENOSPC;
		at += (uint64_t)n;
		if ((size_t)n < iov[0].iov_len) {
			iov[0].iov_base = (uint8_t *)iov[0].iov_base + n;
			iov[0].iov_len -= (size_t)n;
			continue;
		}
		n -= (ssize_t)iov[0].iov_len;
		iov[0].iov_len = 0;
		iov[1].iov_base = (uint8_t *)iov[1].iov_base + n;
		iov[1].iov_len -= (size_t)n;
	}
	return 0;
}

static void
do_write(struct disk *d, struct disk_job *j)
{
	uint8_t head[SPOOL_HEAD_BYTES];
	struct iovec iov[2] = {
		{ .iov_base = head, .iov_len = sizeof(head) },
		{ .iov_base = j->data, .iov_len = j->record.len },
	};

	if ((j->error = open_for_writing(d, j->segment)) != 0)
		return;
	j->record.crc = spool_crc(j->data, j->record.len);
	spool_put_head(head, &j->record);
	j->error = write_all(d->fd, iov, j->offset);
	if (j->error == 0 && j->sync && fdatasync(d->fd) != 0)
		j->error = errno;
	/* A part of the record must not pass for a whole one. */
	if (j->error != 0 && ftruncate(d->fd, (off_t)j->offset) != 0)
		j->damaged = true;
}

static int
read_all(int fd, uint8_t *data, size_t len, uint64_t at)
{
	ssize_t n;

	while (len > 0) {
		n = pread(fd, data, len, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (n == 0)
			return ENODATA;
		data += n;
		len -= (size_t)n;
		at += (uint64_t)n;
	}
	return 0;
}

static void
do_read(struct disk *d, struct disk_job *j)
{
	char name[DISK_NAME_BYTES];
	uint8_t head[SPOOL_HEAD_BYTES];
	struct spool_record r;
	int fd;

	disk_name(name, j->segment);
	fd = openat(d->dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		j->error = errno;
		return;
	}
	j->error = read_all(fd, head, sizeof(head), j->offset);
	if (j->error == 0)
		j->error = read_all(fd, j->data, j->record.len,
		    j->offset + sizeof(head));
	close(fd);
	if (j->error != 0)
		return;
	j->damaged = spool_read_head(head, &r) != SPOOL_RECORD ||
	    memcmp(r.tag, j->record.tag, sizeof(r.tag)) != 0 ||
	    r.channel != j->record.channel || r.first != j->record.first ||
	    r.last != j->record.last || r.len != j->record.len ||
	    r.crc != spool_crc(j->data, r.len);
}

static void
do_punch(struct disk *d, struct disk_job *j)
{
	char name[DISK_NAME_BYTES];
	int fd;

	disk_name(name, j->segment);
	fd = openat(d->dirfd, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		j->error = errno;
		return;
	}
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
	    (off_t)j->offset, (off_t)j->len) != 0) {
		j->error = errno;
		if (pwrite(fd, spool_dead, sizeof(spool_dead),
		    (off_t)j->offset) < 0)
			j->damaged = true;
	}
	close(fd);
}

static void
do_sync(struct disk *d, struct disk_job *j)
{
	if ((j->error = open_for_writing(d, j->segment)) == 0 &&
	    fdatasync(d->fd) != 0)
		j->error = errno;
}

static void
do_unlink(struct disk *d, struct disk_job *j)
{
	char name[DISK_NAME_BYTES];

	if (d->fd >= 0 && d->fd_segment == j->segment) {
		close(d->fd);
		d->fd = -1;
	}
	disk_name(name, j->segment);
	if (unlinkat(d->dirfd, name, 0) != 0)
		j->error = errno;
}

static void
do_job(struct disk *d, struct disk_job *j)
{
	switch (j->kind) {
	case DISK_WRITE:
		do_write(d, j);
		break;
	case DISK_READ:
		do_read(d, j);
		break;
	case DISK_PUNCH:
		do_punch(d, j);
		break;
	case DISK_SYNC:
		do_sync(d, j);
		break;
	case DISK_UNLINK:
		do_unlink(d, j);
		break;
	}
}

static void
reap_cb(void *arg)
{
	struct disk *d = arg;

	pthread_mutex_lock(&d->lock);
	d->posted = false;
	pthread_mutex_unlock(&d->lock);
	d->reap(d->arg);
}

static void *
run(void *arg)
{
	struct disk *d = arg;
	struct disk_job *j;

	pthread_mutex_lock(&d->lock);
	while (!d->ending) {
		if ((j = TAILQ_FIRST(&d->jobs)) == NULL) {
			pthread_cond_wait(&d->wake, &d->lock);
			continue;
		}
		TAILQ_REMOVE(&d->jobs, j, link);
		pthread_mutex_unlock(&d->lock);
		do_job(d, j);
		pthread_mutex_lock(&d->lock);
		TAILQ_INSERT_TAIL(&d->done, j, link);
		if (!d->posted && !d->ending) {
			d->posted = true;
			loop_post(d->loop, &d->reap_post, reap_cb, d);
		}
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

static int
start(struct disk *d)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int error;

	if (pthread_attr_init(&attr) != 0)
		return -1;
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&d->thread, &attr, run, d);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	d->has_thread = error == 0;
	return error == 0 ? 0 : -1;
}

struct disk *
disk_new(struct loop *l, int dirfd, bool synchronous,
    void (*reap)(void *arg), void *arg)
{
	struct disk *d;

	if ((d = calloc(1, sizeof(*d))) == NULL)
		return NULL;
	d->loop = l;
	d->dirfd = dirfd;
	d->synchronous = synchronous;
	d->reap = reap;
	d->arg = arg;
	d->fd = -1;
	TAILQ_INIT(&d->jobs);
	TAILQ_INIT(&d->done);
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->wake, NULL);
	if (!synchronous && start(d) != 0) {
		disk_free(d);
		return NULL;
	}
	return d;
}

static void
give_up(struct job_list *list)
{
	struct disk_job *j;

	while ((j = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, j, link);
		free(j);
	}
}

void
disk_free(struct disk *d)
{
	if (d == NULL)
		return;
	if (d->has_thread) {
		pthread_mutex_lock(&d->lock);
		d->ending = true;
		pthread_cond_signal(&d->wake);
		pthread_mutex_unlock(&d->lock);
		pthread_join(d->thread, NULL);
	}
	if (d->loop != NULL)
		loop_cancel(d->loop, d);
	give_up(&d->jobs);
	give_up(&d->done);
	if (d->fd >= 0)
		close(d->fd);
	pthread_mutex_destroy(&d->lock);
	pthread_cond_destroy(&d->wake);
	free(d);
}

struct disk_job *
disk_job_new(enum disk_kind kind, uint64_t segment,
    void (*done)(struct disk_job *j), void *owner)
{
	struct disk_job *j;

	if ((j = calloc(1, sizeof(*j))) == NULL)
		return NULL;
	j->kind = kind;
	j->segment = segment;
	j->done = done;
	j->owner = owner;
	return j;
}

void
disk_submit(struct disk *d, struct disk_job *j)
{
	j->error = 0;
	j->damaged = false;
	if (d->synchronous) {
		do_job(d, j);
		TAILQ_INSERT_TAIL(&d->done, j, link);
		return;
	}
	pthread_mutex_lock(&d->lock);
	TAILQ_INSERT_TAIL(&d->jobs, j, link);
	pthread_cond_signal(&d->wake);
	pthread_mutex_unlock(&d->lock);
}

unsigned
disk_reap(struct disk *d)
{
	struct job_list done = TAILQ_HEAD_INITIALIZER(done);
	struct disk_job *j;
	unsigned n = 0;

	pthread_mutex_lock(&d->lock);
	TAILQ_CONCAT(&done, &d->done, link);
	pthread_mutex_unlock(&d->lock);
	while ((j = TAILQ_FIRST(&done)) != NULL) {
		TAILQ_REMOVE(&done, j, link);
		j->done(j);
		n++;
	}
	return n;
}
