#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "segment_test_folder.h"
#include "transport/segment/segment_folder.h"
#include "transport/wire/pb_writer.h"

void
test_folder_make(char path[PATH_MAX])
{
	const char *tmp = getenv("TMPDIR");

	snprintf(path, PATH_MAX, "%s/segments.XXXXXX",
	    tmp != NULL ? tmp : "/tmp");
	assert_non_null(mkdtemp(path));
}

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	return remove(path);
}

void
test_folder_remove(const char *path)
{
	assert_int_equal(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

struct segment_folder *
test_folder_open(const char *path, const struct segment_folder_options *o)
{
	const struct segment_folder_options usual = { .owner = { 0, -1, -1 } };
	struct segment_folder *f;
	char err[300];
	int fd = segment_folder_of_user(path, err, sizeof(err));

	assert_true(fd >= 0);
	f = segment_folder_open(fd, o != NULL ? o : &usual, err, sizeof(err));
	assert_non_null(f);
	return f;
}

uint8_t *
test_folder_read(const char *folder, const char *name, size_t *len)
{
	char path[PATH_MAX];
	struct stat st;
	uint8_t *data;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if ((fd = open(path, O_RDONLY)) < 0)
		return NULL;
	assert_int_equal(fstat(fd, &st), 0);
	assert_non_null(data = malloc((size_t)st.st_size + 1));
	assert_int_equal(read(fd, data, (size_t)st.st_size), st.st_size);
	close(fd);
	*len = (size_t)st.st_size;
	return data;
}

void
test_folder_write(const char *folder, const char *name, const void *data,
    size_t len)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_true((fd = open(path, O_WRONLY | O_CREAT, 0600)) >= 0);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
}

unsigned
test_folder_mode(const char *folder, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return lstat(path, &st) == 0 ? st.st_mode & 07777 : 0;
}

size_t
test_packet(uint8_t *out, size_t n, uint8_t which)
{
	size_t head = 1;

	out[0] = 0x0a;
	head += pb_encode_varint(out + 1, n);
	memset(out + head, which, n);
	return head + n;
}
