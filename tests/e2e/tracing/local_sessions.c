/*
 * local_sessions CASE FILE...: sessions inside of a program, for
 * test_local_sessions.py.  Prints numbers that the trace is to have.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tributary/session.h>
#include <tributary/track_event.h>
#include <unistd.h>

#define FLUSH_MS 60000

TRIBUTARY_CATEGORY(work, "work", "", "");
TRIBUTARY_CATEGORY(other, "other", "", "");

static void
check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static struct tributary_local *
begin(const struct tributary_session_options *o)
{
	struct tributary_local *l;
	char why[200] = "";

	l = tributary_session_local_simple(o, why, sizeof(why));
	check(l != NULL, why);
	check(tributary_local_start(l), tributary_local_why(l));
	return l;
}

static void
end(struct tributary_local *l, const char *path)
{
	struct tributary_local_stats s = { .size = sizeof(s) };

	check(tributary_local_stop(l, FLUSH_MS), tributary_local_why(l));
	check(tributary_local_write_path(l, path), tributary_local_why(l));
	tributary_local_stats(l, &s);
	check(s.written == s.read + s.overwritten + s.discarded + s.invalid,
	    "packets are uncounted");
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
	    s.written, s.read, s.overwritten, s.discarded, s.dropped);
	tributary_local_free(l);
}

static void *
write_many(void *arg)
{
	unsigned i, n = *(unsigned *)arg;

	for (i = 0; i < n; i++)
		TRIBUTARY_INSTANT(work, "many", tributary_int("i", i));
	return NULL;
}

static void
threads(unsigned count, unsigned n)
{
	pthread_t t[64];
	unsigned i;

	for (i = 0; i < count; i++)
		check(pthread_create(&t[i], NULL, write_many, &n) == 0,
		    "no thread");
	for (i = 0; i < count; i++)
		pthread_join(t[i], NULL);
}

/* One session of this size; every event is dropped, or counted. */
static void
many(char **argv, uint32_t buffer_kb, bool discard)
{
	struct tributary_session_options o = TRIBUTARY_SESSION_OPTIONS;
	struct tributary_local *l;

	o.buffer_kb = buffer_kb;
	o.discard = discard;
	o.stall = true; /* a busy machine would drop */
	l = begin(&o);
	threads((unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]));
	end(l, argv[2]);
}

/* Two at once, of different categories, and one from the middle. */
static void
several(char **argv)
{
	static const char *const only[] = { "other", NULL };
	struct tributary_session_options o = TRIBUTARY_SESSION_OPTIONS;
	struct tributary_local *all, *some, *late;

	all = begin(&o);
	o.categories = only;
	some = begin(&o);
	TRIBUTARY_INSTANT(work, "of work");
	TRIBUTARY_INSTANT(other, "of other");
	o.categories = NULL;
	late = begin(&o);
	TRIBUTARY_INSTANT(work, "late");
	end(all, argv[2]);
	end(some, argv[3]);
	end(late, argv[4]);
}

/* Snapshots of a session that goes on. */
static void
snapshots(char **argv)
{
	struct tributary_session_options o = TRIBUTARY_SESSION_OPTIONS;
	struct tributary_local *l = begin(&o);

	TRIBUTARY_INSTANT(work, "one");
	check(tributary_local_snapshot(l, argv[2], FLUSH_MS),
	    tributary_local_why(l));
	TRIBUTARY_INSTANT(work, "two");
	check(tributary_local_snapshot(l, argv[3], FLUSH_MS),
	    tributary_local_why(l));
	check(!tributary_local_snapshot(l, "/nowhere/at/all", FLUSH_MS) &&
	    tributary_local_why(l)[0] != '\0', "a file that cannot be");
	end(l, argv[4]);
}

/* A child has no session, and says so; the parent's goes on. */
static void
forks(char **argv)
{
	struct tributary_session_options o = TRIBUTARY_SESSION_OPTIONS;
	struct tributary_local *l = begin(&o), *own;
	int status, i;
	pid_t pid;

	for (i = 0; i < 20; i++) {
		TRIBUTARY_INSTANT(work, "parent");
		if ((pid = fork()) == 0) {
			TRIBUTARY_INSTANT(work, "child");
			check(!tributary_local_flush(l, FLUSH_MS) &&
			    strstr(tributary_local_why(l), "fork()") != NULL,
			    "a parent's session in its child");
			check(!tributary_local_write(l, 1), "a parent's data");
			tributary_local_free(l);
			own = begin(&o);
			TRIBUTARY_INSTANT(work, "own");
			end(own, argv[3]);
			fflush(stdout);
			_exit(0);
		}
		check(pid > 0 && waitpid(pid, &status, 0) == pid &&
		    status == 0, "a child failed");
	}
	end(l, argv[2]);
}

/* Ends by its duration; is started and stopped beside a service's thread. */
static void
duration(char **argv)
{
	struct tributary_session_options o = TRIBUTARY_SESSION_OPTIONS;
	struct tributary_local *l;

	check(tributary_start(NULL) == 0, "start");
	o.seconds = 1;
	l = begin(&o);
	TRIBUTARY_INSTANT(work, "in time");
	tributary_stop(0);
	TRIBUTARY_INSTANT(work, "without a service");
	check(tributary_local_wait(l, FLUSH_MS), tributary_local_why(l));
	TRIBUTARY_INSTANT(work, "too late");
	end(l, argv[2]);
	tributary_stop(0);
}

int
main(int argc, char **argv)
{
	check(argc > 2, "local_sessions CASE FILE...");
	if (strcmp(argv[1], "all") == 0)
		many(argv, 512 * 1024, false);
	else if (strcmp(argv[1], "ring") == 0)
		many(argv, 2048, false);
	else if (strcmp(argv[1], "discard") == 0)
		many(argv, 2048, true);
	else if (strcmp(argv[1], "several") == 0)
		several(argv);
	else if (strcmp(argv[1], "snapshots") == 0)
		snapshots(argv);
	else if (strcmp(argv[1], "forks") == 0)
		forks(argv);
	else if (strcmp(argv[1], "duration") == 0)
		duration(argv);
	else
		return 2;
	return 0;
}
