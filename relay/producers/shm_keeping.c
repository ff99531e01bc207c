/* Handing the memory that producers share to the keeper, and back. */
#include "relay/producers/producer.h"
#include "relay/producers/producers_internal.h"
#include "relay/producers/shm_keeper.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

/* A keeper that cannot be started is not tried for each producer. */
#define KEEPER_RETRY_MS 10000u

static bool
give(struct producers *ps, const struct local *l)
{
	return shm_keeper_add(ps->keeper, l->channel, shm_page_size(l->shm),
	    shm_fd(l->shm)) == 0;
}

static void
give_up_keeping(struct producers *ps, const char *why)
{
	log_limited(&ps->refusals, loop_now_ms(), LOG_LEVEL_WARN,
	    "shared memory would be lost if the relay was killed: %s", why);
	shm_keeper_close(ps->keeper);
	ps->keeper = NULL;
	ps->keeper_failed_ms = loop_now_ms();
}

/* Starts a keeper, and gives it the memory of all. */
static bool
start_keeper(struct producers *ps)
{
	struct orphan *o;
	struct local *l;
	char err[160];

	if (ps->keeper_failed_ms != 0 &&
	    loop_now_ms() - ps->keeper_failed_ms < KEEPER_RETRY_MS)
		return false;
	ps->keeper = shm_keeper_start(ps->state_dirfd, err, sizeof(err));
	if (ps->keeper == NULL) {
		give_up_keeping(ps, err);
		return false;
	}
	TAILQ_FOREACH(l, &ps->locals, link)
		if (l->shm != NULL && !give(ps, l))
			goto fail;
	TAILQ_FOREACH(o, &ps->orphans, link)
		if (o->shm != NULL && shm_keeper_add(ps->keeper, o->channel,
		    shm_page_size(o->shm), shm_fd(o->shm)) != 0)
			goto fail;
	return true;

fail:
	give_up_keeping(ps, "its keeper does not listen");
	return false;
}

void
local_keep(struct local *l)
{
	struct producers *ps = l->owner;

	if (ps->state_dirfd < 0)
		return;
	if (ps->keeper != NULL) {
		if (give(ps, l))
			return;
		shm_keeper_close(ps->keeper);
		ps->keeper = NULL;
	}
	(void)start_keeper(ps);
}

void
local_unkeep(struct producers *ps, uint32_t channel)
{
	/* A keeper that has died is noticed, and replaced, with the next memory. */
	if (ps->keeper != NULL && shm_keeper_drop(ps->keeper, channel) != 0)
		give_up_keeping(ps, "its keeper does not listen");
}
