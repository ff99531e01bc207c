#include <grp.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "service/access/bind_roles.h"
#include "service/access/trust.h"
#include "service/settings/settings.h"
#include "transport/rpc/rpc_host.h"
#include "transport/socket/peer.h"
#include "transport/tls/tls.h"

static struct settings s;
static struct trust *t;
static char err[SETTINGS_ERROR_SIZE];
static char why[RPC_WHY_MAX];

static const char producer_port[] = "ProducerPort";
static const char consumer_port[] = "ConsumerPort";
static const char relay_port[] = "RelayPort";

static int
setup(void **state)
{
	t = NULL;
	return settings_init(&s);
}

static int
teardown(void **state)
{
	trust_free(t);
	settings_done(&s);
	return 0;
}

static void
make(const char *text)
{
	if (settings_parse(&s, text, strlen(text), "t.conf", err,
		sizeof(err)) != 0)
		fail_msg("%s", err);
	trust_free(t);
	if ((t = trust_new(&s, err, sizeof(err))) == NULL)
		fail_msg("%s", err);
}

static struct peer
user(uint32_t uid, uint32_t gid)
{
	return (struct peer){ .kind = ADDR_UNIX, .auth = PEER_UNIX,
		.can_pass_fds = true, .uid = uid, .gid = gid, .pid = 7,
		.text = "unix" };
}

static struct peer
nobody(void)
{
	return (struct peer){ .kind = ADDR_TCP, .auth = PEER_NOBODY,
		.uid = PEER_UID_UNKNOWN, .gid = PEER_UID_UNKNOWN,
		.text = "10.0.0.7:4711" };
}

static struct peer
certificate(struct tls_identity *id, const char *name, uint32_t roles)
{
	struct peer p = nobody();

	memset(id, 0, sizeof(*id));
	snprintf(id->name, sizeof(id->name), "%s", name);
	id->roles = roles;
	p.kind = ADDR_TLS;
	p.auth = PEER_CERT;
	p.cert = id;
	return p;
}

static uint32_t
roles_of_user(uint32_t uid, uint32_t gid)
{
	struct peer p = user(uid, gid);

	return trust_roles(t, &p, false);
}

static uint32_t
roles_of_name(const char *name, uint32_t roles)
{
	struct tls_identity id;
	struct peer p = certificate(&id, name, roles);

	return trust_roles(t, &p, true);
}

