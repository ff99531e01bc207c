/*
 * kernel_symbols: names of the kernel's functions by their addresses, from
 * /proc/kallsyms: lines of ADDRESS TYPE NAME, and of modules [MODULE] behind a
 * tab.
 *
 * Pure: the text is fed in parts of any length, so that its 5 to 10 MB need not
 * be in memory at once.  Only functions are kept, types t, T, w and W.
 */
#ifndef CLIENT_FTRACE_EVENTS_KERNEL_SYMBOLS_H
#define CLIENT_FTRACE_EVENTS_KERNEL_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct kernel_symbols;

/* NULL: no memory. */
struct kernel_symbols *kernel_symbols_new(void) MUST_CHECK;
void kernel_symbols_free(struct kernel_symbols *k);

/*
 * The next len bytes of the file.  False: no memory; what was read so far is
 * kept.
 */
bool kernel_symbols_feed(struct kernel_symbols *k, const char *text,
    size_t len) MUST_CHECK;
/*
 * The end of the file: names can be found from now on.  Returns how many there
 * are; 0 where the kernel hides addresses (kernel.kptr_restrict) and all were
 * 0.
 */
size_t kernel_symbols_end(struct kernel_symbols *k);

/*
 * The name of the function that an address is in, or NULL: below the first one,
 * or further behind one than functions are long (1 MiB).
 */
const char *kernel_symbols_find(const struct kernel_symbols *k,
    uint64_t address);

/* Bytes of memory that the names take. */
size_t kernel_symbols_bytes(const struct kernel_symbols *k);

#endif /* CLIENT_FTRACE_EVENTS_KERNEL_SYMBOLS_H */
