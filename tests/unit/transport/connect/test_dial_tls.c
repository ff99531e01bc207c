#include <openssl/x509.h>
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

#include "tests/unit/transport/tls/tls_fixture.h"
#include "transport/base/log.h"
#include "transport/connect/dial.h"
#include "transport/connect/dial_tls.h"
#include "transport/connect/listener.h"
#include "transport/loop/loop.h"
#include "transport/socket/addr.h"
#include "transport/tls/tls.h"

static struct {
	struct loop *loop;
	struct fix_cert *ca, *own;
	char *dir; /* a client's */
	char *home;
	char err[TLS_ERROR_SIZE];
	char found[256];

	struct listener *listener;
	int accepted;
	struct dial *dial;
	int done, error;
	struct dial_result result;
} t;

static int
setup(void **state)
{
	struct fix_wish wish = { .cn = "device-7" };

	memset(&t, 0, sizeof(t));
	t.accepted = t.result.fd = -1;
	log_init("test", LOG_LEVEL_ERROR);
	t.loop = loop_new();
	t.ca = fix_ca("test CA");
	t.own = fix_cert(t.ca, &wish);
	t.dir = fix_side(t.ca, t.own);
	t.home = fix_dir();
	setenv("HOME", t.home, 1);
	unsetenv("XDG_CONFIG_HOME");
	unsetenv("TRIBUTARY_TLS_DIR");
	return t.loop == NULL;
}

static int
teardown(void **state)
{
	dial_free(t.dial);
	listener_free(t.listener);
	tls_conn_free(t.result.tls);
	loop_free(t.loop);
	if (t.accepted >= 0)
		close(t.accepted);
	if (t.result.fd >= 0)
		close(t.result.fd);
	fix_cert_free(t.ca);
	fix_cert_free(t.own);
	fix_dir_free(t.dir);
	fix_dir_free(t.home);
	return 0;
}

static struct tls_context *
context(const char *dir, bool allow_tls12)
{
	return dial_tls_context(t.loop, dir, allow_tls12, t.err,
	    sizeof(t.err));
}

static void
dials_of_a_loop_share_what_they_read(void **state)
{
	struct loop *other = loop_new();
	struct tls_context *c = context(t.dir, false);

	assert_non_null(c);
	assert_ptr_equal(context(t.dir, false), c);
	assert_ptr_not_equal(context(t.dir, true), c);
	/* A context belongs to its loop's thread. */
	assert_ptr_not_equal(dial_tls_context(other, t.dir, false, t.err,
	    sizeof(t.err)), c);
	loop_free(other);
	assert_ptr_equal(context(t.dir, false), c);
}

static void
files_that_changed_are_read_anew(void **state)
{
	struct tls_context *c = context(t.dir, false);

	assert_non_null(c);
	fix_write_certs(t.dir, TLS_CA_FILE, t.ca, t.own, NULL);
	assert_true(tls_context_is_stale(c));
	assert_ptr_equal(context(t.dir, false), c);
	assert_false(tls_context_is_stale(c));
}

static void
a_broken_new_file_leaves_what_was_read(void **state)
{
	struct tls_context *c = context(t.dir, false);

	assert_non_null(c);
	fix_write_text(t.dir, TLS_CERT_FILE, "no certificate");
	assert_ptr_equal(context(t.dir, false), c);
}

static void
what_cannot_be_read_at_first_is_an_error(void **state)
{
	fix_write_text(t.dir, TLS_CERT_FILE, "no certificate");
	assert_null(context(t.dir, false));
	assert_non_null(strstr(t.err, t.dir));
	/* and is tried again */
	fix_write_certs(t.dir, TLS_CERT_FILE, t.own, NULL, NULL);
	assert_non_null(context(t.dir, false));
}

static void
the_number_of_directories_is_bounded(void **state)
{
	struct loop *loops[DIAL_TLS_CONTEXTS_MAX];
	size_t i;

	for (i = 0; i < DIAL_TLS_CONTEXTS_MAX; i++) {
		loops[i] = loop_new();
		assert_non_null(dial_tls_context(loops[i], t.dir, false,
		    t.err, sizeof(t.err)));
	}
	assert_null(context(t.dir, false));
	assert_non_null(strstr(t.err, "more than 64 directories"));
	for (i = 0; i < DIAL_TLS_CONTEXTS_MAX; i++)
		loop_free(loops[i]);
	assert_non_null(context(t.dir, false));
}

static int
find_dir(void)
{
	return dial_tls_dir(t.found, sizeof(t.found), t.err, sizeof(t.err));
}

