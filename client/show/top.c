#include "client/show/top.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/collectors.h"
#include "client/command/command_line.h"
#include "client/library/control.h"
#include "client/show/top_model.h"
#include "client/show/top_print.h"
#include "client/show/top_screen.h"
#include "client/text/colour.h"
#include "client/text/terminal.h"
#include "protos/control.pb-c.h"
#include "transport/base/failure.h"
#include "transport/loop/loop.h"

#define ERROR_BYTES 2048
#define INTERVAL_MS 2000u
#define LEAST_MS    100u
#define MOST_MS     3600000u

static const char help[] =
    "Usage: tributary top [--interval SECONDS] [-n COUNT]\n"
    "\n"
    "Shows the sessions, machines and producers of a collector, or of all of a\n"
    "fleet, with how fast they write and lose, the fastest first: on a terminal as\n"
    "a screen that is drawn anew, elsewhere as a block of lines each time. q or\n"
    "Ctrl-C ends it.\n"
    "\n"
    "      --interval SECONDS  between two looks; default: 2\n"
    "  -n, --count COUNT  end after so many\n"
    "      --plain       lines, on a terminal too\n"
    COMMAND_FLEET_HELP
    COMMAND_CONSUMER_HELP
    "\n"
    "Rates are of the time since the look before: the first one has none. WAITS\n"
    "THERE is data that a relay has not delivered, CUTS how often its connection\n"
    "came back, ACTIVE how many of a producer's data sources record. KERNEL LOST,\n"
    "where there are any, are events that the kernel overwrote before\n"
    "tributary-probes read them, or had no room for, since it started.\n"
    "\n"
    "Exit status: 0; 1 when the collector cannot be asked.\n";

/* One of the collectors. */
struct top_source {
	struct top *top;
	const struct collector *is;
	struct control *control; /* owned; NULL: to be connected */
	bool asking;
	bool awaited;  /* the next drawing waits for its answer */
	bool answered; /* the collector has answered once */
	bool drop;     /* free control after its callback */
	uint64_t asked_ms;
};

struct top {
	struct loop *loop;
	struct loop_timer *timer;
	struct collectors collectors;
	struct top_source *sources; /* collectors.n, as models, owned */
	struct top_model **models;
	struct top_screen *screen; /* owned; NULL: lines */
	struct command_line line;
	uint64_t interval_ms;
	unsigned long count; /* updates that are left; 0: no end */
	size_t n_awaited;
	size_t n_fresh; /* have answered, or failed, since the last drawing */
	bool plain;
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
	COMMAND_FLEET_FLAGS(offsetof(struct top, line)),
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
	struct top_size size = { .end = top_screen_newline };
	struct top *t = arg;

