#include "client/cert/authority.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/cert/pem.h"
#include "client/cert/store.h"
#include "transport/base/failure.h"
#include "transport/socket/roles.h"
#include "transport/tls/tls.h"

/* A certificate on its way into the store. */
struct made {
	X509_NAME *subject;
	GENERAL_NAMES *names;
	EVP_PKEY *key;
	X509 *cert;
	enum cert_key_kind was; /* of the old certificate */
	bool keeps_key;         /* the old key.pem stays */
};

static void
made_done(struct made *m)
{
	X509_free(m->cert);
	EVP_PKEY_free(m->key);
	GENERAL_NAMES_free(m->names);
	X509_NAME_free(m->subject);
}

void
cert_outcome_done(struct cert_outcome *o)
{
	free(o->folder);
	o->folder = NULL;
}

/* Ends an order with r: frees all, and after a failure the outcome. */
static int
finish(int r, struct cert_store *s, struct made *m, struct cert_outcome *done)
{
	if (r < 0)
		cert_outcome_done(done);
	made_done(m);
	cert_store_free(s);
	return r;
}

static int
fail_with(const char *what, char *err, size_t err_size)
{
	snprintf(err, err_size, "cannot make %s", what);
	cert_pem_append_reason(err, err_size);
	return -1;
}

static int
add_names(const struct cert_order *o, struct made *m, char *err,
    size_t err_size)
{
	size_t i;

	for (i = 0; i < o->n_alternatives; i++) {
		if (cert_name_check_alternative(o->alternatives[i], err,
			err_size) < 0)
			return -1;
		if (x509_make_add_name(&m->names, o->alternatives[i]) < 0)
			return fail_with("the names", err, err_size);
	}
	return 0;
}

/*
 * Signs m->cert, and enters it: entry is complete but for what the certificate
 * itself says.
 */
static int
sign(struct cert_store *s, const struct cert_order *o, struct made *m,
    struct cert_outcome *done, char *err, size_t err_size)
{
	struct cert_entry *e = &done->entry;
	struct cert_request r = {
		.subject = m->subject,
		.names = m->names,
		.key = m->key,
		.server = e->role == 0,
		.now = o->now,
		.until = o->now + (time_t)o->days * CERT_DAY,
	};
	time_t ca_until = x509_make_until(cert_store_ca(s));

	if (ca_until <= o->now)
		return FAILURE(err, err_size, "the CA in %s has expired: renew "
		    "it first with tributary cert renew %s --ca, and give its "
		    "new %s to everyone", o->dir, o->dir, TLS_CA_FILE);
	done->shortened = r.until > ca_until;
	if (done->shortened)
		r.until = ca_until;
	m->cert = x509_make_certificate(&r, cert_store_ca(s),
	    cert_store_ca_key(s));
	if (m->cert == NULL)
		return fail_with("the certificate", err, err_size);
	x509_make_serial(m->cert, e->serial);
	e->from = x509_make_from(m->cert);
	e->until = x509_make_until(m->cert);
	if (cert_index_add(cert_store_index(s), e) < 0)
		return FAILURE(err, err_size, "%s is full, or memory is short",
		    CERT_INDEX_FILE);
	return 0;
}

/* init */

/* A random part keeps the names of CAs apart in error messages. */
static X509_NAME *
ca_subject(const struct cert_order *o)
{
	unsigned char random[4];
	char name[CERT_NAME_MAX + 1];

	if (RAND_bytes(random, sizeof(random)) != 1)
		return NULL;
	snprintf(name, sizeof(name), "Tributary CA %02x%02x%02x%02x %.40s",
	    random[0], random[1], random[2], random[3], o->name);
	return x509_make_subject(name, o->organization);
}

static int
make_ca(struct cert_store *s, const struct cert_order *o, char *err,
    size_t err_size)
{
	EVP_PKEY *key = x509_make_key(o->key);
	X509_NAME *subject = ca_subject(o);
	X509 *ca = NULL;

	if (key != NULL && subject != NULL)
		ca = x509_make_ca(subject, key, o->now,
		    o->now + (time_t)CERT_CA_DAYS * CERT_DAY);
	X509_NAME_free(subject);
	if (ca == NULL) {
		EVP_PKEY_free(key);
		return fail_with("the CA", err, err_size);
	}
	cert_store_set_ca(s, ca);
	cert_store_set_ca_key(s, key);
	return 0;
}

