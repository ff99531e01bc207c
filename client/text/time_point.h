/*
 * time_point: a moment as people type it, in the local time zone, as
 * CLOCK_REALTIME.  Pure, but for the time zone.
 *
 *	14:32, 14:32:10.5            the last time that it was so
 *	today 14:32, yesterday 14:32
 *	2026-11-23, 2026-11-23 14:32, 2026-11-23T14:32:10
 *	... +02:00, ... Z, ... UTC   behind a date with a time: another zone
 *	-90s, -5m, -2h, -3d, -1w     before now; "5m ago" is the same
 *	@1795444330.5                seconds since 1970
 *	now
 */
#ifndef CLIENT_TEXT_TIME_POINT_H
#define CLIENT_TEXT_TIME_POINT_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

/*
 * now_ns: CLOCK_REALTIME.  after_ns: of the end of a span, its begin, so that
 * "15:00" is the first one behind it; else 0.  -1 with a sentence; *ns is then
 * untouched.
 */
int time_point_parse(const char *text, int64_t now_ns, int64_t after_ns,
    int64_t *ns, char *err, size_t err_size) MUST_CHECK;

/* "30s", "5m" or "5min", "2h", "3d", "1w", "250ms", "1h30m"; not negative. */
int time_span_parse(const char *text, int64_t *ns, char *err, size_t err_size)
    MUST_CHECK;

#endif /* CLIENT_TEXT_TIME_POINT_H */
