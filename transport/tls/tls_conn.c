#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "transport/socket/addr.h"
#include "transport/tls/tls.h"
#include "transport/tls/tls_bio.h"
#include "transport/tls/tls_error.h"
#include "transport/tls/tls_identity.h"
#include "transport/tls/tls_internal.h"
#include "transport/tls/tls_sessions.h"
#include "transport/tls/tls_setup.h"

/* The most that one record carries. */
#define RECORD_BYTES 16384
/*
 * Bytes of records that hold nothing for us (new keys, tickets), before a peer
 * is told to go: each makes some microseconds of work, and an honest peer sends
 * a few a day.
 */
#define BARREN_BYTES_MAX (2u * TLS_READ_BUFFER_BYTES)

/* ---- outcome of a call ---- */

static void
prepare(struct tls_conn *t)
{
	ERR_clear_error();
	errno = 0;
	t->wants_write = false;
}

/*
 * Maps a call that did not succeed to EAGAIN, 0 (an orderly end), or another
 * errno, with a sentence where there is something to say.
 */
static int
outcome(struct tls_conn *t, int rc)
{
	int error = errno;
	unsigned long code;

	switch (SSL_get_error(t->ssl, rc)) {
	case SSL_ERROR_WANT_READ:
		return EAGAIN;
	case SSL_ERROR_WANT_WRITE:
		t->wants_write = true;
		return EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		if (!tls_conn_is_open(t))
			tls_error_left(t, 0);
		return 0;
	case SSL_ERROR_SYSCALL:
		if (error == 0 || error == EAGAIN)
			error = ECONNRESET;
		if (!tls_conn_is_open(t))
			tls_error_left(t, error);
		return error;
	default:
		break;
	}
	code = ERR_peek_error();
	if (ERR_GET_LIB(code) == ERR_LIB_SSL &&
	    ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
		if (!tls_conn_is_open(t))
			tls_error_left(t, 0);
		t->broken = true;
		return ECONNRESET;
	}
	t->broken = true;
	tls_error_reason(t, code);
	ERR_clear_error();
	return EPROTO;
}

/* Ends the input, or the handshake; error: an errno, 0: an orderly end. */
static void
end_input(struct tls_conn *t, int error)
{
	t->state = t->state == TLS_SHAKING ? TLS_FAILED : TLS_ENDED;
	t->end_errno = error;
}

/* ---- handshake ---- */

/*
 * Kept for later revocation lists.  Without memory for the chain, only the
 * certificate is looked up in them, as for a connection that was resumed.
 */
static void
conn_keep_certificates(struct tls_conn *t, X509 *cert)
{
	STACK_OF(X509) *chain = SSL_get0_verified_chain(t->ssl);

	if (X509_up_ref(cert) == 1)
		t->identity.leaf = cert;
	if (chain != NULL)
		t->identity.chain = X509_chain_up_ref(chain);
}

/* The peer is verified: reads its identity. */
static int
conn_open(struct tls_conn *t)
{
	X509 *cert = SSL_get0_peer_certificate(t->ssl);
	char text[TLS_ERROR_SIZE];
	const char *why = "is not there";
	struct tls_words w;

	if (cert == NULL || SSL_get_verify_result(t->ssl) != X509_V_OK ||
	    tls_identity_init(&t->identity, cert, &why) != 0) {
		tls_error_words(t, &w);
		tls_text_bad_name(&w, why, text, sizeof(text));
		tls_error_say(t, text);
		return -1;
	}
	conn_keep_certificates(t, cert);
	t->state = TLS_OPEN;
	t->ktls_send = BIO_get_ktls_send(SSL_get_wbio(t->ssl));
	SSL_set_default_read_buffer_len(t->ssl, TLS_READ_BUFFER_BYTES);
	return 0;
}

bool
tls_conn_speaks_first(const struct tls_conn *t)
{
	return t->setup->side == TLS_CLIENT;
}

