#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "cert_folder.h"
#include "client/cert/authority.h"
#include "client/cert/pem.h"
#include "client/cert/renew_ca.h"
#include "client/cert/revoke.h"
#include "transport/socket/roles.h"

#define NOW CERT_FOLDER_NOW
#define DAY CERT_FOLDER_DAY

static void
assert_says(struct cert_folder *f, const char *what)
{
	if (strstr(f->err, what) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", f->err, what);
}

static int
take_back(struct cert_folder *f, const char *what, enum cert_reason why)
{
	struct cert_revoked done;

	return cert_revoke(f->ca,
	    &(struct cert_revocation){ what, why, NOW + 60 }, &done, f->err,
	    sizeof(f->err));
}

static void
a_new_ca_has_all_its_files_with_keys_for_its_owner_only(void **state)
{
	struct cert_folder *f = *state;

	umask(0);
	cert_folder_init(f);
	umask(022);
	assert_int_equal(cert_folder_mode(f->ca), 0700);
	assert_int_equal(cert_folder_mode(cert_folder_path(f, "ca/ca-key.pem")),
	    0600);
	assert_int_equal(cert_folder_mode(cert_folder_path(f, "ca/key.pem")),
	    0600);
	assert_int_equal(cert_folder_mode(cert_folder_path(f, "ca/ca.pem")),
	    0644);
	assert_int_equal(cert_folder_mode(cert_folder_path(f, "ca/cert.pem")),
	    0644);
	assert_int_equal(cert_folder_mode(cert_folder_path(f, "ca/crl.pem")),
	    0644);
	assert_int_equal(cert_folder_mode(cert_folder_path(f, "ca/issued.txt")),
	    0600);
}

static void
the_ca_may_sign_certificates_but_no_other_ca(void **state)
{
	struct cert_folder *f = *state;
	X509 *ca;

	cert_folder_init(f);
	ca = cert_folder_certificate(cert_folder_path(f, "ca/ca.pem"));
	assert_int_equal(X509_check_ca(ca), 1);
	assert_int_equal(X509_get_pathlen(ca), 0);
	assert_int_equal(X509_get_key_usage(ca), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
	assert_int_equal(x509_make_until(ca), NOW + 3650l * DAY);
	assert_int_equal(x509_make_from(ca), NOW - 300);
	X509_free(ca);
}

static void
the_collector_may_serve_and_connect_under_all_its_names(void **state)
{
	static const char *const names[] = { "host-1", "10.0.0.7", "fd00::1",
		"a.example.org", "host-1" };
	struct cert_folder *f = *state;
	struct cert_order o = cert_folder_order(f, "host-1");
	X509 *x;

	o.alternatives = names;
	o.n_alternatives = 5;
	o.organization = "Acme, Inc.";
	assert_int_equal(cert_authority_init(&o, &f->done, f->err,
	    sizeof(f->err)), 0);
	assert_int_equal(cert_folder_verify(f, cert_folder_path(f,
	    "ca/cert.pem"), true, NOW), X509_V_OK);
	assert_int_equal(cert_folder_verify(f, cert_folder_path(f,
	    "ca/cert.pem"), false, NOW), X509_V_OK);
	x = cert_folder_certificate(cert_folder_path(f, "ca/cert.pem"));
	assert_int_equal(X509_check_host(x, "host-1", 0, 0, NULL), 1);
	assert_int_equal(X509_check_host(x, "a.example.org", 0, 0, NULL), 1);
	assert_int_equal(X509_check_host(x, "b.example.org", 0, 0, NULL), 0);
	assert_int_equal(X509_check_ip_asc(x, "10.0.0.7", 0), 1);
	assert_int_equal(X509_check_ip_asc(x, "fd00::1", 0), 1);
	assert_int_equal(X509_check_ip_asc(x, "10.0.0.8", 0), 0);
	assert_int_equal(x509_make_until(x), NOW + 825l * DAY);
	X509_free(x);
}

static void
a_device_may_connect_and_never_serve(void **state)
{
	struct cert_folder *f = *state;
	struct cert_order o;
	const char *path;

	cert_folder_init(f);
	o = cert_folder_order(f, "device-7");
	o.now = NOW + DAY;
	cert_outcome_done(&f->done);
	assert_int_equal(cert_authority_issue(&o, &f->done, f->err,
	    sizeof(f->err)), 0);
	path = cert_folder_path(f, "ca/issued/device-7/cert.pem");
	assert_int_equal(cert_folder_verify(f, path, true, NOW + DAY),
	    X509_V_ERR_INVALID_PURPOSE);
	/* five minutes for a clock that is slow */
	assert_int_equal(cert_folder_verify(f, path, false, NOW + DAY - 299),
	    X509_V_OK);
	assert_int_equal(cert_folder_verify(f, path, false, NOW + DAY - 301),
	    X509_V_ERR_CERT_NOT_YET_VALID);
	assert_int_equal(cert_folder_verify(f, path, false,
	    NOW + 826l * DAY - 1), X509_V_OK);
	assert_int_equal(cert_folder_verify(f, path, false,
	    NOW + 826l * DAY + 1), X509_V_ERR_CERT_HAS_EXPIRED);
	assert_string_equal(f->done.folder,
	    cert_folder_path(f, "ca/issued/device-7"));
	assert_int_equal(cert_folder_mode(f->done.folder), 0700);
	assert_int_equal(cert_folder_mode(cert_folder_path(f,
	    "ca/issued/device-7/key.pem")), 0600);
	assert_int_equal(cert_folder_mode(cert_folder_path(f,
	    "ca/issued/device-7/ca.pem")), 0644);
}

/* The role that the URIs of a certificate give. */
static uint32_t
roles_of(const char *path)
{
	X509 *x = cert_folder_certificate(path);
	GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL,
	    NULL);
	uint32_t roles = 0;
	GENERAL_NAME *g;
	int i;

	for (i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		g = sk_GENERAL_NAME_value(names, i);
		if (g->type == GEN_URI)
			roles |= role_from_uri((const char *)
			    ASN1_STRING_get0_data(g->d.uniformResourceIdentifier),
			    (size_t)ASN1_STRING_length(
				g->d.uniformResourceIdentifier));
	}
	GENERAL_NAMES_free(names);
	X509_free(x);
	return roles;
}

static void
each_role_is_a_uri_of_its_own(void **state)
{
	static const uint32_t roles[] = { ROLE_PRODUCER, ROLE_RELAY,
		ROLE_CONSUMER, ROLE_ADMIN };
	struct cert_folder *f = *state;
	struct cert_order o;
	char name[16];
	size_t i;

	cert_folder_init(f);
	cert_outcome_done(&f->done);
	for (i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "peer %zu", i);
		o = cert_folder_order(f, name);
		o.role = roles[i];
		o.key = i % 2 ? CERT_KEY_ED25519 : CERT_KEY_P256;
		assert_int_equal(cert_authority_issue(&o, &f->done, f->err,
		    sizeof(f->err)), 0);
		cert_outcome_done(&f->done);
		assert_int_equal(roles_of(cert_folder_path(f,
		    "ca/issued/%s/cert.pem", name)), roles[i]);
		assert_int_equal(cert_folder_verify(f, cert_folder_path(f,
		    "ca/issued/%s/cert.pem", name), false, NOW), X509_V_OK);
	}
}

