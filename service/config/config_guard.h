/*
 * config_guard: what a config is refused for its own sake, apart from limits of
 * this collector: guardrails that it asks for (enable_extra_guardrails), names
 * and numbers that make no sense.
 *
 * Pure, but for the book of what was started when.
 */
#ifndef SERVICE_CONFIG_CONFIG_GUARD_H
#define SERVICE_CONFIG_CONFIG_GUARD_H

#include <stddef.h>
#include <stdint.h>

#include "protos/trace_config.pb-c.h"
#include "transport/base/compiler.h"

struct guard_book;
struct principal;

/* Between two sessions of one name and owner, with guardrails. */
#define GUARD_PAUSE_MS (5u * 60u * 1000u)
/* The oldest is forgotten before its time. */
#define GUARD_BOOK_MAX 1024u

/* -1 with a sentence. */
int config_guard_check(const Perfetto__Protos__TraceConfig *pb, char *err,
    size_t err_size) MUST_CHECK;

struct guard_book *guard_book_new(void) MUST_CHECK;
void guard_book_free(struct guard_book *b);
/*
 * Whether a session of this config may begin now (any monotonic clock); always
 * without guardrails.  -1 with a sentence.
 */
int guard_book_check(struct guard_book *b,
    const Perfetto__Protos__TraceConfig *pb, const struct principal *owner,
    uint64_t now_ms, char *err, size_t err_size) MUST_CHECK;
/* Notes that a session began.  Without memory it is not noted. */
void guard_book_note(struct guard_book *b,
    const Perfetto__Protos__TraceConfig *pb, const struct principal *owner,
    uint64_t now_ms);

#endif /* SERVICE_CONFIG_CONFIG_GUARD_H */
