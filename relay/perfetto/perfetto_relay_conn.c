#include "relay/perfetto/perfetto_relay_internal.h"

#include <stdlib.h>
#include <sys/random.h>

#include "relay/producers/producers.h"
#include "relay/settings/settings.h"
#include "transport/base/backoff.h"
#include "transport/connect/dial.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_client.h"
#include "transport/wire/pb_reader.h"

/* LinkProducer. */
enum { PRODUCER_PID = 2, PRODUCER_UID = 3 };

/* More queued output than a flush of everything can put is a dead peer. */
#define QUEUE_HARD (48u << 20)
/* Where those who were put off go on. */
#define QUEUE_LOW  (64u << 10)

struct perfetto_relay_conn *
perfetto_relay_conn_find(struct perfetto_relay *c, uint32_t channel)
{
	struct perfetto_relay_conn *conn;

	LIST_FOREACH(conn, &c->conns[channel % PERFETTO_RELAY_BUCKETS], link)
		if (conn->channel == channel)
			return conn;
	return NULL;
}

void
perfetto_relay_conn_free(struct perfetto_relay_conn *conn)
{
	if (conn == NULL)
		return;
	LIST_REMOVE(conn, link);
	conn->classic->n_conns--;
	rpc_client_free(conn->client);
	loop_timer_free(conn->retry);
	loop_cancel(conn->classic->setup.loop, conn);
	free(conn);
}

/* ---- events ---- */

/*
 * Up: all is said anew.  A producer that has gone meanwhile says nothing, and
 * its connection ends.
 */
static void
ready_cb(struct rpc_client *client, void *arg)
{
	struct perfetto_relay_conn *conn = arg;
	struct perfetto_relay *c = conn->classic;
	uint32_t channel = conn->channel;

	conn->state = PERFETTO_RELAY_UP;
	conn->opened = false;
	conn->put_off = false;
	producers_lost(c->setup.producers, channel, PERFETTO_RELAY_LOSS);
	producers_announce(c->setup.producers, channel);
	conn = perfetto_relay_conn_find(c, channel);
	if (conn != NULL && !conn->opened)
		perfetto_relay_conn_free(conn);
}

static void
try_later(struct perfetto_relay_conn *conn)
{
	const struct relay_settings *s = conn->classic->setup.settings;
	uint32_t random = 0;

	conn->state = PERFETTO_RELAY_WAITING;
	conn->failures++;
	/* Without randomness all come at the same time: bad, not wrong. */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = 0;
	loop_timer_set(conn->retry, backoff_ms(conn->failures,
	    s->min_retry_ms, s->max_retry_ms, random), 0);
}

/* Packets cannot be told: what was in the chunks is no longer there. */
void
perfetto_relay_conn_count(struct perfetto_relay_conn *conn)
{
	struct perfetto_relay_totals *t = conn->classic->setup.totals;

	t->chunks_lost[PERFETTO_RELAY_LOSS] += conn->chunks_queued;
	t->bytes_lost[PERFETTO_RELAY_LOSS] += conn->bytes_queued;
	conn->chunks_queued = 0;
	conn->bytes_queued = 0;
}

static void
hang_up(struct perfetto_relay_conn *conn, const char *text)
{
	struct perfetto_relay *c = conn->classic;

	log_limited(&c->log_limit, loop_now_ms(), LOG_LEVEL_WARN,
	    "the connection for process %d: %s; it is made again", conn->pid,
	    text);
	loop_cancel(c->setup.loop, conn);
	rpc_client_free(conn->client);
	conn->client = NULL;
	perfetto_relay_conn_count(conn);
	try_later(conn);
	producers_lost(c->setup.producers, conn->channel, PERFETTO_RELAY_LOSS);
}

static void
down_cb(struct rpc_client *client, const char *text, void *arg)
{
	hang_up(arg, text);
}

static void
refused_cb(void *arg)
{
	hang_up(arg, "the collector refused this producer (its log says why)");
}

/* Unless the connection has ended, which says more. */
void
perfetto_relay_conn_refused(struct perfetto_relay_conn *conn)
{
	loop_defer(conn->classic->setup.loop, &conn->refused_call, refused_cb,
	    conn);
}

static void
drained_cb(struct rpc_client *client, void *arg)
{
	struct perfetto_relay_conn *conn = arg;

	if (!conn->put_off)
		return;
	conn->put_off = false;
	producers_resume(conn->classic->setup.producers, conn->channel);
}

static const struct rpc_client_ops ops = {
	.ready = ready_cb,
	.down = down_cb,
	.drained = drained_cb,
};

static void
connect_now(void *arg)
{
	struct perfetto_relay_conn *conn = arg;
	struct perfetto_relay *c = conn->classic;
	struct dial_options how = *c->setup.how;
	char err[DIAL_TEXT_MAX];

	how.service = "producer";
	conn->client = rpc_client_new(c->setup.loop, c->setup.to, &how,
	    "ProducerPort", &ops, conn, err, sizeof(err));
	if (conn->client == NULL) {
		log_limited(&c->log_limit, loop_now_ms(), LOG_LEVEL_WARN,
		    "no connection for process %d: %s", conn->pid, err);
		try_later(conn);
		return;
	}
	conn->state = PERFETTO_RELAY_CONNECTING;
	rpc_client_set_limits(conn->client, QUEUE_HARD, QUEUE_LOW);
	rpc_client_set_identity(conn->client, conn->pid, conn->uid,
	    c->setup.settings->machine_id, c->setup.settings->machine_name);
}

/* ---- life ---- */

static struct perfetto_relay_conn *
conn_new(struct perfetto_relay *c, uint32_t channel, const uint8_t *producer,
    size_t len)
{
	struct perfetto_relay_conn *conn;
	struct pb_reader r;
	struct pb_field f;

	if ((conn = calloc(1, sizeof(*conn))) == NULL)
		return NULL;
	conn->retry = loop_timer_new(c->setup.loop, connect_now, conn);
	if (conn->retry == NULL) {
		free(conn);
		return NULL;
	}
	conn->classic = c;
	conn->channel = channel;
	pb_init(&r, producer, len);
	while (pb_next(&r, &f)) {
		if (f.number == PRODUCER_PID && f.wire == PB_VARINT)
			conn->pid = (int32_t)f.value;
		else if (f.number == PRODUCER_UID && f.wire == PB_VARINT)
			conn->uid = (int32_t)f.value;
	}
	LIST_INSERT_HEAD(&c->conns[channel % PERFETTO_RELAY_BUCKETS], conn,
	    link);
	c->n_conns++;
	return conn;
}

void
perfetto_relay_conn_open(struct perfetto_relay *c, uint32_t channel,
    const uint8_t *producer, size_t len)
{
	struct perfetto_relay_conn *conn = perfetto_relay_conn_find(c, channel);

	if (conn == NULL) {
		if ((conn = conn_new(c, channel, producer, len)) == NULL)
			log_limited(&c->log_limit, loop_now_ms(),
			    LOG_LEVEL_WARN, "no memory for a producer's "
			    "connection");
		else
			connect_now(conn);
	} else if (conn->state == PERFETTO_RELAY_UP && !conn->opened) {
		perfetto_relay_call_begin(conn, producer, len);
	}
}
