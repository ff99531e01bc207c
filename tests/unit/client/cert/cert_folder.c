#include <ftw.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "cert_folder.h"
#include "client/cert/pem.h"
#include "transport/socket/roles.h"

int
cert_folder_setup(void **state)
{
	struct cert_folder *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	snprintf(f->root, sizeof(f->root), "/tmp/test_cert.XXXXXX");
	assert_non_null(mkdtemp(f->root));
	snprintf(f->ca, sizeof(f->ca), "%s/ca", f->root);
	*state = f;
	return 0;
}

static int
remove_cb(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	return remove(path);
}

int
cert_folder_teardown(void **state)
{
	struct cert_folder *f = *state;

	cert_outcome_done(&f->done);
	nftw(f->root, remove_cb, 16, FTW_DEPTH | FTW_PHYS);
	free(f);
	return 0;
}

const char *
cert_folder_path(const struct cert_folder *f, const char *format, ...)
{
	static char paths[16][512];
	static unsigned at;
	char *path = paths[at++ % 16];
	va_list ap;
	int n;

	n = snprintf(path, 512, "%s/", f->root);
	va_start(ap, format);
	vsnprintf(path + n, 512 - (size_t)n, format, ap);
	va_end(ap);
	return path;
}

int
cert_folder_mode(const char *path)
{
	struct stat st;

	return lstat(path, &st) < 0 ? -1 : (int)(st.st_mode & 07777);
}

char *
cert_folder_read(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 65536);

	assert_non_null(f);
	assert_non_null(text);
	assert_true(fread(text, 1, 65535, f) < 65535);
	fclose(f);
	return text;
}

void
cert_folder_write(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

struct cert_order
cert_folder_order(struct cert_folder *f, const char *name)
{
	return (struct cert_order){
		.dir = f->ca,
		.name = name,
		.role = ROLE_PRODUCER,
		.days = CERT_DEFAULT_DAYS,
		.now = CERT_FOLDER_NOW,
	};
}

void
cert_folder_init(struct cert_folder *f)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "::1" };
	struct cert_order o = cert_folder_order(f, "collector");

	o.alternatives = names;
	o.n_alternatives = 3;
	cert_outcome_done(&f->done);
	if (cert_authority_init(&o, &f->done, f->err, sizeof(f->err)) < 0)
		fail_msg("%s", f->err);
}

void
cert_folder_issue(struct cert_folder *f, const char *name)
{
	struct cert_order o = cert_folder_order(f, name);

	cert_outcome_done(&f->done);
	if (cert_authority_issue(&o, &f->done, f->err, sizeof(f->err)) < 0)
		fail_msg("%s", f->err);
}

X509 *
cert_folder_certificate(const char *path)
{
	char err[1024];
	X509 *x = cert_pem_read_certificate(path, err, sizeof(err));

	if (x == NULL)
		fail_msg("%s", err);
	return x;
}

int
cert_folder_verify(struct cert_folder *f, const char *path, bool server,
    time_t when)
{
	X509 *x = cert_folder_certificate(path);
	X509 *ca = cert_folder_certificate(cert_folder_path(f, "ca/ca.pem"));
	X509_CRL *crl = cert_pem_read_crl(cert_folder_path(f, "ca/crl.pem"),
	    f->err, sizeof(f->err));
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	X509_VERIFY_PARAM *p;
	int result;

	assert_non_null(crl);
	assert_int_equal(X509_STORE_add_cert(store, ca), 1);
	assert_int_equal(X509_STORE_add_crl(store, crl), 1);
	assert_int_equal(X509_STORE_CTX_init(ctx, store, x, NULL), 1);
	p = X509_STORE_CTX_get0_param(ctx);
	X509_VERIFY_PARAM_set_flags(p, X509_V_FLAG_CRL_CHECK |
	    X509_V_FLAG_CRL_CHECK_ALL | X509_V_FLAG_X509_STRICT);
	X509_VERIFY_PARAM_set_time(p, when);
	X509_STORE_CTX_set_purpose(ctx,
	    server ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT);
	result = X509_verify_cert(ctx) == 1 ? X509_V_OK
					    : X509_STORE_CTX_get_error(ctx);
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(store);
	X509_CRL_free(crl);
	X509_free(ca);
	X509_free(x);
	return result;
}
