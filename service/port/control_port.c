#include "service/port/control_port.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "transport/loop.h"
#include "transport/pb_reader.h"
#include "transport/pb_writer.h"
#include "transport/rpc_host.h"
#include "service/session/model.h"
#include "service/session/settings.h"

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
	L_CAUSE = 1,
	L_CHUNKS = 2,
	L_PACKETS = 3,
	L_BYTES = 4,
	L_TIMES = 5,
};
enum { REACH_HOST = 1, REACH_LINK = 2, REACH_CLASSIC = 3, REACH_DIRECT = 4 };
enum { STATE_CONNECTED = 1, STATE_CUT = 2, STATE_GONE = 3 };

/* A reply stays below the clients' 128 KiB with its last machine. */
#define PART_BYTES (64u * 1024u)
/* What may wait for the peer before the next part is made. */
#define QUEUE_BYTES (256u * 1024u)

/* One connection; one question at a time. */
struct control {
	struct service *service;
	struct rpc_conn *conn;
	struct rpc_call call; /* conn NULL: no question */
	uint32_t *ids;        /* of machines; some may be gone by now */
	size_t n_ids;
	size_t next;          /* 0: the host, then ids[next - 1] */
	struct pb_writer part;
};

static uint64_t
zigzag(int64_t v)
{
	return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
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
	pb_nest_end(w, mark);
}

static void
end_question(struct control *p)
{
	p->call.conn = NULL;
	free(p->ids);
	p->ids = NULL;
}

/* The next part; true when it was the last. */
static bool
make_part(struct control *p)
{
	struct service *s = p->service;
	const struct machine *m;
	struct timespec now;

	pb_writer_reset(&p->part);
	if (p->next == 0) {
		clock_gettime(CLOCK_REALTIME, &now);
		pb_put_uint(&p->part, REPLY_NOW,
		    (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
		put_machine(&p->part, s, &s->host);
		p->next++;
	}
	while (p->next <= p->n_ids && p->part.len < PART_BYTES) {
		m = machine_find(s->machines, p->ids[p->next++ - 1]);
		if (m != NULL)
			put_machine(&p->part, s, m);
	}
	return p->next > p->n_ids;
}

/* Sixteen thousand machines are megabytes: as fast as the peer takes them. */
static void
send_some(void *arg)
{
	struct control *p = arg;
	bool last;

	while (p->call.conn != NULL && rpc_conn_queued(p->conn) < QUEUE_BYTES) {
		last = make_part(p);
		if (p->part.failed) {
			rpc_reject(p->call);
			end_question(p);
			return;
		}
		rpc_reply(p->call, p->part.data, p->part.len, !last, -1);
		if (last)
			end_question(p);
	}
}

static enum rpc_verdict
query_machines(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct control *p = ctx;

	if (!pb_well_formed(args, len))
		return RPC_BAD_ARGS;
	if (p->call.conn != NULL)
		return RPC_REJECT;
	p->ids = calloc(MACHINES_MAX, sizeof(*p->ids));
	if (p->ids == NULL)
		return RPC_REJECT;
	p->n_ids = machine_table_ids(p->service->machines, p->ids);
	p->next = 0;
	p->call = call;
	send_some(p);
	return RPC_OK;
}

static void *
bind_cb(struct rpc_conn *c, void *arg)
{
	struct service *s = arg;
	size_t hard = (size_t)s->settings->limits.max_send_queue_kb * 1024;
	struct control *p;

	if ((p = calloc(1, sizeof(*p))) == NULL)
		return NULL;
	p->service = s;
	p->conn = c;
	pb_writer_init(&p->part);
	rpc_conn_set_limits(c, hard, hard / 2 < QUEUE_BYTES / 2 ? hard / 2 :
	    QUEUE_BYTES / 2);
	return p;
}

static void
gone_cb(void *ctx)
{
	struct control *p = ctx;

	end_question(p);
	pb_writer_done(&p->part);
	free(p);
}

static const struct rpc_method methods[] = {
	{ "QueryMachines", query_machines },
};

void
control_port_init(struct rpc_service *out, struct service *s)
{
	*out = (struct rpc_service){
		.name = CONTROL_SERVICE,
		.methods = methods,
		.n_methods = sizeof(methods) / sizeof(methods[0]),
		.bind = bind_cb,
		.gone = gone_cb,
		.drained = send_some,
		.arg = s,
	};
}
