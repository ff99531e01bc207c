/*
 * revoke: revokes certificates of a CA.
 */
#ifndef CLIENT_CERT_REVOKE_H
#define CLIENT_CERT_REVOKE_H

#include <stddef.h>
#include <time.h>

#include "client/cert/index.h"
#include "transport/base/compiler.h"

struct cert_revocation {
	const char *what; /* a name, or a serial number */
	enum cert_reason reason;
	time_t now;
};

struct cert_revoked {
	struct cert_entry entry; /* the last one revoked, in its new state */
	size_t n;                /* certificates that were not revoked before */
};

/*
 * Revokes by name (every certificate of that name that has not expired, those
 * that were replaced included), else by serial number, and writes crl.pem
 * anew, also when nothing changed.  -1 with a sentence.
 */
int cert_revoke(const char *dir, const struct cert_revocation *order,
    struct cert_revoked *done, char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_CERT_REVOKE_H */
