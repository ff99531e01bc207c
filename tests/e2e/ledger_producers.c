/*
 * ledger_producers: producers that number their packets, survive the end of
 * their service, and keep a book of what they wrote.
 *
 *	ledger_producers [--rate BYTES] [--packets N] [--shm-kb N] [--writers N]
 *	    [--size BYTES] [--no-patches] [--text] SOURCE ADDRESS:COUNT...
 *
 * Packets are filled with zeros, or with what compresses as real ones do (--text).
 * COUNT producers at each ADDRESS, called ledger.ADDRESS-INDEX.N; each writes
 * BYTES a second (0: as fast as it can) while SOURCE is traced.  Says "ready"
 * when all are registered.  Then takes lines from its standard input, answers
 * each with "ok", and ends with it:
 *
 *	rate BYTES
 *	finish         writes no more; answered when all is whole and committed
 *	book           a line of JSON for each sequence, before the answer
 *	writing        how many sequences are being written: "ok N"
 *	ready          how many producers are connected: "ok N"
 */
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/load/ledger_producer.h"
#include "tests/load/load_conn.h"
#include "transport/loop/loop.h"

#define TURN_MS 10u
/* As fast as it can: a turn's worth. */
#define UNPACED_BYTES (512u << 10)

static struct loop *loop;
static struct ledger_producer **producers;
static size_t n_producers;
static uint64_t rate;
static uint64_t last_ms, owed; /* bytes, times 1000 */
static bool said_ready, finishing, finished;
static struct event *input;

static size_t
count(size_t (*of)(const struct ledger_producer *p))
{
	size_t i, n = 0;

	for (i = 0; i < n_producers; i++)
		n += of(producers[i]);
	return n;
}

static size_t
is_ready(const struct ledger_producer *p)
{
	return ledger_producer_is_ready(p) ? 1 : 0;
}

static size_t
is_quiet(const struct ledger_producer *p)
{
	return ledger_producer_is_quiet(p) ? 1 : 0;
}

static void
finish(void)
{
	bool whole = true;
	size_t i;

	for (i = 0; i < n_producers; i++)
		whole &= ledger_producer_finish(producers[i]);
	if (!whole || count(is_quiet) < n_producers || finished)
		return;
	finished = true;
	puts("ok");
	fflush(stdout);
}

static void
turn_cb(void *arg)
{
	uint64_t now = loop_now_ms();
	size_t bytes = UNPACED_BYTES, i;

	if (!said_ready && count(is_ready) == n_producers) {
		said_ready = true;
		puts("ready");
		fflush(stdout);
	}
	if (finishing) {
		finish();
		last_ms = now;
		return;
	}
	if (rate > 0) {
		owed += (now - last_ms) * rate;
		bytes = (size_t)(owed / 1000);
		owed -= 1000 * (uint64_t)bytes;
	}
	last_ms = now;
	for (i = 0; i < n_producers; i++)
		ledger_producer_write(producers[i], bytes);
}

static void
act_on(const char *line)
{
	size_t i;

	if (strcmp(line, "finish") == 0) {
		finishing = true;
		finished = false;
		return; /* answered by finish() */
	}
	if (strncmp(line, "rate ", 5) == 0) {
		rate = strtoull(line + 5, NULL, 10);
		finishing = false;
	} else if (strcmp(line, "book") == 0) {
		for (i = 0; i < n_producers; i++)
			ledger_producer_print(producers[i], stdout);
	} else if (strcmp(line, "writing") == 0) {
		printf("ok %zu\n", count(ledger_producer_writing));
		return;
	} else if (strcmp(line, "ready") == 0) {
		printf("ok %zu\n", count(is_ready));
		return;
	} else {
		load_die("what is %s?", line);
	}
	puts("ok");
}

static void
input_cb(evutil_socket_t fd, short what, void *arg)
{
	static char line[128];
	static size_t len;
	char buf[128];
	ssize_t n = read(fd, buf, sizeof(buf)), i;

	if (n <= 0) {
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

static void
open_producers(const char *arg, size_t index, struct ledger_options *o)
{
	char address[ADDR_TEXT_MAX], name[64], err[256];
	const char *colon = strrchr(arg, ':');
	size_t n, i;

	if (colon == NULL || (size_t)(colon - arg) >= sizeof(address))
		load_die("not ADDRESS:COUNT: %s", arg);
	memcpy(address, arg, (size_t)(colon - arg));
	address[colon - arg] = '\0';
	if (addr_parse(&o->address, address, err, sizeof(err)) != 0)
		load_die("%s", err);
	n = strtoul(colon + 1, NULL, 10);
	producers = realloc(producers, (n_producers + n) * sizeof(*producers));
	if (producers == NULL)
		load_die("no memory");
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "ledger.%zu.%zu", index, i);
		o->name = name;
		producers[n_producers++] = ledger_producer_new(o);
	}
}

int
main(int argc, char **argv)
{
	static uint32_t next_seq_value = 1;
	struct ledger_options o = { .writers = 2, .packet_bytes = 200,
		.patches = true, .next_seq_value = &next_seq_value };
	struct loop_timer *turn;
	int at = 1, first;
	size_t i;

	for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at++) {
		if (strcmp(argv[at], "--no-patches") == 0)
			o.patches = false;
		else if (strcmp(argv[at], "--text") == 0)
			o.text = true;
		else if (strcmp(argv[at], "--rate") == 0)
			rate = strtoull(argv[++at], NULL, 10);
		else if (strcmp(argv[at], "--packets") == 0)
			o.packets = strtoull(argv[++at], NULL, 10);
		else if (strcmp(argv[at], "--shm-kb") == 0)
			o.shm_bytes = 1024 *
			    (uint32_t)strtoul(argv[++at], NULL, 10);
		else if (strcmp(argv[at], "--writers") == 0)
			o.writers = (uint32_t)strtoul(argv[++at], NULL, 10);
		else if (strcmp(argv[at], "--size") == 0)
			o.packet_bytes =
			    (uint32_t)strtoul(argv[++at], NULL, 10);
		else
			load_die("no such flag: %s", argv[at]);
	}
	if (argc - at < 2)
		load_die("[flags] SOURCE ADDRESS:COUNT...");
	if ((loop = loop_new()) == NULL ||
	    (turn = loop_timer_new(loop, turn_cb, NULL)) == NULL)
		load_die("no memory");
	o.loop = loop;
	o.source = argv[at++];
	for (first = at; at < argc; at++)
		open_producers(argv[at], (size_t)(at - first), &o);
	input = event_new(loop_base(loop), STDIN_FILENO, EV_READ | EV_PERSIST,
	    input_cb, NULL);
	if (input == NULL || event_add(input, NULL) != 0)
		load_die("standard input has to be a pipe");
	last_ms = loop_now_ms();
	loop_timer_set(turn, TURN_MS, 1);
	loop_run(loop);

	event_free(input);
	loop_timer_free(turn);
	for (i = 0; i < n_producers; i++)
		ledger_producer_free(producers[i]);
	free(producers);
	loop_free(loop);
	return 0;
}
