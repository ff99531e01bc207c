#include "client/probes/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define FIRST_BYTES 4096u

void
text_init(struct text *t)
{
	t->data = NULL;
	t->len = t->room = 0;
}

void
text_done(struct text *t)
{
	free(t->data);
	text_init(t);
}

static int
grow(struct text *t)
{
	size_t room = t->room == 0 ? FIRST_BYTES : t->room * 2;
	char *data;

	if ((data = realloc(t->data, room)) == NULL)
		return -1;
	t->data = data;
	t->room = room;
	return 0;
}

int
text_read_fd(struct text *t, int fd)
{
	ssize_t n;

	t->len = 0;
	do {
		if (t->len == t->room && grow(t) < 0)
			goto fail;
		n = pread(fd, t->data + t->len, t->room - t->len,
		    (off_t)t->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			goto fail;
		t->len += (size_t)n;
	} while (n != 0 && t->len < TEXT_FILE_MAX);
	return 0;

fail:
	t->len = 0;
	return -1;
}

int
text_read_at(struct text *t, int dir, const char *path)
{
	int fd, rc, error;

	t->len = 0;
	if ((fd = openat(dir, path, O_RDONLY | O_CLOEXEC)) < 0)
		return -1;
	rc = text_read_fd(t, fd);
	error = errno;
	close(fd);
	errno = error;
	return rc;
}
