#include "service/session/link_loss.h"

#include "service/session/link_internal.h"

void
link_loss_take(struct link *l, struct link_channel *c,
    const struct link_loss *loss)
{
	uint32_t cause = loss->cause < LINK_LOSS_CAUSES ? loss->cause : 0;
	struct machine_loss *m = &l->machine->contact.losses[cause];

	m->chunks += loss->chunks;
	m->packets += loss->packets;
	m->bytes += loss->bytes;
}
