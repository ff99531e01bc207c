/* trigger_pass: triggers on their way to other collectors of a fleet. */
#ifndef CLIENT_FLEET_TRIGGER_PASS_H
#define CLIENT_FLEET_TRIGGER_PASS_H

#include "transport/base/compiler.h"

struct Perfetto__Protos__ObservableEvents__CloneTriggerHit;
struct collector;
struct loop;
struct trigger_passes;

/* Most triggers under way; more are not passed on, and logged. */
#define TRIGGER_PASSES_MAX 1024u

/* NULL: no memory. */
struct trigger_passes *trigger_passes_new(struct loop *l) MUST_CHECK;
/* Triggers under way may arrive or not.  NULL is fine. */
void trigger_passes_free(struct trigger_passes *p);

/*
 * Activates the trigger at `to`, once, as a producer named "fleet/FROM/NAME"
 * after the collector and the producer that it came from.  What fails is
 * logged.  from and to outlive p.
 */
void trigger_passes_add(struct trigger_passes *p, const struct collector *from,
    const struct collector *to,
    const struct Perfetto__Protos__ObservableEvents__CloneTriggerHit *hit);

#endif /* CLIENT_FLEET_TRIGGER_PASS_H */