static void
an_ed25519_ca_signs_like_any_other(void **state)
{
	struct cert_folder *f = *state;
	struct cert_order o = cert_folder_order(f, "collector");
	X509 *x;

	o.key = CERT_KEY_ED25519;
	assert_int_equal(cert_authority_init(&o, &f->done, f->err,
	    sizeof(f->err)), 0);
	cert_folder_issue(f, "device");
	assert_int_equal(cert_folder_verify(f, cert_folder_path(f,
	    "ca/issued/device/cert.pem"), false, NOW), X509_V_OK);
	x = cert_folder_certificate(cert_folder_path(f, "ca/cert.pem"));
	assert_true(EVP_PKEY_is_a(X509_get0_pubkey(x), "ED25519"));
	X509_free(x);
	assert_int_equal(take_back(f, "device", CERT_REASON_UNSPECIFIED), 0);
	assert_int_equal(cert_folder_verify(f, cert_folder_path(f,
	    "ca/issued/device/cert.pem"), false, NOW + 120),
	    X509_V_ERR_CERT_REVOKED);
}

static void
serial_numbers_are_random_and_have_128_bits(void **state)
{
	struct cert_folder *f = *state;
	char first[CERT_SERIAL_SIZE];

	cert_folder_init(f);
	cert_folder_issue(f, "a");
	memcpy(first, f->done.entry.serial, sizeof(first));
	cert_folder_issue(f, "b");
	assert_int_equal(strlen(first), 32);
	assert_int_equal(strlen(f->done.entry.serial), 32);
	assert_string_not_equal(first, f->done.entry.serial);
}

