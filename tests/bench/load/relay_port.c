#include "tests/bench/load/relay_port.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/bench/load/line.h"
#include "tests/bench/load/load_totals.h"
#include "transport/loop/loop.h"

#define AGAIN_MS 1000u

struct relay_port {
	struct loop *loop;
	const struct place *place;
	uint32_t number;
	struct load_totals *totals;
	char hint[48], name[48];
	struct line_identity id;
	struct line *line; /* NULL: it waits for the timer */
	struct loop_timer *again;
};

static void
up_cb(void *arg)
{
	struct relay_port *r = arg;

	/* A SystemInfo with nothing in it. */
	(void)r->line->type->call(r->line, LINE_INIT_RELAY, "\x0a\x00", 2,
	    true);
}

static void
command_cb(void *arg, const uint8_t *msg, size_t len, int fd)
{
	if (fd >= 0)
		close(fd);
}

static void
replied_cb(void *arg, uint64_t ticket, bool ok, const uint8_t *msg, size_t len)
{
	struct relay_port *r = arg;

	if (!ok)
		load_totals_error(r->totals, "relay",
		    "InitRelay was rejected");
}

static void
drained_cb(void *arg)
{
}

static void
down_cb(void *arg, const char *kind, const char *text)
{
	struct relay_port *r = arg;

	load_totals_error(r->totals, kind, text);
	line_free(r->line, LINE_RESET);
	r->line = NULL;
	loop_timer_set(r->again, AGAIN_MS, 0);
}

static void
connect_cb(void *arg)
{
	static const struct line_ops ops = {
		.up = up_cb,
		.command = command_cb,
		.replied = replied_cb,
		.drained = drained_cb,
		.down = down_cb,
	};
	struct relay_port *r = arg;
	char err[256];

	r->line = line_direct_new(r->loop, r->place, "RelayPort", r->number,
	    &r->id, &ops, r, err, sizeof(err));
	if (r->line == NULL) {
		load_totals_error(r->totals, "connect", err);
		loop_timer_set(r->again, AGAIN_MS, 0);
	}
}

struct relay_port *
relay_port_new(struct loop *l, const struct place *place, uint32_t number,
    struct load_totals *totals)
{
	struct relay_port *r = calloc(1, sizeof(*r));

	if (r == NULL || (r->again = loop_timer_new(l, connect_cb, r)) ==
	    NULL) {
		free(r);
		return NULL;
	}
	r->loop = l;
	r->place = place;
	r->number = number;
	r->totals = totals;
	snprintf(r->hint, sizeof(r->hint), "tributary-load %u", number);
	snprintf(r->name, sizeof(r->name), "load-%u", number);
	r->id.machine_id_hint = r->hint;
	r->id.machine_name = r->name;
	connect_cb(r);
	return r;
}

void
relay_port_free(struct relay_port *r)
{
	if (r == NULL)
		return;
	line_free(r->line, LINE_CLEAN);
	loop_timer_free(r->again);
	free(r);
}

const struct line_identity *
relay_port_identity(const struct relay_port *r)
{
	return &r->id;
}
