/*
 * options: the command line of tributary-relay.
 */
#ifndef RELAY_DAEMON_OPTIONS_H
#define RELAY_DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "relay/settings/settings.h"
#include "transport/base/compiler.h"
#include "transport/connect/placement.h"

enum relay_command {
	RELAY_SERVE,
	RELAY_CHECK,   /* --check-config */
	RELAY_STDIO,   /* --stdio */
	RELAY_STATUS,  /* --status */
	RELAY_METRICS, /* --metrics */
	RELAY_HELP,
	RELAY_VERSION,
};

/* Strings are borrowed from argv; NULL: not given. */
struct relay_options {
	enum relay_command command;
	bool background;
	bool dialled;
	bool json;
	bool sni_machine;
	bool allow_tls12;
	const char *config;
	const char *to[PLACEMENT_MAX];
	size_t n_to;
	const char *move_after;
	const char *tls_dir;
	const char *tls_name;
	const char *ssh_command;
	const char *machine_name;
	const char *state_dir;
	const char *spool_dir;
	const char *spool_size;
	const char *memory;
	const char *compression;
	const char *log_level;
	const char *socket_permissions;
	const char *producer_sockets[RELAY_SOCKETS_MAX];
	size_t n_producer_sockets;
};

struct flags;

extern const struct flags relay_options_flags;

/*
 * -1 with a sentence, which suggests the nearest flag for an unknown one.
 * Values are checked by relay_options_settings().  Changes argv.
 */
int relay_options_parse(struct relay_options *o, int argc, char **argv,
    char *err, size_t err_size) MUST_CHECK;

/*
 * The settings that the file, the environment and the flags make together; for
 * RELAY_SERVE and RELAY_CHECK as a whole (relay_settings_check()).  s is
 * initialised here; on failure (-1, message in err) nothing of it remains.
 */
int relay_options_settings(const struct relay_options *o,
    struct relay_settings *s, char *err, size_t err_size) MUST_CHECK;

#endif /* RELAY_DAEMON_OPTIONS_H */
