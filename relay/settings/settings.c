#include "relay/settings/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/base/failure.h"
#include "transport/base/log.h"
#include "transport/clock/this_machine.h"
#include "transport/connect/placement.h"
#include "transport/connect/socket_owner.h"
#include "transport/socket/addr.h"

#define STATE_DIR   "/run/tributary-relay"
#define LAST_SOCKET "/tmp/perfetto-producer"

#define MEMORY_BYTES   (8u << 20)
#define SPOOL_BYTES    (256ull << 20)
#define HOUR_MS        3600000u

/* ---- defaults ---- */

/* The first of a list of folders with colons, as systemd passes them. */
static char *
first_folder(const char *list)
{
	return strndup(list, strcspn(list, ":"));
}

static char *
default_state_dir(void)
{
	const char *given = getenv("RUNTIME_DIRECTORY");
	const char *parent = getenv("XDG_RUNTIME_DIR");
	char *path;

	if (given != NULL && *given == '/')
		return first_folder(given);
	if (geteuid() == 0 || access(STATE_DIR, W_OK | X_OK) == 0)
		return strdup(STATE_DIR);
	if (parent == NULL || *parent != '/' ||
	    access(parent, W_OK | X_OK) != 0)
		parent = "/tmp";
	if (asprintf(&path, "%s/tributary-relay-%lu", parent,
		(unsigned long)geteuid()) < 0)
		return NULL;
	return path;
}

static char *
machine_id(void)
{
	char id[THIS_MACHINE_CLOCKS_MAX];

	this_machine_clocks(id, sizeof(id));
	return strdup(id);
}

static char *
host_name(void)
{
	char name[256];

	this_machine_name(name, sizeof(name));
	return strdup(name);
}

static void
set_limits(struct relay_limits *l)
{
	*l = (struct relay_limits){
		.max_producers = 1024,
		.max_data_sources_per_producer = 4096,
		.max_shm_kb = 32768,
		.max_total_shm_kb = 262144,
		.max_send_queue_kb = 4096,
		.max_name_bytes = 1024,
	};
}

/* ---- lists ---- */

static void
drop_texts(char ***texts, size_t *n)
{
	size_t i;

	for (i = 0; i < *n; i++)
		free((*texts)[i]);
	free(*texts);
	*texts = NULL;
	*n = 0;
}

static int
add_text(char ***texts, size_t *n, const char *text, char *err,
    size_t err_size)
{
	char **grown = reallocarray(*texts, *n + 1, sizeof(*grown));

	if (grown != NULL)
		*texts = grown;
	if (grown == NULL || (grown[*n] = strdup(text)) == NULL)
		return FAILURE(err, err_size, "no memory");
	(*n)++;
	return 0;
}

/* Adds the items of a list with commas; whose: as in "the collector". */
static int
add_list(struct relay_settings *s, const char *list, const char *whose,
    int (*add)(struct relay_settings *s, const char *item, char *err,
	size_t err_size), char *err, size_t err_size)
{
	char item[ADDR_TEXT_MAX];
	bool any = false;
	int got;

	while ((got = addr_list_next(&list, item, sizeof(item))) == 1) {
		if (add(s, item, err, err_size) != 0)
			return -1;
		any = true;
	}
	if (got < 0)
		return FAILURE(err, err_size, "an address of %s is longer than "
		    "%d bytes", whose, ADDR_TEXT_MAX - 1);
	if (!any)
		return FAILURE(err, err_size, "the address of %s is empty; "
		    "leave it out for the default", whose);
	return 0;
}

static int
add_collector(struct relay_settings *s, const char *address, char *err,
    size_t err_size)
{
	if (s->n_to == PLACEMENT_MAX)
		return FAILURE(err, err_size, "there are more than the %u "
		    "collectors that there may be", PLACEMENT_MAX);
	return add_text(&s->to, &s->n_to, address, err, err_size);
}

int
relay_settings_add_collectors(struct relay_settings *s, const char *list,
    char *err, size_t err_size)
{
	return add_list(s, list, "the collector", add_collector, err, err_size);
}

void
relay_settings_drop_collectors(struct relay_settings *s)
{
	drop_texts(&s->to, &s->n_to);
}

/* Sockets from a list with commas replace those that were there. */
static int
set_producer_sockets(struct relay_settings *s, const char *list, char *err,
    size_t err_size)
{
	relay_settings_drop_sockets(s);
	return add_list(s, list, "producers",
	    relay_settings_add_producer_socket, err, err_size);
}

/*
 * The default sockets where the variable is wrong, too:
 * relay_settings_from_env() says what is wrong with it.
 */
static int
set_default_sockets(struct relay_settings *s, char *err, size_t err_size)
{
	if (set_producer_sockets(s, addr_default_producer(), err, err_size) ==
	    0)
		return 0;
	return set_producer_sockets(s, LAST_SOCKET, err, err_size);
}

