/*
 * comm_text: the kernel's 16 bytes for a task's name, which most events of the
 * scheduler have one or two of.  Inline, and without calls of libc, as these
 * were a fifth of what such an event cost.
 */
#ifndef CLIENT_FTRACE_EVENTS_COMM_TEXT_H
#define CLIENT_FTRACE_EVENTS_COMM_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* TASK_COMM_LEN of the kernel. */
#define COMM_BYTES 16u

/* The lowest byte of v that is 0 has its high bit set; 0: there is none. */
static inline uint64_t
comm_text_zero(uint64_t v)
{
	return (v - UINT64_C(0x0101010101010101)) & ~v &
	    UINT64_C(0x8080808080808080);
}

/* As strnlen(at, COMM_BYTES), on little-endian machines. */
static inline size_t
comm_text_len(const uint8_t *at)
{
	uint64_t half[2], zero;

	memcpy(half, at, sizeof(half));
	if ((zero = comm_text_zero(half[0])) != 0)
		return (size_t)__builtin_ctzll(zero) / 8;
	if ((zero = comm_text_zero(half[1])) != 0)
		return 8 + (size_t)__builtin_ctzll(zero) / 8;
	return COMM_BYTES;
}

/* The name's bytes in two words, and zeros behind it. */
static inline void
comm_text_load(uint64_t half[2], const uint8_t *at)
{
	uint64_t zero;

	memcpy(half, at, COMM_BYTES);
	if ((zero = comm_text_zero(half[0])) != 0) {
		/* Bits below the lowest zero byte's. */
		half[0] &= ((zero & -zero) >> 7) - 1;
		half[1] = 0;
	} else if ((zero = comm_text_zero(half[1])) != 0) {
		half[1] &= ((zero & -zero) >> 7) - 1;
	}
}

#endif /* CLIENT_FTRACE_EVENTS_COMM_TEXT_H */
