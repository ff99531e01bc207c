#include "service/port/observer.h"

#include <string.h>

#include "protos/fields.h"
#include "service/session/session.h"
#include "transport/loop/loop.h"
#include "transport/wire/pb_reader.h"

/* Bytes of events that share a reply. */
#define REPLY_BYTES (32u * 1024u)
/* Output in bytes that may wait for the peer before events do in pending. */
#define QUEUE_BYTES (256u * 1024u)

/*
 * Stands before each event in pending; its fields of ObservableEvents follow.
 */
struct pending_event {
	uint32_t len;
	uint32_t what; /* enum observable */
};

void
observer_init(struct observer *o, struct loop *l, struct rpc_conn *conn,
    size_t max_pending)
{
	memset(o, 0, sizeof(*o));
	o->loop = l;
	o->conn = conn;
	o->max_pending = max_pending;
	pb_writer_init(&o->pending);
}

void
observer_done(struct observer *o)
{
	o->call.conn = NULL;
	loop_cancel(o->loop, o);
	pb_writer_done(&o->pending);
}

bool
observer_parse(const uint8_t *args, size_t len, uint32_t *mask)
{
	struct pb_reader r;
	struct pb_field f;
	const uint8_t *p, *end;
	uint64_t v;

	*mask = 0;
	PB_FOREACH(&f, &r, args, len) {
		if (f.number != ObserveEventsRequest_events_to_observe)
			continue;
		if (f.wire == PB_VARINT) {
			*mask |= (uint32_t)f.value;
			continue;
		}
		if (f.wire != PB_BYTES)
			return false;
		/* A packed list is as good. */
		for (p = f.data, end = f.data + f.len; p < end;) {
			if ((p = pb_varint(p, end, &v)) == NULL)
				return false;
			*mask |= (uint32_t)v;
		}
	}
	return !r.bad;
}

static void
forget(struct observer *o)
{
	pb_writer_done(&o->pending);
	pb_writer_init(&o->pending);
	o->sent = 0;
}

static struct pending_event
peek(const struct observer *o)
{
	struct pending_event e;

	memcpy(&e, o->pending.data + o->sent, sizeof(e));
	return e;
}

/*
 * Sends a reply with the next events.  It can hold one clone trigger; events
 * that the old stream asked for and the new does not are left out.
 */
static void
send_reply(struct observer *o)
{
	struct pb_writer w;
	struct pending_event e;
	size_t mark, n = 0;
	bool cloned = false;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w, ObserveEventsResponse_events);
	while (o->sent < o->pending.len && w.len < REPLY_BYTES) {
		e = peek(o);
		if ((o->mask & e.what) != 0) {
			if (e.what == OBSERVE_CLONE_TRIGGER && cloned)
				break;
			cloned = cloned || e.what == OBSERVE_CLONE_TRIGGER;
			pb_put_raw(&w, o->pending.data + o->sent + sizeof(e),
			    e.len);
			n++;
		}
		o->sent += sizeof(e) + e.len;
	}
	pb_nest_end(&w, mark);
	if (w.failed)
		rpc_conn_close(o->conn, "out of memory");
	else if (n > 0)
		rpc_reply(o->call, w.data, w.len, true, -1);
	pb_writer_done(&w);
}

/* Sends events while the connection's queue has room; force: all of them. */
static void
send_pending(struct observer *o, bool force)
{
	while (o->sent < o->pending.len && o->call.conn != NULL) {
		if (!force && rpc_conn_queued(o->conn) >= QUEUE_BYTES)
			return; /* observer_drained() goes on */
		send_reply(o);
	}
	forget(o);
}

static void
send_cb(void *arg)
{
	struct observer *o = arg;

	o->scheduled = false;
	send_pending(o, false);
}

void
observer_drained(struct observer *o)
{
	if (o->pending.len > 0)
		send_pending(o, false);
}