static void
make_dirs(const char *path)
{
	char part[512];
	size_t i;

	for (i = 1; i <= strlen(path); i++)
		if (path[i] == '/' || path[i] == '\0') {
			snprintf(part, sizeof(part), "%.*s", (int)i, path);
			(void)mkdir(part, 0700);
		}
}

static void
remove_dirs(char *path, const char *until)
{
	while (strcmp(path, until) != 0) {
		assert_int_equal(rmdir(path), 0);
		*strrchr(path, '/') = '\0';
	}
}

static void
a_directory_is_found_in_the_users_settings(void **state)
{
	char path[300], other[300];

	snprintf(path, sizeof(path), "%s/.config/tributary/tls", t.home);
	make_dirs(path);
	assert_int_equal(find_dir(), 0);
	assert_string_equal(t.found, path);

	snprintf(other, sizeof(other), "%s/xdg/tributary/tls", t.home);
	make_dirs(other);
	other[strlen(other) - strlen("/tributary/tls")] = '\0';
	setenv("XDG_CONFIG_HOME", other, 1);
	strcat(other, "/tributary/tls");
	assert_int_equal(find_dir(), 0);
	assert_string_equal(t.found, other);

	setenv("TRIBUTARY_TLS_DIR", "/named/whatever", 1);
	assert_int_equal(find_dir(), 0);
	assert_string_equal(t.found, "/named/whatever");
	remove_dirs(path, t.home);
	remove_dirs(other, t.home);
}

static void
without_a_directory_it_says_where_it_looked(void **state)
{
	if (access("/etc/tributary/tls", F_OK) == 0)
		skip();
	assert_int_equal(find_dir(), -1);
	assert_non_null(strstr(t.err, t.home));
	assert_non_null(strstr(t.err, "/etc/tributary/tls"));
	assert_non_null(strstr(t.err, "tributary cert issue"));
	assert_non_null(strstr(t.err, "--tls-dir"));
}

static void
on_accept(struct listener *l, int fd, void *arg)
{
	t.accepted = fd;
}

static void
on_dialled(const struct dial_result *r, int error, void *arg)
{
	t.done++;
	t.error = error;
	if (r != NULL)
		t.result = *r;
	dial_free(t.dial);
	t.dial = NULL;
}

static void
dial(const char *text, const struct dial_options *o)
{
	struct addr a;

	assert_int_equal(addr_parse(&a, text, t.err, sizeof(t.err)), 0);
	t.dial = dial_new(t.loop, &(struct dial_request){ .addr = &a, .how = o,
	    .fn = on_dialled }, t.err, sizeof(t.err));
}

static void
a_tls_address_is_connected_and_shakes_hands_later(void **state)
{
	struct dial_options o = { .tls_dir = t.dir };
	struct addr a;
	char text[64];
	uint64_t start = loop_now_ms();

	assert_int_equal(addr_parse(&a, "127.0.0.1:0", t.err, sizeof(t.err)),
	    0);
	t.listener = listener_new(t.loop, &(struct listener_setup){ .addr = &a,
	    .fn = on_accept }, t.err, sizeof(t.err));
	assert_non_null(t.listener);
	snprintf(text, sizeof(text), "tls://127.0.0.1:%d",
	    listener_port(t.listener));
	dial(text, &o);
	assert_non_null(t.dial);
	while (!t.done || t.accepted < 0) {
		loop_run_once(t.loop);
		assert_true(loop_now_ms() - start < 30000);
	}
	assert_true(t.result.fd >= 0);
	assert_non_null(t.result.tls);
	assert_null(t.result.child);
	assert_string_equal(tls_conn_error(t.result.tls), "");
	/* The first flight goes out; the answer is not there yet. */
	assert_int_equal(tls_conn_handshake(t.result.tls), 0);
}

static void
certificates_that_cannot_be_read_fail_before_connecting(void **state)
{
	struct dial_options o = { .tls_dir = "/nonexistent" };

	dial("tls://127.0.0.1:1", &o);
	assert_null(t.dial);
	assert_non_null(strstr(t.err, "/nonexistent/"));
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(dials_of_a_loop_share_what_they_read),
		TEST(files_that_changed_are_read_anew),
		TEST(a_broken_new_file_leaves_what_was_read),
		TEST(what_cannot_be_read_at_first_is_an_error),
		TEST(the_number_of_directories_is_bounded),
		TEST(a_directory_is_found_in_the_users_settings),
		TEST(without_a_directory_it_says_where_it_looked),
		TEST(a_tls_address_is_connected_and_shakes_hands_later),
		TEST(certificates_that_cannot_be_read_fail_before_connecting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
