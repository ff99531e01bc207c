#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "protos/fields.h"
#include "relay/clocks/link_clocks.h"
#include "relay/producers/producers.h"
#include "relay/settings/settings.h"
#include "relay/uplink/conn_internal.h"
#include "relay/uplink/open_call.h"
#include "transport/link/link_zstd.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_client.h"
#include "transport/wire/pb_writer.h"
#include "transport/wire/service_names.h"

/* Time from the first step until the answer to Open. */
#define LINK_OPEN_MS 40000u
/*
 * Marks of the client's output queue.  What the socket does not take is copied
 * there: little of it, so that no block is in there that could still grow in
 * the outbox.
 */
#define LINK_QUEUE_LOW  (64u * 1024u)
#define LINK_QUEUE_HARD (1024u * 1024u)
/* The hard mark while a collector is told what it goes on with. */
#define MOVES_QUEUE_HARD (8u * 1024u * 1024u)

/* ---- the end ---- */

static void
ended_cb(void *arg)
{
	struct uplink_conn *l = arg;

	l->setup.ops->ended(l->setup.arg, l->why, l->useful, l->text);
}

/* Ends the connection; text is set. */
static void
link_over(struct uplink_conn *l, enum uplink_end why)
{
	l->why = why;
	if (l->state == UL_OPEN)
		link_clocks_stop(l->setup.clocks);
	l->state = UL_OVER;
	rpc_client_free(l->client);
	l->client = NULL;
	loop_timer_clear(l->timer);
	uplink_send_stop(l);
	loop_defer(l->setup.loop, &l->ended_call, ended_cb, l);
}

void
uplink_conn_fail(struct uplink_conn *l, const char *fmt, ...)
{
	va_list ap;

	if (l->state == UL_OVER)
		return;
	va_start(ap, fmt);
	vsnprintf(l->text, sizeof(l->text), fmt, ap);
	va_end(ap);
	link_over(l, l->state == UL_OPEN ? UPLINK_END_CUT :
	    UPLINK_END_UNREACHED);
}

void
uplink_conn_end(struct uplink_conn *l, const char *text)
{
	uplink_conn_fail(l, "%s", text);
}

static void
client_down(struct rpc_client *c, const char *text, void *arg)
{
	struct uplink_conn *l = arg;

	if (l->state == UL_OVER)
		return;
	snprintf(l->text, sizeof(l->text), "%s", text);
	link_over(l, rpc_client_service_unknown(c) ? UPLINK_END_NO_LINK :
	    l->state == UL_OPEN ? UPLINK_END_CUT : UPLINK_END_UNREACHED);
}

/* A call failed; if because the connection did, client_down() follows. */
static void
rejected_cb(void *arg)
{
	uplink_conn_fail(arg, "the collector refuses the link");
}

/* ---- Open ---- */

static void
down_cb(void *arg, bool ok, bool more, const uint8_t *msg, size_t len, int fd)
{
	struct uplink_conn *l = arg;

	if (fd >= 0)
		close(fd);
	if (l->state == UL_OVER)
		return;
	if (!ok) {
		loop_defer(l->setup.loop, &l->rejected_call, rejected_cb, l);
		return;
	}
	uplink_receive_frame(l, msg, len);
	if (!more)
		uplink_conn_fail(l, "the collector ended the link");
}

static int
start_compression(struct uplink_conn *l, const Tributary__LinkOpened *m)
{
	if (m->compression != TRIBUTARY__LINK_COMPRESSION__LINK_ZSTD)
		return 0;
	l->zip = link_compressor_new(l->setup.settings->compression_level);
	l->unzip = link_decompressor_new();
	return l->zip != NULL && l->unzip != NULL ? 0 : -1;
}

