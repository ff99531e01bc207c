#include "service/front/listeners.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "service/front/activation.h"
#include "service/front/certificates.h"
#include "service/front/gate.h"
#include "service/front/handover.h"
#include "service/settings/settings.h"
#include "transport/base/log.h"
#include "transport/connect/listener.h"
#include "transport/connect/socket_owner.h"
#include "transport/socket/addr.h"

struct door {
	struct listeners *doors;
	struct listener *listener;
	struct entrance entrance;
	enum listen_port port;
	const char *address; /* in the settings; NULL: a passed socket */
	bool tls;            /* a passed socket's name says so */
	bool taken;          /* its sockets are the daemon's before us */
};

struct listeners {
	struct listeners_setup with;
	bool borrows_taken; /* close leaves taken sockets and their files */
	struct door all[SETTINGS_LISTEN_MAX + ACTIVATION_MAX];
	size_t n;
};

static void
accept_cb(struct listener *l, int fd, void *arg)
{
	struct door *door = arg;

	(void)gate_take(&door->entrance, fd, NULL);
}

/* ---- which ---- */

static bool
accepts_relays(const struct settings *s, const struct listen_setting *l)
{
	size_t i;

	if (l->port == LISTEN_RELAY)
		return true;
	if (l->port != LISTEN_PRODUCER)
		return false;
	if (s->enable_relay_endpoint)
		return true;
	for (i = 0; i < s->n_listen; i++)
		if (s->listen[i].port == LISTEN_RELAY &&
		    strcmp(s->listen[i].address, l->address) == 0)
			return true;
	return false;
}

/* A relay's socket that is a producer's too is opened as the latter. */
static bool
is_opened_as_producer(const struct settings *s, const struct listen_setting *l)
{
	size_t i;

	if (l->port != LISTEN_RELAY)
		return false;
	for (i = 0; i < s->n_listen; i++)
		if (s->listen[i].port == LISTEN_PRODUCER &&
		    strcmp(s->listen[i].address, l->address) == 0)
			return true;
	return false;
}

static const char tls_scheme[] = "tls://";

static bool
is_activated(const struct activation *a, const struct listen_setting *l)
{
	char err[ADDR_TEXT_MAX + 256], text[ADDR_TEXT_MAX];
	struct addr addr;
	size_t i;

	for (i = 0; i < a->n; i++) {
		passed_socket_address(a->sockets[i].fd, text, sizeof(text));
		if (a->sockets[i].port == l->port &&
		    strncmp(l->address, tls_scheme, strlen(tls_scheme)) == 0 &&
		    strcmp(l->address + strlen(tls_scheme), text) == 0)
			return true;
	}
	return addr_parse(&addr, l->address, err, sizeof(err)) == 0 &&
	    activation_is_bound_to(a, &addr.sa, addr.sa_len);
}

/*
 * Finds the settings of a socket that was passed in: they name its address, or
 * tls:// and its address.  NULL: nothing.
 */
static const struct listen_setting *
setting_of(const struct settings *s, enum listen_port port,
    const char *address, bool *tls)
{
	const char *named;
	size_t i;

	for (i = 0; i < s->n_listen; i++) {
		named = s->listen[i].address;
		*tls = strncmp(named, tls_scheme, strlen(tls_scheme)) == 0;
		if (*tls)
			named += strlen(tls_scheme);
		if (s->listen[i].port == port && strcmp(named, address) == 0)
			return &s->listen[i];
	}
	*tls = false;
	return NULL;
}

/* ---- what they say ---- */

/* The address as it was named, with the port that the kernel chose for 0. */
static void
real_address(const struct addr *a, const struct listener *l, char *out,
    size_t out_size)
{
	const char *scheme = a->kind == ADDR_TLS ? "tls://" : "";
	bool v6 = strchr(a->host, ':') != NULL;

	if ((a->kind != ADDR_TCP && a->kind != ADDR_TLS) ||
	    strcmp(a->port, "0") != 0)
		snprintf(out, out_size, "%s", a->text);
	else
		snprintf(out, out_size, "%s%s%s%s:%d", scheme, v6 ? "[" : "",
		    a->host, v6 ? "]" : "", listener_port(l));
}

