#include "service/ingest/losses.h"

#include <stdlib.h>

#include "service/ingest/session_losses.h"
#include "service/ingest/writers.h"
#include "service/model/model.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/link/link_wire.h"
#include "transport/shm/shm.h"

/*
 * Most writers of one producer with a loss that their next chunk has to report.
 * For further ones only the gap in the chunk ids shows that data is missing.
 */
#define PENDING_MAX 1024u

struct pending {
	uint32_t writer;
	uint16_t buffer;
	uint32_t bits;
};

struct producer_losses {
	struct pending *pending;
	size_t n;
	size_t cap;
};

void
losses_free(struct producer *p)
{
	if (p->losses == NULL)
		return;
	free(p->losses->pending);
	free(p->losses);
	p->losses = NULL;
}

static struct pending *
find_pending(struct producer_losses *l, uint32_t writer, uint16_t buffer)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (l->pending[i].writer == writer &&
		    l->pending[i].buffer == buffer)
			return &l->pending[i];
	return NULL;
}

static struct pending *
add_pending(struct producer_losses *l, uint32_t writer, uint16_t buffer)
{
	size_t cap = l->cap == 0 ? 4 : l->cap * 2;
	struct pending *grown;

	if (l->n >= PENDING_MAX)
		return NULL;
	if (l->n == l->cap) {
		grown = realloc(l->pending, cap * sizeof(*grown));
		if (grown == NULL)
			return NULL;
		l->pending = grown;
		l->cap = cap;
	}
	l->pending[l->n] = (struct pending){ .writer = writer,
		.buffer = buffer };
	return &l->pending[l->n++];
}

/* Without memory only the gap in the chunk ids shows the loss. */
static void
have_next_chunk_say(struct producer *p, uint32_t writer, uint16_t buffer,
    uint32_t bits)
{
	struct pending *q;

	if (p->losses == NULL)
		p->losses = calloc(1, sizeof(*p->losses));
	if (p->losses == NULL)
		return;
	if ((q = find_pending(p->losses, writer, buffer)) == NULL)
		q = add_pending(p->losses, writer, buffer);
	if (q != NULL)
		q->bits |= bits;
}

uint32_t
losses_take_bits(struct producer *p, uint32_t writer, uint16_t buffer)
{
	struct producer_losses *l = p->losses;
	struct pending *q = find_pending(l, writer, buffer);
	uint32_t bits;

	if (q == NULL)
		return 0;
	bits = q->bits;
	*q = l->pending[--l->n];
	if (l->n == 0)
		losses_free(p);
	return bits;
}

static void
add_loss(struct machine_loss *to, const struct link_loss *loss)
{
	to->chunks += loss->chunks;
	to->packets += loss->packets;
	to->bytes += loss->bytes;
}

void
losses_count(struct service *s, struct machine *m, const struct link_loss *loss)
{
	add_loss(&s->counters.lost[loss->cause], loss);
	add_loss(&m->contact.losses[loss->cause], loss);
}

/*
 * The buffer that the loss is missing from; NULL: gone, or not the producer's.
 */
static struct session_buffer *
buffer_of(struct producer *p, const struct link_loss *loss)
{
	uint32_t id = loss->buffer != 0 ? loss->buffer :
	    writers_buffer_of(p, loss->writer);

	if (id == 0 || id > UINT16_MAX || !writers_may_use(p, (uint16_t)id))
		return NULL;
	return p->service->buffers[id];
}

static void
take_of_producer(struct producer *p, const struct link_loss *loss)
{
	struct session_buffer *b = buffer_of(p, loss);
	struct tb_origin origin = {
		.producer = p->id,
		.writer = loss->writer,
		.machine = p->machine->id,
		.uid = p->uid,
		.pid = p->pid,
	};

	if (b == NULL)
		return;
	/* No real writer: each such id would be one more sequence. */
	if (loss->writer > SHM_MAX_WRITER_ID) {
		session_losses_add_to(b->session, p->machine->id, 0, NULL,
		    loss);
		return;
	}
	session_losses_add(b->session, &origin, p->name, loss);
	have_next_chunk_say(p, loss->writer, b->id, TB_LOSS_PRESENT |
	    LINK_LOSS_BIT(loss->cause));
	/* The loss may be the rest of a chunk that was scraped. */
	trace_buffer_give_up(b->tb, p->id, loss->writer);
}

/*
 * Counts a block that the relay cannot read any more: its writers are unknown,
 * and so is its session where the producer has several.
 */
static void
take_of_somebody(struct producer *p, const struct link_loss *loss)
{
	const struct ds_instance *first = TAILQ_FIRST(&p->instances), *i;
	bool several = false;

	TAILQ_FOREACH(i, &p->instances, of_producer)
		several |= i->session != first->session;
	if (first != NULL && !several)
		session_losses_add_to(first->session, p->machine->id, 0, NULL,
		    loss);
	else
		TAILQ_FOREACH(i, &p->instances, of_producer)
			(void)session_losses_mark(i->session, p->machine->id,
			    loss->cause);
}

void
losses_tell(struct producer *p, const struct link_loss *loss)
{
	if (loss->writer == 0 && loss->buffer == 0)
		take_of_somebody(p, loss);
	else
		take_of_producer(p, loss);
}

void
losses_of_producer(struct producer *p, const struct link_loss *loss)
{
	losses_count(p->service, p->machine, loss);
	take_of_producer(p, loss);
}

void
losses_of_machine(struct machine *m, struct session *s,
    const struct link_loss *loss)
{
	losses_count(s->service, m, loss);
	session_losses_add_to(s, m->id, 0, NULL, loss);
}

void
losses_unknown(struct ds_instance *i, uint32_t cause)
{
	struct machine *m = i->producer->machine;

	if (!session_losses_mark(i->session, m->id, cause))
		return;
	m->contact.losses[cause].times++;
	i->session->service->counters.lost[cause].times++;
}
