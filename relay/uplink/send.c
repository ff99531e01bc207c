#include <string.h>

#include "protos/metrics.pb-c.h"
#include "relay/producers/producers.h"
#include "relay/uplink/conn_internal.h"
#include "relay/uplink/status.h"
#include "transport/link/link_clock.h"
#include "transport/link/link_zstd.h"
#include "transport/loop/loop.h"
#include "transport/metrics/process_metrics.h"
#include "transport/rpc/rpc_client.h"

/* Bytes of blocks sent in one turn of the loop, which has others to serve. */
#define UP_TURN_BYTES (1024u * 1024u)
/* High-water mark of the client's queue; its drained() says when to go on. */
#define UP_QUEUE_MAX (64u * 1024u)
#define UP_STATUS_MS 3000u

/* ---- frames ---- */

/* Sends a frame, with an acknowledgement that is due; f's block is borrowed. */
static void
send_frame(struct uplink_conn *l, struct link_frame *f)
{
	uint8_t head[LINK_HEAD_MAX];
	size_t n;

	if (l->in.told != l->in.received) {
		f->has_received = true;
		f->received = l->in.told = l->in.received;
	}
	n = link_put_head(head, f);
	rpc_invoke_with(l->client, &(struct rpc_request){ .method = "Up",
	    .head = head, .head_len = n, .args = f->block, .len = f->len,
	    .fd = -1 });
}

static void
watch_arm(struct uplink_conn *l)
{
	if (!l->watching)
		loop_timer_set(l->timer, WATCH_PROBE_MS, 0);
	l->watching = true;
}

static void
count_block(struct uplink_conn *l, const struct outbox_block *b, size_t sent)
{
	struct uplink_totals *t = l->setup.totals;

	t->bytes_up += b->len;
	t->bytes_sent += sent;
	if (b->number <= l->sent_ever)
		t->bytes_again += b->len;
	else
		l->sent_ever = b->number;
}

/* -1: the link has ended. */
static int
send_block(struct uplink_conn *l, const struct outbox_block *b)
{
	struct link_frame f = {
		.number = b->number,
		.channel = b->channel,
		.block = b->data,
		.len = b->len,
	};

	if (l->zip != NULL) {
		if (link_compress(l->zip, b->data, b->len, &f.block,
			&f.len) != 0) {
			uplink_conn_fail(l, "out of memory");
			return -1;
		}
		f.compressed = true;
		f.raw_size = b->len;
	}
	send_frame(l, &f);
	count_block(l, b, f.len);
	l->sent = b->number;
	uplink_liveness_sent_block(&l->watch, loop_turn_ms(l->setup.loop));
	watch_arm(l);
	return 0;
}

/* ---- status ---- */

static void
status_later(struct uplink_conn *l)
{
	if (l->status_due)
		return;
	l->status_due = true;
	loop_timer_set(l->status_timer, UP_STATUS_MS, 0);
}

static void
status_cb(void *arg)
{
	struct uplink_conn *l = arg;
	struct link_frame f = { 0 };
	uint8_t status[LINK_STATUS_MAX];
	Tributary__ProcessMetrics process;
	struct outbox_stats stats;
	size_t len;

	l->status_due = false;
	if (l->state != UL_OPEN)
		return;
	outbox_stats(l->setup.outbox, &stats);
	process_metrics_read(&process);
	len = uplink_status_encode(status, &(struct uplink_status){
	    .stats = &stats, .producers = producers_count(l->setup.producers),
	    .reconnects = l->setup.totals->reconnects, .process = &process,
	    .delays = loop_delays(l->setup.loop) });
	/* Data that waits has an age, which changes. */
	if (stats.oldest_ms > 0)
		status_later(l);
	if (len == l->status_len && memcmp(status, l->status, len) == 0)
		return;
	memcpy(l->status, status, len);
	l->status_len = len;
	f.status = status;
	f.status_len = len;
	send_frame(l, &f);
}

/* ---- turns ---- */

static void
turn_cb(void *arg)
{
	struct uplink_conn *l = arg;
	struct link_frame ack = { 0 };
	struct outbox_block b;
	size_t bytes = 0;

	if (l->state != UL_OPEN)
		return;
	rpc_client_gather_segments(l->client, true);
	while (rpc_client_queued(l->client) <= UP_QUEUE_MAX &&
	    outbox_next(l->setup.outbox, &b)) {
		if (send_block(l, &b) != 0)
			return; /* the link is over */
		bytes += b.len;
		if (bytes >= UP_TURN_BYTES) {
			uplink_conn_kick(l);
			break;
		}
	}
	if (l->in.told != l->in.received)
		send_frame(l, &ack);
	rpc_client_gather_segments(l->client, false);
	if (bytes > 0)
		status_later(l);
}

void
uplink_conn_kick(struct uplink_conn *l)
{
	if (l->state == UL_OPEN)
		loop_defer(l->setup.loop, &l->turn_call, turn_cb, l);
}

void
uplink_send_acked(struct uplink_conn *l, uint64_t number)
{
	if (number > l->acked) {
		l->acked = number;
		l->useful = true;
	}
	if (l->acked >= l->sent)
		uplink_liveness_all_acked(&l->watch);
	status_later(l);
}

/* ---- clocks and signs of life ---- */

void
uplink_conn_send_clock(struct uplink_conn *l, const uint8_t *clock, size_t len)
{
	struct link_frame f = { .clock = clock, .clock_len = len };
	uint32_t kind, id;

	if (l->state != UL_OPEN || len > LINK_CLOCK_MAX)
		return;
	send_frame(l, &f);
	link_clock_peek(clock, len, &kind, &id);
	if (kind == LINK_CLOCK_PING) {
		uplink_liveness_sent_ping(&l->watch,
		    loop_turn_ms(l->setup.loop));
		watch_arm(l);
	}
}

static void
probe(struct uplink_conn *l)
{
	Tributary__LinkClock ping = TRIBUTARY__LINK_CLOCK__INIT;
	uint8_t clock[LINK_CLOCK_MAX];

	ping.has_kind = ping.has_id = true;
	ping.kind = TRIBUTARY__LINK_CLOCK__KIND__PING;
	ping.id = UPLINK_PROBE_ID;
	uplink_conn_send_clock(l, clock,
	    tributary__link_clock__pack(&ping, clock));
}

void
uplink_conn_hurry(struct uplink_conn *l)
{
	if (l->state != UL_OPEN ||
	    !uplink_liveness_hurry(&l->watch, loop_now_ms()))
		return;
	l->watching = true;
	loop_timer_set(l->timer, WATCH_HURRY_DEAD_MS, 0);
	probe(l);
}

void
uplink_send_watch(struct uplink_conn *l)
{
	uint64_t again_ms = 0;

	l->watching = false;
	switch (uplink_liveness_look(&l->watch, loop_now_ms(), &again_ms)) {
	case WATCH_IDLE:
		return;
	case WATCH_WAIT:
		break;
	case WATCH_PROBE:
		probe(l);
		break;
	case WATCH_DEAD:
		uplink_conn_fail(l, "the collector is silent");
		return;
	}
	l->watching = true;
	loop_timer_set(l->timer, again_ms, 0);
}

/* ---- begin and end ---- */

int
uplink_send_start(struct uplink_conn *l)
{
	l->status_timer = loop_timer_new(l->setup.loop, status_cb, l);
	if (l->status_timer == NULL)
		return -1;
	status_later(l);
	return 0;
}

void
uplink_send_stop(struct uplink_conn *l)
{
	loop_timer_free(l->status_timer);
	l->status_timer = NULL;
}