static void
a_folder_that_has_any_file_of_a_ca_is_left_alone(void **state)
{
	static const char *const files[] = { "ca.pem", "ca-key.pem", "cert.pem",
		"key.pem", "crl.pem", "issued.txt" };
	struct cert_folder *f = *state;
	struct cert_order o = cert_folder_order(f, "collector");
	const char *path;
	char *text;
	size_t i;

	assert_int_equal(mkdir(f->ca, 0700), 0);
	for (i = 0; i < 6; i++) {
		path = cert_folder_path(f, "ca/%s", files[i]);
		cert_folder_write(path, "mine\n");
		assert_int_equal(cert_authority_init(&o, &f->done, f->err,
		    sizeof(f->err)), -1);
		assert_says(f, files[i]);
		assert_says(f, "never overwritten");
		text = cert_folder_read(path);
		assert_string_equal(text, "mine\n");
		free(text);
		assert_int_equal(unlink(path), 0);
	}
	/* and nothing was left behind that is in the way now */
	cert_folder_init(f);
}

static void
a_folder_where_others_may_write_is_refused(void **state)
{
	struct cert_folder *f = *state;
	struct cert_order o = cert_folder_order(f, "collector");

	assert_int_equal(mkdir(f->ca, 0700), 0);
	assert_int_equal(chmod(f->ca, 0770), 0);
	assert_int_equal(cert_authority_init(&o, &f->done, f->err,
	    sizeof(f->err)), -1);
	assert_says(f, "chmod go-w");
}

static void
two_commands_at_once_are_not_possible(void **state)
{
	struct cert_folder *f = *state;
	struct cert_order o = cert_folder_order(f, "device");
	int fd;

	cert_folder_init(f);
	cert_outcome_done(&f->done);
	fd = open(cert_folder_path(f, "ca/lock"), O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(cert_authority_issue(&o, &f->done, f->err,
	    sizeof(f->err)), -1);
	assert_says(f, "another tributary cert is at work");
	close(fd);
	assert_int_equal(cert_authority_issue(&o, &f->done, f->err,
	    sizeof(f->err)), 0);
}

static void
a_name_that_is_in_use_is_refused_until_it_is_revoked(void **state)
{
	struct cert_folder *f = *state;
	struct cert_order o = cert_folder_order(f, "device");
	char *before, *after;

	cert_folder_init(f);
	cert_folder_issue(f, "device");
	before = cert_folder_read(cert_folder_path(f,
	    "ca/issued/device/key.pem"));
	cert_outcome_done(&f->done);
	assert_int_equal(cert_authority_issue(&o, &f->done, f->err,
	    sizeof(f->err)), -1);
	assert_says(f, "tributary cert renew");
	after = cert_folder_read(cert_folder_path(f,
	    "ca/issued/device/key.pem"));
	assert_string_equal(before, after);
	free(before);
	free(after);
	assert_int_equal(take_back(f, "device", CERT_REASON_KEY_COMPROMISE), 0);
	cert_folder_issue(f, "device");
	assert_int_equal(cert_folder_verify(f, cert_folder_path(f,
	    "ca/issued/device/cert.pem"), false, NOW + 60), X509_V_OK);
}

static void
a_name_may_be_issued_again_when_it_has_expired(void **state)
{
	struct cert_folder *f = *state;
	struct cert_order o;

	cert_folder_init(f);
	cert_folder_issue(f, "device");
	o = cert_folder_order(f, "device");
	o.now += 826l * DAY;
	cert_outcome_done(&f->done);
	assert_int_equal(cert_authority_issue(&o, &f->done, f->err,
	    sizeof(f->err)), 0);
}

static void
names_that_are_no_folder_are_refused(void **state)
{
	static const char *const names[] = { "", ".", "..", "../x", "a/b", "-x",
		".ssh", "a\nb", "a\x7f", "\xff", " a", "a ",
		"0123456789012345678901234567890123456789"
		"0123456789012345678901234" };
	struct cert_folder *f = *state;
	struct cert_order o;
	size_t i;

	cert_folder_init(f);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		o = cert_folder_order(f, names[i]);
		cert_outcome_done(&f->done);
		if (cert_authority_issue(&o, &f->done, f->err,
			sizeof(f->err)) == 0)
			fail_msg("\"%s\" was taken", names[i]);
		assert_says(f, "the name");
	}
}

