#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/web/web_options.h"

static char dir[] = "/tmp/web_options.XXXXXX";
static char file[64];
static char err[WEB_ERROR_SIZE];

static int
setup(void **state)
{
	strcpy(dir, "/tmp/web_options.XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(file, sizeof(file), "%s/file", dir);
	return 0;
}

static int
teardown(void **state)
{
	unlink(file);
	return rmdir(dir);
}

static void
put_file(const char *text, mode_t mode)
{
	FILE *out = fopen(file, "w");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
	assert_int_equal(chmod(file, mode), 0);
}

/* Words end with NULL.  The result of the check; the sentence is in err. */
static int
check(struct web_options *o, const char *const *words)
{
	char *argv[16] = { (char *)"tributary-web", (char *)"--connect",
		(char *)"/run/c" };
	int argc = 3;

	err[0] = '\0';
	for (; *words != NULL; words++)
		argv[argc++] = (char *)*words;
	assert_int_equal(web_options_parse(o, argc, argv), -1);
	return web_options_check(o, err, sizeof(err));
}
#define CHECK(o, ...) check(o, (const char *const[]){ __VA_ARGS__, NULL })

static void
the_default_is_loopback_without_tls(void **state)
{
	struct web_options o;

	assert_int_equal(CHECK(&o, "--log-level", "debug"), 0);
	assert_true(o.local);
	assert_string_equal(o.address.text, "127.0.0.1:8037");
	assert_int_equal(CHECK(&o, "--listen", "[::1]:0"), 0);
	assert_true(o.local);
	assert_int_equal(CHECK(&o, "--listen", "127.0.0.2:0"), 0);
	assert_true(o.local);
}

static void
other_machines_need_tls_and_a_token_or_a_certificate(void **state)
{
	struct web_options o;

	assert_int_equal(CHECK(&o, "--listen", "0.0.0.0:1"), -1);
	assert_non_null(strstr(err, "--https-cert"));
	assert_int_equal(CHECK(&o, "--listen", "[::]:1", "--token-file", file),
	    -1);
	assert_non_null(strstr(err, "--https-cert"));
	assert_int_equal(CHECK(&o, "--listen", "0.0.0.0:1", "--https-cert",
	    file, "--https-key", file), -1);
	assert_non_null(strstr(err, "--client-ca or --token-file"));
	assert_int_equal(CHECK(&o, "--listen", "0.0.0.0:1", "--https-cert",
	    file, "--https-key", file, "--token-file", file), 0);
	assert_int_equal(CHECK(&o, "--listen", "0.0.0.0:1", "--https-cert",
	    file, "--https-key", file, "--client-ca", file), 0);
}

static void
halves_of_tls_are_refused(void **state)
{
	struct web_options o;

	assert_int_equal(CHECK(&o, "--https-cert", file), -1);
	assert_non_null(strstr(err, "--https-key"));
	assert_int_equal(CHECK(&o, "--client-ca", file), -1);
	assert_non_null(strstr(err, "--https-cert"));
	assert_int_equal(CHECK(&o, "--https-cert", file, "--https-key", file,
	    "--client-crl", file), -1);
	assert_non_null(strstr(err, "--client-ca"));
}

static void
refuse_token(const char *path, const char *word)
{
	char token[WEB_TOKEN_MAX];

	assert_int_equal(web_options_read_token(path, token, err, sizeof(err)),
	    -1);
	assert_non_null(strstr(err, word));
}

static void
a_token_is_secret_and_long(void **state)
{
	char token[WEB_TOKEN_MAX];

	put_file("0123456789abcdef\r\nmore\n", 0600);
	assert_int_equal(web_options_read_token(file, token, err, sizeof(err)),
	    0);
	assert_string_equal(token, "0123456789abcdef");
	put_file("0123456789abcdef\n", 0644);
	refuse_token(file, "chmod 600");
	put_file("short\n", 0600);
	refuse_token(file, "16 characters");
	put_file("with a blank in it\n", 0600);
	refuse_token(file, "no blanks");
	refuse_token("/dev/null", "no regular file");
	refuse_token("/nowhere", "/nowhere");
}

static void
it_listens_on_tcp_alone(void **state)
{
	struct web_options o;

	assert_int_equal(CHECK(&o, "--listen", "/tmp/x"), -1);
	assert_non_null(strstr(err, "HOST:PORT"));
	assert_int_equal(CHECK(&o, "--listen", "127.0.0.1"), -1);
	assert_int_equal(CHECK(&o, "--listen", "127.0.0.1:99999"), -1);
}

static void
pages_of_perfettos_ui_and_those_named_may_record(void **state)
{
	char *words[] = { (char *)"tributary-web", (char *)"--traced",
		(char *)"--origin", (char *)"https://ui.example.net", NULL };
	struct web_options o;

	assert_int_equal(web_options_parse(&o, 4, words), -1);
	assert_true(o.traced);
	assert_true(web_options_lets_record(&o, "https://ui.perfetto.dev"));
	assert_true(web_options_lets_record(&o, "HTTPS://UI.example.net"));
	assert_false(web_options_lets_record(&o, "https://ui.example.net:81"));
	assert_false(web_options_lets_record(&o, "https://ui.perfetto.dev.x"));
	assert_false(web_options_lets_record(&o, "null"));
	assert_false(web_options_lets_record(&o, NULL));
	words[3] = (char *)"ui.example.net";
	assert_int_equal(web_options_parse(&o, 4, words), 1);
}

static void
one_file_is_for_this_machine_alone(void **state)
{
	struct web_options o;

	put_file("trace", 0600);
	assert_int_equal(CHECK(&o, "--open", file, "--listen", "[::1]:0"), 0);
	assert_int_equal(o.file.bytes, 5);
	assert_string_equal(o.file.name, "file");
	assert_string_equal(o.ui, WEB_UI);
	web_open_close(&o.file);
	assert_int_equal(CHECK(&o, "--open", file), 0);
	assert_string_equal(o.address.text, WEB_OPEN_LISTEN);
	web_open_close(&o.file);
	assert_int_equal(CHECK(&o, "--open", file, "--listen", "0.0.0.0:1"),
	    -1);
	assert_non_null(strstr(err, "ssh -L"));
	assert_int_equal(CHECK(&o, "--open", file, "--traced"), -1);
	assert_int_equal(CHECK(&o, "--open", dir), -1);
	assert_non_null(strstr(err, "no regular file"));
	assert_int_equal(CHECK(&o, "--no-browser"), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_default_is_loopback_without_tls),
		cmocka_unit_test(
		    other_machines_need_tls_and_a_token_or_a_certificate),
		cmocka_unit_test(halves_of_tls_are_refused),
		cmocka_unit_test(a_token_is_secret_and_long),
		cmocka_unit_test(it_listens_on_tcp_alone),
		cmocka_unit_test(
		    pages_of_perfettos_ui_and_those_named_may_record),
		cmocka_unit_test(one_file_is_for_this_machine_alone),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
