/*
 * texts: every parser of words that come from a file, a command line, a
 * certificate or another program; each gets the same input.
 */
#ifndef TESTS_FUZZ_TEXTS_TEXTS_H
#define TESTS_FUZZ_TEXTS_TEXTS_H

#include <stddef.h>
#include <stdint.h>

void fuzz_addr(const uint8_t *data, size_t size);
void fuzz_ssh(const uint8_t *data, size_t size);
void fuzz_ftrace_format(const uint8_t *data, size_t size);
void fuzz_match(const uint8_t *data, size_t size);
void fuzz_cert_index(const uint8_t *data, size_t size);
void fuzz_probe_text(const uint8_t *data, size_t size);
void fuzz_relay_settings(const uint8_t *data, size_t size);
void fuzz_settings(const uint8_t *data, size_t size);
void fuzz_text_parse(const uint8_t *data, size_t size);
void fuzz_trace_config_load(const uint8_t *data, size_t size);
void fuzz_web(const uint8_t *data, size_t size);
void fuzz_words(const uint8_t *data, size_t size);

#endif /* TESTS_FUZZ_TEXTS_TEXTS_H */
