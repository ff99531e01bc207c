/*
 * crowd_internal: a crowd's members, for its two files: their calls and
 * commands (crowd.c), and what they send (crowd_send.c).
 */
#ifndef TESTS_BENCH_FLEET_CROWD_INTERNAL_H
#define TESTS_BENCH_FLEET_CROWD_INTERNAL_H

#include <sys/types.h>

#include "tests/bench/fleet/crowd.h"

enum member_state {
	MEMBER_NEW,
	MEMBER_CONNECTING,
	MEMBER_ASKED,      /* bound, initialised and registered in one go */
	MEMBER_IN,
	MEMBER_GONE,
};

struct member {
	int fd;
	enum member_state state;
	bool wants_room;   /* EPOLLOUT is asked for */
	uint32_t buffer;
	uint64_t instance;
	uint8_t *rest;     /* what the socket did not take; NULL: nothing */
	size_t rest_len;
	size_t rest_at;
	uint8_t *part;     /* the begin of a frame that came; NULL: none */
	size_t part_len;
	/* Sending. */
	uint32_t next_chunk;
	uint32_t owed;     /* frames that were due and found no room */
	uint64_t asked_ns; /* when the reply that is awaited was asked for */
};

struct crowd {
	int ep;
	char address[64];
	char name[32];
	size_t n;
	bool bare;
	size_t connected;  /* members that tried */
	size_t waiting;    /* members under way to MEMBER_IN */
	struct member *members;
	struct crowd_counts counts;
	/* The calls that each makes first, for all of them. */
	uint8_t *hello;
	size_t hello_len;
	/* Where crowd_send() wants to hear of them; NULL: nowhere. */
	struct crowd_sending *sending;
};

/* One turn of at most `ms`. */
void crowd_turn(struct crowd *c, int ms);
/* Sends, keeping what does not go now; what was kept goes first. */
void member_write(struct crowd *c, struct member *m, const uint8_t *data,
    size_t len);
/* The member's socket took everything. */
void crowd_send_more(struct crowd *c, struct member *m);
void crowd_send_replied(struct crowd *c, struct member *m);

/* Request ids. */
enum { ID_BIND = 1, ID_INIT, ID_COMMANDS, ID_REGISTER, ID_OTHER, ID_COMMIT };
/* Methods, by their place in the port's list. */
enum {
	METHOD_INIT = 1,
	METHOD_REGISTER = 2,
	METHOD_COMMIT = 4,
	METHOD_COMMANDS = 5,
	METHOD_STARTED = 8,
	METHOD_STOPPED = 9,
};
#define CROWD_SERVICE 1u

#endif /* TESTS_BENCH_FLEET_CROWD_INTERNAL_H */
