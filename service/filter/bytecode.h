/*
 * bytecode: which fields of which messages a TraceFilter lets through, compiled
 * for looking up.
 *
 * What comes in is the format of Perfetto's filter compiler: varints of 32
 * bits, the last of them a checksum of the others.  Of each message, in turn,
 * come its fields in ascending order, as a word number << 3 | opcode and, where
 * the opcode takes one, a word with its argument; then a word 0.  Messages are
 * numbered as they come; number 0 is Trace.
 *
 *	1 the field, as it is          2 so many fields from it on, as they are
 *	3 a message, by that number    4 a string, through the string rules
 *	5 a string, of that semantic type
 *
 * An overlay changes the bytecode it comes with: it has three words an entry
 * (message, field, argument), ascending, with the opcodes 1, 4 and 5, and wins.
 *
 * Pure.  The bytes come from a consumer: all of it is checked here, so that a
 * lookup needs no more checks.
 */
#ifndef SERVICE_FILTER_BYTECODE_H
#define SERVICE_FILTER_BYTECODE_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct bytecode;

/* Perfetto's whole schema has some 1500 messages, and takes 20 KiB. */
#define BYTECODE_BYTES_MAX    (128u * 1024u)
#define BYTECODE_MESSAGES_MAX 4096u

/* Types at or above it are not known to any rule. */
#define BYTECODE_TYPES 128u

enum field_action {
	FIELD_DENY = 0,
	FIELD_SIMPLE, /* as it is, whatever is in it */
	FIELD_STRING, /* argument: semantic type, at most BYTECODE_TYPES */
	FIELD_NESTED, /* argument: number of a message that exists */
};

struct field_rule {
	uint32_t action : 2; /* enum field_action */
	uint32_t argument : 30;
};

/* The program to load; name is the config field's, for messages. */
struct bytecode_source {
	const char *name;
	const uint8_t *data;
	size_t len;
};

/* overlay NULL: none.  NULL with a sentence in err. */
struct bytecode *bytecode_load(const struct bytecode_source *base,
    const struct bytecode_source *overlay, char *err, size_t err_size)
    MUST_CHECK;
void bytecode_free(struct bytecode *b);

/* message: 0 (there is one at least), or an argument of FIELD_NESTED. */
struct field_rule bytecode_rule(const struct bytecode *b, uint32_t message,
    uint32_t field);

#endif /* SERVICE_FILTER_BYTECODE_H */
