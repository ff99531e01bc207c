#include "client/orders/stop_flush_start.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "client/command/control_ask.h"
#include "client/library/control.h"
#include "client/show/sessions_text.h"
#include "client/text/text_cell.h"
#include "protos/control.pb-c.h"
#include "protos/plain_text.h"
#include "transport/base/human_numbers.h"
#include "transport/loop/loop.h"

typedef Tributary__SessionState session_state;

#define STATE(name) TRIBUTARY__SESSION_STATE__STATE__##name

static const struct flag stop_flags[] = {
	COMMAND_FLEET_FLAGS(offsetof(struct control_ask, line)),
	{ "all", FLAG_BOOL, .at = offsetof(struct control_ask, all) },
	{ "discard", FLAG_BOOL, .at = offsetof(struct control_ask, discard) },
	{ "yes", FLAG_BOOL, .at = offsetof(struct control_ask, yes) },
	{ .name = NULL },
};

static const char stop_help[] =
    "Usage: tributary stop ID|NAME...\n"
    "       tributary stop --all\n"
    "\n"
    "Stops tracing sessions, as tributary sessions lists them, and waits until\n"
    "their traces are complete. A connected consumer gets its trace as\n"
    "after a planned end. Of several collectors, a name is for all, and c1/7 is\n"
    "session 7 of c1.\n"
    "\n"
    "      --all         all that you may see and that have not stopped; asks\n"
    "                    first\n"
    "      --discard     free them, too: data that no file holds is gone. With\n"
    "                    --all also stopped sessions, and snapshots\n"
    "      --yes         do not ask\n"
    COMMAND_FLEET_HELP
    COMMAND_CONSUMER_HELP
    "\n"
    "Exit status: 0 when all have stopped, else 1.\n";

static const struct flag flush_flags[] = {
	COMMAND_FLAGS(offsetof(struct control_ask, line)),
	{ "timeout", FLAG_VALUE, .take = control_ask_timeout },
	{ .name = NULL },
};

static const char flush_help[] =
    "Usage: tributary flush [--timeout TIME] ID|NAME...\n"
    "\n"
    "Has the producers of tracing sessions commit the data written so far,\n"
    "and waits until they have.\n"
    "\n"
    "      --timeout TIME  how long they may take (500ms, 10s); default: as the\n"
    "                    session's config says, else 5s\n"
    COMMAND_CONSUMER_HELP
    "\n"
    "Exit status: 0 when all have answered, else 1.\n";

static const struct flag start_flags[] = {
	COMMAND_FLAGS(offsetof(struct control_ask, line)),
	{ .name = NULL },
};

static const char start_help[] =
    "Usage: tributary start ID|NAME...\n"
    "\n"
    "Starts tracing sessions that were set up with deferred_start and wait for\n"
    "it, or wait for a trigger that starts them.\n"
    "\n"
    COMMAND_CONSUMER_HELP
    "\n"
    "Exit status: 0 when all have started, else 1.\n";

static const struct flag rotate_flags[] = {
	COMMAND_FLAGS(offsetof(struct control_ask, line)),
	{ .name = NULL },
};

static const char rotate_help[] =
    "Usage: tributary rotate ID|NAME...\n"
    "\n"
    "Cuts tracing sessions: what they record from now on goes into a new segment,\n"
    "a file that can be read alone, and the file before is completed. Recording\n"
    "goes on meanwhile. Says the number of the segment that begins; a session that\n"
    "ends before it has begun is not cut any more.\n"
    "\n"
    COMMAND_CONSUMER_HELP
    "\n"
    "Exit status: 0 when all are being cut, else 1.\n";

#define TRACED "the collector at this address is not a tributaryd that takes " \
    "commands for sessions (Perfetto's traced, or an older one): "

/* Most unanswered commands: a collector lets no more than 64 wait. */
#define ORDERS_AT_ONCE 32u
#define OVERDUE "the collector does not answer"

/* A session that gets the command, and its outcome. */
struct target {
	struct orders *orders;
	struct control_peer *peer;
	bool done; /* answered, or given up */
	uint64_t id;
	char label[200 + COLLECTOR_NAME_MAX];
	char after[TEXT_CELL_MAX + 80]; /* ": its trace is in x" */
	uint32_t segment; /* CONTROL_CUT: the one that begins */
};

struct orders {
	struct control_ask run;
	enum control_verb verb;
	const char *done; /* "stopped" */
	struct target *targets;
	size_t n;
	size_t n_given;
	size_t n_left; /* not answered yet, or not even given */
};

