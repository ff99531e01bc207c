/*
 * The settings file: from protobuf text to struct settings.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protos/settings.pb-c.h"
#include "protos/text_error.h"
#include "protos/text_file.h"
#include "protos/text_parse.h"
#include "service/settings/settings.h"
#include "service/settings/settings_quota.h"
#include "transport/socket/addr.h"
#include "transport/socket/roles.h"

/* Where a message of this file is made: about field `what` of file `name`. */
struct complaint {
	const char *name;
	char *err;
	size_t err_size;
};

static int PRINTF_LIKE(3, 4)
complain(const struct complaint *c, const char *what, const char *fmt, ...)
{
	char why[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	snprintf(c->err, c->err_size, "%s: error: %s: %s", c->name, what, why);
	return -1;
}

/* So that a number of bytes is well within 63 bits. */
#define MEMORY_KB_MOST (1ull << 50)

#define ROW(field, wide, most)                                                 \
	{ #field, offsetof(Tributary__Limits, has_##field),                    \
		offsetof(Tributary__Limits, field),                            \
		offsetof(struct limits, field), wide, most }

/* Every limit; most 0: the type is the only bound. */
static const struct limit_row {
	const char *name;
	size_t has;
	size_t from;
	size_t to;
	bool wide; /* 64 bits, both ends */
	uint64_t most;
} limit_rows[] = {
	ROW(max_sessions, false, 0),
	ROW(max_sessions_per_uid, false, 0),
	ROW(max_buffers_per_session, false, 65535),
	ROW(max_total_buffer_kb, true, 0),
	ROW(max_trace_duration_ms, true, 0),
	ROW(max_producers, false, SETTINGS_PRODUCERS_MOST),
	ROW(max_data_sources_per_producer, false, 0),
	ROW(max_writers_per_producer, false, 32767),
	ROW(max_name_bytes, false, 0),
	ROW(max_connections, false, 0),
	ROW(max_consumers_per_uid, false, 0),
	ROW(max_send_queue_kb, false, 0),
	ROW(max_shm_kb, false, 32768),
	ROW(max_connections_per_peer, false, 0),
	ROW(max_handshakes, false, 0),
	ROW(max_handshakes_per_peer, false, 0),
	ROW(handshake_timeout_ms, false, 0),
	ROW(bind_timeout_ms, false, 0),
	ROW(idle_timeout_ms, true, 0),
	ROW(stalled_timeout_ms, false, 0),
	ROW(max_connection_memory_kb, true, MEMORY_KB_MOST),
	ROW(max_connection_memory_per_peer_kb, true, MEMORY_KB_MOST),
	ROW(max_input_kb_per_s, true, MEMORY_KB_MOST),
	ROW(max_input_kb_per_s_per_peer, true, MEMORY_KB_MOST),
	ROW(max_data_sources, false, 0),
	ROW(max_data_sources_per_peer, false, 0),
	ROW(max_buffer_kb_per_consumer, true, 0),
	ROW(min_free_memory_kb, true, MEMORY_KB_MOST),
};
#define N_LIMIT_ROWS (sizeof(limit_rows) / sizeof(limit_rows[0]))

static uint64_t
get_number(const void *base, size_t offset, bool wide)
{
	uint64_t v64;
	uint32_t v32;

	if (wide) {
		memcpy(&v64, (const char *)base + offset, sizeof(v64));
		return v64;
	}
	memcpy(&v32, (const char *)base + offset, sizeof(v32));
	return v32;
}

static void
put_number(void *base, size_t offset, bool wide, uint64_t v)
{
	uint32_t v32 = (uint32_t)v;

	if (wide)
		memcpy((char *)base + offset, &v, sizeof(v));
	else
		memcpy((char *)base + offset, &v32, sizeof(v32));
}

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
    const struct complaint *c)
{
	const struct limit_row *row;
	protobuf_c_boolean has;
	char what[64];
	uint64_t v;

	for (row = limit_rows; row < limit_rows + N_LIMIT_ROWS; row++) {
		memcpy(&has, (const char *)from + row->has, sizeof(has));
		if (!has)
			continue;
		v = get_number(from, row->from, row->wide);
		snprintf(what, sizeof(what), "limits.%s", row->name);
		if (v == 0)
			return complain(c, what, "0 is not accepted: it would "
			    "refuse everything; leave the field out for the "
			    "default");
		if (row->most != 0 && v > row->most)
			return complain(c, what, "%llu is over the most that "
			    "is possible, %llu", (unsigned long long)v,
			    (unsigned long long)row->most);
		put_number(to, row->to, row->wide, v);
	}
	if (from->has_ignore_free_memory)
		to->ignore_free_memory = from->ignore_free_memory;
	derive_limits(to, from);
	return 0;
}

