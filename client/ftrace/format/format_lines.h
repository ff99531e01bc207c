/*
 * format_lines: the lines "field:TYPE NAME;\toffset:N;\tsize:N;\tsigned:N;" of
 * tracefs' format files and of events/header_page.
 *
 * Pure.
 */
#ifndef CLIENT_FTRACE_FORMAT_FORMAT_LINES_H
#define CLIENT_FTRACE_FORMAT_FORMAT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a text; not terminated. */
struct format_words {
	const char *at;
	size_t len;
};

/* One such line, borrowing from the text. */
struct format_line {
	struct format_words type; /* "char", "__data_loc char[]"; may be empty */
	struct format_words name;
	bool is_array; /* NAME[...] */
	uint32_t offset;
	uint32_t size;
	bool is_signed; /* no, where the kernel does not say */
};

enum format_lines_verdict {
	FORMAT_LINE,    /* *line is set */
	FORMAT_OTHER,   /* a line that is no field: *other is set */
	FORMAT_BROKEN,  /* begins like a field, and is none */
	FORMAT_THE_END, /* no line is left */
};

/* The next line; moves *at behind it. */
enum format_lines_verdict format_lines_next(const char **at, const char *end,
    struct format_line *line, struct format_words *other);

/* "KEY: 12" with that key: its number, up to most.  False: it is not. */
bool format_lines_number(const struct format_words *line, const char *key,
    uint32_t most, uint32_t *out);

#endif /* CLIENT_FTRACE_FORMAT_FORMAT_LINES_H */
