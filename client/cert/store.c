#include "client/cert/store.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/x509.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cert/atomic_files.h"
#include "client/cert/index.h"
#include "client/cert/pem.h"
#include "client/cert/x509_make.h"
#include "transport/base/failure.h"
#include "transport/tls/tls.h"

#define LOCK_FILE   "lock"
#define FOLDER_MODE 0700
#define PUBLIC_MODE 0644
#define KEY_MODE    0600

struct cert_store {
	char *dir;
	int lock; /* -1: not held */
	X509 *ca;
	EVP_PKEY *ca_key;
	struct cert_index index;
	struct atomic_files *staged;
};

void
cert_store_free(struct cert_store *s)
{
	if (s == NULL)
		return;
	atomic_files_free(s->staged);
	cert_index_done(&s->index);
	EVP_PKEY_free(s->ca_key);
	X509_free(s->ca);
	if (s->lock >= 0)
		close(s->lock);
	free(s->dir);
	free(s);
}

static struct cert_store *
store_new(const char *dir, char *err, size_t err_size)
{
	struct cert_store *s;

	snprintf(err, err_size, "out of memory");
	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	s->lock = -1;
	s->dir = strdup(dir);
	s->staged = atomic_files_new();
	if (s->dir != NULL && s->staged != NULL)
		return s;
	cert_store_free(s);
	return NULL;
}

X509 *
cert_store_ca(const struct cert_store *s)
{
	return s->ca;
}

EVP_PKEY *
cert_store_ca_key(const struct cert_store *s)
{
	return s->ca_key;
}

struct cert_index *
cert_store_index(struct cert_store *s)
{
	return &s->index;
}

void
cert_store_set_ca(struct cert_store *s, X509 *ca)
{
	X509_free(s->ca);
	s->ca = ca;
}

void
cert_store_set_ca_key(struct cert_store *s, EVP_PKEY *key)
{
	EVP_PKEY_free(s->ca_key);
	s->ca_key = key;
}

static char *
join(const char *folder, const char *file)
{
	char *path;

	return asprintf(&path, "%s/%s", folder, file) < 0 ? NULL : path;
}

char *
cert_store_path(const struct cert_store *s, const char *file)
{
	return join(s->dir, file);
}

char *
cert_store_issued_path(const struct cert_store *s, const char *name,
    const char *file)
{
	char *path;

	return asprintf(&path, "%s/" CERT_ISSUED_DIR "/%s/%s", s->dir, name,
	    file) < 0 ? NULL : path;
}

/* Write access to the folder is enough to replace the CA. */
static int
check_folder(const char *dir, char *err, size_t err_size)
{
	struct stat st;

	if (stat(dir, &st) < 0)
		return FAILURE(err, err_size, "cannot read %s: %s%s%s", dir,
		    strerror(errno), errno == ENOENT ?
			"; make a CA with tributary cert init " : "",
		    errno == ENOENT ? dir : "");
	if (!S_ISDIR(st.st_mode))
		return FAILURE(err, err_size, "%s is not a folder", dir);
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return FAILURE(err, err_size, "others may write into %s, and "
		    "could replace the CA: run chmod go-w %s", dir, dir);
	return 0;
}

static int
take_lock(struct cert_store *s, char *err, size_t err_size)
{
	char *path = cert_store_path(s, LOCK_FILE);
	int r = -1;

	if (path == NULL)
		goto out;
	s->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
	    KEY_MODE);
	if (s->lock < 0) {
		snprintf(err, err_size, "cannot open %s: %s", path,
		    strerror(errno));
		goto out;
	}
	if (flock(s->lock, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EWOULDBLOCK)
			snprintf(err, err_size, "another tributary cert is at "
			    "work in %s: wait until it is done", s->dir);
		else
			snprintf(err, err_size, "cannot lock %s: %s", path,
			    strerror(errno));
		goto out;
	}
	r = 0;
out:
	free(path);
	return r;
}

static int
refuse_existing(struct cert_store *s, char *err, size_t err_size)
{
	static const char *const files[] = { TLS_CA_FILE, CERT_CA_KEY_FILE,
		TLS_CERT_FILE, TLS_KEY_FILE, TLS_CRL_FILE, CERT_INDEX_FILE,
		CERT_ISSUED_DIR };
	struct stat st;
	char *path;
	size_t i;
	int r;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if ((path = cert_store_path(s, files[i])) == NULL)
			return -1;
		r = lstat(path, &st);
		free(path);
		if (r < 0 && errno == ENOENT)
			continue;
		return FAILURE(err, err_size, "%s has a %s already, which is "
		    "never overwritten: choose another folder, or list its "
		    "contents with tributary cert show %s", s->dir, files[i],
		    s->dir);
	}
	return 0;
}

