/*
 * options: the command line of tributaryd.
 */
#ifndef SERVICE_PROCESS_OPTIONS_H
#define SERVICE_PROCESS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"
#include "transport/base/flags.h"

struct activation;
struct settings;

/* Flags of one command line that name a socket. */
#define OPTIONS_SOCKETS_MAX 128u

enum options_socket {
	OPTIONS_PRODUCER,
	OPTIONS_CONSUMER,
	OPTIONS_RELAY_ON,
	OPTIONS_ALLOW_REMOTE,
	OPTIONS_ALLOW_PLAIN_CONSUMER,
};

/* Strings are borrowed from argv. */
struct options {
	bool help;
	bool version;
	bool check_config;
	bool background;
	bool enable_relay_endpoint;
	bool no_lossless;
	bool seccomp;
	const char *io_threads; /* NULL: not given */
	const char *config;             /* NULL: not given, as all below */
	const char *trace_dir;
	const char *log_level;
	const char *socket_permissions;
	const char *tls_dir;
	const char *user;
	struct {
		enum options_socket what;
		const char *address;
	} sockets[OPTIONS_SOCKETS_MAX];
	size_t n_sockets;
};

extern const struct flags options_flags;

/*
 * FLAGS_BAD with a sentence in err, which suggests the nearest flag for an
 * unknown one.  Values are checked by options_settings().
 */
enum flags_verdict options_parse(struct options *o, int argc, char **argv,
    char *err, size_t err_size) MUST_CHECK;

/*
 * The settings that the file, the environment and the flags make together, the
 * default sockets included (not for a port that has an activated socket).  s is
 * initialised here; on failure (-1, sentence in err) it needs no freeing.
 */
int options_settings(const struct options *o, const struct activation *a,
    struct settings *s, char *err, size_t err_size) MUST_CHECK;

#endif /* SERVICE_PROCESS_OPTIONS_H */
