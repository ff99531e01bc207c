#include "client/command/control_ask.h"

#include <stdio.h>
#include <stdlib.h>

#include "client/library/control.h"
#include "protos/control.pb-c.h"
#include "protos/message_copy.h"
#include "protos/plain_text.h"
#include "transport/base/size_duration.h"
#include "transport/loop/loop.h"

#define ERROR_BYTES 2048

int
control_ask_refuse(const struct control_ask *r, const char *text)
{
	return flags_refuse(&r->program->flags, text);
}

int
control_ask_timeout(void *options, const struct flag *flag, const char *value,
    char *err, size_t err_size)
{
	struct control_ask *r = options;

	return size_duration_parse_ms(value, &r->timeout_ms, err, err_size);
}

static void late_cb(void *arg);

static int
make_peers(struct control_ask *r)
{
	size_t i;

	r->loop = loop_new();
	r->peers = calloc(r->collectors.n, sizeof(*r->peers));
	if (r->loop == NULL || r->peers == NULL)
		return -1;
	for (i = 0; i < r->collectors.n; i++) {
		r->peers[i].ask = r;
		r->peers[i].is = &r->collectors.list[i];
		r->peers[i].late = loop_timer_new(r->loop, late_cb,
		    &r->peers[i]);
		if (r->peers[i].late == NULL)
			return -1;
	}
	return 0;
}

int
control_ask_init(struct control_ask *r, const struct control_program *program,
    int argc, char **argv)
{
	char err[ERROR_BYTES];
	int status;

	*r = (struct control_ask){
		.program = program,
		.line.how.service = "consumer",
	};
	status = command_line_parse(&r->line, &program->flags, r, argc, argv);
	if (status >= 0)
		return status;
	snprintf(err, sizeof(err), "out of memory");
	if (collectors_of_line(&r->collectors, &r->line, err,
		sizeof(err)) == 0 &&
	    collectors_want_consumers(&r->collectors, err, sizeof(err)) == 0 &&
	    make_peers(r) == 0)
		return -1;
	control_ask_done(r);
	return control_ask_refuse(r, err);
}

void
control_ask_done(struct control_ask *r)
{
	size_t i;

	for (i = 0; r->peers != NULL && i < r->collectors.n; i++) {
		control_free(r->peers[i].control);
		loop_timer_free(r->peers[i].late);
		if (r->peers[i].reply != NULL)
			protobuf_c_message_free_unpacked(r->peers[i].reply,
			    NULL);
	}
	free(r->peers);
	r->peers = NULL;
	collectors_done(&r->collectors);
	if (r->loop != NULL)
		loop_free(r->loop);
	r->loop = NULL;
}

void
control_ask_missed(struct control_peer *p, const char *text)
{
	struct control_ask *r = p->ask;

	if (p->is->name == NULL)
		plain_printf(stderr, "%s: %s\n", r->program->flags.speaker,
		    text);
	else
		plain_printf(stderr, "%s: %s: %s\n", r->program->flags.speaker,
		    p->is->name, text);
	if (p->is->name == NULL || !r->line.allow_missing)
		r->status = COMMAND_FAILED;
}

static void
say_why(struct control_peer *p, const char *why)
{
	const char *advice = p->ask->program->foreign_advice;

	p->foreign = p->control != NULL && control_is_foreign(p->control);
	if (!p->foreign)
		control_ask_missed(p, why);
	else if (advice != NULL || p->is->name != NULL)
		control_ask_missed(p, advice != NULL ? advice : "the collector "
		    "is not a tributaryd that can be asked for this "
		    "(Perfetto's traced, or an older one)");
}

void
control_ask_answer(struct control_peer *p, const ProtobufCMessage *reply,
    const char *why)
{
	struct control_ask *r = p->ask;

	if (p->answered)
		return;
	p->answered = true;
	loop_timer_clear(p->late);
	if (reply != NULL && (p->reply = message_copy(reply)) == NULL)
		why = "out of memory";
	if (p->reply != NULL)
		r->n_replies++;
	else
		say_why(p, why);
	if (--r->n_left == 0)
		loop_stop(r->loop);
}

static void
late_cb(void *arg)
{
	struct control_peer *p = arg;

	if (!p->answered)
		control_ask_answer(p, NULL, "the collector does not answer");
	else
		p->ask->overdue(p);
}

bool
control_ask(struct control_ask *r, void (*query)(struct control_peer *p))
{
	struct control_peer *p;
	char err[ERROR_BYTES];
	size_t i;

	r->status = COMMAND_OK;
	r->n_left = r->collectors.n;
	for (i = 0; i < r->collectors.n; i++) {
		p = &r->peers[i];
		if (p->skip) {
			r->n_left--;
			continue;
		}
		loop_timer_set(p->late, p->is->timeout_ms, 0);
		p->control = control_new(r->loop, &p->is->consumer.addr,
		    &p->is->consumer.how, err, sizeof(err));
		if (p->control != NULL)
			query(p);
		else
			control_ask_answer(p, NULL, err);
	}
	if (r->n_left > 0)
		loop_run(r->loop);
	if (r->n_replies == 0)
		r->status = COMMAND_FAILED;
	return r->n_replies > 0;
}

static void
listed_cb(void *arg, const Tributary__QuerySessionsReply *reply,
    const char *why)
{
	control_ask_answer(arg, reply == NULL ? NULL : &reply->base, why);
}

static void
query_sessions(struct control_peer *p)
{
	const struct control_sessions which = {
		.with_stats = p->ask->program->with_stats,
	};

	control_query_sessions(p->control, &which, listed_cb, p);
}

bool
control_ask_sessions(struct control_ask *r)
{
	return control_ask(r, query_sessions);
}
