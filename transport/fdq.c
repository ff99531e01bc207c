#include "transport/fdq.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Oldest first. */
struct fdq_items {
	int n;
	struct {
		int fd;
		uint64_t end;
	} v[FDQ_MAX];
};

static int
fdq_remove(struct fdq *q, int i)
{
	struct fdq_items *f = q->items;
	int fd = f->v[i].fd;

	f->n--;
	memmove(&f->v[i], &f->v[i + 1], (size_t)(f->n - i) * sizeof(f->v[0]));
	if (f->n == 0) {
		free(f);
		q->items = NULL;
	}
	return fd;
}

void
fdq_done(struct fdq *q)
{
	while (q->items != NULL)
		close(fdq_remove(q, 0));
}

int
fdq_add(struct fdq *q, int fd, uint64_t end)
{
	if (q->items == NULL &&
	    (q->items = calloc(1, sizeof(*q->items))) == NULL) {
		close(fd);
		return -1;
	}
	if (q->items->n == FDQ_MAX) {
		close(fd);
		return 0;
	}
	q->items->v[q->items->n].fd = fd;
	q->items->v[q->items->n].end = end;
	q->items->n++;
	return 0;
}

int
fdq_take(struct fdq *q)
{
	return q->items != NULL ? fdq_remove(q, 0) : -1;
}

int
fdq_take_of(struct fdq *q, uint64_t start, uint64_t end)
{
	int i;

	for (i = 0; q->items != NULL && i < q->items->n; i++) {
		if (q->items->v[i].end > start && q->items->v[i].end <= end)
			return fdq_remove(q, i);
	}
	return -1;
}

void
fdq_drop_until(struct fdq *q, uint64_t offset)
{
	while (q->items != NULL && q->items->v[0].end <= offset)
		close(fdq_remove(q, 0));
}
