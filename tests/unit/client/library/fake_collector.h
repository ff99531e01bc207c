/*
 * fake_collector: a ConsumerPort that plays what a test wants, for the tests
 * of consumer and record_session.
 *
 * Answers on the same loop as the client.  Every call is noted by name; what
 * it answers is set in the fields below before or between.
 */
#ifndef TESTS_UNIT_CLIENT_LIBRARY_FAKE_COLLECTOR_H
#define TESTS_UNIT_CLIENT_LIBRARY_FAKE_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/rpc/rpc_host.h"
#include "transport/wire/pb_writer.h"

struct listener;
struct loop;

struct fake_collector {
	struct loop *loop;
	struct listener *listener;
	struct rpc_stats stats;
	struct rpc_conn *conn; /* the last one; NULL when it is gone */

	char calls[2000]; /* names, each followed by a space */
	struct pb_writer args; /* of the last call */
	struct pb_writer config; /* of EnableTracing */
	struct rpc_call enable; /* EnableTracing, to be answered */
	struct rpc_call observe;
	struct rpc_call read; /* when hold_read is set */
	int fd; /* that came with a call, or -1 */

	const char *refuse;       /* a method to reject */
	const char *enable_error; /* what EnableTracing ends with, at once */
	unsigned read_packets;    /* for ReadBuffers, numbered on from 1 */
	size_t packet_bytes;      /* of each; at least 8 */
	size_t slice_bytes;       /* packets are cut at this; 0: whole */
	unsigned packets_sent;
	bool hold_read;     /* keep ReadBuffers open */
	bool hold_flush;    /* never answer Flush */
	bool hold_disable;  /* do not end the session on DisableTracing */
	bool attach_writes; /* the session of Attach has write_into_file */
	bool cut_last;      /* leave out the end of the last packet */
};

/* Listens on a UNIX socket. */
void fake_collector_init(struct fake_collector *f, struct loop *l,
    const char *path);
void fake_collector_done(struct fake_collector *f);

/* Ends the session as its duration does: answers EnableTracing. */
void fake_collector_end_session(struct fake_collector *f);
/* Sends n packets as answers to a ReadBuffers. */
void fake_collector_send(struct fake_collector *f, struct rpc_call call,
    unsigned n, bool more);

/* Packet n as the fake sends it, len bytes, into out. */
void fake_collector_packet(uint8_t *out, unsigned n, size_t len);

#endif /* TESTS_UNIT_CLIENT_LIBRARY_FAKE_COLLECTOR_H */
