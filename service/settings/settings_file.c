/*
 * The settings file: from protobuf text to struct settings.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protos/settings.pb-c.h"
#include "protos/text_settings.h"
#include "service/settings/settings.h"
#include "service/settings/settings_quota.h"
#include "service/settings/settings_recording.h"
#include "transport/socket/addr.h"
#include "transport/socket/roles.h"

/* Bounds a number of bytes well within 63 bits. */
#define MEMORY_KB_MOST (1ull << 50)

#define LIMIT(member, most) TEXT_LIMIT(struct limits, member, most)

static const struct text_setting limits[] = {
	LIMIT(max_sessions, 0),
	LIMIT(max_sessions_per_uid, 0),
	LIMIT(max_buffers_per_session, 65535),
	LIMIT(max_total_buffer_kb, 0),
	LIMIT(max_trace_duration_ms, 0),
	LIMIT(max_producers, SETTINGS_PRODUCERS_MOST),
	LIMIT(max_data_sources_per_producer, 0),
	LIMIT(max_writers_per_producer, 32767),
	LIMIT(max_name_bytes, 0),
	LIMIT(max_connections, 0),
	LIMIT(max_consumers_per_uid, 0),
	LIMIT(max_send_queue_kb, 0),
	LIMIT(max_shm_kb, 32768),
	LIMIT(max_connections_per_peer, 0),
	LIMIT(max_handshakes, 0),
	LIMIT(max_handshakes_per_peer, 0),
	LIMIT(handshake_timeout_ms, 0),
	LIMIT(bind_timeout_ms, 0),
	LIMIT(idle_timeout_ms, 0),
	LIMIT(stalled_timeout_ms, 0),
	LIMIT(max_connection_memory_kb, MEMORY_KB_MOST),
	LIMIT(max_connection_memory_per_peer_kb, MEMORY_KB_MOST),
	LIMIT(max_input_kb_per_s, MEMORY_KB_MOST),
	LIMIT(max_input_kb_per_s_per_peer, MEMORY_KB_MOST),
	LIMIT(max_data_sources, 0),
	LIMIT(max_data_sources_per_peer, 0),
	LIMIT(max_buffer_kb_per_consumer, 0),
	LIMIT(min_free_memory_kb, MEMORY_KB_MOST),
	TEXT_SETTING(struct limits, ignore_free_memory),
};

static const struct text_setting link_settings[] = {
	TEXT_SETTING(struct link_setting, grace_ms),
	TEXT_SETTING(struct link_setting, end_wait_ms),
	TEXT_SETTING(struct link_setting, window_kb),
	TEXT_SETTING(struct link_setting, max_commands_kb),
	TEXT_SETTING(struct link_setting, max_links),
	TEXT_SETTING(struct link_setting, max_links_per_peer),
	TEXT_SETTING(struct link_setting, max_producers_per_link),
	TEXT_SETTING(struct link_setting, compression),
};

static const struct text_setting plain[] = {
	TEXT_SETTING(struct settings, ignore_certificate_roles),
	TEXT_SETTING(struct settings, seccomp),
	TEXT_SETTING(struct settings, enable_relay_endpoint),
	TEXT_SETTING(struct settings, lossless),
	TEXT_SETTING(struct settings, overload_lag_ms),
};

#define N(table) (sizeof(table) / sizeof((table)[0]))

/* Limits whose default is a part of another. */
static void
derive_limits(struct limits *to, const Tributary__Limits *from)
{
	if (from->has_max_connection_memory_kb &&
	    !from->has_max_connection_memory_per_peer_kb) {
		to->max_connection_memory_per_peer_kb =
		    to->max_connection_memory_kb / 4;
		if (to->max_connection_memory_per_peer_kb == 0)
			to->max_connection_memory_per_peer_kb = 1;
	}
	if (from->has_max_total_buffer_kb &&
	    !from->has_max_buffer_kb_per_consumer)
		to->max_buffer_kb_per_consumer = to->max_total_buffer_kb;
}

static int
apply_limits(struct limits *to, const Tributary__Limits *from,
    const struct text_settings *c)
{
	if (text_settings_copy(c, "limits.", limits, N(limits), &from->base,
		to) != 0)
		return -1;
	derive_limits(to, from);
	return 0;
}