struct cert_store *
cert_store_create(const char *dir, char *err, size_t err_size)
{
	struct cert_store *s = store_new(dir, err, err_size);

	if (s == NULL)
		return NULL;
	if (mkdir(dir, FOLDER_MODE) < 0 && errno != EEXIST) {
		snprintf(err, err_size, "cannot make the folder %s: %s", dir,
		    strerror(errno));
		goto fail;
	}
	if (check_folder(dir, err, err_size) < 0 ||
	    take_lock(s, err, err_size) < 0 ||
	    refuse_existing(s, err, err_size) < 0)
		goto fail;
	return s;

fail:
	cert_store_free(s);
	return NULL;
}

/* A file's bytes, for the caller to free. */
static char *
read_file(const char *path, size_t max, size_t *len, char *err, size_t err_size)
{
	FILE *f = fopen(path, "re");
	char *data = NULL;
	struct stat st;

	errno = f == NULL ? errno : 0;
	if (f == NULL || fstat(fileno(f), &st) < 0)
		goto fail;
	errno = EFBIG;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > max)
		goto fail;
	*len = (size_t)st.st_size;
	errno = ENOMEM;
	if ((data = malloc(*len + 1)) == NULL)
		goto fail;
	errno = EIO;
	if (fread(data, 1, *len, f) != *len)
		goto fail;
	fclose(f);
	return data;

fail:
	snprintf(err, err_size, "cannot read %s: %s", path, strerror(errno));
	free(data);
	if (f != NULL)
		fclose(f);
	return NULL;
}

static int
load_index(struct cert_store *s, char *err, size_t err_size)
{
	char *path = cert_store_path(s, CERT_INDEX_FILE), *text = NULL;
	char why[256];
	size_t len;
	int r = -1;

	if (path == NULL)
		return -1;
	text = read_file(path, CERT_INDEX_MAX_BYTES, &len, err, err_size);
	if (text == NULL) {
		if (access(path, F_OK) != 0 && errno == ENOENT)
			snprintf(err, err_size, "%s is not a folder that "
			    "tributary cert init made: it has no %s", s->dir,
			    CERT_INDEX_FILE);
		goto out;
	}
	if (cert_index_parse(&s->index, text, len, why, sizeof(why)) < 0) {
		snprintf(err, err_size, "%s: %s; it was changed by hand, or "
		    "damaged: mend it or restore it", path, why);
		goto out;
	}
	r = 0;
out:
	free(text);
	free(path);
	return r;
}

static int
load_ca(struct cert_store *s, char *err, size_t err_size)
{
	char *path = cert_store_path(s, TLS_CA_FILE);
	struct stat st;

	if (path == NULL)
		return -1;
	if (stat(path, &st) < 0 && errno == ENOENT)
		snprintf(err, err_size, "%s has no %s: make a CA with "
		    "tributary cert init %s", s->dir, TLS_CA_FILE, s->dir);
	else
		s->ca = cert_pem_read_certificate(path, err, err_size);
	free(path);
	return s->ca == NULL ? -1 : 0;
}

static int
load_ca_key(struct cert_store *s, char *err, size_t err_size)
{
	char *path = cert_store_path(s, CERT_CA_KEY_FILE);
	struct stat st;

	if (path == NULL)
		return -1;
	if (stat(path, &st) < 0 && errno == ENOENT)
		snprintf(err, err_size, "%s has no %s, without which nothing "
		    "can be signed: work where the CA was made", s->dir,
		    CERT_CA_KEY_FILE);
	else
		s->ca_key = cert_pem_read_key(path, err, err_size);
	free(path);
	if (s->ca_key == NULL)
		return -1;
	if (X509_check_private_key(s->ca, s->ca_key) == 1)
		return 0;
	return FAILURE(err, err_size, "%s and %s in %s do not belong together: "
	    "restore the one that was replaced", TLS_CA_FILE, CERT_CA_KEY_FILE,
	    s->dir);
}

struct cert_store *
cert_store_look(const char *dir, char *err, size_t err_size)
{
	struct cert_store *s = store_new(dir, err, err_size);

	if (s == NULL)
		return NULL;
	if (load_ca(s, err, err_size) == 0 && load_index(s, err, err_size) == 0)
		return s;
	cert_store_free(s);
	return NULL;
}

