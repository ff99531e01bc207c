/*
 * producers: the local producers of a relay: their connections, data sources,
 * writers and shared memory; the ProducerPort that they see.
 *
 * Producers are answered at once, with or without a collector, get shared
 * memory of the relay (over UNIX sockets; others send their chunks as data),
 * and keep it for as long as they are connected, whatever happens upward.
 * Their chunks are copied out and go upward as data.  The ids of buffers,
 * instances and flushes that they see are the relay's own, so that data meant
 * for a collector that is gone never lands in a buffer of the next one.  An id
 * of a buffer is used again only after all others.
 *
 * Every byte of a producer is untrusted; chunks and patches that break the
 * rules are discarded and counted.  Belongs to the loop's thread.
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
	 * The folder with the keeper's socket, by which shared memory outlives
	 * a relay that is killed (relay/producers/shm_keeper.h).  Borrowed.
	 * -1: no keeper.
	 */
	int state_dirfd;
	struct upstream upward; /* its ops and arg are borrowed */
	/* Numbers of new channels, from the outbox. */
	uint32_t (*new_channel)(void *arg);
	/*
	 * The place on the channel of what was put there last, and whether all
	 * up to a place (UINT64_MAX: to the last) has arrived upward.  NULL: the
	 * link is never moved.
	 */
	uint64_t (*channel_place)(void *arg, uint32_t channel);
	bool (*has_arrived)(void *arg, uint32_t channel, uint64_t place);
	void *channel_arg;
};

/* Copies setup.  NULL with a sentence in err. */
struct producers *producers_new(const struct producers_setup *setup,
    char *err, size_t err_size) MUST_CHECK;
/*
 * Legal when all connections have ended: the guard's gone() was called for
 * each, on the turns of the loop after rpc_conns_close_all().  NULL is fine.
 */
void producers_free(struct producers *ps);

/*
 * For the end of the relay.  A producer whose connection the relay closes may
 * write a moment longer.  So after producers_hold() a producer that is announced
 * is kept when its connection ends, and producers_let_go() scrapes its memory for
 * the last time and puts its LINK_UP_CLOSE.  Others are freed at once, as no
 * chunk of theirs goes upward.
 */
void producers_hold(struct producers *ps);
void producers_let_go(struct producers *ps);

/*
 * The service that listeners offer, and the limit of connections to it; both
 * live as long as ps.
 */
const struct rpc_service *producers_service(struct producers *ps);
const struct rpc_guard *producers_guard(struct producers *ps);

/*
 * Takes over shared memory of a relay that was killed.  With keep, its chunks
 * go upward under their old channels: now, and once more after
 * RECOVER_AGAIN_MS, as its producers may write until they notice; then a
 * LINK_UP_CLOSE for each channel; then done() is called, once, on a later turn
 * (producers_lost() ends it early).  Without keep, the memory is given back,
 * and done() is not called.  Chunks name no buffer (0), as the collector knows
 * the buffers of their writers.  Called once, before listeners open: it may
 * block for SHM_KEEPER_FIND_MS.
 */
void producers_recover(struct producers *ps, bool keep, void (*done)(void *),
    void *arg);

/* ---- called by the upstream; channel 0: for all producers ---- */

/*
 * Announces producers on a new link or connection upward: puts LINK_UP_OPEN and
 * the data sources of each.  With channel 0 new producers are announced at once
 * from now on.
 */
void producers_announce(struct producers *ps, uint32_t channel);
/*
 * Notes that the collector cannot be reached for now, and that the outbox keeps
 * all messages until it can.  New producers are announced by the next
 * producers_announce(), or with a trigger, and the rate limits of control
 * messages are tighter, so that no producer fills the outbox by coming and
 * going.
 */
void producers_away(struct producers *ps);
/*
 * Voids all agreements with the collector: instances stop as if their session
 * had ended, buffers and flushes are forgotten, and chunks still written for
 * them are dropped.  Chunks that are in shared memory by now go upward first,
 * for the last time, to be counted with the losses there.  cause is not used.
 */
void producers_lost(struct producers *ps, uint32_t channel, uint32_t cause);
/* Passes on a GetAsyncCommandResponse with the collector's ids. */
void producers_command(struct producers *ps, uint32_t channel,
    const uint8_t *command, size_t len);
/*
 * Notes that the collector refused the producer, and logs it.  Its connection
 * stays open; it is announced again after the next producers_lost().
 */
void producers_refused(struct producers *ps, uint32_t channel,
    const char *why);
/* Notes a LinkOrigin: what the next data source of the channel is part of. */
void producers_origin(struct producers *ps, uint32_t channel,
    const uint8_t *origin, size_t len);
/*
 * Sets the tag that ids of the collector's buffers get in messages from now on
 * (LinkOpen.buffer_tag): another for each collector that the link was moved to,
 * as ids of the ones before are still in use.
 */
void producers_set_buffer_tag(struct producers *ps, uint32_t tag);
uint32_t producers_buffer_tag(const struct producers *ps);
/*
 * Calls tell() with what another collector has to know of each channel that has
 * or had a producer: encoded LinkMove messages, several where one would be
 * longer than LINK_MESSAGE_MAX, without `consumed`.  -1: no memory.
 */
int producers_tell_moves(struct producers *ps, void (*tell)(void *arg,
    uint32_t channel, const uint8_t *move, size_t len), void *arg) MUST_CHECK;
/*
 * Asks each announced producer with instances for a flush of its own, behind
 * which no packet of it is in two parts: asked() is called for it, then
 * settled(), on a later turn, when what it had is upward, or when it ends; and
 * its incremental state is cleared.  A call before may still be under way: its
 * settled() are not called.
 */
struct producers_settle {
	void (*asked)(void *arg, uint32_t channel);
	void (*settled)(void *arg, uint32_t channel);
	void *arg;
};
void producers_settle(struct producers *ps,
    const struct producers_settle *settle);
/* Ends it: settled() is not called any more. */
void producers_settle_end(struct producers *ps);
/* Tries again what UPSTREAM_LATER put off. */
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
	uint64_t chunks;    /* put upward */
	uint64_t bytes;     /* of payload, of these chunks */
	/* Chunks and patches for buffers that were forgotten. */
	uint64_t late;
	uint64_t discarded; /* chunks and patches that broke the rules */
};
/* Number of producers that are initialized; fn is called for each of them. */
size_t producers_count(const struct producers *ps);
void producers_each(const struct producers *ps,
    void (*fn)(void *arg, const struct producers_view *v), void *arg);

#endif /* RELAY_PRODUCERS_PRODUCERS_H */
