/*
 * web_snapshot: a collector's answers of one moment.  Made by the thread that
 * talks to the collector, never changed from then on, and shared by reference
 * with the thread that speaks HTTP.
 */
#ifndef CLIENT_WEB_WEB_SNAPSHOT_H
#define CLIENT_WEB_WEB_SNAPSHOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct Tributary__QueryMachinesReply;
struct Tributary__QueryMetricsReply;
struct Tributary__QueryProducersReply;
struct Tributary__QueryRecordingsReply;
struct Tributary__QuerySessionsReply;

#define WEB_WHY_MAX 512

/*
 * Bytes per second of sessions, machines or producers, in the order of the
 * answer; < 0: not known yet.
 */
struct web_rates {
	double *all; /* owned */
	size_t n;    /* 0: there was no memory for them */
};

struct web_snapshot {
	atomic_uint refs;
	uint64_t at_ms;         /* loop_now_ms() when it was complete */
	char why[WEB_WHY_MAX];  /* "": the collector answers */
	/* All owned; NULL: not asked for, or not answered. */
	struct Tributary__QueryMetricsReply *metrics;
	struct Tributary__QuerySessionsReply *sessions;
	struct Tributary__QueryRecordingsReply *recordings;
	struct Tributary__QueryMachinesReply *machines;
	struct Tributary__QueryProducersReply *producers;
	struct web_rates session_rates, machine_rates, producer_rates;
};

/* With one reference.  NULL: no memory. */
struct web_snapshot *web_snapshot_new(void) MUST_CHECK;
struct web_snapshot *web_snapshot_ref(struct web_snapshot *s);
/* From any thread.  NULL is fine. */
void web_snapshot_unref(struct web_snapshot *s);

#endif /* CLIENT_WEB_WEB_SNAPSHOT_H */
