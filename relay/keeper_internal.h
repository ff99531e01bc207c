/*
 * keeper_internal: what the relay and its keeper say to each other, one message
 * a packet.
 */
#ifndef RELAY_KEEPER_INTERNAL_H
#define RELAY_KEEPER_INTERNAL_H

#include <stdint.h>

#include "transport/compiler.h"

#define KEEPER_SOCKET "keeper"
/* Another version's keeper is left alone; it ends by itself. */
#define KEEPER_VERSION 1u

enum keeper_kind {
	KEEPER_ADD,  /* with a descriptor; also what it has, from the keeper */
	KEEPER_DROP,
	KEEPER_END,  /* from the keeper: that was all */
};

struct keeper_message {
	uint32_t version;
	uint32_t kind;
	uint32_t channel;
	uint32_t page_size;
};

/* fd -1: none.  -1: not sent. */
int keeper_send(int sock, const struct keeper_message *m, int fd, int flags)
    MUST_CHECK;
/*
 * 1: a message; *fd is the caller's, or -1.  0: the other end has gone, or says
 * something else.  -1: nothing is there now.
 */
int keeper_receive(int sock, struct keeper_message *m, int *fd) MUST_CHECK;

/* The keeper's life; does not return.  Calls nothing but the system. */
void keeper_run(int listener, int dirfd) __attribute__((__noreturn__));

#endif /* RELAY_KEEPER_INTERNAL_H */
