/*
 * web_archive_trace: files of an archive for a browser: a segment as it is, or
 * segments joined into one trace.  Blocks; of any thread.  Paths are hostile.
 */
#ifndef CLIENT_WEB_WEB_ARCHIVE_TRACE_H
#define CLIENT_WEB_WEB_ARCHIVE_TRACE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "client/archive/selection.h"
#include "client/web/web_request.h"
#include "transport/base/compiler.h"

/* Bounds of a join: segments, and the bytes of them and of what results. */
#define WEB_JOIN_FILES 256u
#define WEB_JOIN_BYTES (UINT64_C(512) << 20)

struct catalog;

/* An archive, and how long one that asks waits for what is read there. */
struct web_archive_place {
	const char *folder;
	const char *catalog; /* shared: there is no folder; or NULL */
	const char *name;    /* for people */
	int fd; /* of the folder; -1: none */
	uint64_t until_ms;       /* of loop_now_ms(), for the catalogue */
	const atomic_bool *stop; /* borrowed; the one who asks has left */
};

/*
 * Opens the catalogue to read; NULL with a sentence.  What is asked of it fails
 * behind until_ms, at stop, and where a row is larger than any of ours: its
 * tables may be anyone's.  The place outlives it.
 */
struct catalog *web_archive_catalog(const struct web_archive_place *p,
    char *err, size_t err_size) MUST_CHECK;

struct web_archive_file {
	int fd; /* the caller's */
	size_t bytes;
	char name[128]; /* letters, digits and "._-" */
};

/*
 * Sets the conditions of a search, whose texts are borrowed; times are those of
 * now.  -1 with a sentence.
 */
int web_archive_select(struct selection *out,
    const struct web_archive_place *p, const struct web_search *q, char *err, size_t err_size) MUST_CHECK;

/*
 * Returns 200, or another status of HTTP with a sentence.  Links are not
 * followed, and nothing but a regular file below the folder is opened.
 */
unsigned web_archive_open(struct web_archive_file *out,
    const struct web_archive_place *p, const struct web_search *q, char *err,
    size_t err_size) MUST_CHECK;
/* Cut to the time of the search, where it has one. */
unsigned web_archive_join(struct web_archive_file *out,
    const struct web_archive_place *p, const struct web_search *q, char *err,
    size_t err_size) MUST_CHECK;

#endif /* CLIENT_WEB_WEB_ARCHIVE_TRACE_H */
