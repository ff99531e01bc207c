/*
 * top_model: the content of `tributary top`: sessions, machines and producers
 * of a collector, with rates of data and losses from answer to answer.  Pure:
 * the caller passes the time.
 */
#ifndef CLIENT_SHOW_TOP_MODEL_H
#define CLIENT_SHOW_TOP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "transport/base/compiler.h"

struct Tributary__QueryMachinesReply;
struct Tributary__QueryProducersReply;
struct Tributary__QuerySessionsReply;
struct top_model;
struct top_table;

/* collector: its address or name, for the first line; copied. */
struct top_model *top_model_new(const char *collector) MUST_CHECK;
void top_model_free(struct top_model *m);

/*
 * Take the collector's answers; r is borrowed for the call.  now_ms: a
 * monotonic clock.  Rates are over the time since the previous answer of that
 * kind.
 */
void top_model_sessions(struct top_model *m, uint64_t now_ms,
    const struct Tributary__QuerySessionsReply *r);
void top_model_machines(struct top_model *m, uint64_t now_ms,
    const struct Tributary__QueryMachinesReply *r);
/* r NULL: the collector does not list its producers. */
void top_model_producers(struct top_model *m, uint64_t now_ms,
    const struct Tributary__QueryProducersReply *r);
/* Sets why the collector is not connected (copied); NULL: it is. */
void top_model_trouble(struct top_model *m, const char *why);

/*
 * Sets how screens are drawn; without this call in plain text.  coloured: by
 * colour_is_on(); trends: with a sparkline of each session's rate.
 */
void top_model_look(struct top_model *m, bool coloured, bool trends);

/* Its name; then totals, or what is wrong.  width 0: unlimited. */
void top_model_first_line(FILE *out, const struct top_model *m, int width);
const char *top_model_collector(const struct top_model *m);

enum top_model_table { TOP_SESSIONS, TOP_MACHINES, TOP_PRODUCERS };
/* Borrowed until the next answer. */
const struct top_table *top_model_table(const struct top_model *m,
    enum top_model_table which);

#endif /* CLIENT_SHOW_TOP_MODEL_H */
