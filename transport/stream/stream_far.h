/*
 * stream_far: a stream whose socket is on an I/O thread, on the owner's side:
 * its life, output and messages (stream_far.c), and its input
 * (stream_far_in.c).  The thread's side is io_back.c, and io_line.h what is
 * between them.  Private to these two files and their tests.
 */
#ifndef TRANSPORT_STREAM_STREAM_FAR_H
#define TRANSPORT_STREAM_STREAM_FAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/stream/io_line.h"
#include "transport/stream/stream.h"

struct tls_identity;

struct stream_far {
	struct io_line *line; /* NULL: given up; its thread frees it */
	/*
	 * Blocks that are not consumed to their end, in order; their memory;
	 * and how much of that, at the end, the thread counts as being ahead.
	 */
	struct io_block *first, **end;
	size_t blocks;
	size_t ahead;
	struct io_block *in_hands; /* shown when the stream died, or NULL */
	bool showing;

	uint64_t given; /* bytes written */
	struct io_block *open; /* the last one written, in this batch: */
	uint64_t open_batch;
	uint64_t waits_since_ms; /* nothing waited before */

	size_t counted; /* memory of output, as seen last */
	bool closed; /* the back's last word came; what waits is still shown */
	enum stream_end why;
	struct tls_identity *identity;
	char *detail;
};

static inline void
stream_far_post(struct io_line *line, struct io_mail *m, size_t bytes)
{
	mail_send(&line->thread->in, &m->mail, bytes);
}

/* ---- stream_far_in.c ---- */

/*
 * Shows what waits, as far as that is wanted, and as much as is due at once; the
 * rest when it is its turn again.  May end the stream.
 */
void stream_far_feed(struct stream *s);
/* Tells the thread whether input is wanted, where that has changed. */
void stream_far_hold(struct stream *s);

/* Takes ownership of the block; shows it at once, or when it is its turn. */
void stream_far_take(struct stream *s, struct io_block *b);
/* Returns a block that came after the stream had died. */
void stream_far_return(struct io_line *line, struct io_block *b);
/* Gives back all blocks but the one that data() is looking at right now. */
void stream_far_drop_input(struct stream_far *f);

#endif /* TRANSPORT_STREAM_STREAM_FAR_H */
