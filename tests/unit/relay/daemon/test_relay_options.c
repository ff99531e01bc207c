#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "relay/daemon/options.h"
#include "relay/settings/settings.h"
#include "transport/base/log.h"

#define ARGS_MAX 64

static struct relay_options o;
static struct relay_settings s;
static bool have_settings;
static char err[RELAY_SETTINGS_ERROR_SIZE];
static char path[64];
static char *args[ARGS_MAX + 1];

static void
forget_settings(void)
{
	if (have_settings)
		relay_settings_done(&s);
	have_settings = false;
}

static int
setup(void **state)
{
	unsetenv("PERFETTO_PRODUCER_SOCK_NAME");
	unsetenv("PERFETTO_RELAY_SOCK_NAME");
	unsetenv("PERFETTO_MACHINE_NAME");
	unsetenv("RUNTIME_DIRECTORY");
	err[0] = '\0';
	path[0] = '\0';
	return 0;
}

static int
teardown(void **state)
{
	forget_settings();
	if (path[0] != '\0')
		unlink(path);
	return 0;
}

/* Arguments as a shell would split them. */
static int
parse(const char *line)
{
	static char copy[4096];
	char *save = NULL, *word;
	int n = 0;

	snprintf(copy, sizeof(copy), "tributary-relay %s", line);
	for (word = strtok_r(copy, " ", &save); word != NULL;
	    word = strtok_r(NULL, " ", &save)) {
		assert_true(n < ARGS_MAX);
		args[n++] = word;
	}
	args[n] = NULL;
	return relay_options_parse(&o, n, args, err, sizeof(err));
}

static int
settle(const char *line)
{
	forget_settings();
	if (parse(line) != 0)
		return -1;
	if (relay_options_settings(&o, &s, err, sizeof(err)) != 0)
		return -1;
	have_settings = true;
	return 0;
}

static void
works(const char *line)
{
	if (settle(line) != 0)
		fail_msg("%s: %s", line, err);
}

static void
refused(const char *line, const char *with)
{
	if (settle(line) == 0)
		fail_msg("accepted: %s", line);
	if (strstr(err, with) == NULL)
		fail_msg("%s: \"%s\" says nothing of \"%s\"", line, err, with);
}

/* A settings file; its name in path. */
static void
write_file(const char *text)
{
	FILE *f;
	int fd;

	strcpy(path, "/tmp/test_relay_options.XXXXXX");
	assert_true((fd = mkstemp(path)) >= 0);
	assert_non_null(f = fdopen(fd, "w"));
	assert_true(fputs(text, f) >= 0);
	fclose(f);
}

static void
file_works(const char *text)
{
	char line[128];

	write_file(text);
	snprintf(line, sizeof(line), "--config %s", path);
	works(line);
}

static void
file_refused(const char *text, const char *with)
{
	char line[128];

	write_file(text);
	snprintf(line, sizeof(line), "--config %s", path);
	refused(line, with);
	/* Whatever is wrong in it, the file is named. */
	if (strncmp(err, path, strlen(path)) != 0)
		fail_msg("\"%s\" does not begin with the file", err);
	unlink(path);
	path[0] = '\0';
}

/* ---- flags ---- */

static void
without_an_address_it_says_what_to_do(void **state)
{
	refused("", "--to ADDR");
	refused("", "PERFETTO_RELAY_SOCK_NAME");
	refused("", "--dialled");
}

static void
an_address_is_enough(void **state)
{
	works("--to tls://collector:7443");
	assert_int_equal(s.n_to, 1);
	assert_string_equal(s.to[0], "tls://collector:7443");
	assert_int_equal(o.command, RELAY_SERVE);
	assert_int_equal(s.n_producer_sockets, 1);
	assert_true(strlen(s.machine_name) > 0);
	assert_true(strlen(s.machine_id) > 0);
	assert_true(s.memory_bytes == 8u << 20);
	assert_null(s.spool_dir);
	assert_int_equal(s.socket_mode, -1);
	assert_int_equal(s.protocol, RELAY_AUTO);
	assert_int_equal(s.compression_level, 0);
	assert_int_equal(s.log_level, LOG_LEVEL_INFO);
	assert_false(s.dialled);
}

