#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "cert_folder.h"
#include "client/cert/revoke.h"
#include "client/cert/show.h"

#define NOW CERT_FOLDER_NOW
#define DAY CERT_FOLDER_DAY

/* What is shown of a folder or a file; to be freed. */
static char *
show(struct cert_folder *f, const char *path, bool file, bool json, time_t now)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	int r;

	r = file ? cert_show_file(out, path, json, now, f->err, sizeof(f->err))
		 : cert_show_folder(out, path, json, now, f->err,
		       sizeof(f->err));
	fclose(out);
	if (r == 0)
		return text;
	free(text);
	return NULL;
}

/* The line that begins with a word. */
static void
assert_line(const char *text, const char *word, const char *part)
{
	const char *line = text, *end;
	char copy[512];

	for (; *line != '\0'; line = end + 1) {
		end = strchr(line, '\n');
		assert_non_null(end);
		snprintf(copy, sizeof(copy), "%.*s", (int)(end - line), line);
		if (strncmp(copy, word, strlen(word)) == 0 &&
		    strstr(copy, part) != NULL)
			return;
	}
	fail_msg("no line \"%s ... %s\" in:\n%s", word, part, text);
}

static void
revoke_lost(struct cert_folder *f)
{
	struct cert_revoked done;

	assert_int_equal(cert_revoke(f->ca, &(struct cert_revocation){
	    "lost", CERT_REASON_KEY_COMPROMISE, NOW }, &done, f->err,
	    sizeof(f->err)), 0);
}

static void
a_folder_is_a_table_with_the_state_of_each(void **state)
{
	struct cert_folder *f = *state;
	struct cert_order o;
	char *text;

	cert_folder_init(f);
	cert_folder_issue(f, "device-7");
	cert_folder_issue(f, "lost");
	o = cert_folder_order(f, "short");
	o.days = 10;
	cert_outcome_done(&f->done);
	assert_int_equal(cert_authority_issue(&o, &f->done, f->err,
	    sizeof(f->err)), 0);
	revoke_lost(f);
	text = show(f, f->ca, false, false, NOW);
	assert_line(text, "NAME", "STATE");
	assert_line(text, "Tributary CA", "2036-11-18  valid");
	assert_line(text, "collector", "collector");
	assert_line(text, "device-7", "2026-11-21  2029-02-23  valid");
	assert_line(text, "lost", "revoked (key-compromise)");
	assert_line(text, "short", "expires in 10 days");
	free(text);
	text = show(f, f->ca, false, false, NOW + 11 * DAY);
	assert_line(text, "short", "expired");
	free(text);
	text = show(f, f->ca, false, false, NOW + 9 * DAY);
	assert_line(text, "short", "expires in 1 day");
	free(text);
	text = show(f, f->ca, false, false, NOW - DAY);
	assert_line(text, "device-7", "not valid yet");
	free(text);
}

static void
a_revocation_that_did_not_reach_the_list_is_seen(void **state)
{
	struct cert_folder *f = *state;
	char *text;

	cert_folder_init(f);
	cert_folder_issue(f, "lost");
	revoke_lost(f);
	assert_int_equal(unlink(cert_folder_path(f, "ca/crl.pem")), 0);
	text = show(f, f->ca, false, false, NOW);
	assert_line(text, "lost", "not in crl.pem");
	free(text);
	text = show(f, f->ca, false, true, NOW);
	assert_non_null(strstr(text, "\"listed\": false"));
	free(text);
}

static void
a_file_is_shown_in_full(void **state)
{
	struct cert_folder *f = *state;
	char *text;

	cert_folder_init(f);
	cert_folder_issue(f, "device-7");
	text = show(f, cert_folder_path(f, "ca/issued/device-7/cert.pem"), true,
	    false, NOW);
	assert_line(text, "subject", "CN=device-7");
	assert_line(text, "issuer", "Tributary CA");
	assert_line(text, "serial", f->done.entry.serial);
	assert_line(text, "role", "producer");
	assert_line(text, "names", "DNS:device-7");
	assert_line(text, "key", "ECDSA P-256");
	assert_line(text, "may", "connect");
	assert_line(text, "state", "valid");
	free(text);
	text = show(f, cert_folder_path(f, "ca/ca.pem"), true, false, NOW);
	assert_line(text, "may", "sign certificates");
	assert_line(text, "role", "none");
	free(text);
}

static void
a_revocation_list_is_shown(void **state)
{
	struct cert_folder *f = *state;
	char *text;

	cert_folder_init(f);
	cert_folder_issue(f, "lost");
	revoke_lost(f);
	text = show(f, cert_folder_path(f, "ca/crl.pem"), true, false, NOW);
	assert_line(text, "number", "2");
	assert_line(text, "revoked", f->done.entry.serial);
	free(text);
}

static void
keys_are_never_shown(void **state)
{
	struct cert_folder *f = *state;

	cert_folder_init(f);
	assert_null(show(f, cert_folder_path(f, "ca/key.pem"), true, false,
	    NOW));
	assert_non_null(strstr(f->err, "never shown"));
	cert_folder_write(cert_folder_path(f, "junk"), "nothing\n");
	assert_null(show(f, cert_folder_path(f, "junk"), true, false, NOW));
	assert_non_null(strstr(f->err, "no certificate"));
}

#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, cert_folder_setup, \
	    cert_folder_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_folder_is_a_table_with_the_state_of_each),
		TEST(a_revocation_that_did_not_reach_the_list_is_seen),
		TEST(a_file_is_shown_in_full),
		TEST(a_revocation_list_is_shown),
		TEST(keys_are_never_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
