/*
 * Connections that do not come about, and what each side says about it.
 */
#include <errno.h>
#include <openssl/ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/transport/tls/tls_world.h"
#include "transport/tls/tls_internal.h"
#include "transport/tls/tls_setup.h"
#include "transport/tls/tls_text.h"

#define HOUR 3600

static void
says(const char *sentence, const char *part)
{
	const char *c;

	if (strstr(sentence, part) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", sentence, part);
	for (c = sentence; *c != '\0'; c++)
		assert_true(*c >= 0x20 && *c <= 0x7e);
}

static void
server_says(const struct tls_pair *p, const char *part)
{
	says(tls_conn_error(p->server), part);
}

static void
client_says(const struct tls_pair *p, const char *part)
{
	says(tls_conn_error(p->client), part);
}

/* Either names a file of a folder. */
static void
server_names(const struct tls_world *w, const struct tls_pair *p,
    const char *file)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", w->server_dir, file);
	server_says(p, path);
}

static void
client_names(const struct tls_world *w, const struct tls_pair *p,
    const char *file)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", w->client_dir, file);
	client_says(p, path);
}

/* Tries, and is refused. */
static void
refused(struct tls_world *w, struct tls_pair *p, const char *host)
{
	tls_pair_init(p, w->server, w->client, host);
	assert_false(tls_pair_shake(p));
}

/* ---- whom nobody believes ---- */

static void
a_client_of_another_authority_is_refused(void **state)
{
	struct tls_world *w = *state;
	struct fix_cert *other = fix_ca("Other CA");
	struct fix_cert *cert = fix_cert(other, &world_device);
	struct tls_pair p;

	tls_world_client_is(w, cert);
	refused(w, &p, "collector");
	server_says(&p, "the certificate \"device-7\" of 10.0.0.7:4711 (issued "
	    "by \"Other CA\") is not signed by anyone in ");
	server_names(w, &p, TLS_CA_FILE);
	server_says(&p, "`tributary cert issue`");
	client_says(&p, "collector:7443 does not believe our certificate ");
	client_names(w, &p, TLS_CERT_FILE);
	assert_string_equal(tls_conn_identity(p.server)->name, "");
	tls_pair_done(&p);
	fix_cert_free(cert);
	fix_cert_free(other);
}

static void
a_server_of_another_authority_is_refused(void **state)
{
	struct tls_world *w = *state;
	struct fix_cert *other = fix_ca("Other CA");
	struct tls_pair p;

	fix_write_certs(w->client_dir, TLS_CA_FILE, other, NULL, NULL);
	tls_world_reload(w->client);
	refused(w, &p, "collector");
	client_says(&p, "the certificate \"collector\" of collector:7443 "
	    "(issued by \"Test CA\") is not signed by anyone in ");
	client_names(w, &p, TLS_CA_FILE);
	server_says(&p, "10.0.0.7:4711 does not believe our certificate ");
	server_names(w, &p, TLS_CERT_FILE);
	tls_pair_done(&p);
	fix_cert_free(other);
}

static void
an_authority_of_the_same_name_is_another(void **state)
{
	struct tls_world *w = *state;
	struct fix_cert *other = fix_ca("Test CA");
	struct fix_cert *cert = fix_cert(other, &world_device);
	struct tls_pair p;

	tls_world_client_is(w, cert);
	refused(w, &p, "collector");
	server_names(w, &p, TLS_CA_FILE);
	server_says(&p, "is not signed by");
	tls_pair_done(&p);
	fix_cert_free(cert);
	fix_cert_free(other);
}

static void
a_certificate_signed_by_itself_is_refused(void **state)
{
	struct tls_world *w = *state;
	struct fix_cert *cert = fix_cert(NULL, &world_device);
	struct tls_pair p;

	tls_world_client_is(w, cert);
	refused(w, &p, "collector");
	server_says(&p, "is signed by itself, and is not in ");
	tls_pair_done(&p);
	fix_cert_free(cert);
}

/* ---- dates ---- */

