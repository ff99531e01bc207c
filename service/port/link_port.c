#include "service/port/link_port.h"

#include <stdlib.h>
#include <string.h>

#include "protos/fields.h"
#include "protos/link.pb-c.h"
#include "service/link/link.h"
#include "service/machine/machine_clock.h"
#include "service/machine/machine_presence.h"
#include "service/model/model.h"
#include "service/port/link_compression.h"
#include "service/port/machine_info.h"
#include "service/port/peer_identity.h"
#include "service/settings/settings.h"
#include "transport/base/log.h"
#include "transport/link/link_clock.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_host.h"
#include "transport/wire/pb_writer.h"
#include "transport/wire/service_names.h"

/* High-water mark of queued output, in bytes: the rest stays in the link. */
#define QUEUED_MAX (64u * 1024u)
/* LinkFrame.consumed in one frame. */
#define REPORT_MAX (4u * 1024u)
#define SOFTWARE_MAX 63u

/* A connection; the ctx of its methods. */
struct link_port {
	struct service *service;
	struct rpc_conn *conn;
	struct link *link;    /* NULL: not open yet, or closed: op_close() */
	bool opened;          /* Open was called, and is not to come again */
	struct link_moves *moves; /* owned; NULL: Move is not expected */
	struct rpc_call down; /* conn NULL: not called yet */
	struct link_compression compression;
	bool send_posted;
	struct loop_call send_call;
};

/* Limit of refusals that are logged, of all relays together. */
static struct log_limit refusals;

static void
log_ignored(const struct link_port *p, const char *what, const char *why)
{
	log_limited(&refusals, loop_now_ms(), LOG_LEVEL_WARN,
	    "link %s: %s is not used: %s", rpc_conn_peer(p->conn)->text, what,
	    why);
}

/* ---- down ---- */

static void
send_frame(struct link_port *p, const struct link_frame *f,
    const uint8_t *consumed, size_t consumed_len)
{
	uint8_t head[LINK_HEAD_MAX];
	struct pb_writer w;
	size_t n = link_put_head(head, f);

	pb_writer_init(&w);
	pb_put_raw(&w, consumed, consumed_len);
	pb_put_raw(&w, head, n);
	if (f->number != 0)
		pb_put_raw(&w, f->block, f->len);
	if (w.failed)
		rpc_conn_close(p->conn, "out of memory");
	else
		rpc_reply(p->down, w.data, w.len, true, -1);
	pb_writer_done(&w);
}

/* Sends a frame; false: there is nothing to send. */
static bool
send_one(struct link_port *p)
{
	uint8_t consumed[REPORT_MAX];
	struct link_frame f = { 0 };
	struct link_out_block b;
	bool report;
	size_t n = 0;

	if ((report = link_has_report(p->link)))
		n = link_report(p->link, &f, consumed, sizeof(consumed));
	if (link_next(p->link, &b)) {
		f.number = b.number;
		f.channel = b.channel;
		f.block = b.data;
		f.len = b.len;
	} else if (!report) {
		return false;
	}
	send_frame(p, &f, consumed, n);
	return true;
}

static void
send_cb(void *arg)
{
	struct link_port *p = arg;

	p->send_posted = false;
	while (p->link != NULL && p->down.conn != NULL &&
	    rpc_conn_queued(p->conn) <= QUEUED_MAX)
		if (!send_one(p))
			break;
}

static void
drained_cb(void *ctx)
{
	send_cb(ctx);
}

static void
op_wake(void *port)
{
	struct link_port *p = port;

	if (p->send_posted)
		return;
	p->send_posted = true;
	loop_defer(p->service->loop, &p->send_call, send_cb, p);
}

static void
op_close(void *port, const char *why)
{
	struct link_port *p = port;

	p->link = NULL;
	rpc_conn_refuse(p->conn, why);
}

static const struct link_port_ops ops = { op_wake, op_close };

/* ---- Open ---- */

static enum rpc_verdict
refuse(struct link_port *p, const char *why)
{
	refusals_count(&p->service->refusals, why);
	rpc_conn_refuse(p->conn, why);
	return RPC_REJECT;
}

