/*
 * connect_options: the command line of `tributary connect`, and what a forced
 * command makes of $SSH_ORIGINAL_COMMAND.  Pure.
 */
#ifndef CLIENT_TUNNEL_CONNECT_OPTIONS_H
#define CLIENT_TUNNEL_CONNECT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

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
};

enum connect_options_verdict {
	CONNECT_OPTIONS_RUN,
	CONNECT_OPTIONS_HELP, /* asked for help; *o is not set */
	CONNECT_OPTIONS_BAD,  /* err holds a sentence */
};

/*
 * argv[0] is "connect".  original is $SSH_ORIGINAL_COMMAND or NULL, and plays a
 * part with --from-ssh-command only.  Reorders argv.
 */
enum connect_options_verdict connect_options_parse(struct connect_options *o,
    int argc, char **argv, const char *original, char *err, size_t err_size)
    MUST_CHECK;

/* The text of --help. */
const char *connect_options_help(void);

#endif /* CLIENT_TUNNEL_CONNECT_OPTIONS_H */
