/*
 * losses: trace data that relays could not carry (LinkLoss) or that the
 * collector dropped: counted for the machine, for the session and the sequence
 * that it is missing from, and reported in the trace by the next packet of that
 * sequence.  Belongs to the loop's thread.
 */
#ifndef SERVICE_INGEST_LOSSES_H
#define SERVICE_INGEST_LOSSES_H

#include <stdint.h>

struct ds_instance;
struct link_loss;
struct machine;
struct producer;
struct service;
struct session;

/*
 * The bit of a cause in TracePacket.previous_packet_dropped, beside those of
 * Perfetto's DataLossReason; cause: a LinkLossCause.  LINK_LOSS_UNSPECIFIED has
 * no bit.
 */
#define LINK_LOSS_BIT(cause) ((cause) == 0 ? 0u : 1u << (15 + (cause)))

/*
 * Counts a loss for the service and the machine only; the cause must be a known
 * one.
 */
void losses_count(struct service *s, struct machine *m,
    const struct link_loss *loss);
/*
 * Counts a loss in the session that it is missing from, and has the next packet
 * of the sequence report it.  Writer and buffer 0: the sequence is unknown; the
 * loss is counted in the producer's session, or, where the producer has
 * several, each is marked as incomplete.
 */
void losses_tell(struct producer *p, const struct link_loss *loss);

/*
 * Counts and reports a chunk that the collector drops: losses_count() and
 * losses_tell(), by its writer and buffer.
 */
void losses_of_producer(struct producer *p, const struct link_loss *loss);
/* Counts such a loss for machine and session, without naming a sequence. */
void losses_of_machine(struct machine *m, struct session *s,
    const struct link_loss *loss);

/*
 * Takes the bits that the next chunk of this writer in this buffer has to carry
 * (struct tb_chunk, loss); 0: none.  Only while p->losses is not NULL; may free
 * it.
 */
uint32_t losses_take_bits(struct producer *p, uint32_t writer,
    uint16_t buffer);
/* Frees p->losses, as its producer is being freed; NULL is fine. */
void losses_free(struct producer *p);

/*
 * Marks that an unknown amount of this instance's data may be lost: once for
 * its session, machine and cause, in the trace and in the machine's counters.
 */
void losses_unknown(struct ds_instance *i, uint32_t cause);

#endif /* SERVICE_INGEST_LOSSES_H */
