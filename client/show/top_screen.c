#include "client/show/top_screen.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "client/text/terminal.h"
#include "transport/loop/loop.h"

const char top_screen_home[] = "\x1b[H";
const char top_screen_newline[] = "\x1b[K\n";
const char top_screen_rest[] = "\x1b[K\x1b[J";

/* The other screen, no cursor, lines that do not wrap; and back. */
static const char enter[] = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
static const char leave[] = "\x1b[?7h\x1b[?25h\x1b[?1049l";

struct top_screen {
	struct loop *loop;
	const struct top_screen_ops *ops; /* borrowed */
	void *arg;
	struct event *keys; /* owned, or NULL */
};

/* Terminal settings for handlers that end the program: one screen a process. */
static struct termios before;
static bool has_before; /* standard input is a terminal */
static volatile sig_atomic_t entered;

bool
top_screen_is_there(void)
{
	return terminal_redraws(STDOUT_FILENO);
}

static void
say(const char *text)
{
	size_t len = strlen(text);
	ssize_t n;

	while (len > 0 && ((n = write(STDOUT_FILENO, text, len)) > 0 ||
	    errno == EINTR)) {
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		}
	}
}

/* Called by a signal handler, too: async-signal-safe functions only. */
static void
put_back(void)
{
	if (!entered)
		return;
	entered = 0;
	say(leave);
	if (has_before)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
}

static void
put_up(void)
{
	struct termios raw;

	has_before = tcgetattr(STDIN_FILENO, &before) == 0;
	if (has_before) {
		raw = before;
		/* No line buffer, no echo; Ctrl-C and Ctrl-Z stay signals. */
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		raw.c_cc[VMIN] = 1;
		raw.c_cc[VTIME] = 0;
		tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	}
	entered = 1;
	say(enter);
}

static void
fatal_cb(int signo)
{
	put_back();
	signal(signo, SIG_DFL);
	raise(signo);
}

static void
quit_cb(void *arg)
{
	struct top_screen *s = arg;

	s->ops->quit(s->arg);
}

static void
draw_cb(void *arg)
{
	struct top_screen *s = arg;

	s->ops->draw(s->arg);
}

/* Ctrl-Z: restores the terminal for the shell before stopping. */
static void
stop_cb(void *arg)
{
	struct top_screen *s = arg;

	put_back();
	raise(SIGSTOP);
	put_up();
	s->ops->draw(s->arg);
}

static void
keys_cb(evutil_socket_t fd, short what, void *arg)
{
	struct top_screen *s = arg;
	char keys[64];
	ssize_t i, n = read(fd, keys, sizeof(keys));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		/* The terminal went. */
		event_del(s->keys);
		s->ops->quit(s->arg);
		return;
	}
	for (i = 0; i < n; i++) {
		if (keys[i] == 'q' || keys[i] == 'Q') {
			s->ops->quit(s->arg);
			return;
		}
		if (keys[i] == ' ')
			s->ops->draw(s->arg);
	}
}

static int
take_signals(struct top_screen *s)
{
	static const int fatal[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGQUIT };
	size_t i;

	if (loop_on_signal(s->loop, SIGINT, quit_cb, s) != 0 ||
	    loop_on_signal(s->loop, SIGTERM, quit_cb, s) != 0 ||
	    loop_on_signal(s->loop, SIGHUP, quit_cb, s) != 0 ||
	    loop_on_signal(s->loop, SIGTSTP, stop_cb, s) != 0 ||
	    loop_on_signal(s->loop, SIGWINCH, draw_cb, s) != 0)
		return -1;
	for (i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
		signal(fatal[i], fatal_cb);
	return atexit(put_back);
}

struct top_screen *
top_screen_new(struct loop *l, const struct top_screen_ops *ops, void *arg)
{
	struct top_screen *s;

	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	s->loop = l;
	s->ops = ops;
	s->arg = arg;
	if (take_signals(s) != 0)
		goto fail;
	if (isatty(STDIN_FILENO)) {
		s->keys = event_new(loop_base(l), STDIN_FILENO,
		    EV_READ | EV_PERSIST, keys_cb, s);
		if (s->keys == NULL || event_add(s->keys, NULL) != 0)
			goto fail;
	}
	put_up();
	return s;

fail:
	top_screen_free(s);
	return NULL;
}

void
top_screen_free(struct top_screen *s)
{
	if (s == NULL)
		return;
	put_back();
	if (s->keys != NULL)
		event_free(s->keys);
	free(s);
}

void
top_screen_size(int *columns, size_t *lines)
{
	struct winsize w;

	*columns = 80;
	*lines = 24;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) != 0)
		return;
	if (w.ws_col > 0)
		*columns = w.ws_col;
	if (w.ws_row > 0)
		*lines = w.ws_row;
}
