/*
 * A connection that works: who is there, bytes both ways, its end.
 */
#include <errno.h>
#include <malloc.h>
#include <openssl/err.h>
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
#include "transport/base/compiler.h"
#include "transport/socket/roles.h"
#include "transport/tls/tls_internal.h"
#include "transport/tls/tls_setup.h"

/* Pairs that lie idle. */
#define IDLE 100

#define BIG (3u * 1024u * 1024u + 17)

/* ---- who the peer is ---- */

static void
both_sides_learn_who_the_other_is(void **state)
{
	struct tls_world *w = *state;
	const struct tls_identity *id;
	struct tls_pair p;
	char text[100];

	tls_pair_init(&p, w->server, w->client, "collector");
	assert_true(tls_pair_shake(&p));
	id = tls_conn_identity(p.server);
	assert_string_equal(id->name, "device-7");
	assert_int_equal(id->roles, ROLE_PRODUCER);
	assert_string_equal(id->serial, "A002");
	assert_true(id->not_after > time(NULL) + 3600);
	assert_int_equal(id->n_alternatives, 2);
	assert_string_equal(id->alternatives[0], "ops@example.org");
	assert_string_equal(id->alternatives[1], "urn:tributary:role:producer");
	id = tls_conn_identity(p.client);
	assert_string_equal(id->name, "collector");
	assert_int_equal(id->roles, 0);
	assert_int_equal(id->n_alternatives, 4);
	assert_string_equal(id->alternatives[1], "collector.lan");
	assert_string_equal(id->alternatives[2], "127.0.0.1");
	assert_string_equal(id->alternatives[3], "::1");
	tls_conn_describe(p.server, text, sizeof(text));
	assert_string_equal(text, "TLSv1.3 TLS_AES_256_GCM_SHA384");
	assert_string_equal(tls_conn_error(p.server), "");
	assert_string_equal(tls_conn_error(p.client), "");
	tls_pair_chat(&p);
	tls_pair_done(&p);
}

static void
the_name_asked_for_may_be_any_that_the_certificate_holds(void **state)
{
	static const char *const hosts[] = { "collector", "collector.lan",
		"COLLECTOR.lan", "collector.lan.", "127.0.0.1", "::1" };
	struct tls_world *w = *state;
	struct tls_pair p;
	size_t i;

	for (i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		tls_pair_init(&p, w->server, w->client, hosts[i]);
		assert_true(tls_pair_shake(&p));
		tls_pair_done(&p);
	}
}

static void
a_client_that_asks_for_nobody_is_not_made(void **state)
{
	struct tls_world *w = *state;

	assert_null(tls_conn_new(w->client, 0, NULL, "x"));
	assert_null(tls_conn_new(w->client, 0, "", "x"));
}

static void
without_a_cn_the_first_name_that_is_no_role_counts(void **state)
{
	struct fix_wish wish = { .eku = "clientAuth",
		.sans = "URI:urn:tributary:role:relay,email:a@b,"
			"URI:spiffe://lab/device-8,DNS:eight",
		.role = "admin" };
	struct tls_world *w = *state;
	struct fix_cert *cert = fix_cert(w->ca, &wish);
	struct tls_pair p;

	tls_world_client_is(w, cert);
	tls_pair_init(&p, w->server, w->client, "collector");
	assert_true(tls_pair_shake(&p));
	assert_string_equal(tls_conn_identity(p.server)->name,
	    "spiffe://lab/device-8");
	assert_int_equal(tls_conn_identity(p.server)->roles,
	    ROLE_RELAY | ROLE_ADMIN);
	tls_pair_done(&p);
	fix_cert_free(cert);
}

static void
intermediates_come_from_the_certificate_file(void **state)
{
	struct fix_wish above = { .cn = "Site CA", .is_ca = true };
	struct tls_world *w = *state;
	struct fix_cert *site = fix_cert(w->ca, &above);
	struct fix_cert *cert = fix_cert(site, &world_device);
	struct tls_pair p;

	fix_write_certs(w->client_dir, TLS_CERT_FILE, cert, site, NULL);
	fix_write_key(w->client_dir, TLS_KEY_FILE, cert);
	tls_world_reload(w->client);
	tls_pair_init(&p, w->server, w->client, "collector");
	assert_true(tls_pair_shake(&p));
	tls_pair_done(&p);
	/* And one of them in the CA file is believed by itself. */
	fix_write_certs(w->client_dir, TLS_CERT_FILE, cert, NULL, NULL);
	tls_world_reload(w->client);
	fix_write_certs(w->server_dir, TLS_CA_FILE, site, NULL, NULL);
	tls_world_reload(w->server);
	tls_pair_init(&p, w->server, w->client, "collector");
	assert_true(tls_pair_shake(&p));
	tls_pair_done(&p);
	fix_cert_free(cert);
	fix_cert_free(site);
}

