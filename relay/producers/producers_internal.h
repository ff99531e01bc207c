/*
 * producers_internal: the state that all producers share, for this room alone.
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

struct former_local;
struct shm_keeper;

/* Time in which producers of a killed relay notice its end and stop writing. */
#define RECOVER_AGAIN_MS 1500u

/* Memory of a producer of the relay before this one (orphans.c). */
struct orphan {
	TAILQ_ENTRY(orphan) link;
	struct producers *owner;
	uint32_t channel;
	struct shm *shm; /* owned; NULL: the memory cannot be read */
	bool last;       /* this is the last pass: incomplete chunks, too */
	bool lost;       /* its link ended: no pass follows the last one */
	bool complete;   /* all chunks of this pass went upward */
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
	struct local_list locals; /* initialized producers */
	size_t n_locals;
	TAILQ_HEAD(, talker) talkers; /* one for each user */
	size_t n_connections;     /* limited by max_producers */
	uint64_t shm_bytes;       /* of all producers, limited by settings */
	bool open;                /* new producers are announced at once */
	bool away;                /* producers_away() was called last */
	unsigned hasty;           /* announced while away, for a trigger */
	bool holding;             /* producers_hold() */
	uint64_t last_instance;   /* last ids given */
	uint64_t last_flush;
	struct producers_settle settle; /* settled NULL: none is asked for */
	uint64_t settle_after;    /* flushes up to this id are of one before */
	uint32_t buffer_tag;      /* LinkOpen.buffer_tag of the link */
	STAILQ_HEAD(, former_local) formers; /* the oldest first; move.c's */
	size_t formers_cost;      /* as LINK_MOVES_MAX counts it */
	/*
	 * Some of the channels from..end-1 are of producers that there was no
	 * room or memory for; those below are known to be empty.
	 */
	uint32_t missing_from, missing_end;
	uint64_t (*channel_place)(void *arg, uint32_t channel);
	bool (*has_arrived)(void *arg, uint32_t channel, uint64_t place);
	uint64_t flush_patience_ms; /* LOCAL_FLUSH_PATIENCE_MS but in tests */
	struct log_limit refusals;

	struct shm_keeper *keeper;    /* owned; NULL: none (yet) */
	uint64_t keeper_failed_ms; /* loop_now_ms() of the last failure */
	/* Memory of the relay before us, until all its chunks went up. */
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
/* Takes it back, as no chunk in the memory is needed any more. */
void local_unkeep(struct producers *ps, uint32_t channel);

/* ---- move.c ---- */

/* Forgets producers that have ended: nothing of them will be moved. */
void formers_forget(struct producers *ps);

/* ---- orphans.c ---- */

/*
 * Scrapes every orphan for the last time, takes its memory back from the
 * keeper, and forgets it; recovered() is called on a later turn.
 */
void orphans_lost(struct producers *ps);
/* Frees all orphans; the keeper goes on to hold their memory. */
void orphans_forget(struct producers *ps);

#endif /* RELAY_PRODUCERS_PRODUCERS_INTERNAL_H */
