/* Decides whether a relay resumes a link or begins anew; ends all of them. */
#include <string.h>

#include "service/ingest/quota.h"
#include "service/link/link_internal.h"
#include "service/settings/settings.h"

void
links_free(struct links *t)
{
	struct link *l;

	if (t == NULL)
		return;
	while ((l = TAILQ_FIRST(&t->all)) != NULL)
		link_end(l, LINK_GRACE_OVER, "the collector is ending");
	while ((l = TAILQ_FIRST(&t->ended)) != NULL)
		link_release(l);
	loop_timer_free(t->drain.timer);
	link_table_free(t);
}

/* Ends the relay's cut links: a relay that begins anew resumes none of them. */
static void
end_older(const struct links *t, const struct link_request *q)
{
	struct link *l;

	while ((l = link_table_find_cut(t, q)) != NULL)
		link_end(l, LINK_GRACE_OVER, "its relay began anew");
}

enum judgement {
	LINK_RESUMES,
	LINK_BEGINS_AGAIN, /* repeated Open: the first answer was lost */
	LINK_IS_ANOTHERS,  /* another relay's link of this id: ended */
	LINK_OPEN_IS_LATE,
};

/*
 * A LinkOpen may arrive late, when its relay has long connected anew: it must
 * not end the link that goes on, nor resume it by the numbers of the previous
 * link of the same id.  Until a block comes on a link its relay may not know
 * that it was opened.
 */
static enum judgement
judge(struct link *l, const struct link_request *q)
{
	const struct links *t = l->table;
	bool knows_us = q->knows_collector &&
	    memcmp(q->collector_id, t->collector_id, LINK_ID_BYTES) == 0;

	if (l->machine != q->machine ||
	    memcmp(l->relay_id, q->relay_id, LINK_ID_BYTES) != 0)
		return LINK_IS_ANOTHERS;
	if (!l->heard && (!knows_us || l->why == LINK_GRACE_OVER ||
	    l->why == LINK_GIVEN_UP))
		return LINK_BEGINS_AGAIN;
	if (!knows_us || q->last_sent < l->in.received ||
	    q->last_acknowledged > l->in.received ||
	    link_out_resume(l->out, q->received) != 0)
		return LINK_OPEN_IS_LATE;
	return LINK_RESUMES;
}

static struct link *
begin_anew(struct links *t, const struct link_request *q, const char **refused)
{
	const struct link_setting *set = &t->service->settings->link;
	struct link *l;

	*refused = "link.max_links is reached";
	if (t->n >= set->max_links)
		return NULL;
	*refused = "too many links of this user, certificate or address: "
	    "link.max_links_per_peer is reached";
	if (!per_peer_count_take(&t->peers, q->peer, set->max_links_per_peer))
		return NULL;
	quota_meet(t->service, q->machine);
	*refused = quota_admit_connection(q->machine,
	    link_table_attached(t, q));
	l = NULL;
	if (*refused == NULL) {
		*refused = "out of memory";
		l = link_new(t, q);
	}
	if (l == NULL) {
		per_peer_count_give(&t->peers, q->peer, 1);
		return NULL;
	}
	link_table_add(l);
	link_table_take_old(l, q);
	return l;
}

struct link *
link_open(struct links *t, const struct link_request *q,
    const struct link_port_ops *ops, void *port, enum link_why *why,
    const char **refused)
{
	struct link *l = link_table_find(t, q->link_id);
	uint64_t taken_before;

	if (l != NULL && (l->peer != q->peer ||
	    !principal_equal(&l->who, &q->who))) {
		*refused = "this link is another peer's";
		return NULL;
	}
	if (l != NULL) {
		switch (judge(l, q)) {
		case LINK_RESUMES:
			*why = LINK_RESUMED;
			goto attach;
		case LINK_BEGINS_AGAIN:
			*why = l->why;
			if (l->why != LINK_MOVED)
				goto attach;
			/* The relay tells anew what it has, which may be more. */
			link_end(l, LINK_MOVED, "its relay opens it again");
			break;
		case LINK_OPEN_IS_LATE:
			*refused = "this link went on without this connection";
			return NULL;
		case LINK_IS_ANOTHERS:
			link_end(l, LINK_GIVEN_UP, "its relay is another");
			break;
		}
	}
	*why = link_table_why_anew(t, q, &taken_before);
	*refused = NULL;
	/* A relay that left and comes back: as from any other collector. */
	if (*why == LINK_MOVED)
		*why = LINK_COLLECTOR_RESTARTED;
	if (*why == LINK_COLLECTOR_RESTARTED && q->moves == NULL &&
	    q->can_move && !TAILQ_EMPTY(&t->service->sessions)) {
		*why = LINK_MOVES;
		return NULL;
	}
	end_older(t, q);
	if ((l = begin_anew(t, q, refused)) == NULL)
		return NULL;
	if (*why == LINK_COLLECTOR_RESTARTED && q->moves != NULL &&
	    link_moves_fit(t, q->moves)) {
		*why = LINK_MOVED;
		if ((*refused = link_moves_apply(l, q)) != NULL) {
			link_end(l, LINK_GIVEN_UP, *refused);
			return NULL;
		}
	}
	l->why = *why;
	l->taken_before = taken_before;
attach:
	t->opened[*why]++;
	link_attach(l, ops, port);
	return l;
}