static void
a_role_cannot_be_smuggled_in_as_a_name(void **state)
{
	static const char *const names[] = { "urn:tributary:role:admin" };
	struct cert_folder *f = *state;
	struct cert_order o;

	cert_folder_init(f);
	o = cert_folder_order(f, "device");
	o.alternatives = names;
	o.n_alternatives = 1;
	cert_outcome_done(&f->done);
	assert_int_equal(cert_authority_issue(&o, &f->done, f->err,
	    sizeof(f->err)), -1);
	assert_says(f, "--role admin");
}

static void
no_certificate_outlives_its_ca(void **state)
{
	struct cert_folder *f = *state;
	struct cert_order o;

	cert_folder_init(f);
	o = cert_folder_order(f, "device");
	o.days = 36500;
	cert_outcome_done(&f->done);
	assert_int_equal(cert_authority_issue(&o, &f->done, f->err,
	    sizeof(f->err)), 0);
	assert_true(f->done.shortened);
	assert_int_equal(f->done.entry.until, NOW + 3650l * DAY);
	o = cert_folder_order(f, "late");
	o.now += 3650l * DAY;
	cert_outcome_done(&f->done);
	assert_int_equal(cert_authority_issue(&o, &f->done, f->err,
	    sizeof(f->err)), -1);
	assert_says(f, "--ca");
}

static void
files_for_another_folder_leave_no_key_in_the_ca(void **state)
{
	struct cert_folder *f = *state;
	struct cert_order o;

	cert_folder_init(f);
	o = cert_folder_order(f, "device");
	o.out = cert_folder_path(f, "out");
	cert_outcome_done(&f->done);
	assert_int_equal(cert_authority_issue(&o, &f->done, f->err,
	    sizeof(f->err)), 0);
	assert_int_equal(cert_folder_mode(cert_folder_path(f, "out")), 0700);
	assert_int_equal(cert_folder_mode(cert_folder_path(f, "out/key.pem")),
	    0600);
	assert_int_equal(cert_folder_mode(cert_folder_path(f, "out/ca.pem")),
	    0644);
	assert_int_equal(cert_folder_mode(cert_folder_path(f,
	    "ca/issued/device/key.pem")), -1);
	/* and a folder in use is not written into */
	o = cert_folder_order(f, "other");
	o.out = cert_folder_path(f, "out");
	cert_outcome_done(&f->done);
	assert_int_equal(cert_authority_issue(&o, &f->done, f->err,
	    sizeof(f->err)), -1);
	assert_says(f, "never overwritten");
}

static void
revoking_ends_a_certificate_and_no_other(void **state)
{
	struct cert_folder *f = *state;
	const char *lost, *kept;

	cert_folder_init(f);
	cert_folder_issue(f, "lost");
	cert_folder_issue(f, "kept");
	lost = cert_folder_path(f, "ca/issued/lost/cert.pem");
	kept = cert_folder_path(f, "ca/issued/kept/cert.pem");
	assert_int_equal(cert_folder_verify(f, lost, false, NOW), X509_V_OK);
	assert_int_equal(take_back(f, "lost", CERT_REASON_KEY_COMPROMISE), 0);
	lost = cert_folder_path(f, "ca/issued/lost/cert.pem");
	kept = cert_folder_path(f, "ca/issued/kept/cert.pem");
	assert_int_equal(cert_folder_verify(f, lost, false, NOW + 120),
	    X509_V_ERR_CERT_REVOKED);
	assert_int_equal(cert_folder_verify(f, kept, false, NOW + 120),
	    X509_V_OK);
	/* the list is good as long as the CA */
	assert_int_equal(cert_folder_verify(f, kept, false, NOW + 824l * DAY),
	    X509_V_OK);
}

