#include <stdlib.h>
#include <string.h>

#include "protos/fields.h"
#include "service/model/model.h"
#include "service/onlookers/session_command.h"
#include "service/port/control_internal.h"
#include "service/recordings/recordings.h"
#include "transport/wire/pb_reader.h"

/* A command that is not answered yet. */
struct control_command {
	TAILQ_ENTRY(control_command) link;
	struct control *port;
	struct rpc_call call;
	uint32_t segment; /* a cut's; else 0 */
};

static void
reply(const struct control_command *c, uint64_t id, const char *error)
{
	struct pb_writer w;

	pb_writer_init(&w);
	if (error != NULL)
		pb_put_string(&w, SessionCommandReply_error, error);
	if (id != 0)
		pb_put_uint(&w, SessionCommandReply_id, id);
	if (c->segment != 0)
		pb_put_uint(&w, SessionCommandReply_segment, c->segment);
	rpc_reply_written(c->call, &w);
	pb_writer_done(&w);
}

static void
command_free(struct control_command *c)
{
	TAILQ_REMOVE(&c->port->commands, c, link);
	c->port->n_commands--;
	free(c);
}

struct control_command *
control_command_new(struct control *p, struct rpc_call call)
{
	struct control_command *c;

	if (p->n_commands >= CONTROL_COMMANDS_MAX ||
	    (c = calloc(1, sizeof(*c))) == NULL)
		return NULL;
	c->port = p;
	c->call = call;
	TAILQ_INSERT_TAIL(&p->commands, c, link);
	p->n_commands++;
	return c;
}

void
control_command_done(struct control_command *c, uint64_t id,
    const char *error)
{
	reply(c, id, error);
	command_free(c);
}

static void
done_cb(void *arg, uint64_t id, const char *error)
{
	control_command_done(arg, id, error);
}

void
control_commands_forget(struct control *p)
{
	struct control_command *c;

	while ((c = TAILQ_FIRST(&p->commands)) != NULL) {
		session_command_forget(p->service, c);
		recordings_forget(p->service->recordings, c);
		command_free(c);
	}
}

/* name is to be freed. */
static bool
parse(const uint8_t *args, size_t len, struct session_order *o, char **name)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, args, len) {
		if (f.number == SessionCommand_unique_session_name &&
		    f.wire == PB_BYTES) {
			free(*name);
			*name = strndup((const char *)f.data, f.len);
			if (*name == NULL)
				return false;
		} else if (f.number == SessionCommand_unique_session_name ||
		    (f.number <= SessionCommand_discard &&
		    f.wire != PB_VARINT)) {
			return false;
		} else if (f.number == SessionCommand_id) {
			o->id = f.value;
		} else if (f.number == SessionCommand_timeout_ms) {
			o->timeout_ms = f.value > UINT32_MAX ? UINT32_MAX :
			    (uint32_t)f.value;
		} else if (f.number == SessionCommand_discard) {
			o->discard = f.value != 0;
		}
	}
	return !r.bad;
}

static enum rpc_verdict
command(struct control *p, enum session_verb verb, struct rpc_call call,
    const uint8_t *args, size_t len)
{
	struct session_order o = { .verb = verb, .who = &p->who };
	struct control_command *c;
	enum rpc_verdict v = RPC_BAD_ARGS;
	char *name = NULL;

	if (!parse(args, len, &o, &name))
		goto out;
	v = RPC_REJECT;
	if ((c = control_command_new(p, call)) == NULL)
		goto out;
	v = RPC_OK;
	o.name = name;
	o.discard = o.discard && verb == SESSION_DO_STOP;
	o.segment = &c->segment;
	session_command(p->service, &o, done_cb, c);
out:
	free(name);
	return v;
}

enum rpc_verdict
control_start_session(void *port, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	return command(port, SESSION_DO_START, call, args, len);
}

enum rpc_verdict
control_flush_session(void *port, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	return command(port, SESSION_DO_FLUSH, call, args, len);
}

enum rpc_verdict
control_stop_session(void *port, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	return command(port, SESSION_DO_STOP, call, args, len);
}

enum rpc_verdict
control_cut_session(void *port, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	return command(port, SESSION_DO_CUT, call, args, len);
}
