/*
 * A program that traces itself, and does what its input says, a line at a time:
 *
 *	track_events ADDRESS [MEMORY_KB]
 *
 * Answers each line with "ok", and what is wrong with "bad", on its output; ends
 * at the end of its input.  Expected by tests/e2e/test_track_events.py.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tributary/track_event.h>
#include <tributary/tributary.h>

TRIBUTARY_CATEGORY(net, "net", "Requests and answers", "");
TRIBUTARY_CATEGORY(netlow, "net.low", "Packets", "io");
TRIBUTARY_CATEGORY(disk, "disk", "", "io,verbose");
TRIBUTARY_CATEGORY(slow, "slowly", "", "slow");
TRIBUTARY_CATEGORY(debug, "debugging", "", "verbose, debug");

#define THREADS_MAX 64

/* ---- What the lines ask for ---- */

static void
scope(void)
{
	TRIBUTARY_SLICE(net, "scope", tributary_int("level", 1));
	{
		TRIBUTARY_SLICE(net, "inner scope");
		TRIBUTARY_INSTANT(net, "inside");
	}
	TRIBUTARY_INSTANT(net, "between");
}

static void
slices(void)
{
	TRIBUTARY_BEGIN(net, "outer");
	TRIBUTARY_BEGIN(net, "middle");
	TRIBUTARY_BEGIN(disk, "inner");
	TRIBUTARY_END(disk);
	TRIBUTARY_BEGIN(disk, "inner");
	TRIBUTARY_END(disk, tributary_int("read", 7));
	TRIBUTARY_END(net);
	TRIBUTARY_INSTANT(net, "instant");
	TRIBUTARY_END(net);
	scope();
}

static void
counters(void)
{
	struct tributary_track bytes = tributary_counter_track("bytes",
	    TRIBUTARY_UNIT_BYTES, tributary_process_track());
	struct tributary_track loads = tributary_counter_track("load",
	    TRIBUTARY_UNIT_NONE, tributary_process_track());
	struct tributary_track steps = tributary_counter_track("steps",
	    TRIBUTARY_UNIT_COUNT, NULL);
	struct tributary_track thread = tributary_thread_track();
	struct tributary_track pages = tributary_counter_track("pages",
	    TRIBUTARY_UNIT_NONE, &thread);

	loads.unit_name = "tasks";
	steps.incremental = true;
	pages.multiplier = 4096;
	TRIBUTARY_COUNTER(net, &bytes, 0);
	TRIBUTARY_COUNTER(net, &bytes, 5000000000);
	TRIBUTARY_COUNTER(net, &bytes, -1);
	TRIBUTARY_COUNTER_DOUBLE(net, &loads, 0.25);
	TRIBUTARY_COUNTER_DOUBLE(net, &loads, 1e9);
	TRIBUTARY_COUNTER(net, &steps, 10);
	TRIBUTARY_COUNTER(net, &steps, 5);
	TRIBUTARY_COUNTER(net, &steps, -3);
	TRIBUTARY_COUNTER(net, &pages, 3);
}

static void *
receive(void *arg)
{
	TRIBUTARY_BEGIN(net, "receive", tributary_flow(1));
	TRIBUTARY_END(net);
	TRIBUTARY_BEGIN(net, "answer", tributary_flow_end(1));
	TRIBUTARY_END(net);
	/* Of the same number, and of another flow. */
	TRIBUTARY_BEGIN(net, "other", tributary_flow(1));
	TRIBUTARY_END(net);
	TRIBUTARY_BEGIN(net, "global", tributary_flow_end_global(77));
	TRIBUTARY_END(net);
	return arg;
}

static void
run_thread(void *(*run)(void *arg), void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, run, arg) != 0)
		abort();
	pthread_join(t, NULL);
}

static void
flows(void)
{
	TRIBUTARY_BEGIN(net, "send", tributary_flow(1),
	    tributary_flow_global(77));
	TRIBUTARY_END(net);
	run_thread(receive, NULL);
}

static void
arguments(void)
{
	TRIBUTARY_INSTANT(net, "arguments",
	    tributary_int("int", -5),
	    tributary_uint("uint", UINT64_MAX),
	    tributary_bool("yes", true),
	    tributary_bool("no", false),
	    tributary_double("double", 0.5),
	    tributary_pointer("pointer", (void *)0x1234),
	    tributary_string("string", "words"),
	    tributary_string("null", NULL),
	    tributary_string_n("cut", "words", 2),
	    tributary_dict("dict"),
		tributary_int("a", 1),
		tributary_dict("deeper"),
		    tributary_string("b", "two"),
		tributary_end_of(),
		tributary_array("list"),
		    tributary_int(NULL, 1),
		    tributary_array(NULL),
			tributary_double(NULL, 2.5),
		    tributary_end_of(),
		    tributary_dict(NULL),
			tributary_bool("c", true),
		    tributary_end_of(),
		tributary_end_of(),
	    tributary_end_of(),
	    tributary_int("last", INT64_MIN));
}

