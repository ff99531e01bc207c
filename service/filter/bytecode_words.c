#include "service/filter/bytecode_words.h"

#include <stdio.h>
#include <stdlib.h>

#include "service/filter/bytecode.h"
#include "transport/base/failure.h"
#include "transport/wire/pb_reader.h"

/* The checksum is the lower half of a 64-bit FNV-1a hash. */
#define FNV_BASIS 0xcbf29ce484222325ull
#define FNV_PRIME 0x100000001b3ull

/* Each word counts as four bytes, the lowest first. */
static uint32_t
checksum(const uint32_t *words, size_t n)
{
	uint64_t sum = FNV_BASIS;
	unsigned shift;
	size_t i;

	for (i = 0; i < n; i++)
		for (shift = 0; shift < 32; shift += 8)
			sum = (sum ^ (words[i] >> shift & 0xff)) * FNV_PRIME;
	return (uint32_t)sum;
}

int
bytecode_words_read(const struct bytecode_source *src, uint32_t **words,
    size_t *n, char *err, size_t err_size)
{
	const uint8_t *p = src->data, *end;
	uint32_t *list = NULL;
	const char *why;
	uint64_t v;
	size_t count = 0;

	why = "it is empty";
	if (src->len == 0)
		goto fail;
	why = "it is too long (128 KiB are accepted)";
	if (src->len > BYTECODE_BYTES_MAX)
		goto fail;
	/* A word takes a byte at least. */
	why = "no memory";
	if ((list = reallocarray(NULL, src->len, sizeof(*list))) == NULL)
		goto fail;
	end = p + src->len;
	while (p < end) {
		why = "it is cut off in the middle of a word";
		if ((p = pb_varint(p, end, &v)) == NULL)
			goto fail;
		why = "a word of it has more than 32 bits";
		if (v > UINT32_MAX)
			goto fail;
		list[count++] = (uint32_t)v;
	}
	why = "its checksum is wrong";
	if (list[count - 1] != checksum(list, count - 1))
		goto fail;
	*words = list;
	*n = count - 1;
	return 0;

fail:
	free(list);
	return FAILURE(err, err_size, "Trace filter bytecode invalid: %s: %s",
	    src->name, why);
}