static bool
id_fits(const ProtobufCBinaryData *id, uint8_t out[LINK_ID_BYTES])
{
	if (id->len != LINK_ID_BYTES)
		return false;
	memcpy(out, id->data, LINK_ID_BYTES);
	return true;
}

/* NULL, or why the request is refused. */
static const char *
read_request(struct link_port *p, const Tributary__LinkOpen *m,
    struct link_request *q)
{
	const struct peer *peer = rpc_conn_peer(p->conn);
	const char *why;

	memset(q, 0, sizeof(*q));
	if (m->version < LINK_VERSION)
		return "LinkOpen without a version";
	if (!id_fits(&m->link_id, q->link_id) ||
	    !id_fits(&m->relay_id, q->relay_id))
		return "link_id and relay_id are of 16 bytes";
	q->knows_collector = m->collector_id.len > 0;
	if (q->knows_collector && !id_fits(&m->collector_id, q->collector_id))
		return "collector_id is of 16 bytes, or empty";
	if (m->moves && (m->buffer_tag == 0 || m->buffer_tag > LINK_TAG_MAX))
		return "LinkOpen.moves without a buffer_tag that can be";
	q->last_sent = m->last_sent;
	q->last_acknowledged = m->last_acknowledged;
	q->received = m->received;
	q->can_move = m->can_move;
	q->moves = m->moves ? p->moves : NULL;
	q->buffer_tag = m->buffer_tag;
	q->consumed_in_all = m->consumed_in_all;
	principal_of_peer(&q->who, peer, false);
	q->peer = peer_count_key(peer);
	q->nobody = peer->auth == PEER_NOBODY && peer->kind != ADDR_SSH;
	q->machine = link_machine_of(p->service, p->conn, m->machine_id_hint,
	    m->machine_name, &why);
	return q->machine != NULL ? NULL : why;
}

static void
take_system_info(struct link_port *p, const Tributary__LinkOpen *m)
{
	struct machine *machine = link_machine(p->link);
	const char *why = "it does not parse";

	if (!m->has_system_info)
		return;
	if (machine_info_take(machine, m->system_info.data,
	    m->system_info.len, peer_names_machine(p->service->trust,
	    rpc_conn_peer(p->conn)), m->machine_name != NULL &&
	    m->machine_name[0] != '\0', &why) != MACHINE_INFO_TAKEN)
		log_ignored(p, "its SystemInfo", why);
}

static void
agree_on_compression(struct link_port *p, const Tributary__LinkOpen *m)
{
	size_t i;

	if (!p->service->settings->link.compression)
		return;
	for (i = 0; i < m->n_compression; i++) {
		if (m->compression[i] == TRIBUTARY__LINK_COMPRESSION__LINK_PLAIN)
			return;
		if (m->compression[i] ==
		    TRIBUTARY__LINK_COMPRESSION__LINK_ZSTD) {
			/* Without memory the link goes on uncompressed. */
			link_compression_start(&p->compression, p->conn);
			return;
		}
	}
}

static void
tell_machine(struct link_port *p, const Tributary__LinkOpen *m)
{
	char software[SOFTWARE_MAX + 1];

	peer_tell_machine(rpc_conn_peer(p->conn), link_machine(p->link),
	    MACHINE_LINK, m->software == NULL ? NULL :
	    log_escape(software, sizeof(software), m->software,
		strlen(m->software)));
}

static void
answer_open(struct link_port *p, struct rpc_call call, enum link_why why)
{
	const struct link_setting *set = &p->service->settings->link;
	const struct machine *m = link_machine(p->link);
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, LinkOpened_version, LINK_VERSION);
	pb_put_bytes(&w, LinkOpened_collector_id,
	    links_collector_id(p->service->links), LINK_ID_BYTES);
	pb_put_uint(&w, LinkOpened_why, why);
	pb_put_uint(&w, LinkOpened_received, link_received(p->link));
	pb_put_uint(&w, LinkOpened_window, set->window_kb * 1024);
	pb_put_uint(&w, LinkOpened_compression,
	    link_compression_is_on(&p->compression) ?
	    TRIBUTARY__LINK_COMPRESSION__LINK_ZSTD :
	    TRIBUTARY__LINK_COMPRESSION__LINK_PLAIN);
	pb_put_uint(&w, LinkOpened_grace_ms, set->grace_ms);
	pb_put_uint(&w, LinkOpened_machine_id, m->id);
	pb_put_string(&w, LinkOpened_machine_name, m->name);
	if (why == LINK_RESUMED)
		link_put_consumed_of_all(p->link, &w, LinkOpened_consumed);
	else
		pb_put_uint(&w, LinkOpened_taken_before,
		    link_taken_before(p->link));
	pb_put_uint(&w, LinkOpened_buffer_tag, link_buffer_tag(p->link));
	pb_put_uint(&w, LinkOpened_consumed_in_all,
	    link_consumed_in_all(p->link));
	if (w.failed)
		rpc_conn_close(p->conn, "out of memory");
	else
		rpc_reply(call, w.data, w.len, false, -1);
	pb_writer_done(&w);
}

