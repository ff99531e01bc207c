#include "service/port/observer.h"

#include "transport/pb_reader.h"
#include "transport/pb_writer.h"
#include "service/session/session.h"

/* Field numbers: wire-format.md, common/observable_events.proto. */
enum {
	RESP_EVENTS = 1,
	EV_INSTANCE = 1,
	EV_ALL_STARTED = 2,
	EV_CLONE = 3,
	CHANGE_PRODUCER = 1,
	CHANGE_DATA_SOURCE = 2,
	CHANGE_STATE = 3,
	STATE_STOPPED = 1,
	STATE_STARTED = 2,
	CLONE_SESSION = 1,
	CLONE_NAME = 2,
	CLONE_PRODUCER = 3,
	CLONE_UID = 4,
	CLONE_BOOT_TIME = 5,
	CLONE_DELAY = 6,
};

bool
observer_parse(const uint8_t *args, size_t len, uint32_t *mask)
{
	struct pb_reader r;
	struct pb_field f;
	const uint8_t *p, *end;
	uint64_t v;

	*mask = 0;
	pb_init(&r, args, len);
	while (pb_next(&r, &f)) {
		if (f.number != 1)
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

void
observer_set(struct observer *o, struct rpc_call call, uint32_t mask)
{
	if (o->call.conn != NULL)
		rpc_reply(o->call, NULL, 0, false, -1);
	o->call.conn = NULL;
	o->mask = mask;
	if (mask == 0)
		rpc_reply(call, NULL, 0, false, -1);
	else
		o->call = call;
}

static void
send_event(struct observer *o, struct pb_writer *w, size_t mark)
{
	pb_nest_end(w, mark);
	if (!w->failed)
		rpc_reply(o->call, w->data, w->len, true, -1);
	pb_writer_done(w);
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
	struct pb_writer w;
	size_t mark, inner;

	if (!wants(o, OBSERVE_INSTANCES))
		return;
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, RESP_EVENTS);
	inner = pb_nest_begin(&w, EV_INSTANCE);
	pb_put_string(&w, CHANGE_PRODUCER, producer);
	pb_put_string(&w, CHANGE_DATA_SOURCE, data_source);
	pb_put_uint(&w, CHANGE_STATE, started ? STATE_STARTED : STATE_STOPPED);
	pb_nest_end(&w, inner);
	send_event(o, &w, mark);
}

void
observer_all_started(struct observer *o)
{
	struct pb_writer w;
	size_t mark;

	if (!wants(o, OBSERVE_ALL_STARTED))
		return;
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, RESP_EVENTS);
	pb_put_uint(&w, EV_ALL_STARTED, 1);
	send_event(o, &w, mark);
}

void
observer_clone_trigger(struct observer *o, uint64_t session,
    const struct clone_trigger *t)
{
	struct pb_writer w;
	size_t mark, inner;

	if (!wants(o, OBSERVE_CLONE_TRIGGER))
		return;
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, RESP_EVENTS);
	inner = pb_nest_begin(&w, EV_CLONE);
	pb_put_int(&w, CLONE_SESSION, (int64_t)session);
	pb_put_string(&w, CLONE_NAME, t->name);
	pb_put_string(&w, CLONE_PRODUCER, t->producer_name);
	pb_put_uint(&w, CLONE_UID, (uint32_t)t->producer_uid);
	pb_put_uint(&w, CLONE_BOOT_TIME, t->boot_time_ns);
	pb_put_uint(&w, CLONE_DELAY, t->delay_ms);
	pb_nest_end(&w, inner);
	send_event(o, &w, mark);
}
