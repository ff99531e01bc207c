#include "transport/connect/dial_resolve.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "transport/loop/loop.h"
#include "transport/socket/addr.h"

/* Threads at a time, given up or not. */
#define NAMES_THREADS_MAX 32
#define NAMES_TEXT_MAX    512

/* Reference-counted: by the thread until it has posted, and by the owner. */
struct dial_resolve {
	struct loop *loop;
	struct addr addr;
	dial_resolve_fn fn;
	void *arg;
	struct sockaddr_storage sa[DIAL_ADDRESSES_MAX];
	socklen_t sa_len[DIAL_ADDRESSES_MAX];
	int n;
	char err[NAMES_TEXT_MAX];
	/* Below: names_lock. */
	int refs;
	bool given_up;
	struct loop_post found_post;
};

static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
static int names_threads;

static void
names_unref(struct dial_resolve *d)
{
	bool last;

	pthread_mutex_lock(&names_lock);
	last = --d->refs == 0;
	pthread_mutex_unlock(&names_lock);
	if (last)
		free(d);
}

static void
found_cb(void *arg)
{
	struct dial_resolve *d = arg;

	d->fn(d->arg, d->sa, d->sa_len, d->n, d->err);
}

static void *
names_thread(void *arg)
{
	struct dial_resolve *d = arg;

	d->n = addr_resolve(&d->addr, d->sa, d->sa_len, DIAL_ADDRESSES_MAX,
	    d->err, sizeof(d->err));
	pthread_mutex_lock(&names_lock);
	/* Under the lock: after dial_resolve_free() the loop may be freed. */
	if (!d->given_up)
		loop_post(d->loop, &d->found_post, found_cb, d);
	names_threads--;
	pthread_mutex_unlock(&names_lock);
	names_unref(d);
	return NULL;
}

/* Signals are the loop's. */
static int
start_thread(struct dial_resolve *d)
{
	sigset_t all, before;
	pthread_t thread;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, NULL, names_thread, d);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error != 0)
		return -1;
	pthread_detach(thread);
	return 0;
}

static bool
take_place(void)
{
	bool free_one;

	pthread_mutex_lock(&names_lock);
	free_one = names_threads < NAMES_THREADS_MAX;
	names_threads += free_one;
	pthread_mutex_unlock(&names_lock);
	return free_one;
}

struct dial_resolve *
dial_resolve_new(struct loop *l, const struct addr *a, dial_resolve_fn fn,
    void *arg)
{
	struct dial_resolve *d;

	if (!take_place())
		return NULL;
	if ((d = calloc(1, sizeof(*d))) == NULL)
		goto fail;
	d->loop = l;
	d->addr = *a;
	d->fn = fn;
	d->arg = arg;
	d->refs = 2;
	if (start_thread(d) == 0)
		return d;

fail:
	free(d);
	pthread_mutex_lock(&names_lock);
	names_threads--;
	pthread_mutex_unlock(&names_lock);
	return NULL;
}

void
dial_resolve_free(struct dial_resolve *d)
{
	if (d == NULL)
		return;
	pthread_mutex_lock(&names_lock);
	d->given_up = true;
	pthread_mutex_unlock(&names_lock);
	loop_cancel(d->loop, d);
	names_unref(d);
}