static void
log_door(const struct door *door, enum listen_port port, bool relays,
    const char *address)
{
	char with[CERTIFICATES_TEXT_MAX + 4] = "";

	if (door->entrance.tls != NULL) {
		char text[CERTIFICATES_TEXT_MAX];

		certificates_text(door->doors->with.certificates, text,
		    sizeof(text));
		snprintf(with, sizeof(with), " (%s)", text);
	}
	log_info("listening for %s on %s%s", listen_port_name(port), address,
	    with);
	if (relays && port != LISTEN_RELAY)
		log_info("listening for %s on %s%s",
		    listen_port_name(LISTEN_RELAY), address, with);
}

static void
warn_of_open_consumers(const char *address)
{
	log_warn("every program that can connect to %s reads all traces: "
	    "peers are not authenticated there", address);
}

/* ---- permissions ---- */

static int
set_permissions(const struct settings *s, enum listen_port port,
    struct listener *l, char *err, size_t err_size)
{
	bool consumers = port == LISTEN_CONSUMER;
	struct socket_permissions p;

	if (socket_permissions_parse(&p, s->socket_permissions, err,
		err_size) != 0)
		return -1;
	return socket_owner_set(l,
	    consumers ? p.consumer_group : p.producer_group,
	    consumers ? p.consumer_mode : p.producer_mode, err, err_size);
}

/* ---- opening ---- */

static struct door *
next_door(struct listeners *d, enum listen_port port, bool relays)
{
	struct door *door = &d->all[d->n];

	memset(door, 0, sizeof(*door));
	door->doors = d;
	door->port = port;
	entrance_init(&door->entrance, d->with.gate, port, relays);
	return door;
}

/* The daemon before us may have left the sockets open. */
static struct listener *
listen_at(struct door *door, const struct addr *a,
    const struct listen_setting *l, struct activation *from, char *err,
    size_t err_size)
{
	struct loop *loop = door->doors->with.loop;
	int fds[LISTENER_SOCKETS_MAX];
	struct listener *listener;
	size_t n;

	n = activation_take_made(from, l->port, l->address, fds,
	    LISTENER_SOCKETS_MAX);
	if (n == 0)
		return listener_new(loop, &(struct listener_setup){ .addr = a,
		    .allow_remote = l->allow_remote, .fn = accept_cb,
		    .arg = door }, err, err_size);
	listener = listener_take_over(loop, &(struct listener_setup){ .addr = a,
	    .allow_remote = l->allow_remote, .fn = accept_cb, .arg = door },
	    fds, n, err, err_size);
	door->taken = listener != NULL;
	return listener;
}

static int
open_door(struct listeners *d, const struct listen_setting *l,
    struct activation *from, char *err, size_t err_size)
{
	bool with_permissions, relays = accepts_relays(d->with.settings, l);
	struct door *door = next_door(d, l->port, relays);
	char text[ADDR_TEXT_MAX + 16];
	struct addr a;
	mode_t old = 0;

	if (addr_parse(&a, l->address, err, err_size) != 0)
		return -1;
	if (a.kind == ADDR_TLS)
		door->entrance.tls = certificates_context(d->with.certificates);
	door->entrance.forwarded = l->forwarded;
	door->entrance.plain_consumer = l->allow_plain_consumer;
	with_permissions = d->with.settings->socket_permissions != NULL &&
	    socket_owner_has_file(&a);
	/* Keeps strangers from connecting between bind() and chmod(). */
	if (with_permissions)
		old = umask(0177);
	door->address = l->address;
	door->listener = listen_at(door, &a, l, from, err, err_size);
	if (with_permissions)
		umask(old);
	if (door->listener == NULL)
		return -1;
	d->n++;
	if (with_permissions && set_permissions(d->with.settings, l->port,
		door->listener, err, err_size) != 0)
		return -1;
	real_address(&a, door->listener, text, sizeof(text));
	log_door(door, l->port, relays, text);
	if (l->port == LISTEN_CONSUMER && a.kind != ADDR_UNIX && a.kind != ADDR_TLS)
		warn_of_open_consumers(text);
	return 0;
}