/* The device's certificate, valid from .. to (0: as usual). */
static struct fix_cert *
dated(struct tls_world *w, const struct fix_wish *of, time_t from, time_t to)
{
	struct fix_wish wish = *of;

	wish.from = from;
	wish.to = to;
	return fix_cert(w->ca, &wish);
}

static void
an_expired_client_is_told_both_clocks(void **state)
{
	struct tls_world *w = *state;
	time_t then = time(NULL) - HOUR / 2;
	struct fix_cert *cert = dated(w, &world_device, 0, then);
	char text[TLS_TIME_SIZE], day[20];
	struct tls_pair p;

	tls_world_client_is(w, cert);
	refused(w, &p, "collector");
	server_says(&p, "the certificate \"device-7\" of 10.0.0.7:4711 expired "
	    "at ");
	server_says(&p, tls_text_time(then, text));
	tls_text_time(time(NULL), text);
	snprintf(day, sizeof(day), "says %.11s", text);
	server_says(&p, day);
	server_says(&p, "`tributary cert renew`");
	client_says(&p, "collector:7443 says that our certificate ");
	client_names(w, &p, TLS_CERT_FILE);
	client_says(&p, tls_text_time(then, text));
	client_says(&p, day);
	tls_pair_done(&p);
	fix_cert_free(cert);
}

static void
a_client_before_its_time_is_told_both_clocks(void **state)
{
	struct tls_world *w = *state;
	time_t then = time(NULL) + HOUR / 2;
	struct fix_cert *cert = dated(w, &world_device, then, 0);
	char text[TLS_TIME_SIZE];
	struct tls_pair p;

	tls_world_client_is(w, cert);
	refused(w, &p, "collector");
	server_says(&p, "is not valid before ");
	server_says(&p, tls_text_time(then, text));
	server_says(&p, ", and the clock here says ");
	client_names(w, &p, TLS_CERT_FILE);
	tls_pair_done(&p);
	fix_cert_free(cert);
}

static void
an_expired_server_is_refused(void **state)
{
	struct tls_world *w = *state;
	time_t then = time(NULL) - HOUR / 2;
	struct fix_cert *cert = dated(w, &world_collector, 0, then);
	char text[TLS_TIME_SIZE];
	struct tls_pair p;

	tls_world_server_is(w, cert);
	refused(w, &p, "collector");
	client_says(&p, "the certificate \"collector\" of collector:7443 "
	    "expired at ");
	client_says(&p, tls_text_time(then, text));
	server_says(&p, "10.0.0.7:4711 says that our certificate ");
	server_names(w, &p, TLS_CERT_FILE);
	server_says(&p, tls_text_time(then, text));
	tls_pair_done(&p);
	fix_cert_free(cert);
}

static void
an_expired_authority_is_named(void **state)
{
	struct fix_wish wish = { .cn = "Old CA", .is_ca = true,
		.to = time(NULL) - HOUR / 2 };
	struct tls_world *w = *state;
	struct fix_cert *old = fix_cert(NULL, &wish);
	struct fix_cert *cert = fix_cert(old, &world_device);
	struct tls_pair p;

	fix_write_certs(w->server_dir, TLS_CA_FILE, old, w->ca, NULL);
	tls_world_reload(w->server);
	tls_world_client_is(w, cert);
	refused(w, &p, "collector");
	server_says(&p, "the CA certificate \"Old CA\" above that of "
	    "10.0.0.7:4711 expired at ");
	tls_pair_done(&p);
	fix_cert_free(cert);
	fix_cert_free(old);
}

/* ---- names and purposes ---- */

static void
a_server_of_another_name_is_refused(void **state)
{
	struct tls_world *w = *state;
	struct tls_pair p;

	refused(w, &p, "collector.example.org");
	client_says(&p, "collector:7443 was asked for as "
	    "\"collector.example.org\", and its certificate \"collector\" is "
	    "for \"collector\", \"collector.lan\", \"127.0.0.1\", \"::1\": ");
	server_says(&p, "10.0.0.7:4711 refuses our certificate ");
	server_says(&p, "does not hold the name that was asked for");
	tls_pair_done(&p);
	refused(w, &p, "127.0.0.2");
	client_says(&p, "was asked for as \"127.0.0.2\"");
	tls_pair_done(&p);
}

