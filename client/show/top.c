#include "client/show/top.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/command_line.h"
#include "client/library/control.h"
#include "client/show/top_model.h"
#include "client/show/top_screen.h"
#include "client/text/colour.h"
#include "client/text/terminal.h"
#include "protos/control.pb-c.h"
#include "transport/base/failure.h"
#include "transport/loop/loop.h"

#define ERROR_BYTES 2048
#define ANSWER_MS   30000u
#define INTERVAL_MS 2000u
#define LEAST_MS    100u
#define MOST_MS     3600000u

static const char help[] =
    "Usage: tributary top [--interval SECONDS] [-n COUNT]\n"
    "\n"
    "Shows a collector's sessions, machines and producers, with how fast they\n"
    "write and lose, the fastest first: on a terminal as a screen that is drawn\n"
    "anew, elsewhere as a block of lines each time. q or Ctrl-C ends it.\n"
    "\n"
    "      --interval SECONDS  between two looks; default: 2\n"
    "  -n, --count COUNT  end after so many\n"
    "      --plain       lines, on a terminal too\n"
    COMMAND_CONSUMER_HELP
    "\n"
    "Rates are of the time since the look before: the first one has none. WAITS\n"
    "THERE is data that a relay has not delivered, CUTS how often its connection\n"
    "came back, ACTIVE how many of a producer's data sources record. KERNEL LOST,\n"
    "where there are any, are events that the kernel overwrote before\n"
    "tributary-probes read them, or had no room for, since it started.\n"
    "\n"
    "Exit status: 0; 1 when the collector cannot be asked.\n";

struct top {
	struct loop *loop;
	struct loop_timer *timer;
	struct control *control;   /* owned; NULL: to be connected */
	struct top_model *model;   /* owned */
	struct top_screen *screen; /* owned; NULL: lines */
	struct addr addr;
	struct command_line line;
	uint64_t interval_ms;
	unsigned long count; /* updates that are left; 0: no end */
	bool plain;
	bool asking;
	bool answered;       /* the collector has answered once */
	bool drop;           /* free control after its callback */
	uint64_t asked_ms;
	struct loop_call tick_call;
	int status;
};

/* ---- the command line ---- */

static int
parse_interval(void *options, const struct flag *flag, const char *text,
    char *err, size_t err_size)
{
	struct top *t = options;
	double seconds;
	char *rest;

	errno = 0;
	seconds = strtod(text, &rest);
	if (errno != 0 || rest == text || *rest != '\0' ||
	    !(seconds * 1000 >= LEAST_MS && seconds * 1000 <= MOST_MS))
		return FAILURE(err, err_size, "--interval takes seconds, 0.1 "
		    "to 3600");
	t->interval_ms = (uint64_t)(seconds * 1000);
	return 0;
}

static int
parse_count(void *options, const struct flag *flag, const char *text,
    char *err, size_t err_size)
{
	struct top *t = options;
	char *rest;

	errno = 0;
	t->count = strtoul(text, &rest, 10);
	if (errno != 0 || text[0] < '0' || text[0] > '9' || *rest != '\0' ||
	    t->count == 0)
		return FAILURE(err, err_size, "-n takes a number, 1 or more");
	return 0;
}

#define AT(member) .at = offsetof(struct top, member)

static const struct flag flags[] = {
	COMMAND_FLAGS(offsetof(struct top, line)),
	{ "count", FLAG_VALUE, .letter = 'n', .take = parse_count },
	{ "interval", FLAG_VALUE, .take = parse_interval },
	{ "plain", FLAG_BOOL, AT(plain) },
	{ .name = NULL },
};

static const struct flags command = COMMAND("top", flags, help);

/* ---- drawing ---- */

static void
end(struct top *t, int status)
{
	t->status = status;
	loop_stop(t->loop);
}

static void
draw(void *arg)
{
	struct top *t = arg;
	int width;
	size_t height;

	if (t->screen == NULL)
		return;
	top_screen_size(&width, &height);
	fputs(top_screen_home, stdout);
	top_model_print(stdout, t->model, width, height, top_screen_newline);
	fputs(top_screen_rest, stdout);
	if (fflush(stdout) != 0)
		end(t, COMMAND_FAILED);
}

static void
quit(void *arg)
{
	end(arg, COMMAND_OK);
}

