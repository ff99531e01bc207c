/*
 * io_line: connects a stream of the owner (the front, stream_far.c) with the
 * stream that has the socket on an I/O thread (the back, io_back.c).  Private
 * to these and to io_pool.c.
 *
 * Each side touches its own fields and the atomic ones; everything else that
 * the other side has to know travels in a message, in order.  A line's last
 * messages are `closed` (from the back, exactly once) and then `bye` (from the
 * front, exactly once).  After `bye` no side refers to the line, and the thread
 * frees it.
 *
 *	front   start  write* resume* [urgent] [unpack] [close]  bye
 *	back           opened? data* look*     closed
 *
 * Input: a block of whole frames goes to the front, which shows it where it is
 * and gives it back to the thread's store (a free list).  `unconsumed` sums up
 * the blocks that the front has: a credit window.  When it is over
 * IO_LINE_WINDOW (or over 0, when the front is held) the back pauses and sets
 * `starved`; the side that clears `starved` resumes the back.  Besides, a
 * thread that is IO_AHEAD_MAX bytes ahead of what the owner has looked at reads
 * nothing more that is not urgent: the kernel holds the peers back meanwhile,
 * and how long they wait is the lag of the thread's loop.  Blocks of a front
 * that is held do not count as ahead.
 *
 * Output: `accepted` counts bytes that the back has got, `taken` those that its
 * socket took.
 */
#ifndef TRANSPORT_STREAM_IO_LINE_H
#define TRANSPORT_STREAM_IO_LINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/loop/mailbox.h"
#include "transport/stream/io_pool.h"
#include "transport/stream/stream.h"
#include "transport/wire/frame.h"

/* One read more may come on top. */
#define IO_LINE_WINDOW (128u * 1024u)
#define IO_LINE_LOW    (64u * 1024u)
/* Bytes that a thread may be ahead; it reads again below the second. */
#define IO_AHEAD_MAX (4u * 1024u * 1024u)
#define IO_AHEAD_LOW (2u * 1024u * 1024u)
/* Payload of a block: any frame fits. */
#define IO_BLOCK_MAX FRAME_MAX_BYTES
/* Sizes of blocks; the last one is IO_BLOCK_MAX. */
#define IO_SIZES 4u

enum io_kind {
	/* To the thread. */
	IO_START,
	IO_WRITE,
	IO_RESUME,
	IO_UNPACK,
	IO_URGENT,
	IO_CLOSE,
	IO_BYE,
	IO_STOP, /* of all lines: the thread ends */
	/* To the owner. */
	IO_OPENED,
	IO_DATA,
	IO_LOOK, /* what the atomics say has changed */
	IO_CLOSED,
};

struct io_mail {
	struct mail mail; /* first */
	enum io_kind kind;
	struct io_line *line;
};

struct io_block {
	struct io_mail head; /* first */
	struct io_block *next; /* in the front's queue, or in a store */
	size_t len, cap;
	size_t shown; /* bytes consumed from its beginning; the front's */
	bool last;    /* does not end with a whole frame; no block follows */
	uint8_t data[];
};

struct io_thread {
	struct io_pool *pool;
	unsigned index;
	struct loop *loop;
	struct mailbox in;  /* from the owner */
	struct mailbox out; /* to the owner */
	bool ready; /* both are made */
	pthread_t id;
	bool running;
	size_t n_lines; /* the owner's: those before `bye` */
	struct io_mail stop;

	/* The thread's. */
	bool stopping;
	struct io_line *lines;
	struct io_block *store[IO_SIZES];
	size_t stored; /* bytes */
	uint8_t *unpacked; /* of IO_BLOCK_MAX; NULL: no line needed it yet */

	/* Shared by both threads. */
	_Atomic(struct io_block *) returned;
	atomic_size_t returned_bytes;
	atomic_size_t ahead;
	atomic_bool waiting; /* reads nothing until `ahead` is low enough */
	struct loop_post nearer; /* posted by the owner: it is */
	struct loop_post lag;    /* posted by the thread: a round took long */
};

/* Handed to the thread with IO_START. */
struct io_begin {
	int fd;
	struct tls_conn *tls;
	struct peer peer;
};

struct io_line {
	struct io_thread *thread;
	struct io_mail start, resume, unpack, urgent, close, bye;
	struct io_mail opened, look, closed;

	struct stream *front; /* the owner's; NULL: it is gone */

	/* The thread's. */
	struct io_line *prev, *next;
	struct stream *back; /* NULL: it is gone, or not there yet */
	uint64_t got;        /* bytes of IO_WRITE so far */
	bool begun;          /* a frame was seen */
	bool finished;       /* a block that is `last` was sent */
	bool unpacks;        /* with unpacking */
	size_t told_memory;
	uint64_t told_got, told_taken;

	/* With the messages. */
	struct io_begin *begin;        /* start */
	struct tls_identity *identity; /* opened; NULL: it is the front's */
	struct stream_unpack unpacking; /* unpack */
	bool flush;                    /* close */
	enum stream_end why;           /* closed */
	char *detail;                  /* closed; NULL: "", or the front's */

	/* Shared by both threads. */
	atomic_size_t unconsumed; /* sizes of blocks */
	atomic_bool starved;
	atomic_bool held; /* the front takes nothing now */
	atomic_uint_fast64_t accepted, taken; /* bytes since the beginning */
	atomic_uint_fast64_t in_ms, out_ms; /* loop_now_ms() of the last ones */
	atomic_size_t memory; /* that the back has */
	atomic_bool wants_look; /* the front waits for output to move on */
	atomic_bool look_due;   /* `look` is on its way */
};

/* ---- io_pool.c ---- */

/* The thread with the fewest lines, with one more. */
struct io_thread *io_pool_choose(struct io_pool *p);
/* Called by the owner: a line of io_pool_choose()'s thread has ended. */
void io_thread_leave(struct io_thread *t);

/* ---- io_block.c ---- */

/* Called by the thread; room for len bytes.  NULL: no memory. */
struct io_block *io_block_get(struct io_thread *t, size_t len) MUST_CHECK;
/* Called by the owner. */
void io_block_give_back(struct io_thread *t, struct io_block *b);
/* From malloc(), on any thread; free() takes it. */
struct io_block *io_block_new(size_t cap) MUST_CHECK;
/*
 * Frees the store and t->unpacked: by the thread when it has no line any more,
 * or when it has ended.
 */
void io_blocks_free(struct io_thread *t);

static inline size_t
io_block_size(const struct io_block *b)
{
	return sizeof(*b) + b->cap;
}

/* ---- io_back.c, on the thread ---- */

/* Called on the thread, which is the arg: `ahead` is low enough to read on. */
void io_back_go_on(void *thread);
/* The mailbox_fn of thread->in; arg is the thread. */
void io_back_deliver(struct mail *m, void *thread);
/* Frees what is left of the thread's lines, when only one thread is left. */
void io_back_free_all(struct io_thread *t);

/* ---- stream_far.c, on the owner ---- */

/* The mailbox_fn of thread->out. */
void stream_far_deliver(struct mail *m, void *thread);

#endif /* TRANSPORT_STREAM_IO_LINE_H */