static void
a_cn_is_no_host_name(void **state)
{
	struct fix_wish wish = { .cn = "collector", .eku = "serverAuth" };
	struct tls_world *w = *state;
	struct fix_cert *cert = fix_cert(w->ca, &wish);
	struct tls_pair p;

	tls_world_server_is(w, cert);
	refused(w, &p, "collector");
	client_says(&p, "holds no host name or address at all");
	tls_pair_done(&p);
	fix_cert_free(cert);
}

static void
a_device_cannot_pose_as_the_collector(void **state)
{
	struct fix_wish wish = world_collector;
	struct tls_world *w = *state;
	struct fix_cert *cert;
	struct tls_pair p;

	wish.eku = "clientAuth";
	cert = fix_cert(w->ca, &wish);
	tls_world_server_is(w, cert);
	refused(w, &p, "collector");
	client_says(&p, "is not for a server (extendedKeyUsage lacks "
	    "serverAuth)");
	server_says(&p, "10.0.0.7:4711 says that our certificate ");
	server_says(&p, "is not for a server (extendedKeyUsage has to hold "
	    "serverAuth)");
	tls_pair_done(&p);
	fix_cert_free(cert);
}

static void
a_collector_s_certificate_is_no_device_s(void **state)
{
	struct tls_world *w = *state;
	struct tls_pair p;

	tls_world_client_is(w, w->collector);
	refused(w, &p, "collector");
	server_says(&p, "is not for a client (extendedKeyUsage lacks "
	    "clientAuth)");
	client_says(&p, "is not for a client");
	client_names(w, &p, TLS_CERT_FILE);
	tls_pair_done(&p);
}

static void
refuses_names(struct tls_world *w, struct fix_wish wish, const char *part)
{
	struct fix_cert *cert;
	struct tls_pair p;

	wish.eku = "clientAuth";
	cert = fix_cert(w->ca, &wish);
	tls_world_client_is(w, cert);
	refused(w, &p, "collector");
	server_says(&p, "the certificate of 10.0.0.7:4711 ");
	server_says(&p, part);
	client_says(&p, "collector:7443 refuses the handshake");
	tls_pair_done(&p);
	fix_cert_free(cert);
}

static void
names_that_readers_take_differently_are_refused(void **state)
{
	static char longer[200];
	struct tls_world *w = *state;

	refuses_names(w, (struct fix_wish){ .cn = "admin\0.device",
	    .cn_len = 13 }, "a NUL or control character");
	refuses_names(w, (struct fix_wish){ .cn = "dev\nice" },
	    "a NUL or control character");
	refuses_names(w, (struct fix_wish){ .cn = "ok",
	    .sans = "URI:urn:a\x01z" }, "a NUL or control character");
	/* A CN holds 64 characters, but not every issuer counts bytes. */
	snprintf(longer, sizeof(longer), "DNS:%0140d", 7);
	refuses_names(w, (struct fix_wish){ .sans = longer },
	    "more than 127 bytes");
	refuses_names(w, (struct fix_wish){ .sans = "email:a@b" },
	    "has no name");
}

static void
what_a_certificate_says_is_escaped(void **state)
{
	struct fix_wish wish = { .cn = "a\"b\033[31m\n", .eku = "clientAuth" };
	struct tls_world *w = *state;
	struct fix_cert *other = fix_ca("\"CA\"\n");
	struct fix_cert *cert = fix_cert(other, &wish);
	struct tls_pair p;

	tls_world_client_is(w, cert);
	refused(w, &p, "collector");
	server_says(&p, "\"a\\x22b\\x1b[31m\\x0a\"");
	server_says(&p, "(issued by \"\\x22CA\\x22\\x0a\")");
	tls_pair_done(&p);
	fix_cert_free(cert);
	fix_cert_free(other);
}

/* ---- revocation ---- */