/* key.pem and cert.pem, which belong together, one right after the other. */
static int
stage_pair(struct cert_store *s, const char *folder, struct made *m, char *err,
    size_t err_size)
{
	if (!m->keeps_key && cert_store_stage_key(s, folder, TLS_KEY_FILE, m->key,
	    err, err_size) < 0)
		return -1;
	return cert_store_stage_certificate(s, folder, TLS_CERT_FILE, m->cert,
	    err, err_size);
}

int
cert_authority_init(const struct cert_order *o, struct cert_outcome *done,
    char *err, size_t err_size)
{
	struct cert_store *s = NULL;
	struct made m = { 0 };
	int r = -1;

	*done = (struct cert_outcome){ 0 };
	if (cert_name_check(o->name, err, err_size) < 0 ||
	    (o->organization != NULL &&
		cert_name_check_text("the organization", o->organization, err,
		    err_size) < 0) ||
	    add_names(o, &m, err, err_size) < 0)
		goto out;
	if ((s = cert_store_create(o->dir, err, err_size)) == NULL ||
	    make_ca(s, o, err, err_size) < 0)
		goto out;
	snprintf(done->entry.name, sizeof(done->entry.name), "%s", o->name);
	m.subject = x509_make_subject(o->name, o->organization);
	m.key = x509_make_key(o->key);
	if (m.subject == NULL || m.key == NULL) {
		fail_with("a key", err, err_size);
		goto out;
	}
	if (sign(s, o, &m, done, err, err_size) < 0)
		goto out;
	/* ca.pem last: with it the folder is a CA. */
	if (cert_store_stage_key(s, o->dir, CERT_CA_KEY_FILE,
		cert_store_ca_key(s), err, err_size) < 0 ||
	    cert_store_stage_index(s, err, err_size) < 0 ||
	    cert_store_stage_crl(s, o->now, err, err_size) < 0 ||
	    stage_pair(s, o->dir, &m, err, err_size) < 0 ||
	    cert_store_stage_certificate(s, o->dir, TLS_CA_FILE,
		cert_store_ca(s), err, err_size) < 0)
		goto out;
	if ((done->folder = strdup(o->dir)) == NULL) {
		snprintf(err, err_size, "out of memory");
		goto out;
	}
	if (cert_store_commit(s, err, err_size) < 0)
		goto out;
	r = 0;
out:
	return finish(r, s, &m, done);
}

/* issue */

/* The folder for the files of o->name: o->out, made, or one in the store. */
static char *
folder_for(struct cert_store *s, const struct cert_order *o, char *err,
    size_t err_size)
{
	char *in_store = cert_store_make_folder(s, o->name, err, err_size);

	if (in_store == NULL || o->out == NULL)
		return in_store;
	free(in_store);
	if (mkdir(o->out, 0700) < 0 && errno != EEXIST) {
		snprintf(err, err_size, "cannot make the folder %s: %s", o->out,
		    strerror(errno));
		return NULL;
	}
	return strdup(o->out);
}

/* Files in use must not be lost to a slip of the hand. */
static int
refuse_used(const char *folder, char *err, size_t err_size)
{
	static const char *const files[] = { TLS_KEY_FILE, TLS_CERT_FILE,
		TLS_CA_FILE };
	struct stat st;
	char *path;
	size_t i;
	int found;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (asprintf(&path, "%s/%s", folder, files[i]) < 0)
			return -1;
		found = lstat(path, &st) == 0;
		free(path);
		if (!found)
			continue;
		return FAILURE(err, err_size, "%s has a %s already, which is "
		    "never overwritten: choose another folder", folder,
		    files[i]);
	}
	return 0;
}

/*
 * Everything for one name: the index first, so that nothing exists that is not
 * in it; then the files.  The certificate (no secret) is also kept in the
 * store when the rest goes elsewhere: renewing reads the names from it.
 */
