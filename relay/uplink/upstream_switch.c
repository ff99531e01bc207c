#include "relay/perfetto/perfetto_relay.h"
#include "relay/uplink/uplink_internal.h"

static void
up_put(void *arg, uint32_t channel, enum link_up kind, const void *data,
    size_t len, uint64_t value)
{
	struct uplink *u = arg;
	struct upstream up;

	switch (u->way) {
	case WAY_NONE:
		return; /* there is no agreement with a collector now */
	case WAY_LINK:
		outbox_put(u->setup.outbox, channel, kind, data, len, value);
		return;
	case WAY_CLASSIC:
		up = perfetto_relay_upward(u->classic);
		up.ops->put(up.arg, channel, kind, data, len, value);
		return;
	}
}

static enum upstream_room
up_reserve(void *arg, uint32_t channel, size_t max, size_t data_len,
    uint8_t **out)
{
	struct uplink *u = arg;
	struct upstream up;
	uint8_t *p;

	switch (u->way) {
	case WAY_NONE:
		break;
	case WAY_LINK:
		if (data_len > 0 && outbox_is_busy(u->setup.outbox)) {
			outbox_want_room(u->setup.outbox);
			u->put_off = true;
			return UPSTREAM_LATER;
		}
		p = outbox_reserve(u->setup.outbox, channel, max,
		    data_len > 0);
		if (p == NULL)
			break;
		*out = p;
		return UPSTREAM_ROOM;
	case WAY_CLASSIC:
		up = perfetto_relay_upward(u->classic);
		return up.ops->reserve(up.arg, channel, max, data_len, out);
	}
	return UPSTREAM_DROPPED;
}

static void
up_commit(void *arg, uint32_t channel, size_t len)
{
	struct uplink *u = arg;
	struct upstream up;

	switch (u->way) {
	case WAY_NONE:
		return;
	case WAY_LINK:
		outbox_commit(u->setup.outbox, channel, len);
		return;
	case WAY_CLASSIC:
		up = perfetto_relay_upward(u->classic);
		up.ops->commit(up.arg, channel, len);
		return;
	}
}

static void
up_dropped(void *arg, uint32_t channel, const struct link_loss *loss)
{
	struct uplink *u = arg;
	struct upstream up;

	switch (u->way) {
	case WAY_NONE:
		return;
	case WAY_LINK:
		outbox_dropped(u->setup.outbox, channel, loss);
		return;
	case WAY_CLASSIC:
		up = perfetto_relay_upward(u->classic);
		up.ops->dropped(up.arg, channel, loss);
		return;
	}
}

struct upstream
uplink_upward(struct uplink *u)
{
	static const struct upstream_ops ops = {
		.put = up_put,
		.reserve = up_reserve,
		.commit = up_commit,
		.dropped = up_dropped,
	};

	return (struct upstream){ .ops = &ops, .arg = u };
}