static void
a_revoked_client_is_refused(void **state)
{
	struct tls_world *w = *state;
	time_t since = time(NULL) - HOUR / 4;
	char text[TLS_TIME_SIZE];
	struct tls_pair p;

	fix_write_crl(w->server_dir, TLS_CRL_FILE, w->ca, w->device, since, 0);
	assert_true(tls_context_is_stale(w->server));
	tls_world_reload(w->server);
	refused(w, &p, "collector");
	server_says(&p, "the certificate \"device-7\" of 10.0.0.7:4711 (serial "
	    "number A002) is revoked since ");
	server_says(&p, tls_text_time(since, text));
	server_names(w, &p, TLS_CRL_FILE);
	client_says(&p, "collector:7443 says that our certificate ");
	client_names(w, &p, TLS_CERT_FILE);
	client_says(&p, " is revoked");
	tls_pair_done(&p);
}

static void
a_revoked_server_is_refused(void **state)
{
	struct tls_world *w = *state;
	struct tls_pair p;

	fix_write_crl(w->client_dir, TLS_CRL_FILE, w->ca, w->collector, 0, 0);
	tls_world_reload(w->client);
	refused(w, &p, "collector");
	client_says(&p, "the certificate \"collector\" of collector:7443 "
	    "(serial number A001) is revoked since ");
	client_names(w, &p, TLS_CRL_FILE);
	server_says(&p, "10.0.0.7:4711 says that our certificate ");
	server_says(&p, " is revoked");
	tls_pair_done(&p);
}

static void
a_revocation_list_hits_only_whom_it_names(void **state)
{
	struct tls_world *w = *state;
	struct fix_cert *other = fix_ca("Other CA");
	struct fix_cert *of_other = fix_cert(other, &world_device);
	struct tls_pair p;

	/* Of two authorities one publishes a list. */
	fix_write_certs(w->server_dir, TLS_CA_FILE, w->ca, other, NULL);
	fix_write_crl(w->server_dir, TLS_CRL_FILE, w->ca, w->device, 0, 0);
	tls_world_reload(w->server);
	refused(w, &p, "collector");
	tls_pair_done(&p);
	tls_world_client_is(w, of_other);
	tls_pair_init(&p, w->server, w->client, "collector");
	assert_true(tls_pair_shake(&p));
	tls_pair_done(&p);
	/* Another one of the same authority. */
	fix_cert_free(of_other);
	of_other = fix_cert(w->ca, &world_device);
	tls_world_client_is(w, of_other);
	tls_pair_init(&p, w->server, w->client, "collector");
	assert_true(tls_pair_shake(&p));
	tls_pair_done(&p);
	fix_cert_free(of_other);
	fix_cert_free(other);
}

static void
an_expired_revocation_list_lets_nobody_in(void **state)
{
	struct tls_world *w = *state;
	time_t until = time(NULL) - HOUR / 2;
	char text[TLS_TIME_SIZE];
	struct tls_pair p;

	fix_write_crl(w->server_dir, TLS_CRL_FILE, w->ca, NULL, 0, until);
	tls_world_reload(w->server);
	refused(w, &p, "collector");
	server_says(&p, "the revocation list ");
	server_names(w, &p, TLS_CRL_FILE);
	server_says(&p, " of \"Test CA\" was good until ");
	server_says(&p, tls_text_time(until, text));
	server_says(&p, "and the clock here says ");
	server_says(&p, "10.0.0.7:4711 is refused until then");
	client_says(&p, "or the revocation list it checks it with");
	tls_pair_done(&p);
}

static void
a_revocation_list_that_another_signed_lets_nobody_in(void **state)
{
	struct tls_world *w = *state;
	struct fix_cert *other = fix_ca("Test CA");
	struct tls_pair p;

	fix_write_crl(w->server_dir, TLS_CRL_FILE, other, NULL, 0, 0);
	tls_world_reload(w->server);
	refused(w, &p, "collector");
	server_names(w, &p, TLS_CRL_FILE);
	server_says(&p, "cannot be used (");
	tls_pair_done(&p);
	fix_cert_free(other);
}

