#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/settings/settings.h"
#include "transport/socket/addr.h"

const char *
listen_port_name(enum listen_port port)
{
	switch (port) {
	case LISTEN_PRODUCER:
		return "producers";
	case LISTEN_CONSUMER:
		return "consumers";
	case LISTEN_RELAY:
		return "relays";
	}
	return "?";
}

/*
 * Whether one address can serve both.  Port 0 is another port each time that
 * it is opened.
 */
static bool
ports_agree(enum listen_port a, enum listen_port b, const struct addr *at)
{
	if ((at->kind == ADDR_TCP || at->kind == ADDR_TLS) &&
	    strcmp(at->port, "0") == 0)
		return true;
	return a == b || (a != LISTEN_CONSUMER && b != LISTEN_CONSUMER);
}

/* Permits one listener all that the other is permitted. */
static void
permit(struct listen_setting *to, const struct listen_setting *from)
{
	to->allow_remote |= from->allow_remote;
	to->allow_plain_consumer |= from->allow_plain_consumer;
	to->forwarded |= from->forwarded;
}

static bool
is_permitted_more(const struct listen_setting *l)
{
	return l->allow_remote || l->allow_plain_consumer || l->forwarded;
}

/* Whether such a socket can be at such an address. */
static int
check_listener(const struct listen_setting *l, const struct addr *a, char *err,
    size_t err_size)
{
	if (a->kind == ADDR_SSH) {
		snprintf(err, err_size, "%s: nothing can be listened on "
		    "through ssh; to connect to a device, name it in `dial`",
		    a->text);
		return -1;
	}
	if (l->forwarded && a->kind != ADDR_UNIX) {
		snprintf(err, err_size, "%s: `forwarded` is for UNIX sockets; "
		    "a peer elsewhere is never taken for a local user",
		    a->text);
		return -1;
	}
	if (l->allow_plain_consumer && l->port != LISTEN_CONSUMER) {
		snprintf(err, err_size, "%s: `allow_plain_consumer` permits "
		    "nothing on a socket for %s", a->text,
		    listen_port_name(l->port));
		return -1;
	}
	return 0;
}

/*
 * The listener that is there already for the same address and port into *out,
 * or NULL.  -1: the address is taken by a port that cannot share it.
 */
static int
find_listener(struct settings *s, enum listen_port port, const struct addr *a,
    struct listen_setting **out, char *err, size_t err_size)
{
	size_t i;

	*out = NULL;
	for (i = 0; i < s->n_listen; i++) {
		if (strcmp(s->listen[i].address, a->text) != 0)
			continue;
		if (!ports_agree(s->listen[i].port, port, a)) {
			snprintf(err, err_size, "%s is named for %s and for "
			    "%s: give each a socket of its own", a->text,
			    listen_port_name(s->listen[i].port),
			    listen_port_name(port));
			return -1;
		}
		if (s->listen[i].port == port) {
			*out = &s->listen[i];
			return 0;
		}
	}
	return 0;
}

static void
take_permits(const struct settings *s, struct listen_setting *l)
{
	size_t i;

	for (i = 0; i < s->n_permits; i++)
		if (s->permits[i].port == l->port &&
		    strcmp(s->permits[i].address, l->address) == 0)
			permit(l, &s->permits[i]);
}

/* Appends a listener; takes address.  -1: no memory. */
static int
append(struct listen_setting **array, size_t *n, const struct listen_setting *l,
    char *address)
{
	struct listen_setting *grown;

	grown = reallocarray(*array, *n + 1, sizeof(*grown));
	if (grown == NULL || address == NULL) {
		if (grown != NULL)
			*array = grown;
		free(address);
		return -1;
	}
	*array = grown;
	grown[*n] = *l;
	grown[(*n)++].address = address;
	return 0;
}

int
settings_listen_as(struct settings *s, const struct listen_setting *l,
    char *err, size_t err_size)
{
	struct listen_setting *there;
	struct addr a;

	if (addr_parse(&a, l->address, err, err_size) != 0 ||
	    check_listener(l, &a, err, err_size) != 0 ||
	    find_listener(s, l->port, &a, &there, err, err_size) != 0)
		return -1;
	if (there != NULL) {
		permit(there, l);
		return 0;
	}
	if (s->n_listen >= SETTINGS_LISTEN_MAX) {
		snprintf(err, err_size, "more than %u sockets to listen on",
		    SETTINGS_LISTEN_MAX);
		return -1;
	}
	if (append(&s->listen, &s->n_listen, l, strdup(l->address)) != 0) {
		snprintf(err, err_size, "no memory");
		return -1;
	}
	take_permits(s, &s->listen[s->n_listen - 1]);
	return 0;
}