static void
tracks(void)
{
	struct tributary_track top = tributary_track("top", 0, NULL);
	struct tributary_track nested = tributary_track("nested", 0, &top);
	struct tributary_track low = tributary_track("low", 0, &nested);
	struct tributary_track of_process = tributary_track("workers", 0,
	    tributary_process_track());
	struct tributary_track thread = tributary_thread_track();
	struct tributary_track of_thread = tributary_track("tasks", 0,
	    &thread);
	struct tributary_track first = tributary_track("async", 1,
	    tributary_process_track());
	struct tributary_track second = tributary_track("async", 2,
	    tributary_process_track());

	top.description = "A track at the top";
	nested.rank = -2;
	TRIBUTARY_BEGIN(net, "on low", tributary_on(&low));
	TRIBUTARY_END(net, tributary_on(&low));
	TRIBUTARY_BEGIN(net, "on nested", tributary_on(&nested));
	TRIBUTARY_END(net, tributary_on(&nested));
	TRIBUTARY_INSTANT(net, "on process",
	    tributary_on(tributary_process_track()));
	TRIBUTARY_INSTANT(net, "on thread", tributary_on(&thread));
	TRIBUTARY_INSTANT(net, "on workers", tributary_on(&of_process));
	TRIBUTARY_INSTANT(net, "on tasks", tributary_on(&of_thread));
	/* Asynchronous: their slices overlap. */
	TRIBUTARY_BEGIN(net, "first", tributary_on(&first));
	TRIBUTARY_BEGIN(net, "second", tributary_on(&second));
	TRIBUTARY_END(net, tributary_on(&first));
	TRIBUTARY_END(net, tributary_on(&second));
}

static void *
stay_away(void *arg)
{
	struct tributary_track *out = arg;

	*out = tributary_thread_track();
	return NULL;
}

/* A track of a thread that writes nothing itself. */
static void
track_of_another(void)
{
	struct tributary_track other;

	run_thread(stay_away, &other);
	TRIBUTARY_INSTANT(net, "on another", tributary_on(&other));
}

static void *
write_named(void *arg)
{
	TRIBUTARY_INSTANT(net, "before the name");
	tributary_set_thread_name(arg);
	TRIBUTARY_INSTANT(net, "after the name");
	return NULL;
}

static void *
write_with_comm(void *arg)
{
	pthread_setname_np(pthread_self(), "by the kernel");
	TRIBUTARY_INSTANT(net, "with comm");
	return arg;
}

static void
threads(void)
{
	char name[] = "a name of more than sixteen bytes, and \xc3\xbcmlauts";

	run_thread(write_named, name);
	run_thread(write_with_comm, NULL);
}

static void
messages(void)
{
	TRIBUTARY_INSTANT(net, "located", TRIBUTARY_HERE);
	TRIBUTARY_INSTANT(net, "placed",
	    tributary_location("dir/file.c", "a_function", 42));
	TRIBUTARY_INSTANT(net, "log",
	    tributary_location("dir/log.c", "say", 7),
	    tributary_log(TRIBUTARY_WARN, "Something happened"));
	TRIBUTARY_INSTANT(net, "log",
	    tributary_log(TRIBUTARY_ERROR, "And once more"));
	TRIBUTARY_BEGIN(net, "correlated", tributary_correlation(99));
	TRIBUTARY_END(net);
	TRIBUTARY_BEGIN(net, "by text", tributary_correlation_string("r-1"));
	TRIBUTARY_END(net);
	/* TrackEvent.categories */
	TRIBUTARY_INSTANT(net, "encoded", tributary_encoded("\xb2\x01\x05" "extra",
	    8));
}

static uint64_t
monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Times are said on the output: those of the trace are to be the same. */
static void
times(void)
{
	uint64_t now = tributary_now_ns(), mono = monotonic_ns();
	struct tributary_track late = tributary_track("late", 0, NULL);

	TRIBUTARY_BEGIN(net, "own", tributary_on(&late),
	    tributary_at(now - 2000000));
	TRIBUTARY_END(net, tributary_on(&late), tributary_at(now - 500000));
	TRIBUTARY_BEGIN(net, "now");
	TRIBUTARY_END(net);
	/* 3: MONOTONIC */
	TRIBUTARY_INSTANT(net, "monotonic", tributary_at_clock(mono, 3));
	printf("%llu %llu ", (unsigned long long)now, (unsigned long long)mono);
}

static void
names(void)
{
	char text[32];
	int i;

	for (i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), "dynamic %d", i);
		TRIBUTARY_BEGIN(net, "literal", tributary_name(text),
		    tributary_int("i", i));
		TRIBUTARY_END(net);
	}
}

static void
all_categories(void)
{
	TRIBUTARY_INSTANT(net, "of net");
	TRIBUTARY_INSTANT(netlow, "of net.low");
	TRIBUTARY_INSTANT(disk, "of disk");
	TRIBUTARY_INSTANT(slow, "of slow");
	TRIBUTARY_INSTANT(debug, "of debug");
}

