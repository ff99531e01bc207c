/*
 * session_losses: data of a session that was lost outside of its buffers, by
 * sequence and cause, for TraceStats.
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
 * Sequences and causes told apart in one session; beyond, losses are counted
 * for their machines.
 */
#define SESSION_LOSSES_MAX 16384u

/*
 * Adds a loss of a sequence; producer: its name, copied, or NULL.  Gives the
 * sequence an id, as its first packet would.
 */
void session_losses_add(struct session *s, const struct tb_origin *o,
    const char *producer, const struct link_loss *l);
/* As above with the sequence's id (0: only the machine is known). */
void session_losses_add_to(struct session *s, uint32_t machine,
    uint32_t sequence, const char *producer, const struct link_loss *l);
/*
 * Marks that an unknown amount of this machine's data is lost.  True: it was
 * not marked before.
 */
bool session_losses_mark(struct session *s, uint32_t machine, uint32_t cause);

/* For a clone, which has none yet. */
int session_losses_copy(struct session *to, const struct session *from)
    MUST_CHECK;
void session_losses_free(struct session_losses *l);

size_t session_losses_count(const struct session *s);
/*
 * Lists up to max rows, oldest first; names are the session's.  Returns how
 * many.
 */
size_t session_losses_list(const struct session *s,
    struct packet_link_loss *out, size_t max);
/* As above, summed by machine and cause. */
size_t session_losses_by_machine(const struct session *s,
    struct packet_link_loss *out, size_t max);

#endif /* SERVICE_INGEST_SESSION_LOSSES_H */