void
observer_set(struct observer *o, struct rpc_call call, uint32_t mask)
{
	if (o->call.conn != NULL)
		rpc_reply(o->call, NULL, 0, false, -1);
	o->call.conn = NULL;
	o->mask = mask;
	if (mask == 0) {
		forget(o);
		rpc_reply(call, NULL, 0, false, -1);
	} else {
		o->call = call;
	}
}

/* Frees the sent part of pending: a slow peer may never let it run empty. */
static void
drop_sent(struct observer *o)
{
	if (o->sent <= REPLY_BYTES || o->sent < o->pending.len / 2)
		return;
	memmove(o->pending.data, o->pending.data + o->sent,
	    o->pending.len - o->sent);
	o->pending.len -= o->sent;
	o->sent = 0;
}

static size_t
event_begin(struct observer *o, enum observable what)
{
	struct pending_event e = { .what = (uint32_t)what };
	size_t at;

	drop_sent(o);
	at = o->pending.len;
	pb_put_raw(&o->pending, &e, sizeof(e));
	return at;
}

static void
event_end(struct observer *o, size_t at)
{
	struct pending_event e;

	if (o->pending.failed) {
		/* A consumer that waits for the event would never get it. */
		rpc_conn_close(o->conn, "out of memory");
		forget(o);
		return;
	}
	memcpy(&e, o->pending.data + at, sizeof(e));
	e.len = (uint32_t)(o->pending.len - at - sizeof(e));
	memcpy(o->pending.data + at, &e, sizeof(e));
	if (o->pending.len - o->sent > o->max_pending) {
		/* The connection's own limit ends a peer that does not read. */
		send_pending(o, true);
	} else if (!o->scheduled) {
		o->scheduled = true;
		loop_defer(o->loop, &o->send_call, send_cb, o);
	}
}

static bool
wants(const struct observer *o, enum observable what)
{
	return o->call.conn != NULL && (o->mask & what) != 0;
}

void
observer_instance(struct observer *o, const char *producer,
    const char *data_source, bool started)
{
	struct pb_writer *w = &o->pending;
	size_t at, mark;

	if (!wants(o, OBSERVE_INSTANCES))
		return;
	at = event_begin(o, OBSERVE_INSTANCES);
	mark = pb_nest_begin(w, ObservableEvents_instance_state_changes);
	pb_put_string(w, DataSourceInstanceStateChange_producer_name, producer);
	pb_put_string(w, DataSourceInstanceStateChange_data_source_name,
	    data_source);
	pb_put_uint(w, DataSourceInstanceStateChange_state, started ?
	    ObservableEvents_DATA_SOURCE_INSTANCE_STATE_STARTED :
	    ObservableEvents_DATA_SOURCE_INSTANCE_STATE_STOPPED);
	pb_nest_end(w, mark);
	event_end(o, at);
}

void
observer_all_started(struct observer *o)
{
	size_t at;

	if (!wants(o, OBSERVE_ALL_STARTED))
		return;
	at = event_begin(o, OBSERVE_ALL_STARTED);
	pb_put_uint(&o->pending, ObservableEvents_all_data_sources_started, 1);
	event_end(o, at);
}

void
observer_clone_trigger(struct observer *o, uint64_t session,
    const struct clone_trigger *t)
{
	struct pb_writer *w = &o->pending;
	size_t at, mark;

	if (!wants(o, OBSERVE_CLONE_TRIGGER))
		return;
	at = event_begin(o, OBSERVE_CLONE_TRIGGER);
	mark = pb_nest_begin(w, ObservableEvents_clone_trigger_hit);
	pb_put_int(w, CloneTriggerHit_tracing_session_id, (int64_t)session);
	pb_put_string(w, CloneTriggerHit_trigger_name, t->name);
	pb_put_string(w, CloneTriggerHit_producer_name, t->producer_name);
	pb_put_uint(w, CloneTriggerHit_producer_uid, (uint32_t)t->producer_uid);
	pb_put_uint(w, CloneTriggerHit_boot_time_ns, t->boot_time_ns);
	pb_put_uint(w, CloneTriggerHit_trigger_delay_ms, t->delay_ms);
	pb_nest_end(w, mark);
	event_end(o, at);
}
