#include "transport/tls/tls_text.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "transport/base/log.h"
#include "transport/tls/tls_identity.h"

/* Room for a name of a certificate, escaped. */
#define NAME_TEXT 128
/* Names of a certificate that a sentence lists. */
#define NAMES_LISTED 5

/* A sentence being written; text without room is cut. */
struct sentence {
	char *out;
	size_t size;
	size_t at;
};

static void say(struct sentence *s, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void
say(struct sentence *s, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(s->out + s->at, s->size - s->at, fmt, ap);
	va_end(ap);
	if (n > 0)
		s->at += (size_t)n;
	if (s->at >= s->size)
		s->at = s->size - 1;
}

const char *
tls_text_time(time_t t, char out[TLS_TIME_SIZE])
{
	struct tm tm;

	if (gmtime_r(&t, &tm) == NULL ||
	    strftime(out, TLS_TIME_SIZE, "%Y-%m-%d %H:%M:%S UTC", &tm) == 0)
		snprintf(out, TLS_TIME_SIZE, "?");
	return out;
}

/* ---- names ---- */

/* The CN of a name, as it is stored; NULL: there is none. */
static const ASN1_STRING *
common_name(const X509_NAME *name)
{
	int at = X509_NAME_get_index_by_NID((X509_NAME *)name, NID_commonName,
	    -1);

	return at < 0 ? NULL :
	    X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
}

static const char *
text_of_string(const ASN1_STRING *s, char *out, size_t out_size)
{
	return log_escape(out, out_size, (const char *)ASN1_STRING_get0_data(s),
	    (size_t)ASN1_STRING_length(s));
}

static const char *
text_of_name(const X509_NAME *name, char *out, size_t out_size)
{
	const ASN1_STRING *cn = common_name(name);
	char line[256] = "";

	if (cn != NULL)
		return text_of_string(cn, out, out_size);
	X509_NAME_oneline(name, line, sizeof(line));
	return log_escape(out, out_size, line, strlen(line));
}

const char *
tls_text_name(const X509 *cert, char *out, size_t out_size)
{
	const X509_NAME *subject = X509_get_subject_name(cert);
	struct tls_identity id;
	const char *why;

	if (X509_NAME_entry_count(subject) > 0)
		return text_of_name(subject, out, out_size);
	snprintf(out, out_size, "without a name");
	if (tls_identity_init(&id, (X509 *)cert, &why) != 0)
		return out;
	if (id.name[0] != '\0')
		log_escape(out, out_size, id.name, strlen(id.name));
	else
		snprintf(out, out_size, "serial %s", id.serial);
	tls_identity_done(&id);
	return out;
}

static void
say_alternatives(struct sentence *s, const struct tls_identity *id)
{
	char name[NAME_TEXT];
	size_t i, n = id->n_alternatives;

	for (i = 0; i < n && i < NAMES_LISTED; i++)
		say(s, "%s\"%s\"", i > 0 ? ", " : "",
		    log_escape(name, sizeof(name), id->alternatives[i],
			strlen(id->alternatives[i])));
	if (n > i)
		say(s, " and %zu more", n - i);
}

/* ---- refusals of ours ---- */

/* "the certificate "x" of PEER", "the CA certificate "x" above that of PEER" */
static void
say_which(struct sentence *s, const struct tls_words *w, const X509 *cert,
    int depth)
{
	char name[NAME_TEXT];

	tls_text_name(cert, name, sizeof(name));
	if (depth == 0)
		say(s, "the certificate \"%s\" of %s", name, w->peer);
	else
		say(s, "the CA certificate \"%s\" above that of %s", name,
		    w->peer);
}

static void
say_not_ours(struct sentence *s, const struct tls_words *w, int error,
    const X509 *cert, int depth)
{
	char issuer[NAME_TEXT];

	say_which(s, w, cert, depth);
	text_of_name(X509_get_issuer_name(cert), issuer, sizeof(issuer));
	if (error == X509_V_ERR_CERT_SIGNATURE_FAILURE)
		say(s, " is not signed by the \"%s\" of %s, but by another of "
		    "that name", issuer, w->ca);
	else if (error == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT)
		say(s, " is signed by itself, and is not in %s", w->ca);
	else
		say(s, " (issued by \"%s\") is not signed by anyone in %s",
		    issuer, w->ca);
	if (w->side == TLS_SERVER)
		say(s, ": give it one that our CA issued (`tributary cert "
		    "issue`), or add its CA to that file");
	else
		say(s, ": if this is the right machine, put the ca.pem of its "
		    "CA there");
}

static void
say_dates(struct sentence *s, const struct tls_words *w, bool expired,
    const X509 *cert, int depth)
{
	char then[TLS_TIME_SIZE], here[TLS_TIME_SIZE];

	say_which(s, w, cert, depth);
	tls_text_time(tls_identity_time(expired ? X509_get0_notAfter(cert) :
	    X509_get0_notBefore(cert)), then);
	say(s, " %s %s, and the clock here says %s: ",
	    expired ? "expired at" : "is not valid before", then,
	    tls_text_time(w->now, here));
	if (expired)
		say(s, "renew it (`tributary cert renew`), or set the clock "
		    "of this machine if it is wrong");
	else
		say(s, "set the clock of this machine, or of the one that "
		    "issued the certificate");
}

static void
say_other_host(struct sentence *s, const struct tls_words *w, X509 *cert)
{
	char asked[NAME_TEXT], name[NAME_TEXT];
	struct tls_identity id;
	const char *why;

	log_escape(asked, sizeof(asked), w->host, strlen(w->host));
	say(s, "%s was asked for as \"%s\", and its certificate \"%s\" ",
	    w->peer, asked, tls_text_name(cert, name, sizeof(name)));
	if (tls_identity_init(&id, cert, &why) != 0) {
		say(s, "%s", why);
	} else if (id.n_alternatives == 0) {
		say(s, "holds no host name or address at all (subject "
		    "alternative name)");
		tls_identity_done(&id);
	} else {
		say(s, "is for ");
		say_alternatives(s, &id);
		tls_identity_done(&id);
	}
	say(s, ": use a name that it holds, or issue it one that holds this "
	    "name");
}

static void
say_revoked(struct sentence *s, const struct tls_words *w, X509 *cert,
    int depth, X509_CRL *crl)
{
	char then[TLS_TIME_SIZE];
	struct tls_identity id;
	X509_REVOKED *entry;
	const char *why;

	say_which(s, w, cert, depth);
	if (tls_identity_init(&id, cert, &why) == 0) {
		say(s, " (serial number %s)", id.serial);
		tls_identity_done(&id);
	}
	say(s, " is revoked");
	if (crl != NULL && X509_CRL_get0_by_cert(crl, &entry, cert) == 1)
		say(s, " since %s", tls_text_time(tls_identity_time(
		    X509_REVOKED_get0_revocationDate(entry)), then));
	say(s, ", says %s: if it is to be let in again, issue it a new one",
	    w->crl != NULL ? w->crl : "the revocation list");
}

static void
say_crl_dates(struct sentence *s, const struct tls_words *w, bool expired,
    const X509_CRL *crl)
{
	char then[TLS_TIME_SIZE], here[TLS_TIME_SIZE], issuer[NAME_TEXT];
	const ASN1_TIME *t = NULL;

	snprintf(issuer, sizeof(issuer), "?");
	if (crl != NULL) {
		t = expired ? X509_CRL_get0_nextUpdate(crl) :
		    X509_CRL_get0_lastUpdate(crl);
		text_of_name(X509_CRL_get_issuer(crl), issuer, sizeof(issuer));
	}
	say(s, "the revocation list %s of \"%s\" %s %s, and the clock here "
	    "says %s: put a new one there (`tributary cert`), or set the "
	    "clock of this machine; %s is refused until then",
	    w->crl != NULL ? w->crl : "?", issuer,
	    expired ? "was good until" : "is good only from",
	    tls_text_time(tls_identity_time(t), then),
	    tls_text_time(w->now, here), w->peer);
}

static void
say_crl_useless(struct sentence *s, const struct tls_words *w, int error)
{
	say(s, "%s is refused: the revocation list %s cannot be used (%s): "
	    "make a new one with the key of the CA in %s", w->peer,
	    w->crl != NULL ? w->crl : "?", X509_verify_cert_error_string(error),
	    w->ca);
}

static void
say_purpose(struct sentence *s, const struct tls_words *w, const X509 *cert,
    int depth)
{
	bool peer_is_server = w->side == TLS_CLIENT;

	say_which(s, w, cert, depth);
	if (depth > 0)
		say(s, " is not one of a CA (basicConstraints, keyUsage)");
	else
		say(s, " is not for a %s (extendedKeyUsage lacks %s): %s",
		    peer_is_server ? "server" : "client",
		    peer_is_server ? "serverAuth" : "clientAuth",
		    peer_is_server ? "a device's certificate cannot be a "
		    "collector's; check which program answers there" :
		    "issue it one as a device (`tributary cert issue`)");
}

void
tls_text_refused(const struct tls_words *w, const struct tls_refusal *r,
    char *out, size_t out_size)
{
	struct sentence s = { out, out_size, 0 };
	X509 *cert = r->cert;
	int error = r->error, depth = r->depth;

	switch (error) {
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_CERT_SIGNATURE_FAILURE:
	case X509_V_ERR_CERT_UNTRUSTED:
		say_not_ours(&s, w, error, cert, depth);
		return;
	case X509_V_ERR_CERT_HAS_EXPIRED:
	case X509_V_ERR_CERT_NOT_YET_VALID:
		say_dates(&s, w, error == X509_V_ERR_CERT_HAS_EXPIRED, cert,
		    depth);
		return;
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		say_other_host(&s, w, cert);
		return;
	case X509_V_ERR_CERT_REVOKED:
		say_revoked(&s, w, cert, depth, r->crl);
		return;
	case X509_V_ERR_CRL_HAS_EXPIRED:
	case X509_V_ERR_CRL_NOT_YET_VALID:
		say_crl_dates(&s, w, error == X509_V_ERR_CRL_HAS_EXPIRED,
		    r->crl);
		return;
	case X509_V_ERR_UNABLE_TO_GET_CRL:
	case X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER:
	case X509_V_ERR_CRL_SIGNATURE_FAILURE:
	case X509_V_ERR_KEYUSAGE_NO_CRL_SIGN:
		say_crl_useless(&s, w, error);
		return;
	case X509_V_ERR_INVALID_PURPOSE:
	case X509_V_ERR_INVALID_CA:
	case X509_V_ERR_KEYUSAGE_NO_CERTSIGN:
		say_purpose(&s, w, cert, depth);
		return;
	default:
		say_which(&s, w, cert, depth);
		say(&s, " is refused (%s): issue a new one",
		    X509_verify_cert_error_string(error));
	}
}

void
tls_text_bad_name(const struct tls_words *w, const char *why, char *out,
    size_t out_size)
{
	struct sentence s = { out, out_size, 0 };

	say(&s, "the certificate of %s %s: issue it a new one", w->peer, why);
}

/* ---- refusals of the peer ---- */

/* The dates of our certificate beside our clock. */
static void
say_own_dates(struct sentence *s, const struct tls_words *w)
{
	char from[TLS_TIME_SIZE], to[TLS_TIME_SIZE], here[TLS_TIME_SIZE];

	say(s, "it is valid from %s to %s, and the clock here says %s",
	    tls_text_time(w->own_not_before, from),
	    tls_text_time(w->own_not_after, to), tls_text_time(w->now, here));
}

static void
say_alert(struct sentence *s, const struct tls_words *w, int alert)
{
	switch (alert) {
	case SSL_AD_UNKNOWN_CA:
		say(s, "%s does not believe our certificate %s: no CA in its "
		    "CA file has signed it; add our CA there, or get a "
		    "certificate from a CA that it knows", w->peer, w->cert);
		return;
	case SSL_AD_CERTIFICATE_EXPIRED:
		say(s, "%s says that our certificate %s, or the revocation "
		    "list it checks it with, is not valid now; ", w->peer,
		    w->cert);
		say_own_dates(s, w);
		say(s, ": renew it, or set the clock that is wrong");
		return;
	case SSL_AD_CERTIFICATE_REVOKED:
		say(s, "%s says that our certificate %s is revoked: have a new "
		    "one issued", w->peer, w->cert);
		return;
	case SSL_AD_CERTIFICATE_REQUIRED:
		say(s, "%s demands a certificate and got none from us: is %s "
		    "one that it can use?", w->peer, w->cert);
		return;
	case SSL_AD_UNSUPPORTED_CERTIFICATE:
		say(s, "%s says that our certificate %s is not for a %s "
		    "(extendedKeyUsage has to hold %s): have one issued that "
		    "is", w->peer, w->cert,
		    w->side == TLS_SERVER ? "server" : "client",
		    w->side == TLS_SERVER ? "serverAuth" : "clientAuth");
		return;
	case SSL_AD_BAD_CERTIFICATE:
	case SSL_AD_CERTIFICATE_UNKNOWN:
		say(s, "%s refuses our certificate %s%s; ", w->peer, w->cert,
		    w->side == TLS_SERVER ?
		    ", probably because it does not hold the name that was "
		    "asked for" : "");
		say_own_dates(s, w);
		say(s, ": the log of the other end says more");
		return;
	case SSL_AD_PROTOCOL_VERSION:
		say(s, "%s knows none of the TLS versions that are allowed "
		    "here (%s): ", w->peer,
		    w->allow_tls12 ? "1.2 and 1.3" : "1.3");
		say(s, w->allow_tls12 ? "update it" :
		    "update it, or allow TLS 1.2 (allow_tls_1_2) at this end");
		return;
	case SSL_AD_HANDSHAKE_FAILURE:
	case SSL_AD_INSUFFICIENT_SECURITY:
		say(s, "%s refuses the handshake: it shares no TLS version and "
		    "cipher with us, or does not take our certificate %s; the "
		    "log of the other end says which", w->peer, w->cert);
		return;
	case SSL_AD_ACCESS_DENIED:
		say(s, "%s knows our certificate %s and does not let us in: "
		    "it has not the role for this port", w->peer,
		    w->cert);
		return;
	case SSL_AD_UNRECOGNIZED_NAME:
		say(s, "%s does not know the name \"%s\": use one that its "
		    "certificate holds", w->peer,
		    w->host != NULL ? w->host : "");
		return;
	default:
		say(s, "%s ended the TLS connection: %s (alert %d); the log of "
		    "the other end says more", w->peer,
		    SSL_alert_desc_string_long(alert), alert);
	}
}

void
tls_text_alert(const struct tls_words *w, int alert, char *out, size_t out_size)
{
	struct sentence s = { out, out_size, 0 };

	say_alert(&s, w, alert);
}

/* ---- errors of OpenSSL ---- */

static void
say_version(struct sentence *s, const struct tls_words *w)
{
	if (w->allow_tls12)
		say(s, "%s offers no TLS version that is allowed here (1.2 and "
		    "1.3): update it", w->peer);
	else
		say(s, "%s offers no TLS version that is allowed here (1.3 "
		    "only): update it, or allow TLS 1.2 (allow_tls_1_2) at "
		    "this end", w->peer);
}

void
tls_text_reason(const struct tls_words *w, int reason, const char *detail,
    char *out, size_t out_size)
{
	struct sentence s = { out, out_size, 0 };

	switch (reason) {
	case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
		say(&s, "%s presented no certificate, and no peer gets in here "
		    "without: give it one (`tributary cert issue`, --tls-dir)",
		    w->peer);
		return;
	case SSL_R_UNSUPPORTED_PROTOCOL:
	case SSL_R_UNKNOWN_PROTOCOL:
	case SSL_R_WRONG_SSL_VERSION:
	case SSL_R_WRONG_VERSION_NUMBER:
	case SSL_R_VERSION_TOO_LOW:
	case SSL_R_NO_PROTOCOLS_AVAILABLE:
	case SSL_R_INAPPROPRIATE_FALLBACK:
		say_version(&s, w);
		return;
	case SSL_R_NO_SHARED_CIPHER:
	case SSL_R_NO_CIPHERS_AVAILABLE:
	case SSL_R_WRONG_CIPHER_RETURNED:
	case SSL_R_NO_SUITABLE_KEY_SHARE:
	case SSL_R_NO_SUITABLE_GROUPS:
	case SSL_R_NO_SHARED_GROUPS:
		say(&s, "%s and this end share no cipher (here: ECDHE with "
		    "AES-GCM or ChaCha20-Poly1305, nothing weaker): update it, "
		    "or have its settings allow one of these", w->peer);
		return;
	case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
	case SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
		say(&s, "%s cannot use the key of our certificate %s: issue "
		    "one with an ECDSA P-256 key", w->peer, w->cert);
		return;
	default:
		say(&s, "the TLS connection with %s broke: %s", w->peer,
		    detail != NULL ? detail : "unknown reason");
	}
}

/* ---- bytes that are not TLS ---- */

bool
tls_text_is_tls(const uint8_t *head, size_t n)
{
	/* A record: its type (change cipher .. heartbeat), version 3.x. */
	return n > 0 && head[0] >= 20 && head[0] <= 24 &&
	    (n < 2 || head[1] == 3);
}

static bool
begins(const uint8_t *head, size_t n, const char *with)
{
	size_t len = strlen(with);

	return n >= len && memcmp(head, with, len) == 0;
}

/* A frame of Perfetto's protocol: its length, then a field of an IPCFrame. */
static bool
is_ipc_frame(const uint8_t *head, size_t n)
{
	return n >= 5 && head[2] < 2 && head[3] == 0 &&
	    (head[0] | head[1] | head[2]) != 0 && (head[4] & 7) <= 2 &&
	    head[4] >= 0x10;
}

void
tls_text_not_tls(const struct tls_words *w, const uint8_t *head, size_t n,
    char *out, size_t out_size)
{
	struct sentence s = { out, out_size, 0 };
	bool server = w->side == TLS_SERVER;
	char first[4 * 16 + 4];

	say(&s, "%s does not speak TLS", w->peer);
	if (begins(head, n, "HTTP/") || begins(head, n, "GET ") ||
	    begins(head, n, "POST ") || begins(head, n, "HEAD ") ||
	    begins(head, n, "PUT ") || begins(head, n, "CONNECT "))
		say(&s, ", but HTTP: %s", server ? "no browser gets in here" :
		    "the port belongs to a web server");
	else if (begins(head, n, "SSH-"))
		say(&s, ", but ssh: %s", server ? "the port is no ssh server" :
		    "use an ssh:// address");
	else if (is_ipc_frame(head, n))
		say(&s, ", but Perfetto's plain protocol: %s", server ?
		    "have it connect to tls://, with a certificate" :
		    "that port is without TLS");
	else
		say(&s, " (it begins with \"%s\"): %s",
		    log_escape(first, sizeof(first), (const char *)head, n),
		    server ? "have it connect to tls://" :
		    "check the address and the port");
}

void
tls_text_left(const struct tls_words *w, int error, bool heard, char *out,
    size_t out_size)
{
	struct sentence s = { out, out_size, 0 };
	bool server = w->side == TLS_SERVER;

	if (error != 0 && error != ECONNRESET && error != EPIPE) {
		say(&s, "the connection with %s broke during the TLS "
		    "handshake: %s", w->peer, strerror(error));
		return;
	}
	say(&s, "%s %s", w->peer, error == 0 ? "closed the connection" :
	    "cut the connection");
	if (heard)
		say(&s, " in the middle of the TLS handshake: its log says "
		    "why");
	else if (server)
		say(&s, " before it said anything (a port scan, a health "
		    "check, or a client that changed its mind)");
	else
		say(&s, " instead of answering in TLS: is that a port without "
		    "TLS, or does it refuse this address?");
}