struct cert_store *
cert_store_open(const char *dir, char *err, size_t err_size)
{
	struct cert_store *s = store_new(dir, err, err_size);

	if (s == NULL)
		return NULL;
	if (check_folder(dir, err, err_size) == 0 &&
	    load_ca(s, err, err_size) == 0 &&
	    take_lock(s, err, err_size) == 0 &&
	    load_index(s, err, err_size) == 0 &&
	    load_ca_key(s, err, err_size) == 0)
		return s;
	cert_store_free(s);
	return NULL;
}

/* Staging. */

static char *
make_one(char *path, char *err, size_t err_size)
{
	if (path != NULL && (mkdir(path, FOLDER_MODE) == 0 || errno == EEXIST))
		return path;
	if (path != NULL)
		snprintf(err, err_size, "cannot make the folder %s: %s", path,
		    strerror(errno));
	free(path);
	return NULL;
}

char *
cert_store_make_folder(const struct cert_store *s, const char *name, char *err,
    size_t err_size)
{
	char *all, *one;

	snprintf(err, err_size, "out of memory");
	all = make_one(cert_store_path(s, CERT_ISSUED_DIR), err, err_size);
	if (all == NULL)
		return NULL;
	one = make_one(join(all, name), err, err_size);
	free(all);
	return one;
}

struct pem_file {
	const char *folder, *name;
	mode_t mode;
};

/* Takes pem, which may be NULL for lack of memory. */
static int
stage(struct cert_store *s, const struct pem_file *f, BIO *pem, char *err,
    size_t err_size)
{
	char *path = join(f->folder, f->name), *data;
	long len;
	int r = -1;

	if (path == NULL || pem == NULL) {
		snprintf(err, err_size, "cannot make %s/%s", f->folder,
		    f->name);
		cert_pem_append_reason(err, err_size);
	} else {
		len = BIO_get_mem_data(pem, &data);
		r = atomic_files_add(s->staged, &(struct atomic_file){ path,
		    data, (size_t)len, f->mode }, err, err_size);
	}
	BIO_free(pem);
	free(path);
	return r;
}

int
cert_store_stage_certificate(struct cert_store *s, const char *folder,
    const char *file, X509 *x, char *err, size_t err_size)
{
	return stage(s, &(struct pem_file){ folder, file, PUBLIC_MODE },
	    cert_pem_of_certificate(x), err, err_size);
}

int
cert_store_stage_key(struct cert_store *s, const char *folder,
    const char *file, const EVP_PKEY *key, char *err, size_t err_size)
{
	return stage(s, &(struct pem_file){ folder, file, KEY_MODE },
	    cert_pem_of_key(key), err, err_size);
}

int
cert_store_stage_index(struct cert_store *s, char *err, size_t err_size)
{
	char *path = cert_store_path(s, CERT_INDEX_FILE);
	size_t len = 0;
	char *text = cert_index_text(&s->index, &len);
	int r = -1;

	if (path == NULL || text == NULL)
		snprintf(err, err_size, "out of memory");
	else
		r = atomic_files_add(s->staged, &(struct atomic_file){ path,
		    text, len, KEY_MODE }, err, err_size);
	free(text);
	free(path);
	return r;
}

static bool
anything_revoked(const struct cert_index *x)
{
	size_t i;

	for (i = 0; i < x->n; i++)
		if (x->entries[i].state == CERT_REVOKED)
			return true;
	return false;
}

static uint64_t
next_crl_number(const struct cert_store *s, time_t now)
{
	char *path = cert_store_path(s, TLS_CRL_FILE);
	char ignored[CERT_ERROR_SIZE];
	X509_CRL *old = NULL;
	uint64_t n;

	if (path != NULL && access(path, F_OK) == 0)
		old = cert_pem_read_crl(path, ignored, sizeof(ignored));
	if (old != NULL)
		n = x509_make_crl_number(old) + 1;
	else if (!anything_revoked(&s->index))
		n = 1;
	else /* Lost: the clock is ahead of any number that was counted up. */
		n = (uint64_t)now;
	X509_CRL_free(old);
	free(path);
	return n;
}

int
cert_store_stage_crl(struct cert_store *s, time_t now, char *err,
    size_t err_size)
{
	X509_CRL *crl = x509_make_crl(&s->index, s->ca, s->ca_key,
	    next_crl_number(s, now), now);
	int r;

	r = stage(s, &(struct pem_file){ s->dir, TLS_CRL_FILE, PUBLIC_MODE },
	    crl == NULL ? NULL : cert_pem_of_crl(crl), err, err_size);
	X509_CRL_free(crl);
	return r;
}

int
cert_store_commit(struct cert_store *s, char *err, size_t err_size)
{
	return atomic_files_commit(s->staged, err, err_size);
}