/* The window has room for a few blocks, and fits what counts its bytes. */
#define WINDOW_KB_LEAST 256u
#define WINDOW_KB_MOST  (1u << 20)

static int
apply_link(struct link_setting *to, const Tributary__Link *from,
    const struct text_settings *c)
{
	if (from->has_window_kb && (from->window_kb < WINDOW_KB_LEAST ||
	    from->window_kb > WINDOW_KB_MOST))
		return text_settings_complain(c, "link.window_kb",
		    "it is from %u to %u",
		    WINDOW_KB_LEAST, WINDOW_KB_MOST);
	if ((from->has_max_commands_kb && (from->max_commands_kb == 0 ||
	    from->max_commands_kb > MEMORY_KB_MOST)) ||
	    (from->has_max_links && from->max_links == 0) ||
	    (from->has_max_links_per_peer && from->max_links_per_peer == 0) ||
	    (from->has_max_producers_per_link &&
	    (from->max_producers_per_link == 0 ||
	    from->max_producers_per_link > 65535)))
		return text_settings_complain(c, "link",
		    "a limit of 0 would refuse "
		    "everything, and a link has at most 65535 producers; "
		    "leave the field out for the default");
	return text_settings_copy(c, "link.", link_settings, N(link_settings),
	    &from->base, to);
}

static int
add_sockets(struct settings *s, enum listen_port port, char *const *addresses,
    size_t n, const char *what, const struct text_settings *c)
{
	char why[ADDR_TEXT_MAX + 256];
	size_t i;

	for (i = 0; i < n; i++)
		if (settings_listen(s, port, addresses[i], false, why,
			sizeof(why)) != 0)
			return text_settings_complain(c, what, "%s", why);
	return 0;
}

/* False: it stands for none. */
static bool
port_of(Tributary__Listen__Port from, enum listen_port *to)
{
	switch (from) {
	case TRIBUTARY__LISTEN__PORT__PRODUCER:
		*to = LISTEN_PRODUCER;
		return true;
	case TRIBUTARY__LISTEN__PORT__CONSUMER:
		*to = LISTEN_CONSUMER;
		return true;
	case TRIBUTARY__LISTEN__PORT__RELAY:
		*to = LISTEN_RELAY;
		return true;
	case TRIBUTARY__LISTEN__PORT__PORT_UNSPECIFIED:
	default: /* protobuf-c adds an enumerator of its own */
		return false;
	}
}

static int
add_listen(struct settings *s, const Tributary__Listen *l,
    const struct text_settings *c)
{
	struct listen_setting to = {
		.address = l->address,
		.allow_remote = l->allow_remote,
		.allow_plain_consumer = l->allow_plain_consumer,
		.forwarded = l->forwarded,
	};
	char why[ADDR_TEXT_MAX + 256];

	if (l->address == NULL)
		return text_settings_complain(c, "listen",
		    "it has no `address`");
	if (!l->has_port)
		return text_settings_complain(c, "listen",
		    "%s has no `port`: PRODUCER, "
		    "CONSUMER or RELAY", l->address);
	if (!port_of(l->port, &to.port))
		return text_settings_complain(c, "listen",
		    "%s: PORT_UNSPECIFIED is no port: "
		    "it is PRODUCER, CONSUMER or RELAY", l->address);
	if (settings_listen_as(s, &to, why, sizeof(why)) != 0)
		return text_settings_complain(c, "listen", "%s", why);
	return 0;
}

static int
apply_listeners(struct settings *s, const Tributary__Settings *m,
    const struct text_settings *c)
{
	size_t i;

	if (add_sockets(s, LISTEN_PRODUCER, m->producer_socket,
		m->n_producer_socket, "producer_socket", c) != 0 ||
	    add_sockets(s, LISTEN_CONSUMER, m->consumer_socket,
		m->n_consumer_socket, "consumer_socket", c) != 0 ||
	    add_sockets(s, LISTEN_RELAY, m->relay_socket, m->n_relay_socket,
		"relay_socket", c) != 0)
		return -1;
	for (i = 0; i < m->n_listen; i++)
		if (add_listen(s, m->listen[i], c) != 0)
			return -1;
	return 0;
}

