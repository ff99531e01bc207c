/*
 * programs: the ProtoVM programs of a trace, from the service's packets
 * (TracePacket.protovms): whose they are, and how much state they kept.
 *
 * Bounded; untrusted input.  Pure.
 */
#ifndef CLIENT_INSPECT_REPORT_PROGRAMS_H
#define CLIENT_INSPECT_REPORT_PROGRAMS_H

#include <stddef.h>
#include <stdint.h>

struct json_out;
struct pb_field;

#define SESSION_PROGRAMS_MAX          64u
#define SESSION_PROGRAM_PRODUCERS_MAX 8u

/* An instance, as the last packet about it has it. */
struct session_program {
	uint64_t hash;         /* of the encoded program */
	uint64_t bytes;        /* of the encoded program */
	uint64_t instructions; /* nested ones are not counted */
	uint64_t state_bytes;
	uint64_t memory_limit_kb;
	uint64_t times; /* packets about it */
	uint64_t n_producers;
	int32_t producers[SESSION_PROGRAM_PRODUCERS_MAX]; /* the first of them */
};

/* Zero-initialised is ready to use. */
struct session_programs {
	struct session_program *all; /* owned */
	size_t n;
	uint64_t overflow; /* instances that did not fit */
};

void session_programs_done(struct session_programs *p);
/*
 * Takes the payload of a packet.  An instance with the same program and first
 * producer as one before it is the same one.
 */
void session_programs_take(struct session_programs *p,
    const struct pb_field *protovms);
/* Writes them as the member "programs", an array of objects. */
void session_programs_json(const struct session_programs *p,
    struct json_out *j);

#endif /* CLIENT_INSPECT_REPORT_PROGRAMS_H */
