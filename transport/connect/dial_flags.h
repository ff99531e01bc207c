/*
 * dial_flags: the flags that say how an address is reached (--tls-dir and its
 * like), for all our programs.  Pure.
 */
#ifndef TRANSPORT_CONNECT_DIAL_FLAGS_H
#define TRANSPORT_CONNECT_DIAL_FLAGS_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

struct addr;
struct dial_options;

/* What getopt_long() returns for them; nothing else of a program's is. */
enum dial_flag {
	DIAL_FLAG_TLS_DIR = 0x7d00,
	DIAL_FLAG_TLS_NAME,
	DIAL_FLAG_TLS12,
	DIAL_FLAG_SSH_COMMAND,
};

/* Lines of a table of long options. */
#define DIAL_FLAGS_LONG                                                       \
	{ "tls-dir", required_argument, NULL, DIAL_FLAG_TLS_DIR },            \
	{ "tls-name", required_argument, NULL, DIAL_FLAG_TLS_NAME },          \
	{ "allow-tls-1.2", no_argument, NULL, DIAL_FLAG_TLS12 },              \
	{ "ssh-command", required_argument, NULL, DIAL_FLAG_SSH_COMMAND }

/* Takes a flag, whose value is borrowed; false: it is none of these. */
bool dial_flags_take(struct dial_options *how, int flag, const char *value);

/*
 * Whether the flags that were given mean something for the address.  A flag
 * for TLS with an address without would leave somebody believe in TLS.  -1
 * with a sentence.
 */
int dial_flags_check(const struct dial_options *how, const struct addr *a,
    char *err, size_t err_size) MUST_CHECK;

#endif /* TRANSPORT_CONNECT_DIAL_FLAGS_H */