static void
where_both_know_it_it_is_13_even_if_12_is_allowed(void **state)
{
	struct tls_world *w = *state;
	struct tls_pair p;
	char text[100];

	tls_world_allow_tls12(w, true, true);
	tls_pair_init(&p, w->server, w->client, "collector");
	assert_true(tls_pair_shake(&p));
	tls_conn_describe(p.client, text, sizeof(text));
	assert_memory_equal(text, "TLSv1.3 ", 8);
	tls_pair_done(&p);
}

/* ---- bytes ---- */

static uint8_t *
noise(size_t len)
{
	uint8_t *bytes = malloc(len);
	uint32_t x = 12345;
	size_t i;

	assert_non_null(bytes);
	for (i = 0; i < len; i++) {
		x = x * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(x >> 24);
	}
	return bytes;
}

static uint32_t
next_random(uint32_t *x)
{
	*x = *x * 1664525 + 1013904223;
	return *x >> 8;
}

/* Cuts len bytes at random into up to max pieces. */
static int
cut(struct iovec *iov, int max, const uint8_t *bytes, size_t len, uint32_t *x)
{
	size_t at = 0, n;
	int i;

	for (i = 0; i < max && at < len; i++) {
		n = next_random(x) % (next_random(x) % 8 == 0 ? 100000 : 300);
		if (n > len - at)
			n = len - at;
		iov[i].iov_base = (uint8_t *)(uintptr_t)(bytes + at);
		iov[i].iov_len = n;
		at += n;
	}
	return i;
}

/*
 * Sends BIG bytes one way, in pieces cut at random; what was not taken is
 * offered again from another place in memory, and cut anew.
 */
static void
transfer(struct tls_conn *from, struct tls_conn *to, uint32_t seed)
{
	uint8_t *bytes = noise(BIG), *moved = malloc(BIG), *got = malloc(BIG);
	size_t sent = 0, received = 0, want = 0, i;
	struct iovec iov[16];
	uint32_t x = seed;
	ssize_t n;
	int niov;

	assert_non_null(moved);
	assert_non_null(got);
	while (received < BIG) {
		memcpy(moved + sent, bytes + sent, BIG - sent);
		for (i = 0; i < 3 && sent < BIG; i++) {
			niov = cut(iov, 16, moved + sent, BIG - sent, &x);
			n = tls_conn_send(from, iov, niov);
			if (n < 0) {
				assert_int_equal(errno, EAGAIN);
				assert_true(tls_conn_wants_write(from));
				break;
			}
			sent += (size_t)n;
		}
		memset(moved, 0xee, BIG);
		do {
			want = next_random(&x) % 200000 + 1;
			if (want > BIG - received)
				want = BIG - received;
			iov[0].iov_base = got + received;
			iov[0].iov_len = want / 3;
			iov[1].iov_base = got + received + want / 3;
			iov[1].iov_len = want - want / 3;
			n = tls_conn_receive(to, iov, 2);
			if (n < 0)
				assert_int_equal(errno, EAGAIN);
			else
				received += (size_t)n;
		} while (n > 0 && received < BIG);
	}
	assert_memory_equal(got, bytes, BIG);
	free(bytes);
	free(moved);
	free(got);
}

static void
large_transfers_arrive_whole_both_ways(void **state)
{
	struct tls_world *w = *state;
	struct tls_pair p;

	tls_pair_init(&p, w->server, w->client, "collector");
	assert_true(tls_pair_shake(&p));
	transfer(p.client, p.server, 1);
	transfer(p.server, p.client, 2);
	tls_pair_done(&p);
}

static void
tls12_carries_as_much(void **state)
{
	struct tls_world *w = *state;
	struct tls_pair p;
	char text[100];

	tls_world_allow_tls12(w, true, true);
	SSL_CTX_set_max_proto_version(tls_context_setup(w->server)->ssl,
	    TLS1_2_VERSION);
	tls_pair_init(&p, w->server, w->client, "collector");
	assert_true(tls_pair_shake(&p));
	tls_conn_describe(p.client, text, sizeof(text));
	assert_memory_equal(text, "TLSv1.2 ECDHE-", 14);
	transfer(p.client, p.server, 4);
	transfer(p.server, p.client, 5);
	tls_pair_done(&p);
}

