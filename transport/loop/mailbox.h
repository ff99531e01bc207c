/*
 * mailbox: messages from the loop of one thread to that of another, in their
 * order and in batches.
 *
 * A mailbox has one sender and one receiver.  Messages are gathered and go off
 * as a batch, at the end of the sender's turn or when they weigh a lot, behind
 * one lock; the receiver is woken once for all batches that it has not yet
 * seen.  A message is embedded in the object that it is about: sending
 * allocates nothing.
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

/* Belongs to the mailbox from mail_send() until the mailbox_fn is called. */
struct mail {
	struct mail *next;
};

typedef void (*mailbox_fn)(struct mail *m, void *arg);

/* Public only so that it can be embedded; the fields are private. */
struct mailbox {
	/* The sender's. */
	struct loop *from;
	struct mail *first, **end;
	unsigned n;
	size_t bytes;
	struct loop_call flush;
	uint64_t batch; /* number of the batch that is being gathered */

	/* Shared by both threads, under lock. */
	pthread_mutex_t lock;
	struct mail *queue, **queue_end;
	bool told; /* the receiver was woken, and has not come yet */
	int fd;    /* an eventfd */

	/* The receiver's. */
	struct loop *to;
	struct event *ev;
	struct mail *taken, **taken_end;
	struct loop_call again; /* the rest of the batch, on a later turn */
	uint64_t turn_ns; /* of one turn, for deliveries */
	mailbox_fn fn;
	void *arg;
};

/*
 * Made before either thread uses it.  fn is called on `to` for each message.
 * -1: no memory, or no descriptor; mailbox_done() is legal then, too.
 */
int mailbox_init(struct mailbox *b, struct loop *from, struct loop *to,
    mailbox_fn fn, void *arg) MUST_CHECK;
/*
 * The receiver has n mailboxes, of which this is one: together they take no
 * more time of a turn than a single one would.  Called right after
 * mailbox_init().
 */
void mailbox_share_turns(struct mailbox *b, unsigned n);
/*
 * Called when only one of the two threads is left; both loops still exist.
 * Messages that were not delivered are forgotten: the owner of the object that
 * a message lies in frees it.
 */
void mailbox_done(struct mailbox *b);

/*
 * On the sender's thread.  bytes: the weight of the message; a batch of 64
 * messages, or of 128 KiB, goes off at once.
 */
void mail_send(struct mailbox *b, struct mail *m, size_t bytes);
/* Sends off what was gathered. */
void mailbox_flush(struct mailbox *b);

/* On the receiver's thread: delivers all that is there, however long that takes. */
void mailbox_deliver_all(struct mailbox *b);

#endif /* TRANSPORT_LOOP_MAILBOX_H */