/* Says where the trace of a stopped session is found. */
static void
say_after(struct target *t, const session_state *s)
{
	char text[TEXT_CELL_MAX];

	t->after[0] = '\0';
	if (t->orders->verb != CONTROL_STOP)
		return;
	if (s->file != NULL)
		snprintf(t->after, sizeof(t->after), "; its trace is in %s",
		    text_cell_plain(s->file, text));
	else if (s->has_file_bytes)
		snprintf(t->after, sizeof(t->after), "; its trace is in the "
		    "file that its consumer opened");
	else if (t->orders->run.discard)
		snprintf(t->after, sizeof(t->after), " and discarded");
	else if (s->has_consumer)
		snprintf(t->after, sizeof(t->after), "; its consumer reads its "
		    "trace");
	else if (s->detach_key != NULL)
		snprintf(t->after, sizeof(t->after), "; its trace waits to be "
		    "read: tributary record --attach=%s",
		    text_cell_plain(s->detach_key, text));
}

/* Whether --all means the session. */
static bool
is_meant_by_all(const struct orders *o, const session_state *s)
{
	return o->run.discard || (s->state != STATE(DISABLED) &&
	    s->state != STATE(CLONED));
}

static void
add_target(struct orders *o, const struct control_sessions_list *l,
    const session_state *s)
{
	struct target *t = &o->targets[o->n++];
	size_t len;

	t->orders = o;
	t->peer = l->peer;
	t->id = s->id;
	session_label(s, t->label, sizeof(t->label));
	len = strlen(t->label);
	if (l->collector != NULL)
		snprintf(t->label + len, sizeof(t->label) - len, " of %s",
		    l->collector);
	say_after(t, s);
}

/* Leaves out of the list what is not meant. */
static void
add_targets(struct orders *o, struct control_sessions_list *l)
{
	size_t i, n = 0;

	for (i = 0; i < l->n; i++) {
		if (o->run.all && !is_meant_by_all(o, l->sessions[i]))
			continue;
		l->sessions[n++] = l->sessions[i];
		add_target(o, l, l->sessions[i]);
	}
	l->n = n;
}

static void
find_targets(struct orders *o)
{
	struct control_ask *r = &o->run;
	struct control_sessions_list *lists = control_ask_pick(r, false);
	size_t i, n = 1;

	if (lists == NULL) {
		r->status = COMMAND_FAILED;
		return;
	}
	for (i = 0; i < r->n_replies; i++)
		n += lists[i].n;
	o->targets = calloc(n, sizeof(*o->targets));
	if (o->targets == NULL)
		r->status = control_ask_refuse(r, "out of memory");
	for (i = 0; o->targets != NULL && i < r->n_replies; i++)
		add_targets(o, &lists[i]);
	/* The question shows the sessions that it is about. */
	if (r->all && !r->yes && o->n > 0)
		sessions_print(stderr, lists, r->n_replies, LIST_TABLE);
	control_ask_lists_free(r, lists);
}

/* True: go on. */
static bool
confirm(const struct orders *o)
{
	char line[16];

	if (!isatty(STDIN_FILENO)) {
		control_ask_refuse(&o->run, "--all wants --yes without a "
		    "terminal to ask at");
		return false;
	}
	fprintf(stderr, "Stop %s %zu session%s%s? [y/N] ", o->n == 1 ? "this" :
	    "these", o->n, human_s(o->n), o->run.discard ? " and discard data "
	    "that no file holds" : "");
	fflush(stderr);
	if (fgets(line, sizeof(line), stdin) != NULL &&
	    (strcasecmp(line, "y\n") == 0 || strcasecmp(line, "yes\n") == 0))
		return true;
	fprintf(stderr, "Nothing was stopped.\n");
	return false;
}

static void done_cb(void *arg, const char *error);

static void
finish(struct target *t, const char *error)
{
	struct orders *o = t->orders;
	char text[TEXT_CELL_MAX];

	t->done = true;
	o->n_left--;
	if (error == NULL && o->verb == CONTROL_CUT)
		snprintf(t->after, sizeof(t->after), ": segment %u begins",
		    (unsigned)t->segment);
	if (error == NULL) {
		printf("%s %s%s\n", o->done, t->label, t->after);
		fflush(stdout);
	} else {
		plain_printf(stderr, "%s: %s: %s\n",
		    o->run.program->flags.speaker, t->label,
		    text_cell_plain(error, text));
		o->run.status = COMMAND_FAILED;
	}
}

