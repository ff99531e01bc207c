/*
 * settings: the settings of a relay by its file, the environment and its flags,
 * checked and with defaults filled in (protos/relay_settings.proto).
 */
#ifndef RELAY_SETTINGS_SETTINGS_H
#define RELAY_SETTINGS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/settings/policy.h"
#include "transport/base/compiler.h"

struct dial_options;

enum relay_protocol { RELAY_AUTO, RELAY_LINK_ONLY, RELAY_CLASSIC_ONLY };

struct relay_limits {
	uint32_t max_producers;
	uint32_t max_data_sources_per_producer;
	uint32_t max_shm_kb;
	uint64_t max_total_shm_kb;
	uint32_t max_send_queue_kb;
	uint32_t max_name_bytes;
};

/* Room for any message of this module. */
#define RELAY_SETTINGS_ERROR_SIZE 1536
#define RELAY_SOCKETS_MAX 16u

/* Strings are owned; NULL where left out, unless said otherwise. */
struct relay_settings {
	char **to;                 /* one that lives is chosen */
	size_t n_to;
	uint64_t move_after_ms;
	bool dialled;              /* a collector connects to us; no `to` */
	uint64_t dialled_idle_ms;
	char **producer_sockets;
	size_t n_producer_sockets; /* at least 1 */
	bool named_sockets;        /* set by the operator: not the default */
	bool allow_remote_producers;
	char *socket_group;        /* NULL: left as the kernel sets it */
	int socket_mode;           /* -1: as the umask leaves it */
	char *machine_name;        /* never NULL */
	char *machine_id;          /* never NULL */
	char *tls_dir;
	char *tls_name;
	bool sni_machine;
	bool allow_tls12;
	char *ssh_command;
	char *state_dir;           /* never NULL */
	uint64_t memory_bytes;
	char *spool_dir;
	uint64_t spool_bytes;
	enum relay_fsync fsync;
	enum relay_drop drop;
	int compression_level;     /* 0: none */
	uint64_t min_retry_ms;
	uint64_t max_retry_ms;
	uint64_t clock_sync_ms;
	enum relay_protocol protocol;
	struct relay_limits limits;
	int log_level;             /* enum log_level */
};

/* All defaults, for tests as well.  -1: no memory. */
int relay_settings_init(struct relay_settings *s) MUST_CHECK;
void relay_settings_done(struct relay_settings *s);

/*
 * Reads a file (protobuf text) over what is there.  -1 with the sentence, with
 * file, line and column, in err.
 */
int relay_settings_read(struct relay_settings *s, const char *file, char *err,
    size_t err_size) MUST_CHECK;
/* Reads PERFETTO_* and others of the environment. */
int relay_settings_from_env(struct relay_settings *s, char *err,
    size_t err_size) MUST_CHECK;
/*
 * Checks all settings together, after the last was read.  -1 with a sentence in
 * err: one contradicts another, or is impossible.
 */
int relay_settings_check(const struct relay_settings *s, char *err,
    size_t err_size) MUST_CHECK;

/* How the collector is reached; strings are borrowed from s. */
void relay_settings_dial(const struct relay_settings *s,
    struct dial_options *how);

/* ---- single settings, for the file and for flags; -1 with a sentence ---- */

/*
 * Replaces *slot, which is owned, by a copy of value.  what: its name for err
 * ("the state directory"), where value is empty.
 */
int relay_settings_set_string(char **slot, const char *value,
    const char *what, char *err, size_t err_size) MUST_CHECK;
/*
 * Adds collectors from a list with commas.  Those that another source named are
 * dropped by relay_settings_drop_collectors() first.
 */
int relay_settings_add_collectors(struct relay_settings *s, const char *list,
    char *err, size_t err_size) MUST_CHECK;
void relay_settings_drop_collectors(struct relay_settings *s);
/*
 * Adds a socket.  The default is replaced by relay_settings_drop_sockets()
 * first.
 */
int relay_settings_add_producer_socket(struct relay_settings *s,
    const char *address, char *err, size_t err_size) MUST_CHECK;
void relay_settings_drop_sockets(struct relay_settings *s);
/* "group:mode". */
int relay_settings_set_socket_permissions(struct relay_settings *s,
    const char *text, char *err, size_t err_size) MUST_CHECK;
int relay_settings_set_log_level(struct relay_settings *s, const char *word,
    char *err, size_t err_size) MUST_CHECK;

#endif /* RELAY_SETTINGS_SETTINGS_H */
