/*
 * free_memory: what the machine has left for trace buffers before it swaps.
 */
#ifndef SERVICE_LIMITS_FREE_MEMORY_H
#define SERVICE_LIMITS_FREE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

/* MemAvailable of a text like /proc/meminfo, in KiB.  -1: it says none. */
int free_memory_parse(const char *text, uint64_t *kb) MUST_CHECK;
/* The machine's, now.  -1: not known. */
int free_memory_kb(uint64_t *kb) MUST_CHECK;

#endif /* SERVICE_LIMITS_FREE_MEMORY_H */
