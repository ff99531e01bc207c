#include "transport/socket/fd_queue.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Oldest first. */
struct fd_queue_items {
	int n;
	struct {
		int fd;
		uint64_t end;
	} v[FD_QUEUE_MAX];
};

static int
remove_at(struct fd_queue *q, int i)
{
	struct fd_queue_items *f = q->items;
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
fd_queue_done(struct fd_queue *q)
{
	while (q->items != NULL)
		close(remove_at(q, 0));
}

int
fd_queue_add(struct fd_queue *q, int fd, uint64_t end)
{
	if (q->items == NULL &&
	    (q->items = calloc(1, sizeof(*q->items))) == NULL) {
		close(fd);
		return -1;
	}
	if (q->items->n == FD_QUEUE_MAX) {
		close(fd);
		return 0;
	}
	q->items->v[q->items->n].fd = fd;
	q->items->v[q->items->n].end = end;
	q->items->n++;
	return 0;
}

int
fd_queue_take_of(struct fd_queue *q, uint64_t start, uint64_t end)
{
	int i;

	for (i = 0; q->items != NULL && i < q->items->n; i++) {
		if (q->items->v[i].end > start && q->items->v[i].end <= end)
			return remove_at(q, i);
	}
	return -1;
}

void
fd_queue_drop_until(struct fd_queue *q, uint64_t offset)
{
	while (q->items != NULL && q->items->v[0].end <= offset)
		close(remove_at(q, 0));
}