static void
link_opened(struct uplink_conn *l, const Tributary__LinkOpened *m)
{
	bool moved = m->why == TRIBUTARY__LINK_OPENED__WHY__MOVED;
	bool resumed = m->why == TRIBUTARY__LINK_OPENED__WHY__RESUMED;
	const char *wrong;

	if (start_compression(l, m) != 0 || uplink_send_start(l) != 0) {
		uplink_conn_fail(l, "out of memory");
		return;
	}
	if (resumed)
		l->in.received = l->in.told = l->opened_with.received;
	if (resumed || moved) {
		l->sent = l->acked = m->received;
		l->sent_ever = l->opened_with.last_sent;
	}
	rpc_client_set_limits(l->client, LINK_QUEUE_HARD, LINK_QUEUE_LOW);
	/* First the state: opened() may put blocks that are to be sent. */
	l->state = UL_OPEN;
	loop_timer_clear(l->timer);
	if ((wrong = l->setup.ops->opened(l->setup.arg, &l->opened_with, m)) !=
	    NULL) {
		uplink_conn_fail(l, "the collector %s", wrong);
		return;
	}
	rpc_invoke(l->client, "Down", NULL, 0, down_cb, l);
	link_clocks_start(l->setup.clocks);
	uplink_conn_kick(l);
}

static void opened_cb(void *arg, bool ok, bool more, const uint8_t *msg,
    size_t len, int fd);

static void
call_open(struct uplink_conn *l)
{
	uint8_t *open;
	size_t len;

	outbox_state(l->setup.outbox, &l->opened_with);
	open = uplink_open_encode(&l->opened_with, l->setup.settings,
	    &l->moving, &len);
	if (open == NULL) {
		uplink_conn_fail(l, "out of memory");
		return;
	}
	rpc_invoke(l->client, "Open", open, len, opened_cb, l);
	free(open);
}

static void
tell_move(void *arg, uint32_t channel, const uint8_t *move, size_t len)
{
	struct uplink_conn *l = arg;
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_raw(&w, move, len);
	pb_put_uint(&w, LinkMove_consumed,
	    outbox_acked_bytes_of(l->setup.outbox, channel));
	l->move_cost += w.len + LINK_MOVE_COST;
	if (w.failed || l->move_cost > LINK_MOVES_MAX)
		l->move_failed = true;
	if (!l->move_failed)
		rpc_invoke(l->client, "Move", w.data, w.len, NULL, NULL);
	pb_writer_done(&w);
}

/*
 * The collector would go on with the link: tells it what there is, and opens
 * again.  Where that cannot be, a new link begins.
 */
static void
move(struct uplink_conn *l, const Tributary__LinkOpened *m)
{
	struct outbox_state st;

	if (!l->moving.can) {
		uplink_conn_fail(l, "the collector asks for what it was not "
		    "offered");
		return;
	}
	outbox_state(l->setup.outbox, &st);
	l->moving.can = false;
	l->moving.buffer_tag = producers_buffer_tag(l->setup.producers) + 1;
	l->moving.consumed = outbox_acked_bytes(l->setup.outbox);
	rpc_client_set_limits(l->client, MOVES_QUEUE_HARD, LINK_QUEUE_LOW);
	tell_move(l, 0, NULL, 0);
	if (producers_tell_moves(l->setup.producers, tell_move, l) != 0)
		l->move_failed = true;
	l->moving.moves = !l->move_failed &&
	    l->moving.buffer_tag <= LINK_TAG_MAX &&
	    st.sent_bytes - l->moving.consumed <= m->window;
	call_open(l);
}

