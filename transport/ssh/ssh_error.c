#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "transport/base/log.h"
#include "transport/ssh/ssh.h"

#define SSH_LINE_MAX 200 /* of ssh's message, escaped, in a sentence */

enum cause {
	CAUSE_KEY_CHANGED,
	CAUSE_KEY_REVOKED,
	CAUSE_KEY_UNKNOWN,
	CAUSE_DENIED,
	CAUSE_TOO_MANY_KEYS,
	CAUSE_NAME,
	CAUSE_REFUSED,
	CAUSE_TIMEOUT,
	CAUSE_ROUTE,
	CAUSE_CLOSED_EARLY,
	CAUSE_PROHIBITED,
	CAUSE_SOCKET_FAILED, /* sshd does not say whether it is forbidden */
	CAUSE_NOT_LISTENING,
	CAUSE_CANNOT_LISTEN,
	CAUSE_KEEPALIVE,
	CAUSE_OTHER,
};

/* In this order: the first that is found names the cause. */
static const struct {
	const char *words;
	enum cause cause;
} signs[] = {
	{ "HOST IDENTIFICATION HAS CHANGED", CAUSE_KEY_CHANGED },
	{ "REVOKED HOST KEY", CAUSE_KEY_REVOKED },
	{ "Host key verification failed", CAUSE_KEY_UNKNOWN },
	{ "Too many authentication failures", CAUSE_TOO_MANY_KEYS },
	{ "Permission denied (", CAUSE_DENIED },
	{ "Could not resolve hostname", CAUSE_NAME },
	{ "remote port forwarding failed", CAUSE_CANNOT_LISTEN },
	{ "administratively prohibited", CAUSE_PROHIBITED },
	{ "connect failed: open failed", CAUSE_SOCKET_FAILED },
	{ "open failed: connect failed", CAUSE_NOT_LISTENING },
	{ "open failed", CAUSE_PROHIBITED },
	{ "Connection timed out during banner", CAUSE_TIMEOUT },
	{ ": Connection refused", CAUSE_REFUSED },
	{ ": Connection timed out", CAUSE_TIMEOUT },
	{ ": Operation timed out", CAUSE_TIMEOUT },
	{ ": No route to host", CAUSE_ROUTE },
	{ ": Network is unreachable", CAUSE_ROUTE },
	{ "kex_exchange_identification", CAUSE_CLOSED_EARLY },
	{ "not responding", CAUSE_KEEPALIVE },
};

