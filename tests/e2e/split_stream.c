/*
 * split_stream FOLDER [--by-machine]: splits the trace on standard input, the
 * stream of a session that is cut, into segments, FOLDER/NUMBER-MACHINE.pftrace.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/segment/segment_splitter.h"

struct file {
	FILE *out;
};

static int
begin_cb(void *arg, const struct segment_id *id, void **segment)
{
	char path[4096];
	struct file *f = malloc(sizeof(*f));

	snprintf(path, sizeof(path), "%s/%03u-%u.pftrace", (const char *)arg,
	    id->number, id->machine);
	if (f == NULL || (f->out = fopen(path, "w")) == NULL) {
		free(f);
		return -1;
	}
	*segment = f;
	return 0;
}

static int
put_cb(void *arg, void *segment, const uint8_t *packets, size_t len)
{
	struct file *f = segment;

	(void)arg;
	return fwrite(packets, 1, len, f->out) == len ? 0 : -1;
}

static int
end_cb(void *arg, void *segment, const struct segment_summary *of)
{
	struct file *f = segment;
	int rc = fclose(f->out);

	(void)arg;
	(void)of;
	free(f);
	return rc;
}

static uint8_t *
read_all(size_t *len)
{
	size_t cap = 1 << 20, n;
	uint8_t *data = malloc(cap);

	*len = 0;
	while (data != NULL && (n = fread(data + *len, 1, cap - *len,
	    stdin)) > 0) {
		*len += n;
		if (*len == cap)
			data = realloc(data, cap *= 2);
	}
	return data;
}

int
main(int argc, char **argv)
{
	const struct segment_ops ops = { begin_cb, put_cb, end_cb };
	const struct segment_options options = { .recording = "always",
		.begin_realtime_ns = 1795442400000000000,
		.by_machine = argc > 2 && strcmp(argv[2], "--by-machine") == 0 };
	struct segment_splitter *s;
	size_t len;
	uint8_t *data = read_all(&len);
	int rc;

	s = segment_splitter_new(&options, &ops, argv[1]);
	if (s == NULL || data == NULL)
		return 1;
	rc = segment_splitter_put(s, data, len) != SEGMENT_OK ||
	    segment_splitter_finish(s) != SEGMENT_OK;
	segment_splitter_free(s);
	free(data);
	return rc;
}
