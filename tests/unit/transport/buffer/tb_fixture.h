/*
 * tb_fixture: short words for the trace buffer's tests: chunks put together
 * from packets that are a letter and a length, and expectations on what is read
 * back.
 */
#ifndef TESTS_UNIT_TRANSPORT_BUFFER_TB_FIXTURE_H
#define TESTS_UNIT_TRANSPORT_BUFFER_TB_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/buffer/trace_buffer.h"

#define FROM_PREV TB_FIRST_CONTINUES_FROM_PREV
#define TO_NEXT   TB_LAST_CONTINUES_ON_NEXT
#define PATCH     TB_NEEDS_PATCHING

/* Size of a chunk's header in the ring. */
#define HEADER 16u

/* A test with a fresh ring of one page as *state. */
#define RULE(name) \
	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int fixture_setup(void **state);
int fixture_teardown(void **state);

struct build {
	uint8_t bytes[70000];
	size_t len;
	uint16_t fragments;
};

void build_start(struct build *b);
/* A fragment of len bytes of letter c, after a varint of its size. */
void build_fragment(struct build *b, char c, size_t len);
void build_raw(struct build *b, const void *bytes, size_t len);

/*
 * Commits a chunk.  text: fragments as "a10 b200": letter, length; "!" is the
 * writer's drop marker, "?" a size that is out of bounds.
 */
bool commit(struct trace_buffer *tb, uint64_t producer, uint32_t writer,
    uint32_t id, uint8_t flags, const char *text);
/* Scraped while it was written; reserved: length of the payload. */
bool scrape(struct trace_buffer *tb, uint64_t producer, uint32_t writer,
    uint32_t id, uint8_t flags, const char *text, size_t reserved);

/* A clone that is filled, in small pieces; take: with the contents. */
struct trace_buffer *whole_clone(struct trace_buffer *tb, bool take);

/* Any bytes as a chunk's payload. */
bool commit_bytes(struct trace_buffer *tb, uint32_t id, uint16_t fragments,
    uint8_t flags, const void *bytes, size_t len);
/* Patches a chunk with text; more: others follow. */
bool patch(struct trace_buffer *tb, uint64_t producer, uint32_t writer,
    uint32_t id, uint32_t offset, const char *text, bool more);

/* Bytes that a complete chunk of such fragments takes in the ring. */
uint64_t outer(const char *text);

/*
 * The next packet: text as "a10b5" for ten a and five b; loss without
 * TB_LOSS_PRESENT, which is expected with any other bit.
 */
void expect_packet(struct trace_buffer *tb, const char *text, uint32_t loss);
void expect_packet_of(struct trace_buffer *tb, uint64_t producer,
    uint32_t writer, const char *text, uint32_t loss);
/* Nothing more to be read in this pass. */
void expect_end(struct trace_buffer *tb);
/* What holds at any time between the counters; clear() was not called. */
void expect_balance(const struct trace_buffer *tb, uint64_t chunks,
    uint64_t bytes, uint64_t padding);

#endif /* TESTS_UNIT_TRANSPORT_BUFFER_TB_FIXTURE_H */
