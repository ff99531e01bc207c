/*
 * machine: the devices that peers speak for.  0 is the host; all others are
 * whoever names itself one, so they are bounded, in all and per peer.
 *
 * A machine is known again by what was claimed for it and by who vouches: what
 * a verified peer named is another machine than what anybody else names alike,
 * with an id of its own.  It stays while somebody refers to it (a producer, a
 * relay, a session that has its data), and afterwards, without what was measured
 * of its clocks, until its place is wanted: the one that was let go longest ago
 * goes first.
 */
#ifndef SERVICE_MACHINE_MACHINE_H
#define SERVICE_MACHINE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "service/access/per_peer_count.h"
#include "transport/base/compiler.h"
#include "transport/base/hash_map.h"
#include "transport/clock/clock_fit.h"
#include "transport/link/link_wire.h"

struct machine_quota;
struct machine_table;

#define MACHINES_MAX          16384u
#define MACHINES_PER_PEER_MAX 4096u
/* Bytes of SystemInfo, and of a clock exchange; of a name. */
#define MACHINE_INFO_MAX 4096u
#define MACHINE_NAME_MAX 255u

/* Past clock exchanges that are kept; the oldest goes first. */
#define MACHINE_PAST_CLOCKS 8u

/* The way a machine is connected. */
enum machine_reach {
	MACHINE_DIRECT,  /* its producers connect by themselves */
	MACHINE_CLASSIC, /* by Perfetto's relay */
	MACHINE_LINK,    /* by tributary-relay */
};

/* For people (`tributary machines`): kept up by the ports, read by control. */
struct machine_contact {
	enum machine_reach reach;
	uint32_t n_relays;    /* connected; links and classic ones */
	uint32_t n_producers; /* connected by themselves */
	bool cut;            /* its link is cut off, and waited for */
	char address[112];   /* peer.text, the newest */
	char authenticated[160];
	char software[64];
	uint64_t first_seen_ns; /* CLOCK_REALTIME, as all here */
	uint64_t connected_since_ns;
	uint64_t cut_since_ns;
	uint64_t reconnects;
	uint64_t bytes_received;
	uint64_t bytes_unpacked;
	uint64_t bytes_waiting;
	/* The newest LinkStatus, encoded. */
	uint8_t status[256];
	size_t status_len;
	struct machine_loss {
		uint64_t chunks;
		uint64_t packets;
		uint64_t bytes;
		uint64_t times; /* that nobody knows how much */
	} losses[LINK_LOSS_CAUSES]; /* by LinkLossCause */
};

/* Offsets of REALTIME and MONOTONIC from BOOTTIME, there and here. */
#define MACHINE_CLOCK_SHAPE 4u

/* Its CLOCK_BOOTTIME minus ours. */
struct machine_clock {
	bool known;
	int64_t offset_ns;
	uint64_t uncertainty_ns;
	uint64_t round_trip_ns;
	uint64_t measured_ns; /* CLOCK_REALTIME */
	/* machine_clock.c's: all exchanges, and those in clock_sync. */
	struct clock_fit fit;
	struct clock_fit written;
	int64_t written_shape[MACHINE_CLOCK_SHAPE];
};

/*
 * An account: what is counted against one quota and has one share of each
 * buffer: a machine, or all machines of one certificate or dial that may not
 * name machines.  Those may invent as many as they like.
 */
struct machine_account {
	uint64_t share; /* trace_buffer_guarantee()'s number */
	size_t n_connections; /* not the host's */
	/* Counts of connected producers. */
	size_t n_producers;
	size_t n_data_sources;
	struct machine_quota *quota; /* quota.h's; NULL: none fits */
	void (*free_quota)(struct machine_quota *q); /* with it */
	/* The table's, where several machines have it. */
	struct hash_link by_owner;
	char *owner;
	size_t n_machines;
};

