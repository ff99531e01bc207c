/*
 * machine: the table of machines: the host (id 0), which is not in the table,
 * and those that peers speak for.  Peers can claim any number, so the table is
 * bounded, in all and per peer.
 *
 * A machine is found again by the claimed id and the authenticated owner of the
 * claim: machines of the same name but of different owners are two, with ids of
 * their own.  A machine is referenced by producers, relays, links, and sessions
 * that have its data.  Without references it stays, without its clock readings,
 * until its place is wanted; the one that lost its last reference first goes
 * first.
 *
 * Everything here belongs to the loop's thread.
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
/* Most bytes of a SystemInfo, and of a clock exchange; of a name. */
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
	uint32_t n_relays;    /* connected; by links and classic */
	uint32_t n_producers; /* connected without a relay */
	bool cut;            /* its link is cut, in the grace period */
	char address[112];   /* peer.text of the newest connection */
	char authenticated[160];
	char software[64];
	uint64_t first_seen_ns; /* CLOCK_REALTIME, as all here */
	uint64_t connected_since_ns;
	uint64_t cut_since_ns;
	uint64_t reconnects;
	uint64_t bytes_received; /* by links, compressed */
	uint64_t bytes_unpacked; /* the same decompressed */
	uint64_t bytes_waiting;  /* of them, in queues of channels */
	/* The newest LinkStatus, encoded. */
	uint8_t status[256];
	size_t status_len;
	/* Bytes that it tells of, and the age of the oldest. */
	struct machine_backlog {
		uint64_t memory, memory_limit;
		uint64_t spool, spool_limit;
		uint64_t oldest_ms;
	} backlog;
	struct machine_loss {
		uint64_t chunks;
		uint64_t packets;
		uint64_t bytes;
		uint64_t times; /* losses of unknown size */
	} losses[LINK_LOSS_CAUSES]; /* by LinkLossCause */
};

/* Number of offsets: REALTIME and MONOTONIC from BOOTTIME, there and here. */
#define MACHINE_CLOCK_SHAPE 4u

/* The estimate of a machine's CLOCK_BOOTTIME minus ours. */
struct machine_clock {
	bool known;
	int64_t offset_ns;
	uint64_t uncertainty_ns;
	uint64_t round_trip_ns;
	uint64_t measured_ns; /* our CLOCK_REALTIME */
	/* machine_clock.c's: all exchanges, and those in clock_sync. */
	struct clock_fit fit;
	struct clock_fit written;
	int64_t written_shape[MACHINE_CLOCK_SHAPE];
};

/*
 * An account has one quota, and one share of each buffer.  A machine has its
 * own, but all machines of one certificate or dial that may not name machines
 * have one together, as such a peer could claim any number of them.
 */
struct machine_account {
	uint64_t share; /* trace_buffer_guarantee()'s number */
	size_t n_connections; /* of relays and producers; not the host's */
	/* Counts of connected producers. */
	size_t n_producers;
	size_t n_data_sources;
	struct machine_quota *quota; /* quota.h's; NULL: none fits */
	void (*free_quota)(struct machine_quota *q); /* with it */
	/* Set where several machines have it: then the table's own. */
	struct hash_link by_owner;
	char *owner;
	size_t n_machines;
};

struct machine {
	uint32_t id;
	char *name; /* owned; id 0 is also called "host" (machine_word.h) */
	uint8_t *system_info;  /* encoded, without a name; NULL until told */
	size_t system_info_len;
	uint64_t system_info_generation; /* grows as it or the name changes */
	/* The newest clock exchange, a whole TracePacket's body, or NULL. */
	uint8_t *clock_sync;
	size_t clock_sync_len;
	uint64_t clock_sync_generation; /* grows with each new exchange */
	/* As clock_sync, to be read behind it: machine_clock.h. */
	uint8_t *clock_repeat;
	size_t clock_repeat_len;
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
	uint32_t claimed; /* the id of the claim; id may be another */
	char *owner;      /* of the claim, owned; NULL: unauthenticated */
	uint64_t peer;    /* peer_count_key() of the first claim's peer */
};

/* Whether a relay of the machine, or a producer without one, is connected. */
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
/* Frees the table; no machine may be referred to.  NULL is fine. */
void machine_table_free(struct machine_table *t);
/*
 * The ids of all machines into out, which has room for MACHINES_MAX; returns
 * how many.
 */
size_t machine_table_ids(const struct machine_table *t, uint32_t *out);

/* Machines of the table, without the host. */
struct machine_counts {
	size_t connected, cut, gone;
	/* Sums over those that are connected or cut, and the largest age. */
	struct machine_backlog backlog;
	uint64_t clock_error_ns; /* the largest of them */
};
void machine_table_count(const struct machine_table *t,
    struct machine_counts *out);

struct machine_claim {
	uint32_t id;       /* wanted: made from the peer's labels; not 0 */
	const char *name;  /* copied, cut to MACHINE_NAME_MAX */
	bool named;        /* given by a peer, not made of address or hint */
	bool relay;        /* a relay claims, not a producer */
	const char *owner; /* authenticated peer; NULL: unauthenticated */
	uint64_t peer;     /* peer_count_key(), for MACHINES_PER_PEER_MAX */
	bool together;     /* one account for all of owner's, which is set */
};

/*
 * The machine of a claim, made when it is new.  Its name is the one that its
 * newest relay gives it or, while it has none, its newest producer.  Call
 * machine_ref() at once: the next claim may free it.  NULL: no memory, or the
 * table, or this peer's part of it, is full of machines in use.
 */
struct machine *machine_claim(struct machine_table *t,
    const struct machine_claim *c) MUST_CHECK;
/* NULL: none in the table has this id. */
struct machine *machine_find(struct machine_table *t, uint32_t id);
/*
 * The only machine in use of this owner or, where several are, the only one of
 * them with a clock exchange.  NULL: there is none, or more than one.
 */
struct machine *machine_of_owner(struct machine_table *t, const char *owner);

/* Count references; no-ops for the host. */
void machine_ref(struct machine *m);
void machine_unref(struct machine *m);

/* Copies name; traces get a new SystemInfo with it.  -1: no memory. */
int machine_rename(struct machine *m, const char *name) MUST_CHECK;
/*
 * All copy data, which replaces the last.  -1: no memory, or longer than
 * MACHINE_INFO_MAX.
 */
int machine_set_system_info(struct machine *m, const uint8_t *data, size_t len)
    MUST_CHECK;
int machine_set_clock_sync(struct machine *m, const uint8_t *data, size_t len)
    MUST_CHECK;
int machine_set_clock_repeat(struct machine *m, const uint8_t *data,
    size_t len) MUST_CHECK;
/* Appends a copy of clock_sync to past_clocks.  -1: no memory. */
int machine_keep_clock_sync(struct machine *m) MUST_CHECK;

/* Frees the memory that m owns, of the host too, but not m. */
void machine_done(struct machine *m);

#endif /* SERVICE_MACHINE_MACHINE_H */
