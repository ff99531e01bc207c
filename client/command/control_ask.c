#include "client/command/control_ask.h"

#include <stdlib.h>

#include "client/command/session_pick.h"
#include "client/library/control.h"
#include "protos/control.pb-c.h"
#include "transport/base/size_duration.h"
#include "transport/loop/loop.h"

#define ERROR_BYTES 2048
/* Time-out for the connection and the list of sessions together. */
#define ANSWER_MS 30000u

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
	if (command_line_consumer(&r->line, &r->addr, err, sizeof(err)) < 0)
		return control_ask_refuse(r, err);
	if ((r->loop = loop_new()) == NULL)
		return control_ask_refuse(r, "out of memory");
	return -1;
}

void
control_ask_done(struct control_ask *r)
{
	control_free(r->control);
	if (r->loop != NULL)
		loop_free(r->loop);
}

static void
late_cb(void *arg)
{
	struct control_ask *r = arg;

	r->status = control_ask_refuse(r, "the collector does not answer");
	loop_stop(r->loop);
}

bool
control_ask_answered(struct control_ask *r, bool there, const char *why)
{
	loop_stop(r->loop);
	if (there)
		return true;
	r->foreign = control_is_foreign(r->control);
	if (!r->foreign)
		r->status = control_ask_refuse(r, why);
	else if (r->program->foreign_advice != NULL)
		r->status = control_ask_refuse(r, r->program->foreign_advice);
	return false;
}

int
control_ask(struct control_ask *r, void (*query)(struct control_ask *r))
{
	struct loop_timer *late;
	char err[ERROR_BYTES];

	r->status = COMMAND_FAILED;
	r->control = control_new(r->loop, &r->addr, &r->line.how, err,
	    sizeof(err));
	if (r->control == NULL)
		return control_ask_refuse(r, err);
	if ((late = loop_timer_new(r->loop, late_cb, r)) == NULL)
		return control_ask_refuse(r, "out of memory");
	loop_timer_set(late, ANSWER_MS, 0);
	query(r);
	loop_run(r->loop);
	loop_timer_free(late);
	return r->status;
}

static void
listed_cb(void *arg, const Tributary__QuerySessionsReply *reply,
    const char *why)
{
	struct control_ask *r = arg;

	if (control_ask_answered(r, reply != NULL, why))
		r->program->listed(r, reply);
}

static void
query_sessions(struct control_ask *r)
{
	const struct control_sessions which = {
		.with_stats = r->program->with_stats,
	};

	control_query_sessions(r->control, &which, listed_cb, r);
}

int
control_ask_sessions(struct control_ask *r)
{
	return control_ask(r, query_sessions);
}

int
control_ask_pick(const struct control_ask *r,
    const Tributary__QuerySessionsReply *reply, bool patterns,
    const Tributary__SessionState ***out)
{
	char err[ERROR_BYTES] = "out of memory";
	int n = -1;

	*out = calloc(reply->n_sessions + 1, sizeof(**out));
	if (*out != NULL)
		n = session_pick(reply, &(struct session_words){
		    r->line.words, r->line.n_words, patterns }, *out, err,
		    sizeof(err));
	if (n >= 0)
		return n;
	control_ask_refuse(r, err);
	free(*out);
	*out = NULL;
	return -1;
}
