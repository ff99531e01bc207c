/* hash_map_internal: the seed of the hashes, for hash_map.c and its test. */
#ifndef TRANSPORT_BASE_HASH_MAP_INTERNAL_H
#define TRANSPORT_BASE_HASH_MAP_INTERNAL_H

#include <stdint.h>

/*
 * Sets the numbers that all hashes depend on.  Changes every hash, so no map
 * may have items.
 */
void hash_seed(uint64_t first, uint64_t second);

#endif /* TRANSPORT_BASE_HASH_MAP_INTERNAL_H */
