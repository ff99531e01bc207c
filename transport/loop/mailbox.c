#include "transport/loop/mailbox.h"

#include <event2/event.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A batch with so much goes off before the turn ends. */
#define BATCH_MESSAGES 64u
#define BATCH_BYTES    (128u * 1024u)

/*
 * Time for messages in one turn of the receiver's loop, in which other work has
 * its share.  The clock is read every few messages.
 */
#define DELIVER_NS         (5u * 1000u * 1000u)
#define DELIVER_PER_CLOCK  4u

/* ---- sending ---- */

static void
wake_up(struct mailbox *b)
{
	uint64_t one = 1;

	if (write(b->fd, &one, sizeof(one)) < 0) {
		/* Full: then it is awake already. */
	}
}

void
mailbox_flush(struct mailbox *b)
{
	bool wake;

	if (b->n == 0)
		return;
	pthread_mutex_lock(&b->lock);
	*b->queue_end = b->first;
	b->queue_end = b->end;
	wake = !b->told;
	b->told = true;
	pthread_mutex_unlock(&b->lock);
	b->first = NULL;
	b->end = &b->first;
	b->n = 0;
	b->bytes = 0;
	b->batch++;
	if (wake)
		wake_up(b);
}

static void
flush_cb(void *arg)
{
	mailbox_flush(arg);
}

void
mail_send(struct mailbox *b, struct mail *m, size_t bytes)
{
	m->next = NULL;
	*b->end = m;
	b->end = &m->next;
	b->bytes += bytes;
	if (++b->n >= BATCH_MESSAGES || b->bytes >= BATCH_BYTES) {
		mailbox_flush(b);
		return;
	}
	loop_defer(b->from, &b->flush, flush_cb, b);
}

/* ---- receiving ---- */

/* Takes every batch, behind what was taken before. */
static void
take(struct mailbox *b)
{
	pthread_mutex_lock(&b->lock);
	if (b->queue != NULL) {
		*b->taken_end = b->queue;
		b->taken_end = b->queue_end;
		b->queue = NULL;
		b->queue_end = &b->queue;
	}
	b->told = false;
	pthread_mutex_unlock(&b->lock);
}

/* fn() may cause the next one to be sent, even by the same message. */
static void
deliver_one(struct mailbox *b)
{
	struct mail *m = b->taken;

	if ((b->taken = m->next) == NULL)
		b->taken_end = &b->taken;
	b->fn(m, b->arg);
}

static void
deliver_cb(void *arg)
{
	struct mailbox *b = arg;
	uint64_t start = loop_boottime_ns();
	unsigned n = 0;

	take(b);
	while (b->taken != NULL) {
		deliver_one(b);
		if (++n % DELIVER_PER_CLOCK == 0 &&
		    loop_boottime_ns() - start >= b->turn_ns)
			break;
	}
	if (b->taken != NULL)
		loop_defer(b->to, &b->again, deliver_cb, b);
}

void
mailbox_deliver_all(struct mailbox *b)
{
	take(b);
	while (b->taken != NULL)
		deliver_one(b);
}

static void
mail_cb(evutil_socket_t fd, short what, void *arg)
{
	struct mailbox *b = arg;
	uint64_t n;

	if (read(fd, &n, sizeof(n)) < 0) {
		/* A wake-up without messages is harmless. */
	}
	/* Else its turn comes with the rest of what was taken before. */
	if (b->taken == NULL)
		deliver_cb(b);
}

/* ---- its life ---- */

int
mailbox_init(struct mailbox *b, struct loop *from, struct loop *to,
    mailbox_fn fn, void *arg)
{
	memset(b, 0, sizeof(*b));
	pthread_mutex_init(&b->lock, NULL);
	b->from = from;
	b->to = to;
	b->fn = fn;
	b->arg = arg;
	b->turn_ns = DELIVER_NS;
	b->end = &b->first;
	b->queue_end = &b->queue;
	b->taken_end = &b->taken;
	if ((b->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) < 0)
		return -1;
	b->ev = event_new(loop_base(to), b->fd, EV_READ | EV_PERSIST, mail_cb,
	    b);
	return b->ev != NULL && event_add(b->ev, NULL) == 0 ? 0 : -1;
}

void
mailbox_share_turns(struct mailbox *b, unsigned n)
{
	b->turn_ns = DELIVER_NS / n;
}

void
mailbox_done(struct mailbox *b)
{
	if (b->from == NULL)
		return; /* never begun */
	loop_call_cancel(&b->flush);
	loop_call_cancel(&b->again);
	if (b->ev != NULL)
		event_free(b->ev);
	if (b->fd >= 0)
		close(b->fd);
	pthread_mutex_destroy(&b->lock);
}
