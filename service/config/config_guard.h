/*
 * config_guard: checks of a config that do not depend on limits of this
 * collector: guardrails that the config asks for (enable_extra_guardrails),
 * names and numbers out of range.
 *
 * Pure, but for the book of the sessions that began lately.
 */
#ifndef SERVICE_CONFIG_CONFIG_GUARD_H
#define SERVICE_CONFIG_CONFIG_GUARD_H

#include <stddef.h>
#include <stdint.h>

#include "protos/trace_config.pb-c.h"
#include "transport/base/compiler.h"

struct guard_book;
struct principal;

/* Least time between two sessions of one name and owner, with guardrails. */
#define GUARD_PAUSE_MS (5u * 60u * 1000u)
/* Most entries of the book; beyond, the oldest is forgotten early. */
#define GUARD_BOOK_MAX 1024u

/* Checks the config.  -1 with a sentence in err. */
int config_guard_check(const Perfetto__Protos__TraceConfig *pb, char *err,
    size_t err_size) MUST_CHECK;

struct guard_book *guard_book_new(void) MUST_CHECK;
void guard_book_free(struct guard_book *b);
/*
 * 0: a session of this config may begin now (now_ms: any monotonic clock), as
 * always without guardrails.  -1 with a sentence in err.
 */
int guard_book_check(struct guard_book *b,
    const Perfetto__Protos__TraceConfig *pb, const struct principal *owner,
    uint64_t now_ms, char *err, size_t err_size) MUST_CHECK;
/* Notes that a session with guardrails began; without memory, does not. */
void guard_book_note(struct guard_book *b,
    const Perfetto__Protos__TraceConfig *pb, const struct principal *owner,
    uint64_t now_ms);

#endif /* SERVICE_CONFIG_CONFIG_GUARD_H */
