#include <stdlib.h>

#include "transport/loop/loop.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"
#include "relay/producers/producer.h"
#include "relay/producers/producers_internal.h"
#include "relay/settings/settings.h"

static enum rpc_verdict
done(struct rpc_call call)
{
	rpc_reply(call, NULL, 0, false, -1);
	return RPC_OK;
}

/*
 * The last bytes field `number` of a message; false when the message does not
 * parse.  *data stays NULL when the field is absent.
 */
static bool
bytes_field(const uint8_t *args, size_t len, uint32_t number,
    const uint8_t **data, size_t *data_len)
{
	struct pb_reader r;
	struct pb_field f;

	*data = NULL;
	*data_len = 0;
	pb_init(&r, args, len);
	while (pb_next(&r, &f)) {
		if (f.number != number)
			continue;
		if (f.wire != PB_BYTES)
			return false;
		*data = f.data;
		*data_len = f.len;
	}
	return !r.bad;
}

static bool
uint_fields(const uint8_t *args, size_t len, uint64_t *one, uint64_t *two)
{
	struct pb_reader r;
	struct pb_field f;

	*one = *two = 0;
	pb_init(&r, args, len);
	while (pb_next(&r, &f)) {
		if (f.number > 2)
			continue;
		if (f.wire != PB_VARINT)
			return false;
		*(f.number == 1 ? one : two) = f.value;
	}
	return !r.bad;
}

static enum rpc_verdict
register_data_source(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct local *l = ctx;
	const uint8_t *desc;
	const char *error;
	struct pb_writer w;
	size_t n;

	if (l->channel == 0)
		return RPC_REJECT;
	if (!bytes_field(args, len, 1, &desc, &n))
		return RPC_BAD_ARGS;
	if (!local_may_talk(l))
		return RPC_AGAIN;
	error = local_register(l, desc, n);
	pb_writer_init(&w);
	if (error != NULL) {
		local_log(l, "data source", error);
		pb_put_string(&w, 1, error);
	}
	rpc_reply_written(call, &w);
	pb_writer_done(&w);
	return RPC_OK;
}

static enum rpc_verdict
update_data_source(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct local *l = ctx;
	const uint8_t *desc;
	size_t n;

	if (l->channel == 0)
		return RPC_REJECT;
	if (!bytes_field(args, len, 1, &desc, &n))
		return RPC_BAD_ARGS;
	if (!local_may_talk(l))
		return RPC_AGAIN;
	local_update(l, desc, n);
	return done(call);
}

static enum rpc_verdict
unregister_data_source(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct local *l = ctx;
	const uint8_t *name;
	size_t n;

	if (l->channel == 0)
		return RPC_REJECT;
	if (!bytes_field(args, len, 1, &name, &n))
		return RPC_BAD_ARGS;
	if (!local_may_talk(l))
		return RPC_AGAIN;
	if (name != NULL)
		local_unregister(l, (const char *)name, n);
	return done(call);
}

static enum rpc_verdict
commit(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct local *l = ctx;

	if (UNLIKELY(l->channel == 0))
		return RPC_REJECT;
	switch (local_commit(l, args, len)) {
	case LOCAL_COMMIT_OK:
		return call.wants_reply ? done(call) : RPC_OK;
	case LOCAL_COMMIT_BAD:
		return RPC_BAD_ARGS;
	case LOCAL_COMMIT_AGAIN:
		return RPC_AGAIN;
	}
	return RPC_REJECT;
}

static enum rpc_verdict
get_async_command(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct local *l = ctx;

	if (l->channel == 0)
		return RPC_REJECT;
	if (!pb_well_formed(args, len))
		return RPC_BAD_ARGS;
	local_send_to(l, call);
	return RPC_OK;
}

static void
put_writer(struct local *l, uint32_t writer, uint16_t buffer)
{
	struct local_buffer *b = local_find_buffer(l, buffer);
	struct pb_writer w;

	if (b == NULL)
		return;
	pb_writer_init(&w);
	pb_put_uint(&w, 1, writer);
	pb_put_uint(&w, 2, b->remote);
	if (!w.failed)
		local_put(l, LINK_UP_REGISTER_WRITER, w.data, w.len);
	pb_writer_done(&w);
}

static enum rpc_verdict
register_writer(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct local *l = ctx;
	uint64_t writer, buffer;

	if (l->channel == 0)
		return RPC_REJECT;
	if (!uint_fields(args, len, &writer, &buffer))
		return RPC_BAD_ARGS;
	if (!local_may_talk(l))
		return RPC_AGAIN;
	if (local_find_buffer(l, (uint32_t)buffer) == NULL)
		l->discarded += !local_buffer_was(l, (uint32_t)buffer);
	else if (local_bind_writer(l, (uint32_t)writer, (uint16_t)buffer))
		put_writer(l, (uint32_t)writer, (uint16_t)buffer);
	return done(call);
}