static void
every_flag_arrives(void **state)
{
	works("--to tls://h:1 --tls-dir /d --tls-name n --allow-tls-1.2 "
	    "--producer-socket /a --producer-socket @b "
	    "--set-socket-permissions traced:0660 --machine-name m "
	    "--state-dir /st --spool-dir /sp --spool-size 3gb --memory 2mb "
	    "--compression 7 --log-level debug --background");
	assert_string_equal(s.tls_dir, "/d");
	assert_string_equal(s.tls_name, "n");
	assert_true(s.allow_tls12);
	assert_false(s.sni_machine);
	assert_int_equal(s.n_producer_sockets, 2);
	assert_string_equal(s.producer_sockets[0], "/a");
	assert_string_equal(s.producer_sockets[1], "@b");
	assert_string_equal(s.socket_group, "traced");
	assert_int_equal(s.socket_mode, 0660);
	assert_string_equal(s.machine_name, "m");
	assert_string_equal(s.state_dir, "/st");
	assert_string_equal(s.spool_dir, "/sp");
	assert_true(s.spool_bytes == 3ull << 30);
	assert_true(s.memory_bytes == 2u << 20);
	assert_int_equal(s.compression_level, 7);
	assert_int_equal(s.log_level, LOG_LEVEL_DEBUG);
	assert_true(o.background);
	works("--to tls://h:1 --sni-machine --machine-name m");
	assert_true(s.sni_machine);
	works("--to ssh://h --ssh-command run");
	assert_string_equal(s.ssh_command, "run");
}

static void
an_unknown_flag_is_refused_with_the_nearest_one(void **state)
{
	refused("--spool-dri /x", "did you mean --spool-dir?");
	refused("--nonsense", "--help lists them");
	refused("--to", "wants a value");
	refused("tls://h:1", "--to");
}

static void
what_makes_no_sense_is_refused_with_a_sentence(void **state)
{
	refused("--to /s --memory 10kb", "at least 1024 KiB");
	refused("--to /s --memory 10", "unit");
	refused("--to /s --spool-size 10mb", "--spool-dir");
	refused("--to /s --spool-dir /d --spool-size 1kb", "1024 KiB");
	refused("--to /s --spool-dir relative", "full path");
	refused("--to /s --state-dir relative", "full path");
	refused("--to /s --compression 20", "19");
	refused("--to /s --compression high", "number");
	refused("--to /s --log-level loud", "debug");
	refused("--to /s --set-socket-permissions traced", "group:mode");
	refused("--to /s --set-socket-permissions a:0660:b", "group:mode");
	refused("--to /s --tls-dir /d", "--tls-dir is for tls://");
	refused("--to host:1 --tls-name n", "tls://host:1");
	refused("--to tls://h:1 --sni-machine --machine-name a.b", "\"a.b\"");
	refused("--to tls://h:1 --ssh-command x", "ssh://");
	refused("--to ssh://h/path --ssh-command x", "leave one");
	refused("--to host:99999", "collector's address");
	refused("--to /s --producer-socket tls://h:1", "tls://");
	refused("--to /s --producer-socket ssh://h", "ssh://");
}

static void
the_collector_is_not_where_producers_connect(void **state)
{
	refused("--to /a --producer-socket /b --producer-socket /a",
	    "PERFETTO_PRODUCER_SOCK_NAME");
}

static void
one_thing_is_done_at_a_time(void **state)
{
	refused("--status --stdio", "one of them");
	refused("--to /s --json", "--status");
	refused("--stdio --to /s", "--to");
	refused("--stdio --background", "--background");
	works("--status --json");
	assert_int_equal(o.command, RELAY_STATUS);
	assert_true(o.json);
	works("--stdio");
	assert_int_equal(o.command, RELAY_STDIO);
	works("--to /s --check-config");
	assert_int_equal(o.command, RELAY_CHECK);
	refused("--check-config", "--to");
}

