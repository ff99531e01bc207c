/*
 * losses: what relays could not carry (LinkLoss): counted for the machine, for
 * the session and the sequence that it is missing from, and told in the trace by
 * the next packet of that sequence.
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
void link_loss_count(struct machine *m, const struct link_loss *loss);
/*
 * Tells it in the traces that this producer writes into; writer and buffer 0:
 * nobody knows what of the producer it is missing from.
 */
void link_loss_tell(struct producer *p, const struct link_loss *loss);

/* What is dropped here of a chunk of this producer: told as if a relay had. */
void link_loss_of_producer(struct producer *p, const struct link_loss *loss);
/* The same where no sequence is to be named. */
void link_loss_of_machine(struct machine *m, struct session *s,
    const struct link_loss *loss);

/*
 * What the next chunk of this writer in this buffer is to say (struct tb_chunk,
 * loss), once.  Only when p->losses is not NULL.
 */
uint32_t link_loss_before(struct producer *p, uint32_t writer,
    uint16_t buffer);
/* Of a producer that goes. */
void link_losses_free(struct producer *p);

/*
 * Nobody knows how much, if anything, is lost of this instance: counted for its
 * machine, and the trace says it.
 */
void link_loss_unknown(struct ds_instance *i, uint32_t cause);

#endif /* SERVICE_INGEST_LOSSES_H */
