/*
 * settings: the operator's settings from the settings file
 * (protos/settings.proto, protobuf text), the PERFETTO_* variables and flags,
 * with every default filled in.  In that order: later sources win.
 *
 * Words, numbers and addresses are checked here; whether an address can be
 * listened on shows only when its listener is opened.
 *
 * "-1 with a sentence": the sentence is in err, for which SETTINGS_ERROR_SIZE
 * bytes are enough.
 */
#ifndef SERVICE_SETTINGS_SETTINGS_H
#define SERVICE_SETTINGS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/base/log.h"
#include "transport/connect/socket_owner.h"

enum listen_port { LISTEN_PRODUCER, LISTEN_CONSUMER, LISTEN_RELAY };
/* "producers", "consumers", "relays" */
const char *listen_port_name(enum listen_port port);

/* Listeners of all ports together. */
#define SETTINGS_LISTEN_MAX 64u
#define SETTINGS_RULES_MAX  1024u
#define SETTINGS_IO_THREADS_MAX 64u
/* Most that limits.max_producers may be. */
#define SETTINGS_PRODUCERS_MOST 1000000u
/* Most dials: each is a child process of the collector while it lasts. */
#define SETTINGS_DIALS_MAX  1024u
#define SETTINGS_QUOTAS_MAX 1024u
#define SETTINGS_RECORDINGS_MAX 64u

struct listen_setting {
	enum listen_port port;
	char *address;
	bool allow_remote;
	bool allow_plain_consumer;
	bool forwarded; /* UNIX only: peers come through a tunnel */
};

/* Paths as the operator named them: see struct tls_options for defaults. */
struct tls_setting {
	char *dir; /* NULL: not named; so for all below */
	char *ca;
	char *certificate;
	char *key;
	char *crl;
	bool allow_tls12;
};

/* Roles of a certificate's name, or of a user, a group or both. */
struct rule_setting {
	char *name; /* a pattern; NULL: any; so for all below */
	char *user;
	char *group;
	uint32_t may; /* roles, not widened */
	bool may_claim_machine;
};

struct dial_setting {
	char *address;      /* ssh:// */
	char *command;      /* to run there; NULL: none, sshd listens */
	char *machine_name; /* as set, or the host of the address */
	uint32_t max_retry_ms;
	enum listen_port port; /* LISTEN_PRODUCER or LISTEN_RELAY */
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
	uint32_t max_connections_per_peer;
	uint32_t max_handshakes;
	uint32_t max_handshakes_per_peer;
	uint32_t handshake_timeout_ms;
	uint32_t bind_timeout_ms;
	uint64_t idle_timeout_ms; /* 0: none */
	uint32_t stalled_timeout_ms;
	uint64_t max_connection_memory_kb;
	uint64_t max_connection_memory_per_peer_kb;
	uint64_t max_input_kb_per_s; /* 0: no limit; so for the next */
	uint64_t max_input_kb_per_s_per_peer;
	uint32_t max_data_sources;
	uint32_t max_data_sources_per_peer;
	uint64_t max_buffer_kb_per_consumer;
	uint64_t min_free_memory_kb;
	bool ignore_free_memory;
};

/* Settings of relays that keep one connection (protos/settings.proto, Link). */
struct link_setting {
	uint64_t grace_ms;
	uint64_t end_wait_ms;
	uint64_t window_kb;
	uint64_t max_commands_kb;
	uint32_t max_links;
	uint32_t max_links_per_peer;
	uint32_t max_producers_per_link;
	bool compression;
};

/* Limits of a quota; 0 in any: not limited here. */
struct allowance_setting {
	uint64_t bytes_per_second;
	uint64_t burst; /* bytes; 0: a second's worth */
	uint32_t max_producers;
	uint32_t max_connections;
	uint32_t max_data_sources;
	uint32_t max_sequences;
};

/* Limits of a machine that matches (protos/settings.proto, Quota). */
struct quota_setting {
	char *machine;     /* a pattern; NULL: any; so for certificate */
	char *certificate;
	struct allowance_setting each_machine;
	struct allowance_setting each_producer;
	bool drop; /* data over the rate; else its producers are held back */
	uint32_t guaranteed_percent;
};
/* Percentage of a trace buffer, where no quota says otherwise. */
#define QUOTA_GUARANTEED_PERCENT 50u

struct word_list {
	char **words; /* owned, each too */
	size_t n;
};

/* A session of the daemon's own (protos/settings.proto, Recording). */
struct recording_setting {
	char *name;
	char *config_path; /* of its trace config */
	struct word_list machines; /* patterns; none: as the config says */
	struct word_list triggers; /* of cuts, or of a flight recorder */
	uint64_t every_ms;  /* 0: no cuts by time; so for the next three */
	uint64_t max_bytes; /* of a segment */
	uint64_t keep_bytes;
	uint64_t keep_ms;
	bool by_machine;
	char *file_pattern; /* NULL: the default */
	bool is_flight;
	uint32_t before_ms; /* of a flight recorder */
	uint32_t after_ms;
};

