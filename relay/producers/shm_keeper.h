/*
 * shm_keeper: a process beside the relay that holds the descriptors of its
 * producers' shared memory, and nothing else, so that the memory outlives a
 * relay that is killed; the next relay in the same folder gets them from it.
 *
 * Why a process: the memory has to be a memfd that is sealed against shrinking.
 * Producers map it writable, so they could truncate a file in the state folder
 * at any time, and the next touch would kill the relay; clients that check for
 * seals, as ours, would refuse it as well.  A sealed memfd has no name: a
 * process has to hold its descriptor.
 *
 * The keeper is made with the first memory, by a double fork; it keeps no other
 * descriptor, no terminal and no signal handler.  It takes commands on its
 * socket "keeper" in the state folder, of its own user only, from one relay at
 * a time.  It ends when a relay disconnects and leaves no memory; when no relay
 * has come for SHM_KEEPER_WAIT_MS after one that left some; and, while no relay
 * is connected, when the folder is removed.
 */
#ifndef RELAY_PRODUCERS_SHM_KEEPER_H
#define RELAY_PRODUCERS_SHM_KEEPER_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct shm_keeper; /* a connection to it */

/* Time for which the keeper waits for the next relay. */
#define SHM_KEEPER_WAIT_MS 60000
/* Descriptors that the keeper holds at most. */
#define SHM_KEEPER_MAX 8192u
/* Time for which shm_keeper_find() may block. */
#define SHM_KEEPER_FIND_MS 2000

/*
 * Connects to the keeper that an earlier relay left in the folder dirfd, which
 * stays the caller's; fn is called for each memory that the keeper holds, and
 * owns fd, a copy: the keeper holds its own until shm_keeper_drop().  May block
 * for SHM_KEEPER_FIND_MS: for the start only.  NULL: there is none, or it did
 * not answer in time (fn may have been called).
 */
struct shm_keeper *shm_keeper_find(int dirfd,
    void (*fn)(void *arg, uint32_t channel, size_t page_size, int fd),
    void *arg) MUST_CHECK;
/*
 * Starts a keeper in the folder dirfd, which stays the caller's, and connects
 * to it.  NULL with a sentence in err.
 */
struct shm_keeper *shm_keeper_start(int dirfd, char *err, size_t err_size)
    MUST_CHECK;
/* Disconnects; the keeper ends now if it holds no memory.  NULL is fine. */
void shm_keeper_close(struct shm_keeper *k);

/*
 * Hands a memory to the keeper; fd stays the caller's.  Never blocks, and waits
 * for no answer.  -1: the keeper is gone or its socket is full.
 */
int shm_keeper_add(struct shm_keeper *k, uint32_t channel, size_t page_size,
    int fd)
    MUST_CHECK;
/* Lets the keeper close the memory of a channel.  -1: as above. */
int shm_keeper_drop(struct shm_keeper *k, uint32_t channel) MUST_CHECK;

#endif /* RELAY_PRODUCERS_SHM_KEEPER_H */
