/*
 * session_losses: table of a session's data that was lost outside of its
 * buffers, a row for each machine, sequence and cause, for TraceStats.  Belongs
 * to the loop's thread.
 */
#ifndef SERVICE_INGEST_SESSION_LOSSES_H
#define SERVICE_INGEST_SESSION_LOSSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct link_loss;
struct packet_link_loss;
struct session;
struct session_losses;
struct tb_origin;

/*
 * Most rows, beyond which losses are counted by machine and cause alone (at
 * most as many rows again).
 */
#define SESSION_LOSSES_MAX 16384u

/*
 * Adds a loss of a sequence; producer: the producer's name, copied, or NULL.
 * Gives the sequence an id, as its first packet would.  Without memory the loss
 * is only logged.
 */
void session_losses_add(struct session *s, const struct tb_origin *o,
    const char *producer, const struct link_loss *l);
/* As above with the sequence's id (0: only the machine is known). */
void session_losses_add_to(struct session *s, uint32_t machine,
    uint32_t sequence, const char *producer, const struct link_loss *l);
/*
 * Makes a row of this machine and cause, which may stay empty: an unknown
 * amount of data is lost.  True: there was no such row before.
 */
bool session_losses_mark(struct session *s, uint32_t machine, uint32_t cause);

/*
 * Copies all rows to a clone, which has none yet.  -1: no memory; `to` may hold
 * some of them then.
 */
int session_losses_copy(struct session *to, const struct session *from)
    MUST_CHECK;
void session_losses_free(struct session_losses *l);

size_t session_losses_count(const struct session *s);
/*
 * Lists up to max rows, oldest first; their names are the session's and live as
 * long as its losses.  Returns how many.
 */
size_t session_losses_list(const struct session *s,
    struct packet_link_loss *out, size_t max);
/* Lists up to max sums by machine and cause, without sequence and name. */
size_t session_losses_by_machine(const struct session *s,
    struct packet_link_loss *out, size_t max);

#endif /* SERVICE_INGEST_SESSION_LOSSES_H */