struct settings {
	struct listen_setting *listen; /* owned */
	size_t n_listen;
	char *trace_dir;          /* NULL: none */
	uint32_t trace_file_mode; /* of the files in it */
	enum log_level log_level;
	bool enable_relay_endpoint; /* RelayPort on every producer socket */
	char *socket_permissions; /* NULL: as the umask leaves them */
	bool lossless; /* files: producers wait for a slow disk */
	uint32_t overload_lag_ms; /* overload.h; 0: never */
	struct limits limits;
	struct link_setting link;
	struct tls_setting tls;
	struct rule_setting *rules; /* owned, in their order */
	size_t n_rules;
	uint32_t certificate_default; /* roles */
	bool ignore_certificate_roles;
	struct dial_setting *dials; /* owned */
	size_t n_dials;
	struct quota_setting *quotas; /* owned, in their order */
	size_t n_quotas;
	struct recording_setting *recordings; /* owned, in their order */
	size_t n_recordings;
	char *archive_dir; /* NULL: none, and no recordings */
	char *file; /* whole path of the settings file; NULL: not to be read again */
	char *user; /* NULL: stay */
	bool seccomp;
	uint32_t io_threads;
	/* From the environment, not from the file. */
	char *machine_name;       /* PERFETTO_MACHINE_NAME or uname -s */

	/*
	 * Private to settings: dropped listeners to which the file gave special
	 * permissions.  The same address named again gets them, too.
	 */
	struct listen_setting *permits;
	size_t n_permits;
};

/* Defaults everywhere, no listeners. */
int settings_init(struct settings *s) MUST_CHECK;
void settings_done(struct settings *s);

/* Bytes for any sentence or message in err. */
#define SETTINGS_ERROR_SIZE 1536

/*
 * Applies a file over what is there; its listeners are added.  -1 with the
 * complete message for people (file, line, column, word; caret line) in err; s
 * may then hold part of the file.
 */
int settings_load(struct settings *s, const char *path, char *err,
    size_t err_size) MUST_CHECK;
/* Reads text in memory, which messages call name.  Pure. */
int settings_parse(struct settings *s, const char *text, size_t len,
    const char *name, char *err, size_t err_size) MUST_CHECK;

/*
 * Checks all sources together: listeners at tls:// addresses have certificates,
 * consumers on plain TCP or vsock are permitted, seccomp is not on together
 * with dials.  -1 with a sentence.
 */
int settings_check(const struct settings *s, char *err, size_t err_size)
    MUST_CHECK;

/*
 * PERFETTO_PRODUCER_SOCK_NAME and PERFETTO_CONSUMER_SOCK_NAME, where they are
 * set, replace the listeners of their port.  -1 with a sentence.
 */
int settings_apply_environment(struct settings *s, char *err, size_t err_size)
    MUST_CHECK;

/*
 * Adds a listener; address may be a comma-separated list.  The same address
 * again changes nothing; a producer socket may be a relay socket too, a
 * consumer socket nothing else.  -1 with a sentence.
 */
int settings_listen(struct settings *s, enum listen_port port,
    const char *address, bool allow_remote, char *err, size_t err_size)
    MUST_CHECK;
/* Adds a listener with all its options; l is copied. */
int settings_listen_as(struct settings *s, const struct listen_setting *l,
    char *err, size_t err_size) MUST_CHECK;
/* Forgets every listener of a port. */
void settings_drop_listeners(struct settings *s, enum listen_port port);
/*
 * Marks every listener whose address is exactly this as allowed off loopback.
 * False: there is none.
 */
bool settings_allow_remote(struct settings *s, const char *address) MUST_CHECK;
/* Permits every consumer socket at exactly this address to be plain. */
bool settings_allow_plain_consumer(struct settings *s, const char *address)
    MUST_CHECK;
/*
 * Adds the default sockets of a port where it has no listener yet; relays have
 * none by default.  -1 with a sentence.
 */
int settings_fill_listeners(struct settings *s, enum listen_port port,
    char *err, size_t err_size) MUST_CHECK;

/* Log level by word.  -1 with a sentence. */
int settings_set_log_level(struct settings *s, const char *word, char *err,
    size_t err_size) MUST_CHECK;
/* Copies, after checking the form.  -1 with a sentence. */
int settings_set_socket_permissions(struct settings *s, const char *text,
    char *err, size_t err_size) MUST_CHECK;
/* Copies.  -1 with a sentence. */
int settings_set_trace_dir(struct settings *s, const char *path, char *err,
    size_t err_size) MUST_CHECK;
/* Sets the mode, four octal digits that let the owner write.  -1 as above. */
int settings_set_trace_file_mode(struct settings *s, const char *text,
    char *err, size_t err_size) MUST_CHECK;

/* Copies.  -1 with a sentence. */
int settings_set_tls_dir(struct settings *s, const char *path, char *err,
    size_t err_size) MUST_CHECK;
/* Copies.  Whether there is such a user is not looked up.  -1 with a sentence. */
int settings_set_user(struct settings *s, const char *name, char *err,
    size_t err_size) MUST_CHECK;

/* -1 with a sentence: more than SETTINGS_IO_THREADS_MAX. */
int settings_set_io_threads(struct settings *s, uint64_t n, char *err,
    size_t err_size) MUST_CHECK;

/* Copies r to the end.  -1 with a sentence: r can fit no peer, or too many. */
int settings_add_rule(struct settings *s, const struct rule_setting *r,
    char *err, size_t err_size) MUST_CHECK;
/*
 * Copies d.  Members other than the address that are NULL or 0 get their
 * defaults.  -1 with a sentence: no ssh:// address, or one that is there
 * already, or too many dials.
 */
int settings_add_dial(struct settings *s, const struct dial_setting *d,
    char *err, size_t err_size) MUST_CHECK;

/* "prod_group:prod_mode:cons_group:cons_mode", modes of four octal digits. */
struct socket_permissions {
	char producer_group[SOCKET_OWNER_GROUP_MAX];
	unsigned producer_mode;
	char consumer_group[SOCKET_OWNER_GROUP_MAX];
	unsigned consumer_mode;
};
int socket_permissions_parse(struct socket_permissions *p, const char *text,
    char *err, size_t err_size) MUST_CHECK;

#endif /* SERVICE_SETTINGS_SETTINGS_H */