static int
adopt_door(struct listeners *d, struct activated_socket *s, char *err,
    size_t err_size)
{
	bool relays = s->port == LISTEN_RELAY ||
	    (s->port == LISTEN_PRODUCER && d->with.settings->enable_relay_endpoint);
	struct door *door = next_door(d, s->port, relays);
	const struct listen_setting *said;
	char text[ADDR_TEXT_MAX], shown[ADDR_TEXT_MAX + 8];
	bool tls;

	passed_socket_address(s->fd, text, sizeof(text));
	said = setting_of(d->with.settings, s->port, text, &tls);
	tls |= s->tls;
	snprintf(shown, sizeof(shown), "%s%s", tls ? tls_scheme : "", text);
	if (tls)
		door->entrance.tls = certificates_context(d->with.certificates);
	if (said != NULL) {
		door->entrance.forwarded = said->forwarded;
		door->entrance.plain_consumer = said->allow_plain_consumer;
	}
	door->listener = listener_adopt(d->with.loop, s->fd, accept_cb, door, err,
	    err_size);
	if (door->listener == NULL)
		return -1;
	door->tls = s->tls;
	s->fd = -1;
	d->n++;
	log_door(door, s->port, relays, shown);
	if (s->port == LISTEN_CONSUMER && door->entrance.plain_consumer)
		warn_of_open_consumers(shown);
	return 0;
}

static int
open_doors(struct listeners *d, struct activation *a, char *err,
    size_t err_size)
{
	const struct settings *s = d->with.settings;
	size_t i;

	for (i = 0; i < s->n_listen; i++)
		if (!is_opened_as_producer(s, &s->listen[i]) &&
		    !is_activated(a, &s->listen[i]) &&
		    open_door(d, &s->listen[i], a, err, err_size) != 0)
			return -1;
	for (i = 0; i < a->n; i++)
		if (adopt_door(d, &a->sockets[i], err, err_size) != 0)
			return -1;
	activation_drop_made(a);
	return 0;
}

struct listeners *
listeners_new(const struct listeners_setup *setup, struct activation *a,
    char *err, size_t err_size)
{
	struct listeners *d;

	if ((d = calloc(1, sizeof(*d))) == NULL) {
		snprintf(err, err_size, "no memory");
		return NULL;
	}
	d->with = *setup;
	d->borrows_taken = a->trial;
	if (open_doors(d, a, err, err_size) != 0)
		goto fail;
	return d;

fail:
	d->borrows_taken = true;
	listeners_free(d);
	return NULL;
}

void
listeners_close(struct listeners *d)
{
	size_t i;

	for (i = 0; i < d->n; i++) {
		if (d->all[i].taken && d->borrows_taken)
			listener_leave(d->all[i].listener);
		else
			listener_free(d->all[i].listener);
		d->all[i].listener = NULL;
	}
}

void
listeners_rest(struct listeners *d)
{
	size_t i;

	for (i = 0; i < d->n; i++)
		listener_rest(d->all[i].listener);
}

void
listeners_wake(struct listeners *d)
{
	size_t i;

	for (i = 0; i < d->n; i++)
		listener_wake(d->all[i].listener);
}

void
listeners_pace(struct listeners *d, bool paced)
{
	size_t i;

	for (i = 0; i < d->n; i++)
		if (d->all[i].port != LISTEN_CONSUMER)
			listener_pace(d->all[i].listener, paced);
}

void
listeners_let_some_in(struct listeners *d)
{
	size_t i;

	for (i = 0; i < d->n; i++)
		if (d->all[i].port != LISTEN_CONSUMER)
			listener_let_some_in(d->all[i].listener);
}

static int
list_door(const struct door *door, struct handover *h)
{
	int fds[LISTENER_SOCKETS_MAX], rc = 0;
	size_t i, n = listener_sockets(door->listener, fds);

	for (i = 0; i < n && rc == 0; i++)
		rc = door->address != NULL ?
		    handover_add_made(h, fds[i], door->port, door->address) :
		    handover_add_passed(h, fds[i], door->port, door->tls);
	return rc;
}

int
listeners_list(const struct listeners *d, struct handover *h)
{
	size_t i;

	for (i = 0; i < d->n; i++)
		if (list_door(&d->all[i], h) != 0)
			return -1;
	return 0;
}

void
listeners_leave(struct listeners *d)
{
	size_t i;

	for (i = 0; i < d->n; i++) {
		listener_leave(d->all[i].listener);
		d->all[i].listener = NULL;
	}
}

void
listeners_free(struct listeners *d)
{
	if (d == NULL)
		return;
	listeners_close(d);
	free(d);
}