/* The relay tells what it has, then calls Open again. */
static enum rpc_verdict
want_moves(struct link_port *p, struct rpc_call call)
{
	const struct link_setting *set = &p->service->settings->link;
	struct pb_writer w;

	if ((p->moves = link_moves_new(p->service->links)) == NULL)
		return refuse(p, "out of memory");
	p->opened = false;
	pb_writer_init(&w);
	pb_put_uint(&w, LinkOpened_version, LINK_VERSION);
	pb_put_bytes(&w, LinkOpened_collector_id,
	    links_collector_id(p->service->links), LINK_ID_BYTES);
	pb_put_uint(&w, LinkOpened_why, LINK_MOVES);
	pb_put_uint(&w, LinkOpened_window, set->window_kb * 1024);
	if (w.failed)
		rpc_conn_close(p->conn, "out of memory");
	else
		rpc_reply(call, w.data, w.len, false, -1);
	pb_writer_done(&w);
	return RPC_OK;
}

static enum rpc_verdict
move(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct link_port *p = ctx;

	if (p->moves == NULL)
		return RPC_REJECT;
	if (link_moves_add(p->moves, args, len) != 0)
		return refuse(p, "what it tells of its channels does not parse, "
		    "or is too much");
	return RPC_OK;
}

static enum rpc_verdict
open_link(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct link_port *p = ctx;
	enum rpc_verdict v = RPC_OK;
	struct link_request q;
	Tributary__LinkOpen *m;
	const char *refused;
	enum link_why why = LINK_NEW;

	if (p->opened)
		return RPC_REJECT;
	if ((m = tributary__link_open__unpack(NULL, len, args)) == NULL)
		return RPC_BAD_ARGS;
	p->opened = true;
	if ((refused = read_request(p, m, &q)) == NULL)
		p->link = link_open(p->service->links, &q, &ops, p, &why,
		    &refused);
	link_moves_free(p->moves);
	p->moves = NULL;
	if (p->link == NULL && refused == NULL) {
		v = want_moves(p, call);
	} else if (p->link == NULL) {
		v = refuse(p, refused);
	} else {
		take_system_info(p, m);
		link_keep_name(p->link);
		agree_on_compression(p, m);
		tell_machine(p, m);
		answer_open(p, call, why);
	}
	tributary__link_open__free_unpacked(m, NULL);
	return v;
}

/* ---- Up ---- */

/* Ends a link that broke the protocol: later blocks cannot be trusted. */
static void
give_up(struct link_port *p, const char *why)
{
	if (p->link != NULL)
		link_give_up(p->link, why);
}

static void
answer_ping(struct link_port *p, const struct link_clock *ping,
    const struct clock_snapshot *now)
{
	struct link_clock pong = { .kind = LINK_CLOCK_PONG, .id = ping->id,
	    .host = *now };
	uint8_t bytes[LINK_CLOCK_MAX];
	struct link_frame f = { .clock = bytes };

	/* A clock reading is worth nothing when it has to wait. */
	if (p->down.conn == NULL || rpc_conn_queued(p->conn) > QUEUED_MAX)
		return;
	f.clock_len = link_clock_put(bytes, &pong);
	send_frame(p, &f, NULL, 0);
}

