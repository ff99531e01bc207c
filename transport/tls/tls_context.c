#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/base/failure.h"
#include "transport/base/log.h"
#include "transport/tls/tls.h"
#include "transport/tls/tls_sessions.h"
#include "transport/tls/tls_setup.h"
#include "transport/tls/tls_verify.h"

/* A revocation list of a large house has megabytes. */
#define TLS_FILE_BYTES_MAX (16u * 1024u * 1024u)

/* Identifies the file that was read. */
struct stamp {
	bool there;
	ino_t ino;
	off_t size;
	struct timespec mtime;
};

struct tls_context {
	enum tls_side side;
	bool allow_tls12;
	bool crl_may_lack;
	char *paths[TLS_N_FILES]; /* CRL: may be NULL */
	struct stamp stamps[TLS_N_FILES]; /* when last read, or tried */
	struct tls_setup *setup;
	time_t (*now)(void); /* see tls_context_set_clock() */
};

static const char *const file_names[TLS_N_FILES] = {
	TLS_CA_FILE, TLS_CERT_FILE, TLS_KEY_FILE, TLS_CRL_FILE,
};

static const char *const file_words[TLS_N_FILES] = {
	"CA", "certificate", "key", "revocation list",
};

/* ---- paths ---- */

/* 0: *out is set, or no path is given. */
static int
choose_path(char **out, const char *dir, const char *single, const char *name)
{
	if (single != NULL)
		*out = strdup(single);
	else if (dir == NULL)
		return 0;
	else if (asprintf(out, "%s/%s", dir, name) < 0)
		*out = NULL;
	return *out == NULL ? -1 : 0;
}

static int
context_set_paths(struct tls_context *c, const struct tls_options *o, char *err,
    size_t err_size)
{
	const char *single[TLS_N_FILES] = { o->ca, o->cert, o->key, o->crl };
	int i;

	for (i = 0; i < TLS_N_FILES; i++) {
		if (choose_path(&c->paths[i], o->dir, single[i],
			file_names[i]) != 0)
			return FAILURE(err, err_size, "out of memory");
		if (c->paths[i] == NULL && i != TLS_FILE_CRL)
			return FAILURE(err, err_size, "TLS needs a %s file: "
			    "name it, or a directory that holds %s",
			    file_words[i], file_names[i]);
	}
	c->crl_may_lack = o->crl == NULL;
	return 0;
}

/* ---- reading ---- */

static void
stamp_set(struct stamp *s, const struct stat *st)
{
	s->there = true;
	s->ino = st->st_ino;
	s->size = st->st_size;
	s->mtime = st->st_mtim;
}

static bool
stamp_is(const struct stamp *s, const struct stat *st)
{
	return s->there && s->ino == st->st_ino && s->size == st->st_size &&
	    s->mtime.tv_sec == st->st_mtim.tv_sec &&
	    s->mtime.tv_nsec == st->st_mtim.tv_nsec;
}

/* Stamps the path itself, of a file that cannot be opened. */
static void
stamp_path(struct stamp *s, const char *path)
{
	struct stat st;

	memset(s, 0, sizeof(*s));
	if (stat(path, &st) == 0)
		stamp_set(s, &st);
}

static int
read_all(int fd, char *to, size_t len)
{
	ssize_t n;

	while (len > 0) {
		n = read(fd, to, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0) {
			errno = EAGAIN; /* it is being written */
			return -1;
		}
		to += n;
		len -= (size_t)n;
	}
	return 0;
}

/*
 * The list in the directory may lack from the start, but one that was read
 * and is gone revokes as before: a lost file must not readmit any peer.
 */
static bool
list_may_lack(const struct tls_context *c)
{
	return c->crl_may_lack && (c->setup == NULL || c->setup->crls == NULL);
}

static void
say_unreadable(const char *path, int which, int error, char *err,
    size_t err_size)
{
	snprintf(err, err_size, "cannot read the %s file %s: %s%s",
	    file_words[which], path,
	    error == EAGAIN ? "it is being written" : strerror(error),
	    error == ENOENT ? " (`tributary cert` makes such files)" :
	    error == EACCES ? " (it has to be readable for the user that this "
			      "program runs as)" : "");
}

static void
warn_of_open_key(const char *path, mode_t mode)
{
	if (mode & (S_IRWXO | S_IWGRP))
		log_warn("the private key %s is open to others (mode %04o): "
		    "chmod 600 it", path, (unsigned)(mode & 07777));
}

/*
 * Fills pem, and the stamp in any case.  A revocation list that may lack and
 * does is no failure.
 */
static int
read_file(const struct tls_context *c, int which, struct tls_pem *pem,
    struct stamp *stamp, char *err, size_t err_size)
{
	const char *path = c->paths[which];
	struct stat st;
	int fd = -1, rc = -1;

