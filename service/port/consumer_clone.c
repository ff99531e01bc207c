#include <stdlib.h>
#include <string.h>

#include "protos/fields.h"
#include "service/model/model.h"
#include "service/onlookers/clone.h"
#include "service/port/consumer_internal.h"
#include "service/session/session.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

static enum rpc_verdict
refuse(struct rpc_call call, const char *error)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, CloneSessionResponse_success, 0);
	pb_put_string(&w, CloneSessionResponse_error, error);
	rpc_reply_written(call, &w);
	pb_writer_done(&w);
	return RPC_OK;
}

static void
clone_done(void *arg, struct session *clone, bool was_file, const char *error)
{
	struct consumer_port *p = arg;
	struct rpc_call call = p->clone;
	struct pb_writer w;

	p->clone.conn = NULL;
	if (clone == NULL) {
		(void)refuse(call, error);
		return;
	}
	clone->ops = &consumer_session_ops;
	clone->port = p;
	p->session = clone;
	pb_writer_init(&w);
	pb_put_uint(&w, CloneSessionResponse_success, 1);
	pb_put_int(&w, CloneSessionResponse_uuid_msb, (int64_t)clone->uuid_msb);
	pb_put_int(&w, CloneSessionResponse_uuid_lsb, (int64_t)clone->uuid_lsb);
	if (was_file)
		pb_put_uint(&w, CloneSessionResponse_was_write_into_file, 1);
	rpc_reply_written(call, &w);
	pb_writer_done(&w);
}

/* A CloneSessionRequest as it is read. */
struct clone_args {
	struct clone_request request;
	struct clone_trigger trigger;
	/* Owned; NULL where the field was not sent. */
	char *name;
	char *trigger_name;
	char *producer_name;
};

/* The last occurrence of a field counts. */
static bool
take_text(const struct pb_field *f, char **text)
{
	if (f->wire != PB_BYTES)
		return false;
	free(*text);
	*text = strndup((const char *)f->data, f->len);
	return *text != NULL;
}

static bool
parse_clone(const uint8_t *args, size_t len, struct clone_args *a)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, args, len) {
		switch (f.number) {
		case CloneSessionRequest_session_id:
			a->request.session_id = f.value;
			break;
		case CloneSessionRequest_skip_trace_filter:
			a->request.skip_trace_filter = f.wire == PB_VARINT &&
			    f.value != 0;
			break;
		case CloneSessionRequest_for_bugreport:
			a->request.for_bugreport = f.value != 0;
			break;
		case CloneSessionRequest_unique_session_name:
			if (!take_text(&f, &a->name))
				return false;
			break;
		case CloneSessionRequest_clone_trigger_name:
			if (!take_text(&f, &a->trigger_name))
				return false;
			break;
		case CloneSessionRequest_clone_trigger_producer_name:
			if (!take_text(&f, &a->producer_name))
				return false;
			break;
		case CloneSessionRequest_clone_trigger_trusted_producer_uid:
			a->trigger.producer_uid = (int32_t)f.value;
			break;
		case CloneSessionRequest_clone_trigger_boot_time_ns:
			a->trigger.boot_time_ns = f.value;
			break;
		case CloneSessionRequest_clone_trigger_delay_ms:
			a->trigger.delay_ms = f.value;
			break;
		default:
			break;
		}
	}
	return !r.bad;
}

static void
start(struct consumer_port *p, struct rpc_call call, struct clone_args *a)
{
	p->clone = call;
	a->request.name = a->name;
	a->request.who = &p->who;
	a->request.fd = rpc_take_fd(call);
	if (a->trigger_name != NULL) {
		a->trigger.name = a->trigger_name;
		a->trigger.producer_name =
		    a->producer_name != NULL ? a->producer_name : "";
		a->request.trigger = &a->trigger;
	}
	clone_start(p->service, &a->request, clone_done, p);
}

enum rpc_verdict
consumer_clone_session(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct consumer_port *p = ctx;
	struct clone_args a = { 0 };
	enum rpc_verdict v = RPC_OK;

	if (!parse_clone(args, len, &a))
		v = RPC_BAD_ARGS;
	else if (p->session != NULL)
		v = refuse(call, "The consumer is already attached to "
		    "another tracing session");
	else if (p->clone.conn != NULL)
		v = refuse(call, "This consumer waits for another "
		    "CloneSession");
	else
		start(p, call, &a);
	free(a.name);
	free(a.trigger_name);
	free(a.producer_name);
	return v;
}
