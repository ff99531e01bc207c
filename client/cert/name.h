/*
 * name: checks names that are to go into a certificate.  Pure.
 */
#ifndef CLIENT_CERT_NAME_H
#define CLIENT_CERT_NAME_H

#include <stddef.h>

#include "transport/base/compiler.h"

/* X.509's bound for a common name and an organization, in bytes here. */
#define CERT_NAME_MAX 64
/* Longest alternative name: a host name's bound, and enough for a URI. */
#define CERT_ALTERNATIVE_MAX 253

enum cert_name_kind {
	CERT_NAME_DNS, /* a host name; a first label "*" stands for any */
	CERT_NAME_IP,
	CERT_NAME_URI,
	CERT_NAME_EMAIL,
	CERT_NAME_NONE, /* nothing that a certificate could hold */
};

/*
 * Whether a device or a person may be called so: it becomes a common name and
 * a folder.  UTF-8 without control characters and slashes, 1 to CERT_NAME_MAX
 * bytes, no dot or dash in front.  -1 with a sentence.
 */
int cert_name_check(const char *name, char *err, size_t err_size) MUST_CHECK;

/* Checks an organization, where slashes and dots are allowed. */
int cert_name_check_text(const char *what, const char *text, char *err,
    size_t err_size) MUST_CHECK;

/* Returns the kind of alternative name that text is. */
enum cert_name_kind cert_name_kind(const char *text);

/*
 * Whether an alternative name may be asked for: it has a kind and does not
 * give a role, which is never a matter of names.  -1 with a sentence.
 */
int cert_name_check_alternative(const char *text, char *err, size_t err_size)
    MUST_CHECK;

#endif /* CLIENT_CERT_NAME_H */
