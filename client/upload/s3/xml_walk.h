/*
 * xml_walk: the elements of a small XML document, one call each, by libexpat.
 *
 * Input is hostile: depth and text are bounded, and a document type, with the
 * entities that it may declare, is refused.  Pure.
 */
#ifndef CLIENT_UPLOAD_S3_XML_WALK_H
#define CLIENT_UPLOAD_S3_XML_WALK_H

#include <stddef.h>

#include "transport/base/compiler.h"

/* The longest path and the longest text of an element, in bytes. */
#define XML_WALK_PATH_MAX 256u
#define XML_WALK_TEXT_MAX 8192u

/*
 * Calls fn at the end of each element, inner ones first.  path: the names from
 * the root on, "ListBucketResult/Contents/Key"; text: the characters behind its
 * last inner element.  Both are borrowed for the call.  fn returns -1 to stop.
 * Returns -1 when it did, or the document is not well-formed or beyond the
 * bounds.
 */
int xml_walk(const char *bytes, size_t len,
    int (*fn)(void *arg, const char *path, const char *text), void *arg)
    MUST_CHECK;

#endif /* CLIENT_UPLOAD_S3_XML_WALK_H */
