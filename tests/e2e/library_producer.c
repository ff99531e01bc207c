/*
 * A producer made with libtributary, as an application would be:
 *
 *	library_producer ADDRESS PACKETS SIZE
 *
 * Offers "test.library" and writes, as soon as an instance starts, PACKETS
 * numbered packets of up to SIZE bytes on each of two sequences.  Ends with
 * status 0 when the instance was stopped and nothing was dropped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/library/producer.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/socket/addr.h"
#include "transport/wire/pb_writer.h"

/* Packets a turn of the loop, so that commands are still heard. */
#define BURST 50u

struct program {
	struct loop *loop;
	unsigned packets;
	size_t size;
	uint64_t dropped;
};

struct instance {
	struct program *program;
	struct trace_writer *writers[2];
	unsigned next;
	char *filler;
	struct pb_writer w;
	struct loop_call write_call;
};

/* TracePacket.for_testing: TestEvent{seq_value, counter, payload} */
static void
write_one(struct instance *i, struct trace_writer *t, unsigned number)
{
	size_t mark, inner, size;

	size = (number * 7919u) % (i->program->size + 1);
	pb_writer_reset(&i->w);
	pb_put_uint(&i->w, 8, loop_boottime_ns());
	mark = pb_nest_begin(&i->w, 900);
	pb_put_uint(&i->w, 2, trace_writer_id(t));
	pb_put_uint(&i->w, 3, number);
	inner = pb_nest_begin(&i->w, 5);
	memset(i->filler, 'a' + (int)(number % 26), size);
	pb_put_bytes(&i->w, 4, i->filler, size);
	pb_nest_end(&i->w, inner);
	pb_nest_end(&i->w, mark);
	trace_writer_write(t, i->w.data, i->w.len);
}

static void
write_some(void *arg)
{
	struct instance *i = arg;
	unsigned n, end = i->next + BURST;

	for (n = i->next; n < end && n < i->program->packets; n++) {
		write_one(i, i->writers[0], n);
		write_one(i, i->writers[1], n);
	}
	i->next = n;
	if (n < i->program->packets)
		loop_defer(i->program->loop, &i->write_call, write_some, i);
}

static void *
setup(void *arg, struct producer_instance *pi, const uint8_t *config,
    size_t len)
{
	struct instance *i = calloc(1, sizeof(*i));

	if (i == NULL)
		return NULL;
	i->program = arg;
	i->filler = malloc(i->program->size + 1);
	i->writers[0] = producer_instance_writer(pi, TRACE_WRITER_STALL);
	i->writers[1] = producer_instance_writer(pi, TRACE_WRITER_STALL);
	pb_writer_init(&i->w);
	if (i->filler == NULL || i->writers[0] == NULL ||
	    i->writers[1] == NULL)
		abort();
	return i;
}

static void
stop(void *ctx)
{
	struct instance *i = ctx;

	while (i->next < i->program->packets)
		write_some(i);
	i->program->dropped = trace_writer_dropped(i->writers[0]) +
	    trace_writer_dropped(i->writers[1]);
}

static void
destroy(void *ctx)
{
	struct instance *i = ctx;

	loop_cancel(i->program->loop, i);
	pb_writer_done(&i->w);
	free(i->filler);
	loop_stop(i->program->loop);
	free(i);
}

int
main(int argc, char **argv)
{
	struct program p = { 0 };
	struct addr address;
	struct producer *producer;
	char err[256];
	struct producer_source source = {
		.name = "test.library",
		.setup = setup,
		.start = write_some,
		.stop = stop,
		.destroy = destroy,
		.arg = &p,
	};
	const struct producer_options options = {
		.address = &address,
		.name = "library_producer",
		.shm_bytes = 2 * 1024 * 1024,
	};

	if (argc != 4 || addr_parse(&address, argv[1], err, sizeof(err)) < 0)
		return 2;
	p.packets = (unsigned)strtoul(argv[2], NULL, 10);
	p.size = strtoul(argv[3], NULL, 10);
	log_init("library_producer", LOG_LEVEL_DEBUG);
	if ((p.loop = loop_new()) == NULL ||
	    (producer = producer_new(p.loop, &options)) == NULL ||
	    producer_add_source(producer, &source) < 0)
		return 1;
	loop_run(p.loop);
	producer_free(producer);
	loop_free(p.loop);
	fprintf(stderr, "%llu dropped\n", (unsigned long long)p.dropped);
	return p.dropped == 0 ? 0 : 3;
}
