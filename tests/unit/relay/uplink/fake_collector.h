/*
 * fake_collector: the other end of a link, in tests: takes blocks and writes
 * down what is in them, and answers as it is told to.
 */
#ifndef TESTS_UNIT_RELAY_UPLINK_FAKE_COLLECTOR_H
#define TESTS_UNIT_RELAY_UPLINK_FAKE_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protos/link.pb-c.h"
#include "transport/link/link_in.h"
#include "transport/link/link_wire.h"
#include "transport/link/link_zstd.h"
#include "transport/rpc/rpc_host.h"

struct loop;
struct listener;

#define FAKE_CHANNELS 16

struct fake_collector {
	struct loop *loop;
	struct listener *listener;
	struct rpc_stats stats;

	/* How it answers. */
	bool knows_no_link;  /* offers another service */
	bool rejects_open;
	bool keeps_quiet;    /* takes blocks, acknowledges and pongs nothing */
	bool acks_nothing;
	Tributary__LinkOpened__Why why;
	/* Answers MOVES where can_move is said; why comes then. */
	bool wants_moves;
	uint32_t says_tag; /* 0: the relay's */
	bool says_received;  /* else: what it has taken */
	uint64_t received;
	uint64_t taken_before; /* 0: does not say */
	uint64_t window;
	bool zstd;
	char id[17];

	/* What it was told. */
	int connections;
	struct rpc_conn *conn; /* NULL: none */
	struct rpc_call down;
	bool has_down;
	int opens;
	Tributary__LinkOpen *open; /* the last */
	struct link_in in;
	int again; /* blocks that it had already */
	uint64_t relay_has; /* the last `received` */
	uint64_t consumed;
	uint64_t consumed_of[FAKE_CHANNELS];
	int pings, results, statuses;
	bool blocks_were_compressed;
	size_t move_bytes; /* of all calls of Move */
	/* "1:open abc; 1:commit 5; 0:close_below 3; move 1 500; " */
	char log[65536];
	size_t log_len;

	struct link_compressor *zip;
	struct link_decompressor *unzip;
	uint64_t sent; /* blocks down */
};

void collector_init(struct fake_collector *c, struct loop *l);
void collector_done(struct fake_collector *c);
/* At a UNIX socket; again after collector_deafen(). */
void collector_listen(struct fake_collector *c, const char *path);
void collector_deafen(struct fake_collector *c);
/* A socket that leads to it. */
int collector_socket(struct fake_collector *c);
/* Ends the connection. */
void collector_cut(struct fake_collector *c);

/* A block with one message, numbered on. */
void collector_say(struct fake_collector *c, uint32_t channel,
    enum link_down kind, const char *text);
/* The same under any number. */
void collector_say_as(struct fake_collector *c, uint64_t number,
    uint32_t channel, enum link_down kind, const char *text);
/* f as it is. */
void collector_send(struct fake_collector *c, const struct link_frame *f);
/* What was written down since the last call, which must be this. */
void collector_expect(struct fake_collector *c, const char *log);

#endif /* TESTS_UNIT_RELAY_UPLINK_FAKE_COLLECTOR_H */
