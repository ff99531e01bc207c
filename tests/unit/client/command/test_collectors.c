#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/command/collectors.h"
#include "client/command/command_line.h"

static struct collectors c;
static char err[2048];

static int
teardown(void **state)
{
	collectors_done(&c);
	return 0;
}

static int
read_text(const char *text)
{
	static const struct dial_options how = { .tls_dir = "/flag",
		.service = "consumer" };
	char path[] = "/tmp/collectors.XXXXXX";
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	err[0] = '\0';
	rc = collectors_read(&c, path, &how, err, sizeof(err));
	unlink(path);
	return rc;
}

#define assert_refused(text, what)                                            \
	do {                                                                  \
		assert_int_equal(read_text(text), -1);                        \
		if (strstr(err, what) == NULL)                                \
			fail_msg("\"%s\" is not in %s", what, err);           \
		collectors_done(&c);                                          \
	} while (0)

static void
each_end_has_its_own_tls(void **state)
{
	assert_int_equal(read_text(
	    "tls { dir: \"/all\" name: \"fleet\" }\n"
	    "timeout_ms: 5000\n"
	    "collector { name: \"c1\" connect: \"tls://c1:7444\"\n"
	    "    producers: \"tls://c1:7443\" producer_tls { dir: \"/p\" } }\n"
	    "collector { name: \"c2\" connect: \"/c2\" timeout_ms: 7 }\n"
	    "fleet_triggers: \"crash\"\n"), 0);
	assert_int_equal(c.n, 2);
	assert_string_equal(c.list[0].name, "c1");
	assert_string_equal(c.list[0].consumer.addr.host, "c1");
	assert_string_equal(c.list[0].consumer.how.tls_dir, "/all");
	assert_string_equal(c.list[0].consumer.how.tls_name, "fleet");
	assert_string_equal(c.list[0].consumer.how.service, "consumer");
	assert_string_equal(c.list[0].producer.how.tls_dir, "/p");
	assert_null(c.list[0].producer.how.tls_name);
	assert_string_equal(c.list[0].producer.how.service, "producer");
	assert_int_equal(c.list[0].timeout_ms, 5000);
	/* A UNIX socket has no use for certificates. */
	assert_null(c.list[1].consumer.how.tls_dir);
	assert_int_equal(c.list[1].timeout_ms, 7);
	assert_int_equal(c.n_fleet_triggers, 1);
	assert_string_equal(c.fleet_triggers[0], "crash");
}

static void
flags_fill_what_the_file_leaves_out(void **state)
{
	assert_int_equal(read_text(
	    "collector { name: \"c1\" connect: \"tls://c1:7444\" }"), 0);
	assert_string_equal(c.list[0].consumer.how.tls_dir, "/flag");
	assert_int_equal(c.list[0].timeout_ms, COLLECTOR_TIMEOUT_MS);
}

static void
a_file_that_makes_no_sense_is_refused(void **state)
{
	assert_refused("", "name at least one");
	assert_refused("collector { connect: \"/c\" }", "each has one");
	assert_refused("collector { name: \"a/b\" }", "letters, digits");
	assert_refused("collector { name: \"..\" }", "letters, digits");
	assert_refused("collector { name: \"c\" } collector { name: \"c\" }",
	    "two are called c");
	assert_refused("collector { name: \"c\" connect: \"c:x\" }",
	    "collector.connect");
	assert_refused("collector { name: \"c\" producers: \"c:x\" }",
	    "collector.producers");
	assert_refused("collector { name: \"c\" timeout_ms: 0 }",
	    "timeout_ms");
	assert_refused("collector { nome: \"c\" }", "nome");
}

static void
two_at_one_address_are_refused_unless_tls_names_differ(void **state)
{
	assert_refused("collector { name: \"a\" connect: \"tls://c:1\" } "
	    "collector { name: \"b\" connect: \"tls://c:1\" }",
	    "collector.connect: a and b have the same address, tls://c:1");
	assert_refused("collector { name: \"a\" producers: \"/p\" } "
	    "collector { name: \"b\" producers: \"/p\" }",
	    "collector.producers: a and b have the same address, /p");
	assert_int_equal(read_text("collector { name: \"a\" connect: "
	    "\"tls://c:1\" } collector { name: \"b\" connect: "
	    "\"tls://c:1\" tls { name: \"b\" } }"), 0);
}

static void
an_end_that_is_not_there_is_named(void **state)
{
	assert_int_equal(read_text("collector { name: \"c1\" connect: \"/c\" "
	    "} collector { name: \"c2\" producers: \"/p\" }"), 0);
	assert_int_equal(collectors_want_consumers(&c, err, sizeof(err)), -1);
	assert_non_null(strstr(err, "c2 takes commands"));
	assert_int_equal(collectors_want_producers(&c, err, sizeof(err)), -1);
	assert_non_null(strstr(err, "c1 listens for devices"));
}

static void
a_word_may_be_for_one_collector(void **state)
{
	assert_int_equal(read_text("collector { name: \"c1\" } "
	    "collector { name: \"c11\" }"), 0);
	assert_string_equal(collectors_word(&c, 0, "c1/7"), "7");
	assert_null(collectors_word(&c, 1, "c1/7"));
	assert_string_equal(collectors_word(&c, 1, "c11/a/b"), "a/b");
	assert_string_equal(collectors_word(&c, 1, "robots"), "robots");
	assert_string_equal(collectors_word(&c, 0, "c2/x"), "c2/x");
}

static void
several_addresses_are_a_fleet_and_one_is_not(void **state)
{
	struct command_line line = { .how.service = "consumer" };

	line.connects[0] = "/a";
	line.connects[1] = line.connect = "/b";
	line.n_connects = 2;
	assert_int_equal(collectors_of_line(&c, &line, err, sizeof(err)), 0);
	assert_int_equal(c.n, 2);
	assert_string_equal(c.list[1].name, "/b");
	collectors_done(&c);

	line.connects[0] = "/b";
	assert_int_equal(collectors_of_line(&c, &line, err, sizeof(err)), -1);
	assert_non_null(strstr(err, "twice"));
	collectors_done(&c);

	line.n_connects = 1;
	assert_int_equal(collectors_of_line(&c, &line, err, sizeof(err)), 0);
	assert_int_equal(c.n, 1);
	assert_null(c.list[0].name);
	assert_string_equal(c.list[0].consumer.addr.text, "/b");
	collectors_done(&c);

	line.fleet = "fleet.pbtx";
	assert_int_equal(collectors_of_line(&c, &line, err, sizeof(err)), -1);
	assert_non_null(strstr(err, "leave one of them out"));
}

#define T(name) cmocka_unit_test_teardown(name, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_end_has_its_own_tls),
		T(flags_fill_what_the_file_leaves_out),
		T(a_file_that_makes_no_sense_is_refused),
		T(two_at_one_address_are_refused_unless_tls_names_differ),
		T(an_end_that_is_not_there_is_named),
		T(a_word_may_be_for_one_collector),
		T(several_addresses_are_a_fleet_and_one_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
