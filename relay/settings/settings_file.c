/*
 * The settings file: from protobuf text to struct relay_settings.
 */
#include <stdio.h>
#include <string.h>

#include "protos/relay_settings.pb-c.h"
#include "protos/text_settings.h"
#include "relay/settings/settings.h"

/* Largest number of kilobytes: the number of bytes is well within 63 bits. */
#define KB_MOST (1ull << 50)

/* Sets a string, unless it is left out. */
static int
take_string(char **slot, const char *value, const char *what,
    const struct text_settings *c)
{
	char why[256];

	if (value == NULL ||
	    relay_settings_set_string(slot, value, what, why,
		sizeof(why)) == 0)
		return 0;
	snprintf(c->err, c->err_size, "%s: error: %s", c->name, why);
	return -1;
}

static int
take_bytes(uint64_t *slot, bool has, uint64_t kb, const char *what,
    const struct text_settings *c)
{
	if (!has)
		return 0;
	if (kb > KB_MOST)
		return text_settings_complain(c, what,
		    "%llu KiB is more than any machine "
		    "has", (unsigned long long)kb);
	*slot = kb * 1024;
	return 0;
}

/* ---- limits ---- */

#define LIMIT(member) TEXT_LIMIT(struct relay_limits, member, 0)

static const struct text_setting limits[] = {
	LIMIT(max_producers),
	LIMIT(max_data_sources_per_producer),
	LIMIT(max_shm_kb),
	LIMIT(max_send_queue_kb),
	LIMIT(max_name_bytes),
};

static const struct text_setting plain[] = {
	TEXT_SETTING(struct relay_settings, allow_remote_producers),
	TEXT_SETTING(struct relay_settings, move_after_ms),
	TEXT_SETTING(struct relay_settings, dialled),
	TEXT_SETTING(struct relay_settings, dialled_idle_ms),
	TEXT_SETTING(struct relay_settings, min_retry_ms),
	TEXT_SETTING(struct relay_settings, max_retry_ms),
	TEXT_SETTING(struct relay_settings, clock_sync_ms),
};

#define N(table) (sizeof(table) / sizeof((table)[0]))

static int
apply_limits(struct relay_limits *to, const Tributary__RelayLimits *from,
    const struct text_settings *c)
{
	if (text_settings_copy(c, "limits.", limits, N(limits), &from->base,
		to) != 0)
		return -1;
	if (to->max_shm_kb > 32768)
		return text_settings_complain(c, "limits.max_shm_kb",
		    "%u is over the most "
		    "that Perfetto's producers know, 32768",
		    to->max_shm_kb);
	if (!from->has_max_total_shm_kb)
		return 0;
	if (from->max_total_shm_kb == 0 || from->max_total_shm_kb > KB_MOST)
		return text_settings_complain(c, "limits.max_total_shm_kb",
		    "%llu is not accepted",
		    (unsigned long long)from->max_total_shm_kb);
	to->max_total_shm_kb = from->max_total_shm_kb;
	return 0;
}

/* ---- choices ---- */

static void
apply_drop(struct relay_settings *s, Tributary__RelaySettings__Drop from)
{
	switch (from) {
	case TRIBUTARY__RELAY_SETTINGS__DROP__NEWEST:
		s->drop = RELAY_DROP_NEWEST;
		break;
	case TRIBUTARY__RELAY_SETTINGS__DROP__OLDEST:
		s->drop = RELAY_DROP_OLDEST;
		break;
	case TRIBUTARY__RELAY_SETTINGS__DROP__DROP_UNSPECIFIED:
	default: /* protobuf-c adds an enumerator of its own */
		break;
	}
}

static void
apply_protocol(struct relay_settings *s,
    Tributary__RelaySettings__Protocol from)
{
	switch (from) {
	case TRIBUTARY__RELAY_SETTINGS__PROTOCOL__AUTO:
		s->protocol = RELAY_AUTO;
		break;
	case TRIBUTARY__RELAY_SETTINGS__PROTOCOL__LINK:
		s->protocol = RELAY_LINK_ONLY;
		break;
	case TRIBUTARY__RELAY_SETTINGS__PROTOCOL__CLASSIC:
		s->protocol = RELAY_CLASSIC_ONLY;
		break;
	case TRIBUTARY__RELAY_SETTINGS__PROTOCOL__PROTOCOL_UNSPECIFIED:
	default: /* protobuf-c adds an enumerator of its own */
		break;
	}
}

static void
apply_fsync(struct relay_settings *s, Tributary__RelaySpool__Fsync from)
{
	switch (from) {
	case TRIBUTARY__RELAY_SPOOL__FSYNC__NEVER:
		s->fsync = RELAY_FSYNC_NEVER;
		break;
	case TRIBUTARY__RELAY_SPOOL__FSYNC__PERIODIC:
		s->fsync = RELAY_FSYNC_PERIODIC;
		break;
	case TRIBUTARY__RELAY_SPOOL__FSYNC__ALWAYS:
		s->fsync = RELAY_FSYNC_ALWAYS;
		break;
	case TRIBUTARY__RELAY_SPOOL__FSYNC__FSYNC_UNSPECIFIED:
	default: /* protobuf-c adds an enumerator of its own */
		break;
	}
}

