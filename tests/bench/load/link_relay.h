/*
 * link_relay: a relay with a link to a collector (docs/link-protocol.md), and
 * nothing behind it: its devices are in this process, each a channel.
 *
 * It keeps nothing and resumes nothing: when its connection ends, its devices
 * are cut off, and its next link is a new one of the same relay.
 */
#ifndef TESTS_BENCH_LOAD_LINK_RELAY_H
#define TESTS_BENCH_LOAD_LINK_RELAY_H

#include <stddef.h>
#include <stdint.h>

#include "tests/bench/load/line.h"
#include "transport/base/compiler.h"

struct link_relay;
struct load_totals;

/* place and totals are borrowed.  number names it.  NULL: no memory. */
struct link_relay *link_relay_new(struct loop *l, const struct place *place,
    uint32_t number, struct load_totals *totals) MUST_CHECK;
/* After its lines were freed. */
void link_relay_free(struct link_relay *r);

/*
 * A line for one device; the relay connects, if it is not connected.  Ending
 * it LINE_CLEAN closes its channel; any other way cuts the relay off, and with
 * it all of its devices.
 */
struct line *link_relay_line(struct link_relay *r, const struct line_ops *ops,
    void *arg, char *err, size_t err_size) MUST_CHECK;

#endif /* TESTS_BENCH_LOAD_LINK_RELAY_H */
