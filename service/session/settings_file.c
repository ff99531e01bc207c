/*
 * The settings file: from protobuf text to struct settings.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protos/settings.pb-c.h"
#include "protos/text_error.h"
#include "protos/text_parse.h"
#include "service/session/settings.h"
#include "transport/addr.h"

/* A settings file that is larger is no settings file. */
#define FILE_MAX (1u << 20)

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
	ROW(max_producers, false, 65535),
	ROW(max_data_sources_per_producer, false, 0),
	ROW(max_writers_per_producer, false, 32767),
	ROW(max_name_bytes, false, 0),
	ROW(max_connections, false, 0),
	ROW(max_consumers_per_uid, false, 0),
	ROW(max_send_queue_kb, false, 0),
	ROW(max_shm_kb, false, 32768),
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
	return 0;
}

static int
add_listener(struct settings *s, enum listen_port port, const char *address,
    bool allow_remote, const char *what, const struct complaint *c)
{
	char why[ADDR_TEXT_MAX + 256];

	if (settings_listen(s, port, address, allow_remote, why,
		sizeof(why)) == 0)
		return 0;
	return complain(c, what, "%s", why);
}

static int
add_sockets(struct settings *s, enum listen_port port, char *const *addresses,
    size_t n, const char *what, const struct complaint *c)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (add_listener(s, port, addresses[i], false, what, c) != 0)
			return -1;
	return 0;
}

static int
add_listen(struct settings *s, const Tributary__Listen *l,
    const struct complaint *c)
{
	enum listen_port port = LISTEN_PRODUCER;

	if (l->address == NULL)
		return complain(c, "listen", "it has no `address`");
	if (!l->has_port)
		return complain(c, "listen", "%s has no `port`: PRODUCER, "
		    "CONSUMER or RELAY", l->address);
	switch (l->port) {
	case TRIBUTARY__LISTEN__PORT__PRODUCER:
		port = LISTEN_PRODUCER;
		break;
	case TRIBUTARY__LISTEN__PORT__CONSUMER:
		port = LISTEN_CONSUMER;
		break;
	case TRIBUTARY__LISTEN__PORT__RELAY:
		port = LISTEN_RELAY;
		break;
	case TRIBUTARY__LISTEN__PORT__PORT_UNSPECIFIED:
	default: /* protobuf-c adds an enumerator of its own */
		return complain(c, "listen", "%s: PORT_UNSPECIFIED is no port: "
		    "it is PRODUCER, CONSUMER or RELAY", l->address);
	}
	return add_listener(s, port, l->address, l->allow_remote, "listen", c);
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

static int
apply(struct settings *s, const Tributary__Settings *m,
    const struct complaint *c)
{
	char why[512];

	if (apply_listeners(s, m, c) != 0)
		return -1;
	if (m->limits != NULL && apply_limits(&s->limits, m->limits, c) != 0)
		return -1;
	if (m->trace_dir != NULL &&
	    settings_set_trace_dir(s, m->trace_dir, why, sizeof(why)) != 0)
		return complain(c, "trace_dir", "%s", why);
	if (m->log_level != NULL &&
	    settings_set_log_level(s, m->log_level, why, sizeof(why)) != 0)
		return complain(c, "log_level", "%s", why);
	if (m->socket_permissions != NULL &&
	    settings_set_socket_permissions(s, m->socket_permissions, why,
		sizeof(why)) != 0)
		return complain(c, "socket_permissions", "%s", why);
	if (m->has_enable_relay_endpoint)
		s->enable_relay_endpoint = m->enable_relay_endpoint;
	if (m->has_overwrite_unwritten)
		s->overwrite_unwritten = m->overwrite_unwritten;
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

/* All of a file, at most FILE_MAX bytes; NULL with the sentence in err. */
static char *
read_whole(const char *path, size_t *len, char *err, size_t err_size)
{
	char *text = NULL;
	FILE *f;

	if ((f = fopen(path, "re")) == NULL)
		goto fail;
	if ((text = malloc(FILE_MAX + 1)) == NULL)
		goto fail;
	*len = fread(text, 1, FILE_MAX + 1, f);
	if (ferror(f))
		goto fail;
	fclose(f);
	if (*len > FILE_MAX) {
		free(text);
		snprintf(err, err_size, "%s: error: a settings file is at most "
		    "%u bytes long", path, FILE_MAX);
		return NULL;
	}
	return text;

fail:
	snprintf(err, err_size, "%s: error: cannot read it: %s", path,
	    strerror(errno));
	free(text);
	if (f != NULL)
		fclose(f);
	return NULL;
}

int
settings_load(struct settings *s, const char *path, char *err, size_t err_size)
{
	char *text;
	size_t len;
	int rc;

	if ((text = read_whole(path, &len, err, err_size)) == NULL)
		return -1;
	rc = settings_parse(s, text, len, path, err, err_size);
	free(text);
	return rc;
}