static int
put(struct cert_store *s, const struct cert_order *o, struct made *m,
    const char *folder, char *err, size_t err_size)
{
	char *kept = NULL;
	int r = -1;

	if (cert_store_stage_index(s, err, err_size) < 0 ||
	    (o->revoke_old &&
		cert_store_stage_crl(s, o->now, err, err_size) < 0) ||
	    (o->name != NULL &&
		cert_store_stage_certificate(s, folder, TLS_CA_FILE,
		    cert_store_ca(s), err, err_size) < 0) ||
	    stage_pair(s, folder, m, err, err_size) < 0)
		goto out;
	if (o->name != NULL && o->out != NULL) {
		kept = cert_store_make_folder(s, o->name, err, err_size);
		if (kept == NULL ||
		    cert_store_stage_certificate(s, kept, TLS_CERT_FILE,
			m->cert, err, err_size) < 0)
			goto out;
	}
	r = cert_store_commit(s, err, err_size);
out:
	free(kept);
	return r;
}

static int
refuse_issued(struct cert_store *s, const struct cert_order *o, char *err,
    size_t err_size)
{
	const struct cert_entry *e = cert_index_find(cert_store_index(s),
	    o->name, CERT_VALID);
	char until[CERT_TIME_SIZE];

	if (e == NULL || e->until <= o->now)
		return 0;
	return FAILURE(err, err_size, "%s has a certificate already, valid "
	    "until %s: make a new one with tributary cert renew, or end that "
	    "one with tributary cert revoke first", o->name,
	    cert_time_text(e->until, until));
}

/* A device that can be reached by its name gets that, too. */
static int
prepare_issue(const struct cert_order *o, struct made *m, char *err,
    size_t err_size)
{
	if ((cert_name_kind(o->name) == CERT_NAME_DNS && o->name[0] != '*' &&
		x509_make_add_name(&m->names, o->name) < 0) ||
	    x509_make_add_role(&m->names, o->role) < 0)
		return fail_with("the names", err, err_size);
	if (add_names(o, m, err, err_size) < 0)
		return -1;
	m->subject = x509_make_subject(o->name, NULL);
	m->key = x509_make_key(o->key);
	return m->subject == NULL || m->key == NULL
	    ? fail_with("a key", err, err_size)
	    : 0;
}

int
cert_authority_issue(const struct cert_order *o, struct cert_outcome *done,
    char *err, size_t err_size)
{
	struct cert_store *s = NULL;
	struct made m = { 0 };
	int r = -1;

	*done = (struct cert_outcome){ 0 };
	if (cert_name_check(o->name, err, err_size) < 0 ||
	    prepare_issue(o, &m, err, err_size) < 0)
		goto out;
	if ((s = cert_store_open(o->dir, err, err_size)) == NULL ||
	    refuse_issued(s, o, err, err_size) < 0)
		goto out;
	snprintf(done->entry.name, sizeof(done->entry.name), "%s", o->name);
	done->entry.role = o->role;
	if (sign(s, o, &m, done, err, err_size) < 0 ||
	    (o->out != NULL && refuse_used(o->out, err, err_size) < 0) ||
	    (done->folder = folder_for(s, o, err, err_size)) == NULL ||
	    put(s, o, &m, done->folder, err, err_size) < 0)
		goto out;
	r = 0;
out:
	return finish(r, s, &m, done);
}

/* renew */

/*
 * Finds the certificate to renew: a device's valid one, the collector's newest.
 */
static struct cert_entry *
find_old(struct cert_store *s, const struct cert_order *o, char *err,
    size_t err_size)
{
	struct cert_index *x = cert_store_index(s);
	struct cert_entry *e = o->name == NULL
	    ? cert_index_collector(x)
	    : cert_index_find(x, o->name, CERT_VALID);

	if (e != NULL && e->state == CERT_REVOKED && o->keep_key) {
		snprintf(err, err_size, "the collector's certificate is "
		    "revoked: its key is not to be used again; leave out "
		    "--keep-key");
		return NULL;
	}
	if (e != NULL)
		return e;
	if (o->name == NULL)
		snprintf(err, err_size, "%s in %s has no certificate of a "
		    "collector", CERT_INDEX_FILE, o->dir);
	else if (cert_index_find(x, o->name, CERT_REVOKED) != NULL)
		snprintf(err, err_size, "the certificate of %s is revoked: "
		    "make a new one with tributary cert issue", o->name);
	else
		snprintf(err, err_size, "%s has no certificate of this CA: see "
		    "tributary cert show %s, or make one with tributary cert "
		    "issue", o->name, o->dir);
	return NULL;
}