/* Their issuer has published a list, but none that tells of all revoked. */
static void
a_list_of_some_of_the_revoked_lets_nobody_in(void **state)
{
	struct tls_world *w = *state;
	struct tls_pair p;

	fix_write_partial_crl(w->server_dir, TLS_CRL_FILE, w->ca);
	tls_world_reload(w->server);
	tls_pair_init(&p, w->server, w->client, "collector");
	if (tls_pair_shake(&p))
		fail_msg("a client got in though no revocation list covers "
		    "its issuer");
	server_names(w, &p, TLS_CRL_FILE);
	server_says(&p, "cannot be used (");
	tls_pair_done(&p);
}

/* ---- versions, ciphers, none at all ---- */

static void
a_client_without_a_certificate_is_refused(void **state)
{
	struct tls_world *w = *state;
	struct tls_pair p;

	tls_pair_init(&p, w->server, w->client, "collector");
	SSL_certs_clear(p.client->ssl);
	assert_false(tls_pair_shake(&p));
	server_says(&p, "10.0.0.7:4711 presented no certificate");
	client_says(&p, "collector:7443 demands a certificate and got none "
	    "from us");
	client_names(w, &p, TLS_CERT_FILE);
	tls_pair_done(&p);
}

static void
a_client_of_tls12_needs_a_setting(void **state)
{
	struct tls_world *w = *state;
	struct tls_pair p;
	char text[100];

	tls_world_allow_tls12(w, false, true);
	tls_pair_init(&p, w->server, w->client, "collector");
	SSL_set_max_proto_version(p.client->ssl, TLS1_2_VERSION);
	assert_false(tls_pair_shake(&p));
	server_says(&p, "10.0.0.7:4711 offers no TLS version that is allowed "
	    "here (1.3 only): update it, or allow TLS 1.2 (allow_tls_1_2)");
	client_says(&p, "collector:7443 knows none of the TLS versions that "
	    "are allowed here (1.2 and 1.3): update it");
	tls_pair_done(&p);

	tls_world_allow_tls12(w, true, true);
	tls_pair_init(&p, w->server, w->client, "collector");
	SSL_set_max_proto_version(p.client->ssl, TLS1_2_VERSION);
	assert_true(tls_pair_shake(&p));
	tls_conn_describe(p.server, text, sizeof(text));
	assert_string_equal(text, "TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384");
	assert_string_equal(tls_conn_identity(p.server)->name, "device-7");
	tls_pair_chat(&p);
	tls_pair_done(&p);
}

static void
a_server_of_tls12_needs_a_setting(void **state)
{
	struct tls_world *w = *state;
	struct tls_pair p;

	tls_world_allow_tls12(w, true, false);
	tls_pair_init(&p, w->server, w->client, "collector");
	SSL_set_max_proto_version(p.server->ssl, TLS1_2_VERSION);
	assert_false(tls_pair_shake(&p));
	client_says(&p, "collector:7443 knows none of the TLS versions that "
	    "are allowed here (1.3): update it, or allow TLS 1.2");
	tls_pair_done(&p);
}

static void
a_client_of_weak_ciphers_is_refused(void **state)
{
	struct tls_world *w = *state;
	struct tls_pair p;

	tls_world_allow_tls12(w, true, true);
	tls_pair_init(&p, w->server, w->client, "collector");
	SSL_set_max_proto_version(p.client->ssl, TLS1_2_VERSION);
	assert_int_equal(SSL_set_cipher_list(p.client->ssl,
	    "ECDHE-ECDSA-AES128-SHA"), 1);
	assert_false(tls_pair_shake(&p));
	server_says(&p, "10.0.0.7:4711 and this end share no cipher");
	client_says(&p, "collector:7443 refuses the handshake: it shares no "
	    "TLS version and cipher with us");
	tls_pair_done(&p);
}

/* ---- who does not speak TLS ---- */

/* A server hears these bytes instead of a handshake. */
static void
server_hears(struct tls_world *w, const void *bytes, size_t len, bool closed,
    const char *part)
{
	struct tls_pair p;

	tls_pair_init(&p, w->server, w->client, "collector");
	assert_int_equal(send(p.fd[1], bytes, len, 0), len);
	if (closed)
		assert_int_equal(shutdown(p.fd[1], SHUT_WR), 0);
	assert_int_equal(tls_conn_handshake(p.server), -1);
	assert_int_equal(tls_conn_handshake(p.server), -1);
	server_says(&p, "10.0.0.7:4711 ");
	server_says(&p, part);
	tls_pair_done(&p);
}

