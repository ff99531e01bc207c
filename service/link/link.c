#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protos/link.pb-c.h"
#include "service/link/link_internal.h"
#include "service/machine/machine_presence.h"
#include "service/settings/settings.h"
#include "transport/base/log.h"

/* Channels in a LinkOpened; further ones are reported in frames after it. */
#define CONSUMED_AT_ONCE 2048u

/*
 * Cause of the loss of all data that the relay of an ended link has not sent.
 */
#define LOSS_OF_ENDED TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_GRACE

/* Limits the log lines of all links together. */
static struct log_limit coming_and_going;

/* Logs an event of a link with its machine's name; why may be NULL. */
static void
log_link(const struct link *l, enum log_level level, const char *what,
    const char *why)
{
	char name[128];

	log_escape(name, sizeof(name), l->machine->name,
	    strlen(l->machine->name));
	log_limited(&coming_and_going, loop_now_ms(), level,
	    "link of machine %u \"%s\": %s%s%s", l->machine->id, name, what,
	    why != NULL ? ": " : "", why != NULL ? why : "");
}

/* ---- a link's memory ---- */

static void run_cb(void *link);

struct link *
link_new(struct links *t, const struct link_request *q)
{
	const struct link_setting *set = &t->service->settings->link;
	struct link *l;

	if ((l = calloc(1, sizeof(*l))) == NULL)
		return NULL;
	l->out = link_out_new((size_t)set->max_commands_kb * 1024);
	if (l->out == NULL) {
		free(l);
		return NULL;
	}
	link_channels_init(l);
	l->table = t;
	l->run = run_cb;
	l->service = t->service;
	memcpy(l->id, q->link_id, sizeof(l->id));
	memcpy(l->relay_id, q->relay_id, sizeof(l->relay_id));
	l->who = q->who;
	l->peer = q->peer;
	l->nobody = q->nobody;
	l->machine = q->machine;
	machine_ref(l->machine);
	return l;
}

void
link_release(struct link *l)
{
	TAILQ_REMOVE(&l->table->ended, l, all);
	/* Must come before loop_cancel(): producer_gone() may post a run. */
	link_channels_drop(l);
	loop_cancel(l->service->loop, l);
	loop_timer_free(l->grace);
	link_out_free(l->out);
	(void)!link_charge_connections(l->service, &l->charged, 0);
	per_peer_count_give(&l->table->memory, l->peer, l->charged_units);
	machine_unref(l->machine);
	free(l->machine_name);
	hash_map_done(&l->channels);
	free(l->old);
	free(l);
}

/* ---- who serves it ---- */

static void
log_attached(const struct link *l)
{
	char text[64];

	if (l->cut_ms == 0) {
		log_link(l, LOG_LEVEL_INFO, "connected", NULL);
		return;
	}
	snprintf(text, sizeof(text), "resumed after %llu ms",
	    (unsigned long long)(loop_now_ms() - l->cut_ms));
	log_link(l, LOG_LEVEL_INFO, text, NULL);
}

void
link_keep_name(struct link *l)
{
	char *name = strdup(l->machine->name);

	/*
	 * NULL without memory: producers then have the machine's newest name.
	 */
	free(l->machine_name);
	l->machine_name = name;
}

void
link_attach(struct link *l, const struct link_port_ops *ops, void *port)
{
	const struct link_port_ops *old = l->ops;
	void *old_port = l->port;

	l->ops = NULL;
	l->port = NULL;
	loop_timer_free(l->grace);
	l->grace = NULL;
	link_channels_forget_closed(l);
	/* Half-open: the relay knows better which of its connections lives. */
	if (old != NULL) {
		machine_presence_gone(l->machine, true);
		old->close(old_port, "its relay has connected anew");
	}
	l->ops = ops;
	l->port = port;
	l->in.told = l->in.received;
	l->consumed_told = l->consumed;
	l->attached_ms = loop_now_ms();
	l->asked_to_leave_ms = 0;
	link_channels_set_cut(l, false);
	log_attached(l);
}

/*
 * Ends a cut link that LINK_UP_LEAVE came on, which may have had to wait in a
 * queue.  False: it goes on.
 */
static bool
end_if_left(struct link *l)
{
	if (!l->left || l->ops != NULL || l->ended)
		return false;
	link_end(l, LINK_MOVED, "its relay has left for another collector");
	return true;
}

static void
grace_cb(void *arg)
{
	link_end(arg, LINK_GRACE_OVER, "it did not come back in time");
}