/* The role as a bit; 0: it stands for none. */
static uint32_t
role_of(Tributary__Role from)
{
	switch (from) {
	case TRIBUTARY__ROLE__PRODUCER:
		return ROLE_PRODUCER;
	case TRIBUTARY__ROLE__RELAY:
		return ROLE_RELAY;
	case TRIBUTARY__ROLE__CONSUMER:
		return ROLE_CONSUMER;
	case TRIBUTARY__ROLE__ADMIN:
		return ROLE_ADMIN;
	case TRIBUTARY__ROLE__ROLE_UNSPECIFIED:
	default: /* protobuf-c adds an enumerator of its own */
		return 0;
	}
}

static int
roles_of(const Tributary__Role *from, size_t n, uint32_t *to, const char *what,
    const struct text_settings *c)
{
	uint32_t role, all = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		if ((role = role_of(from[i])) == 0)
			return text_settings_complain(c, what,
			    "ROLE_UNSPECIFIED is no role: "
			    "it is PRODUCER, RELAY, CONSUMER or ADMIN");
		all |= role;
	}
	*to = all;
	return 0;
}

static int
add_rule(struct settings *s, const Tributary__Rule *r,
    const struct text_settings *c)
{
	struct rule_setting to = {
		.name = r->name,
		.user = r->user,
		.group = r->group,
		.may_claim_machine = r->may_claim_machine,
	};
	char why[256];

	if (roles_of(r->may, r->n_may, &to.may, "trust.may", c) != 0)
		return -1;
	if (settings_add_rule(s, &to, why, sizeof(why)) != 0)
		return text_settings_complain(c, "trust", "%s", why);
	return 0;
}

static int
add_dial(struct settings *s, const Tributary__Dial *d,
    const struct text_settings *c)
{
	struct dial_setting to = {
		.address = d->address,
		.command = d->command,
		.machine_name = d->machine_name,
		.max_retry_ms = d->max_retry_ms,
		.port = LISTEN_RELAY,
	};
	char why[ADDR_TEXT_MAX + 256];

	if (d->has_max_retry_ms && d->max_retry_ms == 0)
		return text_settings_complain(c, "dial.max_retry_ms",
		    "0 is not accepted: "
		    "there is a pause between attempts; leave the field out "
		    "for the default");
	if (d->has_port && !port_of(d->port, &to.port))
		return text_settings_complain(c, "dial.port",
		    "PORT_UNSPECIFIED is no port: "
		    "it is PRODUCER or RELAY");
	if (settings_add_dial(s, &to, why, sizeof(why)) != 0)
		return text_settings_complain(c, "dial", "%s", why);
	return 0;
}

static int
replace_path(char **slot, const char *value, const char *what,
    const struct text_settings *c)
{
	char *copy;

	if (value == NULL)
		return 0;
	if (*value == '\0')
		return text_settings_complain(c, what, "it is empty");
	if ((copy = strdup(value)) == NULL)
		return text_settings_complain(c, what, "no memory");
	free(*slot);
	*slot = copy;
	return 0;
}

static int
apply_tls(struct tls_setting *to, const Tributary__Tls *from,
    const struct text_settings *c)
{
	if (replace_path(&to->dir, from->dir, "tls.dir", c) != 0 ||
	    replace_path(&to->ca, from->ca, "tls.ca", c) != 0 ||
	    replace_path(&to->certificate, from->certificate,
		"tls.certificate", c) != 0 ||
	    replace_path(&to->key, from->key, "tls.key", c) != 0 ||
	    replace_path(&to->crl, from->crl, "tls.crl", c) != 0)
		return -1;
	if (from->has_allow_tls_1_2)
		to->allow_tls12 = from->allow_tls_1_2;
	return 0;
}

