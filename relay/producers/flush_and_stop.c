/*
 * Acknowledgements of flushes and stops, and the end of a producer: each goes
 * upward behind all chunks that stood in shared memory before it.
 */
#include <stdlib.h>

#include "relay/producers/producer.h"
#include "relay/producers/producers_internal.h"
#include "transport/loop/loop.h"
#include "transport/shm/commit_wire.h"
#include "transport/shm/shm.h"

void
local_set_state(struct local *l, enum local_state state)
{
	l->state = state;
	if (state == LOCAL_ENDED && l->talk_timer != NULL)
		loop_timer_clear(l->talk_timer);
}

/* ---- flushes ---- */

static void
flush_free(struct local *l, struct local_flush *f)
{
	bool settles = f->remote == 0 && f->id > l->owner->settle_after;

	TAILQ_REMOVE(&l->flushes, f, link);
	l->n_flushes--;
	free(f);
	if (settles)
		local_settled(l);
}

void
local_forget_flushes(struct local *l)
{
	struct local_flush *f;

	while ((f = TAILQ_FIRST(&l->flushes)) != NULL)
		flush_free(l, f);
	loop_timer_free(l->flush_timer);
	l->flush_timer = NULL;
}

/* The oldest flush that waits for its acknowledgement. */
static struct local_flush *
first_waiting(struct local *l)
{
	struct local_flush *f;

	TAILQ_FOREACH(f, &l->flushes, link)
		if (f->state == FLUSH_ASKED)
			return f;
	return NULL;
}

static void
arm(struct local *l)
{
	struct local_flush *f = first_waiting(l);
	uint64_t now = loop_now_ms(), at;

	if (f == NULL) {
		loop_timer_clear(l->flush_timer);
		return;
	}
	at = f->since_ms + l->owner->flush_patience_ms;
	loop_timer_set(l->flush_timer, at > now ? at - now : 1, 0);
}

/* A producer that never answers: its memory is scraped without that. */
static void
patience_cb(void *arg)
{
	struct local *l = arg;
	struct local_flush *f = first_waiting(l);

	if (f != NULL) {
		f->state = FLUSH_SCRAPED;
		(void)!local_scrape(l, f->session, LOCAL_REST_UNKNOWN);
	}
	arm(l);
}

void
local_flush_begin(struct local *l, uint64_t id, uint64_t remote,
    uint64_t session, bool acked)
{
	struct local_flush *f;

	if (l->n_flushes >= LOCAL_FLUSHES_MAX)
		flush_free(l, TAILQ_FIRST(&l->flushes));
	if (l->flush_timer == NULL)
		l->flush_timer = loop_timer_new(l->owner->loop, patience_cb,
		    l);
	f = calloc(1, sizeof(*f));
	if (f == NULL || l->flush_timer == NULL) {
		free(f);
		rpc_conn_close(l->server.conn, "out of memory for a flush");
		return;
	}
	f->id = id;
	f->remote = remote;
	f->session = session;
	f->state = acked ? FLUSH_ACKED : FLUSH_ASKED;
	f->since_ms = loop_now_ms();
	TAILQ_INSERT_TAIL(&l->flushes, f, link);
	l->n_flushes++;
	if (acked)
		local_settle(l);
	else if (first_waiting(l) == f)
		arm(l);
}

void
local_flush_acked(struct local *l, uint64_t id)
{
	struct local_flush *f;

	TAILQ_FOREACH(f, &l->flushes, link)
		if (f->id <= id)
			f->state = FLUSH_ACKED;
	local_settle(l);
}

static void
put_flush(struct local *l, const struct local_flush *f)
{
	const struct upstream *up = &l->owner->up;
	uint8_t *out;

	if (f->remote != 0 && local_is_known(l) && up->ops->reserve(up->arg,
	    l->channel, COMMIT_FLUSH_MAX, 0, &out) == UPSTREAM_ROOM)
		up->ops->commit(up->arg, l->channel, commit_put_flush(out,
		    f->remote));
}

/* ---- all of it ---- */

/* Sessions whose chunks are to be scraped. */
struct due {
	bool any;
	bool ours; /* a flush of producers_settle() was acknowledged */
	uint64_t session; /* 0: of several */
};

static void
add_due(struct due *d, uint64_t session)
{
	if (!d->any)
		d->session = session;
	else if (d->session != session)
		d->session = 0;
	d->any = true;
}

static struct due
what_is_due(struct local *l)
{
	struct due d = { 0 };
	struct local_instance *i;
	struct local_flush *f;

	/*
	 * For our own flush nothing is scraped: what has not been committed is
	 * of packets behind it.
	 */
	TAILQ_FOREACH(f, &l->flushes, link)
		if (f->state == FLUSH_ACKED && f->remote == 0)
			d.ours = true;
		else if (f->state == FLUSH_ACKED)
			add_due(&d, f->session);
	TAILQ_FOREACH(i, &l->instances, link)
		if (i->state == LOCAL_INSTANCE_STOPPED)
			add_due(&d, i->session);
	if (l->state == LOCAL_ENDED) {
		d.any = true;
		d.session = 0;
	}
	return d;
}

static void
say_it(struct local *l)
{
	struct local_instance *i, *inext;
	struct local_flush *f, *fnext;

	TAILQ_FOREACH_SAFE(f, &l->flushes, link, fnext)
		if (f->state == FLUSH_ACKED) {
			put_flush(l, f);
			flush_free(l, f);
		}
	if (l->flush_timer != NULL)
		arm(l);
	TAILQ_FOREACH_SAFE(i, &l->instances, link, inext)
		if (i->state == LOCAL_INSTANCE_STOPPED) {
			local_put_value(l, LINK_UP_STOPPED, i->remote);
			local_instance_free(l, i);
		}
}

void
local_free(struct local *l)
{
	struct producers *ps = l->owner;

	/* First: the next relay must not scrape memory of a closed channel. */
	local_unkeep(ps, l->channel);
	if (l->state != LOCAL_SILENT)
		ps->up.ops->put(ps->up.arg, l->channel, LINK_UP_CLOSE, NULL, 0,
		    0);
	if (l->state == LOCAL_ANNOUNCED || l->state == LOCAL_ENDED)
		local_keep_for_move(l);
	TAILQ_REMOVE(&ps->locals, l, link);
	ps->n_locals--;
	local_forget_flushes(l);
	local_leave_talker(l);
	loop_timer_free(l->talk_timer);
	local_free_ids(l);
	local_free_sources(l);
	if (l->shm != NULL)
		ps->shm_bytes -= shm_size(l->shm);
	shm_free(l->shm);
	free(l->name);
	free(l->sdk_version);
	free(l);
}

void
local_settle(struct local *l)
{
	struct due d;

	if (l->state == LOCAL_ENDED && l->owner->holding)
		return;
	d = what_is_due(l);
	l->settling = d.any && !local_scrape(l, d.session,
	    l->state == LOCAL_ENDED ? LOCAL_REST_NONE : LOCAL_REST_COMES);
	if ((!d.any && !d.ours) || l->settling)
		return;
	say_it(l);
	if (l->state == LOCAL_ENDED)
		local_free(l);
}
