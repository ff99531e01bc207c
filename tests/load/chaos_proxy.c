/*
 * chaos_proxy: a bad network between two ends of this machine.
 *
 *	chaos_proxy [--random SEED [MEAN-MS]] LISTEN TARGET [LISTEN TARGET]...
 *
 * Each LISTEN/TARGET is a route, numbered from 0; addresses are UNIX paths or
 * host:port.  Says "listening ADDRESS" for each, then reads commands, a line
 * each, from its standard input, and answers each with a line that begins with
 * "ok" or "error".  "@N COMMAND" is for route N, else it is for all.
 *
 *	delay MS [JITTER-MS [up|down]]
 *	rate BYTES-PER-SECOND [up|down]   0: any
 *	cut rst|close|drop|half-client|half-target|stall
 *	                                  all connections that there are now
 *	refuse MS      new connections are reset for so long; 0: no more
 *	reorder MS     the next connection waits until a later one was let
 *	               through, or for so long
 *	random SEED MEAN-MS               cuts of all kinds, by chance
 *	heal           ends stalls, refusing, waiting and random cuts; clients
 *	               whose bytes vanished are reset, their targets never told
 *	stats          ok routes, connections, accepted, cuts, bytes up and down
 *
 * Ends with its standard input, unless that says "stay" or is a random one.
 */
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "tests/load/chaos_pair.h"
#include "tests/load/load_conn.h"
#include "transport/connect/listener.h"
#include "transport/loop/loop.h"
#include "transport/socket/addr.h"

#define ROUTES_MAX 1024
#define LINE_MAX_BYTES 256
/* A stall or a refusal that chance made ends by itself. */
#define RANDOM_HEAL_MS 400u

struct connection {
	LIST_ENTRY(connection) next;
	struct chaos_pair *pair;
	struct route *route;
};

struct route {
	size_t number;
	struct addr listen, target;
	struct listener *listener;
	struct chaos_rules rules;
	LIST_HEAD(, connection) connections;
	size_t n_connections;
	uint64_t accepted, cuts, bytes[CHAOS_WAYS];

	uint64_t refuse_until_ms;
	uint32_t hold_next_ms;      /* 0: the next one may pass */
	struct connection *held;    /* waits for a later one */
	struct loop_timer *release; /* or for this */

	uint64_t mean_ms; /* between random cuts; 0: none */
	uint64_t chance;
	struct loop_timer *next_cut;
	struct loop_timer *mend; /* what the last one left */
};

static struct loop *loop;
static struct route routes[ROUTES_MAX];
static size_t n_routes;
static bool stays;
static struct event *input;

static void
carried(void *arg, enum chaos_way way, size_t bytes)
{
	struct connection *c = arg;

	c->route->bytes[way] += bytes;
}

static void
gone(void *arg, struct chaos_pair *p)
{
	struct connection *c = arg;

	if (c->route->held == c)
		c->route->held = NULL;
	LIST_REMOVE(c, next);
	c->route->n_connections--;
	free(c);
}

static const struct chaos_pair_ops pair_ops = { carried, gone };

static void
release_held(struct route *r)
{
	struct connection *c = r->held;

	r->held = NULL;
	loop_timer_clear(r->release);
	if (c != NULL)
		chaos_pair_let_through(c->pair);
}

static void
release_cb(void *arg)
{
	release_held(arg);
}

static void
accepted(struct listener *l, int fd, void *arg)
{
	struct route *r = arg;
	struct linger now = { .l_onoff = 1, .l_linger = 0 };
	struct connection *c;
	bool hold = r->hold_next_ms > 0 && r->held == NULL;

	r->accepted++;
	if (loop_now_ms() < r->refuse_until_ms ||
	    (c = calloc(1, sizeof(*c))) == NULL) {
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		close(fd);
		return;
	}
	c->route = r;
	c->pair = chaos_pair_new(loop, fd, &r->target, &r->rules, hold,
	    &pair_ops, c);
	if (c->pair == NULL) {
		free(c);
		return;
	}
	LIST_INSERT_HEAD(&r->connections, c, next);
	r->n_connections++;
	if (hold) {
		r->held = c;
		loop_timer_set(r->release, r->hold_next_ms, 0);
		r->hold_next_ms = 0;
	} else if (r->held != NULL) {
		/* Once this one is on its way. */
		loop_timer_set(r->release, 20, 0);
	}
}

static void
cut_all(struct route *r, enum chaos_cut how)
{
	struct connection *c, *after;

	for (c = LIST_FIRST(&r->connections); c != NULL; c = after) {
		after = LIST_NEXT(c, next);
		chaos_pair_cut(c->pair, how);
		r->cuts++;
	}
}

static void
mend(struct route *r)
{
	struct connection *c, *after;

	r->refuse_until_ms = 0;
	r->hold_next_ms = 0;
	release_held(r);
	for (c = LIST_FIRST(&r->connections); c != NULL; c = after) {
		after = LIST_NEXT(c, next);
		chaos_pair_go_on(c->pair);
	}
}

