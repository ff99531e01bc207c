/*
 * store: the folder of a CA.
 *
 *	ca.pem        the CA's certificate
 *	ca-key.pem    its key, 0600
 *	cert.pem      the collector's certificate,
 *	key.pem       and key
 *	crl.pem       the revocation list
 *	issued.txt    the list of all certificates (client/cert/index.h)
 *	issued/NAME/  files of device NAME: ca.pem, cert.pem, key.pem
 *	lock          held while a command changes something
 *
 * Changes are staged and appear together, in cert_store_commit().  Prints
 * nothing.
 */
#ifndef CLIENT_CERT_STORE_H
#define CLIENT_CERT_STORE_H

#include <openssl/types.h>
#include <stddef.h>
#include <time.h>

#include "transport/base/compiler.h"

struct cert_index;
struct cert_store;

#define CERT_CA_KEY_FILE "ca-key.pem"
#define CERT_INDEX_FILE  "issued.txt"
#define CERT_ISSUED_DIR  "issued"

/* Room for any sentence about a folder. */
#define CERT_ERROR_SIZE 1024

/*
 * Opens a folder that is to become a CA's, and locks it: made with mode 0700,
 * or there and without any file that a CA has.  NULL with a sentence in err,
 * also for the two below.
 */
struct cert_store *cert_store_create(const char *dir, char *err,
    size_t err_size) MUST_CHECK;
/*
 * Opens a CA that is to be changed, and locks it: reads its certificate, key
 * and index, and checks that they belong together.
 */
struct cert_store *cert_store_open(const char *dir, char *err, size_t err_size)
    MUST_CHECK;
/* Opens a CA for reading: without the lock and the key. */
struct cert_store *cert_store_look(const char *dir, char *err, size_t err_size)
    MUST_CHECK;
/* Drops uncommitted changes and the lock.  NULL is fine. */
void cert_store_free(struct cert_store *s);

/* All owned by the store.  NULL key after look, both NULL after create. */
X509 *cert_store_ca(const struct cert_store *s);
EVP_PKEY *cert_store_ca_key(const struct cert_store *s);
struct cert_index *cert_store_index(struct cert_store *s);

/* Replace the store's CA certificate or key; ca and key are taken over. */
void cert_store_set_ca(struct cert_store *s, X509 *ca);
void cert_store_set_ca_key(struct cert_store *s, EVP_PKEY *key);

/* DIR/FILE, or DIR/issued/NAME/FILE; to be freed; NULL: no memory. */
char *cert_store_path(const struct cert_store *s, const char *file) MUST_CHECK;
char *cert_store_issued_path(const struct cert_store *s, const char *name,
    const char *file) MUST_CHECK;

/* DIR/issued/NAME, made where it is missing; to be freed. */
char *cert_store_make_folder(const struct cert_store *s, const char *name,
    char *err, size_t err_size) MUST_CHECK;

/* FOLDER/FILE.  Certificates and lists are 0644, keys 0600. */
int cert_store_stage_certificate(struct cert_store *s, const char *folder,
    const char *file, X509 *x, char *err, size_t err_size) MUST_CHECK;
int cert_store_stage_key(struct cert_store *s, const char *folder,
    const char *file, const EVP_PKEY *key, char *err, size_t err_size)
    MUST_CHECK;
/* The index as it now is. */
int cert_store_stage_index(struct cert_store *s, char *err, size_t err_size)
    MUST_CHECK;
/* crl.pem from the index, with the next number after the present list's. */
int cert_store_stage_crl(struct cert_store *s, time_t now, char *err,
    size_t err_size) MUST_CHECK;

/* Puts the staged files in place, in the order in which they were staged. */
int cert_store_commit(struct cert_store *s, char *err, size_t err_size)
    MUST_CHECK;

#endif /* CLIENT_CERT_STORE_H */