static void
tiny_socket_buffers_only_make_it_slow(void **state)
{
	struct tls_world *w = *state;
	struct tls_pair p;
	int tiny = 1, i;

	tls_pair_init(&p, w->server, w->client, "collector");
	for (i = 0; i < 2; i++) {
		assert_int_equal(setsockopt(p.fd[i], SOL_SOCKET, SO_SNDBUF,
		    &tiny, sizeof(tiny)), 0);
		assert_int_equal(setsockopt(p.fd[i], SOL_SOCKET, SO_RCVBUF,
		    &tiny, sizeof(tiny)), 0);
	}
	assert_true(tls_pair_shake(&p));
	transfer(p.client, p.server, 3);
	tls_pair_done(&p);
}

static void
nothing_offered_is_nothing_sent(void **state)
{
	struct tls_world *w = *state;
	struct iovec none[2] = { { NULL, 0 }, { NULL, 0 } };
	struct tls_pair p;

	tls_pair_init(&p, w->server, w->client, "collector");
	assert_true(tls_pair_shake(&p));
	assert_int_equal(tls_conn_send(p.client, none, 0), 0);
	assert_int_equal(tls_conn_send(p.client, none, 2), 0);
	tls_pair_chat(&p);
	tls_pair_done(&p);
}

static void
before_the_handshake_nothing_travels(void **state)
{
	struct tls_world *w = *state;
	struct tls_pair p;
	char byte = 'x';

	tls_pair_init(&p, w->server, w->client, "collector");
	assert_int_equal(tls_pair_send(p.client, &byte, 1), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(tls_pair_receive(p.server, &byte, 1), -1);
	assert_int_equal(errno, EAGAIN);
	assert_false(tls_conn_has_input(p.server));
	assert_true(tls_pair_shake(&p));
	tls_pair_done(&p);
}

/* Carries up to max bytes from one socket to another. */
static size_t
carry(int from, int to, size_t max)
{
	char bytes[65536];
	ssize_t n;

	n = recv(from, bytes, max < sizeof(bytes) ? max : sizeof(bytes),
	    MSG_DONTWAIT);
	if (n <= 0)
		return 0;
	assert_int_equal(send(to, bytes, (size_t)n, MSG_NOSIGNAL), n);
	return (size_t)n;
}

static void
input_that_lies_here_is_known(void **state)
{
	struct tls_world *w = *state;
	char bytes[1000], got[4000];
	struct tls_pair p;
	int i;

	tls_pair_init(&p, w->server, w->client, "collector");
	assert_true(tls_pair_shake(&p));
	memset(bytes, 'b', sizeof(bytes));
	for (i = 0; i < 3; i++)
		assert_int_equal(tls_pair_send(p.client, bytes, 1000), 1000);
	/* One read brings all three: what is left is not in the socket. */
	assert_int_equal(tls_pair_receive(p.server, got, 500), 500);
	assert_true(tls_conn_has_input(p.server));
	assert_int_equal(tls_pair_receive(p.server, got, 500), 500);
	assert_true(tls_conn_has_input(p.server));
	assert_int_equal(tls_pair_receive(p.server, got, sizeof(got)), 2000);
	assert_false(tls_conn_has_input(p.server));
	tls_pair_done(&p);
}

/* A client and a server with a carrier between them that cuts at will. */
static void
records_cut_anywhere_arrive_whole(void **state)
{
	struct tls_world *w = *state;
	int near[2], far[2], c_rc = 0, s_rc = 0, i;
	struct tls_conn *c, *s;
	char bytes[1000], got[4000];
	size_t total = 0;
	ssize_t n;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
	    near), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
	    far), 0);
	c = tls_conn_new(w->client, near[0], "collector", "collector:7443");
	s = tls_conn_new(w->server, far[0], NULL, "10.0.0.7:4711");
	for (i = 0; i < 20000 && (c_rc != 1 || s_rc != 1); i++) {
		if (c_rc == 0)
			c_rc = tls_conn_handshake(c);
		if (s_rc == 0)
			s_rc = tls_conn_handshake(s);
		assert_true(c_rc >= 0 && s_rc >= 0);
		carry(near[1], far[1], 7);
		carry(far[1], near[1], 11);
	}
	assert_int_equal(c_rc, 1);
	assert_int_equal(s_rc, 1);
	while (carry(near[1], far[1], 65536) > 0)
		;
	memset(bytes, 'r', sizeof(bytes));
	assert_int_equal(tls_pair_send(c, bytes, 1000), 1000);
	assert_int_equal(tls_pair_send(c, bytes, 1000), 1000);
	/* One record and a half. */
	assert_int_equal(carry(near[1], far[1], 1500), 1500);
	assert_int_equal(tls_pair_receive(s, got, 400), 400);
	assert_true(tls_conn_has_input(s));
	assert_int_equal(tls_pair_receive(s, got, sizeof(got)), 600);
	assert_false(tls_conn_has_input(s));
	/* The other half, byte by byte. */
	while (total < 1000) {
		assert_int_equal(carry(near[1], far[1], 1), 1);
		n = tls_pair_receive(s, got, sizeof(got));
		assert_false(tls_conn_has_input(s));
		if (n > 0)
			total += (size_t)n;
		else
			assert_int_equal(errno, EAGAIN);
	}
	assert_int_equal(total, 1000);
	tls_conn_free(c);
	tls_conn_free(s);
	for (i = 0; i < 2; i++) {
		close(near[i]);
		close(far[i]);
	}
}

