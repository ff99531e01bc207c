#include <stdlib.h>
#include <string.h>

#include "protos/fields.h"
#include "service/model/model.h"
#include "service/port/control_internal.h"
#include "service/recordings/recordings.h"
#include "transport/wire/pb_reader.h"

static void
put_head(struct control *p, struct pb_writer *part)
{
	pb_put_uint(part, QueryRecordingsReply_now_ns, control_now_ns());
	recordings_report(p->service->recordings, &p->who,
	    QueryRecordingsReply_recordings, part);
}

static bool
no_entry(struct control *p, struct pb_writer *entry)
{
	return false;
}

static const struct control_question question = {
	.head = put_head,
	.entry = no_entry,
};

enum rpc_verdict
control_query_recordings(void *port, struct rpc_call call,
    const uint8_t *args, size_t len)
{
	struct control *p = port;

	if (!pb_well_formed(args, len))
		return RPC_BAD_ARGS;
	if (p->question != NULL)
		return RPC_REJECT;
	control_answer(p, call, &question);
	return RPC_OK;
}

static void
done_cb(void *arg, const char *error)
{
	control_command_done(arg, 0, error);
}

static enum rpc_verdict
order(struct control *p, enum recording_verb verb, struct rpc_call call,
    const uint8_t *args, size_t len)
{
	struct recording_order o = { .verb = verb, .who = &p->who };
	enum rpc_verdict v = RPC_BAD_ARGS;
	struct control_command *c;
	struct pb_reader r;
	struct pb_field f;
	char *name = NULL;

	PB_FOREACH(&f, &r, args, len) {
		if (f.number != RecordingCommand_name)
			continue;
		free(name);
		name = f.wire == PB_BYTES ?
		    strndup((const char *)f.data, f.len) : NULL;
		if (name == NULL)
			goto out;
	}
	if (r.bad || name == NULL)
		goto out;
	v = RPC_REJECT;
	if ((c = control_command_new(p, call)) == NULL)
		goto out;
	o.name = name;
	recordings_order(p->service->recordings, &o, done_cb, c);
	v = RPC_OK;
out:
	free(name);
	return v;
}

enum rpc_verdict
control_start_recording(void *port, struct rpc_call call,
    const uint8_t *args, size_t len)
{
	return order(port, RECORDING_DO_START, call, args, len);
}

enum rpc_verdict
control_stop_recording(void *port, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	return order(port, RECORDING_DO_STOP, call, args, len);
}

enum rpc_verdict
control_rotate_recording(void *port, struct rpc_call call,
    const uint8_t *args, size_t len)
{
	return order(port, RECORDING_DO_ROTATE, call, args, len);
}
