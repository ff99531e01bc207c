/*
 * mailbox: messages from the loop of one thread to that of another, in their
 * order and in batches.
 *
 * One sends, one receives.  What is sent goes off together, at the end of the
 * sender's turn or when it is a lot, behind one lock; the receiver is woken
 * once for whatever it has not yet seen.  Messages are embedded in what they
 * are about: sending allocates nothing.
 */
#ifndef TRANSPORT_LOOP_MAILBOX_H
#define TRANSPORT_LOOP_MAILBOX_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/loop/loop.h"

struct event;

/* The receiver's from mail_send() until it is delivered. */
struct mail {
	struct mail *next;
};

typedef void (*mailbox_fn)(struct mail *m, void *arg);

/* Reading for who looks; embedded by its owner. */
struct mailbox {
	/* The sender's. */
	struct loop *from;
	struct mail *first, **end;
	unsigned n;
	size_t bytes;
	struct loop_call flush;
	uint64_t batch; /* number of the batch that is being gathered */

	/* Both's, under lock. */
	pthread_mutex_t lock;
	struct mail *queue, **queue_end;
	bool told; /* the receiver was woken, and has not come yet */
	int fd;    /* an eventfd */

	/* The receiver's. */
	struct loop *to;
	struct event *ev;
	struct mail *taken, **taken_end;
	struct loop_call again; /* the rest of it, on a later turn */
	uint64_t turn_ns; /* so long it may take of one turn */
	mailbox_fn fn;
	void *arg;
};

/*
 * Before either thread uses it.  fn is called on `to` for each message.  -1:
 * no memory, or no descriptor; mailbox_done() is legal then, too.
 */
int mailbox_init(struct mailbox *b, struct loop *from, struct loop *to,
    mailbox_fn fn, void *arg) MUST_CHECK;
/*
 * It is one of n that its receiver has: together they take no more of a turn
 * than one would.  Right behind mailbox_init().
 */
void mailbox_share_turns(struct mailbox *b, unsigned n);
/*
 * When only one thread is left, and both loops still are.  What was not
 * delivered is its owner's to find.
 */
void mailbox_done(struct mailbox *b);

/*
 * From the sender's thread.  bytes: what it brings along; a batch with a lot
 * goes off at once.
 */
void mail_send(struct mailbox *b, struct mail *m, size_t bytes);
/* Sends off what was gathered. */
void mailbox_flush(struct mailbox *b);

/* On the receiver's thread: delivers all that is there, however long that takes. */
void mailbox_deliver_all(struct mailbox *b);

#endif /* TRANSPORT_LOOP_MAILBOX_H */