	if (t->screen == NULL)
		return;
	top_screen_size(&size.width, &size.height);
	fputs(top_screen_home, stdout);
	top_print(stdout, t->models, t->collectors.n, &size);
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
	t->n_fresh = 0;
	if (t->screen != NULL) {
		draw(t);
	} else {
		top_print(stdout, t->models, t->collectors.n,
		    &(struct top_size){ .end = "\n" });
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

static struct top_model *
model_of(const struct top_source *s)
{
	return s->top->models[s - s->top->sources];
}

/* Draws when all that were asked this time have answered, or have failed. */
static void
take_answer(struct top_source *s)
{
	struct top *t = s->top;

	s->asking = false;
	t->n_fresh++;
	if (!s->awaited)
		return;
	s->awaited = false;
	if (--t->n_awaited == 0)
		show(t);
}

/*
 * A collector that went may come back; one that never was there is an error,
 * unless some of the fleet may be missing.
 */
static bool
is_fatal(const struct top_source *s)
{
	if (s->is->name != NULL && s->top->line.allow_missing)
		return false;
	return !s->answered || s->top->screen == NULL;
}

static void
trouble(struct top_source *s, const char *why)
{
	struct top *t = s->top;
	char text[ERROR_BYTES];

	s->drop = true;
	if (!is_fatal(s)) {
		top_model_trouble(model_of(s), why);
		take_answer(s);
		draw(t);
		return;
	}
	s->asking = false;
	top_screen_free(t->screen);
	t->screen = NULL;
	snprintf(text, sizeof(text), "%s%s%s", s->is->name != NULL ?
	    s->is->name : "", s->is->name != NULL ? ": " : "", why);
	end(t, flags_refuse(&command, text));
}

static void
sessions_cb(void *arg, const Tributary__QuerySessionsReply *r, const char *why)
{
	struct top_source *s = arg;

	if (r == NULL) {
		trouble(s, control_is_foreign(s->control) ? "this collector "
		    "does not report its activity: it is Perfetto's, or an "
		    "older one" : why);
		return;
	}
	s->answered = true;
	top_model_trouble(model_of(s), NULL);
	top_model_sessions(model_of(s), loop_now_ms(), r);
	take_answer(s);
}

static void
machines_cb(void *arg, const Tributary__QueryMachinesReply *r, const char *why)
{
	struct top_source *s = arg;

	if (r != NULL)
		top_model_machines(model_of(s), loop_now_ms(), r);
}

static void
producers_cb(void *arg, const Tributary__QueryProducersReply *r,
    const char *why)
{
	struct top_source *s = arg;

	top_model_producers(model_of(s), loop_now_ms(), r);
}

/* One after the other: what producers write is a part of what machines do. */
static void
ask(struct top_source *s)
{
	static const struct control_sessions all;
	char err[ERROR_BYTES];

	if (s->drop) {
		control_free(s->control);
		s->control = NULL;
		s->drop = false;
	}
	s->asking = true;
	s->asked_ms = loop_now_ms();
	if (s->control == NULL) {
		s->control = control_new(s->top->loop, &s->is->consumer.addr,
		    &s->is->consumer.how, err, sizeof(err));
		if (s->control == NULL) {
			trouble(s, err);
			return;
		}
	}
	control_query_producers(s->control, producers_cb, s);
	control_query_machines(s->control, machines_cb, s);
	control_query_sessions(s->control, &all, sessions_cb, s);
}

static void
tick_cb(void *arg)
{
	struct top *t = arg;
	struct top_source *s, *last = t->sources + t->collectors.n;

	/* Collectors that are slow hold up one drawing each. */
	for (s = t->sources; s < last; s++)
		s->awaited = !s->asking;
	if (t->n_awaited > 0 && t->n_fresh > 0)
		show(t);
	for (t->n_awaited = 0, s = t->sources; s < last; s++)
		t->n_awaited += s->awaited;
	for (s = t->sources; s < last; s++) {
		if (s->awaited)
			ask(s);
		else if (loop_now_ms() - s->asked_ms >= s->is->timeout_ms)
			trouble(s, "the collector does not answer");
	}
}

/* ---- the command ---- */

static void
run(struct top *t)
{
	static const struct top_screen_ops ops = { .quit = quit, .draw = draw };
	size_t i;

	if (!t->plain && top_screen_is_there() &&
	    (t->screen = top_screen_new(t->loop, &ops, t)) == NULL) {
		t->status = flags_refuse(&command, strerror(errno));
		return;
	}
	/* Lines are for programs, too, and stay plain. */
	for (i = 0; t->screen != NULL && i < t->collectors.n; i++)
		top_model_look(t->models[i], colour_is_on(stdout),
		    terminal_has_utf8());
	draw(t);
	loop_timer_set(t->timer, t->interval_ms, 1);
	loop_defer(t->loop, &t->tick_call, tick_cb, t);
	loop_run(t->loop);
}

static const char *
name_of(const struct top *t, const struct collector *c)
{
	if (c->name != NULL)
		return c->name;
	return t->line.connect != NULL ? t->line.connect :
	    addr_default_consumer();
}

static int
make(struct top *t)
{
	size_t i;

	t->loop = loop_new();
	t->sources = calloc(t->collectors.n, sizeof(*t->sources));
	t->models = calloc(t->collectors.n, sizeof(*t->models));
	if (t->loop == NULL || t->sources == NULL || t->models == NULL ||
	    (t->timer = loop_timer_new(t->loop, tick_cb, t)) == NULL)
		return -1;
	for (i = 0; i < t->collectors.n; i++) {
		t->sources[i].top = t;
		t->sources[i].is = &t->collectors.list[i];
		t->models[i] = top_model_new(name_of(t, t->sources[i].is));
		if (t->models[i] == NULL)
			return -1;
	}
	return 0;
}

static void
done(struct top *t)
{
	size_t i;

	top_screen_free(t->screen);
	for (i = 0; i < t->collectors.n; i++) {
		if (t->sources != NULL)
			control_free(t->sources[i].control);
		if (t->models != NULL)
			top_model_free(t->models[i]);
	}
	free(t->sources);
	free(t->models);
	loop_timer_free(t->timer);
	collectors_done(&t->collectors);
	if (t->loop != NULL)
		loop_free(t->loop);
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
	if (collectors_of_line(&t.collectors, &t.line, err,
		sizeof(err)) != 0 ||
	    collectors_want_consumers(&t.collectors, err, sizeof(err)) != 0)
		t.status = flags_refuse(&command, err);
	else if (make(&t) != 0)
		t.status = flags_refuse(&command, "out of memory");
	else
		run(&t);
	done(&t);
	return t.status;
}