struct machine {
	uint32_t id;
	char *name;            /* of id 0 one besides "host" (machine_word.h) */
	uint8_t *system_info;  /* encoded, without a name; NULL until told */
	size_t system_info_len;
	uint64_t system_info_generation; /* grows with it and with the name */
	/* The newest clock exchange, a whole TracePacket's body, or NULL. */
	uint8_t *clock_sync;
	size_t clock_sync_len;
	uint64_t clock_sync_generation; /* grows with each new exchange */
	/*
	 * The last exchange before each clock step or suspend, oldest first:
	 * older timestamps are converted with them.
	 */
	struct machine_past_clocks {
		uint8_t *data;
		size_t len;
		uint64_t generation;
	} past_clocks[MACHINE_PAST_CLOCKS];
	size_t n_past_clocks;
	/* Counts of connected producers, for people. */
	size_t n_producers;
	size_t n_data_sources;
	struct machine_contact contact;
	struct machine_clock clock;
	struct machine_account own;
	struct machine_account *shared; /* instead of its own, or NULL */

	/* The table's; the host is in none. */
	struct machine_table *table;
	struct hash_link by_id;
	struct hash_link by_claim;
	TAILQ_ENTRY(machine) all;
	TAILQ_ENTRY(machine) idle; /* while refs is 0 */
	size_t refs;
	uint32_t claimed; /* the id as it was asked for */
	char *owner;      /* who vouches; NULL: nobody */
	uint64_t peer;    /* who named it first, as a number */
};

/* Whether its relay is connected, or else a producer. */
static inline bool
machine_is_connected(const struct machine *m)
{
	return m->contact.n_relays > 0 || m->contact.n_producers > 0;
}

static inline struct machine_account *
machine_account(struct machine *m)
{
	return m->shared != NULL ? m->shared : &m->own;
}

struct machine_table *machine_table_new(void) MUST_CHECK;
/* Frees the table, when no machine is referred to any more.  NULL is fine. */
void machine_table_free(struct machine_table *t);
/*
 * The ids of all machines into out, which has room for MACHINES_MAX; returns how
 * many.
 */
size_t machine_table_ids(const struct machine_table *t, uint32_t *out);

struct machine_claim {
	uint32_t id;       /* wanted: from what the peer says; not 0 */
	const char *name;  /* cut to MACHINE_NAME_MAX */
	bool named;        /* somebody said so: not made of an address or hint */
	bool relay;        /* the machine's relay asks, not a producer */
	const char *owner; /* who vouches for the claim; NULL: nobody */
	uint64_t peer;     /* who asks, for MACHINES_PER_PEER_MAX */
	bool together;     /* one account for all that the owner claims */
};

/*
 * The machine of a claim, made when it is new.  It is called what its newest
 * relay says, or, while it has none, its newest producer.  To be referred to at
 * once, or it may go with the next call.  NULL: no memory, or
 * the table is full of machines in use, all of them or of this peer.
 */
struct machine *machine_claim(struct machine_table *t,
    const struct machine_claim *c) MUST_CHECK;
struct machine *machine_find(struct machine_table *t, uint32_t id);
/*
 * The one of this owner that is referred to, or the one of them whose clocks were
 * measured; NULL: none is, or several are.
 */
struct machine *machine_of_owner(struct machine_table *t, const char *owner);

/* No-ops for the host. */
void machine_ref(struct machine *m);
void machine_unref(struct machine *m);

/* Copies, and traces are told.  -1: no memory. */
int machine_rename(struct machine *m, const char *name) MUST_CHECK;
/*
 * Both copy; the newest replaces what was there.  -1: no memory, or longer than
 * MACHINE_INFO_MAX.
 */
int machine_set_system_info(struct machine *m, const uint8_t *data, size_t len)
    MUST_CHECK;
int machine_set_clock_sync(struct machine *m, const uint8_t *data, size_t len)
    MUST_CHECK;
/* The clock exchange stays, in past_clocks, when the next one replaces it. */
int machine_keep_clock_sync(struct machine *m) MUST_CHECK;

/* Frees what it owns, of the host too, but not m. */
void machine_done(struct machine *m);

#endif /* SERVICE_MACHINE_MACHINE_H */
