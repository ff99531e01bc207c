#include "client/library/trigger_call.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "protos/fields.h"
#include "transport/connect/dial.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_client.h"
#include "transport/socket/addr.h"
#include "transport/wire/pb_writer.h"

struct trigger_call {
	struct loop *loop;
	struct rpc_client *rpc; /* owned */
	struct loop_timer *late;
	const char *const *names;
	size_t n;
	const char *producer;
	trigger_call_fn fn; /* NULL: the outcome was told */
	void *arg;
	struct loop_call refused_call;
};

static void
tell(struct trigger_call *t, const char *why)
{
	trigger_call_fn fn = t->fn;

	t->fn = NULL;
	if (fn != NULL)
		fn(t->arg, why);
}

static void
refused_cb(void *arg)
{
	tell(arg, "the collector does not take triggers from us");
}

static void
activated_cb(void *arg, bool ok, bool more, const uint8_t *msg, size_t len,
    int fd)
{
	struct trigger_call *t = arg;

	if (fd >= 0)
		close(fd);
	if (ok)
		tell(t, NULL);
	else /* down_cb(), which says more, may come first and cancels this */
		loop_defer(t->loop, &t->refused_call, refused_cb, t);
}

static void
ready_cb(struct rpc_client *rpc, void *arg)
{
	struct trigger_call *t = arg;
	struct pb_writer w;
	size_t i;

	pb_writer_init(&w);
	pb_put_string(&w, InitializeConnectionRequest_producer_name,
	    t->producer);
	rpc_invoke(rpc, "InitializeConnection", w.data, w.len, NULL, NULL);
	pb_writer_reset(&w);
	for (i = 0; i < t->n; i++)
		pb_put_string(&w, ActivateTriggersRequest_trigger_names,
		    t->names[i]);
	if (w.failed)
		loop_defer(t->loop, &t->refused_call, refused_cb, t);
	else
		rpc_invoke(rpc, "ActivateTriggers", w.data, w.len, activated_cb,
		    t);
	pb_writer_done(&w);
}

static void
down_cb(struct rpc_client *rpc, const char *text, void *arg)
{
	struct trigger_call *t = arg;

	loop_cancel(t->loop, t);
	tell(t, text);
}

static const struct rpc_client_ops rpc_ops = {
	.ready = ready_cb,
	.down = down_cb,
};

static void
late_cb(void *arg)
{
	tell(arg, "the collector does not answer");
}

struct trigger_call *
trigger_call_new(struct loop *l, const struct trigger_call_setup *setup,
    char *err, size_t err_size)
{
	struct trigger_call *t;

	snprintf(err, err_size, "out of memory");
	if ((t = calloc(1, sizeof(*t))) == NULL)
		return NULL;
	t->loop = l;
	t->names = setup->names;
	t->n = setup->n;
	t->producer = setup->producer != NULL ? setup->producer :
	    TRIGGER_CALL_PRODUCER;
	t->fn = setup->fn;
	t->arg = setup->arg;
	if ((t->late = loop_timer_new(l, late_cb, t)) == NULL)
		goto fail;
	t->rpc = rpc_client_new(l, &(struct rpc_client_setup){
	    .addr = setup->addr, .how = setup->how, .service = "ProducerPort",
	    .ops = &rpc_ops, .arg = t }, err, err_size);
	if (t->rpc == NULL)
		goto fail;
	rpc_client_set_own_identity(t->rpc, NULL);
	loop_timer_set(t->late, setup->timeout_ms != 0 ? setup->timeout_ms :
	    TRIGGER_CALL_MS, 0);
	return t;

fail:
	trigger_call_free(t);
	return NULL;
}

void
trigger_call_free(struct trigger_call *t)
{
	if (t == NULL)
		return;
	loop_cancel(t->loop, t);
	rpc_client_free(t->rpc);
	loop_timer_free(t->late);
	free(t);
}
