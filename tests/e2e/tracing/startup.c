/*
 * A program that records before a service asks for it, and does what its input
 * says, a line at a time:
 *
 *	startup ADDRESS MEMORY_KB TIMEOUT_MS
 *
 * Answers each line with numbers and "ok"; ends at the end of its input.
 * tributary_start() is called by the line "start".  Expected by
 * tests/e2e/test_startup.py.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tributary/data_source.h>
#include <tributary/track_event.h>
#include <unistd.h>

TRIBUTARY_CATEGORY(net, "net", "", "");
TRIBUTARY_CATEGORY(disk, "disk", "", "");
TRIBUTARY_CATEGORY(slow, "slowly", "", "slow");

#define THREADS 4

static const char *address;
static uint32_t memory_kb, timeout_ms;
static struct tributary_source *source;
static const struct tributary_source_ops ops = { .size = sizeof(ops) };
static atomic_bool over;
static atomic_ulong written;

/* How recordings have ended. */
static atomic_int ends, adoptions;
static atomic_ulong lost_packets;

static void
ended_cb(void *arg, bool adopted, uint64_t lost)
{
	lost_packets += lost;
	adoptions += adopted;
	ends++;
}

static bool
record(const char *of, const char *category)
{
	struct tributary_startup_options o = TRIBUTARY_STARTUP_OPTIONS;
	const char *categories[] = { category, NULL };

	o.source = of;
	o.memory_kb = memory_kb;
	o.timeout_ms = timeout_ms;
	o.ended = ended_cb;
	if (category != NULL)
		o.categories = categories;
	return tributary_startup(&o) == 0;
}

static bool
start(void)
{
	struct tributary_options o = TRIBUTARY_OPTIONS;

	o.address = address;
	o.memory_bytes = 8192 * 1024;
	return tributary_start(&o) == 0;
}

/* ---- Packets of a data source ---- */

static void
put_number(struct tributary_packet *p, struct tributary_instance *i,
    void *context, bool first, void *arg)
{
	static char text[2000];
	unsigned long n = *(unsigned long *)arg;

	memset(text, 'x', sizeof(text) - 1);
	tributary_begin(p, 900); /* for_testing */
	tributary_put_uint(p, 3, n); /* counter */
	/* Some are longer than chunks. */
	if (n % 10 == 0)
		tributary_put_string(p, 1, text);
	tributary_end(p);
}

static void
packets(unsigned long n)
{
	unsigned long i;

	for (i = 0; i < n; i++)
		tributary_source_write(source, put_number, &i);
}

/* ---- Threads that number ---- */

static void *
number(void *arg)
{
	size_t me = (size_t)arg;
	unsigned long i;

	for (i = 0; !over; i++) {
		TRIBUTARY_BEGIN(net, "number", tributary_uint("i", i),
		    tributary_uint("thread", me));
		TRIBUTARY_END(net);
		written++;
		if (i % 64 == 63)
			usleep(1000);
	}
	return (void *)i;
}

static pthread_t threads[THREADS];

static void
begin_numbers(void)
{
	size_t i;

	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, number, (void *)i) != 0)
			abort();
}

static void
end_numbers(void)
{
	void *n;
	int i;

	over = true;
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &n);
		printf("%lu ", (unsigned long)n);
	}
}

/* ---- Lines ---- */

static bool
wait_ended(void)
{
	while (ends == 0)
		usleep(1000);
	printf("%d %d %lu ", ends, adoptions, (unsigned long)lost_packets);
	return true;
}

static void
events(const char *when)
{
	TRIBUTARY_INSTANT(net, "of net", tributary_string("when", when));
	TRIBUTARY_INSTANT(disk, "of disk", tributary_string("when", when));
	TRIBUTARY_INSTANT(slow, "of slow", tributary_string("when", when));
}

static bool
run_line(const char *line)
{
	unsigned long n;
	char word[32];

	if (strcmp(line, "record") == 0)
		return record(NULL, NULL);
	if (strcmp(line, "record_source") == 0)
		return record("test.startup", NULL);
	if (sscanf(line, "record %31s", word) == 1)
		return record(NULL, word);
	if (strcmp(line, "start") == 0)
		return start();
	if (strcmp(line, "ended") == 0)
		return wait_ended();
	if (strcmp(line, "begin") == 0)
		TRIBUTARY_BEGIN(net, "open");
	else if (strcmp(line, "end") == 0)
		TRIBUTARY_END(net);
	else if (sscanf(line, "events %31s", word) == 1)
		events(word);
	else if (sscanf(line, "packets %lu", &n) == 1)
		packets(n);
	else if (strcmp(line, "numbers") == 0)
		begin_numbers();
	else if (sscanf(line, "written %lu", &n) == 1)
		while (written < n)
			usleep(1000);
	else if (strcmp(line, "end_numbers") == 0)
		end_numbers();
	else if (strcmp(line, "flush") == 0)
		return tributary_flush(60000);
	else if (strcmp(line, "stop") == 0)
		tributary_stop(10000);
	else
		return false;
	return true;
}

int
main(int argc, char **argv)
{
	struct tributary_source_options s = { .size = sizeof(s),
	    .name = "test.startup" };
	char line[128];
	bool ok;

	if (argc != 4)
		return 2;
	address = argv[1];
	memory_kb = (uint32_t)atoi(argv[2]);
	timeout_ms = (uint32_t)atoi(argv[3]);
	if ((source = tributary_source_add(&s, &ops)) == NULL)
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