/* ---- all of it ---- */

static int
apply_collectors(struct relay_settings *s, const Tributary__RelaySettings *m,
    const struct text_settings *c)
{
	char why[RELAY_SETTINGS_ERROR_SIZE];
	size_t i;

	if (m->n_to > 0)
		relay_settings_drop_collectors(s);
	for (i = 0; i < m->n_to; i++)
		if (relay_settings_add_collectors(s, m->to[i], why,
			sizeof(why)) != 0)
			return text_settings_complain(c, "to", "%s", why);
	return 0;
}

static int
apply_sockets(struct relay_settings *s, const Tributary__RelaySettings *m,
    const struct text_settings *c)
{
	char why[RELAY_SETTINGS_ERROR_SIZE];
	size_t i;

	if (m->n_producer_socket > 0)
		relay_settings_drop_sockets(s);
	for (i = 0; i < m->n_producer_socket; i++)
		if (relay_settings_add_producer_socket(s,
			m->producer_socket[i], why, sizeof(why)) != 0)
			return text_settings_complain(c, "producer_socket",
			    "%s", why);
	if (m->socket_permissions != NULL &&
	    relay_settings_set_socket_permissions(s, m->socket_permissions,
		why, sizeof(why)) != 0)
		return text_settings_complain(c, "socket_permissions",
		    "%s", why);
	return 0;
}

static int
apply_way(struct relay_settings *s, const Tributary__RelaySettings *m,
    const struct text_settings *c)
{
	if (apply_collectors(s, m, c) != 0 ||
	    take_string(&s->ssh_command, m->ssh_command, "ssh_command",
		c) != 0)
		return -1;
	if (m->tls != NULL) {
		if (take_string(&s->tls_dir, m->tls->dir, "tls.dir", c) != 0 ||
		    take_string(&s->tls_name, m->tls->name, "tls.name",
			c) != 0)
			return -1;
		if (m->tls->has_sni_machine)
			s->sni_machine = m->tls->sni_machine;
		if (m->tls->has_allow_tls_1_2)
			s->allow_tls12 = m->tls->allow_tls_1_2;
	}
	if (m->has_protocol)
		apply_protocol(s, m->protocol);
	if (m->has_compression_level)
		s->compression_level = m->compression_level > INT8_MAX ?
		    INT8_MAX : (int)m->compression_level;
	return 0;
}

static int
apply_storage(struct relay_settings *s, const Tributary__RelaySettings *m,
    const struct text_settings *c)
{
	if (take_string(&s->state_dir, m->state_dir, "state_dir", c) != 0 ||
	    take_bytes(&s->memory_bytes, m->has_memory_kb, m->memory_kb,
		"memory_kb", c) != 0)
		return -1;
	if (m->has_drop)
		apply_drop(s, m->drop);
	if (m->spool == NULL)
		return 0;
	if (m->spool->has_size_kb && m->spool->dir == NULL)
		return text_settings_complain(c, "spool.size_kb",
		    "there is no spool without "
		    "a folder: set spool { dir: \"...\" }, too");
	if (take_string(&s->spool_dir, m->spool->dir, "spool.dir", c) != 0 ||
	    take_bytes(&s->spool_bytes, m->spool->has_size_kb,
		m->spool->size_kb, "spool.size_kb", c) != 0)
		return -1;
	if (m->spool->has_fsync)
		apply_fsync(s, m->spool->fsync);
	return 0;
}

static int
apply(const struct text_settings *c, const ProtobufCMessage *message,
    void *settings)
{
	const Tributary__RelaySettings *m =
	    (const Tributary__RelaySettings *)message;
	struct relay_settings *s = settings;
	char why[512];

	if (apply_sockets(s, m, c) != 0 || apply_way(s, m, c) != 0 ||
	    apply_storage(s, m, c) != 0 ||
	    text_settings_copy(c, "", plain, N(plain), &m->base, s) != 0)
		return -1;
	if (take_string(&s->machine_name, m->machine_name, "machine_name",
		c) != 0 ||
	    take_string(&s->machine_id, m->machine_id, "machine_id", c) != 0)
		return -1;
	if (m->limits != NULL && apply_limits(&s->limits, m->limits, c) != 0)
		return -1;
	if (m->log_level != NULL &&
	    relay_settings_set_log_level(s, m->log_level, why,
		sizeof(why)) != 0)
		return text_settings_complain(c, "log_level", "%s", why);
	return 0;
}

int
relay_settings_read(struct relay_settings *s, const char *file, char *err,
    size_t err_size)
{
	static const struct text_settings_kind kind = {
		&tributary__relay_settings__descriptor, apply
	};
	const struct text_settings c = { file, err, err_size };

	return text_settings_read(&c, &kind, s);
}
