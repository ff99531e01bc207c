/*
 * producers: the local producers of a relay: their connections, data sources,
 * writers and shared memory; the ProducerPort that they see.
 *
 * They are answered at once, with or without a collector, get shared memory of
 * the relay (UNIX sockets; others send their chunks as data), and keep it for
 * as long as they are connected, whatever happens upward.  Their chunks are
 * copied out and go upward as data.  They see ids of the relay's own for
 * buffers, instances and flushes, which are never used for two things, so that
 * what was meant for a collector that is gone never lands in the next one's.
 *
 * Every byte a producer says is untrusted; what breaks the rules is discarded
 * and counted.
 */
#ifndef RELAY_PRODUCERS_PRODUCERS_H
#define RELAY_PRODUCERS_PRODUCERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/producers/upstream.h"
#include "transport/base/compiler.h"

struct loop;
struct producers;
struct relay_settings;
struct rpc_service;
struct rpc_guard;

struct producers_setup {
	struct loop *loop;
	const struct relay_settings *settings; /* borrowed */
	/*
	 * Where the next relay finds those who keep the shared memory when this
	 * one is killed (relay/producers/shm_keeper.h).  Borrowed.  -1: it ends
	 * with us.
	 */
	int state_dirfd;
	struct upstream upward;
	/* Numbers of new channels, from the outbox. */
	uint32_t (*new_channel)(void *arg);
	void *channel_arg;
};

struct producers *producers_new(const struct producers_setup *setup,
    char *err, size_t err_size) MUST_CHECK;
/*
 * Legal when all connections have ended: the guard's gone() was called for
 * each, on the turns of the loop after rpc_conns_close_all().  NULL is fine.
 */
void producers_free(struct producers *ps);

/*
 * The relay ends.  Producers whose connections end from now on have not noticed
 * yet, and write for a moment longer: their memory is looked at for the last
 * time, and their end said upward, in producers_let_go().
 */
void producers_hold(struct producers *ps);
void producers_let_go(struct producers *ps);

/* The service that listeners offer, and the limit of connections to it. */
const struct rpc_service *producers_service(struct producers *ps);
const struct rpc_guard *producers_guard(struct producers *ps);

/*
 * Takes over shared memory of a relay that was killed.  With keep, its chunks
 * go upward under their old channels (now, and once more after a second
 * or two, for those who have not noticed yet), then a LINK_UP_CLOSE for each,
 * then done() is called, once, on a later turn (producers_lost() ends it early);
 * without keep, it is given back, and done() is not called.  Chunks name no
 * buffer (0): their writers are registered upward.  Once, before listeners open:
 * it may wait for SHM_KEEPER_FIND_MS.
 */
void producers_recover(struct producers *ps, bool keep, void (*done)(void *),
    void *arg);

/* ---- from upward; channel 0: for all ---- */

/*
 * A new link or connection upward: LINK_UP_OPEN, sources and writers of each
 * producer are put (writers: those bound to a buffer that is known there).
 */
void producers_announce(struct producers *ps, uint32_t channel);
/*
 * Upward cannot be reached for now, and what is put is kept until it can: who
 * comes is announced by the next producers_announce(), or with a trigger, and
 * may say little beside data.  So nobody fills what all share by coming and
 * going.
 */
void producers_away(struct producers *ps);
/*
 * Agreements with the collector are void: instances stop as if their session
 * had ended, buffers and flushes are forgotten, and chunks still written for
 * them are dropped.  Chunks that stand in memory by now go upward first, for the
 * last time, to be counted with what is lost there (cause: a LinkLossCause).
 */
void producers_lost(struct producers *ps, uint32_t channel, uint32_t cause);
/* A GetAsyncCommandResponse, with the collector's ids. */
void producers_command(struct producers *ps, uint32_t channel,
    const uint8_t *command, size_t len);
/* Upward does not serve it; its connection stays, for the next announcement. */
void producers_refused(struct producers *ps, uint32_t channel,
    const char *why);
/* After UPSTREAM_LATER. */
void producers_resume(struct producers *ps, uint32_t channel);

/* ---- for --status ---- */

struct producers_view {
	uint32_t channel;
	const char *name;
	int32_t pid;
	int32_t uid;
	bool emulated;
	bool announced;
	size_t data_sources;
	size_t instances;
	size_t writers;
	uint64_t chunks;    /* taken */
	uint64_t bytes;
	uint64_t late;      /* chunks for what was over, or had become void */
	uint64_t discarded; /* chunks and patches that broke the rules */
};
size_t producers_count(const struct producers *ps);
void producers_each(const struct producers *ps,
    void (*fn)(void *arg, const struct producers_view *v), void *arg);

#endif /* RELAY_PRODUCERS_PRODUCERS_H */
