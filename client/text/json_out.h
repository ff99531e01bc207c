/*
 * json_out: JSON written piece by piece, on one line.
 */
#ifndef CLIENT_TEXT_JSON_OUT_H
#define CLIENT_TEXT_JSON_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_out {
	FILE *out;
	bool behind; /* a value stands before: a comma is due */
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
/* What is not UTF-8 is replaced. */
void json_string(struct json_out *j, const char *key, const char *v);
/* The caller writes one value to j->out itself. */
void json_raw(struct json_out *j, const char *key);

#endif /* CLIENT_TEXT_JSON_OUT_H */
