/*
 * print_filter: which texts that programs write into the kernel's trace
 * (ftrace/print) a session gets: the first rule that matches decides, and
 * without one the text is allowed.
 *
 * Pure.
 */
#ifndef CLIENT_FTRACE_EVENTS_PRINT_FILTER_H
#define CLIENT_FTRACE_EVENTS_PRINT_FILTER_H

#include <stdbool.h>
#include <stddef.h>

struct ftrace_print_rule;

/* Rules of a ftrace_config, borrowed.  Zero-initialised it allows all. */
struct print_filter {
	const struct ftrace_print_rule *rules;
	size_t n;
};

/* text: of len bytes, without a NUL behind it. */
bool print_filter_allows(const struct print_filter *f, const char *text,
    size_t len);

#endif /* CLIENT_FTRACE_EVENTS_PRINT_FILTER_H */
