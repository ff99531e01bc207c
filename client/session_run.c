#include "client/session_run.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/control.h"
#include "client/session_pick.h"
#include "protos/control.pb-c.h"
#include "transport/dial_flags.h"
#include "transport/loop.h"
#include "transport/size_duration.h"
#include "transport/unknown_flag.h"

#define ERROR_BYTES 2048
/* A collector that does not answer a question for so long does not answer. */
#define ANSWER_MS 30000u

int
session_run_refuse(const struct session_run *r, const char *text)
{
	fprintf(stderr, "tributary %s: %s\n", r->program->name, text);
	return SESSION_RUN_FAILED;
}

/* A flag with its value.  -1 with a sentence. */
static int
take_flag(struct session_run *r, int flag, const char *value, char *err,
    size_t err_size)
{
	switch (flag) {
	case 'l':
		r->form = SESSIONS_LONG;
		return 0;
	case SESSION_FLAG_JSON:
		r->form = SESSIONS_JSON;
		return 0;
	case SESSION_FLAG_ALL:
		r->all = true;
		return 0;
	case SESSION_FLAG_YES:
		r->yes = true;
		return 0;
	case SESSION_FLAG_DISCARD:
		r->discard = true;
		return 0;
	case SESSION_FLAG_TIMEOUT:
		return size_duration_parse_ms(value, &r->timeout_ms, err,
		    err_size);
	default:
		(void)dial_flags_take(&r->how, flag, value);
		return 0;
	}
}

/* -1: go on; else the exit status. */
static int
parse(struct session_run *r, int argc, char **argv, const char **connect)
{
	const struct session_program *p = r->program;
	char err[ERROR_BYTES], help[64];
	int c;

	opterr = 0;
	optind = 0; /* anew: glibc keeps state between calls */
	while ((c = getopt_long(argc, argv, p->short_flags, p->flags, NULL)) !=
	    -1) {
		switch (c) {
		case 'h':
			fputs(p->help, stdout);
			return SESSION_RUN_OK;
		case SESSION_FLAG_CONNECT:
			*connect = optarg;
			break;
		case ':':
			snprintf(err, sizeof(err), "%s wants a value",
			    argv[optind - 1]);
			return session_run_refuse(r, err);
		case '?':
			snprintf(help, sizeof(help), "see tributary %s --help",
			    p->name);
			unknown_flag(argv[optind - 1], p->flags, help, err,
			    sizeof(err));
			return session_run_refuse(r, err);
		default:
			if (take_flag(r, c, optarg, err, sizeof(err)) != 0)
				return session_run_refuse(r, err);
			break;
		}
	}
	r->words = (const char *const *)argv + optind;
	r->n_words = (size_t)(argc - optind);
	return -1;
}

int
session_run_init(struct session_run *r, const struct session_program *program,
    int argc, char **argv)
{
	const char *connect = NULL;
	char err[ERROR_BYTES];
	int status;

	*r = (struct session_run){
		.program = program,
		.how.service = "consumer",
	};
	if ((status = parse(r, argc, argv, &connect)) >= 0)
		return status;
	if (addr_parse(&r->addr, connect != NULL ? connect :
	    addr_default_consumer(), err, sizeof(err)) < 0 ||
	    dial_flags_check(&r->how, &r->addr, err, sizeof(err)) < 0)
		return session_run_refuse(r, err);
	if ((r->loop = loop_new()) == NULL)
		return session_run_refuse(r, "out of memory");
	return -1;
}

void
session_run_done(struct session_run *r)
{
	control_free(r->control);
	if (r->loop != NULL)
		loop_free(r->loop);
}

static void
late_cb(void *arg)
{
	struct session_run *r = arg;

	r->status = session_run_refuse(r, "the collector does not answer");
	loop_stop(r->loop);
}

struct loop_timer *
session_run_hurry(struct session_run *r)
{
	struct loop_timer *t = loop_timer_new(r->loop, late_cb, r);

	if (t != NULL)
		loop_timer_set(t, ANSWER_MS, 0);
	return t;
}

static void
listed_cb(void *arg, const Tributary__QuerySessionsReply *reply,
    const char *why)
{
	struct session_run *r = arg;

	loop_stop(r->loop);
	if (reply != NULL) {
		r->program->listed(r, reply);
		return;
	}
	r->foreign = control_is_foreign(r->control);
	if (!r->foreign)
		r->status = session_run_refuse(r, why);
	else if (r->program->foreign_advice != NULL)
		r->status = session_run_refuse(r, r->program->foreign_advice);
}

int
session_run_list(struct session_run *r)
{
	const struct control_sessions which = {
		.with_stats = r->program->with_stats,
	};
	struct loop_timer *late;
	char err[ERROR_BYTES];

	r->status = SESSION_RUN_FAILED;
	r->control = control_new(r->loop, &r->addr, &r->how, err, sizeof(err));
	if (r->control == NULL)
		return session_run_refuse(r, err);
	if ((late = session_run_hurry(r)) == NULL)
		return session_run_refuse(r, "out of memory");
	control_query_sessions(r->control, &which, listed_cb, r);
	loop_run(r->loop);
	loop_timer_free(late);
	return r->status;
}

int
session_run_pick(const struct session_run *r,
    const Tributary__QuerySessionsReply *reply, bool patterns,
    const Tributary__SessionState ***out)
{
	char err[ERROR_BYTES] = "out of memory";
	int n = -1;

	*out = calloc(reply->n_sessions + 1, sizeof(**out));
	if (*out != NULL)
		n = session_pick(reply, r->words, r->n_words, patterns, *out,
		    err, sizeof(err));
	if (n >= 0)
		return n;
	session_run_refuse(r, err);
	free(*out);
	*out = NULL;
	return -1;
}
