#include "client/cert/renew_ca.h"

#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cert/pem.h"
#include "client/cert/store.h"
#include "transport/tls/tls.h"

/* Into the folder of every device that has one. */
static int
stage_ca_copies(struct cert_store *s, char *err, size_t err_size)
{
	const struct cert_index *x = cert_store_index(s);
	char *path, *folder;
	size_t i;
	int r = 0;

	for (i = 0; i < x->n && r == 0; i++) {
		/* the newest of a name, once */
		if (x->entries[i].role == 0 ||
		    cert_index_find(x, x->entries[i].name,
			x->entries[i].state) != &x->entries[i] ||
		    x->entries[i].state != CERT_VALID)
			continue;
		path = cert_store_issued_path(s, x->entries[i].name,
		    TLS_CA_FILE);
		if (path != NULL && access(path, F_OK) == 0) {
			folder = cert_store_make_folder(s, x->entries[i].name,
			    err, err_size);
			r = folder == NULL ? -1
			    : cert_store_stage_certificate(s, folder,
				  TLS_CA_FILE, cert_store_ca(s), err, err_size);
			free(folder);
		}
		free(path);
	}
	return r;
}

int
cert_renew_ca(const struct cert_order *o, struct cert_outcome *done, char *err,
    size_t err_size)
{
	struct cert_store *s;
	X509 *ca;
	int r = -1;

	*done = (struct cert_outcome){ 0 };
	if ((s = cert_store_open(o->dir, err, err_size)) == NULL)
		return -1;
	ca = x509_make_ca(X509_get_subject_name(cert_store_ca(s)),
	    cert_store_ca_key(s), o->now, o->now + (time_t)o->days * CERT_DAY);
	if (ca == NULL) {
		snprintf(err, err_size, "cannot make the CA");
		cert_pem_append_reason(err, err_size);
		goto out;
	}
	cert_store_set_ca(s, ca);
	if ((done->folder = strdup(o->dir)) == NULL) {
		snprintf(err, err_size, "out of memory");
		goto out;
	}
	x509_make_serial(ca, done->entry.serial);
	done->entry.from = x509_make_from(ca);
	done->entry.until = x509_make_until(ca);
	if (stage_ca_copies(s, err, err_size) < 0 ||
	    cert_store_stage_crl(s, o->now, err, err_size) < 0 ||
	    cert_store_stage_certificate(s, o->dir, TLS_CA_FILE, ca, err,
		err_size) < 0 ||
	    cert_store_commit(s, err, err_size) < 0)
		goto out;
	r = 0;
out:
	if (r < 0)
		cert_outcome_done(done);
	cert_store_free(s);
	return r;
}
