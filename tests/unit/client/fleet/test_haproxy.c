#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/fleet/haproxy.h"

static char *text; /* what was printed */
static size_t size;
static char err[1024];

static int
print(const struct haproxy_settings *s)
{
	FILE *out;
	int rc;

	free(text);
	text = NULL;
	assert_non_null(out = open_memstream(&text, &size));
	rc = haproxy_print(s, out, err, sizeof(err));
	assert_int_equal(fclose(out), 0);
	return rc;
}

static struct haproxy_settings
settings_for(const char *const *collectors, size_t n)
{
	return (struct haproxy_settings){
		.collectors = collectors,
		.n = n,
		.listen = "*:7443",
		.health_port = 8037,
		.grace_ms = 30000,
	};
}

static unsigned
id_of(const char *server)
{
	char line[128];
	const char *at;

	snprintf(line, sizeof(line), "    server %s ", server);
	assert_non_null(at = strstr(text, line));
	assert_non_null(at = strstr(at, " id "));
	return (unsigned)strtoul(at + 4, NULL, 10);
}

/* HAProxy places a server by its id, of which it uses 20 bits. */
static void
a_collectors_id_is_its_own_wherever_it_stands(void **state)
{
	static const char *const three[] = { "c1:1", "c2:1", "[::1]:1" };
	static const char *const two[] = { "[::1]:1", "c2:1" };
	struct haproxy_settings s = settings_for(three, 3);
	unsigned first, second, third;

	assert_int_equal(print(&s), 0);
	first = id_of("c1:1");
	second = id_of("c2:1");
	third = id_of("::1:1");
	assert_non_null(strstr(text, " ::1:1 [::1]:1 id "));
	assert_in_range(first, 1, (1u << 20) - 1);
	assert_int_not_equal(first, second);
	assert_int_not_equal(second, third);
	s = settings_for(two, 2);
	assert_int_equal(print(&s), 0);
	assert_int_equal(id_of("c2:1"), second);
	assert_int_equal(id_of("::1:1"), third);
}

static void
settings_are_in_the_text(void **state)
{
	static const char *const two[] = { "c1.example:7443",
		"tcp:192.0.2.1:7444" };
	struct haproxy_settings s = settings_for(two, 2);

	assert_int_equal(print(&s), 0);
	assert_non_null(strstr(text, "    bind *:7443\n"));
	assert_non_null(strstr(text,
	    "    server 192.0.2.1:7444 192.0.2.1:7444 id "));
	assert_non_null(strstr(text, "check port 8037 inter 10000ms fall 3"));
	assert_null(strstr(text, "ssl "));
	s.listen = "[::]:443";
	s.health_port = 99;
	s.grace_ms = 600;
	s.health_ca = "/etc/ca.pem";
	assert_int_equal(print(&s), 0);
	assert_non_null(strstr(text, "    bind [::]:443\n"));
	assert_non_null(strstr(text, "hdr Host localhost:99 hdr "
	    "Authorization \"Bearer ${TRIBUTARY_WEB_TOKEN}\"\n"));
	assert_non_null(strstr(text, "check port 99 inter 200ms fall 3 rise 2 "
	    "check-ssl verify required ca-file /etc/ca.pem\n"));
	/* an address is in no certificate's host names */
	assert_non_null(strstr(text, " verifyhost c1.example\n"));
	assert_null(strstr(text, "verifyhost 192"));
}

static void
refused(const struct haproxy_settings *s, const char *why)
{
	assert_int_equal(print(s), -1);
	if (strstr(err, why) == NULL)
		fail_msg("\"%s\" says nothing of \"%s\"", err, why);
	assert_int_equal(size, 0);
}

static void
what_haproxy_could_not_use_is_refused(void **state)
{
	static const char *const twice[] = { "c1:1", "c2:1", "c1:1" };
	static const char *const wrong[] = { "/path", "@name", "ssh://h",
		"tls://h:1", "vsock://2:1", "h:1x", "h", "a b:1",
		"a\ncrt x:1", "a\"b:1", "${HOME}:1", "*:1", "h:0" };
	const char *many[HAPROXY_COLLECTORS_MAX + 1];
	struct haproxy_settings s = settings_for(NULL, 0);
	size_t i;

	refused(&s, "which collectors?");
	s = settings_for(twice, 3);
	refused(&s, "c1:1 is named twice");
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		s = settings_for(&wrong[i], 1);
		refused(&s, "");
	}
	for (i = 0; i < sizeof(many) / sizeof(many[0]); i++)
		many[i] = "c:1";
	s = settings_for(many, sizeof(many) / sizeof(many[0]));
	refused(&s, "257 collectors");
	s = settings_for(twice, 2);
	s.listen = "/path";
	refused(&s, "/path");
	s = settings_for(twice, 2);
	s.health_ca = "/a b";
	refused(&s, "CA's file");
}

/* Found by trying names; one in a million pairs has it. */
static void
collectors_that_haproxy_would_put_in_one_place_are_refused(void **state)
{
	static char names[2000][24];
	const char *pair[2];
	struct haproxy_settings s = settings_for(pair, 2);
	static unsigned ids[2000];
	size_t i, j;

	for (i = 0; i < 2000; i++) {
		snprintf(names[i], sizeof(names[i]), "c%zu:7443", i);
		pair[0] = names[i];
		s.n = 1;
		assert_int_equal(print(&s), 0);
		ids[i] = id_of(names[i]);
		for (j = 0; j < i && ids[j] != ids[i]; j++)
			;
		if (j == i)
			continue;
		pair[1] = names[j];
		s.n = 2;
		refused(&s, "the same id");
		return;
	}
	fail_msg("two of 2000 names should have had one id");
}

static int
done(void **state)
{
	free(text);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_collectors_id_is_its_own_wherever_it_stands),
		cmocka_unit_test(settings_are_in_the_text),
		cmocka_unit_test(what_haproxy_could_not_use_is_refused),
		cmocka_unit_test(
		    collectors_that_haproxy_would_put_in_one_place_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, done);
}
