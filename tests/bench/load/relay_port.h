/*
 * relay_port: the connection of its own that a relay of Perfetto's has, and
 * what it says of the machine on those of its producers.
 */
#ifndef TESTS_BENCH_LOAD_RELAY_PORT_H
#define TESTS_BENCH_LOAD_RELAY_PORT_H

#include <stdint.h>

#include "transport/base/compiler.h"

struct line_identity;
struct load_totals;
struct loop;
struct place;
struct relay_port;

/* Connects at once, and again.  place and totals are borrowed. */
struct relay_port *relay_port_new(struct loop *l, const struct place *place,
    uint32_t number, struct load_totals *totals) MUST_CHECK;
void relay_port_free(struct relay_port *r);
/* Lives as long as it. */
const struct line_identity *relay_port_identity(const struct relay_port *r);

#endif /* TESTS_BENCH_LOAD_RELAY_PORT_H */