/* ---- what it takes ---- */

/* A sanitizer's allocator counts nothing. */
#if !HAS_SANITIZER
static void
an_idle_connection_takes_less_than_24_kib(void **state)
{
	struct tls_world *w = *state;
	struct tls_pair p[IDLE];
	struct mallinfo2 before, after;
	char bytes[5000], got[5000];
	size_t grown;
	int i;

	memset(bytes, 'm', sizeof(bytes));
	before = mallinfo2();
	for (i = 0; i < IDLE; i++) {
		tls_pair_init(&p[i], w->server, w->client, "collector");
		assert_true(tls_pair_shake(&p[i]));
		tls_pair_chat(&p[i]);
		/* It was busy once. */
		assert_int_equal(tls_pair_send(p[i].client, bytes, 5000), 5000);
		assert_int_equal(tls_pair_receive(p[i].server, got, 5000),
		    5000);
		assert_int_equal(tls_pair_receive(p[i].server, got, 5000), -1);
	}
	after = mallinfo2();
	/* Both ends are here. */
	grown = after.uordblks + after.hblkhd - before.uordblks -
	    before.hblkhd;
	assert_in_range(grown / IDLE / 2, 1, 24 * 1024);
	for (i = 0; i < IDLE; i++)
		tls_pair_done(&p[i]);
}
#endif

/* ---- the end ---- */

static void
a_goodbye_is_an_orderly_end(void **state)
{
	struct tls_world *w = *state;
	struct tls_pair p;
	char got[10];

	tls_pair_init(&p, w->server, w->client, "collector");
	assert_true(tls_pair_shake(&p));
	tls_pair_chat(&p);
	assert_int_equal(tls_pair_send(p.client, "last", 4), 4);
	tls_conn_free(p.client);
	p.client = NULL;
	assert_int_equal(tls_pair_receive(p.server, got, sizeof(got)), 4);
	assert_true(tls_conn_has_input(p.server));
	assert_int_equal(tls_pair_receive(p.server, got, sizeof(got)), 0);
	assert_int_equal(tls_pair_receive(p.server, got, sizeof(got)), 0);
	assert_string_equal(tls_conn_error(p.server), "");
	tls_pair_done(&p);
}

