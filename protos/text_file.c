#include "protos/text_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *
text_file_read(const char *path, size_t *len, char *err, size_t err_size)
{
	char *text = NULL;
	size_t got;
	FILE *f;

	if ((f = fopen(path, "re")) == NULL)
		goto fail;
	if ((text = malloc(TEXT_FILE_MAX + 1)) == NULL)
		goto fail;
	got = fread(text, 1, TEXT_FILE_MAX + 1, f);
	if (ferror(f))
		goto fail;
	fclose(f);
	if (got > TEXT_FILE_MAX) {
		free(text);
		snprintf(err, err_size, "%s: error: a settings file is at most "
		    "%u bytes long", path, TEXT_FILE_MAX);
		return NULL;
	}
	*len = got;
	return text;

fail:
	snprintf(err, err_size, "%s: error: cannot read it: %s", path,
	    strerror(errno));
	free(text);
	if (f != NULL)
		fclose(f);
	return NULL;
}
