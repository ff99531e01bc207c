#include <stdlib.h>
#include <string.h>

#include "protos/fields.h"
#include "service/model/model.h"
#include "service/onlookers/clone.h"
#include "service/port/consumer_internal.h"
#include "service/session/session.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

static void
clone_done(void *arg, struct session *clone, bool was_file, const char *error)
{
	struct consumer_port *p = arg;
	struct rpc_call call = p->clone;
	struct pb_writer w;

	p->clone.conn = NULL;
	pb_writer_init(&w);
	pb_put_uint(&w, CloneSessionResponse_success, clone != NULL);
	if (clone == NULL) {
		pb_put_string(&w, CloneSessionResponse_error, error);
	} else {
		pb_put_int(&w, CloneSessionResponse_uuid_msb,
		    (int64_t)clone->uuid_msb);
		pb_put_int(&w, CloneSessionResponse_uuid_lsb,
		    (int64_t)clone->uuid_lsb);
		if (was_file)
			pb_put_uint(&w,
			    CloneSessionResponse_was_write_into_file, 1);
		clone->ops = &consumer_session_ops;
		clone->port = p;
		p->session = clone;
	}
	rpc_reply_written(call, &w);
	pb_writer_done(&w);
}

static enum rpc_verdict
clone_refused(struct rpc_call call, const char *error)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, CloneSessionResponse_success, 0);
	pb_put_string(&w, CloneSessionResponse_error, error);
	rpc_reply_written(call, &w);
	pb_writer_done(&w);
	return RPC_OK;
}

/* The last one counts. */
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
parse_clone(const uint8_t *args, size_t len, struct clone_request *q,
    struct clone_trigger *t, char **name, char **trigger, char **producer)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, args, len);
	while (pb_next(&r, &f)) {
		switch (f.number) {
		case CloneSessionRequest_session_id:
			q->session_id = f.value;
			break;
		case CloneSessionRequest_skip_trace_filter:
			q->skip_trace_filter = f.wire == PB_VARINT &&
			    f.value != 0;
			break;
		case CloneSessionRequest_for_bugreport:
			q->for_bugreport = f.value != 0;
			break;
		case CloneSessionRequest_unique_session_name:
			if (!take_text(&f, name))
				return false;
			break;
		case CloneSessionRequest_clone_trigger_name:
			if (!take_text(&f, trigger))
				return false;
			break;
		case CloneSessionRequest_clone_trigger_producer_name:
			if (!take_text(&f, producer))
				return false;
			break;
		case CloneSessionRequest_clone_trigger_trusted_producer_uid:
			t->producer_uid = (int32_t)f.value;
			break;
		case CloneSessionRequest_clone_trigger_boot_time_ns:
			t->boot_time_ns = f.value;
			break;
		case CloneSessionRequest_clone_trigger_delay_ms:
			t->delay_ms = f.value;
			break;
		default:
			break;
		}
	}
	return !r.bad;
}

enum rpc_verdict
consumer_clone_session(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct consumer_port *p = ctx;
	struct clone_request q = { .fd = -1, .who = &p->who };
	struct clone_trigger t = { 0 };
	char *name = NULL, *trigger = NULL, *producer = NULL;
	enum rpc_verdict v = RPC_BAD_ARGS;

	if (!parse_clone(args, len, &q, &t, &name, &trigger, &producer))
		goto out;
	if (p->session != NULL) {
		v = clone_refused(call, "The consumer is already attached to "
		    "another tracing session");
		goto out;
	}
	if (p->clone.conn != NULL) {
		v = clone_refused(call, "This consumer waits for another "
		    "CloneSession");
		goto out;
	}
	v = RPC_OK;
	p->clone = call;
	q.name = name;
	if (trigger != NULL) {
		t.name = trigger;
		t.producer_name = producer != NULL ? producer : "";
		q.trigger = &t;
	}
	q.fd = rpc_take_fd(call);
	clone_start(p->service, &q, clone_done, p);
out:
	free(name);
	free(trigger);
	free(producer);
	return v;
}