static void
mend_cb(void *arg)
{
	mend(arg);
}

/* Exponential pauses: cuts come in swarms, too. */
static void
plan_cut(struct route *r)
{
	double u = (double)(1 + chaos_random(&r->chance, 1u << 30)) /
	    (double)(1u << 30);

	loop_timer_set(r->next_cut,
	    1 + (uint64_t)(-log(u) * (double)r->mean_ms), 0);
}

static void
random_cut_cb(void *arg)
{
	struct route *r = arg;
	unsigned kind = (unsigned)chaos_random(&r->chance, CHAOS_CUTS + 2);
	uint32_t ms = 20 + (uint32_t)chaos_random(&r->chance, RANDOM_HEAL_MS);
	const char *what;

	if (kind < CHAOS_CUTS) {
		what = chaos_cut_text((enum chaos_cut)kind);
		cut_all(r, (enum chaos_cut)kind);
	} else if (kind == CHAOS_CUTS) {
		what = "refuse";
		r->refuse_until_ms = loop_now_ms() + ms;
		cut_all(r, CHAOS_RST);
	} else {
		what = "reorder";
		r->hold_next_ms = ms;
		cut_all(r, CHAOS_RST);
	}
	fprintf(stderr, "%llu route %zu: %s\n",
	    (unsigned long long)loop_now_ms(), r->number, what);
	loop_timer_set(r->mend, ms, 0);
	plan_cut(r);
}

static void
begin_random(struct route *r, uint64_t seed, uint64_t mean_ms)
{
	r->chance = seed * 1000003u + r->number;
	r->mean_ms = mean_ms;
	plan_cut(r);
}

static void
heal(struct route *r)
{
	r->mean_ms = 0;
	loop_timer_clear(r->next_cut);
	loop_timer_clear(r->mend);
	mend(r);
}

/* ---- commands ---- */

/* Which ways a last word names; false: none of them. */
static bool
parse_ways(const char *word, bool ways[CHAOS_WAYS])
{
	ways[CHAOS_UP] = word == NULL || strcmp(word, "up") == 0;
	ways[CHAOS_DOWN] = word == NULL || strcmp(word, "down") == 0;
	return ways[CHAOS_UP] || ways[CHAOS_DOWN];
}

static uint64_t
number(const char *word)
{
	return word == NULL ? 0 : strtoull(word, NULL, 10);
}

static bool
command_delay(struct route *r, char *w[4])
{
	bool ways[CHAOS_WAYS];
	int i;

	if (w[1] == NULL || !parse_ways(w[2] == NULL ? NULL : w[3], ways))
		return false;
	for (i = 0; i < CHAOS_WAYS; i++) {
		if (!ways[i])
			continue;
		r->rules.delay_ms[i] = (uint32_t)number(w[1]);
		r->rules.jitter_ms[i] = (uint32_t)number(w[2]);
	}
	return true;
}

static bool
command_rate(struct route *r, char *w[4])
{
	bool ways[CHAOS_WAYS];
	int i;

	if (w[1] == NULL || !parse_ways(w[2], ways))
		return false;
	for (i = 0; i < CHAOS_WAYS; i++)
		if (ways[i])
			r->rules.rate[i] = number(w[1]);
	return true;
}

static bool
command(struct route *r, char *w[4])
{
	enum chaos_cut cut;

	if (strcmp(w[0], "delay") == 0)
		return command_delay(r, w);
	if (strcmp(w[0], "rate") == 0)
		return command_rate(r, w);
	if (strcmp(w[0], "heal") == 0) {
		heal(r);
		return true;
	}
	if (w[1] == NULL)
		return false;
	if (strcmp(w[0], "cut") == 0) {
		if (!chaos_cut_parse(w[1], &cut))
			return false;
		cut_all(r, cut);
		return true;
	}
	if (strcmp(w[0], "refuse") == 0) {
		r->refuse_until_ms = loop_now_ms() + number(w[1]);
		return true;
	}
	if (strcmp(w[0], "reorder") == 0) {
		r->hold_next_ms = (uint32_t)number(w[1]);
		return true;
	}
	if (strcmp(w[0], "random") == 0 && number(w[2]) > 0) {
		begin_random(r, number(w[1]), number(w[2]));
		return true;
	}
	return false;
}

static void
say_stats(size_t first, size_t end)
{
	uint64_t sums[5] = { 0 };
	size_t i;

	for (i = first; i < end; i++) {
		sums[0] += routes[i].n_connections;
		sums[1] += routes[i].accepted;
		sums[2] += routes[i].cuts;
		sums[3] += routes[i].bytes[CHAOS_UP];
		sums[4] += routes[i].bytes[CHAOS_DOWN];
	}
	printf("ok routes %zu connections %llu accepted %llu cuts %llu up %llu "
	    "down %llu\n", end - first, (unsigned long long)sums[0],
	    (unsigned long long)sums[1], (unsigned long long)sums[2],
	    (unsigned long long)sums[3], (unsigned long long)sums[4]);
}

