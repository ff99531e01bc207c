#include "tests/unit/service/filter/assembler.h"

#include <stdlib.h>

#include "transport/wire/pb_writer.h"

void
asm_begin(struct assembler *a)
{
	a->n = 0;
	a->len = 0;
}

void
asm_word(struct assembler *a, uint32_t word)
{
	if (a->n == ASM_WORDS - 1)
		abort();
	a->words[a->n++] = word;
}

void
asm_field(struct assembler *a, uint32_t field)
{
	asm_word(a, field << 3 | 1);
}

void
asm_range(struct assembler *a, uint32_t first, uint32_t count)
{
	asm_word(a, first << 3 | 2);
	asm_word(a, count);
}

void
asm_nested(struct assembler *a, uint32_t field, uint32_t message)
{
	asm_word(a, field << 3 | 3);
	asm_word(a, message);
}

void
asm_string(struct assembler *a, uint32_t field)
{
	asm_word(a, field << 3 | 4);
}

void
asm_typed_string(struct assembler *a, uint32_t field, uint32_t type)
{
	asm_word(a, field << 3 | 5);
	asm_word(a, type);
}

void
asm_end(struct assembler *a)
{
	asm_word(a, 0);
}

void
asm_trace(struct assembler *a)
{
	asm_begin(a);
	asm_nested(a, 1, 1);
	asm_end(a);
}

void
asm_done(struct assembler *a, uint32_t off)
{
	uint64_t sum = 14695981039346656037ull;
	size_t i, k;

	a->len = 0;
	for (i = 0; i < a->n; i++) {
		for (k = 0; k < 4; k++) {
			sum ^= a->words[i] >> (8 * k) & 0xff;
			sum *= 1099511628211ull;
		}
		a->len += pb_encode_varint(a->bytes + a->len, a->words[i]);
	}
	a->len += pb_encode_varint(a->bytes + a->len, (uint32_t)sum + off);
}
