/*
 * stats_numbers: a message that is all numbers, with fields below 32, such as
 * TraceStats.BufferStats: read, added to another or subtracted, and written.
 *
 * Pure.  Input is hostile.
 */
#ifndef TRANSPORT_PACKET_STATS_NUMBERS_H
#define TRANSPORT_PACKET_STATS_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_writer;

#define STATS_NUMBERS_END 32u
#define STATS_BIT(field)  (1u << (field))

struct stats_numbers {
	uint64_t value[STATS_NUMBERS_END];
	uint32_t present; /* STATS_BIT of each field that the message has */
};

enum stats_how { STATS_ADD, STATS_SUBTRACT };

/* Other fields, and numbers of another wire type than varint, are left out. */
void stats_numbers_read(struct stats_numbers *n, const uint8_t *data,
    size_t len);

/* A counter of the later reading and the earlier one's. */
uint64_t stats_combined(enum stats_how how, uint64_t later, uint64_t earlier);

/*
 * Combines the fields outside of `readings`; of those in it the later value
 * stands, or where it has none, for STATS_ADD, the earlier one.
 */
void stats_numbers_combine(struct stats_numbers *later, enum stats_how how,
    const struct stats_numbers *earlier, uint32_t readings);

/* Whether any of these fields is not 0. */
bool stats_numbers_any(const struct stats_numbers *n, uint32_t fields);

/* Appends the fields that the message has. */
void stats_numbers_put(struct pb_writer *w, const struct stats_numbers *n);

#endif /* TRANSPORT_PACKET_STATS_NUMBERS_H */
