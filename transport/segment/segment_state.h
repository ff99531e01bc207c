/*
 * segment_state: the objects of a splitter.  Private to the splitter's files:
 *
 *	segment_splitter.c  which packet goes where
 *	segment_service.c   the service's packets, and cuts
 *	segment_stats.c     TraceStats
 *	segment_open.c      segments that are open, and what is put into them
 *	segment_tables.c    machines and sequences
 */
#ifndef TRANSPORT_SEGMENT_SEGMENT_STATE_H
#define TRANSPORT_SEGMENT_SEGMENT_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "transport/base/compiler.h"
#include "transport/base/hash_map.h"
#include "transport/segment/segment_kept.h"
#include "transport/segment/segment_packets.h"
#include "transport/segment/segment_splitter.h"
#include "transport/wire/pb_writer.h"

struct segment_look;

/* Beyond so many in two segments, a sequence moves at END and is not marked. */
#define SEGMENT_SEQUENCES_MAX (1u << 20)
/* Packets of more machines go to the collector's segments. */
#define SEGMENT_MACHINES_MAX 65536u

/* A segment between begin() and end(). */
struct open_segment {
	TAILQ_ENTRY(open_segment) in_cut;
	struct split_machine *machine;
	void *user;
	uint64_t packets;
	uint64_t fresh; /* bytes of packets of producers */
	bool owes_kept; /* the kept packets of its machine were not put yet */
	struct pb_writer share; /* of TraceStats, while they are shared out */
};

/* A number, and the segments that are open with it. */
struct split_cut {
	uint32_t number;
	uint32_t cause; /* SegmentCut.Cause; 0: it is the first */
	uint64_t realtime_ns;
	struct pb_writer mark; /* SegmentCut; empty: it is the first */
	TAILQ_HEAD(open_segments, open_segment) open;
};

/* A machine with a file of its own; not split by machine, there is only 0. */
struct split_machine {
	struct hash_link link;
	uint32_t id;
	char *name; /* owned; NULL: not known */
	uint32_t seen; /* number of the newest segment it was seen in */
	uint32_t unanswered; /* while a cut ends */
	struct kept_list kept;
	struct open_segment *open[2]; /* by the index of the cut */
};

struct split_sequence {
	struct hash_link link;
	uint32_t id;
	uint32_t machine;
	uint32_t seen;    /* number of the newest segment with its packets */
	uint32_t moved;   /* number that it moved to by clearing its state */
	uint32_t settled; /* number in which it cleared, or was marked */
	bool has_state;
};

struct segment_splitter {
	const struct segment_ops *ops;
	void *arg;
	char *recording; /* owned; NULL: none */
	int32_t uid;
	bool by_machine;
	enum segment_result result; /* the first failure; nothing follows it */

	bool knows_uuid;
	struct segment_uuid recording_uuid;
	struct pb_writer early; /* packets from before the uuid was known */

	/* The newest, and while `cutting` the one before it. */
	struct split_cut cuts[2];
	unsigned newest;
	bool cutting; /* between BEGIN and END */

	struct split_machine host;
	struct hash_map machines; /* others */
	struct hash_map sequences;
	struct split_sequence *last_sequence; /* of the packet before; NULL */
	struct segment_kept kept;

	/* TraceStats: at the last cut, and the newest of this segment. */
	struct pb_writer stats_before;
	struct pb_writer stats_now;
	bool has_stats_now;

	/* Packets as they came, one behind the other, for one segment. */
	struct open_segment *run_to;
	const uint8_t *run;
	size_t run_len;
	struct pb_writer built; /* packets that were made or changed */
};

/* The newest cut, and the one that the service's TraceStats are of. */
static inline struct split_cut *
splitter_new_cut(struct segment_splitter *s)
{
	return &s->cuts[s->newest];
}

static inline struct split_cut *
splitter_old_cut(struct segment_splitter *s)
{
	return &s->cuts[s->cutting ? !s->newest : s->newest];
}

/* Keeps the first failure. */
void splitter_fail(struct segment_splitter *s, enum segment_result why);

/* ---- segment_tables.c ---- */

/* Its own machine, where that is split; it is made if need be.  Never NULL. */
struct split_machine *splitter_machine(struct segment_splitter *s,
    uint32_t id);
/* NULL: it is not known. */
struct split_machine *splitter_find_machine(struct segment_splitter *s,
    uint32_t id);
/* The packet's sequence, made if need be; NULL: no memory, or too many. */
struct split_sequence *splitter_sequence(struct segment_splitter *s,
    const struct segment_look *k);
/* NULL: it is not known (any more). */
struct split_sequence *splitter_find_sequence(struct segment_splitter *s,
    uint32_t id);
/* Forgets what was not seen since the segment of this number began. */
void splitter_forget(struct segment_splitter *s, uint32_t number);
void splitter_tables_done(struct segment_splitter *s);

/* ---- segment_open.c ---- */

/* The machine's segment of this cut, begun if need be; NULL: it failed. */
struct open_segment *splitter_open(struct segment_splitter *s,
    struct split_cut *c, struct split_machine *m) MUST_CHECK;
/* NULL: it has none. */
struct open_segment *splitter_opened(const struct segment_splitter *s,
    const struct split_cut *c, const struct split_machine *m);

/* Puts a packet as it came. */
void splitter_put(struct segment_splitter *s, struct open_segment *to,
    const struct segment_look *k);
/* Puts s->built, and empties it. */
void splitter_put_built(struct segment_splitter *s, struct open_segment *to);
/* Puts what was kept of the machine and is not in the segment. */
void splitter_put_kept(struct segment_splitter *s, struct split_cut *c,
    struct open_segment *to);
/* Puts the packets of the run; before their bytes go. */
void splitter_flush(struct segment_splitter *s);

/* Ends all segments of a cut; last: no segment follows. */
void splitter_end(struct segment_splitter *s, struct split_cut *c, bool last);

/* ---- segment_service.c ---- */

/* A packet of the service. */
void splitter_take_service(struct segment_splitter *s,
    const struct segment_look *k);
/* mark: END; NULL: it did not come. */
void splitter_end_cut(struct segment_splitter *s, const struct segment_look *k);

/* ---- segment_stats.c ---- */

/* The service's TraceStats. */
void splitter_take_stats(struct segment_splitter *s,
    const struct segment_look *k);
/* Later readings are of the next segment. */
void splitter_next_stats(struct segment_splitter *s);

#endif /* TRANSPORT_SEGMENT_SEGMENT_STATE_H */