static enum cause
find_cause(const char *text, const char **at)
{
	size_t i;

	for (i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if ((*at = strstr(text, signs[i].words)) != NULL)
			return signs[i].cause;
	*at = NULL;
	return CAUSE_OTHER;
}

/* The line around at, escaped, without blanks and full stop at its end. */
static void
line_around(const char *text, const char *at, char out[SSH_LINE_MAX])
{
	const char *start = at, *stop = at + strcspn(at, "\r\n");

	while (start > text && start[-1] != '\n' && start[-1] != '\r')
		start--;
	while (stop > start && (stop[-1] == ' ' || stop[-1] == '.'))
		stop--;
	log_escape(out, SSH_LINE_MAX, start, (size_t)(stop - start));
}

/* The last line counts: above it may be the banner of the other side. */
static void
last_line(const char *text, char out[SSH_LINE_MAX])
{
	const char *end = text + strlen(text);

	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	if (end == text)
		out[0] = '\0';
	else
		line_around(text, end - 1, out);
}

/* "Offending ED25519 key in FILE:LINE" */
static void
offending_key(const char *text, char out[SSH_LINE_MAX])
{
	const char *at = strstr(text, "Offending ");

	if (at != NULL && (at = strstr(at, " key in ")) != NULL) {
		at += strlen(" key in ");
		log_escape(out, SSH_LINE_MAX, at, strcspn(at, "\r\n"));
	} else {
		snprintf(out, SSH_LINE_MAX, "~/.ssh/known_hosts");
	}
}

/* The arguments that a person would type: "-p 2222 me@host". */
static void
as_typed(const struct addr *a, char *out, size_t out_size)
{
	snprintf(out, out_size, "%s%s%s%s%s%s",
	    a->port[0] != '\0' ? "-p " : "", a->port,
	    a->port[0] != '\0' ? " " : "",
	    a->user, a->user[0] != '\0' ? "@" : "", a->host);
}

/* The host's name in known_hosts. */
static void
known_as(const struct addr *a, char *out, size_t out_size)
{
	if (a->port[0] != '\0' && strcmp(a->port, "22") != 0)
		snprintf(out, out_size, "[%s]:%s", a->host, a->port);
	else
		snprintf(out, out_size, "%s", a->host);
}

static void
no_command_text(const struct addr *a, char *out, size_t out_size)
{
	snprintf(out, out_size, "%s let us in, but does not find the command "
	    "that carries the stream there: install tributary on %s (in the "
	    "PATH of a login without a terminal), or, where sshd may forward, "
	    "name the collector's socket: ssh://%s/run/perfetto/"
	    "traced-producer.sock", a->host, a->host, a->host);
}

/* For a text of ssh that has no sentence of ours on connections or keys. */
static void
other_text(const struct addr *a, const char *text, int status, char *out,
    size_t out_size)
{
	char line[SSH_LINE_MAX];

	last_line(text, line);
	if (status == 127 && a->path[0] == '\0')
		no_command_text(a, out, out_size);
	else if (line[0] != '\0' && status > 0 && status < 128)
		snprintf(out, out_size, "%s said: %s", a->host, line);
	else if (line[0] != '\0' && status == -1)
		snprintf(out, out_size, "the other end of ssh to %s closed the "
		    "stream (ssh said: %s)", a->host, line);
	else if (line[0] != '\0')
		snprintf(out, out_size, "ssh to %s said: %s", a->host, line);
	else if (status == -1)
		snprintf(out, out_size, "the other end of ssh to %s closed the "
		    "stream", a->host);
	else if (status > 128 && status != 255)
		snprintf(out, out_size, "ssh to %s was ended by signal %d",
		    a->host, status - 128);
	else if (status == 0)
		snprintf(out, out_size, "ssh to %s ended", a->host);
	else
		snprintf(out, out_size, "ssh to %s ended with status %d and "
		    "did not say why", a->host, status);
}

void
ssh_error_text(const struct addr *a, const char *stderr_text,
    int ended_status, char *out, size_t out_size)
{
	char line[SSH_LINE_MAX] = "", typed[400], known[300];
	const char *at, *port = a->port[0] != '\0' ? a->port : "22";
	enum cause cause = find_cause(stderr_text, &at);

	/* 255: ssh itself failed; else the status is the remote command's. */
	if (ended_status >= 0 && ended_status < 128)
		cause = CAUSE_OTHER;
	as_typed(a, typed, sizeof(typed));
	known_as(a, known, sizeof(known));
	if (at != NULL)
		line_around(stderr_text, at, line);
	switch (cause) {
	case CAUSE_KEY_CHANGED:
		offending_key(stderr_text, line);
		snprintf(out, out_size, "the host key of %s is not the one in "
		    "%s: another machine may be listening in; if the machine "
		    "was set up anew, remove the old key on this machine "
		    "(ssh-keygen -R '%s') and check the new one with ssh "
		    "%s", a->host,
		    line, known, typed);
		return;
	case CAUSE_KEY_REVOKED:
		snprintf(out, out_size, "the host key of %s is revoked on this "
		    "machine (RevokedHostKeys): ask the administrator of %s "
		    "for its new key", a->host, a->host);
		return;
	case CAUSE_KEY_UNKNOWN:
		snprintf(out, out_size, "the host key of %s is not known on "
		    "this machine: connect once by hand and check it (ssh %s), "
		    "or add it to ~/.ssh/known_hosts or "
		    "/etc/ssh/ssh_known_hosts", a->host, typed);
		return;
	case CAUSE_DENIED:
		snprintf(out, out_size, "%s does not let us in (%s): add the "
		    "public key of this user to ~/.ssh/authorized_keys there, "
		    "or name key and user in ~/.ssh/config here; ssh %s has to "
		    "work without asking for anything", a->host, line, typed);
		return;
	case CAUSE_TOO_MANY_KEYS:
		snprintf(out, out_size, "%s gave up because too many keys were "
		    "tried: name the right one in ~/.ssh/config here "
		    "(IdentityFile, IdentitiesOnly yes)", a->host);
		return;
	case CAUSE_NAME:
		snprintf(out, out_size, "ssh on this machine cannot find %s "
		    "(%s): check the name, or give it a HostName in "
		    "~/.ssh/config", a->host, line);
		return;
	case CAUSE_REFUSED:
		snprintf(out, out_size, "no sshd answers at port %s of %s (%s)"
		    ": is it running there, on that port?", port, a->host,
		    line);
		return;
	case CAUSE_TIMEOUT:
		snprintf(out, out_size, "no answer from %s (%s): is the "
		    "machine up, and does a firewall let port %s through?",
		    a->host, line, port);
		return;
	case CAUSE_ROUTE:
		snprintf(out, out_size, "this machine has no route to %s (%s)",
		    a->host, line);
		return;
	case CAUSE_CLOSED_EARLY:
		snprintf(out, out_size, "the sshd of %s, or a jump host before "
		    "it, hung up at once (%s): its log says why (MaxStartups, "
		    "a firewall?)", a->host, line);
		return;
	case CAUSE_PROHIBITED:
		snprintf(out, out_size, "the sshd of %s may not forward to %s: "
		    "allow it in /etc/ssh/sshd_config there (%s), or use "
		    "ssh://%s, which runs `tributary connect` there", a->host,
		    a->path, a->path[0] == '/' ?
		    "AllowStreamLocalForwarding" :
		    "AllowTcpForwarding, PermitOpen", a->host);
		return;
	case CAUSE_SOCKET_FAILED:
		snprintf(out, out_size, "the sshd of %s did not connect to %s: "
		    "either no program listens there (start tributaryd on %s), "
		    "or the user may not open it, or sshd may not forward to "
		    "sockets (AllowStreamLocalForwarding in "
		    "/etc/ssh/sshd_config there; else use ssh://%s, which runs "
		    "`tributary connect` there)", a->host, a->path, a->host,
		    a->host);
		return;
	case CAUSE_NOT_LISTENING:
		snprintf(out, out_size, "%s let us in, but no program listens "
		    "at %s there (%s): start tributaryd on %s with that "
		    "address",
		    a->host, a->path, line, a->host);
		return;
	case CAUSE_CANNOT_LISTEN:
		snprintf(out, out_size, "the sshd of %s cannot listen for us "
		    "(%s): the directory has to be there and open to the user, "
		    "a socket of that name must not be left over "
		    "(StreamLocalBindUnlink yes), and "
		    "AllowStreamLocalForwarding must allow it in "
		    "/etc/ssh/sshd_config there", a->host, line);
		return;
	case CAUSE_KEEPALIVE:
		snprintf(out, out_size, "%s does not answer any more (%s)",
		    a->host, line);
		return;
	case CAUSE_OTHER:
		other_text(a, stderr_text, ended_status, out, out_size);
		return;
	}
}