static void
a_cut_is_a_reset_that_nobody_explains(void **state)
{
	struct tls_world *w = *state;
	struct tls_pair p;
	char got[10];

	tls_pair_init(&p, w->server, w->client, "collector");
	assert_true(tls_pair_shake(&p));
	tls_pair_chat(&p);
	assert_int_equal(tls_pair_send(p.client, "last", 4), 4);
	close(p.fd[1]);
	p.fd[1] = -1;
	assert_int_equal(tls_pair_receive(p.server, got, sizeof(got)), 4);
	assert_int_equal(tls_pair_receive(p.server, got, sizeof(got)), -1);
	assert_int_equal(errno, ECONNRESET);
	assert_string_equal(tls_conn_error(p.server), "");
	/* SIGPIPE is at its default here: it would end the test. */
	assert_int_equal(tls_pair_send(p.server, "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	tls_pair_done(&p);
}

static void
what_was_damaged_on_the_way_is_said(void **state)
{
	struct tls_world *w = *state;
	struct tls_pair p;
	char bytes[100], got[10];
	ssize_t n;

	tls_pair_init(&p, w->server, w->client, "collector");
	assert_true(tls_pair_shake(&p));
	tls_pair_chat(&p);
	assert_int_equal(tls_pair_send(p.client, "hello", 5), 5);
	n = recv(p.fd[0], bytes, sizeof(bytes), MSG_DONTWAIT);
	assert_true(n > 10);
	bytes[n - 1] ^= 1;
	assert_int_equal(send(p.fd[1], bytes, (size_t)n, 0), n);
	assert_int_equal(tls_pair_receive(p.server, got, sizeof(got)), -1);
	assert_int_equal(errno, EPROTO);
	assert_non_null(strstr(tls_conn_error(p.server), "broke: "));
	assert_int_equal(tls_pair_receive(p.server, got, sizeof(got)), -1);
	assert_int_equal(tls_pair_send(p.server, "x", 1), -1);
	/* The other end is told. */
	assert_int_equal(tls_pair_receive(p.client, got, sizeof(got)), -1);
	assert_int_equal(errno, EPROTO);
	assert_non_null(strstr(tls_conn_error(p.client),
	    "collector:7443 ended the TLS connection: bad record mac"));
	tls_pair_done(&p);
}

/* ---- records that hold nothing for us ---- */

/* Up to n times; stops where the socket takes no more. */
static void
send_new_keys(struct tls_conn *t, size_t n)
{
	/* First the rest of what the socket did not take before. */
	while (SSL_do_handshake(t->ssl) == 1 && n-- > 0)
		assert_int_equal(SSL_key_update(t->ssl,
		    SSL_KEY_UPDATE_NOT_REQUESTED), 1);
	ERR_clear_error();
}

static void
a_few_new_keys_are_welcome(void **state)
{
	struct tls_world *w = *state;
	struct tls_pair p;
	char got[8];

	tls_pair_init(&p, w->server, w->client, "collector");
	assert_true(tls_pair_shake(&p));
	send_new_keys(p.client, 100);
	assert_int_equal(tls_pair_receive(p.server, got, sizeof(got)), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(tls_pair_send(p.client, "hello", 5), 5);
	assert_int_equal(tls_pair_receive(p.server, got, sizeof(got)), 5);
	tls_pair_done(&p);
}

static void
a_flood_of_new_keys_ends(void **state)
{
	struct tls_world *w = *state;
	struct tls_pair p;
	char got[8];
	int rounds;

	tls_pair_init(&p, w->server, w->client, "collector");
	assert_true(tls_pair_shake(&p));
	errno = EAGAIN;
	for (rounds = 0; rounds < 100 && errno == EAGAIN; rounds++) {
		send_new_keys(p.client, 3000);
		assert_int_equal(tls_pair_receive(p.server, got, sizeof(got)),
		    -1);
	}
	assert_int_equal(errno, EPROTO);
	assert_string_equal(tls_conn_error(p.server), "it sends nothing but "
	    "new keys and the like, which only makes work");
	tls_pair_done(&p);
}

#define TEST(name)                                                             \
	cmocka_unit_test_setup_teardown(name, tls_world_setup,                 \
	    tls_world_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(both_sides_learn_who_the_other_is),
		TEST(the_name_asked_for_may_be_any_that_the_certificate_holds),
		TEST(a_client_that_asks_for_nobody_is_not_made),
		TEST(without_a_cn_the_first_name_that_is_no_role_counts),
		TEST(intermediates_come_from_the_certificate_file),
		TEST(where_both_know_it_it_is_13_even_if_12_is_allowed),
		TEST(large_transfers_arrive_whole_both_ways),
		TEST(tls12_carries_as_much),
		TEST(tiny_socket_buffers_only_make_it_slow),
		TEST(nothing_offered_is_nothing_sent),
		TEST(before_the_handshake_nothing_travels),
		TEST(input_that_lies_here_is_known),
		TEST(records_cut_anywhere_arrive_whole),
#if !HAS_SANITIZER
		TEST(an_idle_connection_takes_less_than_24_kib),
#endif
		TEST(a_few_new_keys_are_welcome),
		TEST(a_flood_of_new_keys_ends),
		TEST(a_goodbye_is_an_orderly_end),
		TEST(a_cut_is_a_reset_that_nobody_explains),
		TEST(what_was_damaged_on_the_way_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
