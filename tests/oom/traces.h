/*
 * traces: what is in the traces of jobs without memory.  What goes wrong with
 * one fails the test: bytes that are no packets, or packets with something in
 * them that the session's filter had to take out.
 */
#ifndef TESTS_OOM_TRACES_H
#define TESTS_OOM_TRACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct Perfetto__Protos__TraceStats;

/* What producers write, and filters take out again. */
#define TRACES_SECRET "hidden"

struct traces_count {
	bool filtered; /* the secret has to be out of it; set before */
	int packets;   /* of the job's producer */
	uint64_t lost; /* as its statistics say */
};

/* What is missing, by these statistics. */
uint64_t traces_lost(const struct Perfetto__Protos__TraceStats *stats);

/* One packet; those inside of a compressed one count, too. */
void traces_packet(struct traces_count *c, const uint8_t *data, size_t len);
/* All that is in a file. */
void traces_file(struct traces_count *c, int fd);

#endif /* TESTS_OOM_TRACES_H */
