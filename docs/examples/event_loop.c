/*
 * A program of one thread that traces itself from its own event loop: a slice
 * for each line of its input.  docs/instrument.md goes through it.
 *
 *	event_loop
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <tributary/track_event.h>
#include <unistd.h>

TRIBUTARY_CATEGORY(lines, "lines", "Lines of the input", "");

static void
take_line(const char *line)
{
	TRIBUTARY_SLICE(lines, "line", tributary_string("text", line),
	    tributary_uint("length", strlen(line)));
	printf("%s\n", line);
	fflush(stdout);
}

/* What is left of text, whose whole lines were taken. */
static size_t
take_lines(char *text, size_t len)
{
	char *end;

	while ((end = (char *)memchr(text, '\n', len)) != NULL) {
		*end++ = '\0';
		take_line(text);
		len -= (size_t)(end - text);
		memmove(text, end, len);
	}
	return len;
}

static void
say_state(void *arg, bool connected, int error, const char *why)
{
	(void)arg;
	(void)error;
	fprintf(stderr, connected ? "traced\n" : "not traced: %s\n", why);
}

int
main(void)
{
	struct tributary_options options = TRIBUTARY_OPTIONS;
	struct pollfd fds[2];
	static char text[4096];
	size_t len = 0;
	ssize_t n = 1;

	options.loop = TRIBUTARY_LOOP_PROGRAM;
	options.state = say_state;
	if (tributary_start(&options) != 0)
		return 1;
	fds[0].fd = STDIN_FILENO;
	fds[1].fd = tributary_fd();
	fds[0].events = fds[1].events = POLLIN;
	while (n > 0 && len < sizeof(text)) {
		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[1].revents != 0)
			tributary_turn();
		if (fds[0].revents == 0)
			continue;
		n = read(STDIN_FILENO, text + len, sizeof(text) - len);
		if (n > 0)
			len = take_lines(text, len + (size_t)n);
	}
	tributary_stop(0);
	return 0;
}
