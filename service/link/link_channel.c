#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protos/fields.h"
#include "protos/link.pb-c.h"
#include "service/config/config.h"
#include "service/ingest/former_ids.h"
#include "service/ingest/losses.h"
#include "service/link/link_internal.h"
#include "service/link/producer_command.h"
#include "service/session/producer.h"
#include "service/settings/settings.h"
#include "transport/socket/peer.h"
#include "transport/wire/pb_writer.h"

/* ---- the table ---- */

static void
channel_init(struct link_channel *c, struct link *l, uint32_t number)
{
	c->link = l;
	c->number = number;
	TAILQ_INIT(&c->queue);
}

void
link_channels_init(struct link *l)
{
	channel_init(&l->own, l, 0);
	TAILQ_INIT(&l->to_report);
	TAILQ_INIT(&l->ready);
}

struct link_channel *
link_channel_find(struct link *l, uint32_t number)
{
	struct link_channel *c;

	if (number == 0)
		return &l->own;
	HASH_MAP_FOREACH_OF(c, &l->channels, hash_number(number), by_number)
		if (c->number == number)
			return c;
	return NULL;
}

static struct link_channel *
channel_new(struct link *l, uint32_t number)
{
	struct link_channel *c;

	if ((c = calloc(1, sizeof(*c))) == NULL)
		return NULL;
	channel_init(c, l, number);
	hash_map_put(&l->channels, &c->by_number, hash_number(number));
	return c;
}

void
link_channel_free(struct link_channel *c)
{
	struct link *l = c->link;

	while (!TAILQ_EMPTY(&c->queue))
		link_channel_unqueue(c);
	if (c->reporting)
		TAILQ_REMOVE(&l->to_report, c, report);
	if (c->ready)
		TAILQ_REMOVE(&l->ready, c, run);
	if (c == &l->own)
		return;
	hash_map_remove(&l->channels, &c->by_number);
	free(c);
}

/* Calls fn with each channel but 0; fn may free it. */
static void
each(struct link *l, void (*fn)(struct link_channel *c, void *arg), void *arg)
{
	struct hash_cursor at;
	struct link_channel *c;

	HASH_MAP_FOREACH(c, &l->channels, &at, by_number)
		fn(c, arg);
}

/* ---- what waits ---- */

static void
count_waiting(struct link *l, size_t before)
{
	l->machine->contact.bytes_waiting += l->queued;
	l->machine->contact.bytes_waiting -= before;
	link_charge(l);
}

int
link_channel_queue(struct link_channel *c, const uint8_t *data, size_t len)
{
	struct link *l = c->link;
	size_t before = l->queued;
	struct link_queued *q;

	if ((q = malloc(sizeof(*q) + len)) == NULL)
		return -1;
	q->len = len;
	q->at = 0;
	memcpy(q->data, data, len);
	TAILQ_INSERT_TAIL(&c->queue, q, link);
	l->queued += len;
	l->queued_cost += sizeof(*q) + len;
	count_waiting(l, before);
	return 0;
}

void
link_channel_unqueue(struct link_channel *c)
{
	struct link_queued *q = TAILQ_FIRST(&c->queue);
	struct link *l = c->link;
	size_t before = l->queued;

	TAILQ_REMOVE(&c->queue, q, link);
	l->queued -= q->len;
	l->queued_cost -= sizeof(*q) + q->len;
	count_waiting(l, before);
	free(q);
}

void
link_channel_make_ready(struct link_channel *c)
{
	c->waiting = false;
	if (!c->ready && !TAILQ_EMPTY(&c->queue)) {
		c->ready = true;
		TAILQ_INSERT_TAIL(&c->link->ready, c, run);
	}
	if (c->ready)
		link_post_run(c->link);
}

/* ---- what is told ---- */

static void
post_report(struct link_channel *c)
{
	if (c->reporting)
		return;
	c->reporting = true;
	TAILQ_INSERT_TAIL(&c->link->to_report, c, report);
}

void
link_channel_consumed(struct link *l, struct link_channel *c, size_t n)
{
	l->consumed += n;
	if (c == NULL)
		return;
	c->consumed += n;
	post_report(c);
}

static void
report_one(struct link_channel *c, void *arg)
{
	post_report(c);
}

void
link_channels_report_all(struct link *l)
{
	if (l->own.consumed > 0)
		post_report(&l->own);
	each(l, report_one, NULL);
}

struct put_consumed {
	struct pb_writer *w;
	uint32_t field;
	size_t left;
};

