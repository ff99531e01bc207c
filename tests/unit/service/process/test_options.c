#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "service/front/activation.h"
#include "service/process/options.h"
#include "service/settings/settings.h"

#define ARGS_MAX 160

static struct options o;
static struct settings s;
static struct activation none;
static bool have_settings;
static char err[SETTINGS_ERROR_SIZE];
static char path[] = "/tmp/test_options.XXXXXX";
static char *args[ARGS_MAX + 1];
static int n_args;

static int
setup(void **state)
{
	unsetenv("PERFETTO_PRODUCER_SOCK_NAME");
	unsetenv("PERFETTO_CONSUMER_SOCK_NAME");
	memset(&none, 0, sizeof(none));
	have_settings = false;
	err[0] = '\0';
	return 0;
}

static int
teardown(void **state)
{
	if (have_settings)
		settings_done(&s);
	return 0;
}

/* Arguments as a shell would split them; a pointer to each is kept in args. */
static int
parse(const char *line)
{
	static char copy[4096];
	char *save = NULL, *word;

	snprintf(copy, sizeof(copy), "tributaryd %s", line);
	n_args = 0;
	for (word = strtok_r(copy, " ", &save); word != NULL;
	    word = strtok_r(NULL, " ", &save)) {
		assert_true(n_args < ARGS_MAX);
		args[n_args++] = word;
	}
	args[n_args] = NULL;
	return options_parse(&o, n_args, args, err, sizeof(err));
}

static int
make_settings(const char *line, const struct activation *a)
{
	if (parse(line) != 0)
		fail_msg("%s", err);
	if (options_settings(&o, a, &s, err, sizeof(err)) != 0)
		return -1;
	have_settings = true;
	return 0;
}