static void
help_and_version_win(void **state)
{
	assert_int_equal(parse("--status --help --json"), 0);
	assert_int_equal(o.command, RELAY_HELP);
	assert_int_equal(parse("--stdio --version"), 0);
	assert_int_equal(o.command, RELAY_VERSION);
	assert_int_equal(parse("--help --status"), 0);
	assert_int_equal(o.command, RELAY_HELP);
}

static void
a_dialled_relay_has_no_address(void **state)
{
	works("--dialled");
	assert_true(s.dialled);
	assert_int_equal(s.n_to, 0);
	refused("--dialled --to /s", "leave one of them out");
	/* The variable is for those who do not say otherwise. */
	setenv("PERFETTO_RELAY_SOCK_NAME", "/v", 1);
	works("--dialled");
	assert_int_equal(s.n_to, 0);
	assert_true(s.dialled);
}

static void
several_collectors_are_a_list(void **state)
{
	works("--to tls://a:1,tls://b:1 --to tls://c:1 --move-after 90s");
	assert_int_equal(s.n_to, 3);
	assert_string_equal(s.to[0], "tls://a:1");
	assert_string_equal(s.to[1], "tls://b:1");
	assert_string_equal(s.to[2], "tls://c:1");
	assert_true(s.move_after_ms == 90000);
	works("--to /a");
	assert_true(s.move_after_ms == 30000);
	setenv("PERFETTO_RELAY_SOCK_NAME", "/v, /w", 1);
	works("");
	assert_int_equal(s.n_to, 2);
	assert_string_equal(s.to[1], "/w");
	works("--to /a");
	assert_int_equal(s.n_to, 1);
}

static void
a_list_that_cannot_be_is_refused(void **state)
{
	char many[8 * (PLACEMENT_MAX + 1)] = "", item[16];
	size_t i;

	refused("--to /a,/b --to /a", "/a is named twice");
	refused("--to /a,host:99999", "collector's address");
	refused("--to ,", "--to: the address of the collector is empty");
	refused("--to tls://a:1,/b --tls-dir /d", "/b is none");
	refused("--to tls://a:1,tls://10.0.0.1:1 --sni-machine "
	    "--machine-name m", "10.0.0.1 is an address");
	refused("--to /a,/b --producer-socket /b", "cannot be the collector");
	refused("--to /a,/b --dialled", "leave one of them out");
	refused("--to /a,/b --stdio", "--to");
	refused("--to /a --move-after 10", "--move-after: ");
	refused("--to /a --move-after 0", "move_after_ms: 0");
	refused("--to /a --move-after 2d", "move_after_ms: 172800000");
	for (i = 0; i <= PLACEMENT_MAX; i++) {
		snprintf(item, sizeof(item), "%s/%zu", i > 0 ? "," : "", i);
		strcat(many, item);
	}
	assert_int_equal(setenv("PERFETTO_RELAY_SOCK_NAME", many, 1), 0);
	refused("", "PERFETTO_RELAY_SOCK_NAME: there are more than the 256");
}

/* ---- the environment ---- */

static void
variables_stand_below_flags_and_above_the_file(void **state)
{
	char line[128];

	write_file("to: \"/file\" machine_name: \"file\" "
	    "producer_socket: \"/pf\"");
	snprintf(line, sizeof(line), "--config %s", path);
	works(line);
	assert_string_equal(s.to[0], "/file");
	assert_string_equal(s.machine_name, "file");
	assert_string_equal(s.producer_sockets[0], "/pf");

	setenv("PERFETTO_RELAY_SOCK_NAME", "/env", 1);
	setenv("PERFETTO_MACHINE_NAME", "env", 1);
	setenv("PERFETTO_PRODUCER_SOCK_NAME", "/pe, @qe", 1);
	works(line);
	assert_string_equal(s.to[0], "/env");
	assert_string_equal(s.machine_name, "env");
	assert_int_equal(s.n_producer_sockets, 2);
	assert_string_equal(s.producer_sockets[0], "/pe");
	assert_string_equal(s.producer_sockets[1], "@qe");

	snprintf(line, sizeof(line), "--config %s --to /flag "
	    "--machine-name flag --producer-socket /pg", path);
	works(line);
	assert_string_equal(s.to[0], "/flag");
	assert_string_equal(s.machine_name, "flag");
	assert_int_equal(s.n_producer_sockets, 1);
	assert_string_equal(s.producer_sockets[0], "/pg");
}