/*
 * Times the commands that the collector has not answered.  A single one may
 * take as long as its producers do.
 */
static void
arm(struct orders *o, struct control_peer *p)
{
	size_t i;

	loop_timer_clear(p->late);
	for (i = 0; p->is->name != NULL && i < o->n_given; i++)
		if (o->targets[i].peer == p && !o->targets[i].done)
			loop_timer_set(p->late, p->is->timeout_ms, 0);
}

/* Gives commands while fewer than ORDERS_AT_ONCE are unanswered. */
static void
give_some(struct orders *o)
{
	struct control_order order = {
		.verb = o->verb,
		.timeout_ms = o->run.timeout_ms,
		.discard = o->run.discard,
	};
	struct target *t;

	while (o->n_given < o->n &&
	    o->n_given - (o->n - o->n_left) < ORDERS_AT_ONCE) {
		t = &o->targets[o->n_given++];
		if (t->peer->control == NULL) {
			finish(t, OVERDUE);
			continue;
		}
		order.id = t->id;
		order.segment = &t->segment;
		control_command(t->peer->control, &order, done_cb, t);
		arm(o, t->peer);
	}
	if (o->n_left == 0)
		loop_stop(o->run.loop);
}

static void
done_cb(void *arg, const char *error)
{
	struct target *t = arg;

	finish(t, error);
	arm(t->orders, t->peer);
	give_some(t->orders);
}

static void
overdue(struct control_peer *p)
{
	struct orders *o = p->ask->arg;
	size_t i;

	control_free(p->control);
	p->control = NULL;
	for (i = 0; i < o->n_given; i++)
		if (o->targets[i].peer == p && !o->targets[i].done)
			finish(&o->targets[i], OVERDUE);
	give_some(o);
}

static void
give_orders(struct orders *o)
{
	o->n_left = o->n;
	o->run.overdue = overdue;
	give_some(o);
	loop_run(o->run.loop);
}

static int
run(struct orders *o)
{
	struct control_ask *r = &o->run;

	if (r->line.n_words == 0 && !r->all)
		return control_ask_refuse(r, "which session? Say an id or a "
		    "name, as tributary sessions lists them");
	if (r->line.n_words > 0 && r->all)
		return control_ask_refuse(r, "--all and the names of sessions "
		    "exclude each other");
	if (control_ask_sessions(r))
		find_targets(o);
	if (o->n == 0 && r->status == COMMAND_OK)
		printf("no session is there to be %s\n", o->done);
	if (o->n == 0)
		return r->status;
	if (r->all && !r->yes && !confirm(o))
		return COMMAND_FAILED;
	give_orders(o);
	return r->status;
}

static int
orders_main(const struct control_program *program, enum control_verb verb,
    const char *done, int argc, char **argv)
{
	struct orders o = { .verb = verb, .done = done };
	int status = control_ask_init(&o.run, program, argc, argv);

	if (status >= 0)
		return status;
	o.run.arg = &o;
	status = run(&o);
	control_ask_done(&o.run);
	free(o.targets);
	return status;
}

int
stop_main(int argc, char **argv)
{
	static const struct control_program program = {
		.flags = COMMAND("stop", stop_flags, stop_help),
		.foreign_advice = TRACED "interrupt the program that started "
		    "the session (kill -INT), or attach to it under its key "
		    "(tributary record --attach)",
	};

	return orders_main(&program, CONTROL_STOP, "stopped", argc, argv);
}

int
flush_main(int argc, char **argv)
{
	static const struct control_program program = {
		.flags = COMMAND("flush", flush_flags, flush_help),
		.foreign_advice = TRACED "say flush_period_ms in the config "
		    "of the session instead",
	};

	return orders_main(&program, CONTROL_FLUSH, "flushed", argc, argv);
}

int
start_main(int argc, char **argv)
{
	static const struct control_program program = {
		.flags = COMMAND("start", start_flags, start_help),
		.foreign_advice = TRACED "the program that set up the session "
		    "starts it, or a trigger in its config",
	};

	return orders_main(&program, CONTROL_START, "started", argc, argv);
}

int
rotate_main(int argc, char **argv)
{
	static const struct control_program program = {
		.flags = COMMAND("rotate", rotate_flags, rotate_help),
		.foreign_advice = TRACED "end the session and start another, "
		    "or record with tributaryd",
	};

	return orders_main(&program, CONTROL_CUT, "rotated", argc, argv);
}