static int
apply_trust(struct settings *s, const Tributary__Settings *m,
    const struct text_settings *c)
{
	size_t i;

	if (m->tls != NULL && apply_tls(&s->tls, m->tls, c) != 0)
		return -1;
	for (i = 0; i < m->n_trust; i++)
		if (add_rule(s, m->trust[i], c) != 0)
			return -1;
	if (m->n_certificate_default > 0 &&
	    roles_of(m->certificate_default, m->n_certificate_default,
		&s->certificate_default, "certificate_default", c) != 0)
		return -1;
	for (i = 0; i < m->n_dial; i++)
		if (add_dial(s, m->dial[i], c) != 0)
			return -1;
	return 0;
}

static int
apply_quotas(struct settings *s, const Tributary__Settings *m,
    const struct text_settings *c)
{
	char why[256];
	size_t i;

	for (i = 0; i < m->n_quota; i++)
		if (settings_add_quota(s, m->quota[i], why, sizeof(why)) != 0)
			return text_settings_complain(c, "quota", "%s", why);
	return 0;
}

static int
apply_recordings(struct settings *s, const Tributary__Settings *m,
    const struct text_settings *c)
{
	char why[512];
	size_t i;

	if (replace_path(&s->archive_dir, m->archive_dir, "archive_dir", c) !=
	    0)
		return -1;
	if (s->archive_dir != NULL && s->archive_dir[0] != '/')
		return text_settings_complain(c, "archive_dir", "name the "
		    "folder by its whole path, from / on");
	if (m->n_recording > 0 && s->archive_dir == NULL)
		return text_settings_complain(c, "recording", "it has nowhere "
		    "to write to: name a folder with `archive_dir`");
	for (i = 0; i < m->n_recording; i++)
		if (settings_add_recording(s, m->recording[i], c->name, why,
			sizeof(why)) != 0)
			return text_settings_complain(c, "recording", "%s",
			    why);
	return 0;
}

/* value: NULL where the file has none. */
static int
take_text(struct settings *s, const struct text_settings *c, const char *what,
    const char *value, int (*set)(struct settings *, const char *, char *,
	size_t))
{
	char why[512];

	if (value == NULL || set(s, value, why, sizeof(why)) == 0)
		return 0;
	return text_settings_complain(c, what, "%s", why);
}

static int
apply(const struct text_settings *c, const ProtobufCMessage *message,
    void *settings)
{
	const Tributary__Settings *m = (const Tributary__Settings *)message;
	struct settings *s = settings;
	char why[512];

	if (apply_listeners(s, m, c) != 0 || apply_trust(s, m, c) != 0)
		return -1;
	if (m->limits != NULL && apply_limits(&s->limits, m->limits, c) != 0)
		return -1;
	if (m->link != NULL && apply_link(&s->link, m->link, c) != 0)
		return -1;
	if (apply_quotas(s, m, c) != 0 || apply_recordings(s, m, c) != 0)
		return -1;
	if (take_text(s, c, "trace_dir", m->trace_dir,
		settings_set_trace_dir) != 0 ||
	    take_text(s, c, "trace_file_mode", m->trace_file_mode,
		settings_set_trace_file_mode) != 0 ||
	    take_text(s, c, "log_level", m->log_level,
		settings_set_log_level) != 0 ||
	    take_text(s, c, "socket_permissions", m->socket_permissions,
		settings_set_socket_permissions) != 0 ||
	    take_text(s, c, "user", m->user, settings_set_user) != 0)
		return -1;
	if (m->has_io_threads &&
	    settings_set_io_threads(s, m->io_threads, why, sizeof(why)) != 0)
		return text_settings_complain(c, "io_threads", "%s", why);
	return text_settings_copy(c, "", plain, N(plain), &m->base, s);
}

static const struct text_settings_kind kind = {
	&tributary__settings__descriptor, apply
};

int
settings_parse(struct settings *s, const char *text, size_t len,
    const char *name, char *err, size_t err_size)
{
	const struct text_settings c = { name, err, err_size };

	return text_settings_parse(&c, &kind, text, len, s);
}

int
settings_load(struct settings *s, const char *path, char *err, size_t err_size)
{
	const struct text_settings c = { path, err, err_size };

	if (text_settings_read(&c, &kind, s) != 0)
		return -1;
	free(s->file);
	s->file = realpath(path, NULL); /* NULL: a pipe, which is read once */
	return 0;
}