static void
a_serial_number_revokes_as_well_as_a_name(void **state)
{
	struct cert_folder *f = *state;
	char text[64];
	size_t i;

	cert_folder_init(f);
	cert_folder_issue(f, "device");
	/* as openssl prints it */
	for (i = 0; i < 16; i++)
		snprintf(text + 3 * i, 4, "%.2s%s",
		    f->done.entry.serial + 2 * i, i < 15 ? ":" : "");
	assert_int_equal(take_back(f, text, CERT_REASON_CESSATION), 0);
	assert_int_equal(cert_folder_verify(f, cert_folder_path(f,
	    "ca/issued/device/cert.pem"), false, NOW + 120),
	    X509_V_ERR_CERT_REVOKED);
	assert_int_equal(take_back(f, "nobody", CERT_REASON_UNSPECIFIED), -1);
	assert_says(f, "neither a name nor a serial number");
}

static uint64_t
crl_number(struct cert_folder *f)
{
	X509_CRL *crl = cert_pem_read_crl(cert_folder_path(f, "ca/crl.pem"),
	    f->err, sizeof(f->err));
	uint64_t n;

	assert_non_null(crl);
	n = x509_make_crl_number(crl);
	X509_CRL_free(crl);
	return n;
}

static void
the_number_of_the_list_counts_up_even_when_the_list_was_lost(void **state)
{
	struct cert_folder *f = *state;
	uint64_t last;

	cert_folder_init(f);
	assert_int_equal(crl_number(f), 1);
	cert_folder_issue(f, "a");
	cert_folder_issue(f, "b");
	assert_int_equal(take_back(f, "a", CERT_REASON_UNSPECIFIED), 0);
	assert_int_equal(crl_number(f), 2);
	/* once more changes nothing but the list */
	assert_int_equal(take_back(f, "a", CERT_REASON_UNSPECIFIED), 0);
	last = crl_number(f);
	assert_int_equal(last, 3);
	assert_int_equal(unlink(cert_folder_path(f, "ca/crl.pem")), 0);
	assert_int_equal(take_back(f, "b", CERT_REASON_UNSPECIFIED), 0);
	assert_true(crl_number(f) > last);
	/* what was revoked before is in the new list, too */
	assert_int_equal(cert_folder_verify(f, cert_folder_path(f,
	    "ca/issued/a/cert.pem"), false, NOW + 120),
	    X509_V_ERR_CERT_REVOKED);
}

static void
renewing_keeps_names_and_role_and_changes_the_key(void **state)
{
	static const char *const names[] = { "10.0.0.9", "spiffe://x/y" };
	struct cert_folder *f = *state;
	struct cert_order o;
	X509 *old, *new;
	EVP_PKEY *key;

	cert_folder_init(f);
	o = cert_folder_order(f, "device");
	o.role = ROLE_RELAY;
	o.alternatives = names;
	o.n_alternatives = 2;
	o.key = CERT_KEY_ED25519;
	cert_outcome_done(&f->done);
	assert_int_equal(cert_authority_issue(&o, &f->done, f->err,
	    sizeof(f->err)), 0);
	old = cert_folder_certificate(cert_folder_path(f,
	    "ca/issued/device/cert.pem"));
	o = cert_folder_order(f, "device");
	o.now += 100l * DAY;
	cert_outcome_done(&f->done);
	assert_int_equal(cert_authority_renew(&o, &f->done, f->err,
	    sizeof(f->err)), 0);
	new = cert_folder_certificate(cert_folder_path(f,
	    "ca/issued/device/cert.pem"));
	key = cert_pem_read_key(cert_folder_path(f, "ca/issued/device/key.pem"),
	    f->err, sizeof(f->err));
	assert_int_equal(X509_check_private_key(new, key), 1);
	assert_int_equal(EVP_PKEY_eq(X509_get0_pubkey(old), key), 0);
	assert_true(EVP_PKEY_is_a(key, "ED25519"));
	assert_int_equal(X509_NAME_cmp(X509_get_subject_name(old),
	    X509_get_subject_name(new)), 0);
	assert_int_equal(X509_check_ip_asc(new, "10.0.0.9", 0), 1);
	assert_int_equal(roles_of(cert_folder_path(f,
	    "ca/issued/device/cert.pem")), ROLE_RELAY);
	assert_int_equal(x509_make_until(new), NOW + 925l * DAY);
	EVP_PKEY_free(key);
	X509_free(old);
	X509_free(new);
}