static void
client_hears(struct tls_world *w, const void *bytes, size_t len, bool closed,
    const char *part)
{
	struct tls_pair p;

	tls_pair_init(&p, w->server, w->client, "collector");
	assert_int_equal(tls_conn_handshake(p.client), 0);
	assert_int_equal(send(p.fd[0], bytes, len, 0), len);
	if (closed)
		assert_int_equal(shutdown(p.fd[0], SHUT_WR), 0);
	assert_int_equal(tls_conn_handshake(p.client), -1);
	client_says(&p, "collector:7443 ");
	client_says(&p, part);
	tls_pair_done(&p);
}

#define IPC_FRAME "\x14\x00\x00\x00\x10\x01\x1a\x10\x0a\x0eProducerPort"

static void
a_server_knows_who_speaks_no_tls(void **state)
{
	struct tls_world *w = *state;

	server_hears(w, IPC_FRAME, sizeof(IPC_FRAME) - 1, false,
	    "does not speak TLS, but Perfetto's plain protocol: have it "
	    "connect to tls://");
	server_hears(w, "GET / HTTP/1.1\r\n\r\n", 18, false,
	    "does not speak TLS, but HTTP");
	server_hears(w, "SSH-2.0-OpenSSH_9.2\r\n", 21, false, "but ssh");
	server_hears(w, "hello \033[1m there\n", 17, false,
	    "(it begins with \"hello \\x1b[1m");
	server_hears(w, "he", 2, true, "(it begins with \"he\")");
}

static void
a_server_knows_who_left(void **state)
{
	struct tls_world *w = *state;

	server_hears(w, "", 0, true, "closed the connection before it said "
	    "anything");
	server_hears(w, "\x16\x03\x01\x02\x00", 5, true,
	    "closed the connection in the middle of the TLS handshake");
}

static void
a_client_knows_who_speaks_no_tls(void **state)
{
	struct tls_world *w = *state;

	client_hears(w, IPC_FRAME, sizeof(IPC_FRAME) - 1, false,
	    "does not speak TLS, but Perfetto's plain protocol: that port is "
	    "without TLS");
	client_hears(w, "HTTP/1.1 400 Bad Request\r\n\r\n", 28, false,
	    "the port belongs to a web server");
	client_hears(w, "SSH-2.0-OpenSSH_9.2\r\n", 21, false,
	    "use an ssh:// address");
	client_hears(w, "", 0, true, "closed the connection instead of "
	    "answering in TLS");
}

static void
a_record_that_is_none_is_refused(void **state)
{
	struct tls_world *w = *state;

	server_hears(w, "\x16\x03\x01\xff\xff\x01\x00\x00\x00\x00\x00", 11,
	    false, "broke: ");
	/* A huge hello is not waited for. */
	server_hears(w, "\x16\x03\x01\x00\x04\x01\xff\xff\xff", 9, false,
	    "broke: ");
}

/* ---- the peer's own words ---- */

static void
every_alert_of_a_server_is_told_apart(void **state)
{
	static const struct {
		uint8_t alert;
		const char *says;
	} alerts[] = {
		{ SSL_AD_HANDSHAKE_FAILURE, "refuses the handshake" },
		{ SSL_AD_BAD_CERTIFICATE, "refuses our certificate" },
		{ SSL_AD_CERTIFICATE_UNKNOWN, "refuses our certificate" },
		{ SSL_AD_UNSUPPORTED_CERTIFICATE, "is not for a client" },
		{ SSL_AD_CERTIFICATE_REVOKED, "is revoked" },
		{ SSL_AD_CERTIFICATE_EXPIRED, "is not valid now" },
		{ SSL_AD_UNKNOWN_CA, "does not believe our certificate" },
		{ SSL_AD_ACCESS_DENIED, "does not let us in" },
		{ SSL_AD_PROTOCOL_VERSION, "none of the TLS versions" },
		{ SSL_AD_INSUFFICIENT_SECURITY, "refuses the handshake" },
		{ SSL_AD_CERTIFICATE_REQUIRED, "demands a certificate" },
		{ SSL_AD_UNRECOGNIZED_NAME, "does not know the name "
		    "\"collector\"" },
		{ SSL_AD_INTERNAL_ERROR, "internal error (alert 80)" },
		{ 250, "(alert 250)" },
	};
	struct tls_world *w = *state;
	uint8_t record[] = { 21, 3, 3, 0, 2, 2, 0 };
	size_t i;

	for (i = 0; i < sizeof(alerts) / sizeof(alerts[0]); i++) {
		record[6] = alerts[i].alert;
		client_hears(w, record, sizeof(record), false, alerts[i].says);
	}
}

