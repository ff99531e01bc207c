/*
 * assembler: bytecode of trace filters for tests, an opcode a call, in the
 * order in which fields and messages come.
 */
#ifndef TESTS_UNIT_SERVICE_FILTER_ASSEMBLER_H
#define TESTS_UNIT_SERVICE_FILTER_ASSEMBLER_H

#include <stddef.h>
#include <stdint.h>

#define ASM_WORDS 16384u

struct assembler {
	uint32_t words[ASM_WORDS];
	size_t n;
	uint8_t bytes[ASM_WORDS * 5];
	size_t len; /* of bytes, after asm_done() */
};

void asm_begin(struct assembler *a);
void asm_word(struct assembler *a, uint32_t word);
void asm_field(struct assembler *a, uint32_t field);
void asm_range(struct assembler *a, uint32_t first, uint32_t count);
void asm_nested(struct assembler *a, uint32_t field, uint32_t message);
void asm_string(struct assembler *a, uint32_t field);
void asm_typed_string(struct assembler *a, uint32_t field, uint32_t type);
void asm_end(struct assembler *a); /* of the message */
/* Trace with packets of message 1, which comes next. */
void asm_trace(struct assembler *a);
/* Writes bytes, with a checksum that is off by so much. */
void asm_done(struct assembler *a, uint32_t off);

#endif /* TESTS_UNIT_SERVICE_FILTER_ASSEMBLER_H */
