/*
 * store_read: the store for programs that do not know HTTP: an object as a file,
 * and all descriptions of segments, which are what a catalogue is made from.
 */
#ifndef CLIENT_UPLOAD_STORE_READ_H
#define CLIENT_UPLOAD_STORE_READ_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "transport/base/compiler.h"

struct s3_http;
struct s3_place;

/* Attempts while the store is busy. */
#define STORE_READ_TRIES 5u
/* A longer description is none of ours. */
#define STORE_READ_DESCRIPTION_MAX (4u * 1024 * 1024)

struct store_read {
	struct s3_http *http;         /* borrowed, as the others */
	const struct s3_place *place;
	uint64_t min_retry_ms;
	uint64_t max_retry_ms;
	const volatile sig_atomic_t *stop;
};

/*
 * Writes the object "s3://bucket/key" to a file, which is whole and has the
 * checksum that the object carries, and sha256 (hex) unless that is NULL; or
 * else is not there.  file "-": standard output, a file that is written anew
 * from its begin at each attempt.  -1 with a sentence.
 */
int store_read_object(const struct store_read *r, const char *url,
    const char *sha256, const char *file, char *err, size_t err_size)
    MUST_CHECK;
/*
 * Prints a line for each segment below the place's prefix that has a
 * description:
 *
 *	{"url":"s3://...","etag":"...","size":N,"description":{...}}
 *
 * -1 with a sentence; lines may have been printed.
 */
int store_read_descriptions(const struct store_read *r, FILE *out, char *err,
    size_t err_size) MUST_CHECK;

#endif /* CLIENT_UPLOAD_STORE_READ_H */
