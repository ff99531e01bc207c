#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "client/tunnel/connect_options.h"

#define ARGS_MAX 12

static struct connect_options o;
static char err[512];

static enum flags_verdict
parse(const char *original, const char *line)
{
	static char words[256];
	char *argv[ARGS_MAX + 1], *save = NULL, *word;
	int argc = 0;

	snprintf(words, sizeof(words), "connect %s", line);
	for (word = strtok_r(words, " ", &save);
	     word != NULL && argc < ARGS_MAX;
	     word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	argv[argc] = NULL;
	memset(&o, 0x5a, sizeof(o));
	err[0] = '\0';
	return connect_options_parse(&o, argc, argv, original, err,
	    sizeof(err));
}

static void
is_refused(const char *original, const char *line, const char *because)
{
	assert_int_equal(parse(original, line), FLAGS_BAD);
	if (strstr(err, because) == NULL)
		fail_msg("\"%s\" lacks \"%s\"", err, because);
}

static void
is_for(const char *original, const char *line, enum connect_service s)
{
	if (parse(original, line) != FLAGS_RUN)
		fail_msg("%s", err);
	assert_int_equal(o.service, s);
}

static void
one_word_names_the_service(void **state)
{
	is_for(NULL, "", CONNECT_PRODUCER);
	assert_null(o.socket);
	assert_false(o.accept);
	is_for(NULL, "producer", CONNECT_PRODUCER);
	is_for(NULL, "consumer", CONNECT_CONSUMER);
	is_for(NULL, "relay --socket /run/x", CONNECT_RELAY);
	assert_string_equal(o.socket, "/run/x");
	is_refused(NULL, "produce", "none of producer, consumer and relay");
	is_refused(NULL, "producer consumer", "one word says all");
}

static void
what_the_other_side_asked_for_plays_no_part_by_itself(void **state)
{
	is_for("tributary connect consumer", "producer", CONNECT_PRODUCER);
	is_for("rm -rf /", "", CONNECT_PRODUCER);
}

static void
a_list_lets_the_other_side_choose(void **state)
{
	const char *line = "--from-ssh-command producer,relay";

	is_for("tributary connect relay", line, CONNECT_RELAY);
	is_for("producer", line, CONNECT_PRODUCER);
	is_for("relay", "--from-ssh-command=relay", CONNECT_RELAY);
}

static void
what_is_not_in_the_list_is_refused(void **state)
{
	static const char *const wrong[] = {
		"tributary connect consumer", "consumer", "", "sh",
		"tributary connect relay --socket /etc/x",
		"tributary connect  relay", "relay ", "relay;sh",
		"/usr/bin/tributary connect relay",
	};
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		is_refused(wrong[i], "--from-ssh-command producer,relay",
		    "this key may ask for producer,relay, not for");
	is_refused("re\nlay\033", "--from-ssh-command relay",
	    "re\\x0alay\\x1b");
}

static void
without_a_command_the_word_on_the_line_counts(void **state)
{
	is_refused(NULL, "--from-ssh-command producer", "asked for no command");
	is_for(NULL, "relay --from-ssh-command producer", CONNECT_RELAY);
	is_for("producer", "relay --from-ssh-command producer",
	    CONNECT_PRODUCER);
}

static void
a_list_holds_our_words_only(void **state)
{
	is_refused("x", "--from-ssh-command x", "takes words separated");
	is_refused("x", "--from-ssh-command producer,,relay",
	    "takes words separated");
	is_refused("x", "--from-ssh-command=", "takes words separated");
}

static void
accept_takes_a_path_and_nothing_else(void **state)
{
	is_for(NULL, "--accept", CONNECT_PRODUCER);
	assert_true(o.accept);
	assert_null(o.accept_path);
	is_for(NULL, "--accept=/run/device", CONNECT_PRODUCER);
	assert_string_equal(o.accept_path, "/run/device");
	is_refused(NULL, "--accept consumer", "--accept waits for a producer");
	is_refused(NULL, "--accept --socket x", "--accept waits");
	is_refused("x", "--accept --from-ssh-command relay",
	    "--accept waits");
}

static void
mistakes_in_flags_are_named(void **state)
{
	is_refused(NULL, "--sockt /x", "there is no flag --sockt; did you mean "
	    "--socket?");
	is_refused(NULL, "--socket", "--socket wants a value");
	is_refused(NULL, "-x", "there is no flag -x");
	assert_int_equal(parse(NULL, "--help"), FLAGS_HELP);
	assert_non_null(strstr(connect_options_flags.help, "authorized_keys"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_word_names_the_service),
		cmocka_unit_test(
		    what_the_other_side_asked_for_plays_no_part_by_itself),
		cmocka_unit_test(a_list_lets_the_other_side_choose),
		cmocka_unit_test(what_is_not_in_the_list_is_refused),
		cmocka_unit_test(without_a_command_the_word_on_the_line_counts),
		cmocka_unit_test(a_list_holds_our_words_only),
		cmocka_unit_test(accept_takes_a_path_and_nothing_else),
		cmocka_unit_test(mistakes_in_flags_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
