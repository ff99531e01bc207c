#include "transport/socket/addr.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <linux/vm_sockets.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "transport/base/failure.h"

#define ADDR_FORMS                                                             \
	"/path, @name, host:port, [v6]:port, vsock://CID:PORT, "               \
	"tls://host:port and ssh://[user@]host[:port][/path] are accepted"

#define SUN_PATH_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)

/* The text after prefix, or NULL. */
static const char *
addr_after(const char *text, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

static int
addr_parse_unix(struct addr *a, const char *path, char *err, size_t err_size)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&a->sa;
	size_t n = strlen(path);

	if (n == 0 || (path[0] == '@' && n == 1))
		return FAILURE(err, err_size, "\"%s\" names no socket: %s",
		    a->text, ADDR_FORMS);
	if (n > SUN_PATH_MAX)
		return FAILURE(err, err_size,
		    "socket path %s is %zu bytes long; the system allows %zu",
		    path, n, SUN_PATH_MAX);
	a->kind = ADDR_UNIX;
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, path, n);
	a->sa_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	if (path[0] == '@')
		un->sun_path[0] = '\0';
	else
		a->sa_len++;
	return 0;
}

/* A decimal number up to max; -1 stands for max when any is set. */
static int
addr_number(const char *text, uint64_t max, bool any, uint32_t *out)
{
	uint64_t v = 0;

	if (any && strcmp(text, "-1") == 0) {
		*out = (uint32_t)max;
		return 0;
	}
	if (*text == '\0')
		return -1;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		v = v * 10 + (uint64_t)(*text - '0');
		if (v > max)
			return -1;
	}
	*out = (uint32_t)v;
	return 0;
}

int
addr_port(const char *text, uint16_t *out)
{
	uint32_t number;

	if (addr_number(text, UINT16_MAX, false, &number) != 0 || number == 0)
		return -1;
	*out = (uint16_t)number;
	return 0;
}

bool
addr_host_is_number(const char *host)
{
	struct in6_addr ip;

	return inet_pton(AF_INET, host, &ip) == 1 ||
	    inet_pton(AF_INET6, host, &ip) == 1;
}

static int
addr_parse_vsock(struct addr *a, const char *rest, char *err, size_t err_size)
{
	struct sockaddr_vm *vm = (struct sockaddr_vm *)&a->sa;
	const char *colon = strchr(rest, ':');
	char cid[16];
	size_t n = colon != NULL ? (size_t)(colon - rest) : sizeof(cid);
	uint32_t cid_number, port;

	if (n >= sizeof(cid))
		goto fail;
	memcpy(cid, rest, n);
	cid[n] = '\0';
	if (addr_number(cid, UINT32_MAX, true, &cid_number) != 0 ||
	    addr_number(colon + 1, UINT32_MAX, true, &port) != 0)
		goto fail;
	a->kind = ADDR_VSOCK;
	vm->svm_family = AF_VSOCK;
	vm->svm_cid = cid_number;
	vm->svm_port = port;
	a->sa_len = sizeof(*vm);
	return 0;

fail:
	return FAILURE(err, err_size,
	    "\"%s\" is not vsock://CID:PORT with two numbers (a CID of -1 "
	    "means any)", a->text);
}

