/*
 * link_loss: what relays could not carry (LinkLoss), counted for the machine.
 */
#ifndef SERVICE_SESSION_LINK_LOSS_H
#define SERVICE_SESSION_LINK_LOSS_H

struct link;
struct link_channel;
struct link_loss;

/* A loss that stands here in the channel's blocks. */
void link_loss_take(struct link *l, struct link_channel *c,
    const struct link_loss *loss);

#endif /* SERVICE_SESSION_LINK_LOSS_H */
