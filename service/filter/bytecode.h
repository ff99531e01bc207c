/*
 * bytecode: table of the fields that a TraceFilter lets through, by message,
 * compiled for looking up.
 *
 * The input is the format of Perfetto's filter compiler: varints of 32 bits,
 * the last of them a checksum of the others.  Each message in turn is its
 * fields in ascending order, each a word `number << 3 | opcode` and, where the
 * opcode takes one, a word with its argument; then a word 0.  Messages are
 * numbered in this order; number 0 is Trace.
 *
 *	1 the field, as it is          2 n fields from this one on, as they are
 *	3 a message, by that number    4 a string, through the string rules
 *	5 a string, of that semantic type
 *
 * An overlay changes the bytecode it comes with, and wins: three words an entry
 * (message, field with opcode 1, 4 or 5, argument), ascending.
 *
 * Pure.  The bytes come from a consumer: all of them are checked when they are
 * loaded, so that a lookup needs no more checks.
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

/* Semantic types at or above this are not known to any string rule. */
#define BYTECODE_TYPES 128u

enum field_action {
	FIELD_DENY = 0,
	FIELD_SIMPLE, /* as it is, not looked into */
	FIELD_STRING, /* argument: semantic type, at most BYTECODE_TYPES */
	FIELD_NESTED, /* argument: number of a message that exists */
};

struct field_rule {
	uint32_t action : 2; /* enum field_action */
	uint32_t argument : 30;
};

/* The bytes to load, borrowed; name: the config field's, for messages. */
struct bytecode_source {
	const char *name;
	const uint8_t *data;
	size_t len;
};

/*
 * Loads bytecode and its overlay (NULL: none), neither of which is kept.  NULL
 * with a sentence in err.
 */
struct bytecode *bytecode_load(const struct bytecode_source *base,
    const struct bytecode_source *overlay, char *err, size_t err_size)
    MUST_CHECK;
void bytecode_free(struct bytecode *b);

/*
 * The rule for a field of a message; FIELD_DENY where there is none.  message:
 * 0 (Trace), or the argument of a FIELD_NESTED; no other is checked.
 */
struct field_rule bytecode_rule(const struct bytecode *b, uint32_t message,
    uint32_t field);

#endif /* SERVICE_FILTER_BYTECODE_H */
