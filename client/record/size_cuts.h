/*
 * size_cuts: asks the collector to cut the session of a recording, as one of
 * its segments is large enough.
 *
 * The stream that a consumer reads says nothing of the size of files, so the
 * collector cannot know by itself.  It knows the session by its name.  Belongs
 * to the loop's thread.
 */
#ifndef CLIENT_RECORD_SIZE_CUTS_H
#define CLIENT_RECORD_SIZE_CUTS_H

#include <stdint.h>

#include "transport/base/compiler.h"

struct addr;
struct dial_options;
struct loop;
struct record_live;
struct size_cuts;

/* Everything is borrowed. */
struct size_cuts_setup {
	struct loop *loop;
	const struct addr *addr;
	const struct dial_options *how;
	const char *session;      /* its unique_session_name */
	struct record_live *live; /* is told that it does not work */
};

/* Connects for each cut.  NULL: no memory. */
struct size_cuts *size_cuts_new(const struct size_cuts_setup *setup)
    MUST_CHECK;
void size_cuts_free(struct size_cuts *c);

/*
 * The segment of this number is large enough.  Cuts once: further calls do
 * nothing, unless the cut failed and a while has gone by.
 */
void size_cuts_ask(struct size_cuts *c, uint32_t segment);

#endif /* CLIENT_RECORD_SIZE_CUTS_H */
