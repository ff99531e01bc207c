#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "service/access/trust.h"
#include "service/port/peer_identity.h"
#include "service/settings/settings.h"
#include "transport/rpc/rpc_host.h"
#include "transport/socket/peer.h"
#include "transport/tls/tls.h"

static const struct rpc_claimed_identity nothing = { .present = false };
static struct tls_identity id;
static struct peer_machine m;
static int32_t uid, pid;

static struct rpc_claimed_identity
claim(const char *hint, const char *name, int32_t claimed_uid)
{
	struct rpc_claimed_identity c = { .present = true, .pid = 42,
		.uid = claimed_uid };

	snprintf(c.machine_id_hint, sizeof(c.machine_id_hint), "%s", hint);
	snprintf(c.machine_name, sizeof(c.machine_name), "%s", name);
	return c;
}

static struct peer
tcp(const char *text)
{
	struct peer p = { .kind = ADDR_TCP, .uid = PEER_UID_UNKNOWN };

	snprintf(p.text, sizeof(p.text), "%s", text);
	return p;
}

static struct peer
certificate(const char *name)
{
	struct peer p = { .kind = ADDR_TLS, .auth = PEER_CERT,
		.uid = PEER_UID_UNKNOWN, .cert = &id };

	snprintf(id.name, sizeof(id.name), "%s", name);
	snprintf(p.text, sizeof(p.text), "%s at 10.0.0.7:1", name);
	return p;
}

static uint32_t
machine_of(const struct peer *p, const struct rpc_claimed_identity *c)
{
	peer_machine_of(NULL, p, c, &m);
	assert_false(m.is_host);
	assert_int_not_equal(m.id, 0);
	return m.id;
}

static void
expect_labels(const struct peer *p, const struct rpc_claimed_identity *c,
    int32_t want_uid, int32_t want_pid)
{
	peer_labels(p, c, &uid, &pid);
	assert_int_equal(uid, want_uid);
	assert_int_equal(pid, want_pid);
}

static void
ids_of_plain_peers_do_not_depend_on_the_port(void **state)
{
	struct peer a = tcp("10.0.0.7:4711"), b = tcp("10.0.0.7:99");
	struct peer c = tcp("10.0.0.8:99"), v6 = tcp("[fe80::1]:99");
	uint32_t of_a = machine_of(&a, &nothing);

	assert_string_equal(m.name, "10.0.0.7");
	assert_string_equal(m.owner, "");
	assert_int_equal(machine_of(&b, &nothing), of_a);
	assert_int_not_equal(machine_of(&c, &nothing), of_a);
	machine_of(&v6, &nothing);
	assert_string_equal(m.name, "[fe80::1]");
}

static void
a_plain_peers_claims_are_labels_but_root_is_none(void **state)
{
	struct rpc_claimed_identity c = claim("hint", "name", 1000);
	struct rpc_claimed_identity root = claim("hint", "name", 0);
	struct rpc_claimed_identity none = claim("hint", "name", -1);
	struct peer p = tcp("10.0.0.7:1");

	expect_labels(&p, &nothing, PEER_UID_UNKNOWN, PEER_PID_UNKNOWN);
	expect_labels(&p, &c, 1000, 42);
	expect_labels(&p, &root, PEER_UID_UNKNOWN, 42);
	expect_labels(&p, &none, PEER_UID_UNKNOWN, 42);
	p.kind = ADDR_VSOCK;
	expect_labels(&p, &root, PEER_UID_UNKNOWN, 42);
}

static void
a_user_of_this_machine_claims_nothing(void **state)
{
	struct rpc_claimed_identity c = claim("hint", "name", 0);
	struct peer p = { .kind = ADDR_UNIX, .auth = PEER_UNIX, .uid = 1000,
		.pid = 7 };

	peer_machine_of(NULL, &p, &c, &m);
	assert_true(m.is_host);
	expect_labels(&p, &c, 1000, 7);
}

static void
a_tunnels_client_is_labelled_as_it_claims(void **state)
{
	struct rpc_claimed_identity c = claim("hint", "phone", 2000);
	struct rpc_claimed_identity bare = claim("", "", 2000);
	struct rpc_claimed_identity named = claim("", "phone", 2000);
	struct peer p = { .kind = ADDR_UNIX, .auth = PEER_UNIX,
		.forwarded = true, .uid = 1000, .pid = 7 };
	struct peer other = p, plain = tcp("10.0.0.7:1");
	uint32_t of_p;

	peer_machine_of(NULL, &p, &nothing, &m);
	assert_true(m.is_host);
	expect_labels(&p, &nothing, 1000, 7);
	/* Nobody gets another user's label on this machine. */
	peer_machine_of(NULL, &p, &bare, &m);
	assert_true(m.is_host);
	expect_labels(&p, &bare, 1000, 7);
	expect_labels(&p, &c, 2000, 42);
	of_p = machine_of(&p, &c);
	assert_string_equal(m.name, "phone");
	assert_string_equal(m.owner, "uid 1000");
	/* The id that today's service gives it. */
	assert_int_equal(machine_of(&plain, &c), of_p);
	assert_string_equal(m.owner, "");
	other.uid = 1001;
	machine_of(&other, &c);
	assert_string_equal(m.owner, "uid 1001");
	machine_of(&p, &named);
	assert_string_equal(m.name, "phone");
}