int
tls_conn_handshake(struct tls_conn *t)
{
	int rc, error;

	if (tls_conn_is_open(t))
		return 1;
	if (t->state == TLS_FAILED)
		return -1;
	prepare(t);
	rc = SSL_do_handshake(t->ssl);
	if (rc == 1) {
		rc = conn_open(t);
		error = EPROTO;
	} else {
		if ((error = outcome(t, rc)) == EAGAIN)
			return 0;
		rc = -1;
	}
	tls_sessions_settle(t);
	if (rc == 0)
		return 1;
	end_input(t, error == 0 ? ECONNRESET : error);
	return -1;
}

/* ---- input ---- */

static ssize_t
conn_end(const struct tls_conn *t)
{
	if (t->end_errno == 0)
		return 0;
	errno = t->end_errno;
	return -1;
}

/* Up to len bytes, at least one; 0: nothing now, or ended. */
static size_t
conn_read(struct tls_conn *t, uint8_t *to, size_t len)
{
	size_t total = 0, n;
	int error;

	while (total < len) {
		prepare(t);
		if (SSL_read_ex(t->ssl, to + total, len - total, &n) == 1) {
			total += n;
			t->yielded += n;
			continue;
		}
		if ((error = outcome(t, 0)) == EAGAIN)
			t->input = INPUT_STARVED;
		else
			end_input(t, error);
		break;
	}
	return total;
}

/* True: only records for OpenSSL itself came. */
static void
count_barren(struct tls_conn *t)
{
	t->barren += t->fetched;
	if (t->barren <= BARREN_BYTES_MAX)
		return;
	tls_error_say(t, "it sends nothing but new keys and the like, which "
	    "only makes work");
	t->broken = true;
	end_input(t, EPROTO);
}

ssize_t
tls_conn_receive(struct tls_conn *t, const struct iovec *iov, int niov)
{
	size_t total = 0;
	int i;

	if (t->state == TLS_FAILED || t->state == TLS_ENDED)
		return conn_end(t);
	if (!tls_conn_is_open(t)) {
		errno = EAGAIN;
		return -1;
	}
	t->input = INPUT_UNKNOWN;
	t->fetched = t->yielded = 0;
	for (i = 0; i < niov && t->state == TLS_OPEN &&
	    t->input != INPUT_STARVED; i++)
		total += conn_read(t, iov[i].iov_base, iov[i].iov_len);
	if (t->input == INPUT_DRAINED)
		t->input = INPUT_UNKNOWN;
	if (total > 0) {
		t->barren = 0;
		return (ssize_t)total;
	}
	if (t->state == TLS_OPEN)
		count_barren(t);
	if (t->state == TLS_ENDED)
		return conn_end(t);
	errno = EAGAIN;
	return -1;
}

bool
tls_conn_has_input(const struct tls_conn *t)
{
	return t->state == TLS_ENDED || (t->state == TLS_OPEN &&
	    t->input != INPUT_STARVED && SSL_has_pending(t->ssl));
}

/* ---- output ---- */

/* A position in the bytes that are offered. */
struct cursor {
	const struct iovec *iov;
	int niov;
	size_t off; /* in iov[0] */
};

static void
cursor_skip_empty(struct cursor *c)
{
	while (c->niov > 0 && c->off == c->iov->iov_len) {
		c->iov++;
		c->niov--;
		c->off = 0;
	}
}

/* By n bytes, or to the end.  Returns by how many. */
static size_t
cursor_advance(struct cursor *c, size_t n)
{
	size_t left = n, step;

	while (left > 0 && c->niov > 0) {
		step = c->iov->iov_len - c->off;
		if (step > left)
			step = left;
		c->off += step;
		left -= step;
		cursor_skip_empty(c);
	}
	return n - left;
}

/*
 * The next max bytes, or all that are left when they are fewer: where they
 * lie, or copied together into room (max bytes).
 */
