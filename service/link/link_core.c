/*
 * The base of a link: charges for its memory, and deferred calls.  Calls no
 * other file of the link.
 */
#include "service/link/link_internal.h"
#include "service/settings/settings.h"
#include "transport/base/budget.h"

void
link_wake(struct link *l)
{
	if (l->ops != NULL)
		l->ops->wake(l->port);
}

void
link_post_run(struct link *l)
{
	if (l->run_posted)
		return;
	l->run_posted = true;
	loop_defer(l->service->loop, &l->run_call, l->run, l);
}

void
link_doom(struct link *l, const char *why)
{
	if (l->doomed != NULL || l->ended)
		return;
	l->doomed = why;
	refusals_count(&l->service->refusals, why);
	link_post_run(l);
}

bool
link_charge_connections(const struct service *s, size_t *charged, size_t now)
{
	struct budget *b = s->connection_memory;
	bool more = now > *charged;

	if (b == NULL)
		return true;
	budget_resize(b, *charged, now);
	*charged = now;
	if (!more || !budget_is_over(b))
		return true;
	b->memory_refused++;
	return false;
}

static bool
charge_peer(struct link *l, size_t now)
{
	uint32_t units = (uint32_t)(now / LINK_MEMORY_UNIT);
	struct per_peer_count *q = &l->table->memory;
	uint64_t most = l->service->settings->limits
	    .max_connection_memory_per_peer_kb / (LINK_MEMORY_UNIT / 1024);
	uint32_t more;

	if (units < l->charged_units)
		per_peer_count_give(q, l->peer, l->charged_units - units);
	if (units > l->charged_units) {
		more = units - l->charged_units;
		if (!per_peer_count_take_n(q, l->peer, more,
		    most > UINT32_MAX ? UINT32_MAX : (uint32_t)most))
			return false;
	}
	l->charged_units = units;
	return true;
}

void
link_charge(struct link *l)
{
	size_t now = l->queued_cost + link_out_bytes(l->out);

	if (!link_charge_connections(l->service, &l->charged, now))
		link_doom(l, "limits.max_connection_memory_kb is reached");
	if (!charge_peer(l, now))
		link_doom(l, "limits.max_connection_memory_per_peer_kb is "
		    "reached");
}