static void
act_on(char *line)
{
	char *words[5] = { NULL }, *save = NULL, *word;
	char **w = words;
	size_t n = 0, first = 0, end = n_routes, i;

	for (word = strtok_r(line, " \t\r", &save); word != NULL && n < 5;
	     word = strtok_r(NULL, " \t\r", &save))
		words[n++] = word;
	if (n > 0 && words[0][0] == '@') {
		first = (size_t)number(words[0] + 1);
		end = first + 1;
		w++;
		n--;
	}
	if (n == 0 || end > n_routes) {
		puts("error: no such route, or no command");
		return;
	}
	if (strcmp(w[0], "stay") == 0) {
		stays = true;
		puts("ok");
		return;
	}
	if (strcmp(w[0], "stats") == 0) {
		say_stats(first, end);
		return;
	}
	for (i = first; i < end; i++) {
		if (command(&routes[i], w))
			continue;
		printf("error: cannot do that: %s\n", w[0]);
		return;
	}
	puts("ok");
}

static void
input_cb(evutil_socket_t fd, short what, void *arg)
{
	static char line[LINE_MAX_BYTES];
	static size_t len;
	char buf[LINE_MAX_BYTES];
	ssize_t n = read(fd, buf, sizeof(buf)), i;

	if (n <= 0) {
		event_del(input);
		if (!stays)
			loop_stop(loop);
		return;
	}
	for (i = 0; i < n; i++) {
		if (buf[i] != '\n') {
			if (len + 1 < sizeof(line))
				line[len++] = buf[i];
			continue;
		}
		line[len] = '\0';
		len = 0;
		act_on(line);
	}
	fflush(stdout);
}

/* ---- start and end ---- */

static void
stop_cb(void *arg)
{
	loop_stop(arg);
}

static void
open_route(const char *listen, const char *target, uint64_t seed)
{
	struct route *r = &routes[n_routes];
	char err[256];
	int port;

	if (n_routes == ROUTES_MAX)
		load_die("more than %d routes", ROUTES_MAX);
	r->number = n_routes++;
	r->rules.random = seed + r->number;
	LIST_INIT(&r->connections);
	if (addr_parse(&r->listen, listen, err, sizeof(err)) != 0 ||
	    addr_parse(&r->target, target, err, sizeof(err)) != 0)
		load_die("%s", err);
	r->release = loop_timer_new(loop, release_cb, r);
	r->next_cut = loop_timer_new(loop, random_cut_cb, r);
	r->mend = loop_timer_new(loop, mend_cb, r);
	if (r->release == NULL || r->next_cut == NULL || r->mend == NULL)
		load_die("no memory");
	r->listener = listener_new(loop,
	    &(struct listener_setup){ .addr = &r->listen, .allow_remote = true,
	    .fn = accepted, .arg = r }, err, sizeof(err));
	if (r->listener == NULL)
		load_die("%s", err);
	port = listener_port(r->listener);
	if (port > 0)
		printf("listening %s:%d\n", r->listen.host, port);
	else
		printf("listening %s\n", listen);
}

static void
close_route(struct route *r)
{
	heal(r);
	cut_all(r, CHAOS_RST);
	listener_free(r->listener);
	loop_timer_free(r->release);
	loop_timer_free(r->next_cut);
	loop_timer_free(r->mend);
}

int
main(int argc, char **argv)
{
	uint64_t seed = 1, mean_ms = 0;
	int at = 1;
	size_t i;

	if (argc > 2 && strcmp(argv[1], "--random") == 0) {
		seed = number(argv[2]);
		mean_ms = 500;
		stays = true;
		at = 3;
		if (at < argc && strspn(argv[at], "0123456789") ==
		    strlen(argv[at]))
			mean_ms = number(argv[at++]);
	}
	if (argc - at < 2 || (argc - at) % 2 != 0)
		load_die("[--random SEED [MEAN-MS]] LISTEN TARGET "
		    "[LISTEN TARGET]...");
	if ((loop = loop_new()) == NULL)
		load_die("no memory");
	for (; at < argc; at += 2)
		open_route(argv[at], argv[at + 1], seed);
	for (i = 0; mean_ms > 0 && i < n_routes; i++)
		begin_random(&routes[i], seed, mean_ms);
	fflush(stdout);
	input = event_new(loop_base(loop), STDIN_FILENO, EV_READ | EV_PERSIST,
	    input_cb, NULL);
	/* A file as input is at its end from the start. */
	if (input == NULL || event_add(input, NULL) != 0)
		stays = true;
	if (loop_on_signal(loop, SIGTERM, stop_cb, loop) != 0 ||
	    loop_on_signal(loop, SIGINT, stop_cb, loop) != 0)
		load_die("no memory");
	loop_run(loop);

	for (i = 0; i < n_routes; i++)
		close_route(&routes[i]);
	if (input != NULL)
		event_free(input);
	loop_free(loop);
	return 0;
}