static size_t
cursor_piece(struct cursor c, size_t max, uint8_t *room, const uint8_t **piece)
{
	size_t at = 0, n;

	n = c.iov->iov_len - c.off;
	*piece = (const uint8_t *)c.iov->iov_base + c.off;
	if (n >= max)
		return max;
	if (c.niov == 1)
		return n;
	while (c.niov > 0 && at < max) {
		n = c.iov->iov_len - c.off;
		if (n > max - at)
			n = max - at;
		memcpy(room + at, (const uint8_t *)c.iov->iov_base + c.off, n);
		at += cursor_advance(&c, n);
	}
	*piece = room;
	return at;
}

/* 0, or why OpenSSL took nothing; it has to be given a begun piece again. */
static int
conn_write_piece(struct tls_conn *t, const uint8_t *piece, size_t len,
    size_t *taken)
{
	int error;

	prepare(t);
	if (SSL_write_ex(t->ssl, piece, len, taken) == 1) {
		free(t->begun);
		t->begun = NULL;
		return 0;
	}
	error = outcome(t, 0);
	if (error == EAGAIN && t->begun == NULL) {
		/*
		 * The copy stays the same whatever the caller does with its
		 * own.
		 */
		if ((t->begun = malloc(len)) == NULL) {
			error = ENOMEM;
		} else {
			memcpy(t->begun, piece, len);
			t->begun_len = len;
		}
	}
	if (error != EAGAIN)
		t->broken = true;
	return error == 0 ? EPIPE : error;
}

/*
 * Sends as much as the socket takes.  Returns the bytes that are on their way;
 * *error is why it stopped, 0 at the end of what was offered.
 */
static size_t
conn_write(struct tls_conn *t, struct cursor *c, int *error)
{
	uint8_t room[RECORD_BYTES];
	const uint8_t *piece;
	size_t total = 0, len, n;

	*error = 0;
	if (t->begun != NULL && (*error = conn_write_piece(t, t->begun,
	    t->begun_len, &t->ahead)) != 0)
		return 0;
	while (c->niov > 0) {
		n = t->ahead;
		if (n == 0) {
			len = cursor_piece(*c, RECORD_BYTES, room, &piece);
			*error = conn_write_piece(t, piece, len, &n);
			if (*error != 0)
				break;
			t->ahead = n;
		}
		n = cursor_advance(c, n);
		t->ahead -= n;
		total += n;
	}
	return total;
}