static void
renewing_with_the_key_kept_changes_the_dates_only(void **state)
{
	struct cert_folder *f = *state;
	char *before, *after;
	struct cert_order o;
	X509 *x;

	cert_folder_init(f);
	before = cert_folder_read(cert_folder_path(f, "ca/key.pem"));
	o = cert_folder_order(f, NULL);
	o.keep_key = true;
	o.now += DAY;
	cert_outcome_done(&f->done);
	assert_int_equal(cert_authority_renew(&o, &f->done, f->err,
	    sizeof(f->err)), 0);
	after = cert_folder_read(cert_folder_path(f, "ca/key.pem"));
	assert_string_equal(before, after);
	free(before);
	free(after);
	x = cert_folder_certificate(cert_folder_path(f, "ca/cert.pem"));
	assert_int_equal(x509_make_until(x), NOW + 826l * DAY);
	assert_int_equal(X509_check_host(x, "localhost", 0, 0, NULL), 1);
	X509_free(x);
	assert_int_equal(cert_folder_verify(f, cert_folder_path(f,
	    "ca/cert.pem"), true, NOW + DAY), X509_V_OK);
}

static void
renewing_the_collector_can_add_a_name(void **state)
{
	static const char *const names[] = { "new.example.org" };
	struct cert_folder *f = *state;
	struct cert_order o;
	X509 *x;

	cert_folder_init(f);
	o = cert_folder_order(f, NULL);
	o.alternatives = names;
	o.n_alternatives = 1;
	cert_outcome_done(&f->done);
	assert_int_equal(cert_authority_renew(&o, &f->done, f->err,
	    sizeof(f->err)), 0);
	x = cert_folder_certificate(cert_folder_path(f, "ca/cert.pem"));
	assert_int_equal(X509_check_host(x, "new.example.org", 0, 0, NULL), 1);
	assert_int_equal(X509_check_host(x, "localhost", 0, 0, NULL), 1);
	X509_free(x);
}

static void
an_old_certificate_is_revoked_by_its_name_too(void **state)
{
	struct cert_folder *f = *state;
	struct cert_order o;
	char *old;

	cert_folder_init(f);
	cert_folder_issue(f, "device");
	old = cert_folder_read(cert_folder_path(f,
	    "ca/issued/device/cert.pem"));
	cert_folder_write(cert_folder_path(f, "old.pem"), old);
	free(old);
	o = cert_folder_order(f, "device");
	cert_outcome_done(&f->done);
	assert_int_equal(cert_authority_renew(&o, &f->done, f->err,
	    sizeof(f->err)), 0);
	assert_int_equal(cert_folder_verify(f, cert_folder_path(f, "old.pem"),
	    false, NOW), X509_V_OK);
	assert_int_equal(take_back(f, "device", CERT_REASON_KEY_COMPROMISE), 0);
	assert_int_equal(cert_folder_verify(f, cert_folder_path(f, "old.pem"),
	    false, NOW + 120), X509_V_ERR_CERT_REVOKED);
}

static void
renewing_revokes_the_old_one_when_asked_to(void **state)
{
	struct cert_folder *f = *state;
	struct cert_order o;
	char *old;

	cert_folder_init(f);
	old = cert_folder_read(cert_folder_path(f, "ca/cert.pem"));
	cert_folder_write(cert_folder_path(f, "old.pem"), old);
	free(old);
	o = cert_folder_order(f, NULL);
	o.revoke_old = true;
	cert_outcome_done(&f->done);
	assert_int_equal(cert_authority_renew(&o, &f->done, f->err,
	    sizeof(f->err)), 0);
	assert_int_equal(cert_folder_verify(f, cert_folder_path(f, "old.pem"),
	    true, NOW + 1), X509_V_ERR_CERT_REVOKED);
	assert_int_equal(cert_folder_verify(f, cert_folder_path(f,
	    "ca/cert.pem"), true, NOW + 1), X509_V_OK);
}

