/*
 * session_stats_text: the statistics of a session, for people and as JSON.
 * Pure but for the file that it prints to.
 */
#ifndef CLIENT_SHOW_SESSION_STATS_TEXT_H
#define CLIENT_SHOW_SESSION_STATS_TEXT_H

#include <stdint.h>
#include <stdio.h>

struct Tributary__SessionState;
struct json_out;

/* now_ns: the collector's time, as in its answer. */
void session_stats_print(FILE *out, const struct Tributary__SessionState *s,
    uint64_t now_ns);
/* Writes an element of an array. */
void session_stats_json(struct json_out *j,
    const struct Tributary__SessionState *s, uint64_t now_ns);

#endif /* CLIENT_SHOW_SESSION_STATS_TEXT_H */
