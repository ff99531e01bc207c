/*
 * top_model: what `tributary top` shows: sessions, machines and producers of a
 * collector, with how fast they write and lose, reckoned from answer to answer.
 * Pure: time is the caller's.
 */
#ifndef CLIENT_SHOW_TOP_MODEL_H
#define CLIENT_SHOW_TOP_MODEL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "transport/base/compiler.h"

struct Tributary__QueryMachinesReply;
struct Tributary__QueryProducersReply;
struct Tributary__QuerySessionsReply;
struct top_model;

/* collector: its address, for the first line; copied. */
struct top_model *top_model_new(const char *collector) MUST_CHECK;
void top_model_free(struct top_model *m);

/*
 * Answers, as they come; borrowed.  now_ms: a monotonic clock.  Rates are of the
 * time since the answer before.
 */
void top_model_sessions(struct top_model *m, uint64_t now_ms,
    const struct Tributary__QuerySessionsReply *r);
void top_model_machines(struct top_model *m, uint64_t now_ms,
    const struct Tributary__QueryMachinesReply *r);
/* r NULL: the collector does not tell. */
void top_model_producers(struct top_model *m, uint64_t now_ms,
    const struct Tributary__QueryProducersReply *r);
/* The collector is gone, for this reason (copied); NULL: it is there. */
void top_model_trouble(struct top_model *m, const char *why);

/*
 * One screen of so many lines and columns; 0: as many as there are.  end goes
 * behind each line; the last one has none of it on a screen that is full.
 */
void top_model_print(FILE *out, const struct top_model *m, int width,
    size_t height, const char *end);

#endif /* CLIENT_SHOW_TOP_MODEL_H */
