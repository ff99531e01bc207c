/*
 * shm_keeper_wire: the messages between the relay and its keeper, one in each
 * packet of a SOCK_SEQPACKET socket.
 */
#ifndef RELAY_PRODUCERS_SHM_KEEPER_WIRE_H
#define RELAY_PRODUCERS_SHM_KEEPER_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/base/compiler.h"

#define SHM_KEEPER_SOCKET "keeper"
/* A keeper of another version is left alone; it ends by itself. */
#define SHM_KEEPER_VERSION 1u

enum shm_keeper_kind {
	/* Has a descriptor, to be held, or from the keeper: that it holds. */
	SHM_KEEPER_ADD,
	SHM_KEEPER_DROP, /* to the keeper: closes the channel's descriptor */
	SHM_KEEPER_END,  /* from the keeper: it has sent all ADDs */
};

struct shm_keeper_message {
	uint32_t version;
	uint32_t kind;
	uint32_t channel;
	uint32_t page_size;
};

/*
 * Sends a message, with a descriptor unless fd is -1; flags of sendmsg().  -1:
 * not sent.
 */
int shm_keeper_send(int sock, const struct shm_keeper_message *m, int fd,
    int flags) MUST_CHECK;
/*
 * Receives a message, without blocking.  1: *m is set, *fd is the caller's, or
 * -1.  0: the other end has closed, or sent no message of this version.  -1:
 * there is none now.
 */
int shm_keeper_receive(int sock, struct shm_keeper_message *m, int *fd)
    MUST_CHECK;

/*
 * Closes every descriptor of the relay but these two, which get fixed numbers;
 * false: it could not.  For a child that is about to become the keeper: between
 * fork() and its end it makes only system calls.
 */
bool shm_keeper_close_others(int listener, int dirfd) MUST_CHECK;
/*
 * Runs the keeper, after shm_keeper_close_others(); does not return.  Makes
 * only system calls, too.
 */
void shm_keeper_run(void) __attribute__((__noreturn__));

#endif /* RELAY_PRODUCERS_SHM_KEEPER_WIRE_H */
