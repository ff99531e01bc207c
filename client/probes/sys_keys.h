/*
 * sys_keys: the names of the counters in /proc/meminfo and /proc/vmstat, as a
 * set of the counters that a config wants.  Pure.
 */
#ifndef CLIENT_PROBES_SYS_KEYS_H
#define CLIENT_PROBES_SYS_KEYS_H

#include <stddef.h>

#include "transport/base/compiler.h"

struct sys_keys;

/*
 * wanted: values of MeminfoCounters or VmstatCounters; n 0 wants all.  Values
 * that do not exist are ignored.  NULL: no memory.
 */
struct sys_keys *sys_keys_meminfo(const int *wanted, size_t n) MUST_CHECK;
struct sys_keys *sys_keys_vmstat(const int *wanted, size_t n) MUST_CHECK;
void sys_keys_free(struct sys_keys *k);

/* The counter with this name; 0 when it is not in the set. */
int sys_keys_find(const struct sys_keys *k, const char *name, size_t len);

#endif /* CLIENT_PROBES_SYS_KEYS_H */
