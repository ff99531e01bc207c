/* time_text: times as text for people. */
#ifndef CLIENT_TEXT_TIME_TEXT_H
#define CLIENT_TEXT_TIME_TEXT_H

#include <stdint.h>

#include "transport/base/human_numbers.h"

/*
 * Time from then_ns to now_ns: "12.0 s"; "-" where one is 0, not known.
 */
const char *time_text_ago(char out[HUMAN_TEXT_MAX], uint64_t then_ns,
    uint64_t now_ns);
/* CLOCK_REALTIME as local time: "2026-11-21 13:00:05"; "-": 0. */
const char *time_text_at(char out[HUMAN_TEXT_MAX], uint64_t ns);

#define TIME_TEXT_SPAN_MAX (2 * HUMAN_TEXT_MAX + 3)
/* "2026-11-23 14:30:00 - 14:35:00", with the day once where it is the same. */
const char *time_text_span(char out[TIME_TEXT_SPAN_MAX], uint64_t first_ns,
    uint64_t last_ns);

#endif /* CLIENT_TEXT_TIME_TEXT_H */
