/*
 * link: the collector's end of a relay's link: its producers, the commands that
 * wait for it, the numbers of the blocks taken (docs/link-protocol.md).
 *
 * A link survives its connection: while it is cut, its producers, their
 * instances and sequences stay for the grace period, commands for them are
 * kept, and the relay resumes where it was.  Blocks are applied in the caller's
 * memory; those of a channel that has to wait for a file are copied, bounded by
 * the credit window, and hold up no other channel.
 *
 * A link knows nothing of connections: a port brings the frames, and fetches
 * those that are to be sent.  A relay that breaks the protocol, or asks for
 * more than the settings allow, loses its link (link_give_up()); other links
 * lose nothing.  All of this belongs to the loop's thread.
 */
#ifndef SERVICE_LINK_LINK_H
#define SERVICE_LINK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protos/fields.h"
#include "service/access/principal.h"
#include "transport/base/compiler.h"
#include "transport/link/link_out.h"
#include "transport/link/link_wire.h"

struct link;
struct links;
struct machine;
struct pb_writer;
struct service;

/* LinkOpened.Why. */
enum link_why {
	LINK_RESUMED = LinkOpened_RESUMED,
	LINK_NEW = LinkOpened_NEW,
	LINK_COLLECTOR_RESTARTED = LinkOpened_COLLECTOR_RESTARTED,
	LINK_GRACE_OVER = LinkOpened_GRACE_OVER,
	LINK_GIVEN_UP = LinkOpened_GIVEN_UP,
	LINK_MOVES = LinkOpened_MOVES,
	LINK_MOVED = LinkOpened_MOVED,
};

/* All links of a collector; owned by the service. */
struct links *links_new(struct service *s) MUST_CHECK;
/* Ends all of them, with their producers.  NULL is fine. */
void links_free(struct links *t);
struct links_counts {
	size_t connected, cut;
	/* Links that were opened since the start, by enum link_why. */
	uint64_t opened[LINK_MOVED + 1];
};
void links_count(const struct links *t, struct links_counts *out);
/*
 * Asks the relays of all links, those that come, too, to go to another
 * collector: each when it has been here for after_ms.  false ends it.  -1: no
 * memory.
 */
int links_drain(struct links *t, bool on, uint32_t after_ms) MUST_CHECK;
bool links_drains(const struct links *t);
/* LINK_ID_BYTES, new at each start. */
const uint8_t *links_collector_id(const struct links *t);

/* Calls from a link to the port that serves it. */
struct link_port_ops {
	/*
	 * There are frames to send: call link_next() and link_report() later.
	 */
	void (*wake)(void *port);
	/*
	 * The link is given up, or served over a newer connection.  The port
	 * closes its connection (why: static), and uses the link no more, not
	 * even for link_detach().
	 */
	void (*close)(void *port, const char *why);
};

/* A LinkOpen whose sizes were checked, and the peer that sent it. */
struct link_request {
	uint8_t link_id[LINK_ID_BYTES];
	uint8_t relay_id[LINK_ID_BYTES];
	bool knows_collector;
	uint8_t collector_id[LINK_ID_BYTES];
	uint64_t last_sent;         /* numbers of blocks up: the newest, */
	uint64_t last_acknowledged; /* and the newest that we acknowledged */
	uint64_t received;          /* the newest block down that it has */
	bool can_move;              /* it would tell what its channels are */
	/* LinkOpen.moves: what it told; borrowed.  NULL: this is no such Open. */
	const struct link_moves *moves;
	uint32_t buffer_tag;        /* moves: as in LinkOpen, as the next */
	uint64_t consumed_in_all;
	struct machine *machine; /* referred to by the link */
	struct principal who;
	uint64_t peer;  /* peer_count_key() */
	bool nobody;    /* unauthenticated: a claimed uid 0 becomes unknown */
};

/*
 * LinkMove messages of a relay, until its second Open.  Copies of them: at most
 * LINK_MOVES_MAX for each connection, charged to service.connection_memory.
 */
struct link_moves *link_moves_new(struct links *t) MUST_CHECK;
/* -1: no memory, or too much. */
int link_moves_add(struct link_moves *m, const uint8_t *move, size_t len)
    MUST_CHECK;
/* NULL is fine. */
void link_moves_free(struct link_moves *m);

/*
 * Attaches the port to the link of this request, which is resumed, begun anew
 * or moved here (*why).  The port calls link_detach() or link_give_up() unless ops->close()
 * came first; ops is borrowed until then.  NULL: refused, with a sentence in
 * *refused (static); or *refused NULL and *why LINK_MOVES: the relay is to tell
 * what it has, and to open again.
 */
struct link *link_open(struct links *t, const struct link_request *q,
    const struct link_port_ops *ops, void *port, enum link_why *why,
    const char **refused) MUST_CHECK;
/* The port's connection has ended: the grace period begins.  l is dead. */
void link_detach(struct link *l);
/*
 * Ends the link: its producers go, and the relay is told when it opens the link
 * again.  Calls the port's close() with why (static), which is logged, too.  l
 * is dead for the caller; blocks that wait for a file are still applied.
 */
void link_give_up(struct link *l, const char *why);

struct machine *link_machine(const struct link *l);
/*
 * Keeps the name that the relay has just given the machine, for producers that
 * come over this link, whatever another relay calls the machine later.
 */
void link_keep_name(struct link *l);

/* LinkOpen.buffer_tag of the Open by which the link came here; 0: none. */
uint32_t link_buffer_tag(const struct link *l);
/* The number of the last block up that was taken; 0: none. */
uint64_t link_received(const struct link *l);
/*
 * The number of the last block taken of the link that had this id before; 0:
 * unknown, or none.
 */
uint64_t link_taken_before(const struct link *l);
/*
 * Bytes of blocks up that were applied, of all channels: the credit given back.
 */
uint64_t link_consumed_in_all(const struct link *l);
/* Appends LinkConsumed messages of the link's channels, as this field. */
void link_put_consumed_of_all(struct link *l, struct pb_writer *w,
    uint32_t field);

/* ---- up ---- */

/*
 * Takes a decompressed block, borrowed for the call; one that came before is
 * skipped.  NULL, or why the caller has to give the link up (static): a
 * violation of the protocol, a limit, or no memory.
 */
const char *link_take_block(struct link *l, uint64_t number, uint32_t channel,
    const uint8_t *block, size_t len) MUST_CHECK;
/*
 * LinkFrame.received: the relay has all blocks down up to this number.  -1: it
 * was never sent; the caller gives the link up.
 */
int link_acked(struct link *l, uint64_t number) MUST_CHECK;

/* ---- down ---- */

/*
 * The next block for this connection; it counts as sent.  Its data is borrowed
 * until link_acked().  False: none.
 */
bool link_next(struct link *l, struct link_out_block *b);
/* Whether blocks were taken or consumed that the relay was not told of. */
bool link_has_report(const struct link *l);
/*
 * Writes the report: fills `received` and `consumed_in_all` of f, and writes up
 * to room bytes of LinkFrame.consumed to out.  Returns the bytes written; while
 * link_has_report() there are more.
 */
size_t link_report(struct link *l, struct link_frame *f, uint8_t *out,
    size_t room);

#endif /* SERVICE_LINK_LINK_H */
