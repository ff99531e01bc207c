#include "client/cert/atomic_files.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/base/failure.h"

struct staged {
	char *path; /* the file to be; owned */
	char *temp; /* NULL: in place already */
};

struct atomic_files {
	struct staged *files;
	size_t n;
};

struct atomic_files *
atomic_files_new(void)
{
	return calloc(1, sizeof(struct atomic_files));
}

void
atomic_files_free(struct atomic_files *s)
{
	size_t i;

	if (s == NULL)
		return;
	for (i = 0; i < s->n; i++) {
		if (s->files[i].temp != NULL)
			unlink(s->files[i].temp);
		free(s->files[i].temp);
		free(s->files[i].path);
	}
	free(s->files);
	free(s);
}

static int
write_all(int fd, const char *p, size_t len)
{
	ssize_t n;

	while (len > 0) {
		if ((n = write(fd, p, len)) < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* temp: a mkostemp() template, which is filled in; removed on failure. */
static int
write_temp(char *temp, const void *data, size_t len, mode_t mode)
{
	int fd, error = 0;

	/* mkostemp() creates with 0600: a secret is never readable by others */
	if ((fd = mkostemp(temp, O_CLOEXEC)) < 0)
		return -1;
	if (fchmod(fd, mode) < 0 || write_all(fd, data, len) < 0 ||
	    fsync(fd) < 0)
		error = errno;
	if (close(fd) < 0 && error == 0)
		error = errno;
	if (error == 0)
		return 0;
	unlink(temp);
	errno = error;
	return -1;
}

int
atomic_files_add(struct atomic_files *s, const struct atomic_file *f,
    char *err, size_t err_size)
{
	struct staged *more, file = { 0 };

	errno = ENOMEM;
	if (s->n == ATOMIC_FILES_MAX)
		goto fail;
	more = reallocarray(s->files, s->n + 1, sizeof(*more));
	if (more == NULL)
		goto fail;
	s->files = more;
	if ((file.path = strdup(f->path)) == NULL)
		goto fail;
	if (asprintf(&file.temp, "%s.XXXXXX", f->path) < 0) {
		file.temp = NULL;
		goto fail;
	}
	if (write_temp(file.temp, f->data, f->len, f->mode) < 0)
		goto fail;
	s->files[s->n++] = file;
	return 0;

fail:
	snprintf(err, err_size, "cannot write %s: %s", f->path,
	    strerror(errno));
	free(file.path);
	free(file.temp);
	return -1;
}

/* Syncs the folder, so that the renamed entry is on disk, too. */
static int
sync_folder_of(const char *path)
{
	char *copy = strdup(path);
	int fd, r = -1;

	if (copy == NULL)
		return -1;
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		/*
		 * A file system may be unable to sync folders: nothing can be
		 * done.
		 */
		r = fsync(fd) < 0 && errno != EINVAL && errno != ENOTSUP ? -1
									  : 0;
		close(fd);
	}
	free(copy);
	return r;
}

int
atomic_files_commit(struct atomic_files *s, char *err, size_t err_size)
{
	struct staged *f;
	size_t i;

	for (i = 0; i < s->n; i++) {
		f = &s->files[i];
		if (f->temp == NULL)
			continue;
		if (rename(f->temp, f->path) < 0)
			return FAILURE(err, err_size, "cannot put %s in place: "
			    "%s", f->path, strerror(errno));
		free(f->temp);
		f->temp = NULL;
		if (sync_folder_of(f->path) < 0)
			return FAILURE(err, err_size, "cannot bring %s to the "
			    "disk: %s", f->path, strerror(errno));
	}
	return 0;
}
