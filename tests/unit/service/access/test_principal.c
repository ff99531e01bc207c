#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "service/access/principal.h"
#include "transport/tls/tls.h"

static struct tls_identity id[2];

static struct principal
user(uint32_t uid, bool admin)
{
	struct peer p = { .kind = ADDR_UNIX, .auth = PEER_UNIX, .uid = uid };
	struct principal out;

	principal_of_peer(&out, &p, admin);
	return out;
}

static struct principal
certificate(size_t which, const char *name)
{
	/* A uid there is of nobody who vouches for it. */
	struct peer p = { .kind = ADDR_TLS, .auth = PEER_CERT, .uid = 0,
		.cert = &id[which] };
	struct principal out;

	snprintf(id[which].name, sizeof(id[which].name), "%s", name);
	principal_of_peer(&out, &p, false);
	return out;
}

static struct principal
nobody(uint64_t address)
{
	struct peer p = { .kind = ADDR_TCP, .auth = PEER_NOBODY, .uid = 0,
		.addr_hash = address };
	struct principal out;

	principal_of_peer(&out, &p, false);
	return out;
}

static void
the_same_uid_is_the_same_owner(void **state)
{
	struct principal a = user(1000, false), b = user(1000, true);
	struct principal c = user(1001, false);

	assert_true(principal_equal(&a, &b));
	assert_false(principal_equal(&a, &c));
	assert_int_equal(principal_key(&a), principal_key(&b));
	assert_int_not_equal(principal_key(&a), principal_key(&c));
	assert_int_equal(a.uid, 1000);
}

static void
the_same_name_on_certificates_is_the_same_owner(void **state)
{
	struct principal a = certificate(0, "ann"), b = certificate(1, "ann");
	struct principal c = certificate(0, "bob");

	assert_true(principal_equal(&a, &b));
	assert_false(principal_equal(&a, &c));
	assert_int_not_equal(principal_key(&a), principal_key(&c));
	assert_int_equal(a.uid, PEER_UID_UNKNOWN);
}

static void
those_whom_nobody_vouches_for_are_one_and_nobody_else(void **state)
{
	struct principal a = nobody(1), b = nobody(2);
	struct principal u = user(PEER_UID_UNKNOWN, false);
	struct principal c = certificate(0, "");

	assert_true(principal_equal(&a, &b));
	assert_int_equal(a.uid, PEER_UID_UNKNOWN);
	assert_false(principal_equal(&a, &u));
	assert_false(principal_equal(&a, &c));
	assert_false(principal_equal(&u, &c));
	assert_int_not_equal(principal_key(&a), principal_key(&u));
	assert_int_not_equal(principal_key(&a), principal_key(&c));
}

static void
owners_and_admins_may(void **state)
{
	struct principal a = user(1000, false), b = user(1001, false);
	struct principal root = user(0, true), plain_root = user(0, false);

	assert_true(principal_may(&a, &a));
	assert_false(principal_may(&a, &b));
	assert_true(principal_may(&root, &a));
	assert_false(principal_may(&plain_root, &a));
	assert_false(principal_may(&a, &root));
}

static void
a_principal_is_named_in_words(void **state)
{
	struct principal a = user(1000, false), n = nobody(1);
	struct principal c = certificate(0, "ann\n\"");
	char text[96];

	assert_string_equal(principal_text(&a, text, sizeof(text)), "uid 1000");
	assert_string_equal(principal_text(&n, text, sizeof(text)),
	    "an unknown peer");
	principal_text(&c, text, sizeof(text));
	assert_non_null(strstr(text, "the certificate \"ann"));
	assert_null(strchr(text, '\n'));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_uid_is_the_same_owner),
		cmocka_unit_test(the_same_name_on_certificates_is_the_same_owner),
		cmocka_unit_test(those_whom_nobody_vouches_for_are_one_and_nobody_else),
		cmocka_unit_test(owners_and_admins_may),
		cmocka_unit_test(a_principal_is_named_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
