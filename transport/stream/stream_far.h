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
	struct io_block *first, **end; /* not consumed to their end, in order */
	size_t blocks; /* bytes of memory of these */
	size_t ahead;  /* of that, what the thread counts in io_thread.ahead */
	struct io_block *in_hands; /* shown when the stream died, or NULL */
	bool showing;

	uint64_t given; /* bytes written in all */
	struct io_block *open; /* the last block written, in this batch: */
	uint64_t open_batch;
	uint64_t waits_since_ms; /* loop_turn_ms() when output began to wait */

	size_t counted; /* memory of output, as seen last */
	bool closed; /* the back ended; blocks that wait are still shown */
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
 * Shows the blocks that wait, while the owner takes input, and as many as this
 * turn has time for; the rest when it is the stream's turn again.  May end the
 * stream.
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