/* Host and port are set: fills in a numeric address, leaves names alone. */
static void
addr_fill_literal(struct addr *a, uint32_t port)
{
	struct sockaddr_in *in4 = (struct sockaddr_in *)&a->sa;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&a->sa;

	if (inet_pton(AF_INET, a->host, &in4->sin_addr) == 1) {
		in4->sin_family = AF_INET;
		in4->sin_port = htons((uint16_t)port);
		a->sa_len = sizeof(*in4);
	} else if (inet_pton(AF_INET6, a->host, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons((uint16_t)port);
		a->sa_len = sizeof(*in6);
	} else {
		memset(&a->sa, 0, sizeof(a->sa));
	}
}

static int
addr_parse_tcp(struct addr *a, const char *rest, char *err, size_t err_size)
{
	const char *host = rest, *end, *port;
	uint32_t number;

	if (*rest == '[') {
		host = rest + 1;
		if ((end = strchr(host, ']')) == NULL || end[1] != ':')
			return FAILURE(err, err_size,
			    "\"%s\": a v6 address is written [address]:port",
			    a->text);
		port = end + 2;
	} else {
		if ((end = strrchr(host, ':')) == NULL)
			return FAILURE(err, err_size, "\"%s\" lacks a port: %s",
			    a->text, ADDR_FORMS);
		port = end + 1;
		if (memchr(host, ':', (size_t)(end - host)) != NULL)
			return FAILURE(err, err_size,
			    "\"%s\" has several colons: a v6 address is "
			    "written [address]:port, and :// follows a kind "
			    "(tls, ssh, vsock)", a->text);
	}
	if (end == host)
		return FAILURE(err, err_size,
		    "\"%s\" lacks a host: write 127.0.0.1:%.20s, or 0.0.0.0:"
		    "%.20s for every interface", a->text, port, port);
	if ((size_t)(end - host) >= sizeof(a->host))
		return FAILURE(err, err_size, "the host name in \"%s\" is too "
		    "long", a->text);
	if (addr_number(port, 65535, false, &number) != 0)
		return FAILURE(err, err_size,
		    "\"%s\": the port must be a number from 0 to 65535",
		    a->text);
	a->kind = ADDR_TCP;
	memcpy(a->host, host, (size_t)(end - host));
	snprintf(a->port, sizeof(a->port), "%u", number);
	addr_fill_literal(a, number);
	return 0;
}

/*
 * Refuses words for ssh's command line that it, or a shell behind it, could
 * take for anything but a name.
 */
static bool
is_ssh_word(const char *text, size_t len)
{
	size_t i;

	if (len == 0 || text[0] == '-')
		return false;
	for (i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) &&
		    strchr("._-%+", text[i]) == NULL)
			return false;
	return true;
}

static bool
is_ssh_literal(const char *text, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (!isxdigit((unsigned char)text[i]) && text[i] != ':')
			return false;
	return len > 0;
}

static bool
is_ssh_path(const char *path)
{
	for (; *path != '\0'; path++)
		if (!isalnum((unsigned char)*path) &&
		    strchr("/._-+@=,", *path) == NULL)
			return false;
	return true;
}

/* The part behind the host: "/path", or "/host:port". */
static int
addr_parse_ssh_target(struct addr *a, const char *slash, char *err,
    size_t err_size)
{
	const char *colon = strrchr(slash, ':');
	uint16_t port;

	if (slash[1] == '\0')
		return 0;
	if (strlen(slash) >= sizeof(a->path))
		goto fail;
	if (colon == NULL) {
		if (!is_ssh_path(slash) || strlen(slash) > SUN_PATH_MAX)
			goto fail;
		strcpy(a->path, slash);
		return 0;
	}
	if (!is_ssh_word(slash + 1, (size_t)(colon - slash - 1)) ||
	    addr_port(colon + 1, &port) != 0)
		goto fail;
	strcpy(a->path, slash + 1);
	return 0;

fail:
	return FAILURE(err, err_size, "\"%s\": behind the host stands the path "
	    "of a UNIX socket (up to %zu letters, digits and /._-+@=,), or "
	    "/host:port as that machine sees it", a->text, SUN_PATH_MAX);
}

