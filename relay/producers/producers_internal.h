/*
 * producers_internal: what the producers have in common, for this
 * room alone.
 */
#ifndef RELAY_PRODUCERS_PRODUCERS_INTERNAL_H
#define RELAY_PRODUCERS_PRODUCERS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/producers/producer.h"
#include "relay/producers/producers.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_host.h"

struct shm_keeper;

/* Producers that outlived a relay notice in this time that it has gone. */
#define RECOVER_AGAIN_MS 1500u

/* Memory of a producer of the relay before this one (orphans.c). */
struct orphan {
	TAILQ_ENTRY(orphan) link;
	struct producers *owner;
	uint32_t channel;
	struct shm *shm; /* NULL: it cannot be read */
	bool last;       /* pass */
	bool complete;   /* all of it found room */
};

struct producers {
	struct loop *loop;
	const struct relay_settings *settings; /* borrowed */
	int state_dirfd;                       /* borrowed; -1: none */
	struct upstream up;
	uint32_t (*new_channel)(void *arg);
	void *channel_arg;
	struct rpc_service service;
	struct rpc_guard guard;
	struct local_list locals; /* those that are initialized */
	size_t n_locals;
	TAILQ_HEAD(, talker) talkers; /* by user */
	size_t n_connections;
	uint64_t shm_bytes;       /* of all together */
	bool open;                /* new ones are announced at once */
	bool away;                /* they are when upward is there again */
	unsigned hasty;           /* announced meanwhile, for a trigger */
	bool holding;             /* producers_hold() */
	uint64_t last_instance;
	uint64_t last_flush;
	uint64_t flush_patience_ms;
	struct log_limit refusals;

	struct shm_keeper *keeper;    /* NULL: none (yet) */
	uint64_t keeper_failed_ms; /* loop_now_ms() of the last failure */
	/* Memory of the relay before us, until all of it went up. */
	TAILQ_HEAD(, orphan) orphans;
	struct loop_timer *orphans_timer;
	void (*recovered)(void *arg); /* NULL: not asked for, or called */
	void *recovered_arg;
	struct loop_call recovered_call;
	uint64_t recover_again_ms;
};

/* ---- control_rate.c ---- */

/* Clears the debt of all users. */
void talkers_forgive(struct producers *ps);
void talkers_free(struct producers *ps);

/* ---- shm_keeping.c ---- */

/*
 * Gives the keeper a producer's memory, to outlive this relay.  Where that
 * fails, it is logged.
 */
void local_keep(struct local *l);
/* Takes it back: all chunks in the memory have gone upward. */
void local_unkeep(struct producers *ps, uint32_t channel);

/* ---- orphans.c ---- */

/* As producers_lost(): the last scrape of each, then forgets them. */
void orphans_lost(struct producers *ps);
/* Says nothing upward; the keeper has their memory still. */
void orphans_forget(struct producers *ps);

#endif /* RELAY_PRODUCERS_PRODUCERS_INTERNAL_H */
