#include "tests/load/load_ca.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/load/load_conn.h"
#include "transport/tls/tls.h"

#define DAY_S     86400
#define PATH_SIZE 256

static const char *const dirs[] = { LOAD_CA_COLLECTOR, LOAD_CA_DEVICE };
static const char *const files[] = { TLS_CA_FILE, TLS_CERT_FILE,
	TLS_KEY_FILE };

/* Who signs, and with what. */
struct issuer {
	X509 *cert;
	EVP_PKEY *key;
	long next_serial;
};

static EVP_PKEY *
new_key(void)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");

	if (key == NULL)
		load_die("cannot make a key");
	return key;
}

static void
add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509_EXTENSION *ext;
	X509V3_CTX ctx;

	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	if (ext == NULL || X509_add_ext(cert, ext, -1) != 1)
		load_die("cannot say %s in a certificate", value);
	X509_EXTENSION_free(ext);
}

/* No issuer's certificate: signed by itself. */
static X509 *
new_cert(struct issuer *by, EVP_PKEY *key, const char *name, const char *usage,
    const char *alternatives)
{
	X509 *cert = X509_new();
	X509 *issuer = by->cert != NULL ? by->cert : cert;
	bool ca = by->cert == NULL;

	if (cert == NULL)
		load_die("no memory");
	X509_set_version(cert, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), by->next_serial++);
	X509_gmtime_adj(X509_getm_notBefore(cert), -DAY_S);
	X509_gmtime_adj(X509_getm_notAfter(cert), DAY_S);
	X509_set_pubkey(cert, key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN",
	    MBSTRING_UTF8, (const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(cert, X509_get_subject_name(issuer));
	add_extension(cert, issuer, NID_basic_constraints,
	    ca ? "critical,CA:TRUE" : "critical,CA:FALSE");
	add_extension(cert, issuer, NID_key_usage,
	    ca ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature");
	add_extension(cert, issuer, NID_subject_key_identifier, "hash");
	add_extension(cert, issuer, NID_authority_key_identifier, "keyid");
	if (usage != NULL)
		add_extension(cert, issuer, NID_ext_key_usage, usage);
	if (alternatives != NULL)
		add_extension(cert, issuer, NID_subject_alt_name,
		    alternatives);
	if (X509_sign(cert, by->key, EVP_sha256()) == 0)
		load_die("cannot sign the certificate of %s", name);
	return cert;
}

static FILE *
create(const char *folder, const char *dir, const char *name)
{
	char path[PATH_SIZE];
	FILE *f = NULL;
	int fd;

	snprintf(path, sizeof(path), "%s/%s/%s", folder, dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || (f = fdopen(fd, "w")) == NULL)
		load_die("%s: %s", path, strerror(errno));
	return f;
}

static void
close_file(FILE *f, int written)
{
	if (fclose(f) != 0 || written != 1)
		load_die("cannot write a certificate: %s", strerror(errno));
}

static void
issue(struct issuer *by, const char *folder, const char *dir,
    const char *usage, const char *alternatives)
{
	char path[PATH_SIZE];
	EVP_PKEY *key = new_key();
	X509 *cert = new_cert(by, key, dir, usage, alternatives);
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, dir);
	if (mkdir(path, 0700) != 0)
		load_die("%s: %s", path, strerror(errno));
	f = create(folder, dir, TLS_CA_FILE);
	close_file(f, PEM_write_X509(f, by->cert));
	f = create(folder, dir, TLS_CERT_FILE);
	close_file(f, PEM_write_X509(f, cert));
	f = create(folder, dir, TLS_KEY_FILE);
	close_file(f, PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL));
	X509_free(cert);
	EVP_PKEY_free(key);
}

void
load_ca_make(const char *folder)
{
	struct issuer ca = { .next_serial = 1, .key = new_key() };

	ca.cert = new_cert(&ca, ca.key, "load", NULL, NULL);
	issue(&ca, folder, LOAD_CA_COLLECTOR, "serverAuth",
	    "IP:127.0.0.1,IP:::1,DNS:localhost");
	issue(&ca, folder, LOAD_CA_DEVICE, "clientAuth", "DNS:device");
	X509_free(ca.cert);
	EVP_PKEY_free(ca.key);
}

void
load_ca_remove(const char *folder)
{
	char path[PATH_SIZE];
	size_t d, f;

	for (d = 0; d < sizeof(dirs) / sizeof(dirs[0]); d++) {
		for (f = 0; f < sizeof(files) / sizeof(files[0]); f++) {
			snprintf(path, sizeof(path), "%s/%s/%s", folder,
			    dirs[d], files[f]);
			unlink(path);
		}
		snprintf(path, sizeof(path), "%s/%s", folder, dirs[d]);
		rmdir(path);
	}
}
