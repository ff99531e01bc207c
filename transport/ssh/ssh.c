#include "transport/ssh/ssh.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/base/failure.h"

static const char *
ssh_program(void)
{
	const char *program = getenv("TRIBUTARY_SSH");

	return program != NULL && *program != '\0' ? program : "ssh";
}

/* Arguments under construction. */
struct builder {
	struct ssh_args *s;
	size_t n;    /* of argv */
	size_t used; /* of words */
	bool full;
};

static void PRINTF_LIKE(2, 3)
add(struct builder *b, const char *fmt, ...)
{
	size_t room = sizeof(b->s->words) - b->used;
	va_list ap;
	int len;

	if (b->full || b->n == SSH_ARGS_MAX - 1) {
		b->full = true;
		return;
	}
	va_start(ap, fmt);
	len = vsnprintf(b->s->words + b->used, room, fmt, ap);
	va_end(ap);
	if (len < 0 || (size_t)len >= room) {
		b->full = true;
		return;
	}
	b->s->argv[b->n++] = b->s->words + b->used;
	b->s->argv[b->n] = NULL;
	b->used += (size_t)len + 1;
}

static void
add_option(struct builder *b, const char *option)
{
	add(b, "-o");
	add(b, "%s", option);
}

static void
begin(struct builder *b, struct ssh_args *s)
{
	static const char *const options[] = {
		/* There is no person to ask for a password. */
		"BatchMode=yes",
		/* A host that vanished is noticed within a minute. */
		"ConnectTimeout=20",
		"ServerAliveInterval=15",
		"ServerAliveCountMax=3",
		/* A stream is all we want of the far side. */
		"ForwardAgent=no",
		"ForwardX11=no",
		"Tunnel=no",
		"RequestTTY=no",
		/* Overrides settings that are for people at terminals. */
		"RemoteCommand=none",
		"PermitLocalCommand=no",
		/* The reason of a refusal is said at this level. */
		"LogLevel=INFO",
		/* Another ssh that shares our connection would end with it. */
		"ControlMaster=no",
	};
	size_t i;

	memset(b, 0, sizeof(*b));
	b->s = s;
	add(b, "%s", ssh_program());
	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		add_option(b, options[i]);
	add(b, "-T");
}

/*
 * A forwarding over a shared ssh connection (ControlPath) outlives our ssh, so
 * ssh is told to make a connection of its own.
 */
static void
add_forwarding(struct builder *b)
{
	add_option(b, "ControlPath=none");
	add_option(b, "StreamLocalBindUnlink=yes");
	add(b, "-N");
}

/* addr_parse() refuses what could be taken for an option. */
static int
end(struct builder *b, const struct addr *a, const char *command, char *err,
    size_t err_size)
{
	if (a->port[0] != '\0') {
		add(b, "-p");
		add(b, "%s", a->port);
	}
	if (a->user[0] != '\0') {
		add(b, "-l");
		add(b, "%s", a->user);
	}
	add(b, "--");
	add(b, "%s", a->host);
	if (command != NULL)
		add(b, "%s", command);
	if (!b->full)
		return 0;
	return FAILURE(err, err_size, "%s: the command line for ssh is too "
	    "long", a->text);
}

/* True: free of ssh's forwarding syntax, of its %-tokens and ${}. */
bool
ssh_path_is_plain(const char *path)
{
	const char *p;

	for (p = path; *p != '\0'; p++)
		if (!isalnum((unsigned char)*p) &&
		    strchr("/._-+@=,", *p) == NULL)
			return false;
	return path[0] == '/';
}

static int
check_path(const char *path, char *err, size_t err_size)
{
	if (ssh_path_is_plain(path))
		return 0;
	return FAILURE(err, err_size, "\"%.100s\": ssh can forward a socket of "
	    "which the path is absolute and made of letters, digits and "
	    "/._-+@=,", path);
}

int
ssh_args_connect(struct ssh_args *s, const struct addr *a,
    const char *service, const char *command, char *err, size_t err_size)
{
	char own[64];
	struct builder b;

	if (command == NULL) {
		snprintf(own, sizeof(own), "tributary connect%s%s",
		    service != NULL ? " " : "", service != NULL ? service : "");
		command = own;
	}
	begin(&b, s);
	/* Forwards of ssh_config could be taken by another ssh. */
	add_option(&b, "ClearAllForwardings=yes");
	return end(&b, a, command, err, err_size);
}

int
ssh_args_forward(struct ssh_args *s, const struct addr *a,
    const char *local_path, char *err, size_t err_size)
{
	struct builder b;

	if (check_path(local_path, err, err_size) != 0)
		return -1;
	begin(&b, s);
	add_forwarding(&b);
	/* Our forwarding cannot fail; those of the user's configuration may. */
	add_option(&b, "ExitOnForwardFailure=no");
	add(&b, "-L");
	add(&b, "%s:%s", local_path, a->path);
	return end(&b, a, NULL, err, err_size);
}

int
ssh_args_listen(struct ssh_args *s, const struct addr *a,
    const char *remote_path, const char *local_path, char *err,
    size_t err_size)
{
	struct builder b;

	if (check_path(remote_path, err, err_size) != 0 ||
	    check_path(local_path, err, err_size) != 0)
		return -1;
	begin(&b, s);
	add_forwarding(&b);
	add_option(&b, "ExitOnForwardFailure=yes");
	add(&b, "-R");
	add(&b, "%s:%s", remote_path, local_path);
	return end(&b, a, NULL, err, err_size);
}