static void
a_wrong_variable_is_named(void **state)
{
	setenv("PERFETTO_PRODUCER_SOCK_NAME", "host:99999", 1);
	refused("--to /s", "PERFETTO_PRODUCER_SOCK_NAME");
	setenv("PERFETTO_PRODUCER_SOCK_NAME", " , ", 1);
	refused("--to /s", "PERFETTO_PRODUCER_SOCK_NAME");
}

static void
the_state_folder_is_systemds_where_it_names_one(void **state)
{
	setenv("RUNTIME_DIRECTORY", "/run/one:/run/two", 1);
	works("--to /s");
	assert_string_equal(s.state_dir, "/run/one");
	unsetenv("RUNTIME_DIRECTORY");
	works("--to /s");
	assert_int_equal(s.state_dir[0], '/');
	assert_non_null(strstr(s.state_dir, "tributary-relay"));
}

/* ---- the file ---- */

static void
every_field_of_the_file_arrives(void **state)
{
	file_works("to: \"tls://h:1\"\n"
	    "producer_socket: \"/a\" producer_socket: \"127.0.0.1:0\"\n"
	    "allow_remote_producers: true socket_permissions: \"g:0600\"\n"
	    "machine_name: \"m\" machine_id: \"i\"\n"
	    "tls { dir: \"/t\" name: \"n\" allow_tls_1_2: true\n"
	    "  sni_machine: true }\n"
	    "state_dir: \"/st\" memory_kb: 4096\n"
	    "spool { dir: \"/sp\" size_kb: 2048 fsync: ALWAYS }\n"
	    "drop: NEWEST compression_level: 3 min_retry_ms: 5\n"
	    "max_retry_ms: 6 clock_sync_ms: 1000 protocol: CLASSIC\n"
	    "limits { max_producers: 1 max_data_sources_per_producer: 2\n"
	    "  max_shm_kb: 3 max_total_shm_kb: 4 max_send_queue_kb: 5\n"
	    "  max_name_bytes: 6 }\n"
	    "log_level: \"warn\" dialled: false dialled_idle_ms: 7\n"
	    "to: \"tls://h:2, tls://h:3\" move_after_ms: 8\n");
	assert_string_equal(s.to[0], "tls://h:1");
	assert_int_equal(s.n_producer_sockets, 2);
	assert_true(s.allow_remote_producers);
	assert_string_equal(s.socket_group, "g");
	assert_int_equal(s.socket_mode, 0600);
	assert_string_equal(s.machine_name, "m");
	assert_string_equal(s.machine_id, "i");
	assert_string_equal(s.tls_dir, "/t");
	assert_string_equal(s.tls_name, "n");
	assert_true(s.sni_machine);
	assert_true(s.allow_tls12);
	assert_string_equal(s.state_dir, "/st");
	assert_true(s.memory_bytes == 4096 * 1024);
	assert_string_equal(s.spool_dir, "/sp");
	assert_true(s.spool_bytes == 2048 * 1024);
	assert_int_equal(s.fsync, RELAY_FSYNC_ALWAYS);
	assert_int_equal(s.drop, RELAY_DROP_NEWEST);
	assert_int_equal(s.compression_level, 3);
	assert_true(s.min_retry_ms == 5);
	assert_true(s.max_retry_ms == 6);
	assert_true(s.clock_sync_ms == 1000);
	assert_int_equal(s.protocol, RELAY_CLASSIC_ONLY);
	assert_int_equal(s.limits.max_producers, 1);
	assert_int_equal(s.limits.max_data_sources_per_producer, 2);
	assert_int_equal(s.limits.max_shm_kb, 3);
	assert_int_equal(s.limits.max_total_shm_kb, 4);
	assert_int_equal(s.limits.max_send_queue_kb, 5);
	assert_int_equal(s.limits.max_name_bytes, 6);
	assert_int_equal(s.log_level, LOG_LEVEL_WARN);
	assert_true(s.dialled_idle_ms == 7);
	assert_int_equal(s.n_to, 3);
	assert_string_equal(s.to[2], "tls://h:3");
	assert_true(s.move_after_ms == 8);
	unlink(path);
	file_works("to: \"/s\" protocol: LINK drop: OLDEST\n"
	    "spool { dir: \"/sp\" size_kb: 2048 fsync: NEVER }\n");
	assert_int_equal(s.protocol, RELAY_LINK_ONLY);
	assert_int_equal(s.drop, RELAY_DROP_OLDEST);
	assert_int_equal(s.fsync, RELAY_FSYNC_NEVER);
}

