#include "service/front/handover.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/front/activation.h"
#include "transport/socket/addr.h"

#define HANDOVER_FORM 1

/* A line: two numbers, words and an address. */
#define LINE_MAX_BYTES (ADDR_TEXT_MAX + 64)
#define TEXT_MAX (LINE_MAX_BYTES * (HANDOVER_MAX + 1))

static const char *const port_names[] = {
	[LISTEN_PRODUCER] = "producer",
	[LISTEN_CONSUMER] = "consumer",
	[LISTEN_RELAY] = "relay",
};
#define N_PORTS (sizeof(port_names) / sizeof(port_names[0]))

/* ---- writing ---- */

int
handover_begin(struct handover *h)
{
	memset(h, 0, sizeof(*h));
	if ((h->text = malloc(TEXT_MAX)) == NULL)
		return -1;
	h->len = (size_t)snprintf(h->text, TEXT_MAX, "%s=%d %ld\n",
	    HANDOVER_VARIABLE, HANDOVER_FORM, (long)getpid());
	return 0;
}

static int
add(struct handover *h, int fd, const char *how, const char *port,
    const char *tail, const char *address)
{
	int n;

	if (h->n == HANDOVER_MAX || strchr(address, '\n') != NULL)
		return -1;
	n = snprintf(h->text + h->len, TEXT_MAX - h->len, "%d %s %s%s%s\n", fd,
	    how, port, tail, address);
	if (n < 0 || (size_t)n >= TEXT_MAX - h->len)
		return -1;
	h->len += (size_t)n;
	h->fds[h->n++] = fd;
	return 0;
}

int
handover_add_made(struct handover *h, int fd, enum listen_port port,
    const char *address)
{
	return add(h, fd, "made", port_names[port], " ", address);
}

int
handover_add_passed(struct handover *h, int fd, enum listen_port port, bool tls)
{
	return add(h, fd, "passed", port_names[port], tls ? "-tls" : "", "");
}

void
handover_done(struct handover *h)
{
	free(h->text);
	h->text = NULL;
}

/* ---- reading ---- */

/* A decimal number and the character behind it, or -1. */
static long
take_number(char **at, char behind)
{
	char *end;
	long n;

	if (**at < '0' || **at > '9')
		return -1;
	n = strtol(*at, &end, 10);
	if (*end != behind || n > INT32_MAX)
		return -1;
	*at = end + 1;
	return n;
}

static bool
take_word(char **at, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(*at, word, len) != 0)
		return false;
	*at += len;
	return true;
}

static bool
take_port(char **at, enum listen_port *out)
{
	size_t i;

	for (i = 0; i < N_PORTS; i++) {
		if (port_names[i] != NULL && take_word(at, port_names[i])) {
			*out = (enum listen_port)i;
			return true;
		}
	}
	return false;
}

/* An open descriptor, which is made close-on-exec; -1: none. */
static long
take_descriptor(char **at)
{
	long fd = take_number(at, ' ');

	if (fd <= STDERR_FILENO || fcntl((int)fd, F_SETFD, FD_CLOEXEC) != 0)
		return -1;
	return fd;
}

static int
take_made(struct activation *a, int fd, enum listen_port port, char *address)
{
	struct inherited_socket *s;

	if (strlen(address) >= sizeof(s->address) || a->n_made == HANDOVER_MAX)
		return -1;
	s = &a->made[a->n_made++];
	s->fd = fd;
	s->port = port;
	strcpy(s->address, address);
	return 0;
}

static int
take_passed(struct activation *a, int fd, enum listen_port port, bool tls)
{
	if (a->n == ACTIVATION_MAX)
		return -1;
	a->sockets[a->n++] = (struct activated_socket){ fd, port, tls };
	return 0;
}

static int
take_line(struct activation *a, char *line)
{
	enum listen_port port;
	long fd = take_descriptor(&line);

	if (fd < 0)
		return -1;
	if (take_word(&line, "made ") && take_port(&line, &port) &&
	    take_word(&line, " "))
		return take_made(a, (int)fd, port, line);
	if (!take_word(&line, "passed ") || !take_port(&line, &port))
		return -1;
	if (*line == '\0')
		return take_passed(a, (int)fd, port, false);
	return strcmp(line, "-tls") == 0 ?
	    take_passed(a, (int)fd, port, true) : -1;
}

static int
take_lines(struct activation *a, char *text)
{
	char *end;

	for (; (end = strchr(text, '\n')) != NULL; text = end + 1) {
		*end = '\0';
		if (take_line(a, text) != 0)
			return -1;
	}
	return *text == '\0' ? 0 : -1;
}

static int
take_text(struct activation *a, char *text)
{
	long form = take_number(&text, ' '), pid = take_number(&text, '\n');

	if (form != HANDOVER_FORM || pid < 0)
		return -1;
	/* The environment is an ancestor's, meant for another process. */
	if (pid != (long)getpid() && pid != (long)getppid())
		return 0;
	a->trial = pid != (long)getpid();
	a->inherited = true;
	a->made = calloc(HANDOVER_MAX, sizeof(*a->made));
	return a->made != NULL ? take_lines(a, text) : -1;
}

int
handover_from_environment(struct activation *a, char *err, size_t err_size)
{
	const char *value = getenv(HANDOVER_VARIABLE);
	char *text;
	int rc;

	if (value == NULL)
		return 0;
	if ((text = strdup(value)) == NULL) {
		snprintf(err, err_size, "no memory");
		return -1;
	}
	unsetenv(HANDOVER_VARIABLE);
	if ((rc = take_text(a, text)) != 0)
		snprintf(err, err_size, "$%s, the list of the sockets of the "
		    "daemon before this one, is not understood",
		    HANDOVER_VARIABLE);
	free(text);
	return rc;
}