/* [user@]host[:port], of len bytes. */
static int
addr_parse_ssh_host(struct addr *a, const char *host, size_t len, char *err,
    size_t err_size)
{
	const char *end = host + len, *at, *colon, *port = NULL;
	uint16_t number;

	if ((at = memchr(host, '@', len)) != NULL) {
		if (!is_ssh_word(host, (size_t)(at - host)) ||
		    (size_t)(at - host) >= sizeof(a->user))
			goto fail;
		memcpy(a->user, host, (size_t)(at - host));
		host = at + 1;
	}
	if (host < end && *host == '[') {
		host++;
		at = memchr(host, ']', (size_t)(end - host));
		if (at == NULL || !is_ssh_literal(host, (size_t)(at - host)))
			goto fail;
		if (at + 1 < end) {
			if (at[1] != ':')
				goto fail;
			port = at + 2;
		}
	} else {
		colon = memchr(host, ':', (size_t)(end - host));
		at = colon != NULL ? colon : end;
		if (!is_ssh_word(host, (size_t)(at - host)))
			goto fail;
		if (colon != NULL)
			port = colon + 1;
	}
	if ((size_t)(at - host) >= sizeof(a->host))
		goto fail;
	memcpy(a->host, host, (size_t)(at - host));
	if (port == NULL)
		return 0;
	if ((size_t)(end - port) >= sizeof(a->port))
		goto fail;
	memcpy(a->port, port, (size_t)(end - port));
	if (addr_port(a->port, &number) != 0)
		goto fail;
	snprintf(a->port, sizeof(a->port), "%u", number);
	return 0;

fail:
	return FAILURE(err, err_size, "\"%s\" is not ssh://[user@]host[:port], "
	    "with /path or /host:port behind it where that leads on; names are "
	    "letters, digits and ._-", a->text);
}

static int
addr_parse_ssh(struct addr *a, const char *rest, char *err, size_t err_size)
{
	const char *slash = strchr(rest, '/');
	size_t len = slash != NULL ? (size_t)(slash - rest) : strlen(rest);

	a->kind = ADDR_SSH;
	if (addr_parse_ssh_host(a, rest, len, err, err_size) != 0)
		return -1;
	if (slash == NULL)
		return 0;
	return addr_parse_ssh_target(a, slash, err, err_size);
}

static int
addr_parse_into(struct addr *a, const char *text, char *err, size_t err_size)
{
	const char *rest;

	if ((rest = addr_after(text, "tls://")) != NULL) {
		if (addr_parse_tcp(a, rest, err, err_size) != 0)
			return -1;
		a->kind = ADDR_TLS;
		return 0;
	}
	if ((rest = addr_after(text, "ssh://")) != NULL)
		return addr_parse_ssh(a, rest, err, err_size);
	if ((rest = addr_after(text, "unix://")) != NULL ||
	    (rest = addr_after(text, "unix:")) != NULL)
		return addr_parse_unix(a, rest, err, err_size);
	if ((rest = addr_after(text, "vsock://")) != NULL ||
	    (rest = addr_after(text, "vsock:")) != NULL)
		return addr_parse_vsock(a, rest, err, err_size);
	if ((rest = addr_after(text, "tcp://")) != NULL ||
	    (rest = addr_after(text, "tcp:")) != NULL)
		return addr_parse_tcp(a, rest, err, err_size);
	if (strstr(text, "://") != NULL)
		return FAILURE(err, err_size, "\"%s\": unknown kind of "
		    "address; %s", text, ADDR_FORMS);
	if (text[0] == '@' || strchr(text, '/') != NULL ||
	    strchr(text, ':') == NULL)
		return addr_parse_unix(a, text, err, err_size);
	return addr_parse_tcp(a, text, err, err_size);
}

int
addr_parse(struct addr *a, const char *text, char *err, size_t err_size)
{
	struct addr parsed;

	memset(&parsed, 0, sizeof(parsed));
	if (strlen(text) >= sizeof(parsed.text))
		return FAILURE(err, err_size,
		    "the address \"%.40s...\" is longer than %d bytes", text,
		    ADDR_TEXT_MAX - 1);
	strcpy(parsed.text, text);
	if (addr_parse_into(&parsed, text, err, err_size) != 0)
		return -1;
	*a = parsed;
	return 0;
}

