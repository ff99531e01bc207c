#include "client/top.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/control.h"
#include "client/top_model.h"
#include "client/top_screen.h"
#include "protos/control.pb-c.h"
#include "transport/addr.h"
#include "transport/dial.h"
#include "transport/dial_flags.h"
#include "transport/loop.h"
#include "transport/unknown_flag.h"

#define ERROR_BYTES 2048
#define ANSWER_MS   30000u
#define INTERVAL_MS 2000u
#define LEAST_MS    100u
#define MOST_MS     3600000u

enum { EXIT_OK = 0, EXIT_FAILED = 1 };
enum { OPT_CONNECT = 1000, OPT_INTERVAL, OPT_PLAIN };

static const struct option flags[] = {
	{ "connect", required_argument, NULL, OPT_CONNECT },
	{ "count", required_argument, NULL, 'n' },
	{ "help", no_argument, NULL, 'h' },
	{ "interval", required_argument, NULL, OPT_INTERVAL },
	{ "plain", no_argument, NULL, OPT_PLAIN },
	DIAL_FLAGS_LONG,
	{ NULL, 0, NULL, 0 },
};

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
    "      --connect ADDR  the collector's consumer socket; default:\n"
    "                    $PERFETTO_CONSUMER_SOCK_NAME, else\n"
    "                    /run/perfetto/traced-consumer.sock, else\n"
    "                    /tmp/perfetto-consumer; also tls://host:port,\n"
    "                    ssh://host and others, as for tributary record\n"
    "      --tls-dir DIR, --tls-name NAME, --allow-tls-1.2, --ssh-command CMD\n"
    "                    see tributary record --help\n"
    "  -h, --help        print this\n"
    "\n"
    "Rates are of the time since the look before: the first one has none. WAITS\n"
    "THERE is what a relay has not delivered yet, CUTS how often its connection\n"
    "came back, ACTIVE how many of a producer's data sources record.\n"
    "\n"
    "Exit status: 0; 1 when the collector cannot be asked.\n";

struct top {
	struct loop *loop;
	struct loop_timer *timer;
	struct control *control;   /* owned; NULL: to be connected */
	struct top_model *model;   /* owned */
	struct top_screen *screen; /* owned; NULL: lines */
	struct addr addr;
	struct dial_options how;
	const char *connect;
	uint64_t interval_ms;
	unsigned long count; /* looks that are left; 0: no end */
	bool plain;
	bool asking;
	bool answered;       /* once, at least */
	bool drop;           /* control ends when its callback is over */
	uint64_t asked_ms;
	int status;
};

static int
refuse(const char *text)
{
	fprintf(stderr, "tributary top: %s\n", text);
	return EXIT_FAILED;
}

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
		end(t, EXIT_FAILED);
}

static void
quit(void *arg)
{
	end(arg, EXIT_OK);
}

static void
show(struct top *t)
{
	if (t->screen != NULL) {
		draw(t);
	} else {
		top_model_print(stdout, t->model, 0, 0, "\n");
		putchar('\n');
		/* Whoever read it has seen enough. */
		if (fflush(stdout) != 0)
			end(t, errno == EPIPE ? EXIT_OK :
			    refuse(strerror(errno)));
	}
	if (t->count > 0 && --t->count == 0)
		end(t, EXIT_OK);
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
		end(t, refuse(why));
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
		    "does not tell what it does: it is Perfetto's, or an older "
		    "one" : why);
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
		t->control = control_new(t->loop, &t->addr, &t->how, err,
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

static int
parse_interval(struct top *t, const char *text)
{
	double seconds;
	char *rest;

	errno = 0;
	seconds = strtod(text, &rest);
	if (errno != 0 || rest == text || *rest != '\0' ||
	    !(seconds * 1000 >= LEAST_MS && seconds * 1000 <= MOST_MS))
		return refuse("--interval takes seconds, 0.1 to 3600");
	t->interval_ms = (uint64_t)(seconds * 1000);
	return -1;
}

static int
parse_count(struct top *t, const char *text)
{
	char *rest;

	errno = 0;
	t->count = strtoul(text, &rest, 10);
	if (errno != 0 || text[0] < '0' || text[0] > '9' || *rest != '\0' ||
	    t->count == 0)
		return refuse("-n takes a number, 1 or more");
	return -1;
}

/* -1: go on; else the exit status. */
static int
take_flag(struct top *t, int c, char **argv)
{
	char err[ERROR_BYTES];

	switch (c) {
	case 'h':
		fputs(help, stdout);
		return EXIT_OK;
	case 'n':
		return parse_count(t, optarg);
	case OPT_INTERVAL:
		return parse_interval(t, optarg);
	case OPT_PLAIN:
		t->plain = true;
		return -1;
	case OPT_CONNECT:
		t->connect = optarg;
		return -1;
	case ':':
		snprintf(err, sizeof(err), "%s wants a value",
		    argv[optind - 1]);
		return refuse(err);
	case '?':
		unknown_flag(argv[optind - 1], flags,
		    "see tributary top --help", err, sizeof(err));
		return refuse(err);
	default:
		(void)dial_flags_take(&t->how, c, optarg);
		return -1;
	}
}

static int
parse(struct top *t, int argc, char **argv)
{
	int c, status;

	opterr = 0;
	optind = 0; /* anew: glibc keeps state between calls */
	while ((c = getopt_long(argc, argv, ":hn:", flags, NULL)) != -1) {
		if ((status = take_flag(t, c, argv)) >= 0)
			return status;
	}
	if (optind < argc)
		return refuse("takes no names; see tributary top --help");
	return -1;
}

static void
run(struct top *t)
{
	static const struct top_screen_ops ops = { .quit = quit, .draw = draw };

	if (!t->plain && top_screen_is_there() &&
	    (t->screen = top_screen_new(t->loop, &ops, t)) == NULL) {
		t->status = refuse(strerror(errno));
		return;
	}
	draw(t);
	loop_timer_set(t->timer, t->interval_ms, 1);
	loop_defer(t->loop, tick_cb, t);
	loop_run(t->loop);
}

int
top_main(int argc, char **argv)
{
	struct top t = { .how.service = "consumer",
		.interval_ms = INTERVAL_MS, .status = EXIT_FAILED };
	char err[ERROR_BYTES];
	int status;

	if ((status = parse(&t, argc, argv)) >= 0)
		return status;
	if (t.connect == NULL)
		t.connect = addr_default_consumer();
	if (addr_parse(&t.addr, t.connect, err, sizeof(err)) < 0 ||
	    dial_flags_check(&t.how, &t.addr, err, sizeof(err)) < 0)
		return refuse(err);
	if ((t.loop = loop_new()) == NULL ||
	    (t.timer = loop_timer_new(t.loop, tick_cb, &t)) == NULL ||
	    (t.model = top_model_new(t.connect)) == NULL)
		t.status = refuse("out of memory");
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
