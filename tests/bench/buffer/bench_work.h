/*
 * bench_work: what the trace buffer's benchmarks write and read: chunk
 * templates of real-looking packets, and the limits they are held against.
 */
#ifndef TESTS_BENCH_BUFFER_BENCH_WORK_H
#define TESTS_BENCH_BUFFER_BENCH_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/buffer/trace_buffer.h"

#define TEMPLATES 100u
#define TEMPLATE_ROOM 8192u

struct template {
	uint8_t bytes[TEMPLATE_ROOM];
	uint32_t len;
	uint16_t fragments;
	uint8_t flags;
	uint32_t packets; /* that end in it */
	uint32_t patch_at; /* in its last fragment */
};

enum work_kind {
	WORK_WHOLE,      /* 5-15 packets of 50-500 bytes */
	WORK_FRAGMENTED, /* every third packet begins in one chunk and ends in
	                    the next: two whole ones between */
	WORK_FULL,       /* 4 KiB chunks filled to the last byte: the packet at
	                    the end of each continues */
};

struct work {
	struct template t[TEMPLATES];
	uint64_t bytes; /* of all */
};

void work_make(struct work *w, enum work_kind kind);

double bench_now(void);
/* Keeps the compiler from dropping work whose result nobody uses. */
void bench_use(uint64_t value);

/* Copies the templates in turn into the ring until bytes were copied. */
void limit_write(const struct work *w, uint8_t *ring, size_t size,
    uint64_t bytes);
/* Copies n templates' worth of what limit_write() left out of the ring. */
void limit_read(const struct work *w, const uint8_t *ring, size_t size,
    uint8_t *to, size_t to_size);

struct writers {
	uint32_t n;
	uint32_t *next_id; /* of each */
};

/*
 * Writes about that many bytes from n writers in turn, each of a producer of
 * its own, patching what has to be.  Returns the bytes written.
 */
uint64_t work_write(struct trace_buffer *tb, const struct work *w,
    struct writers *writers, uint64_t bytes);

#endif /* TESTS_BENCH_BUFFER_BENCH_WORK_H */
