/*
 * page_reader: the records in one of the kernel's per-CPU pages, as read() of
 * per_cpu/cpuN/trace_pipe_raw gives it.
 *
 * Pure, copies nothing, all inline: this is the way of each event.  Untrusted
 * input, as far as memory goes: each page that is not as it should be ends in a
 * verdict.  Layout: include/linux/ring_buffer.h and kernel/trace/ring_buffer.c
 * of Linux, tracefs' events/header_event.
 */
#ifndef CLIENT_FTRACE_PAGE_PAGE_READER_H
#define CLIENT_FTRACE_PAGE_PAGE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "client/ftrace/format/page_layout.h"
#include "transport/base/compiler.h"

/* Reasons why a page cannot be read on; numbers as of FtraceParseStatus. */
enum page_fault {
	PAGE_SOUND = 1,
	PAGE_INVALID_HEADER = 4,
	PAGE_SHORT_EVENT_HEADER = 5,
	PAGE_NULL_PADDING = 6,
	PAGE_SHORT_PADDING_LENGTH = 7,
	PAGE_INVALID_PADDING_LENGTH = 8,
	PAGE_SHORT_TIME_EXTEND = 9,
	PAGE_SHORT_TIME_STAMP = 10,
	PAGE_SHORT_DATA_LENGTH = 11,
	PAGE_ZERO_DATA_LENGTH = 12,
	PAGE_INVALID_DATA_LENGTH = 13,
	PAGE_SHORT_EVENT_ID = 14,
	PAGE_END_OVERFLOW = 15,
};

/* An event as the kernel wrote it; data borrows from the page. */
struct page_record {
	uint64_t time;       /* in units of the trace clock, ns for most */
	const uint8_t *data; /* common_type, 2 bytes, comes first */
	size_t len;          /* at least 2 */
};

struct page_reader {
	const uint8_t *at;  /* private */
	const uint8_t *end; /* private */
	uint64_t time;      /* of the page's begin, then of the last record */
	bool lost;          /* events before this page were overwritten, */
	uint64_t n_lost;    /* so many; 0: the kernel did not say */
	size_t used;        /* bytes of records */
	enum page_fault fault;
};

/* Types of records that are no event; others are the data's length in words. */
enum { PAGE_PADDING = 29, PAGE_TIME_EXTEND = 30, PAGE_TIME_STAMP = 31 };
#define PAGE_TIME_BITS 27
/* Absolute times have 59 bits; those above are the page's. */
#define PAGE_TIME_HIGH (UINT64_C(31) << 59)

/* The commit field's length, and its flags. */
#define PAGE_LENGTH_MASK ((UINT32_C(1) << 27) - 1)
#define PAGE_LOST_STORED (UINT32_C(1) << 30)
#define PAGE_LOST        (UINT32_C(1) << 31)

static inline uint32_t
page_word(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

/* page is borrowed, len what read() returned.  False: r->fault says why. */
static inline bool
page_reader_init(struct page_reader *r, const uint8_t *page, size_t len,
    const struct page_layout *layout)
{
	uint32_t commit;
	size_t data;

	memset(r, 0, sizeof(*r));
	r->fault = PAGE_INVALID_HEADER;
	data = layout->data_offset;
	if (len < data)
		return false;
	memcpy(&r->time, page, sizeof(r->time));
	/* Flags and length are in the low half of a commit of 8 bytes. */
	commit = page_word(page + layout->commit_offset);
	r->used = commit & PAGE_LENGTH_MASK;
	if (r->used > len - data)
		return false;
	r->at = page + data;
	r->end = r->at + r->used;
	r->lost = (commit & PAGE_LOST) != 0;
	/* The count, an unsigned long, stands behind the last record. */
	if (r->lost && (commit & PAGE_LOST_STORED) != 0 &&
	    len - data - r->used >= layout->commit_size)
		memcpy(&r->n_lost, r->end, layout->commit_size);
	r->fault = PAGE_SOUND;
	return true;
}

static inline bool
page_reader_break(struct page_reader *r, enum page_fault fault)
{
	r->fault = fault;
	r->at = r->end;
	return false;
}

/* The second word of padding, a time or long data; NULL: there is none. */
static inline const uint8_t *
page_reader_second(struct page_reader *r, enum page_fault fault)
{
	if (LIKELY(r->end - r->at >= 4))
		return r->at;
	page_reader_break(r, fault);
	return NULL;
}

/* All but short data.  False: broken. */
static inline bool
page_reader_special(struct page_reader *r, uint32_t type, uint32_t delta,
    size_t *len)
{
	static const enum page_fault missing[] = {
		[0] = PAGE_SHORT_DATA_LENGTH,
		[PAGE_PADDING] = PAGE_SHORT_PADDING_LENGTH,
		[PAGE_TIME_EXTEND] = PAGE_SHORT_TIME_EXTEND,
		[PAGE_TIME_STAMP] = PAGE_SHORT_TIME_STAMP,
	};
	const uint8_t *second;
	uint32_t v;

	/* Null padding fills a page behind the length that it says. */
	if (type == PAGE_PADDING && delta == 0)
		return page_reader_break(r, PAGE_NULL_PADDING);
	if ((second = page_reader_second(r, missing[type])) == NULL)
		return false;
	v = page_word(second);
	switch (type) {
	case PAGE_TIME_EXTEND:
		r->time += (uint64_t)v << PAGE_TIME_BITS;
		v = 4;
		break;
	case PAGE_TIME_STAMP:
		r->time = (r->time & PAGE_TIME_HIGH) | ((uint64_t)v <<
		    PAGE_TIME_BITS) | delta;
		v = 4;
		break;
	case PAGE_PADDING:
		if (v < 4)
			return page_reader_break(r,
			    PAGE_INVALID_PADDING_LENGTH);
		break;
	default: /* the length counts its own word */
		if (v < 4)
			return page_reader_break(r, v == 0 ?
			    PAGE_ZERO_DATA_LENGTH : PAGE_INVALID_DATA_LENGTH);
		r->at += 4;
		v -= 4;
	}
	*len = v;
	return true;
}

/* The next event.  False: the end, or r->fault is not PAGE_SOUND. */
static inline bool
page_reader_next(struct page_reader *r, struct page_record *record)
{
	uint32_t word, type;
	size_t len;

	while (r->at < r->end) {
		if (UNLIKELY(r->end - r->at < 4))
			return page_reader_break(r, PAGE_SHORT_EVENT_HEADER);
		word = page_word(r->at);
		r->at += 4;
		type = word & 31;
		r->time += word >> 5;
		len = (size_t)type * 4;
		if (UNLIKELY(type == 0 || type >= PAGE_PADDING) &&
		    !page_reader_special(r, type, word >> 5, &len))
			return false;
		if (UNLIKELY(len > (size_t)(r->end - r->at)))
			return page_reader_break(r, PAGE_END_OVERFLOW);
		record->data = r->at;
		r->at += len;
		if (UNLIKELY(type >= PAGE_PADDING))
			continue;
		if (UNLIKELY(len < 2))
			return page_reader_break(r, PAGE_SHORT_EVENT_ID);
		record->time = r->time;
		record->len = len;
		return true;
	}
	return false;
}

/* common_type of a record: the id of its event_format. */
static inline uint16_t
page_record_id(const struct page_record *record)
{
	uint16_t id;

	memcpy(&id, record->data, sizeof(id));
	return id;
}

#endif /* CLIENT_FTRACE_PAGE_PAGE_READER_H */