static void
a_wrong_file_is_refused_with_the_place(void **state)
{
	file_refused("to: \"/s\"\nspool_size: 1\n", ":2:1: error:");
	file_refused("to: \"/s\" memory_kb: \"much\"", ":1:");
	file_refused("to: \"/s\" limits { max_producers: 0 }",
	    "limits.max_producers");
	file_refused("to: \"/s\" limits { max_shm_kb: 32769 }",
	    "limits.max_shm_kb");
	file_refused("to: \"/s\" limits { max_total_shm_kb: 0 }",
	    "limits.max_total_shm_kb");
	file_refused("to: \"\"", "to: the address of the collector is empty");
	file_refused("to: \"/s\" log_level: \"loud\"", "log_level");
	file_refused("to: \"/s\" socket_permissions: \"x\"",
	    "socket_permissions");
	file_refused("to: \"/s\" producer_socket: \"h:99999\"",
	    "producer_socket");
	file_refused("to: \"/s\" spool { size_kb: 4096 }", "spool.size_kb");
	file_refused("to: \"/s\" spool { dir: \"/d\" "
	    "size_kb: 18446744073709551615 }", "spool.size_kb");
	refused("--config /nonexistent/file", "/nonexistent/file");
}

static void
a_dialled_relay_speaks_over_the_link(void **state)
{
	char line[128];

	write_file("dialled: true protocol: CLASSIC");
	snprintf(line, sizeof(line), "--config %s", path);
	refused(line, "do not go together");
}

static void
times_that_make_no_sense_are_refused(void **state)
{
	write_file("to: \"/s\" min_retry_ms: 100 max_retry_ms: 10");
	refused(strcat(strcpy((char[128]){ 0 }, "--config "), path),
	    "max_retry_ms");
	unlink(path);
	write_file("to: \"/s\" clock_sync_ms: 1");
	refused(strcat(strcpy((char[128]){ 0 }, "--config "), path),
	    "clock_sync_ms");
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(without_an_address_it_says_what_to_do),
		T(an_address_is_enough),
		T(every_flag_arrives),
		T(an_unknown_flag_is_refused_with_the_nearest_one),
		T(what_makes_no_sense_is_refused_with_a_sentence),
		T(the_collector_is_not_where_producers_connect),
		T(one_thing_is_done_at_a_time),
		T(help_and_version_win),
		T(a_dialled_relay_has_no_address),
		T(several_collectors_are_a_list),
		T(a_list_that_cannot_be_is_refused),
		T(variables_stand_below_flags_and_above_the_file),
		T(a_wrong_variable_is_named),
		T(the_state_folder_is_systemds_where_it_names_one),
		T(every_field_of_the_file_arrives),
		T(a_wrong_file_is_refused_with_the_place),
		T(a_dialled_relay_speaks_over_the_link),
		T(times_that_make_no_sense_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
