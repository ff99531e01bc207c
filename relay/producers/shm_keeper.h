/*
 * shm_keeper: a process beside the relay that holds the descriptors of its
 * producers' shared memory, and nothing else, so that the memory outlives a
 * relay that is killed; the next relay in the same folder gets them from it.
 *
 * Why a process: the memory has to be a memfd that is sealed against shrinking.
 * Producers map it writable, so they could truncate a file in the state folder
 * at any time, and the next touch would kill the relay; clients that check for
 * seals, as ours, would refuse it as well.  A sealed memfd has no name: somebody
 * has to hold it.
 *
 * The keeper is made with the first memory, by a double fork; it keeps no other
 * descriptor, no terminal and no handler, and is led by its socket "keeper" in
 * the folder, where only its own user is served, one relay at a time.  It ends
 * when a relay leaves nothing behind, SHM_KEEPER_WAIT_MS after one that did
 * when no other came, and when the folder is removed.
 */
#ifndef RELAY_PRODUCERS_SHM_KEEPER_H
#define RELAY_PRODUCERS_SHM_KEEPER_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct shm_keeper; /* a connection to it */

/* For how long it waits for the next relay. */
#define SHM_KEEPER_WAIT_MS 60000
/* Descriptors that it holds. */
#define SHM_KEEPER_MAX 8192u
/* For how long shm_keeper_find() may take. */
#define SHM_KEEPER_FIND_MS 2000

/*
 * The keeper that an earlier relay left; fn is called for each memory it holds,
 * and owns fd.  It keeps them until shm_keeper_drop().  May take
 * SHM_KEEPER_FIND_MS: for the start only.  NULL: there is none.
 */
struct shm_keeper *shm_keeper_find(int dirfd,
    void (*fn)(void *arg, uint32_t channel, size_t page_size, int fd),
    void *arg) MUST_CHECK;
/* A new one.  NULL with a sentence in err. */
struct shm_keeper *shm_keeper_start(int dirfd, char *err, size_t err_size)
    MUST_CHECK;
/* The keeper lives on until it has no memory left to keep. */
void shm_keeper_close(struct shm_keeper *k);

/* fd stays the caller's.  -1: the keeper is gone or does not listen. */
int shm_keeper_add(struct shm_keeper *k, uint32_t channel, size_t page_size,
    int fd)
    MUST_CHECK;
int shm_keeper_drop(struct shm_keeper *k, uint32_t channel) MUST_CHECK;

#endif /* RELAY_PRODUCERS_SHM_KEEPER_H */
