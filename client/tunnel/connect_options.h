/*
 * connect_options: the command line of `tributary connect`, and what a forced
 * command makes of $SSH_ORIGINAL_COMMAND.  Pure.
 */
#ifndef CLIENT_TUNNEL_CONNECT_OPTIONS_H
#define CLIENT_TUNNEL_CONNECT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"
#include "transport/base/flags.h"

enum connect_service {
	CONNECT_PRODUCER,
	CONNECT_CONSUMER,
	CONNECT_RELAY,
};

/* Texts borrow from argv. */
struct connect_options {
	enum connect_service service;
	const char *socket; /* NULL: the service's default */
	bool accept;
	const char *accept_path; /* NULL: the producers' default */
	const char *from_ssh_command; /* the words that may be asked for */
};

extern const struct flags connect_options_flags;

/*
 * argv[0] is "connect".  original is $SSH_ORIGINAL_COMMAND or NULL, and plays a
 * part with --from-ssh-command only.  Reorders argv.
 */
enum flags_verdict connect_options_parse(struct connect_options *o,
    int argc, char **argv, const char *original, char *err, size_t err_size)
    MUST_CHECK;

#endif /* CLIENT_TUNNEL_CONNECT_OPTIONS_H */
