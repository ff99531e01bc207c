/*
 * losses: what relays could not carry (LinkLoss): counted for the machine, for
 * the session and the sequence that it is missing from, and told in the trace
 * by the next packet of that sequence.
 */
#ifndef SERVICE_INGEST_LOSSES_H
#define SERVICE_INGEST_LOSSES_H

#include <stdint.h>

struct ds_instance;
struct link_loss;
struct machine;
struct producer;
struct session;

/*
 * Its bit in TracePacket.previous_packet_dropped, beside those of Perfetto's
 * DataLossReason; cause is a LinkLossCause, LINK_LOSS_UNSPECIFIED has none.
 */
#define LINK_LOSS_BIT(cause) ((cause) == 0 ? 0u : 1u << (15 + (cause)))

/* Counts it for the machine; the cause must be a known one. */
void losses_count(struct machine *m, const struct link_loss *loss);
/*
 * Tells it in the traces that this producer writes into; writer and buffer 0:
 * unknown which of them it is missing from.
 */
void losses_tell(struct producer *p, const struct link_loss *loss);

/* Counts and tells what the collector drops of a chunk, as if a relay had. */
void losses_of_producer(struct producer *p, const struct link_loss *loss);
/* As above, without naming a sequence. */
void losses_of_machine(struct machine *m, struct session *s,
    const struct link_loss *loss);

/*
 * Takes the bits that the next chunk of this writer in this buffer has to carry
 * (struct tb_chunk, loss).  Only when p->losses is not NULL.
 */
uint32_t losses_take_bits(struct producer *p, uint32_t writer,
    uint16_t buffer);
/* The producer is being freed. */
void losses_free(struct producer *p);

/*
 * An unknown amount, if anything, is lost of this instance: counted for its
 * machine, and the trace says it.
 */
void losses_unknown(struct ds_instance *i, uint32_t cause);

#endif /* SERVICE_INGEST_LOSSES_H */