int
settings_listen(struct settings *s, enum listen_port port, const char *address,
    bool allow_remote, char *err, size_t err_size)
{
	char item[ADDR_TEXT_MAX];
	struct listen_setting l = {
		.port = port,
		.address = item,
		.allow_remote = allow_remote,
	};
	const char *list = address;
	size_t n = 0;
	int got;

	while ((got = addr_list_next(&list, item, sizeof(item))) == 1) {
		if (settings_listen_as(s, &l, err, err_size) != 0)
			return -1;
		n++;
	}
	if (got < 0) {
		snprintf(err, err_size,
		    "an address for %s is longer than %d bytes",
		    listen_port_name(port), ADDR_TEXT_MAX - 1);
		return -1;
	}
	if (n == 0) {
		snprintf(err, err_size, "an empty address for %s",
		    listen_port_name(port));
		return -1;
	}
	return 0;
}

/* Without memory a permission is lost, and the daemon refuses to start. */
static void
drop_listener(struct settings *s, const struct listen_setting *l)
{
	if (!is_permitted_more(l) || s->n_permits >= SETTINGS_LISTEN_MAX)
		free(l->address);
	else
		(void)append(&s->permits, &s->n_permits, l, l->address);
}

void
settings_drop_listeners(struct settings *s, enum listen_port port)
{
	size_t i, n = s->n_listen;
	struct listen_setting l;

	s->n_listen = 0;
	for (i = 0; i < n; i++) {
		l = s->listen[i];
		if (l.port == port)
			drop_listener(s, &l);
		else
			s->listen[s->n_listen++] = l;
	}
}

bool
settings_allow_remote(struct settings *s, const char *address)
{
	bool found = false;
	size_t i;

	for (i = 0; i < s->n_listen; i++)
		if (strcmp(s->listen[i].address, address) == 0)
			found = s->listen[i].allow_remote = true;
	return found;
}

bool
settings_allow_plain_consumer(struct settings *s, const char *address)
{
	bool found = false;
	size_t i;

	for (i = 0; i < s->n_listen; i++)
		if (s->listen[i].port == LISTEN_CONSUMER &&
		    strcmp(s->listen[i].address, address) == 0)
			found = s->listen[i].allow_plain_consumer = true;
	return found;
}

static bool
has_listener(const struct settings *s, enum listen_port port)
{
	size_t i;

	for (i = 0; i < s->n_listen; i++)
		if (s->listen[i].port == port)
			return true;
	return false;
}

int
settings_fill_listeners(struct settings *s, enum listen_port port, char *err,
    size_t err_size)
{
	const char *address = NULL;

	switch (port) {
	case LISTEN_PRODUCER:
		address = addr_default_producer();
		break;
	case LISTEN_CONSUMER:
		address = addr_default_consumer();
		break;
	case LISTEN_RELAY:
		break;
	}
	if (address == NULL || has_listener(s, port))
		return 0;
	return settings_listen(s, port, address, false, err, err_size);
}

static int
replace_by_variable(struct settings *s, enum listen_port port, const char *var,
    char *err, size_t err_size)
{
	const char *value = getenv(var);
	char why[ADDR_TEXT_MAX + 256];

	if (value == NULL || *value == '\0')
		return 0;
	settings_drop_listeners(s, port);
	if (settings_listen(s, port, value, false, why, sizeof(why)) == 0)
		return 0;
	snprintf(err, err_size, "%s: %s", var, why);
	return -1;
}

int
settings_apply_environment(struct settings *s, char *err, size_t err_size)
{
	if (replace_by_variable(s, LISTEN_PRODUCER,
		"PERFETTO_PRODUCER_SOCK_NAME", err, err_size) != 0)
		return -1;
	return replace_by_variable(s, LISTEN_CONSUMER,
	    "PERFETTO_CONSUMER_SOCK_NAME", err, err_size);
}
