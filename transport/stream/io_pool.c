#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "transport/loop/loop.h"
#include "transport/stream/io_line.h"

/* Turns in which a thread that ends offers queued output to its sockets. */
#define LAST_TURNS 16

struct io_pool {
	struct loop *owner;
	loop_fn on_lag; /* called on the owner; NULL: none */
	void *on_lag_arg;
	unsigned n;
	unsigned turn; /* where the search for the emptiest begins */
	struct io_thread all[];
};

/* ---- on the thread ---- */

static void *
thread_main(void *arg)
{
	struct io_thread *t = arg;
	char name[16];
	int i;

	/* Each thread names itself: another one would need /proc. */
	snprintf(name, sizeof(name), "io-%u", t->index);
	(void)pthread_setname_np(pthread_self(), name);
	while (!t->stopping)
		loop_run(t->loop);
	for (i = 0; i < LAST_TURNS; i++)
		loop_run_once(t->loop);
	mailbox_flush(&t->out);
	return NULL;
}

/* ---- on the owner ---- */

struct io_thread *
io_pool_choose(struct io_pool *p)
{
	struct io_thread *best = &p->all[p->turn % p->n], *t;
	unsigned i;

	for (i = 1; i < p->n; i++) {
		t = &p->all[(p->turn + i) % p->n];
		if (t->n_lines < best->n_lines)
			best = t;
	}
	p->turn = (p->turn + 1) % p->n;
	best->n_lines++;
	return best;
}

void
io_thread_leave(struct io_thread *t)
{
	t->n_lines--;
}

static int
thread_init(struct io_pool *p, struct io_thread *t, unsigned n)
{
	t->pool = p;
	t->index = (unsigned)(t - p->all);
	if ((t->loop = loop_new()) == NULL)
		return -1;
	loop_set_paced(t->loop);
	if (mailbox_init(&t->in, p->owner, t->loop,
		io_back_deliver, t) != 0)
		return -1;
	if (mailbox_init(&t->out, t->loop, p->owner, stream_far_deliver,
		t) != 0)
		return -1;
	mailbox_share_turns(&t->out, n);
	t->ready = true;
	return 0;
}

struct io_pool *
io_pool_new(struct loop *owner, unsigned n)
{
	struct io_pool *p;

	p = calloc(1, sizeof(*p) + n * sizeof(p->all[0]));
	if (p == NULL)
		return NULL;
	p->owner = owner;
	for (p->n = 0; p->n < n; p->n++) {
		if (thread_init(p, &p->all[p->n], n) != 0) {
			p->n++;
			io_pool_free(p);
			return NULL;
		}
	}
	return p;
}

/* ---- how long input waits ---- */

static void
late_cb(void *arg)
{
	struct io_thread *t = arg;

	if (t->pool->on_lag != NULL)
		t->pool->on_lag(t->pool->on_lag_arg);
}

/* On the thread. */
static void
lag_cb(void *arg)
{
	struct io_thread *t = arg;

	loop_post(t->pool->owner, &t->lag, late_cb, t);
}

void
io_pool_on_lag(struct io_pool *p, uint64_t ms, loop_fn fn, void *arg)
{
	unsigned i;

	for (i = 0; i < p->n; i++)
		loop_on_lag(p->all[i].loop, ms, lag_cb, &p->all[i]);
	p->on_lag = fn;
	p->on_lag_arg = arg;
}

void
io_pool_forget_lag(struct io_pool *p)
{
	p->on_lag = NULL;
}

uint64_t
io_pool_lag_ms(const struct io_pool *p)
{
	uint64_t most = 0, ms;
	unsigned i;

	for (i = 0; i < p->n; i++) {
		ms = loop_lag_ms(p->all[i].loop);
		if (ms > most)
			most = ms;
	}
	return most;
}

void
io_pool_hold_back(struct io_pool *p, enum loop_hold hold)
{
	unsigned i;

	for (i = 0; i < p->n; i++)
		loop_hold_back(p->all[i].loop, hold);
}

int
io_pool_start(struct io_pool *p)
{
	sigset_t all, before;
	unsigned i;
	int rc = 0;

	/* Signals are the owner's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (i = 0; i < p->n && rc == 0; i++) {
		rc = pthread_create(&p->all[i].id, NULL, thread_main,
		    &p->all[i]);
		if (rc != 0)
			break;
		p->all[i].running = true;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc == 0 ? 0 : -1;
}

static void
thread_stop(struct io_thread *t)
{
	if (!t->running)
		return;
	t->stop.kind = IO_STOP;
	mail_send(&t->in, &t->stop.mail, 0);
	mailbox_flush(&t->in);
}

/* Delivers in both directions, on the one thread that is left. */
static void
exchange_last_mail(struct io_thread *t)
{
	int round;

	/* Lines begin and close; the front hears `closed`, the back `bye`. */
	for (round = 0; round < 3; round++) {
		mailbox_flush(&t->in);
		mailbox_deliver_all(&t->in);
		mailbox_flush(&t->out);
		mailbox_deliver_all(&t->out);
	}
}

static void
thread_done(struct io_thread *t)
{
	if (t->ready)
		exchange_last_mail(t);
	io_back_free_all(t);
	mailbox_done(&t->in);
	mailbox_done(&t->out);
	/*
	 * The last calls of the thread's loop may still tell the owner of a
	 * lag.
	 */
	loop_free(t->loop);
	loop_cancel(t->pool->owner, t);
	io_blocks_free(t);
}

void
io_pool_free(struct io_pool *p)
{
	unsigned i;

	if (p == NULL)
		return;
	for (i = 0; i < p->n; i++)
		thread_stop(&p->all[i]);
	for (i = 0; i < p->n; i++)
		if (p->all[i].running)
			pthread_join(p->all[i].id, NULL);
	for (i = 0; i < p->n; i++)
		thread_done(&p->all[i]);
	free(p);
}