static void
take_clock(struct link_port *p, const struct link_frame *f)
{
	struct clock_snapshot now;
	struct link_clock c;
	const char *why = "it does not parse";

	clock_snapshot_take(&now); /* first of all: what follows takes time */
	if (link_clock_parse(&c, f->clock, f->clock_len) != 0) {
		log_ignored(p, "a message about clocks", why);
		return;
	}
	switch (c.kind) {
	case LINK_CLOCK_PING:
		answer_ping(p, &c, &now);
		break;
	case LINK_CLOCK_RESULT:
		if (machine_clock_take(link_machine(p->link), &c, &now,
		    &why) != 0)
			log_ignored(p, "a clock exchange", why);
		break;
	case LINK_CLOCK_PONG:
		log_ignored(p, "a message about clocks", "it is a PONG");
		break;
	}
}

static void
take_status(struct link_port *p, const struct link_frame *f)
{
	struct machine_contact *c = &link_machine(p->link)->contact;
	Tributary__LinkStatus *s;

	/* Passed on as it is: what a reader cannot unpack spoils all of a reply. */
	if (f->status_len > sizeof(c->status) ||
	    (s = tributary__link_status__unpack(NULL, f->status_len,
	    f->status)) == NULL)
		return;
	c->backlog = (struct machine_backlog){ s->memory_bytes,
		s->memory_limit, s->spool_bytes, s->spool_limit, s->oldest_ms };
	tributary__link_status__free_unpacked(s, NULL);
	memcpy(c->status, f->status, f->status_len);
	c->status_len = f->status_len;
}

static void
take_block(struct link_port *p, const struct link_frame *f)
{
	const uint8_t *block;
	size_t len;
	const char *why;

	link_machine(p->link)->contact.bytes_received +=
	    link_compression_network_bytes(&p->compression, f->len);
	why = link_compression_unpack(&p->compression, f, &block, &len);
	if (why == NULL)
		why = link_take_block(p->link, f->number, f->channel, block,
		    len);
	if (why != NULL)
		give_up(p, why);
}

static enum rpc_verdict
up(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct link_port *p = ctx;
	struct link_frame f;

	if (p->link == NULL)
		return RPC_REJECT;
	if (link_parse_frame(&f, args, len) != 0) {
		give_up(p, "a frame is malformed");
		return RPC_OK;
	}
	if (f.clock != NULL)
		take_clock(p, &f);
	if (f.status != NULL)
		take_status(p, &f);
	if (f.has_received && link_acked(p->link, f.received) != 0) {
		give_up(p, "it acknowledges a block that was never sent");
		return RPC_OK;
	}
	if (f.number != 0)
		take_block(p, &f);
	return RPC_OK;
}

static enum rpc_verdict
down(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct link_port *p = ctx;

	if (p->link == NULL || p->down.conn != NULL)
		return RPC_REJECT;
	if (!pb_well_formed(args, len))
		return RPC_BAD_ARGS;
	p->down = call;
	op_wake(p);
	return RPC_OK;
}

/* ---- the connection ---- */

static const struct rpc_method methods[] = {
	{ "Open", open_link },
	{ "Up", up },
	{ "Down", down },
	{ "Move", move },
};

static void *
bind_cb(struct rpc_conn *c, void *arg)
{
	struct service *s = arg;
	struct link_port *p;
	size_t hard = (size_t)s->settings->limits.max_send_queue_kb * 1024;

	if ((p = calloc(1, sizeof(*p))) == NULL) {
		rpc_conn_refuse(c, "the collector is out of memory");
		return NULL;
	}
	p->service = s;
	p->compression.service = s;
	p->conn = c;
	rpc_conn_set_limits(c, hard, hard / 2 < QUEUED_MAX ? hard / 2 :
	    QUEUED_MAX);
	return p;
}

static void
gone_cb(void *ctx)
{
	struct link_port *p = ctx;

	loop_cancel(p->service->loop, p);
	if (p->link != NULL)
		link_detach(p->link);
	link_compression_done(&p->compression);
	link_moves_free(p->moves);
	free(p);
}

void
link_port_init(struct rpc_service *out, struct service *s)
{
	*out = (struct rpc_service){
		.name = LINK_SERVICE,
		.methods = methods,
		.n_methods = sizeof(methods) / sizeof(methods[0]),
		.bind = bind_cb,
		.gone = gone_cb,
		.drained = drained_cb,
		.arg = s,
	};
}