	memset(stamp, 0, sizeof(*stamp));
	if ((pem->path = path) == NULL)
		return 0;
	/* Not to be held up by a pipe. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) != 0) {
		stamp_path(stamp, path);
		if (errno == ENOENT && which == TLS_FILE_CRL && list_may_lack(c))
			rc = 0;
		else
			say_unreadable(path, which, errno, err, err_size);
		goto out;
	}
	stamp_set(stamp, &st);
	if (!S_ISREG(st.st_mode)) {
		snprintf(err, err_size, "%s is no regular file", path);
		goto out;
	}
	if (st.st_size > TLS_FILE_BYTES_MAX) {
		snprintf(err, err_size, "%s is larger than %u MiB", path,
		    TLS_FILE_BYTES_MAX >> 20);
		goto out;
	}
	if (which == TLS_FILE_KEY)
		warn_of_open_key(path, st.st_mode);
	pem->len = (size_t)st.st_size;
	if ((pem->bytes = malloc(pem->len + 1)) == NULL) {
		snprintf(err, err_size, "out of memory");
		goto out;
	}
	if (read_all(fd, pem->bytes, pem->len) != 0) {
		say_unreadable(path, which, errno, err, err_size);
		goto out;
	}
	rc = 0;
out:
	if (fd >= 0)
		close(fd);
	return rc;
}

/* -1 with a sentence in err. */
static int
attach_rules(struct tls_setup *s, char *err, size_t err_size)
{
	tls_verify_attach(s->ssl);
	if (tls_sessions_attach(s->ssl, s->side == TLS_SERVER) == 0)
		return 0;
	return FAILURE(err, err_size, "OpenSSL cannot make sessions resumable");
}

/*
 * All files are read before any is looked at, so that each stamp says what
 * this attempt has seen, whether it succeeds or not.
 */
static struct tls_setup *
context_read(struct tls_context *c, char *err, size_t err_size)
{
	struct tls_pem pem[TLS_N_FILES] = { { NULL, NULL, 0 } };
	struct tls_setup *setup = NULL;
	char first[TLS_ERROR_SIZE];
	int i, rc = 0;

	for (i = 0; i < TLS_N_FILES; i++) {
		if (read_file(c, i, &pem[i], &c->stamps[i], first,
			sizeof(first)) == 0)
			continue;
		if (rc == 0)
			snprintf(err, err_size, "%s", first);
		rc = -1;
	}
	if (rc == 0)
		setup = tls_setup_new(c->side, c->allow_tls12, pem, c->now, err,
		    err_size);
	if (setup != NULL && attach_rules(setup, err, err_size) != 0) {
		tls_setup_unref(setup);
		setup = NULL;
	}
	for (i = 0; i < TLS_N_FILES; i++) {
		if (pem[i].bytes == NULL)
			continue;
		OPENSSL_cleanse(pem[i].bytes, pem[i].len);
		free(pem[i].bytes);
	}
	return setup;
}

struct tls_context *
tls_context_new(const struct tls_options *o, char *err, size_t err_size)
{
	struct tls_context *c;

	if ((c = calloc(1, sizeof(*c))) == NULL) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	c->side = o->side;
	c->allow_tls12 = o->allow_tls12;
	if (context_set_paths(c, o, err, err_size) != 0)
		goto fail;
	if ((c->setup = context_read(c, err, err_size)) == NULL)
		goto fail;
	return c;

fail:
	tls_context_free(c);
	return NULL;
}

int
tls_context_reload(struct tls_context *c, char *err, size_t err_size)
{
	struct tls_setup *fresh = context_read(c, err, err_size);

	if (fresh == NULL)
		return -1;
	tls_setup_unref(c->setup);
	c->setup = fresh;
	return 0;
}

bool
tls_context_is_stale(const struct tls_context *c)
{
	struct stat st;
	int i;

	for (i = 0; i < TLS_N_FILES; i++) {
		if (c->paths[i] == NULL)
			continue;
		if (stat(c->paths[i], &st) != 0) {
			if (c->stamps[i].there)
				return true;
		} else if (!stamp_is(&c->stamps[i], &st)) {
			return true;
		}
	}
	return false;
}

void
tls_context_free(struct tls_context *c)
{
	int i;

	if (c == NULL)
		return;
	tls_setup_unref(c->setup);
	for (i = 0; i < TLS_N_FILES; i++)
		free(c->paths[i]);
	free(c);
}

struct tls_setup *
tls_context_setup(const struct tls_context *c)
{
	return c->setup;
}

void
tls_context_set_clock(struct tls_context *c, time_t (*now)(void))
{
	c->now = now;
	c->setup->now = now;
}
