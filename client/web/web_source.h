/*
 * web_source: asks the collector from the event loop, and keeps the newest
 * answers for the thread that speaks HTTP.
 *
 * It asks only on demand: web_source_get() without a snapshot that is new
 * enough has one made.  That comes in any case, within WEB_ANSWER_MS, twice that
 * where a connection fails meanwhile: where the collector does not answer, it
 * says why.  Where a connection fails, the next question opens a new one.
 */
#ifndef CLIENT_WEB_WEB_SOURCE_H
#define CLIENT_WEB_WEB_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct addr;
struct dial_options;
struct loop;
struct web_snapshot;
struct web_source;

#define WEB_ANSWER_MS 10000u
/* Age up to which a snapshot answers a question without a new one. */
#define WEB_FRESH_MS 1000u

enum web_wish {
	WEB_WISH_METRICS,  /* the collector's totals alone */
	WEB_WISH_MACHINES, /* machines, too */
	WEB_WISH_ALL,
};
#define WEB_WISHES (WEB_WISH_ALL + 1)

/*
 * published(arg) is called on the loop's thread after each new snapshot.
 * Everything is borrowed for the source's life.  NULL: no memory.
 */
struct web_source *web_source_new(struct loop *l, const struct addr *a,
    const struct dial_options *how, void (*published)(void *arg), void *arg)
    MUST_CHECK;
/* When no other thread calls any more.  NULL is fine. */
void web_source_free(struct web_source *s);

/* ---- from any thread ---- */

/*
 * The newest snapshot, with a reference for the caller, where it is not older
 * than since_ms (loop_now_ms()).  NULL: there is none, and one is being made.
 */
struct web_snapshot *web_source_get(struct web_source *s, enum web_wish wish,
    uint64_t since_ms) MUST_CHECK;

#endif /* CLIENT_WEB_WEB_SOURCE_H */
