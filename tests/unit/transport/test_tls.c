#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/ssl.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/transport/tls_fixture.h"
#include "tests/unit/transport/tls_pair.h"
#include "transport/roles.h"

/* One authority, a collector and a device: what most tests need. */
static struct fix_cert *ca, *collector, *device;
static char *server_dir, *client_dir;

static int
setup(void **state)
{
	struct fix_wish server = { .cn = "collector", .eku = "serverAuth",
		.sans = "DNS:collector,DNS:collector.lan,IP:127.0.0.1,IP:::1" };
	struct fix_wish client = { .cn = "device-7", .eku = "clientAuth",
		.role = "producer", .sans = "email:ops@example.org" };

	ca = fix_ca("Test CA");
	collector = fix_cert(ca, &server);
	device = fix_cert(ca, &client);
	server_dir = fix_side(ca, collector);
	client_dir = fix_side(ca, device);
	return 0;
}

static int
teardown(void **state)
{
	fix_dir_free(server_dir);
	fix_dir_free(client_dir);
	fix_cert_free(collector);
	fix_cert_free(device);
	fix_cert_free(ca);
	return 0;
}

/* ---- who the peer is ---- */

static void
both_sides_learn_who_the_other_is(void **state)
{
	struct tls_context *s = fix_context(TLS_SERVER, server_dir);
	struct tls_context *c = fix_context(TLS_CLIENT, client_dir);
	const struct tls_identity *id;
	struct tls_pair p;
	char text[100];

	tls_pair_init(&p, s, c, "collector");
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
	tls_context_free(s);
	tls_context_free(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_sides_learn_who_the_other_is),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