/* Processor time passes. */
static void
compute(uint64_t ns)
{
	struct timespec ts;
	uint64_t end = 0, now;

	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
		now = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
		end = end != 0 ? end : now + ns;
	} while (now < end);
}

static void
work(void)
{
	int i;

	for (i = 0; i < 5; i++) {
		TRIBUTARY_BEGIN(net, "work");
		compute(2000000);
		TRIBUTARY_END(net);
	}
}

/* ---- Crowds ---- */

static struct crowd {
	long pairs;
	int number;
	pthread_t thread;
} crowd[THREADS_MAX];

static void *
write_many(void *arg)
{
	struct crowd *c = arg;
	char name[32];
	long i;

	snprintf(name, sizeof(name), "crowd %d", c->number);
	tributary_set_thread_name(name);
	for (i = 0; i < c->pairs; i++) {
		if (i % 16 == 3)
			TRIBUTARY_BEGIN(disk, "odd", tributary_int("i", i));
		else
			TRIBUTARY_BEGIN(net, "even");
		TRIBUTARY_END(net);
	}
	return NULL;
}

static void
many(int threads_n, long pairs)
{
	int i;

	for (i = 0; i < threads_n; i++) {
		crowd[i].pairs = pairs;
		crowd[i].number = i;
		if (pthread_create(&crowd[i].thread, NULL, write_many,
		    &crowd[i]) != 0)
			abort();
	}
	for (i = 0; i < threads_n; i++)
		pthread_join(crowd[i].thread, NULL);
}

static void
plain(long pairs)
{
	long i;

	for (i = 0; i < pairs; i++) {
		TRIBUTARY_BEGIN(net, "plain");
		TRIBUTARY_END(net);
	}
}

/* More tracks than a sequence remembers, each with one slice. */
static void
many_tracks(long n)
{
	struct tributary_track t;
	long i;

	for (i = 0; i < n; i++) {
		t = tributary_track("one of many", (uint64_t)i, NULL);
		TRIBUTARY_INSTANT(net, "on its own", tributary_on(&t));
	}
}

/* Pauses between rounds: the state is cleared meanwhile, and rings wrap. */
static void
rounds(long n)
{
	struct timespec pause = { 0, 20 * 1000 * 1000 };
	struct tributary_track track = tributary_track("round track", 0,
	    tributary_process_track());
	long i;

	for (i = 0; i < n; i++) {
		slices();
		counters();
		TRIBUTARY_INSTANT(net, "round", tributary_int("number", i),
		    tributary_on(&track),
		    tributary_location("round.c", "rounds", 3));
		plain(200);
		nanosleep(&pause, NULL);
	}
}

/* ---- Lines ---- */

/* Until a session has enabled the category, or none has any more. */
static void
wait_enabled(bool enabled)
{
	struct timespec pause = { 0, 1000 * 1000 };

	while (TRIBUTARY_ENABLED(net) != enabled)
		nanosleep(&pause, NULL);
}

static const struct {
	const char *name;
	void (*run)(void);
} plain_lines[] = {
	{ "slices", slices },
	{ "counters", counters },
	{ "flows", flows },
	{ "arguments", arguments },
	{ "tracks", tracks },
	{ "track_of_another", track_of_another },
	{ "threads", threads },
	{ "messages", messages },
	{ "times", times },
	{ "names", names },
	{ "categories", all_categories },
	{ "work", work },
};

static bool
run_line(const char *line)
{
	size_t i;
	long n;
	int of;

	for (i = 0; i < sizeof(plain_lines) / sizeof(plain_lines[0]); i++)
		if (strcmp(line, plain_lines[i].name) == 0) {
			plain_lines[i].run();
			return true;
		}
	if (strcmp(line, "enabled") == 0)
		wait_enabled(true);
	else if (strcmp(line, "disabled") == 0)
		wait_enabled(false);
	else if (strcmp(line, "flush") == 0)
		return tributary_flush(60000);
	else if (sscanf(line, "many %d %ld", &of, &n) == 2 && of <= THREADS_MAX)
		many(of, n);
	else if (sscanf(line, "plain %ld", &n) == 1)
		plain(n);
	else if (sscanf(line, "many_tracks %ld", &n) == 1)
		many_tracks(n);
	else if (sscanf(line, "rounds %ld", &n) == 1)
		rounds(n);
	else
		return false;
	return true;
}

int
main(int argc, char **argv)
{
	struct tributary_options options = TRIBUTARY_OPTIONS;
	char line[128];
	bool ok;

	options.address = argc > 1 ? argv[1] : NULL;
	if (argc > 2)
		options.memory_bytes = (uint32_t)atoi(argv[2]) * 1024u;
	if (tributary_start(&options) != 0)
		return 1;
	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		ok = run_line(line);
		printf("%s\n", ok ? "ok" : "bad");
		fflush(stdout);
	}
	tributary_stop(10000);
	return 0;
}
