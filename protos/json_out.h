/*
 * json_out: writes JSON piece by piece, with its commas.  Strings come from
 * peers: everything in them that is no UTF-8 or would steer a terminal is
 * replaced.
 */
#ifndef PROTOS_JSON_OUT_H
#define PROTOS_JSON_OUT_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * row: written before each element of the outermost array, "\n" or "\n  "; all
 * else then has spaces behind commas and colons.  NULL: one line, no spaces.
 */
struct json_out {
	FILE *out;
	const char *row;
	unsigned depth; /* of open objects and arrays */
	bool behind;    /* a value stands before: a comma is due */
};

/* key: NULL within an array, and around everything. */
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
 * Bytes that are not UTF-8 become U+FFFD each, and characters that are not safe
 * to show on a terminal their number.  v is NULL: nothing is written.
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
