#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "relay/perfetto/perfetto_relay_internal.h"
#include "relay/producers/producers.h"
#include "relay/settings/settings.h"
#include "transport/clock/system_info.h"
#include "transport/connect/dial.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_client.h"
#include "transport/rpc/sync_clock.h"
#include "transport/wire/pb_writer.h"

/*
 * High-water mark: with more queued for a connection, its producer is put off.
 */
#define QUEUE_HIGH (256u << 10)

/* ---- the RelayPort ---- */

static void
ignore_reply(void *arg, bool ok, bool more, const uint8_t *msg, size_t len,
    int fd)
{
}

static void
init_relay(struct perfetto_relay *c)
{
	struct pb_writer w;

	pb_writer_init(&w);
	system_info_introduce(&w, c->setup.settings->machine_name);
	if (!w.failed)
		rpc_invoke(c->relay, "InitRelay", w.data, w.len, ignore_reply,
		    NULL);
	pb_writer_done(&w);
}

static void
ready_cb(struct rpc_client *client, void *arg)
{
	struct perfetto_relay *c = arg;

	c->no_relay_port = false;
	init_relay(c);
	c->clocks = sync_clock_new(c->setup.loop, client, "SyncClock",
	    c->setup.settings->clock_sync_ms);
	if (c->clocks == NULL)
		log_warn("no memory to measure the collector's clocks");
	c->setup.up(c->setup.arg);
}

/*
 * A service without RelayPort (no --enable-relay-endpoint) serves producers
 * all the same; what is wrong is said once.
 */
static void
go_without(struct perfetto_relay *c, const char *text)
{
	if (!c->no_relay_port_said)
		log_warn("%s: it was perhaps started without "
		    "--enable-relay-endpoint.  This machine's clocks will not "
		    "be measured: its timestamps may be off", text);
	c->no_relay_port_said = true;
	c->no_relay_port = true;
	c->setup.up(c->setup.arg);
	loop_timer_set(c->retry, c->setup.settings->max_retry_ms, 0);
}

static void
down_cb(struct rpc_client *client, const char *text, void *arg)
{
	struct perfetto_relay *c = arg;
	bool unknown = rpc_client_service_unknown(client);

	rpc_client_free(c->relay);
	c->relay = NULL;
	sync_clock_free(c->clocks);
	c->clocks = NULL;
	if (unknown)
		go_without(c, text);
	else
		c->setup.down(c->setup.arg, text);
}

static int
connect_relay(struct perfetto_relay *c, char *err, size_t err_size)
{
	static const struct rpc_client_ops ops = {
		.ready = ready_cb,
		.down = down_cb,
	};

	c->relay = rpc_client_new(c->setup.loop,
	    &(struct rpc_client_setup){ .addr = c->setup.to,
	    .how = c->setup.how, .service = "RelayPort", .ops = &ops,
	    .arg = c }, err, err_size);
	if (c->relay == NULL)
		return -1;
	rpc_client_set_identity(c->relay, (int32_t)getpid(),
	    (int32_t)geteuid(), c->setup.settings->machine_id,
	    c->setup.settings->machine_name);
	return 0;
}

static void
retry_cb(void *arg)
{
	struct perfetto_relay *c = arg;
	char err[DIAL_TEXT_MAX];

	if (connect_relay(c, err, sizeof(err)) != 0)
		c->setup.down(c->setup.arg, err);
}

/* ---- upward ---- */

static void
up_put(void *arg, uint32_t channel, enum link_up kind, const void *data,
    size_t len, uint64_t value)
{
	struct perfetto_relay *c = arg;
	struct perfetto_relay_conn *conn;

	if (kind == LINK_UP_OPEN) {
		perfetto_relay_conn_open(c, channel, data, len);
		return;
	}
	if ((conn = perfetto_relay_conn_find(c, channel)) == NULL)
		return;
	if (kind == LINK_UP_CLOSE)
		perfetto_relay_conn_free(conn);
	else if (conn->state == PERFETTO_RELAY_OPEN)
		perfetto_relay_call(conn, kind, data, len, value);
	/* Otherwise it is said again when the connection is up. */
}

