/*
 * record_itself FILE: a program that has a service record what it does, and
 * writes the trace into FILE.
 */
#include <fcntl.h>
#include <stdio.h>
#include <tributary/session.h>
#include <tributary/track_event.h>
#include <unistd.h>

#define WAIT_MS 60000

TRIBUTARY_CATEGORY(steps, "steps", "What this program does", "");

static void
work(void)
{
	int i;

	for (i = 0; i < 100; i++) {
		TRIBUTARY_SLICE(steps, "step", tributary_int("number", i));
	}
}

/* false: tributary_session_why() has a sentence. */
static bool
record(struct tributary_session *s, int fd)
{
	if (!tributary_session_start_simple(s, NULL, WAIT_MS))
		return false;
	work();
	return tributary_flush(WAIT_MS) &&
	    tributary_session_stop(s, WAIT_MS) &&
	    tributary_session_write(s, fd, WAIT_MS);
}

int
main(int argc, char **argv)
{
	struct tributary_session *s;
	char why[200] = "the service does not know this program";
	bool ok;
	int fd;

	if (argc < 2 || (fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC,
	    0600)) < 0)
		return 2;
	/* The session waits for the data sources that the service knows. */
	if (tributary_start(NULL) != 0 || !tributary_wait_connected(WAIT_MS) ||
	    (s = tributary_session_connect(NULL, WAIT_MS, why,
	    sizeof(why))) == NULL) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	if (!(ok = record(s, fd)))
		fprintf(stderr, "%s\n", tributary_session_why(s));
	tributary_session_free(s);
	tributary_stop(0);
	close(fd);
	return ok ? 0 : 1;
}