void
link_detach(struct link *l)
{
	l->ops = NULL;
	l->port = NULL;
	l->cut_ms = loop_now_ms();
	link_channels_forget_closed(l);
	link_channels_set_cut(l, true);
	machine_presence_cut(l->machine, l->n_served > 0);
	if (end_if_left(l))
		return;
	/* Without producers there is nothing to wait for, or to lose. */
	if (l->n_served > 0)
		log_link(l, LOG_LEVEL_WARN, "cut off, waiting for it", NULL);
	else
		log_link(l, LOG_LEVEL_INFO, "disconnected", NULL);
	if (link_table_has_newer(l)) {
		link_end(l, LINK_GRACE_OVER, "its relay has a newer link");
		return;
	}
	l->grace = loop_timer_new(l->service->loop, grace_cb, l);
	if (l->grace == NULL)
		link_doom(l, "out of memory");
	else
		loop_timer_set(l->grace, l->service->settings->link.grace_ms,
		    0);
}

/* ---- the end ---- */

void
link_end(struct link *l, enum link_why why, const char *reason)
{
	const struct link_port_ops *ops = l->ops;
	void *port = l->port;

	if (l->ended)
		return;
	if (why == LINK_MOVED)
		log_link(l, LOG_LEVEL_INFO, "ended", reason);
	else if (l->n_served > 0 || why == LINK_GIVEN_UP)
		log_link(l, LOG_LEVEL_WARN, "given up", reason);
	l->ended = true;
	l->ops = NULL;
	l->port = NULL;
	loop_timer_free(l->grace);
	l->grace = NULL;
	link_table_remove(l, why);
	if (ops != NULL)
		ops->close(port, reason);
	machine_presence_gone(l->machine, ops != NULL);
	/*
	 * The relay reports how much was lost, if it ever opens a link again.
	 */
	if (why != LINK_MOVED)
		link_channels_mark_lost(l, LOSS_OF_ENDED);
	/* Blocks that wait for a file are still applied. */
	link_channels_close_all(l);
	link_post_run(l);
}

void
link_give_up(struct link *l, const char *why)
{
	link_end(l, LINK_GIVEN_UP, why);
}

/* ---- blocks ---- */

/* Applies as much as is possible now.  Returns why it is malformed, or NULL. */
static const char *
apply_some(struct link *l, struct link_piece *piece)
{
	switch (link_apply(l, piece)) {
	case LINK_MALFORMED:
		return piece->why;
	case LINK_APPLIED:
	case LINK_LATER:
		break;
	}
	link_channel_consumed(l, piece->channel, piece->used);
	return NULL;
}

/* Applies the channel's queue until it has to wait, or its turn is over. */
static const char *
run_channel(struct link_channel *c)
{
	struct link *l = c->link;
	struct link_queued *q;
	struct link_piece piece;
	const char *why = NULL;

	while ((q = TAILQ_FIRST(&c->queue)) != NULL) {
		piece = (struct link_piece){ .number = c->number,
			.channel = c, .data = q->data + q->at,
			.len = q->len - q->at };
		why = apply_some(l, &piece);
		if (why != NULL) {
			while (!TAILQ_EMPTY(&c->queue))
				link_channel_unqueue(c);
			break;
		}
		q->at += piece.used;
		if (q->at < q->len)
			break;
		link_channel_unqueue(c);
	}
	if (!c->waiting)
		link_channel_make_ready(c); /* unless nothing is left */
	if (TAILQ_EMPTY(&c->queue) && c->state == CHANNEL_CLOSING)
		link_channel_close(c);
	return why;
}

static void
run_cb(void *arg)
{
	struct link *l = arg;
	struct link_channel_list now = TAILQ_HEAD_INITIALIZER(now);
	uint64_t began = loop_now_ms();
	struct link_channel *c;
	const char *why = NULL;

	l->run_posted = false;
	TAILQ_CONCAT(&now, &l->ready, run);
	while (why == NULL && (c = TAILQ_FIRST(&now)) != NULL &&
	    loop_now_ms() - began < LINK_TURN_MS) {
		TAILQ_REMOVE(&now, c, run);
		c->ready = false;
		why = run_channel(c);
	}
	TAILQ_CONCAT(&now, &l->ready, run);
	TAILQ_CONCAT(&l->ready, &now, run);
	if (why == NULL)
		why = l->doomed;
	if (why != NULL && !l->ended)
		link_give_up(l, why);
	(void)end_if_left(l);
	if (l->ops == NULL)
		link_channels_forget_closed(l);
	if (l->ended && l->channels.n == 0) {
		link_release(l);
		return;
	}
	if (!TAILQ_EMPTY(&l->ready))
		link_post_run(l);
	if (link_has_report(l))
		link_wake(l);
}