static void
put_consumed(struct link_channel *c, void *arg)
{
	struct put_consumed *p = arg;
	size_t mark;

	if (p->left == 0 || c->consumed == 0)
		return;
	p->left--;
	mark = pb_nest_begin(p->w, p->field);
	pb_put_uint(p->w, LinkConsumed_channel, c->number);
	pb_put_uint(p->w, LinkConsumed_bytes, c->consumed);
	pb_nest_end(p->w, mark);
}

void
link_channels_put_consumed(struct link *l, struct pb_writer *w, uint32_t field,
    size_t max)
{
	struct put_consumed p = { .w = w, .field = field, .left = max };

	put_consumed(&l->own, &p);
	each(l, put_consumed, &p);
}

void
link_tell(struct link_channel *c, enum link_down kind, const void *data,
    size_t len)
{
	struct link *l = c->link;

	if (l->ended || l->doomed != NULL)
		return;
	if (link_out_put(l->out, c->number, kind, data, len) != 0)
		link_doom(l, "the commands that wait for it are over "
		    "link.max_commands_kb");
	else {
		l->told_flush = l->service->last_flush_id;
		link_charge(l);
		link_wake(l);
	}
}

/* ---- commands for its producer ---- */

static void
send_command(void *port, const struct pb_writer *w, bool with_shm)
{
	struct link_channel *c = port;

	if (w->failed)
		link_doom(c->link, "out of memory for a command");
	else if (w->len > LINK_MESSAGE_MAX)
		log_limited(&c->link->service->refused_log, loop_now_ms(),
		    LOG_LEVEL_WARN, "producer %u: a config of %zu bytes is "
		    "too long for a link and not sent",
		    c->producer != NULL ? c->producer->id : 0, w->len);
	else
		link_tell(c, LINK_DOWN_COMMAND, w->data, w->len);
}

static void
resume(void *port)
{
	link_channel_make_ready(port);
}

/* Says what a data source, the producer's newest, is part of. */
static void
tell_origin(void *port, uint64_t instance)
{
	struct link_channel *c = port;
	const struct ds_instance *i = TAILQ_LAST(&c->producer->instances,
	    instance_list);
	const struct config *config = i->session->config;
	struct pb_writer w;

	if (i->id != instance || !link_session_moves(i->session))
		return;
	pb_writer_init(&w);
	pb_put_uint(&w, LinkOrigin_instance, instance);
	pb_put_bytes(&w, LinkOrigin_session, config->digest,
	    sizeof(config->digest));
	pb_put_uint(&w, LinkOrigin_source,
	    (uint64_t)(i->want - config->data_sources));
	pb_put_uint(&w, LinkOrigin_buffer, i->want->buffer);
	/* Without memory it cannot be moved, and is lost with its collector. */
	if (!w.failed)
		link_tell(c, LINK_DOWN_ORIGIN, w.data, w.len);
	pb_writer_done(&w);
}

/* ---- its producer ---- */

static void
refuse(struct link_channel *c, const char *why)
{
	struct link *l = c->link;

	log_limited(&l->service->refused_log, loop_now_ms(), LOG_LEVEL_WARN,
	    "machine %u: producer of a link refused: %s", l->machine->id, why);
	link_tell(c, LINK_DOWN_REFUSED, why, strlen(why));
}

/* The uid that labels the producer's packets: it authorises nothing. */
static int32_t
uid_of(const struct link *l, const Tributary__LinkProducer *p)
{
	if (!p->has_uid || p->uid == -1 || (p->uid == 0 && l->nobody))
		return PEER_UID_UNKNOWN;
	return p->uid;
}

static void
make_producer(struct link_channel *c, const Tributary__LinkProducer *p)
{
	struct link *l = c->link;
	struct producer_hello hello = {
		.name = p->name != NULL ? p->name : "",
		.sdk_version = p->sdk_version,
		.uid = uid_of(l, p),
		.pid = p->has_pid ? p->pid : PEER_PID_UNKNOWN,
		.machine = l->machine,
		.machine_name = l->machine_name,
		.peer = l->peer,
		.emulated = true,
		.linked = true,
	};
	const char *why;

	if (l->n_served >= l->service->settings->link.max_producers_per_link) {
		refuse(c, "link.max_producers_per_link is reached");
		return;
	}
	c->commands = (struct producer_command_port){ .send = send_command,
		.resume = resume, .origin = tell_origin };
	c->producer = producer_new(l->service, &hello,
	    &producer_command_ops, c, &why);
	if (c->producer == NULL) {
		refuse(c, why);
		return;
	}
	/* Its messages name our buffers with the link's tag. */
	if (l->buffer_tag != 0 &&
	    former_ids_begin(c->producer, l->buffer_tag) != 0)
		link_doom(l, "out of memory");
	if (l->ops == NULL)
		producer_set_state(c->producer, PRODUCER_CUT);
	c->producer->heard = &l->heard_flush;
	l->n_served++;
}

