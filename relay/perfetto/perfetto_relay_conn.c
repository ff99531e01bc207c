#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "protos/fields.h"
#include "protos/utf8.h"
#include "relay/perfetto/perfetto_relay_internal.h"
#include "relay/producers/producers.h"
#include "relay/settings/settings.h"
#include "transport/base/backoff.h"
#include "transport/connect/dial.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_client.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* Hints for shared memory, which is not used: they need only be valid. */
#define PAGE_SIZE_HINT 4096u
#define SHM_SIZE_HINT  (256u * 1024u)

/* The one field of most requests, and of RegisterDataSourceResponse. */
enum { ONE = 1 };

/* More queued output than a flush of everything can put is a dead peer. */
#define QUEUE_HARD (48u << 20)
/* Low-water mark: a producer that was put off goes on. */
#define QUEUE_LOW  (64u << 10)

struct perfetto_relay_conn *
perfetto_relay_conn_find(struct perfetto_relay *c, uint32_t channel)
{
	struct perfetto_relay_conn *conn;

	HASH_MAP_FOREACH_OF(conn, &c->conns, hash_number(channel), by_channel)
		if (conn->channel == channel)
			return conn;
	return NULL;
}

void
perfetto_relay_conn_free(struct perfetto_relay_conn *conn)
{
	if (conn == NULL)
		return;
	hash_map_remove(&conn->classic->conns, &conn->by_channel);
	rpc_client_free(conn->client);
	loop_timer_free(conn->retry);
	loop_cancel(conn->classic->setup.loop, conn);
	free(conn);
}

/* ---- events ---- */

/*
 * The connection is up: its producer is announced anew.  One that has gone in
 * between says nothing, and its connection ends.
 */
static void
ready_cb(struct rpc_client *client, void *arg)
{
	struct perfetto_relay_conn *conn = arg;
	struct perfetto_relay *c = conn->classic;
	uint32_t channel = conn->channel;

	conn->state = PERFETTO_RELAY_READY;
	conn->put_off = false;
	producers_lost(c->setup.producers, channel, PERFETTO_RELAY_LOSS);
	producers_announce(c->setup.producers, channel);
	conn = perfetto_relay_conn_find(c, channel);
	if (conn != NULL && conn->state == PERFETTO_RELAY_READY)
		perfetto_relay_conn_free(conn);
}

static void
try_later(struct perfetto_relay_conn *conn)
{
	const struct relay_settings *s = conn->classic->setup.settings;
	uint32_t random = 0;

	conn->state = PERFETTO_RELAY_WAITING;
	conn->failures++;
	/* Without jitter all connect at the same time: bad, not wrong. */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = 0;
	loop_timer_set(conn->retry, backoff_ms(conn->failures,
	    s->min_retry_ms, s->max_retry_ms, random), 0);
}

/* Counts queued chunks as lost.  Packets are unknown: the chunks are gone. */
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
	conn->client = rpc_client_new(c->setup.loop,
	    &(struct rpc_client_setup){ .addr = c->setup.to, .how = &how,
	    .service = "ProducerPort", .ops = &ops, .arg = conn }, err,
	    sizeof(err));
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

/* ---- replies ---- */

static void
ignore_reply(void *arg, bool ok, bool more, const uint8_t *msg, size_t len,
    int fd)
{
}

static void
initialized_cb(void *arg, bool ok, bool more, const uint8_t *msg, size_t len,
    int fd)
{
	struct perfetto_relay_conn *conn = arg;

	if (ok)
		conn->failures = 0;
	else /* later: the end of the connection would say more */
		loop_defer(conn->classic->setup.loop, &conn->refused_call,
		    refused_cb, conn);
}

static void
command_cb(void *arg, bool ok, bool more, const uint8_t *msg, size_t len,
    int fd)
{
	struct perfetto_relay_conn *conn = arg;

	/*
	 * Shared memory of the collector's: the producer writes to the relay's.
	 */
	if (fd >= 0)
		close(fd);
	if (ok && more)
		producers_command(conn->classic->setup.producers,
		    conn->channel, msg, len);
}

static void
registered_cb(void *arg, bool ok, bool more, const uint8_t *msg, size_t len,
    int fd)
{
	struct perfetto_relay_conn *conn = arg;
	char why[256] = "";
	struct pb_reader r;
	struct pb_field f;

	if (msg == NULL)
		return; /* it is down, which is told elsewhere */
	PB_FOREACH(&f, &r, msg, len)
		if (f.number == ONE && f.wire == PB_BYTES && f.len > 0)
			utf8_escape(why, sizeof(why), (const char *)f.data,
			    f.len, "");
	if (ok && why[0] == '\0')
		return;
	log_limited(&conn->classic->log_limit, loop_now_ms(), LOG_LEVEL_WARN,
	    "the collector refused a data source of process %d: %s",
	    conn->pid, why[0] != '\0' ? why : "it does not say why");
}

