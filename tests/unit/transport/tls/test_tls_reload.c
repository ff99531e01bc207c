/*
 * What changes while connections live: files, and sessions that are resumed.
 */
#include <errno.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/transport/tls/tls_world.h"
#include "transport/socket/roles.h"
#include "transport/tls/tls_internal.h"
#include "transport/tls/tls_sessions.h"
#include "transport/tls/tls_setup.h"

#define HOUR 3600

static time_t clock_shift;

static time_t
shifted_clock(void)
{
	return time(NULL) + clock_shift;
}

static void
says(const char *sentence, const char *part)
{
	if (strstr(sentence, part) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", sentence, part);
}

/* A handshake and a byte each way; whether it resumed a session. */
static bool
connects(struct tls_world *w, const char *host)
{
	struct tls_pair p;
	char server[100], client[100];
	bool resumed;

	tls_pair_init(&p, w->server, w->client, host);
	if (!tls_pair_shake(&p))
		fail_msg("%s / %s", tls_conn_error(p.server),
		    tls_conn_error(p.client));
	assert_string_equal(tls_conn_identity(p.server)->name, "device-7");
	assert_int_equal(tls_conn_identity(p.server)->roles, ROLE_PRODUCER);
	assert_string_equal(tls_conn_identity(p.server)->serial, "A002");
	assert_int_equal(tls_conn_identity(p.server)->n_alternatives, 2);
	assert_string_equal(tls_conn_identity(p.client)->name, "collector");
	tls_conn_describe(p.server, server, sizeof(server));
	tls_conn_describe(p.client, client, sizeof(client));
	assert_string_equal(server, client);
	resumed = strstr(server, ", resumed") != NULL;
	tls_pair_chat(&p);
	tls_pair_done(&p);
	return resumed;
}

static void
is_refused(struct tls_world *w, const char *part)
{
	struct tls_pair p;

	tls_pair_init(&p, w->server, w->client, "collector");
	assert_false(tls_pair_shake(&p));
	says(tls_conn_error(p.server), part);
	tls_pair_done(&p);
}

/* ---- reading anew ---- */

static void
a_reload_leaves_connections_alone(void **state)
{
	struct tls_world *w = *state;
	struct fix_cert *other = fix_ca("Other CA");
	struct fix_cert *theirs = fix_cert(other, &world_collector);
	struct tls_pair before, after;

	tls_pair_init(&before, w->server, w->client, "collector");
	assert_true(tls_pair_shake(&before));
	fix_write_certs(w->server_dir, TLS_CA_FILE, other, NULL, NULL);
	tls_world_server_is(w, theirs);
	tls_pair_chat(&before);
	/* Newcomers meet the new files. */
	tls_pair_init(&after, w->server, w->client, "collector");
	assert_false(tls_pair_shake(&after));
	says(tls_conn_error(after.client), "issued by \"Other CA\"");
	tls_pair_done(&after);
	tls_pair_chat(&before);
	assert_string_equal(tls_conn_identity(before.server)->name, "device-7");
	/* Also when the context is gone. */
	tls_context_free(w->server);
	tls_context_free(w->client);
	w->server = w->client = NULL;
	tls_pair_chat(&before);
	tls_pair_done(&before);
	fix_cert_free(theirs);
	fix_cert_free(other);
}

static void
a_reload_in_the_middle_of_a_handshake_does_not_matter(void **state)
{
	struct tls_world *w = *state;
	struct tls_pair p;

	tls_pair_init(&p, w->server, w->client, "collector");
	assert_int_equal(tls_conn_handshake(p.client), 0);
	assert_int_equal(tls_conn_handshake(p.server), 0);
	tls_world_reload(w->server);
	tls_world_reload(w->client);
	assert_true(tls_pair_shake(&p));
	tls_pair_chat(&p);
	tls_pair_done(&p);
}

/* One file is broken: what is said, what goes on, and what is stale. */
static void
broken(struct tls_world *w, const char *file, const char *text,
    const char *part)
{
	char err[TLS_ERROR_SIZE] = "", path[300];

	snprintf(path, sizeof(path), "%s/%s", w->server_dir, file);
	assert_false(tls_context_is_stale(w->server));
	if (text != NULL)
		fix_write_text(w->server_dir, file, text);
	else
		assert_int_equal(unlink(path), 0);
	assert_true(tls_context_is_stale(w->server));
	assert_int_equal(tls_context_reload(w->server, err, sizeof(err)), -1);
	says(err, path);
	says(err, part);
	/* It is tried once, and the old files serve on. */
	assert_false(tls_context_is_stale(w->server));
	connects(w, "collector");
}

static void
a_broken_file_leaves_the_old_ones_in_force(void **state)
{
	struct tls_world *w = *state;

	broken(w, TLS_CA_FILE, "no PEM", "there is no certificate");
	broken(w, TLS_CA_FILE, "-----BEGIN CERTIFICATE-----\nAAAA\n"
	    "-----END CERTIFICATE-----\n", "not a PEM file of certificates");
	broken(w, TLS_CA_FILE, NULL, "No such file or directory");
	fix_write_certs(w->server_dir, TLS_CA_FILE, w->ca, NULL, NULL);
	tls_world_reload(w->server);
	broken(w, TLS_CERT_FILE, "", "there is no certificate");
	broken(w, TLS_CERT_FILE, "-----BEGIN CERTIFICATE-----\n", "not a PEM");
	fix_write_certs(w->server_dir, TLS_CERT_FILE, w->collector, NULL, NULL);
	tls_world_reload(w->server);
	broken(w, TLS_KEY_FILE, "nothing", "there is no private key");
	fix_write_key(w->server_dir, TLS_KEY_FILE, w->collector);
	tls_world_reload(w->server);
	broken(w, TLS_CRL_FILE, "-----BEGIN X509 CRL-----\nAA==\n"
	    "-----END X509 CRL-----\n", "not a PEM file of revocation lists");
	broken(w, TLS_CRL_FILE, "nothing", "there is no revocation list");
	assert_int_equal(chdir(w->server_dir), 0);
	assert_int_equal(unlink(TLS_CRL_FILE), 0);
	assert_int_equal(chdir("/"), 0);
	assert_true(tls_context_is_stale(w->server));
	tls_world_reload(w->server);
}

static void
a_key_of_another_certificate_is_refused(void **state)
{
	struct tls_world *w = *state;
	char err[TLS_ERROR_SIZE];

	fix_write_key(w->server_dir, TLS_KEY_FILE, w->device);
	assert_int_equal(tls_context_reload(w->server, err, sizeof(err)), -1);
	says(err, TLS_KEY_FILE " does not belong to the certificate ");
	says(err, "/" TLS_CERT_FILE);
	connects(w, "collector");
}

static void
a_key_under_a_passphrase_is_refused_without_asking(void **state)
{
	struct tls_world *w = *state;
	BIO *out = BIO_new(BIO_s_mem());
	char err[TLS_ERROR_SIZE], *bytes;
	long len;

	assert_int_equal(PEM_write_bio_PrivateKey(out, w->collector->key,
	    EVP_aes_256_cbc(), (const unsigned char *)"secret", 6, NULL, NULL),
	    1);
	len = BIO_get_mem_data(out, &bytes);
	fix_write(w->server_dir, TLS_KEY_FILE, bytes, (size_t)len);
	BIO_free(out);
	assert_int_equal(tls_context_reload(w->server, err, sizeof(err)), -1);
	says(err, TLS_KEY_FILE ": the key is protected by a passphrase");
	connects(w, "collector");
}

static void
a_weak_key_is_refused(void **state)
{
	struct fix_wish wish = world_collector;
	struct tls_world *w = *state;
	char err[TLS_ERROR_SIZE];
	struct fix_cert *weak;

	wish.rsa_bits = 1024;
	weak = fix_cert(w->ca, &wish);
	fix_write_certs(w->server_dir, TLS_CERT_FILE, weak, NULL, NULL);
	fix_write_key(w->server_dir, TLS_KEY_FILE, weak);
	assert_int_equal(tls_context_reload(w->server, err, sizeof(err)), -1);
	says(err, TLS_CERT_FILE ": the certificate cannot be used: ");
	says(err, "key too small");
	fix_cert_free(weak);
}

static void
files_are_chosen_one_by_one(void **state)
{
	struct tls_world *w = *state;
	struct tls_options o = { .side = TLS_SERVER };
	char err[TLS_ERROR_SIZE], path[4][300];
	struct tls_context *c;
	int i;

	assert_null(tls_context_new(&o, err, sizeof(err)));
	says(err, "TLS needs a CA file: name it, or a directory that holds "
	    "ca.pem");
	snprintf(path[0], 300, "%s/%s", w->server_dir, TLS_CA_FILE);
	snprintf(path[1], 300, "%s/%s", w->server_dir, TLS_CERT_FILE);
	snprintf(path[2], 300, "%s/%s", w->server_dir, TLS_KEY_FILE);
	snprintf(path[3], 300, "%s/%s", w->server_dir, TLS_CRL_FILE);
	o.ca = path[0];
	o.cert = path[1];
	o.key = path[2];
	c = tls_context_new(&o, err, sizeof(err));
	assert_non_null(c);
	tls_context_free(c);
	/* A list that is named has to be there. */
	o.crl = path[3];
	assert_null(tls_context_new(&o, err, sizeof(err)));
	says(err, path[3]);
	says(err, "No such file");
	/* A single file stands for that of the directory. */
	o = (struct tls_options){ .side = TLS_SERVER, .dir = w->client_dir,
		.cert = path[1], .key = path[2] };
	c = tls_context_new(&o, err, sizeof(err));
	assert_non_null(c);
	tls_context_free(c);
	o = (struct tls_options){ .side = TLS_SERVER, .dir = "/nowhere" };
	assert_null(tls_context_new(&o, err, sizeof(err)));
	says(err, "/nowhere/ca.pem: No such file");
	o.dir = w->server_dir;
	o.key = "/dev/null";
	assert_null(tls_context_new(&o, err, sizeof(err)));
	says(err, "/dev/null is no regular file");
	for (i = 0; i < 3; i++)
		assert_int_equal(access(path[i], R_OK), 0);
}

static void
a_delta_list_is_not_taken_for_a_complete_one(void **state)
{
	struct tls_world *w = *state;
	char err[TLS_ERROR_SIZE];

	fix_write_delta_crl(w->server_dir, TLS_CRL_FILE, w->ca);
	assert_int_equal(tls_context_reload(w->server, err, sizeof(err)), -1);
	says(err, TLS_CRL_FILE ": there is a delta list in this file");
}

static void
a_swapped_link_is_a_change(void **state)
{
	struct tls_world *w = *state;
	struct fix_cert *newer = fix_cert(w->ca, &world_collector);
	char *other = fix_side(w->ca, newer), *top = fix_dir();
	char link[300], next[300], err[TLS_ERROR_SIZE];
	struct tls_options o = { .side = TLS_SERVER };
	struct tls_pair p;

	snprintf(link, sizeof(link), "%s/data", top);
	snprintf(next, sizeof(next), "%s/next", top);
	assert_int_equal(symlink(w->server_dir, link), 0);
	o.dir = link;
	tls_context_free(w->server);
	w->server = tls_context_new(&o, err, sizeof(err));
	assert_non_null(w->server);
	assert_false(tls_context_is_stale(w->server));
	/* As a cluster publishes secrets: one rename for all the files. */
	assert_int_equal(symlink(other, next), 0);
	assert_int_equal(rename(next, link), 0);
	assert_true(tls_context_is_stale(w->server));
	tls_world_reload(w->server);
	assert_false(tls_context_is_stale(w->server));
	tls_pair_init(&p, w->server, w->client, "collector");
	assert_true(tls_pair_shake(&p));
	assert_string_equal(tls_conn_identity(p.client)->serial, "A003");
	tls_pair_done(&p);
	fix_dir_free(top);
	fix_dir_free(other);
	fix_cert_free(newer);
}

/* ---- sessions ---- */

static void
the_second_connection_resumes_and_knows_the_peer(void **state)
{
	struct tls_world *w = *state;

	assert_false(connects(w, "collector"));
	assert_true(connects(w, "collector"));
	assert_true(connects(w, "collector"));
	/* Another name is another session. */
	assert_false(connects(w, "collector.lan"));
	assert_true(connects(w, "collector.lan"));
	assert_true(connects(w, "collector"));
}

static void
tls12_resumes_too(void **state)
{
	struct tls_world *w = *state;
	struct tls_options s = { .side = TLS_SERVER, .dir = w->server_dir,
		.allow_tls12 = true };
	struct tls_options c = { .side = TLS_CLIENT, .dir = w->client_dir,
		.allow_tls12 = true };
	char err[TLS_ERROR_SIZE];

	tls_context_free(w->server);
	tls_context_free(w->client);
	w->server = tls_context_new(&s, err, sizeof(err));
	w->client = tls_context_new(&c, err, sizeof(err));
	SSL_CTX_set_max_proto_version(tls_context_setup(w->client)->ssl,
	    TLS1_2_VERSION);
	assert_false(connects(w, "collector"));
	assert_true(connects(w, "collector"));
	tls_world_reload(w->server);
	assert_false(connects(w, "collector"));
	assert_true(connects(w, "collector"));
}

static void
after_a_reload_everybody_is_verified_anew(void **state)
{
	struct tls_world *w = *state;

	assert_false(connects(w, "collector"));
	assert_true(connects(w, "collector"));
	tls_world_reload(w->server);
	/* The refused session is forgotten, the next one is kept. */
	assert_false(connects(w, "collector"));
	assert_true(connects(w, "collector"));
	tls_world_reload(w->client);
	assert_false(connects(w, "collector"));
	assert_true(connects(w, "collector"));
}

static void
a_revoked_peer_does_not_resume(void **state)
{
	struct tls_world *w = *state;

	assert_false(connects(w, "collector"));
	assert_true(connects(w, "collector"));
	fix_write_crl(w->server_dir, TLS_CRL_FILE, w->ca, w->device, 0, 0);
	tls_world_reload(w->server);
	is_refused(w, "is revoked");
}

static void
a_list_that_is_lost_still_revokes(void **state)
{
	struct tls_world *w = *state;
	char path[300], err[TLS_ERROR_SIZE];

	fix_write_crl(w->server_dir, TLS_CRL_FILE, w->ca, w->device, 0, 0);
	tls_world_reload(w->server);
	is_refused(w, "is revoked");
	snprintf(path, sizeof(path), "%s/%s", w->server_dir, TLS_CRL_FILE);
	assert_int_equal(unlink(path), 0);
	assert_true(tls_context_is_stale(w->server));
	assert_int_equal(tls_context_reload(w->server, err, sizeof(err)), -1);
	says(err, "crl.pem: No such file");
	/* It is told once, not at every look. */
	assert_false(tls_context_is_stale(w->server));
	is_refused(w, "is revoked");
}

static void
a_peer_that_expired_meanwhile_does_not_resume(void **state)
{
	struct fix_wish wish = world_device;
	struct tls_world *w = *state;
	struct fix_cert *cert;

	clock_shift = 0;
	wish.to = time(NULL) + HOUR / 2;
	w->ca->next_serial = 2; /* the device's own, again */
	cert = fix_cert(w->ca, &wish);
	tls_world_client_is(w, cert);
	assert_false(connects(w, "collector"));
	assert_true(connects(w, "collector"));
	tls_context_set_clock(w->server, shifted_clock);
	clock_shift = HOUR / 2 - 60;
	assert_true(connects(w, "collector"));
	/* The ticket is young still, and its peer's time is over. */
	clock_shift = HOUR / 2 + 1;
	is_refused(w, "expired at ");
	fix_cert_free(cert);
}

static void
a_list_that_expired_meanwhile_stops_resuming(void **state)
{
	struct tls_world *w = *state;

	clock_shift = 0;
	fix_write_crl(w->server_dir, TLS_CRL_FILE, w->ca, NULL, 0,
	    time(NULL) + HOUR / 2);
	tls_world_reload(w->server);
	assert_false(connects(w, "collector"));
	assert_true(connects(w, "collector"));
	tls_context_set_clock(w->server, shifted_clock);
	clock_shift = HOUR / 2 + 1;
	is_refused(w, "was good until ");
}

static void
nobody_resumes_for_longer_than_an_hour(void **state)
{
	struct tls_world *w = *state;

	clock_shift = 0;
	tls_context_set_clock(w->server, shifted_clock);
	assert_false(connects(w, "collector"));
	/* Each resumption brings a new ticket, but no new hour. */
	clock_shift = HOUR / 2;
	assert_true(connects(w, "collector"));
	clock_shift = HOUR - 60;
	assert_true(connects(w, "collector"));
	clock_shift = HOUR + 60;
	assert_false(connects(w, "collector"));
	assert_true(connects(w, "collector"));
}

static void
a_client_offers_nothing_older_than_an_hour(void **state)
{
	struct tls_world *w = *state;

	clock_shift = 0;
	tls_context_set_clock(w->client, shifted_clock);
	assert_false(connects(w, "collector"));
	clock_shift = HOUR / 2;
	assert_true(connects(w, "collector"));
	clock_shift = HOUR + 60;
	assert_false(connects(w, "collector"));
	assert_true(connects(w, "collector"));
}

static void
a_client_remembers_few_hosts(void **state)
{
	struct fix_wish wish = world_collector;
	struct tls_world *w = *state;
	struct fix_cert *many;
	char sans[4096] = "", host[32];
	size_t at = 0;
	int i;

	for (i = 0; i <= TLS_SESSIONS_MAX; i++)
		at += (size_t)snprintf(sans + at, sizeof(sans) - at,
		    "%sDNS:host%d", i > 0 ? "," : "", i);
	wish.sans = sans;
	many = fix_cert(w->ca, &wish);
	tls_world_server_is(w, many);
	for (i = 0; i <= TLS_SESSIONS_MAX; i++) {
		snprintf(host, sizeof(host), "host%d", i);
		assert_false(connects(w, host));
	}
	/* The first gave way to the last. */
	assert_true(connects(w, "host16"));
	assert_true(connects(w, "host1"));
	assert_false(connects(w, "host0"));
	fix_cert_free(many);
}

static void
a_cut_connection_still_resumes(void **state)
{
	struct linger hard = { 1, 0 };
	struct tls_world *w = *state;
	struct tls_pair p;
	char byte;

	tls_pair_init(&p, w->server, w->client, "collector");
	assert_true(tls_pair_shake(&p));
	tls_pair_chat(&p);
	/* Input that nobody read makes the end a reset. */
	assert_int_equal(setsockopt(p.fd[0], SOL_SOCKET, SO_LINGER, &hard,
	    sizeof(hard)), 0);
	assert_int_equal(tls_pair_send(p.client, "x", 1), 1);
	close(p.fd[0]);
	p.fd[0] = -1;
	assert_int_equal(tls_pair_receive(p.client, &byte, 1), -1);
	assert_int_equal(errno, ECONNRESET);
	tls_pair_done(&p);
	assert_true(connects(w, "collector"));
}

#define TEST(name)                                                             \
	cmocka_unit_test_setup_teardown(name, tls_world_setup,                 \
	    tls_world_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_reload_leaves_connections_alone),
		TEST(a_reload_in_the_middle_of_a_handshake_does_not_matter),
		TEST(a_broken_file_leaves_the_old_ones_in_force),
		TEST(a_key_of_another_certificate_is_refused),
		TEST(a_key_under_a_passphrase_is_refused_without_asking),
		TEST(a_weak_key_is_refused),
		TEST(files_are_chosen_one_by_one),
		TEST(a_delta_list_is_not_taken_for_a_complete_one),
		TEST(a_swapped_link_is_a_change),
		TEST(the_second_connection_resumes_and_knows_the_peer),
		TEST(tls12_resumes_too),
		TEST(after_a_reload_everybody_is_verified_anew),
		TEST(a_revoked_peer_does_not_resume),
		TEST(a_list_that_is_lost_still_revokes),
		TEST(a_peer_that_expired_meanwhile_does_not_resume),
		TEST(a_list_that_expired_meanwhile_stops_resuming),
		TEST(nobody_resumes_for_longer_than_an_hour),
		TEST(a_client_offers_nothing_older_than_an_hour),
		TEST(a_client_remembers_few_hosts),
		TEST(a_cut_connection_still_resumes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
