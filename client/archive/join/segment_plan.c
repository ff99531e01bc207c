#include "client/archive/join/segment_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/base/failure.h"

static int
compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Order of recordings: files of one are equal. */
static int
compare_recordings(const struct segment_file *a, const struct segment_file *b)
{
	int c;

	if (a->head.has_uuid != b->head.has_uuid)
		return a->head.has_uuid ? -1 : 1;
	if ((c = memcmp(a->head.uuid, b->head.uuid, 16)) != 0)
		return c;
	/* Traces without a uuid are recordings by themselves. */
	return a->head.has_uuid ? 0 : strcmp(a->path, b->path);
}

static int
compare_files(const void *left, const void *right)
{
	const struct segment_file *a = left, *b = right;
	int c;

	if ((c = compare_recordings(a, b)) != 0)
		return c;
	if ((c = compare_numbers(a->head.number, b->head.number)) != 0)
		return c;
	return compare_numbers(a->head.machine_id, b->head.machine_id);
}

static int
compare_ages(const void *left, const void *right)
{
	const struct segment_recording *a = left, *b = right;

	return compare_numbers(a->files[0].head.begin_realtime_ns,
	    b->files[0].head.begin_realtime_ns);
}

/* Leaves one of files that are the same segment. */
static void
drop_doubled(struct segment_plan *p)
{
	size_t i, kept = 0;

	for (i = 0; i < p->n; i++) {
		if (kept > 0 && compare_files(&p->files[kept - 1],
		    &p->files[i]) == 0) {
			segment_head_done(&p->files[i].head);
			p->doubled++;
		} else {
			p->files[kept++] = p->files[i];
		}
	}
	p->n = kept;
}

static void
group(struct segment_plan *p)
{
	struct segment_recording *r = NULL;
	size_t i;

	for (i = 0; i < p->n; i++) {
		if (r == NULL || compare_recordings(r->files,
		    &p->files[i]) != 0) {
			r = &p->recordings[p->n_recordings++];
			*r = (struct segment_recording){ &p->files[i], 0 };
		}
		r->n++;
	}
	qsort(p->recordings, p->n_recordings, sizeof(*p->recordings),
	    compare_ages);
}

int
segment_plan_make(struct segment_plan *out, const char *const *paths, size_t n,
    char *err, size_t err_size)
{
	struct segment_plan p = { 0 };

	p.files = calloc(n + 1, sizeof(*p.files));
	p.recordings = calloc(n + 1, sizeof(*p.recordings));
	if (p.files == NULL || p.recordings == NULL) {
		snprintf(err, err_size, "out of memory");
		goto fail;
	}
	for (; p.n < n; p.n++) {
		p.files[p.n].path = paths[p.n];
		if (segment_head_read(&p.files[p.n].head, paths[p.n], err,
		    err_size) < 0)
			goto fail;
	}
	qsort(p.files, p.n, sizeof(*p.files), compare_files);
	drop_doubled(&p);
	group(&p);
	*out = p;
	return 0;

fail:
	segment_plan_done(&p);
	return -1;
}

void
segment_plan_done(struct segment_plan *p)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		segment_head_done(&p->files[i].head);
	free(p->files);
	free(p->recordings);
	memset(p, 0, sizeof(*p));
}