/* The old certificate tells subject and names. */
static int
read_old(struct cert_store *s, const struct cert_order *o,
    const struct cert_entry *e, struct made *m, char *err, size_t err_size)
{
	char *path = o->name == NULL
	    ? cert_store_path(s, TLS_CERT_FILE)
	    : cert_store_issued_path(s, o->name, TLS_CERT_FILE);
	char serial[CERT_SERIAL_SIZE];
	X509 *old = NULL;
	int r = -1;

	if (path == NULL)
		goto out;
	if ((old = cert_pem_read_certificate(path, err, err_size)) == NULL)
		goto out;
	x509_make_serial(old, serial);
	if (strcmp(serial, e->serial) != 0) {
		snprintf(err, err_size, "%s is not the certificate that %s "
		    "says is the newest of %s (serial number %s): put that "
		    "back, or revoke and issue anew", path, CERT_INDEX_FILE,
		    e->name, e->serial);
		goto out;
	}
	m->was = x509_make_kind_of(X509_get0_pubkey(old));
	m->subject = X509_NAME_dup(X509_get_subject_name(old));
	m->names = X509_get_ext_d2i(old, NID_subject_alt_name, NULL, NULL);
	if (m->subject == NULL) {
		snprintf(err, err_size, "out of memory");
		goto out;
	}
	r = 0;
out:
	X509_free(old);
	free(path);
	return r;
}

static EVP_PKEY *
key_of(const char *folder, char *err, size_t err_size)
{
	EVP_PKEY *key = NULL;
	char *path;

	if (asprintf(&path, "%s/%s", folder, TLS_KEY_FILE) < 0)
		return NULL;
	key = cert_pem_read_key(path, err, err_size);
	free(path);
	return key;
}

static void
mark_old(struct cert_entry *e, const struct cert_order *o)
{
	if (e->state == CERT_REVOKED)
		return;
	e->state = o->revoke_old ? CERT_REVOKED : CERT_REPLACED;
	e->revoked = o->now;
	e->reason = CERT_REASON_SUPERSEDED;
}

/* Chooses the new certificate's key; the folder is known. */
static int
choose_key(const struct cert_order *o, struct made *m, const char *folder,
    char *err, size_t err_size)
{
	if (o->keep_key) {
		m->key = key_of(folder, err, err_size);
		return m->key == NULL ? -1 : 0;
	}
	m->key = x509_make_key(o->key_given ? o->key : m->was);
	return m->key == NULL ? fail_with("a key", err, err_size) : 0;
}

int
cert_authority_renew(const struct cert_order *o, struct cert_outcome *done,
    char *err, size_t err_size)
{
	struct cert_store *s = NULL;
	struct cert_entry *old;
	struct made m = { .was = CERT_KEY_P256, .keeps_key = o->keep_key };
	int r = -1;

	*done = (struct cert_outcome){ 0 };
	if (o->name != NULL && cert_name_check(o->name, err, err_size) < 0)
		goto out;
	if ((s = cert_store_open(o->dir, err, err_size)) == NULL ||
	    (old = find_old(s, o, err, err_size)) == NULL ||
	    read_old(s, o, old, &m, err, err_size) < 0 ||
	    add_names(o, &m, err, err_size) < 0)
		goto out;
	done->folder = o->name != NULL ? folder_for(s, o, err, err_size)
				       : strdup(o->dir);
	if (done->folder == NULL ||
	    choose_key(o, &m, done->folder, err, err_size) < 0)
		goto out;
	memcpy(done->entry.name, old->name, sizeof(old->name));
	done->entry.role = old->role;
	/* sign() may move the index: mark the old one first */
	mark_old(old, o);
	if (sign(s, o, &m, done, err, err_size) < 0 ||
	    put(s, o, &m, done->folder, err, err_size) < 0)
		goto out;
	r = 0;
out:
	return finish(r, s, &m, done);
}
