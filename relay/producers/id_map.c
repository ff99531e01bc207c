#include <stdlib.h>
#include <string.h>

#include "relay/producers/producer.h"
#include "relay/producers/producers_internal.h"

/* Writer ids are 1..32767: 128 pages of 256, each made when first used. */
#define PAGE_BITS 8
#define PAGE_SIZE (1u << PAGE_BITS)
#define PAGES ((SHM_MAX_WRITER_ID + 1) >> PAGE_BITS)

/* ---- instances ---- */

bool
local_instance_advance(struct local_instance *i, enum local_instance_state to)
{
	if (i->state >= to)
		return false;
	i->state = to;
	return true;
}

struct local_instance *
local_find_instance(struct local *l, uint64_t id)
{
	struct local_instance *i;

	TAILQ_FOREACH(i, &l->instances, link)
		if (i->id == id)
			return i;
	return NULL;
}

struct local_instance *
local_find_remote(struct local *l, uint64_t remote)
{
	struct local_instance *i;

	TAILQ_FOREACH(i, &l->instances, link)
		if (i->remote == remote)
			return i;
	return NULL;
}

void
local_instance_free(struct local *l, struct local_instance *i)
{
	struct local_buffer *b = local_find_buffer(l, i->buffer);

	if (b != NULL)
		b->instances--;
	TAILQ_REMOVE(&l->instances, i, link);
	l->n_instances--;
	free(i);
}

/* Frees an instance that stops: its producer may never acknowledge the stop. */
static void
forget_a_stopping_one(struct local *l)
{
	struct local_instance *i;

	TAILQ_FOREACH(i, &l->instances, link)
		if (i->state == LOCAL_INSTANCE_STOPPING)
			break;
	if (i != NULL)
		local_instance_free(l, i);
}

struct local_instance *
local_instance_new(struct local *l, uint64_t remote,
    const struct local_source *ds, uint64_t session, uint16_t buffer)
{
	struct local_instance *i;
	struct local_buffer *b;

	if (l->n_instances >= LOCAL_INSTANCES_MAX)
		forget_a_stopping_one(l);
	if (l->n_instances >= LOCAL_INSTANCES_MAX)
		return NULL;
	if ((i = calloc(1, sizeof(*i) + strlen(ds->descriptor.name) + 1)) == NULL)
		return NULL;
	strcpy(i->name, ds->descriptor.name);
	i->id = ++l->owner->last_instance;
	i->remote = remote;
	i->session = session;
	i->buffer = buffer;
	i->notifies_stop = ds->descriptor.will_notify_on_stop;
	i->no_flush = ds->descriptor.no_flush;
	if ((b = local_find_buffer(l, buffer)) != NULL)
		b->instances++;
	TAILQ_INSERT_TAIL(&l->instances, i, link);
	l->n_instances++;
	return i;
}

/* ---- buffers ---- */

struct local_buffer *
local_find_buffer(const struct local *l, uint32_t id)
{
	size_t n;

	/* The newest first: it is the one that is written to. */
	for (n = l->n_buffers; n-- > 0;)
		if (l->buffers[n].id == id)
			return &l->buffers[n];
	return NULL;
}

bool
local_buffer_was(const struct local *l, uint32_t id)
{
	return id != 0 && id <= UINT16_MAX &&
	    (l->buffers_wrapped || id <= l->last_buffer);
}

static void
unbind_writers(struct local *l, uint16_t buffer)
{
	size_t n, k;

	for (n = 0; l->writer_pages != NULL && n < PAGES; n++)
		for (k = 0; l->writer_pages[n] != NULL && k < PAGE_SIZE; k++)
			if (l->writer_pages[n][k] == buffer) {
				l->writer_pages[n][k] = 0;
				l->n_writers--;
			}
}

static void
forget_buffer(struct local *l, size_t at)
{
	struct local_instance *i;
	uint16_t id = l->buffers[at].id;

	TAILQ_FOREACH(i, &l->instances, link)
		if (i->buffer == id)
			i->buffer = 0;
	unbind_writers(l, id);
	l->n_buffers--;
	memmove(&l->buffers[at], &l->buffers[at + 1],
	    (l->n_buffers - at) * sizeof(*l->buffers));
}

