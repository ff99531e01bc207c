/* Shared memory that a relay before this one has left behind. */
#include <stdlib.h>
#include <unistd.h>

#include "relay/producers/producer.h"
#include "relay/producers/producers_internal.h"
#include "relay/producers/shm_keeper.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

static void
orphan_free(struct orphan *o)
{
	TAILQ_REMOVE(&o->owner->orphans, o, link);
	shm_free(o->shm);
	free(o);
}

/* Memory that cannot be read is listed too: its channel has to be closed. */
static void
found(void *arg, uint32_t channel, size_t page_size, int fd)
{
	struct producers *ps = arg;
	struct orphan *o = calloc(1, sizeof(*o));
	char err[160] = "no memory";

	if (o == NULL || (o->shm = shm_adopt(fd, page_size, err,
	    sizeof(err))) == NULL) {
		log_warn("shared memory of a producer of the relay before is "
		    "lost: %s", err);
		close(fd);
		if (o == NULL)
			return;
	}
	o->owner = ps;
	o->channel = channel;
	TAILQ_INSERT_TAIL(&ps->orphans, o, link);
}

static bool
scrape_orphan(void *arg, const struct shm_chunk *c, bool complete)
{
	struct orphan *o = arg;

	/* A header of zeros: the chunk was just being released. */
	if (c->writer_id == 0 || (!complete && !o->last) ||
	    (complete && shm_was_scraped(o->shm, c->page, c->index)))
		return true;
	/* A chunk that is not remembered would go upward with every pass. */
	if (complete && !shm_remember_scraped(o->shm, c) && !o->lost) {
		o->complete = false;
		return false;
	}
	if (local_put_orphan(o->owner, o->channel, c, complete) !=
	    UPSTREAM_LATER)
		return true;
	if (complete)
		shm_forget_scraped(o->shm, c->page, c->index);
	o->complete = false;
	return false;
}

static void
say_recovered(void *arg)
{
	struct producers *ps = arg;
	void (*done)(void *) = ps->recovered;

	ps->recovered = NULL;
	if (done != NULL)
		done(ps->recovered_arg);
}

/*
 * Puts the chunks in the memory of all orphans.  last: incomplete chunks, too;
 * closes the channels whose chunks all went upward.
 */
static void
pass(struct producers *ps, bool last)
{
	struct orphan *o, *next;

	TAILQ_FOREACH_SAFE(o, &ps->orphans, link, next) {
		o->last = last;
		o->complete = true;
		if (o->shm != NULL)
			shm_scrape_left(o->shm, scrape_orphan, o);
		if (!last || !o->complete)
			continue;
		local_unkeep(ps, o->channel);
		ps->up.ops->put(ps->up.arg, o->channel, LINK_UP_CLOSE, NULL, 0,
		    0);
		orphan_free(o);
	}
}

static void
again_cb(void *arg)
{
	struct producers *ps = arg;

	pass(ps, true);
	if (TAILQ_FIRST(&ps->orphans) != NULL)
		loop_timer_set(ps->orphans_timer, ps->recover_again_ms, 0);
	else
		say_recovered(ps);
}

void
orphans_forget(struct producers *ps)
{
	struct orphan *o;

	while ((o = TAILQ_FIRST(&ps->orphans)) != NULL)
		orphan_free(o);
	loop_timer_free(ps->orphans_timer);
	ps->orphans_timer = NULL;
}

void
orphans_lost(struct producers *ps)
{
	struct orphan *o;

	TAILQ_FOREACH(o, &ps->orphans, link) {
		/* The upstream counts the chunks with its own losses. */
		o->last = o->lost = true;
		if (ps->orphans_timer != NULL && o->shm != NULL)
			shm_scrape_left(o->shm, scrape_orphan, o);
		local_unkeep(ps, o->channel);
	}
	orphans_forget(ps);
	if (ps->recovered != NULL)
		loop_defer(ps->loop, &ps->recovered_call, say_recovered, ps);
}

void
producers_recover(struct producers *ps, bool keep, void (*done)(void *),
    void *arg)
{
	if (keep) {
		ps->recovered = done;
		ps->recovered_arg = arg;
	}
	if (ps->state_dirfd >= 0 && ps->keeper == NULL)
		ps->keeper = shm_keeper_find(ps->state_dirfd, found, ps);
	if (!keep || TAILQ_FIRST(&ps->orphans) == NULL ||
	    (ps->orphans_timer = loop_timer_new(ps->loop, again_cb, ps)) ==
	    NULL) {
		orphans_lost(ps);
		return;
	}
	pass(ps, false);
	loop_timer_set(ps->orphans_timer, ps->recover_again_ms, 0);
}
