/*
 * dial_flags: the flags that say how an address is reached (--tls-dir and its
 * like), for all our programs.  Pure.
 */
#ifndef TRANSPORT_CONNECT_DIAL_FLAGS_H
#define TRANSPORT_CONNECT_DIAL_FLAGS_H

#include <stddef.h>

#include "transport/base/compiler.h"
#include "transport/base/flags.h"

struct addr;
struct dial_options;

/*
 * Lines of a table of flags; base: the offset of a struct dial_options.  Users
 * include transport/connect/dial.h.
 */
#define DIAL_FLAGS(base)                                                      \
	{ "tls-dir", FLAG_TEXT,                                               \
	    .at = (base) + offsetof(struct dial_options, tls_dir) },          \
	{ "tls-name", FLAG_TEXT,                                              \
	    .at = (base) + offsetof(struct dial_options, tls_name) },         \
	{ "sni-machine", FLAG_BOOL,                                           \
	    .at = (base) + offsetof(struct dial_options, sni_machine) },      \
	{ "allow-tls-1.2", FLAG_BOOL,                                         \
	    .at = (base) + offsetof(struct dial_options, allow_tls12) },      \
	{ "ssh-command", FLAG_TEXT,                                           \
	    .at = (base) + offsetof(struct dial_options, ssh_command) }

/*
 * Refuses flags that have no effect on the address: with a flag for TLS and an
 * address without TLS a user would believe in TLS; and a machine's name that
 * cannot be part of a server name.  0, or -1 with a sentence.
 */
int dial_flags_check(const struct dial_options *how, const struct addr *a,
    char *err, size_t err_size) MUST_CHECK;

#endif /* TRANSPORT_CONNECT_DIAL_FLAGS_H */