/* The window has room for a few blocks, and fits what counts its bytes. */
#define WINDOW_KB_LEAST 256u
#define WINDOW_KB_MOST  (1u << 20)

static int
apply_link(struct link_setting *to, const Tributary__Link *from,
    const struct complaint *c)
{
	if (from->has_window_kb && (from->window_kb < WINDOW_KB_LEAST ||
	    from->window_kb > WINDOW_KB_MOST))
		return complain(c, "link.window_kb", "it is from %u to %u",
		    WINDOW_KB_LEAST, WINDOW_KB_MOST);
	if ((from->has_max_commands_kb && (from->max_commands_kb == 0 ||
	    from->max_commands_kb > MEMORY_KB_MOST)) ||
	    (from->has_max_links && from->max_links == 0) ||
	    (from->has_max_links_per_peer && from->max_links_per_peer == 0) ||
	    (from->has_max_producers_per_link &&
	    (from->max_producers_per_link == 0 ||
	    from->max_producers_per_link > 65535)))
		return complain(c, "link", "a limit of 0 would refuse "
		    "everything, and a link has at most 65535 producers; "
		    "leave the field out for the default");
	if (from->has_grace_ms)
		to->grace_ms = from->grace_ms;
	if (from->has_end_wait_ms)
		to->end_wait_ms = from->end_wait_ms;
	if (from->has_window_kb)
		to->window_kb = from->window_kb;
	if (from->has_max_commands_kb)
		to->max_commands_kb = from->max_commands_kb;
	if (from->has_max_links)
		to->max_links = from->max_links;
	if (from->has_max_links_per_peer)
		to->max_links_per_peer = from->max_links_per_peer;
	if (from->has_max_producers_per_link)
		to->max_producers_per_link = from->max_producers_per_link;
	if (from->has_compression)
		to->compression = from->compression;
	return 0;
}

static int
add_sockets(struct settings *s, enum listen_port port, char *const *addresses,
    size_t n, const char *what, const struct complaint *c)
{
	char why[ADDR_TEXT_MAX + 256];
	size_t i;

	for (i = 0; i < n; i++)
		if (settings_listen(s, port, addresses[i], false, why,
			sizeof(why)) != 0)
			return complain(c, what, "%s", why);
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
    const struct complaint *c)
{
	struct listen_setting to = {
		.address = l->address,
		.allow_remote = l->allow_remote,
		.allow_plain_consumer = l->allow_plain_consumer,
		.forwarded = l->forwarded,
	};
	char why[ADDR_TEXT_MAX + 256];

	if (l->address == NULL)
		return complain(c, "listen", "it has no `address`");
	if (!l->has_port)
		return complain(c, "listen", "%s has no `port`: PRODUCER, "
		    "CONSUMER or RELAY", l->address);
	if (!port_of(l->port, &to.port))
		return complain(c, "listen", "%s: PORT_UNSPECIFIED is no port: "
		    "it is PRODUCER, CONSUMER or RELAY", l->address);
	if (settings_listen_as(s, &to, why, sizeof(why)) != 0)
		return complain(c, "listen", "%s", why);
	return 0;
}

static int
apply_listeners(struct settings *s, const Tributary__Settings *m,
    const struct complaint *c)
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
    const struct complaint *c)
{
	uint32_t role, all = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		if ((role = role_of(from[i])) == 0)
			return complain(c, what, "ROLE_UNSPECIFIED is no role: "
			    "it is PRODUCER, RELAY, CONSUMER or ADMIN");
		all |= role;
	}
	*to = all;
	return 0;
}

static int
add_rule(struct settings *s, const Tributary__Rule *r,
    const struct complaint *c)
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
		return complain(c, "trust", "%s", why);
	return 0;
}

