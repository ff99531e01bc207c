/*
 * web_traced: connections to the collector for who speaks its protocol through
 * us.  Each is a local socket; the bytes go to the collector and back unread
 * (client/tunnel/passage.h).
 */
#ifndef CLIENT_WEB_WEB_TRACED_H
#define CLIENT_WEB_WEB_TRACED_H

#include "transport/base/compiler.h"

struct addr;
struct dial_options;
struct loop;
struct web_traced;

/* Connections at a time. */
#define WEB_TRACED_MAX 64u

/* to and how are borrowed for its life.  NULL: no memory. */
struct web_traced *web_traced_new(struct loop *l, const struct addr *to,
    const struct dial_options *how) MUST_CHECK;
/* On the loop, when no other thread calls any more.  NULL is fine. */
void web_traced_free(struct web_traced *t);

/*
 * The near side of a new connection, non-blocking, the caller's; it ends when
 * the collector's does, or when that cannot be reached, which is logged.  -1:
 * there are WEB_TRACED_MAX, or no descriptors.  From any thread.
 */
int web_traced_open(struct web_traced *t) MUST_CHECK;

#endif /* CLIENT_WEB_WEB_TRACED_H */
