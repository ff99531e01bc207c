#include "relay/perfetto/perfetto_relay_internal.h"

#include <unistd.h>

#include "protos/utf8.h"
#include "relay/producers/producers.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_client.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* LinkProducer. */
enum { PRODUCER_NAME = 1, PRODUCER_SDK_VERSION = 4 };

/* InitializeConnectionRequest (reference wire-format.md). */
enum {
	INIT_PAGE_SIZE_HINT = 1,
	INIT_SHM_SIZE_HINT = 2,
	INIT_NAME = 3,
	INIT_SCRAPING = 4,
	INIT_SDK_VERSION = 8,
};
#define SCRAPING_DISABLED 2 /* the relay does that */
/* What a service without memory of ours makes of it plays no part. */
#define PAGE_SIZE_HINT 4096u
#define SHM_SIZE_HINT  (256u * 1024u)

/* The one field of most requests, and of RegisterDataSourceResponse. */
enum { ONE = 1 };

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
	else
		perfetto_relay_conn_refused(conn);
}

static void
command_cb(void *arg, bool ok, bool more, const uint8_t *msg, size_t len,
    int fd)
{
	struct perfetto_relay_conn *conn = arg;

	/* Memory of the collector's: it is ours that is written to. */
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
	pb_init(&r, msg, len);
	while (pb_next(&r, &f))
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
		rpc_invoke(conn->client, method, w->data, w->len, -1, fn,
		    conn);
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

void
perfetto_relay_call_begin(struct perfetto_relay_conn *conn,
    const uint8_t *producer, size_t len)
{
	struct pb_field f, name = { 0 }, version = { 0 };
	struct pb_reader r;
	struct pb_writer w;

	pb_init(&r, producer, len);
	while (pb_next(&r, &f)) {
		if (f.wire != PB_BYTES)
			continue;
		if (f.number == PRODUCER_NAME)
			name = f;
		else if (f.number == PRODUCER_SDK_VERSION)
			version = f;
	}
	pb_writer_init(&w);
	pb_put_uint(&w, INIT_PAGE_SIZE_HINT, PAGE_SIZE_HINT);
	pb_put_uint(&w, INIT_SHM_SIZE_HINT, SHM_SIZE_HINT);
	pb_put_bytes(&w, INIT_NAME, name.data, name.len);
	pb_put_uint(&w, INIT_SCRAPING, SCRAPING_DISABLED);
	if (version.len > 0)
		pb_put_bytes(&w, INIT_SDK_VERSION, version.data, version.len);
	invoke(conn, "InitializeConnection", &w, initialized_cb);
	pb_writer_done(&w);
	rpc_invoke(conn->client, "GetAsyncCommand", NULL, 0, -1, command_cb,
	    conn);
	conn->opened = true;
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
		rpc_invoke(conn->client, "RegisterTraceWriter", data, len, -1,
		    NULL, NULL);
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
		break;
	}
}
