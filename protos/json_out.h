/*
 * json_out: writes JSON piece by piece, with its commas.  Strings come from
 * peers: bytes in them that are not UTF-8, and characters that control a
 * terminal, are replaced.
 */
#ifndef PROTOS_JSON_OUT_H
#define PROTOS_JSON_OUT_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * row: written before each element of the outermost array, "\n" or "\n  ";
 * elsewhere there are then spaces behind commas and colons.  NULL: one line, no
 * spaces.
 */
struct json_out {
	FILE *out;
	const char *row;
	unsigned depth; /* of open objects and arrays */
	bool behind;    /* a value stands before: a comma is due */
};

/* key: borrowed; NULL for elements of an array, and the outermost value. */
void json_object(struct json_out *j, const char *key);
void json_object_end(struct json_out *j);
void json_array(struct json_out *j, const char *key);
void json_array_end(struct json_out *j);
void json_uint(struct json_out *j, const char *key, uint64_t v);
void json_int(struct json_out *j, const char *key, int64_t v);
void json_bool(struct json_out *j, const char *key, bool v);
void json_null(struct json_out *j, const char *key);
/* With three digits behind the point. */
void json_number(struct json_out *j, const char *key, double v);
/*
 * Each byte that is not UTF-8 becomes U+FFFD, and each character that is not
 * safe to show on a terminal an escape with its number.  v NULL: nothing is
 * written.
 */
void json_string(struct json_out *j, const char *key, const char *v);
/* An array of strings. */
void json_strings(struct json_out *j, const char *key, char *const *v,
    size_t n);
/*
 * A message.  Field names are the schema's; enums are written by name, bytes in
 * hex, 64-bit numbers as numbers.  Unset fields are left out; repeated fields
 * are always there.
 */
void json_message(struct json_out *j, const char *key,
    const ProtobufCMessage *m);

#endif /* PROTOS_JSON_OUT_H */
