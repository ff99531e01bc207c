/*
 * A program that traces itself, and records itself through a service:
 *
 *	own_sessions PRODUCER_ADDRESS CONSUMER_ADDRESS
 *
 * Does what each line of its input says, and answers "ok", or a line with
 * "failed: " and the sentence.  Expected by tests/e2e/test_own_sessions.py.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tributary/session.h>
#include <tributary/track_event.h>
#include <tributary/tributary.h>
#include <unistd.h>

TRIBUTARY_CATEGORY(own, "own", "", "");
TRIBUTARY_CATEGORY(other, "other", "", "");

#define MS 30000u

static const char *consumer_address;
static struct tributary_session *session;
static char why[512];
static int written;

static bool
said(struct tributary_session *s, bool ok)
{
	if (!ok)
		snprintf(why, sizeof(why), "%s", tributary_session_why(s));
	return ok;
}

static struct tributary_session *
fresh(void)
{
	return tributary_session_connect(consumer_address, MS, why,
	    sizeof(why));
}

static bool
save(struct tributary_session *s, const char *path)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	bool ok = said(s, tributary_session_write(s, fd, MS));

	close(fd);
	return ok;
}

static bool
start(const char *name)
{
	static const char *const categories[] = { "own", NULL };
	struct tributary_session_options o = TRIBUTARY_SESSION_OPTIONS;

	o.buffer_kb = 65536;
	o.categories = categories;
	o.unique_name = name;
	return said(session, tributary_session_start_simple(session, &o, MS));
}

/* Events with numbers, and as many that the session does not want. */
static bool
write_events(int n)
{
	for (; n > 0; n--) {
		TRIBUTARY_INSTANT(own, "event", tributary_int("n", written++));
		TRIBUTARY_INSTANT(other, "unwanted");
	}
	return true;
}

static bool
clone(const char *name, const char *path)
{
	struct tributary_session *s = fresh();
	bool ok = s != NULL &&
	    said(s, tributary_session_clone_named(s, name, MS)) &&
	    save(s, path);

	tributary_session_free(s);
	return ok;
}

static bool
count_packet(const void *data, size_t len, void *arg)
{
	return ++*(unsigned *)arg < 3;
}

/* Ends the reading after three packets; the next one has nothing of them. */
static bool
read_three(void)
{
	unsigned n = 0;
	bool ended = !tributary_session_read(session, count_packet, &n, MS);

	snprintf(why, sizeof(why), "%u packets, %s", n,
	    tributary_session_why(session));
	return ended && n == 3;
}

static void
note_bytes(const void *data, size_t len, void *arg)
{
	*(size_t *)arg = len;
}

static bool
ask(void)
{
	size_t state = 0, stats = 0;

	return said(session, tributary_session_query(session, note_bytes,
	    &state, MS) && tributary_session_stats(session, note_bytes, &stats,
	    MS)) && state > 0 && stats > 0;
}

/* A config as a file has it, started in two steps. */
static bool
start_deferred(const char *path)
{
	char config[4096];
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, config, sizeof(config));

	close(fd);
	return n > 0 && said(session, tributary_session_start(session, config,
	    (size_t)n, -1, MS));
}

static bool
attach(const char *key)
{
	tributary_session_free(session);
	session = fresh();
	return session != NULL &&
	    said(session, tributary_session_attach(session, key, MS));
}

static bool
act(const char *word, const char *a, const char *b)
{
	if (strcmp(word, "connect") == 0) {
		tributary_session_free(session);
		return (session = fresh()) != NULL;
	}
	if (strcmp(word, "start") == 0)
		return start(a[0] != '\0' ? a : NULL);
	if (strcmp(word, "start_deferred") == 0)
		return start_deferred(a);
	if (strcmp(word, "begin") == 0)
		return said(session, tributary_session_begin(session, MS));
	if (strcmp(word, "write") == 0)
		return write_events(atoi(a));
	if (strcmp(word, "flush") == 0)
		return tributary_flush(MS) &&
		    said(session, tributary_session_flush(session, MS));
	if (strcmp(word, "stop") == 0)
		return said(session, tributary_session_stop(session, MS));
	if (strcmp(word, "wait") == 0)
		return said(session, tributary_session_wait(session, MS));
	if (strcmp(word, "save") == 0)
		return save(session, a);
	if (strcmp(word, "clone") == 0)
		return clone(a, b);
	if (strcmp(word, "read_three") == 0)
		return read_three();
	if (strcmp(word, "ask") == 0)
		return ask();
	if (strcmp(word, "detach") == 0)
		return said(session, tributary_session_detach(session, a, MS));
	if (strcmp(word, "attach") == 0)
		return attach(a);
	snprintf(why, sizeof(why), "no such word");
	return false;
}

int
main(int argc, char **argv)
{
	struct tributary_options o = TRIBUTARY_OPTIONS;
	char line[512], word[64], a[200], b[200];

	o.address = argv[1];
	consumer_address = argv[2];
	if (argc != 3 || tributary_start(&o) != 0 ||
	    !tributary_wait_connected(MS))
		return 1;
	printf("ok\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		word[0] = a[0] = b[0] = '\0';
		(void)!sscanf(line, "%63s %199s %199s", word, a, b);
		if (act(word, a, b))
			printf("ok\n");
		else
			printf("failed: %s\n", why);
		fflush(stdout);
	}
	tributary_session_free(session);
	tributary_stop(0);
	return 0;
}
