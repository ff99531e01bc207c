/*
 * cut_marks: the marks of a cut on their way into a session's stream, with the
 * packets that go with them (protos/segment.proto).
 *
 * Behind BEGIN comes what the new segment needs so that it can be read alone:
 * packets that describe the session, its machines and clocks, flagged as
 * repeated.  Before END come the old segment's statistics, and the programs of
 * producers with their states.  Each mark is made
 * in one piece, so that nothing else comes in between.  Where a mark belongs in
 * the stream, readback.c knows.
 */
#ifndef SERVICE_OUTPUT_CUT_MARKS_H
#define SERVICE_OUTPUT_CUT_MARKS_H

#include <stdbool.h>

#include "transport/base/compiler.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

struct readback_cut_ops;
struct service_cut;
struct session;
struct tb_slice;

enum cut_marks_state {
	CUT_MARKS_NONE,
	CUT_MARKS_BEGIN_DUE,
	CUT_MARKS_OPEN, /* between the marks */
	CUT_MARKS_END_DUE,
};

/* Public only so that it can be embedded; the fields are private. */
struct cut_marks {
	enum cut_marks_state state;
	struct service_cut *cut; /* borrowed; as ops: but in NONE */
	const struct readback_cut_ops *ops;
	void *arg;
	struct pb_writer packets; /* encoded Trace, filtered */
	struct pb_reader rest;    /* of packets: not handed out yet */
};

void cut_marks_init(struct cut_marks *m);
/* Forgets the cut, and what is not handed out of its marks. */
void cut_marks_done(struct cut_marks *m);

/* As readback_want_cut(), readback_withdraw_cut(), readback_want_cut_end(). */
void cut_marks_want_begin(struct cut_marks *m, struct service_cut *cut,
    const struct readback_cut_ops *ops, void *arg);
bool cut_marks_withdraw(struct cut_marks *m);
void cut_marks_want_end(struct cut_marks *m);

/* A mark is due, and may be made. */
bool cut_marks_is_due(const struct cut_marks *m);
/* BEGIN was made, and END was not. */
bool cut_marks_are_open(const struct cut_marks *m);
/*
 * Makes the mark that is due, to be handed out, and tells the cut.  False: no
 * memory, and it is still due.  All that is new in the recording must be in the
 * stream before.
 */
bool cut_marks_make(struct cut_marks *m, struct session *s) MUST_CHECK;

/* The next packet to be put; borrowed until popped.  False: none. */
bool cut_marks_peek(struct cut_marks *m, struct tb_slice *packet);
void cut_marks_pop(struct cut_marks *m);

#endif /* SERVICE_OUTPUT_CUT_MARKS_H */
