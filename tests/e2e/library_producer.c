/*
 * A program with a data source of its own, and libtributary on its event loop:
 *
 *	library_producer ADDRESS PACKETS SIZE
 *
 * Offers "test.library" and writes, as soon as an instance starts, PACKETS
 * numbered packets of up to SIZE bytes in each of two threads.  Stops when both
 * have written all.  Ends with status 0 when the instance was stopped and
 * nothing was dropped.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tributary/data_source.h>

#include "client/tunnel/producer_loop.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/socket/addr.h"

#define THREADS 2

static unsigned packets;
static size_t size;
static struct loop *loop;
static uint64_t dropped;

static struct writer {
	pthread_t thread;
	unsigned index;
	unsigned number;
	char *filler;
} writers[THREADS];

/* Both threads, and the request to stop. */
static _Atomic unsigned awaited = THREADS + 1;
static struct tributary_instance *instance;
/* Both threads have written their first packet. */
static pthread_barrier_t begun;

/* TracePacket.for_testing: TestEvent{seq_value, counter, payload} */
static void
write_one(struct tributary_packet *p, struct tributary_instance *i,
    void *context, bool first, void *arg)
{
	struct writer *w = arg;
	size_t n = (w->number * 7919u) % (size + 1);

	(void)i;
	(void)context;
	(void)first;
	memset(w->filler, 'a' + (int)(w->number % 26), n);
	tributary_put_uint(p, 8, tributary_now_ns());
	tributary_begin(p, 900);
	tributary_put_uint(p, 2, w->index + 1);
	tributary_put_uint(p, 3, w->number);
	tributary_begin(p, 5);
	tributary_put_bytes(p, 4, w->filler, n);
	tributary_end(p);
	tributary_end(p);
}

static bool
is_last(void)
{
	return atomic_fetch_sub(&awaited, 1) == 1;
}

static void *
write_all(void *arg)
{
	struct writer *w = arg;

	for (w->number = 0; w->number < packets; w->number++) {
		(void)tributary_instance_write(instance, write_one, w);
		if (w->number == 0)
			(void)pthread_barrier_wait(&begun);
	}
	if (is_last())
		tributary_stop_done(instance);
	return NULL;
}

static void
start(struct tributary_instance *i, void *context)
{
	unsigned n;

	(void)context;
	instance = i;
	if (pthread_barrier_init(&begun, NULL, THREADS) != 0)
		abort();
	for (n = 0; n < THREADS; n++) {
		writers[n].index = n;
		if ((writers[n].filler = malloc(size + 1)) == NULL ||
		    pthread_create(&writers[n].thread, NULL, write_all,
		    &writers[n]) != 0)
			abort();
	}
}

static bool
stop(struct tributary_instance *i, void *context)
{
	(void)i;
	(void)context;
	return is_last();
}

static void
destroy(struct tributary_instance *i, void *context)
{
	(void)context;
	dropped = tributary_instance_dropped(i);
	loop_stop(loop);
}

static const struct tributary_source_ops ops = {
	.size = sizeof(ops),
	.start = start,
	.stop = stop,
	.destroy = destroy,
};

int
main(int argc, char **argv)
{
	const struct tributary_source_options source = {
		.size = sizeof(source),
		.name = "test.library",
		.full = TRIBUTARY_FULL_WAIT,
	};
	struct addr address;
	const struct producer_loop_setup o = {
		.address = &address,
		.name = "library_producer",
		.memory_bytes = 2 * 1024 * 1024,
	};
	struct producer_loop *producer;
	char err[256];
	unsigned n;

	if (argc != 4 || addr_parse(&address, argv[1], err, sizeof(err)) != 0)
		return 2;
	packets = (unsigned)strtoul(argv[2], NULL, 10);
	size = strtoul(argv[3], NULL, 10);
	log_init("library_producer", LOG_LEVEL_DEBUG);
	if ((loop = loop_new()) == NULL ||
	    tributary_source_add(&source, &ops) == NULL ||
	    (producer = producer_loop_new(loop, &o)) == NULL)
		return 1;
	loop_run(loop);
	for (n = 0; n < THREADS; n++) {
		pthread_join(writers[n].thread, NULL);
		free(writers[n].filler);
	}
	producer_loop_free(producer, 0);
	loop_free(loop);
	fprintf(stderr, "%llu dropped\n", (unsigned long long)dropped);
	return dropped == 0 ? 0 : 3;
}
