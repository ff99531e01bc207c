/*
 * link: a relay's link on the collector: its producers, what it is told, which
 * blocks were taken (docs/link-protocol.md).
 *
 * A link survives its connection: cut off, its producers, their instances and
 * sequences stay for the grace period, commands for them are kept, and the
 * relay resumes where it was.  Blocks are applied where they lie; those of a
 * channel that has to wait for a file are copied, bounded by the window, and
 * hold up no other channel.
 *
 * It knows nothing of connections: a port brings the frames, and takes away
 * what is to be sent.  A relay that breaks the protocol, or asks for more than
 * the settings allow, loses its link (link_give_up()), and nobody else anything.
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
};

/* All links of a collector; owned by the service. */
struct links *links_new(struct service *s) MUST_CHECK;
/* Ends all of them, with their producers.  NULL is fine. */
void links_free(struct links *t);
/* LINK_ID_BYTES, new at each start. */
const uint8_t *links_collector_id(const struct links *t);
/* Links, those included that are cut off. */
size_t links_count(const struct links *t);

/* Calls from a link to the port that serves it. */
struct link_port_ops {
	/* Something is to be sent (link_next(), link_report()). */
	void (*wake)(void *port);
	/*
	 * Not this port's any more: it is given up, or served over a newer
	 * connection.  The port hangs up, and uses the link no more.
	 */
	void (*close)(void *port, const char *why);
};

/* A LinkOpen whose sizes were checked, and who said it. */
struct link_request {
	uint8_t link_id[LINK_ID_BYTES];
	uint8_t relay_id[LINK_ID_BYTES];
	bool knows_collector;
	uint8_t collector_id[LINK_ID_BYTES];
	uint64_t last_sent;
	uint64_t last_acknowledged;
	uint64_t received;
	struct machine *machine; /* referred to by the link */
	struct principal who;
	uint64_t peer;  /* peer_count_key() */
	bool nobody;    /* nobody vouches: the uid 0 that it claims is none */
};

/*
 * The link of this request, resumed or begun anew (*why), which is the port's
 * from now on.  NULL: refused, with a sentence in *refused (static).
 */
struct link *link_open(struct links *t, const struct link_request *q,
    const struct link_port_ops *ops, void *port, enum link_why *why,
    const char **refused) MUST_CHECK;
/* The port's connection has ended: the grace period begins. */
void link_detach(struct link *l);
/*
 * Ends it: its producers go, and the relay hears of it when it comes again.
 * Calls the port's close().  why is for the log (static).
 */
void link_give_up(struct link *l, const char *why);

struct machine *link_machine(const struct link *l);
/*
 * Keeps the name that the relay has just given the machine, for producers that
 * come over this link, whatever another relay calls the machine later.
 */
void link_keep_name(struct link *l);

/* The last block taken, for LinkOpened. */
uint64_t link_received(const struct link *l);
/*
 * The last block taken of the link that had this id before; 0: unknown, or
 * none.
 */
uint64_t link_taken_before(const struct link *l);
uint64_t link_consumed_in_all(const struct link *l);
/* LinkConsumed messages of its channels, as this field. */
void link_put_consumed_of_all(struct link *l, struct pb_writer *w,
    uint32_t field);

/* ---- up ---- */

/*
 * A block, unpacked; borrowed for the call.  Taken, skipped (it came before), or
 * a violation (a sentence): give it up then.  NULL: fine.
 */
const char *link_take_block(struct link *l, uint64_t number, uint32_t channel,
    const uint8_t *block, size_t len) MUST_CHECK;
/* LinkFrame.received.  -1: it was never sent. */
int link_acked(struct link *l, uint64_t number) MUST_CHECK;

/* ---- down ---- */

/* The next block for this connection; it counts as sent.  False: none. */
bool link_next(struct link *l, struct link_out_block *b);
/* Whether the relay is to be told what was taken and consumed. */
bool link_has_report(const struct link *l);
/*
 * Writes the report: fills `received` and `consumed_in_all` of f, and writes up
 * to room bytes of LinkFrame.consumed to out.  Returns the bytes; there may be
 * more.
 */
size_t link_report(struct link *l, struct link_frame *f, uint8_t *out,
    size_t room);

#endif /* SERVICE_LINK_LINK_H */
