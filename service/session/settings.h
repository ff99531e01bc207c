/*
 * settings: what the operator set, from the settings file (protos/settings.proto,
 * protobuf text), flags and the PERFETTO_* variables, with every default filled
 * in.  Later sources win.
 */
#ifndef SERVICE_SESSION_SETTINGS_H
#define SERVICE_SESSION_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/compiler.h"
#include "transport/log.h"

enum listen_port { LISTEN_PRODUCER, LISTEN_CONSUMER, LISTEN_RELAY };

struct listen_setting {
	enum listen_port port;
	char *address;
	bool allow_remote;
};

struct limits {
	uint32_t max_sessions;
	uint32_t max_sessions_per_uid;
	uint32_t max_buffers_per_session;
	uint64_t max_total_buffer_kb;
	uint64_t max_trace_duration_ms;
	uint32_t max_producers;
	uint32_t max_data_sources_per_producer;
	uint32_t max_writers_per_producer;
	uint32_t max_name_bytes;
	uint32_t max_connections;
	uint32_t max_consumers_per_uid;
	uint32_t max_send_queue_kb;
	uint32_t max_shm_kb;
};

struct settings {
	struct listen_setting *listen; /* owned */
	size_t n_listen;
	char *trace_dir;          /* NULL: none */
	enum log_level log_level;
	bool enable_relay_endpoint;
	char *socket_permissions; /* NULL: as the umask leaves them */
	bool overwrite_unwritten;
	struct limits limits;
	/* From the environment, not from the file. */
	char *machine_name;       /* PERFETTO_MACHINE_NAME or uname -s */
};

/* Defaults everywhere, no listeners. */
int settings_init(struct settings *s) MUST_CHECK;
void settings_done(struct settings *s);

/*
 * Applies a file over what is there.  -1 with the complete message for people
 * (file, line, column, word; caret line) in err.
 */
int settings_load(struct settings *s, const char *path, char *err,
    size_t err_size) MUST_CHECK;

/* Adds a listener; address may be a comma-separated list. */
int settings_listen(struct settings *s, enum listen_port port,
    const char *address, bool allow_remote) MUST_CHECK;
/* Marks every listener whose address is exactly this as allowed off loopback. */
void settings_allow_remote(struct settings *s, const char *address);
/* Adds the default sockets for the ports that have no listener yet. */
int settings_fill_listeners(struct settings *s) MUST_CHECK;

#endif /* SERVICE_SESSION_SETTINGS_H */
