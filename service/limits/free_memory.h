/*
 * free_memory: the memory that the collector's machine has left for trace
 * buffers before it swaps.
 */
#ifndef SERVICE_LIMITS_FREE_MEMORY_H
#define SERVICE_LIMITS_FREE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

/* MemAvailable of a text like /proc/meminfo, in KiB.  -1: not in the text. */
int free_memory_parse(const char *text, uint64_t *kb) MUST_CHECK;
/* MemAvailable of this machine now, in KiB.  -1: not known. */
int free_memory_kb(uint64_t *kb) MUST_CHECK;

#endif /* SERVICE_LIMITS_FREE_MEMORY_H */