static void
a_certificate_names_its_machine(void **state)
{
	struct rpc_claimed_identity c = claim("hint", "phone", 0);
	struct peer p = certificate("device-7");
	uint32_t of_p = machine_of(&p, &c), bare;

	assert_string_equal(m.name, "device-7");
	assert_string_equal(m.owner, "certificate device-7");
	expect_labels(&p, &c, 0, 42);
	expect_labels(&p, &nothing, PEER_UID_UNKNOWN, PEER_PID_UNKNOWN);
	bare = machine_of(&p, &nothing);
	assert_int_not_equal(bare, of_p);
	assert_string_equal(m.name, "device-7");
	/* The same hint from another device is another machine. */
	p = certificate("device-8");
	assert_int_not_equal(machine_of(&p, &c), of_p);
	p = tcp("10.0.0.7:1");
	assert_int_not_equal(machine_of(&p, &c), of_p);
}

static void
where_name_and_hint_meet_makes_a_difference(void **state)
{
	struct rpc_claimed_identity c = claim("7x", "", 0);
	struct peer p = certificate("device-");
	uint32_t a = machine_of(&p, &c);

	p = certificate("device-7");
	c = claim("x", "", 0);
	assert_int_not_equal(machine_of(&p, &c), a);
}

static void
a_gateway_may_name_others(void **state)
{
	static const char rules[] = "trust { name: 'gw' may: RELAY "
		"may_claim_machine: true } trust { name: 'dev' may: RELAY }";
	struct rpc_claimed_identity c = claim("", "phone", 0);
	struct rpc_claimed_identity d = claim("", "tablet", 0);
	struct peer p = certificate("gw");
	char err[SETTINGS_ERROR_SIZE];
	struct settings s;
	struct trust *t;
	uint32_t phone;

	assert_int_equal(settings_init(&s), 0);
	assert_int_equal(settings_parse(&s, rules, strlen(rules), "t", err,
		sizeof(err)), 0);
	t = trust_new(&s, err, sizeof(err));
	assert_non_null(t);
	assert_true(peer_names_machine(t, &p));
	peer_machine_of(t, &p, &c, &m);
	phone = m.id;
	assert_string_equal(m.name, "phone");
	assert_string_equal(m.owner, "certificate gw");
	peer_machine_of(t, &p, &d, &m);
	assert_int_not_equal(m.id, phone);
	peer_machine_of(t, &p, &nothing, &m);
	assert_string_equal(m.name, "gw");
	p = certificate("dev");
	assert_false(peer_names_machine(t, &p));
	peer_machine_of(t, &p, &c, &m);
	assert_string_equal(m.name, "dev");
	trust_free(t);
	settings_done(&s);
}

static void
a_dialled_device_is_what_the_settings_say(void **state)
{
	struct rpc_claimed_identity c = claim("hint", "else", 0);
	struct peer p = { .kind = ADDR_SSH, .auth = PEER_NOBODY,
		.uid = PEER_UID_UNKNOWN, .machine_name = "eight",
		.text = "ssh://device-8" };

	assert_false(peer_names_machine(NULL, &p));
	machine_of(&p, &c);
	assert_string_equal(m.name, "eight");
	assert_string_equal(m.owner, "dial eight");
	machine_of(&p, &nothing);
	assert_string_equal(m.name, "eight");
	expect_labels(&p, &nothing, PEER_UID_UNKNOWN, PEER_PID_UNKNOWN);
	expect_labels(&p, &c, 0, 42);
}

static void
peers_are_counted_by_user_name_or_address(void **state)
{
	struct peer a = { .auth = PEER_UNIX, .uid = 1 }, b = a;
	struct peer c = { .addr_hash = 7 }, d = { .addr_hash = 8 };
	struct peer e = certificate("x");

	assert_int_equal(peer_count_key(&a), peer_count_key(&b));
	b.uid = 2;
	assert_int_not_equal(peer_count_key(&a), peer_count_key(&b));
	assert_int_not_equal(peer_count_key(&c), peer_count_key(&d));
	assert_int_not_equal(peer_count_key(&c), peer_count_key(&e));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_of_plain_peers_do_not_depend_on_the_port),
		cmocka_unit_test(a_plain_peers_claims_are_labels_but_root_is_none),
		cmocka_unit_test(a_user_of_this_machine_claims_nothing),
		cmocka_unit_test(a_tunnels_client_is_labelled_as_it_claims),
		cmocka_unit_test(a_certificate_names_its_machine),
		cmocka_unit_test(where_name_and_hint_meet_makes_a_difference),
		cmocka_unit_test(a_gateway_may_name_others),
		cmocka_unit_test(a_dialled_device_is_what_the_settings_say),
		cmocka_unit_test(peers_are_counted_by_user_name_or_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