static void
show(struct top *t)
{
	if (t->screen != NULL) {
		draw(t);
	} else {
		top_model_print(stdout, t->model, 0, 0, "\n");
		putchar('\n');
		/* EPIPE: the reader has seen enough. */
		if (fflush(stdout) != 0)
			end(t, errno == EPIPE ? COMMAND_OK :
			    flags_refuse(&command, strerror(errno)));
	}
	if (t->count > 0 && --t->count == 0)
		end(t, COMMAND_OK);
}

/* ---- asking ---- */

/* A collector that went may come back; one that never was there is an error. */
static void
trouble(struct top *t, const char *why)
{
	t->asking = false;
	t->drop = true;
	if (!t->answered || t->screen == NULL) {
		top_screen_free(t->screen);
		t->screen = NULL;
		end(t, flags_refuse(&command, why));
		return;
	}
	top_model_trouble(t->model, why);
	draw(t);
}

static void
sessions_cb(void *arg, const Tributary__QuerySessionsReply *r, const char *why)
{
	struct top *t = arg;

	if (r == NULL) {
		trouble(t, control_is_foreign(t->control) ? "this collector "
		    "does not report its activity: it is Perfetto's, or an "
		    "older one" : why);
		return;
	}
	t->asking = false;
	t->answered = true;
	top_model_trouble(t->model, NULL);
	top_model_sessions(t->model, loop_now_ms(), r);
	show(t);
}

static void
machines_cb(void *arg, const Tributary__QueryMachinesReply *r, const char *why)
{
	struct top *t = arg;

	if (r != NULL)
		top_model_machines(t->model, loop_now_ms(), r);
}

static void
producers_cb(void *arg, const Tributary__QueryProducersReply *r,
    const char *why)
{
	struct top *t = arg;

	top_model_producers(t->model, loop_now_ms(), r);
}

/* One after the other: what producers write is a part of what machines do. */
static void
ask(struct top *t)
{
	static const struct control_sessions all;
	char err[ERROR_BYTES];

	if (t->drop) {
		control_free(t->control);
		t->control = NULL;
		t->drop = false;
	}
	if (t->control == NULL) {
		t->control = control_new(t->loop, &t->addr, &t->line.how, err,
		    sizeof(err));
		if (t->control == NULL) {
			trouble(t, err);
			return;
		}
	}
	t->asking = true;
	t->asked_ms = loop_now_ms();
	control_query_producers(t->control, producers_cb, t);
	control_query_machines(t->control, machines_cb, t);
	control_query_sessions(t->control, &all, sessions_cb, t);
}

static void
tick_cb(void *arg)
{
	struct top *t = arg;

	if (!t->asking)
		ask(t);
	else if (loop_now_ms() - t->asked_ms >= ANSWER_MS)
		trouble(t, "the collector does not answer");
}

/* ---- the command ---- */

static void
run(struct top *t)
{
	static const struct top_screen_ops ops = { .quit = quit, .draw = draw };

	if (!t->plain && top_screen_is_there() &&
	    (t->screen = top_screen_new(t->loop, &ops, t)) == NULL) {
		t->status = flags_refuse(&command, strerror(errno));
		return;
	}
	/* Lines are for programs, too, and stay plain. */
	if (t->screen != NULL)
		top_model_look(t->model, colour_is_on(stdout),
		    terminal_has_utf8());
	draw(t);
	loop_timer_set(t->timer, t->interval_ms, 1);
	loop_defer(t->loop, &t->tick_call, tick_cb, t);
	loop_run(t->loop);
}

int
top_main(int argc, char **argv)
{
	struct top t = { .line.how.service = "consumer",
		.interval_ms = INTERVAL_MS, .status = COMMAND_FAILED };
	char err[ERROR_BYTES];
	int status;

	status = command_line_parse(&t.line, &command, &t, argc, argv);
	if (status >= 0)
		return status;
	if (t.line.n_words > 0)
		return flags_refuse(&command, "takes no names; see tributary "
		    "top --help");
	if (t.line.connect == NULL)
		t.line.connect = addr_default_consumer();
	if (command_line_consumer(&t.line, &t.addr, err, sizeof(err)) < 0)
		return flags_refuse(&command, err);
	if ((t.loop = loop_new()) == NULL ||
	    (t.timer = loop_timer_new(t.loop, tick_cb, &t)) == NULL ||
	    (t.model = top_model_new(t.line.connect)) == NULL)
		t.status = flags_refuse(&command, "out of memory");
	else
		run(&t);
	top_screen_free(t.screen);
	control_free(t.control);
	top_model_free(t.model);
	loop_timer_free(t.timer);
	if (t.loop != NULL)
		loop_free(t.loop);
	return t.status;
}
