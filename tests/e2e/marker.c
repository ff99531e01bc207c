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
#include <tributary/data_source.h>
#include <unistd.h>

#include "client/tunnel/producer_loop.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/socket/addr.h"

#define TYPE_INSTANT 3

struct program {
	struct loop *loop;
	struct tributary_instance *newest; /* or NULL */
	char line[256];
	size_t len;
};

struct mark {
	const char *name;
	uint64_t now;
};

/* TracePacket.track_event: TrackEvent{type, name, track_uuid} */
static void
write_event(struct tributary_packet *p, struct tributary_instance *i,
    void *context, bool first, void *arg)
{
	const struct mark *m = arg;

	tributary_put_uint(p, 8, m->now);
	tributary_begin(p, 11);
	tributary_put_uint(p, 9, TYPE_INSTANT);
	tributary_put_uint(p, 11, 1);
	tributary_put_string(p, 23, m->name);
	tributary_end(p);
}

static void
obey(struct program *p, const char *name)
{
	struct mark m = { name, 0 };

	if (p->newest != NULL) {
		m.now = loop_boottime_ns();
		(void)tributary_instance_write(p->newest, write_event, &m);
	}
	printf("%s %" PRIu64 "\n", name, m.now);
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

static bool
setup(struct tributary_instance *i, const void *config, size_t len, void *arg,
    void **context)
{
	struct program *p = arg;

	(void)config;
	(void)len;
	p->newest = i;
	*context = p;
	return true;
}

static void
destroy(struct tributary_instance *i, void *context)
{
	struct program *p = context;

	if (p->newest == i)
		p->newest = NULL;
}

static const struct tributary_source_ops ops = {
	.size = sizeof(ops),
	.setup = setup,
	.destroy = destroy,
};

int
main(int argc, char **argv)
{
	struct program p = { 0 };
	struct addr address;
	struct producer_loop *producer;
	struct event *input;
	char err[256];
	const struct tributary_source_options source = {
		.size = sizeof(source),
		.name = "test.marks",
		.full = TRIBUTARY_FULL_STALL,
		.arg = &p,
	};
	const struct producer_loop_setup setup_of = {
		.address = &address,
		.name = "marker",
	};

	if (argc != 2 || addr_parse(&address, argv[1], err, sizeof(err)) < 0)
		return 2;
	log_init("marker", LOG_LEVEL_DEBUG);
	if ((p.loop = loop_new()) == NULL ||
	    tributary_source_add(&source, &ops) == NULL ||
	    (producer = producer_loop_new(p.loop, &setup_of)) == NULL ||
	    loop_on_signal(p.loop, SIGTERM, end, &p) < 0 ||
	    (input = event_new(loop_base(p.loop), STDIN_FILENO,
	    EV_READ | EV_PERSIST, input_cb, &p)) == NULL ||
	    event_add(input, NULL) < 0)
		return 1;
	loop_run(p.loop);
	event_free(input);
	producer_loop_free(producer, 0);
	loop_free(p.loop);
	return 0;
}
