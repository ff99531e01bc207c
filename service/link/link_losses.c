/* Losses that a relay reports: counted for its machine, marked in traces. */
#include <stdlib.h>

#include "service/ingest/former_ids.h"
#include "service/ingest/losses.h"
#include "service/ingest/session_losses.h"
#include "service/link/link_internal.h"
#include "service/model/model.h"
#include "service/output/readback.h"
#include "service/packet/sequence_map.h"

/*
 * Marks a loss of a channel of the relay's previous link, in the trace of the
 * session that still has the buffer: for the channel's sequence there, or
 * without one for the machine.
 */
static void
take_of_old(struct link *l, const struct link_loss *loss)
{
	struct link_old_channel key = { .channel = loss->old_channel };
	const struct link_old_channel *old;
	struct session_buffer *b;

	if (l->n_old == 0 || loss->buffer == 0 || loss->buffer > UINT16_MAX)
		return;
	old = bsearch(&key, l->old, l->n_old, sizeof(key), link_channels_compare);
	b = l->service->buffers[loss->buffer];
	if (old == NULL || b == NULL ||
	    !readback_has_machine(b->session->readback, l->machine))
		return;
	session_losses_add_to(b->session, l->machine->id,
	    sequence_map_find_id(b->session->sequences, old->producer,
	    loss->writer), NULL, loss);
}

/* Names the buffer by its id here.  False: it is in none of our traces. */
static bool
translate(const struct producer *p, struct link_loss *loss)
{
	if (p->former == NULL)
		return true;
	loss->buffer = former_ids_buffer(p, loss->buffer);
	return loss->buffer < FORMER_IDS_LATE;
}

void
link_loss_take(struct link *l, struct link_channel *c,
    const struct link_loss *loss)
{
	struct link_loss known = *loss;

	if (known.cause >= LINK_LOSS_CAUSES)
		known.cause = 0;
	losses_count(l->service, l->machine, &known);
	if (known.old_channel != 0)
		take_of_old(l, &known);
	else if (c->producer != NULL && translate(c->producer, &known))
		losses_tell(c->producer, &known);
}
