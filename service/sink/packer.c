#include "service/sink/packer.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "service/sink/file_sink.h"

/* Spare bytes for the packet that completes a batch, unless it is large. */
#define BATCH_SPARE (16u * 1024u)

/* Bytes of address space; only a few frames of the compressor are touched. */
#define STACK_BYTES (512u * 1024u)

/*
 * State of the loop's side, then, from `lock` on, state shared with the thread:
 * batch and compressor belong to the thread in PACKER_WORKS, and to the loop in
 * PACKER_RESTS.  Without a thread the loop's side frees the packer, else the
 * thread does as soon as it sees PACKER_QUITS; after that it touches the loop
 * no more.
 */
struct packer {
	struct loop *l;
	loop_fn packed;
	void *arg;
	bool has_thread;
	bool busy;
	const uint8_t *out; /* the result: in batch or the compressor's */
	size_t out_len;
	struct loop_call packed_call; /* without a thread */

	pthread_mutex_t lock;
	pthread_cond_t wake;
	enum packer_state {
		PACKER_RESTS,
		PACKER_WORKS, /* batch is to be compressed, or is being so */
		PACKER_QUITS, /* the owner is gone: the last state */
	} state;
	struct loop_post packed_post;
	struct sink_batch batch;
	struct packet_compressor *compressor;
};

static atomic_uint threads;

/* With the lock held. */
static void
set_state(struct packer *p, enum packer_state to)
{
	assert(p->state != PACKER_QUITS && to != p->state);
	p->state = to;
}

static void
destroy(struct packer *p)
{
	packet_compressor_free(p->compressor);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p->batch.data);
	free(p);
}

struct packer *
packer_new(struct loop *l, const struct packet_compression *how,
    loop_fn packed, void *arg)
{
	struct packer *p;

	if ((p = calloc(1, sizeof(*p))) == NULL)
		return NULL;
	p->l = l;
	p->packed = packed;
	p->arg = arg;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	p->batch.nominal = PACKET_BATCH_BYTES;
	p->batch.cap = PACKET_BATCH_BYTES + BATCH_SPARE;
	p->batch.data = malloc(p->batch.cap);
	p->compressor = packet_compressor_new(how);
	if (p->batch.data == NULL || p->compressor == NULL) {
		destroy(p);
		return NULL;
	}
	return p;
}

/* Runs on the loop when the batch is compressed. */
static void
packed_cb(void *arg)
{
	struct packer *p = arg;

	p->busy = false;
	p->packed(p->arg);
}

static void *
thread_main(void *arg)
{
	struct packer *p = arg;
	const uint8_t *out;
	size_t len;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		while (p->state == PACKER_RESTS)
			pthread_cond_wait(&p->wake, &p->lock);
		if (p->state == PACKER_QUITS)
			break;
		pthread_mutex_unlock(&p->lock);
		out = packet_compressor_run(p->compressor, p->batch.data,
		    p->batch.len, &len);
		pthread_mutex_lock(&p->lock);
		p->out = out;
		p->out_len = len;
		if (p->state == PACKER_QUITS)
			break;
		set_state(p, PACKER_RESTS);
		loop_post(p->l, &p->packed_post, packed_cb, p);
	}
	pthread_mutex_unlock(&p->lock);
	destroy(p);
	atomic_fetch_sub(&threads, 1);
	return NULL;
}

/* Starts the thread, detached and with all signals blocked for the loop. */
static bool
start_thread(struct packer *p)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;
	bool ok = false;

	if (pthread_attr_init(&attr) != 0)
		return false;
	sigfillset(&all);
	if (pthread_attr_setstacksize(&attr, STACK_BYTES) == 0 &&
	    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) == 0 &&
	    pthread_sigmask(SIG_SETMASK, &all, &before) == 0) {
		ok = pthread_create(&thread, &attr, thread_main, p) == 0;
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	pthread_attr_destroy(&attr);
	return ok;
}

static bool
have_thread(struct packer *p)
{
	if (p->has_thread)
		return true;
	if (atomic_fetch_add(&threads, 1) < PACKER_THREADS_MAX)
		p->has_thread = start_thread(p);
	if (!p->has_thread)
		atomic_fetch_sub(&threads, 1);
	return p->has_thread;
}

void
packer_free(struct packer *p)
{
	if (p == NULL)
		return;
	if (!p->has_thread) {
		loop_cancel(p->l, p);
		destroy(p);
		return;
	}
	pthread_mutex_lock(&p->lock);
	set_state(p, PACKER_QUITS);
	/* After this no packed_cb() comes: the thread posts under the lock. */
	loop_cancel(p->l, p);
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
}

struct sink_batch *
packer_batch(struct packer *p)
{
	size_t cap = p->batch.nominal + BATCH_SPARE;
	uint8_t *data;

	p->batch.len = 0;
	if (p->batch.cap > cap &&
	    (data = realloc(p->batch.data, cap)) != NULL) {
		p->batch.data = data;
		p->batch.cap = cap;
	}
	p->out = NULL;
	p->out_len = 0;
	return &p->batch;
}

void
packer_submit(struct packer *p)
{
	p->busy = true;
	if (!have_thread(p)) {
		p->out = p->batch.data;
		p->out_len = p->batch.len;
		loop_defer(p->l, &p->packed_call, packed_cb, p);
		return;
	}
	pthread_mutex_lock(&p->lock);
	set_state(p, PACKER_WORKS);
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
}

bool
packer_is_busy(const struct packer *p)
{
	return p->busy;
}

const uint8_t *
packer_result(const struct packer *p, size_t *len)
{
	*len = p->out_len;
	return p->out;
}
