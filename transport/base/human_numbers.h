/*
 * human_numbers: numbers as people read them.  Pure; C locale.
 */
#ifndef TRANSPORT_BASE_HUMAN_NUMBERS_H
#define TRANSPORT_BASE_HUMAN_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

/* Enough for any of the texts below. */
#define HUMAN_TEXT_MAX 32

/* "812 bytes", "3.4 KiB", "1.0 GiB".  Returns out. */
char *human_bytes(char out[HUMAN_TEXT_MAX], uint64_t bytes);

/* "20,331".  Returns out. */
char *human_count(char out[HUMAN_TEXT_MAX], uint64_t n);

/* "0.4 s", "12.0 s", "3 min 05 s", "2 h 07 min".  Returns out. */
char *human_ms(char out[HUMAN_TEXT_MAX], uint64_t ms);

/* "s" unless n is 1: for plurals in messages. */
const char *human_s(uint64_t n);
/* As above for any word: "es" behind "patch" and "flush". */
const char *human_plural(const char *word, uint64_t n);

/*
 * v, which is 0 or more, without its fraction; UINT64_MAX where v is beyond.
 * A conversion alone would be undefined there.
 */
uint64_t human_whole(double v);

#endif /* TRANSPORT_BASE_HUMAN_NUMBERS_H */