static void
opened_cb(void *arg, bool ok, bool more, const uint8_t *msg, size_t len,
    int fd)
{
	struct uplink_conn *l = arg;
	Tributary__LinkOpened *m;
	const char *wrong;

	if (fd >= 0)
		close(fd);
	if (l->state == UL_OVER)
		return;
	if (l->state == UL_OPEN) {
		uplink_conn_fail(l, "the collector answered Open twice");
		return;
	}
	if (!ok) {
		loop_defer(l->setup.loop, &l->rejected_call, rejected_cb, l);
		return;
	}
	m = uplink_opened_decode(msg, len, &l->opened_with, l->setup.settings,
	    &wrong);
	if (m == NULL) {
		uplink_conn_fail(l, "the collector %s", wrong);
		return;
	}
	if (m->why == TRIBUTARY__LINK_OPENED__WHY__MOVED &&
	    (!l->moving.moves || m->buffer_tag != l->moving.buffer_tag))
		uplink_conn_fail(l, "the collector goes on with a link of which "
		    "it was not told");
	else if (m->why == TRIBUTARY__LINK_OPENED__WHY__MOVES)
		move(l, m);
	else
		link_opened(l, m);
	uplink_opened_free(m);
}

static void
client_ready(struct rpc_client *c, void *arg)
{
	struct uplink_conn *l = arg;

	if (!rpc_client_offers(c, "Open") || !rpc_client_offers(c, "Up") ||
	    !rpc_client_offers(c, "Down")) {
		uplink_conn_fail(l, "the collector offers another link than "
		    "ours");
		return;
	}
	l->state = UL_OPENING;
	l->moving.can = l->setup.can_move && rpc_client_offers(c, "Move");
	call_open(l);
}

static void
client_drained(struct rpc_client *c, void *arg)
{
	uplink_conn_kick(arg);
}

/* ---- its life ---- */

static void
timer_cb(void *arg)
{
	struct uplink_conn *l = arg;

	if (l->state == UL_OPEN)
		uplink_send_watch(l);
	else
		uplink_conn_fail(l, "no link within %u seconds",
		    LINK_OPEN_MS / 1000);
}

static int
start_client(struct uplink_conn *l, char *err, size_t err_size)
{
	static const struct rpc_client_ops ops = {
		.ready = client_ready,
		.down = client_down,
		.drained = client_drained,
	};
	const struct uplink_conn_setup *s = &l->setup;

	snprintf(err, err_size, "out of memory"); /* unless it is more */
	if (s->to != NULL)
		l->client = rpc_client_new(s->loop,
		    &(struct rpc_client_setup){ .addr = s->to, .how = s->how,
		    .service = LINK_SERVICE, .ops = &ops, .arg = l }, err,
		    err_size);
	else
		l->client = rpc_client_from_fd(s->loop, s->fd, LINK_SERVICE,
		    &ops, l);
	if (l->client == NULL)
		return -1;
	rpc_client_set_limits(l->client, LINK_QUEUE_HARD, LINK_QUEUE_LOW);
	rpc_client_set_identity(l->client, getpid(), (int32_t)getuid(),
	    s->settings->machine_id, s->settings->machine_name);
	return 0;
}

struct uplink_conn *
uplink_conn_new(const struct uplink_conn_setup *setup, char *err,
    size_t err_size)
{
	struct uplink_conn *l;

	snprintf(err, err_size, "out of memory");
	if ((l = calloc(1, sizeof(*l))) == NULL)
		return NULL;
	l->setup = *setup;
	if ((l->timer = loop_timer_new(setup->loop, timer_cb, l)) == NULL ||
	    start_client(l, err, err_size) != 0) {
		uplink_conn_free(l);
		return NULL;
	}
	loop_timer_set(l->timer, LINK_OPEN_MS, 0);
	return l;
}

void
uplink_conn_free(struct uplink_conn *l)
{
	if (l == NULL)
		return;
	if (l->state == UL_OPEN)
		link_clocks_stop(l->setup.clocks);
	rpc_client_free(l->client);
	uplink_send_stop(l);
	link_compressor_free(l->zip);
	link_decompressor_free(l->unzip);
	loop_timer_free(l->timer);
	loop_cancel(l->setup.loop, l);
	free(l);
}

bool
uplink_conn_is_compressed(const struct uplink_conn *l)
{
	return l->zip != NULL;
}

int
uplink_conn_address(const struct uplink_conn *l, struct sockaddr_storage *out)
{
	if (l->client == NULL)
		return -1;
	return rpc_client_local_address(l->client, out);
}
