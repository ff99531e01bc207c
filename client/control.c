#include "client/control.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "protos/control.pb-c.h"
#include "transport/addr.h"
#include "transport/dial.h"
#include "transport/loop.h"
#include "transport/pb_writer.h"
#include "transport/rpc_client.h"

struct control {
	struct loop *loop;
	struct rpc_client *rpc;
	control_machines_fn fn;
	void *arg;
	struct pb_writer answer; /* parts of a message make a message */
	bool asked;
	char failure[256];
};

static void
tell(struct control *c, const Tributary__QueryMachinesReply *reply,
    const char *why)
{
	control_machines_fn fn = c->fn;

	c->fn = NULL;
	if (fn != NULL)
		fn(c->arg, reply, why);
}

static void
refused_cb(void *arg)
{
	struct control *c = arg;

	tell(c, NULL, c->failure);
}

/* As down() follows when the connection ended, which says more. */
static void
refuse_later(struct control *c, const char *why)
{
	snprintf(c->failure, sizeof(c->failure), "%s", why);
	loop_defer(c->loop, refused_cb, c);
}

static void
reply_cb(void *arg, bool ok, bool more, const uint8_t *msg, size_t len, int fd)
{
	Tributary__QueryMachinesReply *reply;
	struct control *c = arg;

	if (fd >= 0)
		close(fd);
	if (c->fn == NULL)
		return;
	if (!ok) {
		refuse_later(c, "the collector does not say which machines it "
		    "knows");
		return;
	}
	pb_put_raw(&c->answer, msg, len);
	if (c->answer.failed || c->answer.len > CONTROL_MAX_ANSWER) {
		refuse_later(c, "the collector's answer is too long");
		return;
	}
	if (more)
		return;
	reply = tributary__query_machines_reply__unpack(NULL, c->answer.len,
	    c->answer.data);
	tell(c, reply, reply != NULL ? NULL : "the collector's answer makes "
	    "no sense");
	if (reply != NULL)
		tributary__query_machines_reply__free_unpacked(reply, NULL);
}

static void
ready_cb(struct rpc_client *rpc, void *arg)
{
	struct control *c = arg;

	c->asked = true;
	rpc_invoke(rpc, "QueryMachines", NULL, 0, -1, reply_cb, c);
}

static void
down_cb(struct rpc_client *rpc, const char *text, void *arg)
{
	struct control *c = arg;

	loop_cancel(c->loop, c);
	tell(c, NULL, text);
}

static const struct rpc_client_ops rpc_ops = {
	.ready = ready_cb,
	.down = down_cb,
};

struct control *
control_query_machines(struct loop *l, const struct addr *a,
    const struct dial_options *how, control_machines_fn fn, void *arg,
    char *err, size_t err_size)
{
	struct control *c;

	if ((c = calloc(1, sizeof(*c))) == NULL) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	c->loop = l;
	c->fn = fn;
	c->arg = arg;
	pb_writer_init(&c->answer);
	c->rpc = rpc_client_new(l, a, how, "TributaryControl", &rpc_ops, c,
	    err, err_size);
	if (c->rpc == NULL) {
		free(c);
		return NULL;
	}
	return c;
}

void
control_free(struct control *c)
{
	if (c == NULL)
		return;
	loop_cancel(c->loop, c);
	rpc_client_free(c->rpc);
	pb_writer_done(&c->answer);
	free(c);
}