static void
a_refusal_reaches_the_client_that_was_done(void **state)
{
	struct tls_world *w = *state;
	struct fix_cert *other = fix_ca("Other CA");
	struct fix_cert *cert = fix_cert(other, &world_device);
	struct tls_pair p;
	char byte;

	/* Its handshake is over before the server has seen who it is. */
	tls_world_client_is(w, cert);
	refused(w, &p, "collector");
	assert_int_equal(p.client_rc, 1);
	assert_int_equal(p.server_rc, -1);
	assert_int_equal(tls_pair_receive(p.client, &byte, 1), -1);
	assert_int_equal(errno, EPROTO);
	client_says(&p, "does not believe our certificate");
	tls_pair_done(&p);
	/* Also when it wrote into a connection that was closed meanwhile. */
	tls_pair_init(&p, w->server, w->client, "collector");
	assert_int_equal(tls_conn_handshake(p.client), 0);
	assert_int_equal(tls_conn_handshake(p.server), 0);
	assert_int_equal(tls_conn_handshake(p.client), 1);
	assert_int_equal(tls_conn_handshake(p.server), -1);
	tls_conn_free(p.server);
	p.server = NULL;
	close(p.fd[0]);
	p.fd[0] = -1;
	assert_int_equal(tls_pair_send(p.client, "hello", 5), -1);
	assert_int_equal(errno, EPIPE);
	assert_int_equal(tls_pair_receive(p.client, &byte, 1), -1);
	client_says(&p, "does not believe our certificate");
	tls_pair_done(&p);
	fix_cert_free(cert);
	fix_cert_free(other);
}

#define TEST(name)                                                             \
	cmocka_unit_test_setup_teardown(name, tls_world_setup,                 \
	    tls_world_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_client_of_another_authority_is_refused),
		TEST(a_server_of_another_authority_is_refused),
		TEST(an_authority_of_the_same_name_is_another),
		TEST(a_certificate_signed_by_itself_is_refused),
		TEST(an_expired_client_is_told_both_clocks),
		TEST(a_client_before_its_time_is_told_both_clocks),
		TEST(an_expired_server_is_refused),
		TEST(an_expired_authority_is_named),
		TEST(a_server_of_another_name_is_refused),
		TEST(a_cn_is_no_host_name),
		TEST(a_device_cannot_pose_as_the_collector),
		TEST(a_collector_s_certificate_is_no_device_s),
		TEST(names_that_readers_take_differently_are_refused),
		TEST(what_a_certificate_says_is_escaped),
		TEST(a_revoked_client_is_refused),
		TEST(a_revoked_server_is_refused),
		TEST(a_revocation_list_hits_only_whom_it_names),
		TEST(an_expired_revocation_list_lets_nobody_in),
		TEST(a_revocation_list_that_another_signed_lets_nobody_in),
		TEST(a_list_of_some_of_the_revoked_lets_nobody_in),
		TEST(a_client_without_a_certificate_is_refused),
		TEST(a_client_of_tls12_needs_a_setting),
		TEST(a_server_of_tls12_needs_a_setting),
		TEST(a_client_of_weak_ciphers_is_refused),
		TEST(a_server_knows_who_speaks_no_tls),
		TEST(a_server_knows_who_left),
		TEST(a_client_knows_who_speaks_no_tls),
		TEST(a_record_that_is_none_is_refused),
		TEST(every_alert_of_a_server_is_told_apart),
		TEST(a_refusal_reaches_the_client_that_was_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