/* False: instances write to every buffer. */
static bool
forget_the_oldest_unused(struct local *l)
{
	size_t n;

	for (n = 0; n < l->n_buffers; n++)
		if (l->buffers[n].instances == 0) {
			forget_buffer(l, n);
			return true;
		}
	return false;
}

static bool
grow_buffers(struct local *l)
{
	size_t cap = l->buffers_cap == 0 ? 4 : l->buffers_cap * 2;
	struct local_buffer *grown;

	if (l->n_buffers < l->buffers_cap)
		return true;
	grown = realloc(l->buffers, cap * sizeof(*grown));
	if (grown == NULL)
		return false;
	l->buffers = grown;
	l->buffers_cap = cap;
	return true;
}

/* Returns the next free id; an id is used again only after all others. */
static uint16_t
new_buffer_id(struct local *l)
{
	do {
		if (++l->last_buffer == 0) {
			l->last_buffer = 1;
			l->buffers_wrapped = true;
		}
	} while (local_find_buffer(l, l->last_buffer) != NULL);
	return l->last_buffer;
}

uint16_t
local_buffer_for(struct local *l, uint64_t session, uint32_t remote)
{
	struct local_buffer *b;
	size_t n;

	for (n = 0; n < l->n_buffers; n++) {
		if (l->buffers[n].remote != remote)
			continue;
		if (l->buffers[n].session == session)
			return l->buffers[n].id;
		/* The collector uses its id for another session now. */
		forget_buffer(l, n);
		break;
	}
	if ((l->n_buffers >= LOCAL_BUFFERS_MAX &&
	    !forget_the_oldest_unused(l)) || !grow_buffers(l))
		return 0;
	b = &l->buffers[l->n_buffers];
	*b = (struct local_buffer){ .id = new_buffer_id(l), .remote = remote,
		.session = session };
	l->n_buffers++;
	return b->id;
}

/* ---- writers ---- */

bool
local_bind_writer(struct local *l, uint32_t writer, uint16_t buffer)
{
	uint16_t **page, *entry;

	if (writer == 0 || writer > SHM_MAX_WRITER_ID)
		return false;
	if (l->writer_pages == NULL && (l->writer_pages = calloc(PAGES,
	    sizeof(*l->writer_pages))) == NULL)
		return false;
	page = &l->writer_pages[writer >> PAGE_BITS];
	if (*page == NULL &&
	    (*page = calloc(PAGE_SIZE, sizeof(**page))) == NULL)
		return false;
	entry = &(*page)[writer & (PAGE_SIZE - 1)];
	if (*entry == buffer)
		return false;
	l->n_writers += *entry == 0;
	l->n_writers -= buffer == 0;
	*entry = buffer;
	return true;
}

uint16_t
local_writer_buffer(const struct local *l, uint32_t writer)
{
	const uint16_t *page;

	if (l->writer_pages == NULL || writer > SHM_MAX_WRITER_ID ||
	    (page = l->writer_pages[writer >> PAGE_BITS]) == NULL)
		return 0;
	return page[writer & (PAGE_SIZE - 1)];
}

void
local_each_writer(const struct local *l, void (*fn)(void *arg,
    uint32_t writer, uint16_t buffer), void *arg)
{
	size_t n, k;

	for (n = 0; l->writer_pages != NULL && n < PAGES; n++)
		for (k = 0; l->writer_pages[n] != NULL && k < PAGE_SIZE; k++)
			if (l->writer_pages[n][k] != 0)
				fn(arg, (uint32_t)(n << PAGE_BITS | k),
				    l->writer_pages[n][k]);
}

static void
free_writers(struct local *l)
{
	size_t n;

	for (n = 0; l->writer_pages != NULL && n < PAGES; n++)
		free(l->writer_pages[n]);
	free(l->writer_pages);
	l->writer_pages = NULL;
	l->n_writers = 0;
}

void
local_forget_ids(struct local *l)
{
	struct local_instance *i;

	while ((i = TAILQ_FIRST(&l->instances)) != NULL)
		local_instance_free(l, i);
	l->n_buffers = 0;
	free_writers(l);
	local_forget_parts(l);
}

void
local_free_ids(struct local *l)
{
	local_forget_ids(l);
	free(l->buffers);
	l->buffers = NULL;
	l->buffers_cap = 0;
}
