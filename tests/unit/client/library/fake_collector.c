#include "tests/unit/client/library/fake_collector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "transport/connect/listener.h"
#include "transport/loop/loop.h"
#include "transport/socket/addr.h"

/* Notes the call; true when it is one to refuse. */
static bool
note(struct fake_collector *f, struct rpc_call call, const char *name,
    const uint8_t *args, size_t len)
{
	size_t used = strlen(f->calls);
	int fd;

	snprintf(f->calls + used, sizeof(f->calls) - used, "%s ", name);
	pb_writer_reset(&f->args);
	pb_put_raw(&f->args, args, len);
	if ((fd = rpc_take_fd(call)) >= 0) {
		if (f->fd >= 0)
			close(f->fd);
		f->fd = fd;
	}
	return f->refuse != NULL && strcmp(f->refuse, name) == 0;
}

static void
reply_empty(struct rpc_call call)
{
	rpc_reply(call, NULL, 0, false, -1);
}

void
fake_collector_end_session(struct fake_collector *f)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, 1, 1); /* disabled */
	if (f->enable_error != NULL)
		pb_put_string(&w, 3, f->enable_error);
	rpc_reply(f->enable, w.data, w.len, false, -1);
	pb_writer_done(&w);
}

static enum rpc_verdict
enable_tracing(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct fake_collector *f = ctx;

	if (note(f, call, "EnableTracing", args, len))
		return RPC_REJECT;
	pb_writer_reset(&f->config);
	pb_put_raw(&f->config, args, len);
	f->enable = call;
	if (f->enable_error != NULL)
		fake_collector_end_session(f);
	return RPC_OK;
}

static enum rpc_verdict
disable_tracing(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct fake_collector *f = ctx;

	if (note(f, call, "DisableTracing", args, len))
		return RPC_REJECT;
	reply_empty(call);
	if (!f->hold_disable)
		fake_collector_end_session(f);
	return RPC_OK;
}

void
fake_collector_packet(uint8_t *out, unsigned n, size_t len)
{
	memset(out, (int)(n & 0x7f), len);
	out[0] = 7 << 3 | 2; /* sys_stats */
	out[1] = (uint8_t)((len - 4) | 0x80);
	out[2] = (uint8_t)((len - 4) >> 7 | 0x80);
	out[3] = (uint8_t)((len - 4) >> 14);
	memcpy(out + 4, &n, sizeof(n));
}

/* One packet in as many replies as its slices need. */
static void
send_packet(struct fake_collector *f, struct rpc_call call, bool more)
{
	uint8_t *packet = malloc(f->packet_bytes);
	size_t at, n, slice, step = f->slice_bytes;
	struct pb_writer w;

	fake_collector_packet(packet, ++f->packets_sent, f->packet_bytes);
	if (step == 0)
		step = f->packet_bytes;
	for (at = 0; at < f->packet_bytes; at += n) {
		n = f->packet_bytes - at < step ? f->packet_bytes - at : step;
		pb_writer_init(&w);
		slice = pb_nest_begin(&w, 2);
		pb_put_bytes(&w, 1, packet + at, n);
		if (at + n == f->packet_bytes && !(f->cut_last && !more))
			pb_put_uint(&w, 2, 1);
		pb_nest_end(&w, slice);
		rpc_reply(call, w.data, w.len,
		    more || at + n < f->packet_bytes, -1);
		pb_writer_done(&w);
	}
	free(packet);
}

void
fake_collector_send(struct fake_collector *f, struct rpc_call call, unsigned n,
    bool more)
{
	if (n == 0 && !more)
		reply_empty(call);
	for (; n > 0; n--)
		send_packet(f, call, more || n > 1);
}

static enum rpc_verdict
read_buffers(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct fake_collector *f = ctx;
	unsigned n = f->read_packets;

	if (note(f, call, "ReadBuffers", args, len))
		return RPC_REJECT;
	f->read = call;
	f->read_packets = 0; /* reading consumes */
	fake_collector_send(f, call, n, f->hold_read);
	return RPC_OK;
}

static enum rpc_verdict
flush(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct fake_collector *f = ctx;

	if (note(f, call, "Flush", args, len))
		return RPC_REJECT;
	if (!f->hold_flush)
		reply_empty(call);
	return RPC_OK;
}

static enum rpc_verdict
start_tracing(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	if (note(ctx, call, "StartTracing", args, len))
		return RPC_REJECT;
	reply_empty(call);
	return RPC_OK;
}

static enum rpc_verdict
free_buffers(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	if (note(ctx, call, "FreeBuffers", args, len))
		return RPC_REJECT;
	reply_empty(call);
	return RPC_OK;
}

static enum rpc_verdict
detach(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	if (note(ctx, call, "Detach", args, len))
		return RPC_REJECT;
	reply_empty(call);
	return RPC_OK;
}

static enum rpc_verdict
attach(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct pb_writer w;
	size_t config;

	if (note(ctx, call, "Attach", args, len))
		return RPC_REJECT;
	pb_writer_init(&w);
	config = pb_nest_begin(&w, 1);
	pb_put_uint(&w, 3, 1234); /* duration_ms */
	if (((struct fake_collector *)ctx)->attach_writes)
		pb_put_uint(&w, 8, 1); /* write_into_file */
	pb_nest_end(&w, config);
	rpc_reply(call, w.data, w.len, false, -1);
	pb_writer_done(&w);
	return RPC_OK;
}

