#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/load/device_internal.h"
#include "tests/bench/load/load_totals.h"
#include "transport/loop/loop.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_reader.h"

/* Fields of messages that a producer reads (reference wire-format.md). */
enum {
	COMMAND_START = 1,
	COMMAND_STOP = 2,
	COMMAND_SETUP_TRACING = 3,
	COMMAND_FLUSH = 5,
	COMMAND_SETUP_SOURCE = 6,
	COMMAND_CLEAR_STATE = 7,
};
#define CONFIG_TARGET_BUFFER 2u
#define CONFIG_FOR_TESTING   1001u
#define TEST_CONFIG_SEED     3u

static uint64_t
field_value(const uint8_t *data, size_t len, uint32_t number)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, data, len);
	while (pb_next(&r, &f))
		if (f.number == number)
			return f.value;
	return 0;
}

static void
setup_tracing(struct device *d, int fd)
{
	char err[256];

	if (fd < 0 || d->shm != NULL)
		return;
	d->shm = shm_adopt(fd, DEVICE_PAGE, err, sizeof(err));
	if (d->shm != NULL)
		return;
	load_totals_error(d->shared->totals, "shared_memory", err);
	close(fd);
}

static void
read_config(struct device_instance *in, const struct pb_field *config)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, config->data, config->len);
	while (pb_next(&r, &f)) {
		if (f.number == CONFIG_TARGET_BUFFER)
			in->buffer = (uint32_t)f.value;
		else if (f.number == CONFIG_FOR_TESTING)
			in->session = (uint32_t)field_value(f.data, f.len,
			    TEST_CONFIG_SEED);
	}
}

static void
setup_source(struct device *d, const uint8_t *data, size_t len)
{
	struct device_instance *grown, *in;
	struct pb_reader r;
	struct pb_field f;

	grown = realloc(d->instances,
	    (d->n_instances + 1) * sizeof(*d->instances));
	if (grown == NULL || d->n_instances == DEVICE_INSTANCES_MAX) {
		load_totals_error(d->shared->totals, "instances",
		    "too many instances of one producer");
		d->instances = grown != NULL ? grown : d->instances;
		return;
	}
	d->instances = grown;
	in = &d->instances[d->n_instances++];
	memset(in, 0, sizeof(*in));
	pb_init(&r, data, len);
	while (pb_next(&r, &f)) {
		if (f.number == 1)
			in->id = f.value;
		else if (f.number == 2)
			read_config(in, &f);
	}
}

static bool
writer_in_use(const struct device *d, uint16_t writer)
{
	size_t i;

	for (i = 0; i < d->n_sequences; i++)
		if (d->sequences[i].writer == writer)
			return true;
	return false;
}

static void
open_sequence(struct device *d, const struct device_instance *in)
{
	struct device_sequence *grown, *s;
	uint8_t args[24] = { 1 << 3 };
	size_t n;
	uint32_t key;

	grown = realloc(d->sequences,
	    (d->n_sequences + 1) * sizeof(*d->sequences));
	if (grown != NULL)
		d->sequences = grown;
	key = load_ledger_add(d->shared->ledger, in->session, d->index,
	    d->connection);
	if (grown == NULL || key == 0) {
		load_totals_error(d->shared->totals, "ledger",
		    "no room for another sequence");
		return;
	}
	do {
		d->next_writer = (uint16_t)
		    (d->next_writer % SHM_MAX_WRITER_ID + 1);
	} while (writer_in_use(d, d->next_writer));
	s = &d->sequences[d->n_sequences++];
	memset(s, 0, sizeof(*s));
	chunker_init(&s->chunker, key, d->shared->options->patches);
	if (d->shared->options->state)
		chunker_begin_anew(&s->chunker);
	s->instance = in->id;
	s->buffer = in->buffer;
	s->writer = d->next_writer;
	s->key = key;
	d->had_sequences = true;
	n = 1 + pb_encode_varint(args + 1, s->writer);
	args[n++] = 2 << 3;
	n += pb_encode_varint(args + n, s->buffer);
	(void)d->line->type->call(d->line, LINE_REGISTER_WRITER, args, n,
	    false);
}

static struct device_instance *
find_instance(struct device *d, uint64_t id)
{
	size_t i;

	for (i = 0; i < d->n_instances; i++)
		if (d->instances[i].id == id)
			return &d->instances[i];
	load_totals_error(d->shared->totals, "unknown_instance",
	    "a command for an instance that was never set up");
	return NULL;
}

static void
start_source(struct device *d, uint64_t id)
{
	struct device_instance *in = find_instance(d, id);
	uint32_t i;

	if (in == NULL || in->started)
		return;
	in->started = true;
	d->shared->totals->starts++;
	for (i = 0; i < d->shared->options->writers; i++)
		open_sequence(d, in);
	device_call_id(d, LINE_STARTED, id);
	device_go_on(d);
}

static void
stop_source(struct device *d, uint64_t id)
{
	struct device_instance *in = find_instance(d, id);

	if (in == NULL)
		return;
	in->stopping = true;
	d->shared->totals->stops++;
	device_settle(d);
}

