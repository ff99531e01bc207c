/*
 * shm_keeper_wire: what the relay and its keeper say to each other, one message
 * a packet.
 */
#ifndef RELAY_PRODUCERS_SHM_KEEPER_WIRE_H
#define RELAY_PRODUCERS_SHM_KEEPER_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/base/compiler.h"

#define SHM_KEEPER_SOCKET "keeper"
/* Another version's keeper is left alone; it ends by itself. */
#define SHM_KEEPER_VERSION 1u

enum shm_keeper_kind {
	/* with a descriptor; from the keeper: one that it has */
	SHM_KEEPER_ADD,
	SHM_KEEPER_DROP,
	SHM_KEEPER_END,  /* from the keeper: that was all */
};

struct shm_keeper_message {
	uint32_t version;
	uint32_t kind;
	uint32_t channel;
	uint32_t page_size;
};

/* fd -1: none.  -1: not sent. */
int shm_keeper_send(int sock, const struct shm_keeper_message *m, int fd,
    int flags) MUST_CHECK;
/*
 * 1: a message; *fd is the caller's, or -1.  0: the other end has gone, or says
 * something else.  -1: nothing is there now.
 */
int shm_keeper_receive(int sock, struct shm_keeper_message *m, int *fd)
    MUST_CHECK;

/*
 * Closes every descriptor of the relay but these two, which get fixed numbers;
 * false: it could not.  For a child that is about to become the keeper; calls
 * nothing but the system.
 */
bool shm_keeper_close_others(int listener, int dirfd) MUST_CHECK;
/*
 * The keeper's life after shm_keeper_close_others(); does not return.  Calls
 * nothing but the system.
 */
void shm_keeper_run(void) __attribute__((__noreturn__));

#endif /* RELAY_PRODUCERS_SHM_KEEPER_WIRE_H */
