/*
 * options: the command line of `tributary cert`.  Reads no file and
 * prints nothing.
 */
#ifndef CLIENT_CERT_OPTIONS_H
#define CLIENT_CERT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/cert/index.h"
#include "client/cert/x509_make.h"
#include "transport/base/compiler.h"
#include "transport/base/flags.h"

/* Most names for one certificate on one command line. */
#define CERT_OPTIONS_MAX_NAMES 64

enum cert_action {
	CERT_INIT,
	CERT_ISSUE,
	CERT_SHOW,
	CERT_RENEW,
	CERT_REVOKE,
};

/* Texts borrow from argv. */
struct cert_options {
	enum cert_action action;
	const char *dir;  /* show: or a file */
	const char *name; /* issue, revoke (or a serial number); renew: or NULL */
	const char *names[CERT_OPTIONS_MAX_NAMES]; /* --name, --san */
	size_t n_names;
	size_t n_hosts; /* of them, from --name */
	const char *organization;
	const char *out;
	uint32_t role;
	unsigned days; /* 0: not said */
	enum cert_key_kind key;
	bool key_given;
	bool keep_key;
	bool revoke_old;
	bool ca;
	bool json;
	enum cert_reason reason;
};

extern const struct flags cert_options_flags;

/* argv[0] is "cert".  Reorders argv.  o is set with FLAGS_RUN only. */
enum flags_verdict cert_options_parse(struct cert_options *o, int argc,
    char **argv, char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_CERT_OPTIONS_H */