static void
a_revoked_collector_is_renewed_with_a_new_key_only(void **state)
{
	struct cert_folder *f = *state;
	struct cert_order o;

	cert_folder_init(f);
	assert_int_equal(take_back(f, "collector", CERT_REASON_KEY_COMPROMISE), 0);
	o = cert_folder_order(f, NULL);
	o.keep_key = true;
	cert_outcome_done(&f->done);
	assert_int_equal(cert_authority_renew(&o, &f->done, f->err,
	    sizeof(f->err)), -1);
	assert_says(f, "--keep-key");
	o.keep_key = false;
	assert_int_equal(cert_authority_renew(&o, &f->done, f->err,
	    sizeof(f->err)), 0);
	assert_int_equal(cert_folder_verify(f, cert_folder_path(f,
	    "ca/cert.pem"), true, NOW + 120), X509_V_OK);
}

static void
what_is_revoked_or_unknown_cannot_be_renewed(void **state)
{
	struct cert_folder *f = *state;
	struct cert_order o;

	cert_folder_init(f);
	cert_folder_issue(f, "device");
	assert_int_equal(take_back(f, "device", CERT_REASON_UNSPECIFIED), 0);
	o = cert_folder_order(f, "device");
	cert_outcome_done(&f->done);
	assert_int_equal(cert_authority_renew(&o, &f->done, f->err,
	    sizeof(f->err)), -1);
	assert_says(f, "revoked");
	o = cert_folder_order(f, "nobody");
	assert_int_equal(cert_authority_renew(&o, &f->done, f->err,
	    sizeof(f->err)), -1);
	assert_says(f, "no certificate of this CA");
}

static void
a_renewed_ca_vouches_for_what_the_old_one_signed(void **state)
{
	struct cert_folder *f = *state;
	struct cert_order o;
	char *ours, *theirs;
	time_t later = NOW + 3651l * DAY;

	cert_folder_init(f);
	o = cert_folder_order(f, "device");
	o.now += 3600l * DAY;
	cert_outcome_done(&f->done);
	assert_int_equal(cert_authority_issue(&o, &f->done, f->err,
	    sizeof(f->err)), 0);
	o = cert_folder_order(f, NULL);
	o.days = CERT_CA_DAYS;
	o.now += 3600l * DAY;
	cert_outcome_done(&f->done);
	assert_int_equal(cert_renew_ca(&o, &f->done, f->err,
	    sizeof(f->err)), 0);
	assert_int_equal(f->done.entry.until, NOW + 7250l * DAY);
	ours = cert_folder_read(cert_folder_path(f, "ca/ca.pem"));
	theirs = cert_folder_read(cert_folder_path(f,
	    "ca/issued/device/ca.pem"));
	assert_string_equal(ours, theirs);
	free(ours);
	free(theirs);
	/* The device's own end was that of the old CA. */
	assert_int_equal(cert_folder_verify(f, cert_folder_path(f,
	    "ca/issued/device/cert.pem"), false, NOW + 3605l * DAY), X509_V_OK);
	o = cert_folder_order(f, "device");
	o.now = NOW + 3600l * DAY;
	cert_outcome_done(&f->done);
	assert_int_equal(cert_authority_renew(&o, &f->done, f->err,
	    sizeof(f->err)), 0);
	assert_int_equal(cert_folder_verify(f, cert_folder_path(f,
	    "ca/issued/device/cert.pem"), false, later), X509_V_OK);
}

static void
a_folder_without_a_ca_or_its_key_says_so(void **state)
{
	struct cert_folder *f = *state;
	struct cert_order o = cert_folder_order(f, "device");

	assert_int_equal(cert_authority_issue(&o, &f->done, f->err,
	    sizeof(f->err)), -1);
	cert_folder_init(f);
	assert_int_equal(unlink(cert_folder_path(f, "ca/ca-key.pem")), 0);
	cert_outcome_done(&f->done);
	assert_int_equal(cert_authority_issue(&o, &f->done, f->err,
	    sizeof(f->err)), -1);
	assert_says(f, "ca-key.pem");
	assert_int_equal(unlink(cert_folder_path(f, "ca/ca.pem")), 0);
	assert_int_equal(cert_authority_issue(&o, &f->done, f->err,
	    sizeof(f->err)), -1);
	assert_says(f, "tributary cert init");
}