static enum rpc_verdict
unregister_writer(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct local *l = ctx;
	uint64_t writer, none;

	if (l->channel == 0)
		return RPC_REJECT;
	if (!uint_fields(args, len, &writer, &none))
		return RPC_BAD_ARGS;
	if (!local_may_talk(l))
		return RPC_AGAIN;
	if (local_writer_buffer(l, (uint32_t)writer) != 0 &&
	    local_bind_writer(l, (uint32_t)writer, 0))
		local_put_value(l, LINK_UP_UNREGISTER_WRITER, writer);
	return done(call);
}

static enum rpc_verdict
notify_started(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct local *l = ctx;
	struct local_instance *i;
	uint64_t id, none;

	if (l->channel == 0)
		return RPC_REJECT;
	if (!uint_fields(args, len, &id, &none))
		return RPC_BAD_ARGS;
	if ((i = local_find_instance(l, id)) != NULL && !i->started) {
		i->started = true;
		local_put_value(l, LINK_UP_STARTED, i->remote);
	}
	return done(call);
}

static enum rpc_verdict
notify_stopped(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct local *l = ctx;
	struct local_instance *i;
	uint64_t id, none;

	if (l->channel == 0)
		return RPC_REJECT;
	if (!uint_fields(args, len, &id, &none))
		return RPC_BAD_ARGS;
	if ((i = local_find_instance(l, id)) != NULL && !i->stopped) {
		i->stopped = true;
		local_settle(l);
	}
	return done(call);
}

static enum rpc_verdict
activate_triggers(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct local *l = ctx;
	struct pb_reader r;
	struct pb_field f;
	size_t names = 0;

	if (l->channel == 0)
		return RPC_REJECT;
	pb_init(&r, args, len);
	while (pb_next(&r, &f)) {
		if (f.number == 1 && f.wire != PB_BYTES)
			return RPC_BAD_ARGS;
		names += f.number == 1;
	}
	if (r.bad)
		return RPC_BAD_ARGS;
	if (names > LOCAL_TRIGGERS_PER_CALL)
		return RPC_REJECT;
	if (!local_may_talk(l))
		return RPC_AGAIN;
	if (names > 0)
		local_announce_for_trigger(l);
	pb_init(&r, args, len);
	while (pb_next(&r, &f)) {
		if (f.number != 1)
			continue;
		if (f.len <= l->owner->settings->limits.max_name_bytes)
			local_put(l, LINK_UP_TRIGGER, f.data, f.len);
		else
			local_log(l, "trigger", "its name is longer than "
			    "limits.max_name_bytes");
	}
	return done(call);
}

static enum rpc_verdict
sync_call(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct local *l = ctx;

	if (l->channel == 0)
		return RPC_REJECT;
	return pb_well_formed(args, len) ? done(call) : RPC_BAD_ARGS;
}

/* In the order of wire-format.md: ids are position + 1. */
static const struct rpc_method methods[] = {
	{ "InitializeConnection", local_initialize },
	{ "RegisterDataSource", register_data_source },
	{ "UnregisterDataSource", unregister_data_source },
	{ "CommitData", commit },
	{ "GetAsyncCommand", get_async_command },
	{ "RegisterTraceWriter", register_writer },
	{ "UnregisterTraceWriter", unregister_writer },
	{ "NotifyDataSourceStarted", notify_started },
	{ "NotifyDataSourceStopped", notify_stopped },
	{ "ActivateTriggers", activate_triggers },
	{ "Sync", sync_call },
	{ "UpdateDataSource", update_data_source },
};

static void *
bind_port(struct rpc_conn *c, void *arg)
{
	struct producers *ps = arg;
	struct local *l;

	if ((l = calloc(1, sizeof(*l))) == NULL)
		return NULL;
	l->owner = ps;
	l->conn = c;
	l->patch_credit = LOCAL_PATCH_CREDIT;
	TAILQ_INIT(&l->queue);
	TAILQ_INIT(&l->sources);
	TAILQ_INIT(&l->instances);
	TAILQ_INIT(&l->flushes);
	rpc_conn_set_limits(c,
	    (size_t)ps->settings->limits.max_send_queue_kb * 1024, 0);
	return l;
}

static void
gone(void *ctx)
{
	struct local *l = ctx;

	l->conn = NULL;
	local_send_nothing(l);
	if (l->channel == 0) {
		loop_timer_free(l->talk_timer); /* it waited to begin */
		free(l);
	} else {
		local_settle(l);
	}
}

void
local_port_init(struct rpc_service *out, struct producers *ps)
{
	*out = (struct rpc_service){
		.name = "ProducerPort",
		.alias = "producer_port",
		.methods = methods,
		.n_methods = sizeof(methods) / sizeof(methods[0]),
		.bind = bind_port,
		.gone = gone,
		.arg = ps,
	};
}
