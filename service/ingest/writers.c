#include "service/ingest/writers.h"

#include <stdlib.h>
#include <string.h>

#include "service/ingest/former_ids.h"
#include "service/ingest/quota.h"
#include "service/model/model.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/shm/shm.h"

/*
 * Writer ids are 1..32767, counted up, and most producers have a few: pages of
 * 32 ids, each made when first used.
 */
#define WRITER_PAGE_BITS 5
#define WRITER_PAGE_SIZE (1u << WRITER_PAGE_BITS)

bool
writers_may_use(const struct producer *p, uint16_t buffer)
{
	size_t i;

	for (i = 0; i < p->n_allowed; i++)
		if (p->allowed[i] == buffer)
			return true;
	return false;
}

int
writers_allow(struct producer *p, uint16_t buffer)
{
	uint16_t *grown;
	size_t cap;

	if (writers_may_use(p, buffer))
		return 0;
	if (p->n_allowed == p->allowed_cap) {
		cap = p->allowed_cap == 0 ? 4 : p->allowed_cap * 2;
		grown = realloc(p->allowed, cap * sizeof(*grown));
		if (grown == NULL)
			return -1;
		p->allowed = grown;
		p->allowed_cap = cap;
	}
	p->allowed[p->n_allowed++] = buffer;
	return 0;
}

void
writers_forget_buffer(struct producer *p, uint16_t buffer)
{
	size_t i, n;

	if (p->former != NULL)
		former_ids_forget_buffer(p, buffer);
	for (i = 0; i < p->n_allowed; i++)
		if (p->allowed[i] == buffer)
			break;
	if (i == p->n_allowed)
		return;
	p->allowed[i] = p->allowed[--p->n_allowed];
	for (n = 0; n < p->n_writer_pages; n++) {
		if (p->writer_pages[n] == NULL)
			continue;
		for (i = 0; i < WRITER_PAGE_SIZE; i++)
			if (p->writer_pages[n][i] == buffer) {
				p->writer_pages[n][i] = 0;
				p->n_writers--;
			}
	}
}

/* The page of a valid writer id; NULL: there is none. */
static uint16_t *
writer_page(const struct producer *p, uint32_t writer)
{
	size_t at = writer >> WRITER_PAGE_BITS;

	return at < p->n_writer_pages ? p->writer_pages[at] : NULL;
}

/* As writer_page(), made where there is none; NULL: no memory. */
static uint16_t *
make_writer_page(struct producer *p, uint32_t writer)
{
	size_t at = writer >> WRITER_PAGE_BITS, n;
	uint16_t **grown;

	if (at >= p->n_writer_pages) {
		/* Ids are counted up: doubling keeps the copying short. */
		n = at < 2 * p->n_writer_pages ? 2 * p->n_writer_pages :
		    at + 1;
		if ((grown = realloc(p->writer_pages, n * sizeof(*grown))) ==
		    NULL)
			return NULL;
		memset(grown + p->n_writer_pages, 0,
		    (n - p->n_writer_pages) * sizeof(*grown));
		p->writer_pages = grown;
		p->n_writer_pages = n;
	}
	if (p->writer_pages[at] == NULL)
		p->writer_pages[at] = calloc(WRITER_PAGE_SIZE,
		    sizeof(uint16_t));
	return p->writer_pages[at];
}

void
writers_register(struct producer *p, uint32_t writer, uint32_t buffer)
{
	uint16_t *page, *entry;

	if (p->former != NULL &&
	    (buffer = former_ids_buffer(p, buffer)) >= FORMER_IDS_LATE)
		return;
	if (writer == 0 || writer > SHM_MAX_WRITER_ID || buffer == 0 ||
	    buffer > UINT16_MAX || !writers_may_use(p, (uint16_t)buffer)) {
		p->service->counters.wrong_buffer++;
		return;
	}
	if ((page = make_writer_page(p, writer)) == NULL)
		return;
	entry = &page[writer & (WRITER_PAGE_SIZE - 1)];
	if (*entry == 0) {
		if (p->quota != NULL && !quota_take_sequence(p, writer))
			return;
		p->n_writers++;
	}
	*entry = (uint16_t)buffer;
}

void
writers_unregister(struct producer *p, uint32_t writer)
{
	const struct session_buffer *b;
	uint16_t *page, *entry;

	if (p->quota != NULL)
		quota_return_sequence(p, writer);
	if (writer > SHM_MAX_WRITER_ID ||
	    (page = writer_page(p, writer)) == NULL)
		return;
	entry = &page[writer & (WRITER_PAGE_SIZE - 1)];
	if (*entry == 0)
		return;
	if ((b = p->service->buffers[*entry]) != NULL && b->tb != NULL)
		trace_buffer_writer_gone(b->tb, p->id, writer);
	*entry = 0;
	p->n_writers--;
}

uint16_t
writers_buffer_of(const struct producer *p, uint32_t writer)
{
	const uint16_t *page;

	if (writer > SHM_MAX_WRITER_ID ||
	    (page = writer_page(p, writer)) == NULL)
		return 0;
	return page[writer & (WRITER_PAGE_SIZE - 1)];
}

void
writers_free(struct producer *p)
{
	size_t n;

	for (n = 0; n < p->n_writer_pages; n++)
		free(p->writer_pages[n]);
	free(p->writer_pages);
	free(p->allowed);
}