/* Queues the rest of a block that could not be applied at once. */
static const char *
keep_rest(struct link *l, uint32_t number, const uint8_t *data, size_t len)
{
	struct link_channel *c = link_channel_find(l, number);

	if (link_channel_queue(c, data, len) != 0)
		return "out of memory for blocks that have to wait";
	if (!c->waiting)
		link_channel_make_ready(c);
	return NULL;
}

static const char *
take_new(struct link *l, uint32_t number, const uint8_t *block, size_t len)
{
	struct link_channel *c = link_channel_find(l, number);
	struct link_piece piece = { .number = number, .channel = c,
		.data = block, .len = len };
	const char *why;

	if (c != NULL && c->state != CHANNEL_OPEN) {
		link_channel_consumed(l, c, len);
		return NULL;
	}
	if (c != NULL && !TAILQ_EMPTY(&c->queue))
		return keep_rest(l, number, block, len);
	if ((why = apply_some(l, &piece)) != NULL)
		return why;
	return piece.used < len ? keep_rest(l, number, block + piece.used,
	    len - piece.used) : NULL;
}

const char *
link_take_block(struct link *l, uint64_t number, uint32_t channel,
    const uint8_t *block, size_t len)
{
	uint64_t window = l->service->settings->link.window_kb * 1024;
	const char *why;

	l->heard = true;
	switch (link_in_take(&l->in, number)) {
	case LINK_IN_NEW:
		l->left = false;
		break;
	case LINK_IN_AGAIN:
		link_wake(l);
		return NULL;
	case LINK_IN_GAP:
		return "a block is missing before one that it sent";
	}
	l->taken += len;
	l->machine->contact.bytes_unpacked += len;
	if (l->taken - l->consumed > window)
		return "it sent more than the window has room for";
	why = take_new(l, channel, block, len);
	if (why == NULL)
		why = l->doomed;
	link_wake(l);
	return why;
}

/* ---- numbers ---- */

int
link_acked(struct link *l, uint64_t number)
{
	if (link_out_acked(l->out, number) != 0)
		return -1;
	if (link_out_bytes(l->out) == 0)
		l->heard_flush = l->told_flush;
	link_charge(l);
	return 0;
}

bool
link_next(struct link *l, struct link_out_block *b)
{
	return link_out_next(l->out, b);
}

bool
link_has_report(const struct link *l)
{
	return l->in.told != l->in.received || l->consumed_told != l->consumed;
}

size_t
link_report(struct link *l, struct link_frame *f, uint8_t *out, size_t room)
{
	struct link_channel *c;
	size_t n = 0;

	f->has_received = l->in.told != l->in.received;
	f->received = l->in.told = l->in.received;
	while ((c = TAILQ_FIRST(&l->to_report)) != NULL &&
	    n + LINK_CONSUMED_MAX <= room) {
		TAILQ_REMOVE(&l->to_report, c, report);
		c->reporting = false;
		n += link_put_consumed(out + n, c->number, c->consumed);
		if (c->state == CHANNEL_CLOSED)
			link_channel_free(c);
	}
	/* The sum is never ahead of what was reported of each channel. */
	f->has_consumed_in_all = c == NULL && l->consumed_told != l->consumed;
	if (c == NULL)
		f->consumed_in_all = l->consumed_told = l->consumed;
	return n;
}

void
link_put_consumed_of_all(struct link *l, struct pb_writer *w, uint32_t field)
{
	link_channels_put_consumed(l, w, field, CONSUMED_AT_ONCE);
	if (l->channels.n + 1 > CONSUMED_AT_ONCE)
		link_channels_report_all(l);
}

uint64_t
link_consumed_in_all(const struct link *l)
{
	return l->consumed;
}

struct machine *
link_machine(const struct link *l)
{
	return l->machine;
}

uint32_t
link_buffer_tag(const struct link *l)
{
	return l->buffer_tag;
}

uint64_t
link_received(const struct link *l)
{
	return l->in.received;
}

uint64_t
link_taken_before(const struct link *l)
{
	return l->taken_before;
}
