/*
 * text_parse: protobuf text format to wire format, for any generated message.
 *
 * The format of Perfetto's configs and of this project's settings, written by
 * people.  Strict where protobuf's own parser is: an unknown
 * field, a wrong type, a number out of range, a second value of a singular
 * field or a second member of a oneof is an error, and every error says where
 * it is and what would be right.  Not supported: extensions and Any.  Fields of
 * message types without a schema here (carried as bytes) take their encoded
 * bytes as a string.
 *
 * Pure, and safe on input from anywhere.
 */
#ifndef PROTOS_TEXT_PARSE_H
#define PROTOS_TEXT_PARSE_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

/* Limits of one call, in bytes of text and of encoded message. */
#define TEXT_PARSE_MAX_INPUT  (4u << 20)
#define TEXT_PARSE_MAX_OUTPUT (4u << 20)

/* Limit of nested messages. */
#define TEXT_PARSE_MAX_DEPTH 64

struct text_error;

/*
 * Encodes the text of a message of type d.  0: *out (never NULL, to be freed
 * by free()) holds *out_len bytes.  -1: *err is filled in, unless NULL; *out
 * and *out_len are untouched.
 */
int text_parse(const ProtobufCMessageDescriptor *d, const char *text,
    size_t len, uint8_t **out, size_t *out_len, struct text_error *err)
    __attribute__((__warn_unused_result__));

/*
 * text_parse() into a message; NULL on an error.  The caller frees it by
 * protobuf_c_message_free_unpacked(m, NULL).
 */
ProtobufCMessage *text_parse_message(const ProtobufCMessageDescriptor *d,
    const char *text, size_t len, struct text_error *err)
    __attribute__((__warn_unused_result__));

#endif /* PROTOS_TEXT_PARSE_H */
