/*
 * bytecode_words: the outer form of a filter's bytecode: varints of 32 bits
 * with a checksum behind them.  Pure, for bytecode.c alone.
 */
#ifndef SERVICE_FILTER_BYTECODE_WORDS_H
#define SERVICE_FILTER_BYTECODE_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct bytecode_source;

/*
 * Decodes the words and checks their sum.  *words, *n words without the
 * checksum (*n may be 0), is the caller's to free.  -1 with a sentence in err.
 */
int bytecode_words_read(const struct bytecode_source *src, uint32_t **words,
    size_t *n, char *err, size_t err_size) MUST_CHECK;

#endif /* SERVICE_FILTER_BYTECODE_WORDS_H */
