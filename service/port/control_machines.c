#include "service/port/control_internal.h"

#include <stdlib.h>

#include "transport/wire/pb_reader.h"
#include "service/model/model.h"
#include "service/session/quota.h"

/* Field numbers: protos/control.proto. */
enum {
	REPLY_MACHINES = 1,
	REPLY_NOW = 2,
	M_ID = 1,
	M_NAME = 2,
	M_REACH = 3,
	M_STATE = 4,
	M_ADDRESS = 5,
	M_AUTHENTICATED = 6,
	M_SYSTEM_INFO = 7,
	M_FIRST_SEEN = 8,
	M_CONNECTED_SINCE = 9,
	M_CUT_SINCE = 10,
	M_RECONNECTS = 11,
	M_OFFSET = 12,
	M_UNCERTAINTY = 13,
	M_MEASURED = 14,
	M_ROUND_TRIP = 15,
	M_PRODUCERS = 16,
	M_DATA_SOURCES = 17,
	M_BYTES_RECEIVED = 18,
	M_BYTES_UNPACKED = 19,
	M_BYTES_WAITING = 20,
	M_RELAY = 21,
	M_LOSSES = 22,
	M_SOFTWARE = 23,
	M_QUOTA = 24,
	L_CAUSE = 1,
	L_CHUNKS = 2,
	L_PACKETS = 3,
	L_BYTES = 4,
	L_TIMES = 5,
};
enum { REACH_HOST = 1, REACH_LINK = 2, REACH_CLASSIC = 3, REACH_DIRECT = 4 };
enum { STATE_CONNECTED = 1, STATE_CUT = 2, STATE_GONE = 3 };

static uint64_t
zigzag(int64_t v)
{
	return ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0);
}

static void
put_losses(struct pb_writer *w, const struct machine_contact *c)
{
	size_t i, mark;

	for (i = 0; i < LINK_LOSS_CAUSES; i++) {
		if (c->losses[i].chunks == 0 && c->losses[i].packets == 0 &&
		    c->losses[i].bytes == 0 && c->losses[i].times == 0)
			continue;
		mark = pb_nest_begin(w, M_LOSSES);
		pb_put_uint(w, L_CAUSE, i);
		pb_put_uint(w, L_CHUNKS, c->losses[i].chunks);
		pb_put_uint(w, L_PACKETS, c->losses[i].packets);
		pb_put_uint(w, L_BYTES, c->losses[i].bytes);
		if (c->losses[i].times != 0)
			pb_put_uint(w, L_TIMES, c->losses[i].times);
		pb_nest_end(w, mark);
	}
}

static uint64_t
reach_of(const struct machine *m)
{
	if (m->id == 0)
		return REACH_HOST;
	switch (m->contact.reach) {
	case MACHINE_LINK:
		return REACH_LINK;
	case MACHINE_CLASSIC:
		return REACH_CLASSIC;
	case MACHINE_DIRECT:
		break;
	}
	return REACH_DIRECT;
}

static uint64_t
state_of(const struct machine *m)
{
	if (m->contact.cut)
		return STATE_CUT;
	return m->id == 0 || m->contact.connected || m->n_producers > 0 ?
	    STATE_CONNECTED : STATE_GONE;
}

static void
put_clock(struct pb_writer *w, const struct machine_clock *c)
{
	if (!c->known)
		return;
	pb_put_uint(w, M_OFFSET, zigzag(c->offset_ns));
	pb_put_uint(w, M_UNCERTAINTY, c->uncertainty_ns);
	pb_put_uint(w, M_MEASURED, c->measured_ns);
	pb_put_uint(w, M_ROUND_TRIP, c->round_trip_ns);
}

static void
put_contact(struct pb_writer *w, const struct machine_contact *c)
{
	if (c->address[0] != '\0')
		pb_put_string(w, M_ADDRESS, c->address);
	if (c->authenticated[0] != '\0')
		pb_put_string(w, M_AUTHENTICATED, c->authenticated);
	if (c->software[0] != '\0')
		pb_put_string(w, M_SOFTWARE, c->software);
	pb_put_uint(w, M_FIRST_SEEN, c->first_seen_ns);
	pb_put_uint(w, M_CONNECTED_SINCE, c->connected_since_ns);
	pb_put_uint(w, M_CUT_SINCE, c->cut_since_ns);
	pb_put_uint(w, M_RECONNECTS, c->reconnects);
	pb_put_uint(w, M_BYTES_RECEIVED, c->bytes_received);
	pb_put_uint(w, M_BYTES_UNPACKED, c->bytes_unpacked);
	pb_put_uint(w, M_BYTES_WAITING, c->bytes_waiting);
	if (c->status_len > 0)
		pb_put_bytes(w, M_RELAY, c->status, c->status_len);
	put_losses(w, c);
}

static void
put_machine(struct pb_writer *w, const struct service *s,
    const struct machine *m)
{
	size_t mark = pb_nest_begin(w, REPLY_MACHINES);
	const uint8_t *info = m->system_info;
	struct quota_counts quota;
	size_t len = m->system_info_len;

	if (m->id == 0) {
		info = s->system_info;
		len = s->system_info_len;
	}
	pb_put_uint(w, M_ID, m->id);
	if (m->name != NULL)
		pb_put_string(w, M_NAME, m->name);
	pb_put_uint(w, M_REACH, reach_of(m));
	pb_put_uint(w, M_STATE, state_of(m));
	if (info != NULL)
		pb_put_bytes(w, M_SYSTEM_INFO, info, len);
	pb_put_uint(w, M_PRODUCERS, m->n_producers);
	pb_put_uint(w, M_DATA_SOURCES, m->n_data_sources);
	put_contact(w, &m->contact);
	put_clock(w, &m->clock);
	quota_counts_of_machine(m, &quota);
	control_put_quota(w, M_QUOTA, &quota);
	pb_nest_end(w, mark);
}

static void
put_head(struct control *p, struct pb_writer *part)
{
	pb_put_uint(part, REPLY_NOW, control_now_ns());
}

/* The host, then what is left of the list. */
static bool
put_next(struct control *p, struct pb_writer *entry)
{
	const struct machine *m;

	if (p->next > p->n_entries)
		return false;
	m = p->next == 0 ? &p->service->host : machine_find(
	    p->service->machines, p->machines[p->next - 1]);
	p->next++;
	if (m != NULL)
		put_machine(entry, p->service, m);
	return true;
}

static const struct control_question question = {
	.head = put_head,
	.entry = put_next,
};

enum rpc_verdict
control_query_machines(void *port, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct control *p = port;

	if (!pb_well_formed(args, len))
		return RPC_BAD_ARGS;
	if (p->question != NULL)
		return RPC_REJECT;
	p->machines = calloc(MACHINES_MAX, sizeof(*p->machines));
	if (p->machines == NULL)
		return RPC_REJECT;
	p->n_entries = machine_table_ids(p->service->machines, p->machines);
	control_answer(p, call, &question);
	return RPC_OK;
}
