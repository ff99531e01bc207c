#include "transport/base/nameless_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/base/failure.h"

int
nameless_file_open(const char *whose, char *err, size_t err_size)
{
	const char *folder = getenv("TMPDIR");
	char *path;
	int fd;

	if (folder == NULL || *folder == '\0')
		folder = "/var/tmp";
	if (asprintf(&path, "%s/%s.XXXXXX", folder, whose) < 0)
		return FAILURE(err, err_size, "no memory");
	if ((fd = mkostemp(path, O_CLOEXEC)) < 0)
		snprintf(err, err_size, "cannot make a file in %s: %s", folder,
		    strerror(errno));
	else
		(void)unlink(path);
	free(path);
	return fd;
}