static void
refuse(const char *line, const char *part)
{
	assert_int_equal(parse(line), -1);
	if (strstr(err, part) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", part, err);
}

static void
refuse_settings(const char *line, const char *part)
{
	assert_int_equal(make_settings(line, &none), -1);
	if (strstr(err, part) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", part, err);
}

static void
write_file(const char *text)
{
	int fd;

	strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void
expect_listener(size_t i, enum listen_port port, const char *address)
{
	assert_true(i < s.n_listen);
	assert_int_equal(s.listen[i].port, port);
	assert_string_equal(s.listen[i].address, address);
}

static void
no_argument_is_needed(void **state)
{
	assert_int_equal(make_settings("", &none), 0);
	assert_int_equal(s.n_listen, 2);
	assert_int_equal(s.listen[0].port, LISTEN_PRODUCER);
	assert_int_equal(s.listen[1].port, LISTEN_CONSUMER);
	assert_false(o.background || o.help || o.version || o.check_config);
}

static void
flags_are_understood_with_a_blank_or_an_equals_sign(void **state)
{
	assert_int_equal(make_settings("--background --check-config "
		"--producer-socket=/p --producer-socket @p2 "
		"--consumer-socket tls://127.0.0.1:0 --trace-dir=/t "
		"--tls-dir /certs --user tracer --seccomp --io-threads 2 "
		"--log-level warn --no-lossless "
		"--set-socket-permissions a:0660:b:0600 "
		"--enable-relay-endpoint", &none), 0);
	assert_true(o.background);
	assert_true(o.check_config);
	assert_int_equal(s.n_listen, 3);
	expect_listener(0, LISTEN_PRODUCER, "/p");
	expect_listener(1, LISTEN_PRODUCER, "@p2");
	expect_listener(2, LISTEN_CONSUMER, "tls://127.0.0.1:0");
	assert_string_equal(s.tls.dir, "/certs");
	assert_string_equal(s.user, "tracer");
	assert_true(s.seccomp);
	assert_int_equal(s.io_threads, 2);
	assert_string_equal(s.trace_dir, "/t");
	assert_int_equal(s.log_level, LOG_LEVEL_WARN);
	assert_false(s.lossless);
	assert_string_equal(s.socket_permissions, "a:0660:b:0600");
	assert_true(s.enable_relay_endpoint);
}

static void
a_mistyped_flag_is_answered_with_the_nearest(void **state)
{
	refuse_settings("--io-threads two", "wants a number");
	refuse_settings("--io-threads -1", "wants a number");
	refuse_settings("--io-threads=65", "the 64 there may be");
	refuse("--prodcuer-socket /p", "did you mean --producer-socket?");
	refuse("--consumer_socket=/p", "did you mean --consumer-socket?");
	refuse("--log-leve1 debug", "did you mean --log-level?");
	refuse("--enable-relay-endpiont", "--enable-relay-endpoint?");
	refuse("--xyzzy", "--help");
	refuse("-x", "--help");
	refuse("--background --xyzzy --version", "--xyzzy");
}

static void
a_flag_without_its_value_is_refused(void **state)
{
	refuse("--trace-dir", "--trace-dir wants a value");
	refuse("--background=yes", "--background");
}

static void
what_is_no_flag_is_refused(void **state)
{
	refuse("start", "\"start\"");
	refuse("--background -- start", "\"start\"");
}

static void
more_sockets_than_the_limit_are_refused(void **state)
{
	char *many[2 * OPTIONS_SOCKETS_MAX + 4];
	static char program[] = "tributaryd", flag[] = "--producer-socket";
	static char value[] = "/p";
	unsigned i;
	int n = 0;

	many[n++] = program;
	for (i = 0; i <= OPTIONS_SOCKETS_MAX; i++) {
		many[n++] = flag;
		many[n++] = value;
	}
	many[n] = NULL;
	assert_int_equal(options_parse(&o, n, many, err, sizeof(err)), -1);
	assert_int_equal(options_parse(&o, n - 2, many, err, sizeof(err)), 0);
}

static void
flags_win_over_variables_and_those_over_the_file(void **state)
{
	char line[128];

	write_file("producer_socket: '/file-p' consumer_socket: '/file-c'\n"
		   "relay_socket: '/file-r' log_level: 'error'\n"
		   "trace_dir: '/file-t'\n");
	setenv("PERFETTO_PRODUCER_SOCK_NAME", "/env-p", 1);
	setenv("PERFETTO_CONSUMER_SOCK_NAME", "/env-c", 1);
	snprintf(line, sizeof(line), "--config %s --producer-socket /flag-p "
	    "--log-level debug", path);
	assert_int_equal(make_settings(line, &none), 0);
	assert_int_equal(s.n_listen, 3);
	expect_listener(0, LISTEN_RELAY, "/file-r");
	expect_listener(1, LISTEN_CONSUMER, "/env-c");
	expect_listener(2, LISTEN_PRODUCER, "/flag-p");
	assert_int_equal(s.log_level, LOG_LEVEL_DEBUG);
	assert_string_equal(s.trace_dir, "/file-t");
	unlink(path);
}

static void
a_mistake_in_the_file_is_shown_with_its_place(void **state)
{
	char line[128];

	write_file("\nprodcuer_socket: '/p'\n");
	snprintf(line, sizeof(line), "--config %s", path);
	refuse_settings(line, ":2:1: error");
	assert_non_null(strstr(err, "producer_socket"));
	unlink(path);
}

static void
mistakes_in_values_are_sentences(void **state)
{
	refuse_settings("--log-level loud", "error, warn, info, debug");
	refuse_settings("--producer-socket a:b:c", "a:b:c");
	refuse_settings("--set-socket-permissions 0660", "octal");
	refuse_settings("--config /nonexistent", "/nonexistent");
	refuse_settings("--trace-dir=", "no name");
	refuse_settings("--producer-socket /s --consumer-socket /s",
	    "socket of its own");
}

static void
an_allowed_address_has_to_be_named(void **state)
{
	assert_int_equal(make_settings("--producer-socket 0.0.0.0:1 "
		"--allow-remote 0.0.0.0:1", &none), 0);
	assert_true(s.listen[0].allow_remote);
	assert_false(s.listen[1].allow_remote);
	settings_done(&s);
	have_settings = false;
	refuse_settings("--allow-remote 0.0.0.0:1", "permits nothing");
}

static void
a_plain_consumer_socket_has_to_be_permitted_by_name(void **state)
{
	refuse_settings("--consumer-socket 127.0.0.1:1",
	    "--allow-plain-consumer 127.0.0.1:1");
	refuse_settings("--consumer-socket vsock://2:1",
	    "allow_plain_consumer: true");
	refuse_settings("--consumer-socket 127.0.0.1:1 "
	    "--allow-plain-consumer 127.0.0.1:2", "permits nothing");
	/* What is for producers, and off the loopback, says nothing of it. */
	refuse_settings("--producer-socket 127.0.0.1:1 "
	    "--allow-plain-consumer 127.0.0.1:1", "permits nothing");
	refuse_settings("--consumer-socket 0.0.0.0:1 --allow-remote 0.0.0.0:1",
	    "--allow-plain-consumer 0.0.0.0:1");
	setenv("PERFETTO_CONSUMER_SOCK_NAME", "127.0.0.1:3", 1);
	refuse_settings("", "--allow-plain-consumer 127.0.0.1:3");
	assert_int_equal(make_settings("--allow-plain-consumer 127.0.0.1:3",
		&none), 0);
	assert_true(s.listen[0].allow_plain_consumer);
}

static void
a_permission_of_the_file_holds_for_the_same_address_elsewhere(void **state)
{
	char line[128];

	write_file("listen { address: '127.0.0.1:3' port: CONSUMER\n"
		   "  allow_plain_consumer: true }\n");
	snprintf(line, sizeof(line), "--config %s", path);
	setenv("PERFETTO_CONSUMER_SOCK_NAME", "127.0.0.1:4", 1);
	refuse_settings(line, "--allow-plain-consumer 127.0.0.1:4");
	setenv("PERFETTO_CONSUMER_SOCK_NAME", "127.0.0.1:3", 1);
	assert_int_equal(make_settings(line, &none), 0);
	assert_int_equal(s.n_listen, 2);
	expect_listener(0, LISTEN_CONSUMER, "127.0.0.1:3");
	assert_true(s.listen[0].allow_plain_consumer);
	unlink(path);
}

static void
what_does_not_go_together_is_refused(void **state)
{
	char line[128];

	refuse_settings("--producer-socket tls://0.0.0.0:1", "--tls-dir");
	write_file("tls { ca: '/ca' certificate: '/cert' }\n"
		   "dial { address: 'ssh://device-7' }\n");
	snprintf(line, sizeof(line), "--config %s --producer-socket tls://h:1",
	    path);
	refuse_settings(line, "tls://h:1 needs certificates");
	snprintf(line, sizeof(line), "--config %s --seccomp", path);
	refuse_settings(line, "ssh://device-7");
	refuse_settings("--tls-dir=", "no name");
	refuse_settings("--user=", "no name");
	unlink(path);
}

static void
relays_are_accepted_where_it_is_said(void **state)
{
	assert_int_equal(make_settings("--producer-socket /p "
		"--enable-relay-endpoint-on 127.0.0.1:1,/p", &none), 0);
	assert_false(s.enable_relay_endpoint);
	expect_listener(1, LISTEN_RELAY, "127.0.0.1:1");
	expect_listener(2, LISTEN_RELAY, "/p");
}

static void
a_port_that_was_activated_opens_no_default_socket(void **state)
{
	struct activation a = { .n = 1 };

	a.sockets[0].fd = -1;
	a.sockets[0].port = LISTEN_CONSUMER;
	assert_int_equal(make_settings("", &a), 0);
	assert_int_equal(s.n_listen, 1);
	assert_int_equal(s.listen[0].port, LISTEN_PRODUCER);
}

static void
help_names_every_flag_within_80_columns(void **state)
{
	static const char *const flags[] = {
		"--help", "--version", "--background", "--config",
		"--check-config", "--log-level", "--trace-dir",
		"--producer-socket", "--consumer-socket", "--allow-remote",
		"--set-socket-permissions", "--enable-relay-endpoint",
		"--enable-relay-endpoint-on", "--no-lossless",
		"--allow-plain-consumer", "--tls-dir", "--user", "--seccomp",
		"--io-threads",
	};
	const char *line = options_flags.help;
	size_t i, len;

	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		assert_non_null(strstr(line, flags[i]));
	for (; *line != '\0'; line += len + 1) {
		len = strcspn(line, "\n");
		assert_true(len <= 80);
		assert_int_equal(line[len], '\n');
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(no_argument_is_needed),
		CASE(flags_are_understood_with_a_blank_or_an_equals_sign),
		CASE(a_mistyped_flag_is_answered_with_the_nearest),
		CASE(a_flag_without_its_value_is_refused),
		CASE(what_is_no_flag_is_refused),
		CASE(more_sockets_than_the_limit_are_refused),
		CASE(flags_win_over_variables_and_those_over_the_file),
		CASE(a_mistake_in_the_file_is_shown_with_its_place),
		CASE(mistakes_in_values_are_sentences),
		CASE(an_allowed_address_has_to_be_named),
		CASE(a_plain_consumer_socket_has_to_be_permitted_by_name),
		CASE(a_permission_of_the_file_holds_for_the_same_address_elsewhere),
		CASE(what_does_not_go_together_is_refused),
		CASE(relays_are_accepted_where_it_is_said),
		CASE(a_port_that_was_activated_opens_no_default_socket),
		CASE(help_names_every_flag_within_80_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