static enum upstream_room
up_reserve(void *arg, uint32_t channel, size_t max, size_t data_len,
    uint8_t **out)
{
	struct perfetto_relay *c = arg;
	struct perfetto_relay_conn *conn = perfetto_relay_conn_find(c, channel);

	if (conn == NULL || conn->state != PERFETTO_RELAY_OPEN)
		return UPSTREAM_DROPPED;
	if (data_len > 0 && rpc_client_queued(conn->client) > QUEUE_HIGH) {
		conn->put_off = true;
		return UPSTREAM_LATER;
	}
	if (c->scratch == NULL &&
	    (c->scratch = malloc(LINK_MESSAGE_MAX)) == NULL)
		return UPSTREAM_DROPPED;
	conn->data_reserved = data_len > 0;
	*out = c->scratch;
	return UPSTREAM_ROOM;
}

static void
up_commit(void *arg, uint32_t channel, size_t len)
{
	struct perfetto_relay *c = arg;
	struct perfetto_relay_conn *conn = perfetto_relay_conn_find(c, channel);

	if (conn == NULL || len == 0)
		return;
	rpc_invoke(conn->client, "CommitData", c->scratch, len, NULL, NULL);
	if (rpc_client_queued(conn->client) == 0) {
		conn->chunks_queued = 0;
		conn->bytes_queued = 0;
	} else if (conn->data_reserved) {
		conn->chunks_queued++;
		conn->bytes_queued += len;
	}
	c->setup.totals->bytes_up += len;
}

static void
up_dropped(void *arg, uint32_t channel, const struct link_loss *loss)
{
	struct perfetto_relay *c = arg;
	struct perfetto_relay_totals *t = c->setup.totals;
	uint32_t cause = loss->cause;

	/* Without a connection the cause is unknown. */
	if (cause == TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_UNSPECIFIED ||
	    cause >= LINK_LOSS_OF_RELAYS)
		cause = PERFETTO_RELAY_LOSS;
	t->chunks_lost[cause] += loss->chunks;
	t->packets_lost[cause] += loss->packets;
	t->bytes_lost[cause] += loss->bytes;
}

struct upstream
perfetto_relay_upward(struct perfetto_relay *c)
{
	static const struct upstream_ops ops = {
		.put = up_put,
		.reserve = up_reserve,
		.commit = up_commit,
		.dropped = up_dropped,
	};

	return (struct upstream){ .ops = &ops, .arg = c };
}

/* ---- life ---- */

static void
announce_cb(void *arg)
{
	struct perfetto_relay *c = arg;

	producers_announce(c->setup.producers, 0);
}

struct perfetto_relay *
perfetto_relay_new(const struct perfetto_relay_setup *setup, char *err,
    size_t err_size)
{
	struct perfetto_relay *c;

	snprintf(err, err_size, "no memory");
	if ((c = calloc(1, sizeof(*c))) == NULL)
		return NULL;
	c->setup = *setup;
	if ((c->retry = loop_timer_new(setup->loop, retry_cb, c)) == NULL)
		goto fail;
	if (connect_relay(c, err, err_size) != 0)
		goto fail;
	/* Deferred: the caller must have the object first. */
	loop_defer(setup->loop, &c->announce_call, announce_cb, c);
	return c;

fail:
	perfetto_relay_free(c);
	return NULL;
}

bool
perfetto_relay_without_clocks(const struct perfetto_relay *c)
{
	return c->no_relay_port;
}

void
perfetto_relay_free(struct perfetto_relay *c)
{
	struct perfetto_relay_conn *conn;
	struct hash_cursor at;

	if (c == NULL)
		return;
	loop_cancel(c->setup.loop, c);
	HASH_MAP_FOREACH(conn, &c->conns, &at, by_channel) {
		perfetto_relay_conn_count(conn);
		perfetto_relay_conn_free(conn);
	}
	hash_map_done(&c->conns);
	rpc_client_free(c->relay);
	sync_clock_free(c->clocks);
	loop_timer_free(c->retry);
	free(c->scratch);
	free(c);
}