/* The kernel makes the records. */
static ssize_t
conn_write_plain(struct tls_conn *t, const struct iovec *iov, int niov)
{
	struct msghdr msg = { 0 };
	ssize_t n;

	msg.msg_iov = (struct iovec *)iov;
	msg.msg_iovlen = (size_t)niov;
	n = sendmsg(t->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	t->wants_write = n < 0 && errno == EAGAIN;
	return n;
}

ssize_t
tls_conn_send(struct tls_conn *t, const struct iovec *iov, int niov)
{
	struct cursor c = { iov, niov, 0 };
	size_t total;
	int error;

	if (!tls_conn_is_open(t) || t->broken) {
		errno = t->broken ? EPIPE : EAGAIN;
		return -1;
	}
	if (t->ktls_send)
		return conn_write_plain(t, iov, niov);
	cursor_skip_empty(&c);
	if (c.niov == 0)
		return 0;
	total = conn_write(t, &c, &error);
	if (total > 0)
		return (ssize_t)total;
	errno = error;
	return -1;
}

/* ---- the rest ---- */

bool
tls_conn_wants_write(const struct tls_conn *t)
{
	return t->wants_write;
}

const struct tls_identity *
tls_conn_identity(const struct tls_conn *t)
{
	return &t->identity;
}

struct tls_identity *
tls_conn_take_identity(struct tls_conn *t)
{
	struct tls_identity *id = malloc(sizeof(*id));

	if (id == NULL)
		return NULL;
	*id = t->identity;
	memset(&t->identity, 0, sizeof(t->identity));
	return id;
}

void
tls_conn_describe(const struct tls_conn *t, char *out, size_t out_size)
{
	bool ktls = BIO_get_ktls_send(SSL_get_wbio(t->ssl)) ||
	    BIO_get_ktls_recv(SSL_get_rbio(t->ssl));

	snprintf(out, out_size, "%s %s%s%s", SSL_get_version(t->ssl),
	    SSL_get_cipher_name(t->ssl),
	    SSL_session_reused(t->ssl) ? ", resumed" : "",
	    ktls ? ", kernel TLS" : "");
}

/* ---- beginning and end ---- */

/* As certificates have it: no dot at the end, no interface. */
static char *
host_copy(const char *host)
{
	char *copy = strdup(host), *percent;
	size_t n;

	if (copy == NULL)
		return NULL;
	n = strlen(copy);
	if (n > 1 && copy[n - 1] == '.')
		copy[n - 1] = '\0';
	if (strchr(copy, ':') != NULL && (percent = strchr(copy, '%')) != NULL)
		*percent = '\0';
	return copy;
}

/* Sets the name that the peer must have, and the one that we send. */
static int
conn_set_host(struct tls_conn *t, const char *host)
{
	X509_VERIFY_PARAM *param = SSL_get0_param(t->ssl);

	/* Without a name any certificate of the authority would do. */
	if (host == NULL || host[0] == '\0' ||
	    (t->host = host_copy(host)) == NULL)
		return -1;
	X509_VERIFY_PARAM_set_hostflags(param,
	    X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
	    X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (addr_host_is_number(t->host))
		return X509_VERIFY_PARAM_set1_ip_asc(param, t->host) == 1 ?
		    0 : -1;
	if (X509_VERIFY_PARAM_set1_host(param, t->host, 0) != 1)
		return -1;
	return SSL_set_tlsext_host_name(t->ssl, t->host) == 1 ? 0 : -1;
}

struct tls_conn *
tls_conn_new(struct tls_context *c, int fd, const char *host,
    const char *peer_text)
{
	struct tls_setup *setup = tls_context_setup(c);
	struct tls_conn *t;
	BIO *bio;

	ERR_clear_error();
	if ((t = calloc(1, sizeof(*t))) == NULL)
		return NULL;
	t->setup = tls_setup_ref(setup);
	t->fd = fd;
	if ((t->peer_text = strdup(peer_text)) == NULL ||
	    (t->ssl = SSL_new(setup->ssl)) == NULL ||
	    SSL_set_app_data(t->ssl, t) != 1 ||
	    (bio = tls_bio_new(t)) == NULL)
		goto fail;
	SSL_set_bio(t->ssl, bio, bio);
	if (setup->now != NULL)
		X509_VERIFY_PARAM_set_time(SSL_get0_param(t->ssl),
		    setup->now());
	if (setup->side == TLS_SERVER) {
		SSL_set_accept_state(t->ssl);
		return t;
	}
	SSL_set_connect_state(t->ssl);
	if (conn_set_host(t, host) != 0)
		goto fail;
	tls_sessions_offer(t);
	return t;

fail:
	ERR_clear_error();
	tls_conn_free(t);
	return NULL;
}

/*
 * A goodbye, unless half a record is in its way.  A cut connection is no fault
 * of its session, which OpenSSL would forget without it.
 */
static void
conn_goodbye(struct tls_conn *t)
{
	if (!tls_conn_is_open(t) || t->broken)
		return;
	ERR_clear_error();
	if (t->begun == NULL && t->end_errno == 0)
		(void)SSL_shutdown(t->ssl);
	SSL_set_shutdown(t->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	ERR_clear_error();
}

void
tls_conn_free(struct tls_conn *t)
{
	if (t == NULL)
		return;
	conn_goodbye(t);
	SSL_free(t->ssl);
	tls_identity_done(&t->identity);
	tls_setup_unref(t->setup);
	free(t->host);
	free(t->peer_text);
	free(t->error);
	free(t->begun);
	free(t);
}