static void
clear_state(struct device *d, const uint8_t *data, size_t len)
{
	struct pb_reader r;
	struct pb_field f;
	size_t i;

	if (!d->shared->options->state || d->slow == SLOW_NEVER)
		return;
	PB_FOREACH(&f, &r, data, len)
		for (i = 0; i < d->n_sequences; i++)
			if (f.number == 1 && d->sequences[i].instance == f.value)
				chunker_begin_anew(&d->sequences[i].chunker);
}

static void
act(struct device *d, const uint8_t *msg, size_t len, int fd)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, msg, len);
	while (pb_next(&r, &f) && d->line != NULL) {
		switch (f.number) {
		case COMMAND_SETUP_TRACING:
			setup_tracing(d, fd);
			fd = -1;
			break;
		case COMMAND_SETUP_SOURCE:
			setup_source(d, f.data, f.len);
			break;
		case COMMAND_START:
			start_source(d, field_value(f.data, f.len, 1));
			break;
		case COMMAND_STOP:
			stop_source(d, field_value(f.data, f.len, 1));
			break;
		case COMMAND_CLEAR_STATE:
			clear_state(d, f.data, f.len);
			break;
		case COMMAND_FLUSH:
			d->shared->totals->flushes++;
			d->flush = field_value(f.data, f.len, 2);
			device_settle(d);
			break;
		}
	}
	if (fd >= 0)
		close(fd);
}

/* ---- slow devices ---- */

static void
act_later(struct device *d, const uint8_t *msg, size_t len, int fd)
{
	struct device_later *l = malloc(sizeof(*l) + len);

	if (l == NULL) {
		act(d, msg, len, fd);
		return;
	}
	memcpy(l->msg, msg, len);
	l->len = len;
	l->fd = fd;
	l->next = NULL;
	l->due_ms = loop_now_ms() + d->shared->options->slow_ms;
	if (d->later == NULL)
		loop_timer_set(d->slow_timer, d->shared->options->slow_ms, 0);
	*d->later_end = l;
	d->later_end = &l->next;
}

void
device_drop_later(struct device *d)
{
	struct device_later *l;

	while ((l = d->later) != NULL) {
		d->later = l->next;
		if (l->fd >= 0)
			close(l->fd);
		free(l);
	}
	d->later_end = &d->later;
}

void
device_slow_cb(void *arg)
{
	struct device *d = arg;
	struct device_later *l;
	uint64_t now = loop_now_ms();

	if (d->slow == SLOW_READS && d->line != NULL) {
		d->rests = !d->rests;
		d->line->type->pause(d->line, d->rests);
		loop_timer_set(d->slow_timer, d->rests ?
		    d->shared->options->slow_ms : 20, 0);
	}
	while ((l = d->later) != NULL && l->due_ms <= now) {
		d->later = l->next;
		if (d->later == NULL)
			d->later_end = &d->later;
		act(d, l->msg, l->len, l->fd);
		free(l);
	}
	if (d->later != NULL)
		loop_timer_set(d->slow_timer, d->later->due_ms - now, 0);
}

/* ---- what is told when commits were taken ---- */

static bool
instance_is_taken(const struct device *d, uint64_t id)
{
	const struct device_sequence *s;
	size_t i;

	for (i = 0; i < d->n_sequences; i++) {
		s = &d->sequences[i];
		if (s->instance == id &&
		    (!s->committed_all || s->last_ticket != 0))
			return false;
	}
	return true;
}

static void
end_instance(struct device *d, struct device_instance *in)
{
	uint64_t id = in->id;
	size_t i;

	for (i = d->n_sequences; i-- > 0;) {
		if (d->sequences[i].instance != id)
			continue;
		device_call_id(d, LINE_UNREGISTER_WRITER,
		    d->sequences[i].writer);
		device_drop_sequence(d, i, LOAD_STOPPED);
	}
	if (d->slow != SLOW_NEVER)
		device_call_id(d, LINE_STOPPED, id);
	*in = d->instances[--d->n_instances];
}

static void
settle_stops(struct device *d)
{
	size_t i, k;

	for (i = d->n_instances; i-- > 0;) {
		if (!d->instances[i].stopping)
			continue;
		for (k = 0; k < d->n_sequences; k++)
			if (d->sequences[k].instance == d->instances[i].id &&
			    !d->sequences[k].committed_all)
				device_commit_all(d, &d->sequences[k], 0);
		if (instance_is_taken(d, d->instances[i].id))
			end_instance(d, &d->instances[i]);
	}
}

static void
settle_flush(struct device *d)
{
	uint64_t flush = d->flush;
	size_t i;

	d->flush = 0;
	if (d->slow == SLOW_NEVER)
		flush = 0;
	for (i = 0; i < d->n_sequences; i++)
		device_commit_all(d, &d->sequences[i],
		    i + 1 == d->n_sequences ? flush : 0);
	if (d->n_sequences == 0 && flush != 0)
		device_commit_all(d, NULL, flush);
}

void
device_settle(struct device *d)
{
	if (d->line == NULL || d->held != NULL)
		return;
	if (d->flush != 0)
		settle_flush(d);
	if (d->held == NULL)
		settle_stops(d);
	if (d->ending && device_is_quiet(d))
		device_end(d, LINE_CLEAN);
}

/* ---- what its connection tells it ---- */

void
device_command(struct device *d, const uint8_t *msg, size_t len, int fd)
{
	if (d->slow == SLOW_ANSWERS)
		act_later(d, msg, len, fd);
	else
		act(d, msg, len, fd);
}