static void
expect_in(const char *part)
{
	if (strstr(why, part) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", part, why);
}

static void
without_rules_a_user_is_what_the_socket_is_for(void **state)
{
	uint32_t stranger = geteuid() + 1;

	make("");
	assert_int_equal(roles_of_user(stranger, 1),
	    ROLE_PRODUCER | ROLE_RELAY | ROLE_CONSUMER);
	assert_int_equal(roles_of_user(0, 0), ROLES_ALL);
	assert_int_equal(roles_of_user(geteuid(), 1), ROLES_ALL);
}

static void
the_user_that_the_daemon_becomes_is_an_admin(void **state)
{
	if (geteuid() != 0)
		skip(); /* it stays who it is */
	make("user: '4711'");
	assert_true(roles_of_user(4711, 1) & ROLE_ADMIN);
	assert_false(roles_of_user(4712, 1) & ROLE_ADMIN);
	assert_true(roles_of_user(0, 0) & ROLE_ADMIN);
}

static void
without_rules_a_certificate_has_the_role_that_it_carries(void **state)
{
	make("");
	assert_int_equal(roles_of_name("a", 0), ROLE_PRODUCER | ROLE_RELAY);
	assert_int_equal(roles_of_name("a", ROLE_CONSUMER), ROLE_CONSUMER);
	assert_int_equal(roles_of_name("a", ROLE_ADMIN),
	    ROLE_ADMIN | ROLE_CONSUMER);
	assert_int_equal(roles_of_name("a", ROLE_RELAY),
	    ROLE_RELAY | ROLE_PRODUCER);
	assert_int_equal(roles_of_name("a", ROLE_PRODUCER), ROLE_PRODUCER);
}

static void
a_role_that_is_none_gives_nothing(void **state)
{
	make("");
	assert_int_equal(roles_of_name("a", ROLE_UNKNOWN), 0);
	assert_int_equal(roles_of_name("a", ROLE_UNKNOWN | ROLE_PRODUCER),
	    ROLE_PRODUCER);
	make("trust { name: 'gw' may: CONSUMER } ");
	assert_int_equal(roles_of_name("gw", ROLE_UNKNOWN), ROLE_CONSUMER);
	make("ignore_certificate_roles: true");
	assert_int_equal(roles_of_name("a", ROLE_UNKNOWN),
	    ROLE_PRODUCER | ROLE_RELAY);
}

static void
settings_may_give_certificates_another_default_and_ignore_roles(void **state)
{
	make("certificate_default: CONSUMER ignore_certificate_roles: true");
	assert_int_equal(roles_of_name("a", 0), ROLE_CONSUMER);
	assert_int_equal(roles_of_name("a", ROLE_ADMIN), ROLE_CONSUMER);
}

static void
nobody_consumes_only_where_it_is_permitted(void **state)
{
	struct peer p = nobody();

	make("trust { user: '*' may: ADMIN } trust { name: '*' may: ADMIN }");
	assert_int_equal(trust_roles(t, &p, false),
	    ROLE_PRODUCER | ROLE_RELAY);
	assert_int_equal(trust_roles(t, &p, true),
	    ROLE_PRODUCER | ROLE_RELAY | ROLE_CONSUMER);
	p.kind = ADDR_SSH;
	assert_int_equal(trust_roles(t, &p, false),
	    ROLE_PRODUCER | ROLE_RELAY);
	/* A socket of UNIX whose credentials the kernel does not tell. */
	p.kind = ADDR_UNIX;
	assert_int_equal(trust_roles(t, &p, false),
	    ROLE_PRODUCER | ROLE_RELAY);
}

static void
the_first_rule_that_fits_decides_also_for_nothing(void **state)
{
	make("trust { name: 'bad-*' }\n"
	     "trust { name: 'bad-but-late' may: ADMIN }\n"
	     "trust { name: 'gw-?' may: RELAY may_claim_machine: true }\n"
	     "trust { user: '0' }\n"
	     "trust { user: '1000' may: ADMIN }\n"
	     "trust { user: '*' may: PRODUCER }\n");
	assert_int_equal(roles_of_name("bad-but-late", ROLE_ADMIN), 0);
	assert_int_equal(roles_of_name("gw-1", ROLE_ADMIN),
	    ROLE_RELAY | ROLE_PRODUCER);
	assert_int_equal(roles_of_name("gw-12", 0),
	    ROLE_RELAY | ROLE_PRODUCER);
	assert_int_equal(roles_of_name("gw-12", ROLE_CONSUMER), ROLE_CONSUMER);
	assert_int_equal(roles_of_user(0, 0), 0);
	assert_int_equal(roles_of_user(1000, 0), ROLE_ADMIN | ROLE_CONSUMER);
	assert_int_equal(roles_of_user(1001, 0), ROLE_PRODUCER);
}

static void
alternative_names_fit_as_well(void **state)
{
	static char dns[] = "gw.example", mail[] = "ann@example";
	char *alternatives[] = { dns, mail };
	struct tls_identity id;
	struct peer p;

	make("trust { name: '*@example' may: ADMIN }");
	p = certificate(&id, "ann", 0);
	assert_false(trust_roles(t, &p, false) & ROLE_ADMIN);
	id.alternatives = alternatives;
	id.n_alternatives = 2;
	assert_true(trust_roles(t, &p, false) & ROLE_ADMIN);
}

static void
a_user_is_in_a_group_by_its_own_or_by_the_list(void **state)
{
	make("trust { group: '4242' may: ADMIN }\n"
	     "trust { user: '1000' group: '4343' may: PRODUCER }\n");
	assert_int_equal(roles_of_user(1000, 4242), ROLE_ADMIN | ROLE_CONSUMER);
	assert_false(roles_of_user(1000, 4241) & ROLE_ADMIN);
	assert_int_equal(roles_of_user(1000, 4343), ROLE_PRODUCER);
	assert_int_equal(roles_of_user(1001, 4343),
	    ROLE_PRODUCER | ROLE_RELAY | ROLE_CONSUMER);
}

static void
names_of_users_and_groups_are_looked_up_at_the_start(void **state)
{
	make("trust { user: 'root' may: PRODUCER }\n"
	     "trust { group: 'root' may: RELAY }");
	assert_int_equal(roles_of_user(0, 5), ROLE_PRODUCER);
	assert_int_equal(roles_of_user(5, 0), ROLE_RELAY | ROLE_PRODUCER);
}

static void
a_user_whom_the_groups_list_names_is_in_it(void **state)
{
	const struct passwd *p = NULL;
	const struct group *g;
	char text[128];
	uint32_t gid = 0, uid = 0;

	setgrent();
	while (p == NULL && (g = getgrent()) != NULL)
		if (g->gr_mem[0] != NULL &&
		    (p = getpwnam(g->gr_mem[0])) != NULL) {
			gid = g->gr_gid;
			uid = p->pw_uid;
		}
	endgrent();
	if (p == NULL || uid == 0)
		skip(); /* no group of this machine lists anybody */
	snprintf(text, sizeof(text), "trust { group: '%u' may: RELAY }", gid);
	make(text);
	assert_int_equal(roles_of_user(uid, gid + 1),
	    ROLE_RELAY | ROLE_PRODUCER);
	assert_true(roles_of_user(uid + 1, gid + 1) & ROLE_CONSUMER);
}

static void
refuse(const char *text, const char *part)
{
	assert_int_equal(settings_parse(&s, text, strlen(text), "t.conf", err,
		sizeof(err)), 0);
	assert_null(trust_new(&s, err, sizeof(err)));
	if (strstr(err, part) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", part, err);
}

static void
a_user_or_group_that_does_not_exist_is_named(void **state)
{
	refuse("trust { group: 'no-such-group' may: ADMIN }",
	    "no group \"no-such-group\"");
}

static void
a_user_that_does_not_exist_is_named(void **state)
{
	refuse("trust { user: 'no-such-user' may: ADMIN }",
	    "no user \"no-such-user\"");
}

static void
a_machine_is_claimed_by_those_who_may(void **state)
{
	struct tls_identity id;
	struct peer p;

	make("trust { name: 'gw-*' may: RELAY may_claim_machine: true }\n"
	     "trust { name: 'dev-*' may: RELAY }");
	p = certificate(&id, "gw-1", 0);
	assert_true(trust_may_claim_machine(t, &p));
	p = certificate(&id, "dev-1", 0);
	assert_false(trust_may_claim_machine(t, &p));
	p = certificate(&id, "else", ROLE_ADMIN);
	assert_false(trust_may_claim_machine(t, &p));
	p = user(1000, 1000);
	assert_true(trust_may_claim_machine(t, &p));
	p = nobody();
	assert_true(trust_may_claim_machine(t, &p));
}

static void
a_service_is_bound_by_its_role(void **state)
{
	struct tls_identity id;
	struct peer p;

	make("trust { name: 'none' }");
	p = certificate(&id, "device-7", ROLE_PRODUCER);
	assert_true(bind_roles_permit(t, producer_port, &p, false, why, sizeof(why)));
	assert_false(bind_roles_permit(t, relay_port, &p, false, why, sizeof(why)));
	expect_in("--role relay");
	assert_false(bind_roles_permit(t, consumer_port, &p, true, why, sizeof(why)));
	expect_in("the certificate \"device-7\" may be producer, not consumer");
	expect_in("--role consumer");
	expect_in("trust { name: \"device-7\" may: CONSUMER }");
	p = certificate(&id, "ann", ROLE_CONSUMER);
	assert_true(bind_roles_permit(t, consumer_port, &p, false, why, sizeof(why)));
	assert_false(bind_roles_permit(t, producer_port, &p, false, why, sizeof(why)));
	p = certificate(&id, "none", ROLES_ALL);
	assert_false(bind_roles_permit(t, producer_port, &p, false, why, sizeof(why)));
	expect_in("may be nothing");
}

static void
nobody_is_told_how_to_become_somebody(void **state)
{
	const char other[] = "Else";
	struct peer p = nobody();

	make("");
	assert_true(bind_roles_permit(t, producer_port, &p, false, why, sizeof(why)));
	assert_true(bind_roles_permit(t, relay_port, &p, false, why, sizeof(why)));
	assert_false(bind_roles_permit(t, consumer_port, &p, false, why, sizeof(why)));
	expect_in("tls://");
	expect_in("allow_plain_consumer");
	assert_true(bind_roles_permit(t, consumer_port, &p, true, why, sizeof(why)));
	assert_false(bind_roles_permit(t, other, &p, true, why, sizeof(why)));
}

static void
a_user_is_told_the_rule_that_would_help(void **state)
{
	struct peer p = user(1000, 1000);

	make("trust { user: '*' may: PRODUCER }");
	assert_false(bind_roles_permit(t, consumer_port, &p, false, why, sizeof(why)));
	expect_in("uid 1000 may be producer, not consumer");
	expect_in("trust { user: \"1000\" may: CONSUMER }");
}

static void
a_hostile_name_is_escaped_and_fits(void **state)
{
	struct tls_identity id;
	struct peer p;
	char name[128];

	make("");
	memset(name, '\n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	p = certificate(&id, name, ROLE_PRODUCER);
	assert_false(bind_roles_permit(t, consumer_port, &p, false, why, sizeof(why)));
	assert_null(strchr(why, '\n'));
	assert_non_null(memchr(why, '\0', sizeof(why)));
	expect_in("--role consumer");
}

static void
without_trust_the_defaults_hold(void **state)
{
	struct tls_identity id;
	struct peer p = user(geteuid(), 1);

	assert_int_equal(trust_roles(NULL, &p, false), ROLES_ALL);
	p = certificate(&id, "a", 0);
	assert_int_equal(trust_roles(NULL, &p, false),
	    ROLE_PRODUCER | ROLE_RELAY);
	assert_false(trust_may_claim_machine(NULL, &p));
	trust_free(NULL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(without_rules_a_user_is_what_the_socket_is_for),
		CASE(the_user_that_the_daemon_becomes_is_an_admin),
		CASE(without_rules_a_certificate_has_the_role_that_it_carries),
		CASE(a_role_that_is_none_gives_nothing),
		CASE(settings_may_give_certificates_another_default_and_ignore_roles),
		CASE(nobody_consumes_only_where_it_is_permitted),
		CASE(the_first_rule_that_fits_decides_also_for_nothing),
		CASE(alternative_names_fit_as_well),
		CASE(a_user_is_in_a_group_by_its_own_or_by_the_list),
		CASE(a_user_whom_the_groups_list_names_is_in_it),
		CASE(names_of_users_and_groups_are_looked_up_at_the_start),
		CASE(a_user_or_group_that_does_not_exist_is_named),
		CASE(a_user_that_does_not_exist_is_named),
		CASE(a_machine_is_claimed_by_those_who_may),
		CASE(a_service_is_bound_by_its_role),
		CASE(nobody_is_told_how_to_become_somebody),
		CASE(a_user_is_told_the_rule_that_would_help),
		CASE(a_hostile_name_is_escaped_and_fits),
		CASE(without_trust_the_defaults_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