/* ---- requests ---- */

static void
invoke(struct perfetto_relay_conn *conn, const char *method,
    const struct pb_writer *w, rpc_reply_fn fn)
{
	if (!w->failed)
		rpc_invoke(conn->client, method, w->data, w->len, fn, conn);
}

static void
call_bytes(struct perfetto_relay_conn *conn, const char *method,
    const void *data, size_t len, rpc_reply_fn fn)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_bytes(&w, ONE, data, len);
	invoke(conn, method, &w, fn);
	pb_writer_done(&w);
}

static void
call_number(struct perfetto_relay_conn *conn, const char *method,
    uint64_t value)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, ONE, value);
	invoke(conn, method, &w, NULL);
	pb_writer_done(&w);
}

static void
begin(struct perfetto_relay_conn *conn,
    const uint8_t *producer, size_t len)
{
	struct pb_field f, name = { 0 }, version = { 0 };
	struct pb_reader r;
	struct pb_writer w;

	PB_FOREACH(&f, &r, producer, len) {
		if (f.wire != PB_BYTES)
			continue;
		if (f.number == LinkProducer_name)
			name = f;
		else if (f.number == LinkProducer_sdk_version)
			version = f;
	}
	pb_writer_init(&w);
	pb_put_uint(&w,
	    InitializeConnectionRequest_shared_memory_page_size_hint_bytes,
	    PAGE_SIZE_HINT);
	pb_put_uint(&w,
	    InitializeConnectionRequest_shared_memory_size_hint_bytes,
	    SHM_SIZE_HINT);
	pb_put_bytes(&w, InitializeConnectionRequest_producer_name, name.data,
	    name.len);
	/* The relay scrapes. */
	pb_put_uint(&w, InitializeConnectionRequest_smb_scraping_mode,
	    InitializeConnectionRequest_SMB_SCRAPING_DISABLED);
	if (version.len > 0)
		pb_put_bytes(&w, InitializeConnectionRequest_sdk_version,
		    version.data, version.len);
	invoke(conn, "InitializeConnection", &w, initialized_cb);
	pb_writer_done(&w);
	rpc_invoke(conn->client, "GetAsyncCommand", NULL, 0, command_cb, conn);
	conn->state = PERFETTO_RELAY_OPEN;
}

void
perfetto_relay_call(struct perfetto_relay_conn *conn, enum link_up kind,
    const void *data, size_t len, uint64_t value)
{
	switch (kind) {
	case LINK_UP_REGISTER_SOURCE:
		call_bytes(conn, "RegisterDataSource", data, len,
		    registered_cb);
		break;
	case LINK_UP_UPDATE_SOURCE:
		call_bytes(conn, "UpdateDataSource", data, len, ignore_reply);
		break;
	case LINK_UP_UNREGISTER_SOURCE:
		call_bytes(conn, "UnregisterDataSource", data, len, NULL);
		break;
	case LINK_UP_REGISTER_WRITER:
		/* LinkWriter has the fields of RegisterTraceWriterRequest. */
		rpc_invoke(conn->client, "RegisterTraceWriter", data, len, NULL,
		    NULL);
		break;
	case LINK_UP_UNREGISTER_WRITER:
		call_number(conn, "UnregisterTraceWriter", value);
		break;
	case LINK_UP_STARTED:
		call_number(conn, "NotifyDataSourceStarted", value);
		break;
	case LINK_UP_STOPPED:
		call_number(conn, "NotifyDataSourceStopped", value);
		break;
	case LINK_UP_TRIGGER:
		call_bytes(conn, "ActivateTriggers", data, len, NULL);
		break;
	case LINK_UP_COMMIT: /* through reserve() */
	case LINK_UP_OPEN:
	case LINK_UP_CLOSE:
	case LINK_UP_LOSS:
	case LINK_UP_CLOSE_BELOW:
	case LINK_UP_LEAVE:
		break;
	}
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
	PB_FOREACH(&f, &r, producer, len) {
		if (f.number == LinkProducer_pid && f.wire == PB_VARINT)
			conn->pid = (int32_t)f.value;
		else if (f.number == LinkProducer_uid && f.wire == PB_VARINT)
			conn->uid = (int32_t)f.value;
	}
	hash_map_put(&c->conns, &conn->by_channel, hash_number(channel));
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
	} else if (conn->state == PERFETTO_RELAY_READY) {
		begin(conn, producer, len);
	}
}
