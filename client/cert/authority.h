/*
 * authority: makes a CA, and issues and renews certificates for the collector,
 * devices and people.
 *
 * Works on the folder of a CA (client/cert/store.h).  Each call does all of
 * its work or, with a sentence in err, none of it, unless the sentence names a
 * file that could not be put in place (client/cert/atomic_files.h).  Prints
 * nothing.
 */
#ifndef CLIENT_CERT_AUTHORITY_H
#define CLIENT_CERT_AUTHORITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "client/cert/index.h"
#include "client/cert/x509_make.h"
#include "transport/base/compiler.h"

#define CERT_DAY          (24 * 60 * 60) /* seconds */
#define CERT_CA_DAYS      3650
#define CERT_DEFAULT_DAYS 825

/* An order for certificates; everything is borrowed. */
struct cert_order {
	const char *dir;
	const char *name; /* renew: NULL is the collector's own */
	uint32_t role;    /* issue */
	const char *organization; /* init; may be NULL */
	/* Further names; init and issue: all; renew: names to add. */
	const char *const *alternatives;
	size_t n_alternatives;
	const char *out; /* issue, renew: a folder; NULL: in the CA's */
	unsigned days;   /* of validity; cut at the end of the CA's */
	enum cert_key_kind key;
	bool key_given;  /* renew: false: the old key's kind */
	bool keep_key;   /* renew: certify the old key again */
	bool revoke_old; /* renew: revoke the old certificate */
	time_t now;
};

/* The result of an order. */
struct cert_outcome {
	struct cert_entry entry;
	bool shortened; /* the validity was cut at the end of the CA's */
	char *folder;   /* of the files; owned, freed by cert_outcome_done() */
};
void cert_outcome_done(struct cert_outcome *o);

/* A new CA, the collector's certificate (for name), and an empty CRL. */
int cert_authority_init(const struct cert_order *o, struct cert_outcome *done,
    char *err, size_t err_size) MUST_CHECK;
int cert_authority_issue(const struct cert_order *o, struct cert_outcome *done,
    char *err, size_t err_size) MUST_CHECK;
int cert_authority_renew(const struct cert_order *o, struct cert_outcome *done,
    char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_CERT_AUTHORITY_H */
