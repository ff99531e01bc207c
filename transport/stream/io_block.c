#include <stdlib.h>

#include "transport/stream/io_line.h"

/* Bytes that a thread keeps for later; the rest goes back to malloc(). */
#define STORE_MAX    (2u * 1024u * 1024u)
#define RETURNED_MAX (2u * 1024u * 1024u)

static const size_t sizes[IO_SIZES] = {
	512u, 4u * 1024u, 32u * 1024u, IO_BLOCK_MAX,
};

static unsigned
size_for(size_t len)
{
	unsigned i = 0;

	while (i < IO_SIZES - 1 && sizes[i] < len)
		i++;
	return i;
}

struct io_block *
io_block_new(size_t cap)
{
	struct io_block *b = malloc(sizeof(*b) + cap);

	if (b == NULL)
		return NULL;
	b->next = NULL;
	b->len = b->shown = 0;
	b->cap = cap;
	b->last = false;
	return b;
}

static void
store(struct io_thread *t, struct io_block *b)
{
	unsigned i = size_for(b->cap);

	if (t->stored + io_block_size(b) > STORE_MAX) {
		free(b);
		return;
	}
	t->stored += io_block_size(b);
	b->next = t->store[i];
	t->store[i] = b;
}

static void
store_returned(struct io_thread *t)
{
	struct io_block *b = atomic_exchange(&t->returned, NULL), *next;

	for (; b != NULL; b = next) {
		next = b->next;
		atomic_fetch_sub(&t->returned_bytes, io_block_size(b));
		store(t, b);
	}
}

struct io_block *
io_block_get(struct io_thread *t, size_t len)
{
	unsigned i = size_for(len);
	struct io_block *b;

	if (t->store[i] == NULL)
		store_returned(t);
	if ((b = t->store[i]) == NULL)
		return io_block_new(sizes[i]);
	t->store[i] = b->next;
	t->stored -= io_block_size(b);
	b->next = NULL;
	b->len = b->shown = 0;
	b->last = false;
	return b;
}

void
io_block_give_back(struct io_thread *t, struct io_block *b)
{
	struct io_block *head;

	if (atomic_load(&t->returned_bytes) > RETURNED_MAX) {
		free(b);
		return;
	}
	atomic_fetch_add(&t->returned_bytes, io_block_size(b));
	/* Only whole lists are taken off: no block comes back unnoticed. */
	head = atomic_load(&t->returned);
	do
		b->next = head;
	while (!atomic_compare_exchange_weak(&t->returned, &head, b));
}

void
io_blocks_free(struct io_thread *t)
{
	struct io_block *b;
	unsigned i;

	free(t->unpacked);
	t->unpacked = NULL;
	store_returned(t);
	for (i = 0; i < IO_SIZES; i++) {
		while ((b = t->store[i]) != NULL) {
			t->store[i] = b->next;
			free(b);
		}
	}
	t->stored = 0;
}