struct link_channel *
link_channel_open(struct link *l, uint32_t number, const uint8_t *producer,
    size_t len, const char **why)
{
	size_t most = l->service->settings->link.max_producers_per_link +
	    LINK_IDLE_CHANNELS_MAX;
	Tributary__LinkProducer *p;
	struct link_channel *c;

	*why = "too many channels";
	if (l->channels.n >= most)
		return NULL;
	*why = "a producer that does not parse";
	if ((p = tributary__link_producer__unpack(NULL, len, producer)) == NULL)
		return NULL;
	*why = "out of memory";
	if ((c = channel_new(l, number)) != NULL)
		make_producer(c, p);
	tributary__link_producer__free_unpacked(p, NULL);
	return c;
}

void
link_channel_close(struct link_channel *c)
{
	struct producer *p = c->producer;

	if (c->state == CHANNEL_CLOSED)
		return;
	c->state = CHANNEL_CLOSED;
	c->producer = NULL;
	if (p != NULL) {
		c->link->n_served--;
		p->heard = NULL;
		producer_gone(p);
	}
	post_report(c);
}

/* Closes the channel once its queue is empty. */
static void
close_later(struct link_channel *c)
{
	if (TAILQ_EMPTY(&c->queue))
		link_channel_close(c);
	else if (c->state == CHANNEL_OPEN)
		c->state = CHANNEL_CLOSING;
}

static void
close_one_below(struct link_channel *c, void *arg)
{
	const uint32_t *number = arg;

	if (c->number < *number)
		close_later(c);
}

void
link_channels_close_below(struct link *l, uint32_t number)
{
	each(l, close_one_below, &number);
}

static void
close_one(struct link_channel *c, void *arg)
{
	close_later(c);
}

void
link_channels_close_all(struct link *l)
{
	each(l, close_one, NULL);
}

static void
forget_closed(struct link_channel *c, void *arg)
{
	if (c->state == CHANNEL_CLOSED)
		link_channel_free(c);
}

void
link_channels_forget_closed(struct link *l)
{
	each(l, forget_closed, NULL);
}

static void
drop_one(struct link_channel *c, void *arg)
{
	link_channel_close(c);
	link_channel_free(c);
}

void
link_channels_drop(struct link *l)
{
	each(l, drop_one, NULL);
	link_channel_free(&l->own);
}

static void
set_cut(struct link_channel *c, void *arg)
{
	const bool *cut = arg;

	if (c->producer == NULL)
		return;
	producer_set_state(c->producer, *cut ? PRODUCER_CUT :
	    PRODUCER_CONNECTED);
}

void
link_channels_set_cut(struct link *l, bool cut)
{
	each(l, set_cut, &cut);
}

struct list {
	struct link_old_channel *out;
	size_t max;
	size_t n;
};

static void
list_one(struct link_channel *c, void *arg)
{
	struct list *list = arg;

	if (c->producer == NULL || list->n == list->max)
		return;
	list->out[list->n++] = (struct link_old_channel){
		.channel = c->number, .producer = c->producer->id };
}

int
link_channels_compare(const void *a, const void *b)
{
	const struct link_old_channel *x = a, *y = b;

	return x->channel < y->channel ? -1 : x->channel > y->channel;
}

size_t
link_channels_list(struct link *l, struct link_old_channel *out, size_t max)
{
	struct list list = { .out = out, .max = max };

	each(l, list_one, &list);
	qsort(out, list.n, sizeof(*out), link_channels_compare);
	return list.n;
}

static void
mark_lost(struct link_channel *c, void *arg)
{
	const uint32_t *cause = arg;
	struct ds_instance *i;

	if (c->producer == NULL)
		return;
	TAILQ_FOREACH(i, &c->producer->instances, of_producer)
		if (i->state != INSTANCE_CONFIGURED &&
		    i->state != INSTANCE_STOPPED)
			losses_unknown(i, *cause);
}

void
link_channels_mark_lost(struct link *l, uint32_t cause)
{
	each(l, mark_lost, &cause);
}