int
addr_list_next(const char **list, char *item, size_t item_size)
{
	const char *p = *list, *end;

	p += strspn(p, ", \t");
	end = p + strcspn(p, ",");
	*list = end;
	while (end > p && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	if (end == p)
		return 0;
	if ((size_t)(end - p) >= item_size)
		return -1;
	memcpy(item, p, (size_t)(end - p));
	item[end - p] = '\0';
	return 1;
}

int
addr_resolve(const struct addr *a, struct sockaddr_storage *out,
    socklen_t *out_len, int max, char *err, size_t err_size)
{
	struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV,
	};
	struct addrinfo *list, *ai;
	int n = 0, rc;

	if (a->sa_len != 0) {
		if (max < 1)
			return 0;
		out[0] = a->sa;
		out_len[0] = a->sa_len;
		return 1;
	}
	if ((rc = getaddrinfo(a->host, a->port, &hints, &list)) != 0)
		return FAILURE(err, err_size, "cannot resolve %s: %s", a->host,
		    rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
	for (ai = list; ai != NULL && n < max; ai = ai->ai_next) {
		if (ai->ai_addrlen > sizeof(out[0]))
			continue;
		memset(&out[n], 0, sizeof(out[n]));
		memcpy(&out[n], ai->ai_addr, ai->ai_addrlen);
		out_len[n++] = ai->ai_addrlen;
	}
	freeaddrinfo(list);
	return n;
}

bool
addr_is_local(const struct sockaddr_storage *sa)
{
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)sa;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;
	const struct sockaddr_vm *vm = (const struct sockaddr_vm *)sa;

	switch (sa->ss_family) {
	case AF_UNIX:
		return true;
	case AF_INET:
		return ntohl(in4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	case AF_INET6:
		if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
			return in6->sin6_addr.s6_addr[12] == IN_LOOPBACKNET;
		return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
	case AF_VSOCK:
		return vm->svm_cid == VMADDR_CID_LOCAL;
	}
	return false;
}

void
addr_format(const struct sockaddr_storage *sa, socklen_t len, char *out,
    size_t out_size)
{
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)sa;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;
	const struct sockaddr_vm *vm = (const struct sockaddr_vm *)sa;
	char host[INET6_ADDRSTRLEN];
	sa_family_t family;

	family = len >= sizeof(sa_family_t) ? sa->ss_family : AF_UNSPEC;
	switch (family) {
	case AF_UNIX:
		snprintf(out, out_size, "unix");
		return;
	case AF_INET:
		inet_ntop(AF_INET, &in4->sin_addr, host, sizeof(host));
		snprintf(out, out_size, "%s:%u", host, ntohs(in4->sin_port));
		return;
	case AF_INET6:
		if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
			inet_ntop(AF_INET, &in6->sin6_addr.s6_addr[12], host,
			    sizeof(host));
			snprintf(out, out_size, "%s:%u", host,
			    ntohs(in6->sin6_port));
			return;
		}
		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		snprintf(out, out_size, "[%s]:%u", host, ntohs(in6->sin6_port));
		return;
	case AF_VSOCK:
		snprintf(out, out_size, "vsock:%u:%u", vm->svm_cid,
		    vm->svm_port);
		return;
	}
	snprintf(out, out_size, "unknown");
}

static const char *
addr_default(const char *variable, const char *in_run, const char *in_tmp)
{
	const char *env = getenv(variable);

	if (env != NULL && *env != '\0')
		return env;
	return access("/run/perfetto/", X_OK) == 0 ? in_run : in_tmp;
}

const char *
addr_default_producer(void)
{
	return addr_default("PERFETTO_PRODUCER_SOCK_NAME",
	    "/run/perfetto/traced-producer.sock", "/tmp/perfetto-producer");
}

const char *
addr_default_consumer(void)
{
	return addr_default("PERFETTO_CONSUMER_SOCK_NAME",
	    "/run/perfetto/traced-consumer.sock", "/tmp/perfetto-consumer");
}