/* GetTraceStats: 5 chunks of 600 bytes, 1 lost, from 2 producers. */
static enum rpc_verdict
get_trace_stats(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct pb_writer w;
	size_t stats, buffer;

	if (note(ctx, call, "GetTraceStats", args, len))
		return RPC_REJECT;
	pb_writer_init(&w);
	stats = pb_nest_begin(&w, 1);
	buffer = pb_nest_begin(&w, 1);
	pb_put_uint(&w, 1, 3000); /* bytes_written */
	pb_put_uint(&w, 2, 5);    /* chunks_written */
	pb_put_uint(&w, 3, 1);    /* chunks_overwritten */
	pb_nest_end(&w, buffer);
	pb_put_uint(&w, 2, 2);    /* producers_connected */
	pb_nest_end(&w, stats);
	rpc_reply(call, w.data, w.len, false, -1);
	pb_writer_done(&w);
	return RPC_OK;
}

/* QueryServiceState: two producers with a data source each, in two parts. */
static enum rpc_verdict
query_service_state(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	static const char *const names[] = { "one", "two" };
	struct pb_writer w;
	size_t state, m, d;
	unsigned i;

	if (note(ctx, call, "QueryServiceState", args, len))
		return RPC_REJECT;
	for (i = 0; i < 2; i++) {
		pb_writer_init(&w);
		state = pb_nest_begin(&w, 1);
		m = pb_nest_begin(&w, 1); /* producer */
		pb_put_uint(&w, 1, i + 1);
		pb_put_string(&w, 2, names[i]);
		pb_put_uint(&w, 5, 100 + i); /* pid */
		pb_nest_end(&w, m);
		m = pb_nest_begin(&w, 2); /* data source */
		d = pb_nest_begin(&w, 1);
		pb_put_string(&w, 1, names[i]);
		pb_nest_end(&w, d);
		pb_put_uint(&w, 2, i + 1);
		pb_nest_end(&w, m);
		pb_nest_end(&w, state);
		rpc_reply(call, w.data, w.len, i == 0, -1);
		pb_writer_done(&w);
	}
	return RPC_OK;
}

static enum rpc_verdict
observe_events(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct fake_collector *f = ctx;

	if (note(f, call, "ObserveEvents", args, len))
		return RPC_REJECT;
	f->observe = call;
	return RPC_OK;
}

static enum rpc_verdict
clone_session(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct pb_writer w;

	pb_writer_init(&w);
	if (note(ctx, call, "CloneSession", args, len)) {
		pb_put_uint(&w, 1, 0);
		pb_put_string(&w, 2, "no such session");
	} else {
		pb_put_uint(&w, 1, 1);
	}
	rpc_reply(call, w.data, w.len, false, -1);
	pb_writer_done(&w);
	return RPC_OK;
}

static const struct rpc_method methods[] = {
	{ "EnableTracing", enable_tracing },
	{ "DisableTracing", disable_tracing },
	{ "ReadBuffers", read_buffers },
	{ "FreeBuffers", free_buffers },
	{ "Flush", flush },
	{ "StartTracing", start_tracing },
	{ "Detach", detach },
	{ "Attach", attach },
	{ "GetTraceStats", get_trace_stats },
	{ "ObserveEvents", observe_events },
	{ "QueryServiceState", query_service_state },
	{ "CloneSession", clone_session },
};

static void *
bind_cb(struct rpc_conn *c, void *arg)
{
	return arg;
}

static void
gone_cb(void *ctx)
{
	struct fake_collector *f = ctx;

	f->conn = NULL;
}

/* One collector a test, and one test at a time. */
static struct rpc_service service = {
	.name = "ConsumerPort",
	.methods = methods,
	.n_methods = sizeof(methods) / sizeof(methods[0]),
	.bind = bind_cb,
	.gone = gone_cb,
};
static const struct rpc_service *const services[] = { &service };

static void
accept_cb(struct listener *l, int fd, void *arg)
{
	struct fake_collector *f = arg;

	f->conn = rpc_conn_new(f->loop, fd, &(struct rpc_conn_setup){
	    .services = services, .n_services = 1, .stats = &f->stats });
	assert_non_null(f->conn);
	/* It sends all it has at once, however slowly the client takes it. */
	rpc_conn_set_limits(f->conn, 64u << 20, 1u << 20);
}

void
fake_collector_init(struct fake_collector *f, struct loop *l, const char *path)
{
	struct addr a;
	char err[200];

	memset(f, 0, sizeof(*f));
	f->loop = l;
	f->fd = -1;
	f->packet_bytes = 100;
	pb_writer_init(&f->args);
	pb_writer_init(&f->config);
	service.arg = f;
	assert_int_equal(addr_parse(&a, path, err, sizeof(err)), 0);
	f->listener = listener_new(l, &(struct listener_setup){ .addr = &a,
	    .fn = accept_cb, .arg = f }, err, sizeof(err));
	assert_non_null(f->listener);
}

void
fake_collector_done(struct fake_collector *f)
{
	if (f->conn != NULL)
		rpc_conn_close(f->conn, "the test is over");
	while (f->conn != NULL)
		loop_run_once(f->loop);
	listener_free(f->listener);
	if (f->fd >= 0)
		close(f->fd);
	pb_writer_done(&f->args);
	pb_writer_done(&f->config);
}
