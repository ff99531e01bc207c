/*
 * Whatever the library asks memory for, there may be none: each call of an
 * allocator fails once, in a process of its own that records itself.  Nothing
 * crashes, nothing leaks, and what is read is whole.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tributary/data_source.h>
#include <tributary/session.h>
#include <tributary/track_event.h>
#include <unistd.h>
#include <cmocka.h>

#include "transport/wire/pb_reader.h"

#define FLUSH_MS 500
/* Far more than a run has. */
#define CALLS_MAX 5000

TRIBUTARY_CATEGORY(work, "work", "", "");

/* ---- Allocators that fail once ---- */

static atomic_ulong calls, fails_at, failed;

static bool
fails(void)
{
	bool now = atomic_fetch_add(&calls, 1) + 1 == atomic_load(&fails_at);

	failed += now;
	return now;
}

#define WRAP(result, name, params, args)                                       \
	result __real_##name params;                                           \
	result __wrap_##name params;                                           \
	result __wrap_##name params                                            \
	{                                                                      \
		return fails() ? NULL : __real_##name args;                    \
	}

WRAP(void *, malloc, (size_t n), (n))
WRAP(void *, calloc, (size_t n, size_t size), (n, size))
WRAP(void *, realloc, (void *p, size_t n), (p, n))
WRAP(char *, strdup, (const char *s), (s))
WRAP(void *, own_alloc, (size_t n), (n))
WRAP(void *, own_realloc, (void *p, size_t n, size_t wanted), (p, n, wanted))

/* ---- The program ---- */

static struct tributary_source *source;
static const struct tributary_source_ops ops = { .size = sizeof(ops) };
static char long_text[3000];

static void
put(struct tributary_packet *p, struct tributary_instance *i, void *context,
    bool first, void *arg)
{
	tributary_begin(p, 900);
	tributary_put_string(p, 1, long_text);
	tributary_end(p);
}

static void *
write_events(void *arg)
{
	struct tributary_track t = tributary_track("own", 1, NULL);
	int i;

	tributary_set_thread_name("a thread");
	for (i = 0; i < 3; i++) {
		TRIBUTARY_BEGIN(work, "slice", tributary_int("i", i));
		TRIBUTARY_INSTANT(work, "long",
		    tributary_string("text", long_text), tributary_on(&t),
		    TRIBUTARY_HERE);
		/* More names than its first table has room for. */
		TRIBUTARY_INSTANT(work, "a");
		TRIBUTARY_INSTANT(work, "b");
		TRIBUTARY_INSTANT(work, "c");
		TRIBUTARY_INSTANT(work, "d");
		TRIBUTARY_INSTANT(work, "e");
		TRIBUTARY_END(work);
		if (source != NULL)
			tributary_source_write(source, put, NULL);
	}
	return NULL;
}

static void
begin(void)
{
	struct tributary_source_options s = { .size = sizeof(s),
	    .name = "test.memory" };
	struct tributary_startup_options startup = TRIBUTARY_STARTUP_OPTIONS;
	struct tributary_options o = TRIBUTARY_OPTIONS;

	memset(long_text, 'x', sizeof(long_text) - 1);
	source = tributary_source_add(&s, &ops);
	o.address = "/nowhere/at/all";
	(void)tributary_startup(&startup);
	(void)tributary_start(&o);
}

static void
write_all(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, write_events, NULL) != 0)
		_exit(3);
	(void)write_events(NULL);
	pthread_join(t, NULL);
}

static size_t packets;

static bool
take(const void *packet, size_t len, void *arg)
{
	if (!pb_well_formed(packet, len))
		_exit(4);
	packets++;
	return true;
}

static void
record(void)
{
	struct tributary_session_options o = TRIBUTARY_SESSION_OPTIONS;
	struct tributary_local *l;
	char why[200] = "";

	if ((l = tributary_session_local_simple(&o, why, sizeof(why))) == NULL)
		return;
	(void)tributary_local_start(l);
	write_all();
	(void)tributary_local_flush(l, FLUSH_MS);
	(void)tributary_local_stop(l, FLUSH_MS);
	(void)tributary_local_read(l, take, NULL);
	tributary_local_free(l);
}

static void
live(unsigned long n)
{
	alarm(120);
	fails_at = n;
	begin();
	write_all();
	record();
	tributary_stop(FLUSH_MS);
	if (failed > 0)
		exit(0);
	exit(packets > 20 ? 77 : 5);
}

static void
each_allocation_may_fail(void **state)
{
	unsigned long n;
	int status;
	pid_t pid;

	for (n = 1; n < CALLS_MAX; n++) {
		fflush(stdout);
		if ((pid = fork()) == 0)
			live(n);
		assert_true(pid > 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 &&
		    WEXITSTATUS(status) != 77))
			fail_msg("status %#x where call %lu failed", status,
			    n);
		if (WEXITSTATUS(status) == 77)
			break;
	}
	print_message("%lu allocations\n", n - 1);
	assert_in_range(n, 50, CALLS_MAX - 1);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
