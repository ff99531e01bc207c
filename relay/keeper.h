/*
 * keeper: a process beside the relay that holds the descriptors of its
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
 * when a relay leaves nothing behind, KEEPER_WAIT_MS after one that did when no
 * other came, and when the folder is removed.
 */
#ifndef RELAY_KEEPER_H
#define RELAY_KEEPER_H

#include <stddef.h>
#include <stdint.h>

#include "transport/compiler.h"

struct keeper; /* a connection to it */

/* For how long it waits for the next relay. */
#define KEEPER_WAIT_MS 60000
/* Descriptors that it holds. */
#define KEEPER_MAX 8192u
/* For how long keeper_find() may take. */
#define KEEPER_FIND_MS 2000

/*
 * The keeper that an earlier relay left; fn is called for each memory it holds,
 * and owns fd.  It keeps them until keeper_drop().  May take KEEPER_FIND_MS: for
 * the start only.  NULL: there is none.
 */
struct keeper *keeper_find(int dirfd,
    void (*fn)(void *arg, uint32_t channel, size_t page_size, int fd),
    void *arg) MUST_CHECK;
/* A new one.  NULL with a sentence in err. */
struct keeper *keeper_start(int dirfd, char *err, size_t err_size) MUST_CHECK;
/* It goes on with what was not dropped, unless there is nothing. */
void keeper_close(struct keeper *k);

/* fd stays the caller's.  -1: the keeper is gone or does not listen. */
int keeper_add(struct keeper *k, uint32_t channel, size_t page_size, int fd)
    MUST_CHECK;
int keeper_drop(struct keeper *k, uint32_t channel) MUST_CHECK;

#endif /* RELAY_KEEPER_H */
