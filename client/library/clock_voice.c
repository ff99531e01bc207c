#include "client/library/clock_voice.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "protos/fields.h"
#include "transport/base/backoff.h"
#include "transport/base/log.h"
#include "transport/clock/system_info.h"
#include "transport/clock/this_machine.h"
#include "transport/connect/dial.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_client.h"
#include "transport/rpc/sync_clock.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"
#include "transport/wire/service_names.h"

/* From one measurement to the next. */
#define PERIOD_MS 30000u
#define RETRY_FIRST_MS 100u
#define RETRY_LAST_MS  10000u

struct clock_voice {
	struct loop *loop;
	struct clock_voice_setup setup;
	struct rpc_client *rpc; /* NULL: waits for the next attempt */
	struct sync_clock *clocks; /* NULL: not to be measured */
	struct loop_timer *retry;
	unsigned failures; /* in a row */
};

/* In this order: a pending reply still uses clocks. */
static void
disconnect(struct clock_voice *v)
{
	if (v->rpc != NULL)
		rpc_client_free(v->rpc);
	v->rpc = NULL;
	sync_clock_free(v->clocks);
	v->clocks = NULL;
}

static void
try_later(struct clock_voice *v, const char *why)
{
	log_debug("the clocks are not measured: %s", why);
	disconnect(v);
	loop_timer_set(v->retry, backoff_ms(++v->failures, RETRY_FIRST_MS,
	    RETRY_LAST_MS, (uint32_t)loop_boottime_ns()), 0);
}

static void
introduced_cb(void *arg, bool ok, bool more, const uint8_t *msg, size_t len,
    int fd)
{
	struct clock_voice *v = arg;
	struct pb_reader r;
	struct pb_field f;
	bool wanted = false;

	if (fd >= 0)
		close(fd);
	PB_FOREACH(&f, &r, msg, ok ? len : 0)
		if (f.number == PRODUCER_MACHINE_TO_BE_MEASURED &&
		    f.wire == PB_VARINT)
			wanted = f.value != 0;
	if (!wanted || v->clocks != NULL)
		return;
	v->clocks = sync_clock_new(v->loop, v->rpc, PRODUCER_SYNC_CLOCK,
	    PERIOD_MS);
	if (v->clocks == NULL)
		log_warn("no memory or no descriptor to measure the service's "
		    "clocks: timestamps may be off");
}

/* Perfetto's service has no such method, and measures no clocks. */
static void
introduce(struct clock_voice *v)
{
	struct pb_writer w;
	char host[256];

	if (!rpc_client_offers(v->rpc, PRODUCER_INIT_MACHINE))
		return;
	this_machine_name(host, sizeof(host));
	pb_writer_init(&w);
	system_info_introduce(&w, v->setup.machine_name != NULL ?
	    v->setup.machine_name : host);
	if (!w.failed)
		rpc_invoke(v->rpc, PRODUCER_INIT_MACHINE, w.data, w.len,
		    introduced_cb, v);
	pb_writer_done(&w);
}

static void
initialized_cb(void *arg, bool ok, bool more, const uint8_t *msg, size_t len,
    int fd)
{
	struct clock_voice *v = arg;

	if (fd >= 0)
		close(fd);
	if (!ok) {
		try_later(v, "the service refused the connection");
		return;
	}
	v->failures = 0;
	introduce(v);
}

static void
ready_cb(struct rpc_client *rpc, void *arg)
{
	struct clock_voice *v = arg;
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_string(&w, InitializeConnectionRequest_producer_name,
	    v->setup.name);
	rpc_invoke(rpc, "InitializeConnection", w.data, w.failed ? 0 : w.len,
	    initialized_cb, v);
	pb_writer_done(&w);
}

static void
down_cb(struct rpc_client *rpc, const char *text, void *arg)
{
	try_later(arg, text);
}

static const struct rpc_client_ops rpc_ops = {
	.ready = ready_cb,
	.down = down_cb,
};

static void
connect_now(void *arg)
{
	struct clock_voice *v = arg;
	char err[DIAL_TEXT_MAX];

	v->rpc = rpc_client_new(v->loop, &(struct rpc_client_setup){
	    .addr = v->setup.to, .how = v->setup.how,
	    .service = "ProducerPort", .ops = &rpc_ops, .arg = v }, err,
	    sizeof(err));
	if (v->rpc != NULL)
		rpc_client_set_own_identity(v->rpc, v->setup.machine_name);
	else
		try_later(v, err);
}

struct clock_voice *
clock_voice_new(struct loop *l, const struct clock_voice_setup *setup)
{
	struct clock_voice *v;

	if ((v = calloc(1, sizeof(*v))) == NULL)
		return NULL;
	v->loop = l;
	v->setup = *setup;
	if ((v->retry = loop_timer_new(l, connect_now, v)) == NULL) {
		free(v);
		return NULL;
	}
	loop_timer_set(v->retry, 0, 0);
	return v;
}

void
clock_voice_free(struct clock_voice *v)
{
	if (v == NULL)
		return;
	disconnect(v);
	loop_timer_free(v->retry);
	free(v);
}
