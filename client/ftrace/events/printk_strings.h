/*
 * printk_strings: constant text of the kernel that records refer to by its
 * address, by tracefs' printk_formats: lines of 0xADDRESS : "TEXT".
 *
 * Pure.
 */
#ifndef CLIENT_FTRACE_EVENTS_PRINTK_STRINGS_H
#define CLIENT_FTRACE_EVENTS_PRINTK_STRINGS_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct printk_strings;

/*
 * len bytes of the file; lines that are of another form are passed over.  NULL:
 * no memory.  The text is not kept.
 */
struct printk_strings *printk_strings_new(const char *text,
    size_t len) MUST_CHECK;
void printk_strings_free(struct printk_strings *s);

/* The text at that address, without its escapes undone; "": none is known. */
const char *printk_strings_find(const struct printk_strings *s,
    uint64_t address);

#endif /* CLIENT_FTRACE_EVENTS_PRINTK_STRINGS_H */
