#include "client/library/consumer_loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/tracing/consumer/consumer.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_client.h"

/* The consumer's wire; freed with it. */
struct wire {
	struct loop *loop;
	struct rpc_client *rpc;    /* owned */
	struct consumer *consumer; /* owner */
	struct loop_call failed_call;
};

static void
reply_cb(void *arg, bool ok, bool more, const uint8_t *msg, size_t len, int fd)
{
	if (fd >= 0)
		close(fd);
	consumer_wire_reply(arg, ok, more, msg, len);
}

static bool
invoke(void *wire, const struct consumer_request *r)
{
	struct wire *w = wire;

	rpc_invoke_with(w->rpc, &(struct rpc_request){
	    .method = consumer_method_name(r->method), .args = r->args,
	    .len = r->len, .fd = r->fd, .fn = reply_cb, .arg = r->call });
	return true;
}

static void
pause_reading(void *wire, bool paused)
{
	struct wire *w = wire;

	if (paused)
		rpc_client_pause(w->rpc);
	else
		rpc_client_resume(w->rpc);
}

static void
failed_cb(void *arg)
{
	struct wire *w = arg;

	consumer_wire_failed(w->consumer);
}

static void
failed(void *wire)
{
	struct wire *w = wire;

	loop_defer(w->loop, &w->failed_call, failed_cb, w);
}

static void
close_wire(void *wire)
{
	struct wire *w = wire;

	loop_cancel(w->loop, w);
	rpc_client_free(w->rpc);
	free(w);
}

static const struct consumer_wire wire_ops = {
	.invoke = invoke,
	.pause = pause_reading,
	.failed = failed,
	.close = close_wire,
};

static void
ready_cb(struct rpc_client *rpc, void *arg)
{
	struct wire *w = arg;

	consumer_wire_up(w->consumer, rpc_client_can_pass_fds(rpc));
}

static void
down_cb(struct rpc_client *rpc, const char *text, void *arg)
{
	struct wire *w = arg;

	loop_cancel(w->loop, w); /* text says why: no consumer_wire_failed() */
	consumer_wire_down(w->consumer, text);
}

static const struct rpc_client_ops rpc_ops = {
	.ready = ready_cb,
	.down = down_cb,
};

struct consumer *
consumer_loop_new(struct loop *l, const struct consumer_loop_setup *setup,
    char *err, size_t err_size)
{
	struct consumer_setup with = { .ops = setup->ops, .arg = setup->arg,
	    .wire_ops = &wire_ops };
	struct wire *w;

	snprintf(err, err_size, "out of memory");
	if ((w = calloc(1, sizeof(*w))) == NULL)
		return NULL;
	w->loop = l;
	with.wire = w;
	if ((w->consumer = consumer_new(&with)) == NULL) {
		free(w);
		return NULL;
	}
	w->rpc = rpc_client_new(l, &(struct rpc_client_setup){
	    .addr = setup->address, .how = setup->how,
	    .service = "ConsumerPort", .ops = &rpc_ops, .arg = w },
	    err, err_size);
	if (w->rpc == NULL) {
		consumer_free(w->consumer);
		return NULL;
	}
	return w->consumer;
}