static void
the_key_of_another_ca_is_noticed(void **state)
{
	struct cert_folder *f = *state;
	struct cert_order o = cert_folder_order(f, "device");
	char *key;

	cert_folder_init(f);
	key = cert_folder_read(cert_folder_path(f, "ca/key.pem"));
	cert_folder_write(cert_folder_path(f, "ca/ca-key.pem"), key);
	free(key);
	cert_outcome_done(&f->done);
	assert_int_equal(cert_authority_issue(&o, &f->done, f->err,
	    sizeof(f->err)), -1);
	assert_says(f, "do not belong together");
}

static void
a_damaged_index_is_named_with_its_line(void **state)
{
	struct cert_folder *f = *state;
	struct cert_order o = cert_folder_order(f, "device");

	cert_folder_init(f);
	cert_folder_write(cert_folder_path(f, "ca/issued.txt"),
	    "# tributary certificates 1\nnonsense\n");
	cert_outcome_done(&f->done);
	assert_int_equal(cert_authority_issue(&o, &f->done, f->err,
	    sizeof(f->err)), -1);
	assert_says(f, "issued.txt: line 2");
}

static void
a_failure_leaves_the_index_as_it_was(void **state)
{
	struct cert_folder *f = *state;
	struct cert_order o = cert_folder_order(f, "device");
	char *before, *after;

	cert_folder_init(f);
	before = cert_folder_read(cert_folder_path(f, "ca/issued.txt"));
	/* A file where the folder has to be. */
	assert_int_equal(mkdir(cert_folder_path(f, "ca/issued"), 0700), 0);
	cert_folder_write(cert_folder_path(f, "ca/issued/device"), "");
	cert_outcome_done(&f->done);
	assert_int_equal(cert_authority_issue(&o, &f->done, f->err,
	    sizeof(f->err)), -1);
	after = cert_folder_read(cert_folder_path(f, "ca/issued.txt"));
	assert_string_equal(before, after);
	free(before);
	free(after);
}

#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, cert_folder_setup, \
	    cert_folder_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_new_ca_has_all_its_files_with_keys_for_its_owner_only),
		TEST(the_ca_may_sign_certificates_but_no_other_ca),
		TEST(the_collector_may_serve_and_connect_under_all_its_names),
		TEST(a_device_may_connect_and_never_serve),
		TEST(each_role_is_a_uri_of_its_own),
		TEST(an_ed25519_ca_signs_like_any_other),
		TEST(serial_numbers_are_random_and_have_128_bits),
		TEST(a_folder_that_has_any_file_of_a_ca_is_left_alone),
		TEST(a_folder_where_others_may_write_is_refused),
		TEST(two_commands_at_once_are_not_possible),
		TEST(a_name_that_is_in_use_is_refused_until_it_is_revoked),
		TEST(a_name_may_be_issued_again_when_it_has_expired),
		TEST(names_that_are_no_folder_are_refused),
		TEST(a_role_cannot_be_smuggled_in_as_a_name),
		TEST(no_certificate_outlives_its_ca),
		TEST(files_for_another_folder_leave_no_key_in_the_ca),
		TEST(revoking_ends_a_certificate_and_no_other),
		TEST(a_serial_number_revokes_as_well_as_a_name),
		TEST(the_number_of_the_list_counts_up_even_when_the_list_was_lost),
		TEST(renewing_keeps_names_and_role_and_changes_the_key),
		TEST(renewing_with_the_key_kept_changes_the_dates_only),
		TEST(renewing_the_collector_can_add_a_name),
		TEST(an_old_certificate_is_revoked_by_its_name_too),
		TEST(renewing_revokes_the_old_one_when_asked_to),
		TEST(a_revoked_collector_is_renewed_with_a_new_key_only),
		TEST(what_is_revoked_or_unknown_cannot_be_renewed),
		TEST(a_renewed_ca_vouches_for_what_the_old_one_signed),
		TEST(a_folder_without_a_ca_or_its_key_says_so),
		TEST(the_key_of_another_ca_is_noticed),
		TEST(a_damaged_index_is_named_with_its_line),
		TEST(a_failure_leaves_the_index_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
