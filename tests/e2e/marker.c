/*
 * A producer whose events happen when it is told, for tests that hold the
 * clocks of two machines against each other:
 *
 *	marker ADDRESS
 *
 * Offers "test.marks".  Of each line on standard input it makes an event of
 * that name, at the time of its boot clock, and answers with name and time;
 * with the time 0 while no instance runs.  Ends with its input, or by SIGTERM.
 */
#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/library/producer.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/socket/addr.h"
#include "transport/wire/pb_writer.h"

#define TYPE_INSTANT 3

struct program {
	struct loop *loop;
	struct trace_writer *writer; /* of the newest instance, or NULL */
	char line[256];
	size_t len;
};

/* TracePacket.track_event: TrackEvent{type, name, track_uuid} */
static void
write_event(struct trace_writer *t, const char *name, uint64_t now)
{
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	pb_put_uint(&w, 8, now);
	mark = pb_nest_begin(&w, 11);
	pb_put_uint(&w, 9, TYPE_INSTANT);
	pb_put_uint(&w, 11, 1);
	pb_put_string(&w, 23, name);
	pb_nest_end(&w, mark);
	trace_writer_write(t, w.data, w.len);
	pb_writer_done(&w);
}

static void
obey(struct program *p, const char *name)
{
	uint64_t now = 0;

	if (p->writer != NULL) {
		now = loop_boottime_ns();
		write_event(p->writer, name, now);
	}
	printf("%s %" PRIu64 "\n", name, now);
	fflush(stdout);
}

static void
input_cb(evutil_socket_t fd, short what, void *arg)
{
	struct program *p = arg;
	ssize_t n = read(fd, p->line + p->len, sizeof(p->line) - p->len);
	char *end;

	(void)what;
	if (n <= 0) {
		loop_stop(p->loop);
		return;
	}
	p->len += (size_t)n;
	while ((end = memchr(p->line, '\n', p->len)) != NULL) {
		*end++ = '\0';
		obey(p, p->line);
		p->len -= (size_t)(end - p->line);
		memmove(p->line, end, p->len);
	}
}

static void
end(void *arg)
{
	struct program *p = arg;

	loop_stop(p->loop);
}

static void *
setup(void *arg, struct producer_instance *pi, const uint8_t *config,
    size_t len)
{
	struct program *p = arg;

	(void)config;
	(void)len;
	p->writer = producer_instance_writer(pi, TRACE_WRITER_STALL);
	return p->writer == NULL ? NULL : p;
}

static void
destroy(void *ctx)
{
	struct program *p = ctx;

	p->writer = NULL;
}

int
main(int argc, char **argv)
{
	struct program p = { 0 };
	struct addr address;
	struct producer *producer;
	struct event *input;
	char err[256];
	struct producer_source source = {
		.name = "test.marks",
		.setup = setup,
		.destroy = destroy,
		.arg = &p,
	};
	const struct producer_options options = {
		.address = &address,
		.name = "marker",
	};

	if (argc != 2 || addr_parse(&address, argv[1], err, sizeof(err)) < 0)
		return 2;
	log_init("marker", LOG_LEVEL_DEBUG);
	if ((p.loop = loop_new()) == NULL ||
	    (producer = producer_new(p.loop, &options)) == NULL ||
	    producer_add_source(producer, &source) < 0 ||
	    loop_on_signal(p.loop, SIGTERM, end, &p) < 0 ||
	    (input = event_new(loop_base(p.loop), STDIN_FILENO,
	    EV_READ | EV_PERSIST, input_cb, &p)) == NULL ||
	    event_add(input, NULL) < 0)
		return 1;
	loop_run(p.loop);
	event_free(input);
	producer_free(producer);
	loop_free(p.loop);
	return 0;
}
