/* The calls of a producer, once initialize.c has taken the first of them. */
#include <stdlib.h>

#include "protos/fields.h"
#include "relay/producers/producer.h"
#include "relay/producers/producers_internal.h"
#include "relay/settings/settings.h"
#include "transport/loop/loop.h"
#include "transport/wire/pb_writer.h"

static enum rpc_verdict
commit(void *owner, const uint8_t *request, size_t len)
{
	struct local *l = owner;
	uint64_t flush_id;

	switch (local_commit(l, request, len, &flush_id)) {
	case LOCAL_COMMIT_OK:
		if (flush_id != 0)
			local_flush_acked(l, flush_id);
		return RPC_OK;
	case LOCAL_COMMIT_BAD:
		return RPC_BAD_ARGS;
	case LOCAL_COMMIT_AGAIN:
		return RPC_AGAIN;
	}
	return RPC_REJECT;
}

static void
put_writer(struct local *l, uint32_t writer, uint16_t buffer)
{
	struct local_buffer *b = local_find_buffer(l, buffer);
	struct pb_writer w;

	if (b == NULL)
		return;
	pb_writer_init(&w);
	pb_put_uint(&w, LinkWriter_writer, writer);
	pb_put_uint(&w, LinkWriter_buffer, b->remote);
	if (!w.failed)
		local_put(l, LINK_UP_REGISTER_WRITER, w.data, w.len);
	pb_writer_done(&w);
}

static void
register_writer(void *owner, uint32_t writer, uint32_t buffer)
{
	struct local *l = owner;

	if (local_find_buffer(l, buffer) == NULL)
		l->discarded += !local_buffer_was(l, buffer);
	else if (local_bind_writer(l, writer, (uint16_t)buffer))
		put_writer(l, writer, (uint16_t)buffer);
}

static void
unregister_writer(void *owner, uint32_t writer)
{
	struct local *l = owner;

	if (local_writer_buffer(l, writer) != 0 &&
	    local_bind_writer(l, writer, 0))
		local_put_value(l, LINK_UP_UNREGISTER_WRITER, writer);
}

static void
started(void *owner, uint64_t instance)
{
	struct local *l = owner;
	struct local_instance *i = local_find_instance(l, instance);

	if (i != NULL && local_instance_advance(i, LOCAL_INSTANCE_STARTED))
		local_put_value(l, LINK_UP_STARTED, i->remote);
}

static void
stopped(void *owner, uint64_t instance)
{
	struct local *l = owner;
	struct local_instance *i = local_find_instance(l, instance);

	/* A source may also stop by itself, unasked. */
	if (i != NULL && local_instance_advance(i, LOCAL_INSTANCE_STOPPED))
		local_settle(l);
}

static void
triggers(void *owner, const struct producer_trigger *t, size_t n)
{
	struct local *l = owner;
	size_t i;

	local_announce_for_trigger(l);
	for (i = 0; i < n; i++) {
		if (t[i].len <= l->owner->settings->limits.max_name_bytes)
			local_put(l, LINK_UP_TRIGGER, t[i].name, t[i].len);
		else
			local_log(l, "trigger", "its name is longer than "
			    "limits.max_name_bytes");
	}
}

static void
gone(void *owner)
{
	struct local *l = owner;

	switch (l->state) {
	case LOCAL_BOUND:
		loop_timer_free(l->talk_timer);
		free(l);
		break;
	case LOCAL_SILENT:
	case LOCAL_REFUSED:
		local_free(l);
		break;
	case LOCAL_ANNOUNCED:
		local_set_state(l, LOCAL_ENDED);
		local_settle(l);
		break;
	case LOCAL_ENDED:
		break;
	}
}

static const struct producer_verbs verbs = {
	.gone = gone,
	.initialize = local_initialize,
	.rate_limit = local_rate_limit,
	.register_source = local_register,
	.update_source = local_update,
	.unregister_source = local_unregister,
	.commit = commit,
	.register_writer = register_writer,
	.unregister_writer = unregister_writer,
	.started = started,
	.stopped = stopped,
	.triggers = triggers,
};

static void *
bind_port(struct rpc_conn *c, void *arg)
{
	struct producers *ps = arg;
	struct local *l;

	if ((l = calloc(1, sizeof(*l))) == NULL)
		return NULL;
	l->owner = ps;
	producer_server_init(&l->server, &(struct producer_server_setup){
		.verbs = &verbs,
		.owner = l,
		.conn = c,
		.refusals = &ps->refusals,
		.max_queue =
		    (size_t)ps->settings->limits.max_send_queue_kb * 1024,
	});
	l->patch_credit = LOCAL_PATCH_CREDIT;
	TAILQ_INIT(&l->sources);
	TAILQ_INIT(&l->instances);
	TAILQ_INIT(&l->flushes);
	return &l->server;
}

void
local_port_init(struct rpc_service *out, struct producers *ps)
{
	producer_server_service(out, false, bind_port, ps);
}
