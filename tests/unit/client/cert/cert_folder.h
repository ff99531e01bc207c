/*
 * cert_folder: a folder of their own for the tests of certificates, and looks
 * into it.
 */
#ifndef TESTS_UNIT_CLIENT_CERT_CERT_FOLDER_H
#define TESTS_UNIT_CLIENT_CERT_CERT_FOLDER_H

#include <openssl/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "client/cert/authority.h"

/* 2026-11-21T07:30:00Z */
#define CERT_FOLDER_NOW 1795246200
#define CERT_FOLDER_DAY (24 * 60 * 60)

struct cert_folder {
	char root[64];
	char ca[80]; /* root/ca, which is not there at first */
	char err[1024];
	struct cert_outcome done;
};

int cert_folder_setup(void **state);
int cert_folder_teardown(void **state);

/* root/..., in one of a few buffers that are used in turn. */
const char *cert_folder_path(const struct cert_folder *f, const char *format,
    ...) __attribute__((__format__(__printf__, 2, 3)));
/* What is there: the bits of its mode, or -1. */
int cert_folder_mode(const char *path);
/* The text of a file; to be freed. */
char *cert_folder_read(const char *path);
void cert_folder_write(const char *path, const char *text);

/* An order for this CA, at CERT_FOLDER_NOW. */
struct cert_order cert_folder_order(struct cert_folder *f, const char *name);
/* Both assert that it works. */
void cert_folder_init(struct cert_folder *f);
void cert_folder_issue(struct cert_folder *f, const char *name);

X509 *cert_folder_certificate(const char *path);
/*
 * X509_V_OK, or why OpenSSL refuses the certificate at that time, as a client
 * or a server, by ca.pem and crl.pem of the CA.
 */
int cert_folder_verify(struct cert_folder *f, const char *path, bool server,
    time_t when);

#endif /* TESTS_UNIT_CLIENT_CERT_CERT_FOLDER_H */
