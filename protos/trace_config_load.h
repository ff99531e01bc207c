/*
 * trace_config_load: a trace config as it comes from a file or a pipe, text or
 * binary, told apart by its bytes.
 *
 * A config is text if it parses as text, or if it does not but is all printable
 * UTF-8: then the error is that of the text.  (Each buffer and each data source
 * puts a control character into a binary config.)
 */
#ifndef PROTOS_TRACE_CONFIG_LOAD_H
#define PROTOS_TRACE_CONFIG_LOAD_H

#include <stddef.h>
#include <stdint.h>

/* Longest config that is accepted, in bytes. */
#define TRACE_CONFIG_LOAD_MAX (4u << 20)

/* A size for err that holds any of the errors. */
#define TRACE_CONFIG_LOAD_ERROR_SIZE 1024

/* All borrowed for the call. */
struct trace_config_input {
	const uint8_t *data;
	size_t len;
	const char *name; /* of the file, for errors */
};

/*
 * 0: *out, to be freed by free(), holds the encoded TraceConfig of *out_len
 * bytes; a binary one comes back byte for byte, with all that we do not know
 * in it.  -1: err holds what is wrong, for people (see text_error_format),
 * and *out and *out_len are untouched.
 */
int trace_config_load(const struct trace_config_input *in, uint8_t **out,
    size_t *out_len, char *err, size_t err_size)
    __attribute__((__warn_unused_result__));

#endif /* PROTOS_TRACE_CONFIG_LOAD_H */
