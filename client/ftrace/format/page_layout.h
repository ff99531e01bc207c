/*
 * page_layout: the header of the kernel's pages of records, by the text of
 * tracefs' events/header_page.
 *
 * Pure.
 */
#ifndef CLIENT_FTRACE_FORMAT_PAGE_LAYOUT_H
#define CLIENT_FTRACE_FORMAT_PAGE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

/* The largest page that kernels can be told to use (buffer_subbuf_size_kb). */
#define PAGE_LAYOUT_BYTES_MAX 65536u

/*
 * A page begins with the time of its first record, 8 bytes, and the commit: the
 * length of its records with two flags above it, as wide as a long of the
 * kernel's.  Records begin at data_offset.
 */
struct page_layout {
	uint16_t commit_offset;
	uint16_t commit_size; /* 4 or 8 */
	uint16_t data_offset;
	uint32_t page_size; /* of a read() of trace_pipe_raw */
};

/* -1, with a sentence in err: no header that we can read. */
int page_layout_parse(struct page_layout *layout, const char *text, size_t len,
    char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_FTRACE_FORMAT_PAGE_LAYOUT_H */