static int
add_dial(struct settings *s, const Tributary__Dial *d,
    const struct complaint *c)
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
		return complain(c, "dial.max_retry_ms", "0 is not accepted: "
		    "there is a pause between attempts; leave the field out "
		    "for the default");
	if (d->has_port && !port_of(d->port, &to.port))
		return complain(c, "dial.port", "PORT_UNSPECIFIED is no port: "
		    "it is PRODUCER or RELAY");
	if (settings_add_dial(s, &to, why, sizeof(why)) != 0)
		return complain(c, "dial", "%s", why);
	return 0;
}

static int
replace_path(char **slot, const char *value, const char *what,
    const struct complaint *c)
{
	char *copy;

	if (value == NULL)
		return 0;
	if (*value == '\0')
		return complain(c, what, "it is empty");
	if ((copy = strdup(value)) == NULL)
		return complain(c, what, "no memory");
	free(*slot);
	*slot = copy;
	return 0;
}

static int
apply_tls(struct tls_setting *to, const Tributary__Tls *from,
    const struct complaint *c)
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
    const struct complaint *c)
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
	if (m->has_ignore_certificate_roles)
		s->ignore_certificate_roles = m->ignore_certificate_roles;
	for (i = 0; i < m->n_dial; i++)
		if (add_dial(s, m->dial[i], c) != 0)
			return -1;
	return 0;
}

static int
apply_quotas(struct settings *s, const Tributary__Settings *m,
    const struct complaint *c)
{
	char why[256];
	size_t i;

	for (i = 0; i < m->n_quota; i++)
		if (settings_add_quota(s, m->quota[i], why, sizeof(why)) != 0)
			return complain(c, "quota", "%s", why);
	return 0;
}

static int
apply(struct settings *s, const Tributary__Settings *m,
    const struct complaint *c)
{
	char why[512];

	if (apply_listeners(s, m, c) != 0 || apply_trust(s, m, c) != 0)
		return -1;
	if (m->limits != NULL && apply_limits(&s->limits, m->limits, c) != 0)
		return -1;
	if (m->link != NULL && apply_link(&s->link, m->link, c) != 0)
		return -1;
	if (apply_quotas(s, m, c) != 0)
		return -1;
	if (m->trace_dir != NULL &&
	    settings_set_trace_dir(s, m->trace_dir, why, sizeof(why)) != 0)
		return complain(c, "trace_dir", "%s", why);
	if (m->trace_file_mode != NULL &&
	    settings_set_trace_file_mode(s, m->trace_file_mode, why,
		sizeof(why)) != 0)
		return complain(c, "trace_file_mode", "%s", why);
	if (m->log_level != NULL &&
	    settings_set_log_level(s, m->log_level, why, sizeof(why)) != 0)
		return complain(c, "log_level", "%s", why);
	if (m->socket_permissions != NULL &&
	    settings_set_socket_permissions(s, m->socket_permissions, why,
		sizeof(why)) != 0)
		return complain(c, "socket_permissions", "%s", why);
	if (m->user != NULL &&
	    settings_set_user(s, m->user, why, sizeof(why)) != 0)
		return complain(c, "user", "%s", why);
	if (m->has_seccomp)
		s->seccomp = m->seccomp;
	if (m->has_io_threads &&
	    settings_set_io_threads(s, m->io_threads, why, sizeof(why)) != 0)
		return complain(c, "io_threads", "%s", why);
	if (m->has_enable_relay_endpoint)
		s->enable_relay_endpoint = m->enable_relay_endpoint;
	if (m->has_lossless)
		s->lossless = m->lossless;
	if (m->has_overload_lag_ms)
		s->overload_lag_ms = m->overload_lag_ms;
	return 0;
}

int
settings_parse(struct settings *s, const char *text, size_t len,
    const char *name, char *err, size_t err_size)
{
	struct complaint c = { name, err, err_size };
	struct text_error where;
	ProtobufCMessage *m;
	int rc;

	m = text_parse_message(&tributary__settings__descriptor, text, len,
	    &where);
	if (m == NULL) {
		text_error_format(&where, name, text, len, err, err_size);
		return -1;
	}
	rc = apply(s, (const Tributary__Settings *)m, &c);
	protobuf_c_message_free_unpacked(m, NULL);
	return rc;
}

int
settings_load(struct settings *s, const char *path, char *err, size_t err_size)
{
	char *text;
	size_t len;
	int rc;

	if ((text = text_file_read(path, &len, err, err_size)) == NULL)
		return -1;
	rc = settings_parse(s, text, len, path, err, err_size);
	free(text);
	return rc;
}
