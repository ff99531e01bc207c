/*
 * packet_filter: which packets of a trace are shown.  Pure.
 */
#ifndef CLIENT_INSPECT_PACKET_FILTER_H
#define CLIENT_INSPECT_PACKET_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct packet_facts;

#define PACKET_FILTER_MAX_TYPES 32u

/* Zero-initialised lets everything through. */
struct packet_filter {
	uint32_t types[PACKET_FILTER_MAX_TYPES]; /* any of them */
	size_t n_types;
	bool has_sequence;
	uint32_t sequence;
	const char *machine; /* a name, a pattern or an id; borrowed */
	bool has_from, has_to;
	int64_t from_ns, to_ns; /* since the trace's start */
};

/*
 * Parsers of the flags' values; -1 with a sentence in err.  A type is a field
 * of TracePacket, by name or number.
 */
int packet_filter_type(struct packet_filter *f, const char *text, char *err,
    size_t err_size) MUST_CHECK;
int packet_filter_sequence(struct packet_filter *f, const char *text,
    char *err, size_t err_size) MUST_CHECK;
/* Seconds, with or without a fraction: "1.5". */
int packet_filter_from(struct packet_filter *f, const char *text, char *err,
    size_t err_size) MUST_CHECK;
int packet_filter_to(struct packet_filter *f, const char *text, char *err,
    size_t err_size) MUST_CHECK;
/* Whether the filter excludes any packet. */
bool packet_filter_is_set(const struct packet_filter *f);

/*
 * Whether the packet passes.  name: of the packet's machine, or NULL.  at_ns:
 * its time since the trace's start.
 */
bool packet_filter_match(const struct packet_filter *f,
    const struct packet_facts *p, const char *name, int64_t at_ns);
/* Whether `machine`, as in the filter, means the machine of this id, name. */
bool packet_filter_is_machine(const char *machine, uint32_t id,
    const char *name);

#endif /* CLIENT_INSPECT_PACKET_FILTER_H */
