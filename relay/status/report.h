/*
 * report: makes the report that `--status` shows (protos/relay_report.proto).
 */
#ifndef RELAY_STATUS_REPORT_H
#define RELAY_STATUS_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct loop;
struct outbox;
struct producers;
struct relay_settings;
struct uplink;

/* Objects that are reported on; all borrowed. */
struct report_sources {
	const struct loop *loop;
	const struct relay_settings *settings;
	const struct uplink *uplink;
	const struct outbox *outbox;
	const struct producers *producers;
	uint64_t started_ms; /* loop_now_ms() */
};

/* An encoded RelayReport, to be freed by free().  NULL: no memory. */
uint8_t *report_make(const struct report_sources *from, size_t *len)
    MUST_CHECK;

#endif /* RELAY_STATUS_REPORT_H */
