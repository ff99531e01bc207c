/*
 * size_duration: sizes and times as people type them ("32mb", "10s").
 *
 * Pure.  The suffixes are those of Perfetto's own command; a number without
 * one is refused rather than guessed, except 0.
 */
#ifndef TRANSPORT_BASE_SIZE_DURATION_H
#define TRANSPORT_BASE_SIZE_DURATION_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

/*
 * "250ms", "10s", "5m", "1h", "0" as milliseconds.  -1 with a sentence in err
 * when the text is anything else or the value does not fit 32 bits, which is
 * what a TraceConfig can hold; *ms is then untouched.
 */
int size_duration_parse_ms(const char *text, uint32_t *ms, char *err,
    size_t err_size) MUST_CHECK;

/*
 * Reads also "5min" and "14d", up to ten years: for what no TraceConfig holds
 * in 32 bits.  Otherwise as size_duration_parse_ms().
 */
int size_duration_parse_long_ms(const char *text, uint64_t *ms, char *err,
    size_t err_size) MUST_CHECK;

/*
 * "64kb", "32mb", "1gb", also k, m, g, in either case, as bytes (powers of
 * 1024).  -1 as above; anything up to 1 PiB fits.
 */
int size_duration_parse_bytes(const char *text, uint64_t *bytes, char *err,
    size_t err_size) MUST_CHECK;

#endif /* TRANSPORT_BASE_SIZE_DURATION_H */