int
relay_settings_init(struct relay_settings *s)
{
	char err[RELAY_SETTINGS_ERROR_SIZE];

	memset(s, 0, sizeof(*s));
	s->socket_mode = -1;
	s->move_after_ms = 30000;
	s->dialled_idle_ms = HOUR_MS;
	s->memory_bytes = MEMORY_BYTES;
	s->spool_bytes = SPOOL_BYTES;
	s->fsync = RELAY_FSYNC_PERIODIC;
	s->drop = RELAY_DROP_OLDEST;
	s->min_retry_ms = 200;
	s->max_retry_ms = 15000;
	s->clock_sync_ms = 30000;
	s->protocol = RELAY_AUTO;
	s->log_level = LOG_LEVEL_INFO;
	set_limits(&s->limits);
	s->machine_id = machine_id();
	s->machine_name = host_name();
	s->state_dir = default_state_dir();
	if (s->machine_id == NULL || s->machine_name == NULL ||
	    s->state_dir == NULL ||
	    set_default_sockets(s, err, sizeof(err)) != 0) {
		relay_settings_done(s);
		return -1;
	}
	s->named_sockets = false;
	return 0;
}

void
relay_settings_drop_sockets(struct relay_settings *s)
{
	drop_texts(&s->producer_sockets, &s->n_producer_sockets);
}

void
relay_settings_done(struct relay_settings *s)
{
	relay_settings_drop_sockets(s);
	relay_settings_drop_collectors(s);
	free(s->socket_group);
	free(s->machine_name);
	free(s->machine_id);
	free(s->tls_dir);
	free(s->tls_name);
	free(s->ssh_command);
	free(s->state_dir);
	free(s->spool_dir);
	memset(s, 0, sizeof(*s));
}

/* ---- single ones ---- */

int
relay_settings_set_string(char **slot, const char *value, const char *what,
    char *err, size_t err_size)
{
	char *copy;

	if (*value == '\0')
		return FAILURE(err, err_size, "%s: it is empty; leave it out "
		    "for the default", what);
	if ((copy = strdup(value)) == NULL)
		return FAILURE(err, err_size, "no memory");
	free(*slot);
	*slot = copy;
	return 0;
}

int
relay_settings_add_producer_socket(struct relay_settings *s,
    const char *address, char *err, size_t err_size)
{
	struct addr a;
	size_t i;

	if (addr_parse(&a, address, err, err_size) != 0)
		return -1;
	if (a.kind == ADDR_SSH || a.kind == ADDR_TLS)
		return FAILURE(err, err_size, "%s: local producers connect to "
		    "a UNIX socket, or to a plain port; %s is for `to`, the "
		    "way to the collector", a.text,
		    a.kind == ADDR_SSH ? "ssh://" : "tls://");
	for (i = 0; i < s->n_producer_sockets; i++)
		if (strcmp(s->producer_sockets[i], address) == 0)
			return 0;
	if (s->n_producer_sockets == RELAY_SOCKETS_MAX)
		return FAILURE(err, err_size, "more than %u sockets for "
		    "producers", RELAY_SOCKETS_MAX);
	if (add_text(&s->producer_sockets, &s->n_producer_sockets, address,
		err, err_size) != 0)
		return -1;
	s->named_sockets = true;
	return 0;
}

int
relay_settings_set_socket_permissions(struct relay_settings *s,
    const char *text, char *err, size_t err_size)
{
	char group[SOCKET_OWNER_GROUP_MAX], shown[128];
	const char *rest = text;
	unsigned mode;

	if (socket_owner_take(&rest, group, &mode) && *rest == '\0' &&
	    rest[-1] != ':') {
		s->socket_mode = (int)mode;
		return relay_settings_set_string(&s->socket_group, group,
		    "socket_permissions", err, err_size);
	}
	log_escape(shown, sizeof(shown), text, strlen(text));
	return FAILURE(err, err_size, "\"%s\" are no socket permissions: write "
	    "group:mode with a mode of four octal digits, as in traced:0660",
	    shown);
}

int
relay_settings_set_log_level(struct relay_settings *s, const char *word,
    char *err, size_t err_size)
{
	enum log_level level;
	char shown[64];

	if (log_level_parse(word, &level) == 0) {
		s->log_level = (int)level;
		return 0;
	}
	log_escape(shown, sizeof(shown), word, strlen(word));
	return FAILURE(err, err_size, "\"%s\" is no log level: it is one of "
	    "error, warn, info, debug", shown);
}

/* ---- the environment ---- */

static const char *
variable(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && *value != '\0' ? value : NULL;
}

int
relay_settings_from_env(struct relay_settings *s, char *err, size_t err_size)
{
	char why[RELAY_SETTINGS_ERROR_SIZE];
	const char *value;

	if ((value = variable("PERFETTO_RELAY_SOCK_NAME")) != NULL) {
		relay_settings_drop_collectors(s);
		if (relay_settings_add_collectors(s, value, why,
			sizeof(why)) != 0)
			return FAILURE(err, err_size,
			    "PERFETTO_RELAY_SOCK_NAME: %s", why);
	}
	if ((value = variable("PERFETTO_MACHINE_NAME")) != NULL &&
	    relay_settings_set_string(&s->machine_name, value, "it", err,
		err_size) != 0)
		return -1;
	if ((value = variable("PERFETTO_PRODUCER_SOCK_NAME")) != NULL &&
	    set_producer_sockets(s, value, why, sizeof(why)) != 0)
		return FAILURE(err, err_size, "PERFETTO_PRODUCER_SOCK_NAME: %s",
		    why);
	return 0;
}
