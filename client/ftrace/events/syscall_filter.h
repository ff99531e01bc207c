/*
 * syscall_filter: system calls that a session asks for by name
 * (FtraceConfig.syscall_events), as a set of their numbers, and as a filter for
 * the kernel.
 *
 * Pure.  Names and numbers are those of the machine that this was compiled for.
 */
#ifndef CLIENT_FTRACE_EVENTS_SYSCALL_FILTER_H
#define CLIENT_FTRACE_EVENTS_SYSCALL_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

/* Numbers are below it, on all machines that Linux runs on but MIPS. */
#define SYSCALL_FILTER_MAX 1024u
/* Bytes of a filter that the kernel takes: less than a page. */
#define SYSCALL_FILTER_TEXT_MAX 4095u

/* Zero-initialised it has no call. */
struct syscall_filter {
	uint64_t bits[SYSCALL_FILTER_MAX / 64];
};

/* "sys_read" or "read".  False: there is no such call here. */
bool syscall_filter_add(struct syscall_filter *f, const char *name) MUST_CHECK;
/* All calls of another one as well. */
void syscall_filter_join(struct syscall_filter *f,
    const struct syscall_filter *other);

static inline bool
syscall_filter_has(const struct syscall_filter *f, int64_t id)
{
	return id >= 0 && id < (int64_t)SYSCALL_FILTER_MAX &&
	    (f->bits[id / 64] >> id % 64 & 1) != 0;
}

/*
 * The filter of raw_syscalls/sys_enter and sys_exit that lets these calls pass:
 * "id == 0 || id == 1".  False: more than the kernel takes, or no call at all;
 * out is then "0", which the kernel understands as no filter.
 */
bool syscall_filter_text(const struct syscall_filter *f,
    char out[SYSCALL_FILTER_TEXT_MAX + 1]) MUST_CHECK;

#endif /* CLIENT_FTRACE_EVENTS_SYSCALL_FILTER_H */
