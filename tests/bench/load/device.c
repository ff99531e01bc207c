#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/load/device_internal.h"
#include "tests/bench/load/load_totals.h"
#include "transport/loop/loop.h"
#include "transport/shm/shm.h"

uint64_t
device_random(struct device_shared *s, uint64_t below)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return below > 0 ? s->random % below : 0;
}

void
device_call_id(struct device *d, enum line_call what, uint64_t id)
{
	uint8_t args[11] = { 1 << 3 };

	(void)d->line->type->call(d->line, what, args,
	    1 + pb_encode_varint(args + 1, id), false);
}

/* ---- the connection ---- */

static void
register_source(struct device *d)
{
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w, 1);
	pb_put_string(&w, 1, d->shared->options->source);
	pb_put_uint(&w, 2, 1); /* will_notify_on_stop */
	pb_put_uint(&w, 3, 1); /* will_notify_on_start */
	pb_put_uint(&w, 4, 1); /* handles_incremental_state_clear */
	pb_nest_end(&w, mark);
	d->registration = d->line->type->call(d->line, LINE_REGISTER_SOURCE,
	    w.data, w.len, true);
	pb_writer_done(&w);
}

static void
up_cb(void *arg)
{
	struct device *d = arg;
	char name[96];
	struct pb_writer w;

	d->up = true;
	d->connection++;
	d->shared->totals->connections++;
	snprintf(name, sizeof(name), "%s.%u", d->shared->options->name,
	    d->index);
	pb_writer_init(&w);
	pb_put_uint(&w, 1, DEVICE_PAGE);
	if (d->shared->options->shm_kb > 0)
		pb_put_uint(&w, 2, d->shared->options->shm_kb * 1024);
	pb_put_string(&w, 3, name);
	pb_put_string(&w, 8, "tributary-load");
	(void)d->line->type->call(d->line, LINE_INITIALIZE, w.data, w.len,
	    true);
	(void)d->line->type->call(d->line, LINE_COMMANDS, NULL, 0, false);
	pb_writer_done(&w);
	register_source(d);
}

static void
command_cb(void *arg, const uint8_t *msg, size_t len, int fd)
{
	device_command(arg, msg, len, fd);
}

static void
forget(struct device *d, enum load_end end, bool by_us)
{
	device_drop_writing(d, end);
	device_drop_later(d);
	loop_timer_clear(d->timer);
	loop_timer_clear(d->slow_timer);
	shm_free(d->shm);
	free(d->instances);
	d->instances = NULL;
	d->n_instances = 0;
	d->shm = NULL;
	d->line = NULL;
	d->up = d->ready = d->ending = d->rests = false;
	d->flush = 0;
	d->next_writer = 0;
	d->registration = 0;
	d->shared->gone(d->shared->arg, d, by_us);
}

static void
replied_cb(void *arg, uint64_t ticket, bool ok, const uint8_t *msg, size_t len)
{
	struct device *d = arg;

	if (ticket != d->registration) {
		device_replied(d, ticket, ok);
		return;
	}
	/* A RegisterDataSourceResponse with an error is a refusal, too. */
	if (!ok || len > 0) {
		load_totals_error(d->shared->totals, "registration",
		    "a data source was refused");
		line_free(d->line, LINE_RESET);
		forget(d, LOAD_CUT, false);
		return;
	}
	d->ready = true;
	if (d->slow == SLOW_READS)
		loop_timer_set(d->slow_timer, 20, 0);
	d->shared->ready(d->shared->arg, d);
}

static void
drained_cb(void *arg)
{
	device_go_on(arg);
}

static void
down_cb(void *arg, const char *kind, const char *text)
{
	struct device *d = arg;

	load_totals_error(d->shared->totals, kind, text);
	line_free(d->line, LINE_RESET);
	forget(d, LOAD_CUT, false);
}

void
device_connect(struct device *d)
{
	static const struct line_ops ops = {
		.up = up_cb,
		.command = command_cb,
		.replied = replied_cb,
		.drained = drained_cb,
		.down = down_cb,
	};
	char err[512];

	if (d->line != NULL)
		return;
	d->line = d->shared->connect(d->shared->arg, d, &ops, err,
	    sizeof(err));
	if (d->line != NULL)
		return;
	load_totals_error(d->shared->totals, "connect", err);
	d->shared->gone(d->shared->arg, d, false);
}

void
device_end(struct device *d, enum line_cut how)
{
	enum load_end end = how == LINE_CLEAN ? LOAD_CLOSED : LOAD_CUT;

	if (d->line == NULL)
		return;
	if (how == LINE_CLEAN && d->up && !d->ending) {
		d->ending = true;
		device_finish(d);
	}
	if (how == LINE_CLEAN && d->up && !device_is_quiet(d))
		return; /* device_settle() comes back */
	line_free(d->line, how);
	forget(d, end, true);
}

struct device *
device_new(struct device_shared *s, uint32_t index, enum load_slow slow)
{
	struct device *d;

	if ((d = calloc(1, sizeof(*d))) == NULL)
		return NULL;
	d->shared = s;
	d->index = index;
	d->slow = slow;
	d->later_end = &d->later;
	d->held_end = &d->held;
	d->timer = loop_timer_new(s->loop, device_write_cb, d);
	d->slow_timer = loop_timer_new(s->loop, device_slow_cb, d);
	if (d->timer == NULL || d->slow_timer == NULL) {
		device_free(d);
		return NULL;
	}
	return d;
}

void
device_free(struct device *d)
{
	if (d == NULL)
		return;
	line_free(d->line, LINE_CLEAN);
	device_drop_writing(d, LOAD_CUT);
	device_drop_later(d);
	loop_timer_free(d->timer);
	loop_timer_free(d->slow_timer);
	shm_free(d->shm);
	free(d->instances);
	free(d);
}

uint32_t
device_index(const struct device *d)
{
	return d->index;
}

bool
device_is_connected(const struct device *d)
{
	return d->up;
}

bool
device_is_ready(const struct device *d)
{
	return d->ready;
}

size_t
device_sequences(const struct device *d)
{
	return d->n_sequences;
}

uint64_t
device_packets(const struct device *d)
{
	return d->packets;
}

uint64_t
device_bytes(const struct device *d)
{
	return d->bytes;
}
