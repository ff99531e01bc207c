/*
 * source_order: the data sources of all producers sorted by name, and by age
 * within a name: the order in which Perfetto's service lists them.
 *
 * A sorted array of names, each with its data sources: adding a data source
 * costs a binary search, and a new name moves the names behind it.
 */
#ifndef SERVICE_MODEL_SOURCE_ORDER_H
#define SERVICE_MODEL_SOURCE_ORDER_H

#include <stddef.h>

#include "transport/base/compiler.h"

struct data_source;
struct source_name;

/* Zero-initialised is empty. */
struct source_order {
	struct source_name **names; /* sorted; each has a data source */
	size_t n, cap;
};

/* Frees the memory of an order, which has to be empty. */
void source_order_done(struct source_order *o);

/* Borrows ds until source_order_remove(); -1: no memory. */
int source_order_add(struct source_order *o, struct data_source *ds) MUST_CHECK;
void source_order_remove(struct source_order *o, struct data_source *ds);

/* NULL: there are none, or no more. */
const struct data_source *source_order_first(const struct source_order *o);
const struct data_source *source_order_next(const struct source_order *o,
    const struct data_source *ds);

#endif /* SERVICE_MODEL_SOURCE_ORDER_H */
