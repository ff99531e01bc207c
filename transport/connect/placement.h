/*
 * placement: the collector that a machine belongs to, as a function of its name
 * and of all collectors' names: rendezvous hashing (highest random weight).
 *
 * All who know the list get the same answer, whatever its order, and nothing
 * is stored or agreed upon.  A collector that is added or removed moves only
 * the machines that come to it or were on it.  Pure.
 *
 * The weight of a collector for a machine is the number that the first eight
 * bytes, most significant first, of this hash make:
 *
 *	SHA-256(name of the machine, one NUL byte, name of the collector)
 *
 * The collector with the highest weight comes first.  This is part of the
 * interface, as other programs may compute it, too; examples in
 * tests/unit/transport/connect/test_placement.c.
 */
#ifndef TRANSPORT_CONNECT_PLACEMENT_H
#define TRANSPORT_CONNECT_PLACEMENT_H

#include <stddef.h>

#include "transport/base/compiler.h"

/* Most collectors in a list. */
#define PLACEMENT_MAX 256u

/*
 * Sorts the n collectors by their weight for the machine: order[0] is the
 * place in the list of the collector that it belongs to, order[1] of the one to
 * go to when that is gone, and so on.  Names count byte by byte: "C1" is not
 * "c1".  -1 with a sentence in err, and order as it was, when there are none or
 * more than PLACEMENT_MAX, when a name is empty, when two collectors have the
 * same name, or when memory is short.
 */
int placement_order(const char *machine, const char *const *collectors,
    size_t n, size_t *order, char *err, size_t err_size) MUST_CHECK;

#endif /* TRANSPORT_CONNECT_PLACEMENT_H */
