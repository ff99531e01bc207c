#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <cmocka.h>

#include "service/settings/settings.h"
#include "transport/socket/roles.h"

static struct settings s;
static char err[SETTINGS_ERROR_SIZE];

static int
setup(void **state)
{
	unsetenv("PERFETTO_PRODUCER_SOCK_NAME");
	unsetenv("PERFETTO_CONSUMER_SOCK_NAME");
	unsetenv("PERFETTO_MACHINE_NAME");
	err[0] = '\0';
	return settings_init(&s);
}

static int
teardown(void **state)
{
	settings_done(&s);
	return 0;
}

static void
parse(const char *text)
{
	if (settings_parse(&s, text, strlen(text), "t.conf", err,
		sizeof(err)) != 0)
		fail_msg("%s", err);
}

/* Parses text that must be refused with a message that holds `part`. */
static void
refuse(const char *text, const char *part)
{
	err[0] = '\0';
	assert_int_equal(settings_parse(&s, text, strlen(text), "t.conf", err,
		sizeof(err)), -1);
	if (strstr(err, part) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", part, err);
}

static void
expect_listener(size_t i, enum listen_port port, const char *address,
    bool allow_remote)
{
	assert_true(i < s.n_listen);
	assert_int_equal(s.listen[i].port, port);
	assert_string_equal(s.listen[i].address, address);
	assert_int_equal(s.listen[i].allow_remote, allow_remote);
}

static void
without_a_file_everything_has_its_default(void **state)
{
	struct utsname u;

	assert_int_equal(uname(&u), 0);
	assert_string_equal(s.machine_name, u.sysname);
	assert_int_equal(s.n_listen, 0);
	assert_null(s.trace_dir);
	assert_int_equal(s.trace_file_mode, 0600);
	assert_int_equal(s.log_level, LOG_LEVEL_INFO);
	assert_false(s.enable_relay_endpoint);
	assert_null(s.socket_permissions);
	assert_true(s.lossless);
	assert_int_equal(s.overload_lag_ms, 50);
	assert_int_equal(s.limits.max_sessions, 64);
	assert_int_equal(s.limits.max_sessions_per_uid, 16);
	assert_int_equal(s.limits.max_buffers_per_session, 128);
	assert_true(s.limits.max_total_buffer_kb > 1024);
	assert_int_equal(s.limits.max_trace_duration_ms, 604800000);
	assert_int_equal(s.limits.max_producers, 65535);
	assert_int_equal(s.limits.max_data_sources_per_producer, 4096);
	assert_int_equal(s.limits.max_writers_per_producer, 32767);
	assert_int_equal(s.limits.max_name_bytes, 1024);
	assert_int_equal(s.limits.max_connections, 66000);
	assert_int_equal(s.limits.max_consumers_per_uid, 256);
	assert_int_equal(s.limits.max_send_queue_kb, 4096);
	assert_int_equal(s.limits.max_shm_kb, 32768);
	assert_int_equal(s.limits.max_connections_per_peer, 16384);
	assert_int_equal(s.limits.max_handshakes, 4096);
	assert_int_equal(s.limits.max_handshakes_per_peer, 2048);
	assert_int_equal(s.limits.handshake_timeout_ms, 10000);
	assert_int_equal(s.limits.bind_timeout_ms, 30000);
	assert_int_equal(s.limits.idle_timeout_ms, 0);
	assert_int_equal(s.limits.stalled_timeout_ms, 60000);
	assert_int_equal(s.limits.max_connection_memory_kb,
	    s.limits.max_total_buffer_kb / 4);
	assert_int_equal(s.limits.max_connection_memory_per_peer_kb,
	    s.limits.max_connection_memory_kb / 4);
	assert_int_equal(s.limits.max_input_kb_per_s, 0);
	assert_int_equal(s.limits.max_input_kb_per_s_per_peer, 0);
	assert_int_equal(s.limits.max_data_sources, 1000000);
	assert_int_equal(s.limits.max_data_sources_per_peer, 100000);
	assert_int_equal(s.limits.max_buffer_kb_per_consumer,
	    s.limits.max_total_buffer_kb);
	assert_int_equal(s.limits.min_free_memory_kb,
	    s.limits.max_total_buffer_kb / 16);
	assert_false(s.limits.ignore_free_memory);
	assert_null(s.tls.dir);
	assert_false(s.tls.allow_tls12);
	assert_int_equal(s.n_rules, 0);
	assert_int_equal(s.certificate_default, ROLE_PRODUCER | ROLE_RELAY);
	assert_false(s.ignore_certificate_roles);
	assert_int_equal(s.n_dials, 0);
	assert_null(s.user);
	assert_false(s.seccomp);
	assert_int_equal(s.io_threads, 0);
	assert_int_equal(s.link.grace_ms, 60000);
	assert_int_equal(s.link.end_wait_ms, 5000);
	assert_int_equal(s.link.window_kb, 1024);
	assert_int_equal(s.link.max_commands_kb, 4096);
	assert_int_equal(s.link.max_links, 16384);
	assert_int_equal(s.link.max_links_per_peer, 4096);
	assert_int_equal(s.link.max_producers_per_link, 4096);
	assert_true(s.link.compression);
	assert_int_equal(settings_check(&s, err, sizeof(err)), 0);
}

static void
an_empty_file_changes_nothing(void **state)
{
	parse("");
	parse("# only words\n");
	without_a_file_everything_has_its_default(state);
}

static void
every_field_of_a_file_arrives(void **state)
{
	parse("producer_socket: \"/run/p\"\n"
	      "producer_socket: \"127.0.0.1:0\"\n"
	      "consumer_socket: \"@c\"\n"
	      "listen { address: \"0.0.0.0:1\" port: PRODUCER\n"
	      "         allow_remote: true }\n"
	      "listen { address: \"[::1]:2\" port: CONSUMER }\n"
	      "listen { address: \"vsock://2:3\" port: RELAY }\n"
	      "relay_socket: \"10.0.0.1:4\"\n"
	      "trace_dir: \"/traces\"\n"
	      "trace_file_mode: \"0640\"\n"
	      "log_level: \"debug\"\n"
	      "enable_relay_endpoint: true\n"
	      "socket_permissions: \"a:0660:b:0600\"\n"
	      "lossless: false\n"
	      "overload_lag_ms: 7\n"
	      "limits {\n"
	      "  max_sessions: 1 max_sessions_per_uid: 2\n"
	      "  max_buffers_per_session: 3\n"
	      "  max_total_buffer_kb: 5000000000\n"
	      "  max_trace_duration_ms: 6000000000\n"
	      "  max_producers: 7 max_data_sources_per_producer: 8\n"
	      "  max_writers_per_producer: 9 max_name_bytes: 10\n"
	      "  max_connections: 11 max_consumers_per_uid: 12\n"
	      "  max_send_queue_kb: 13 max_shm_kb: 14 }\n");
	assert_int_equal(s.n_listen, 7);
	expect_listener(0, LISTEN_PRODUCER, "/run/p", false);
	expect_listener(1, LISTEN_PRODUCER, "127.0.0.1:0", false);
	expect_listener(2, LISTEN_CONSUMER, "@c", false);
	expect_listener(3, LISTEN_RELAY, "10.0.0.1:4", false);
	expect_listener(4, LISTEN_PRODUCER, "0.0.0.0:1", true);
	expect_listener(5, LISTEN_CONSUMER, "[::1]:2", false);
	expect_listener(6, LISTEN_RELAY, "vsock://2:3", false);
	assert_string_equal(s.trace_dir, "/traces");
	assert_int_equal(s.trace_file_mode, 0640);
	assert_int_equal(s.log_level, LOG_LEVEL_DEBUG);
	assert_true(s.enable_relay_endpoint);
	assert_string_equal(s.socket_permissions, "a:0660:b:0600");
	assert_false(s.lossless);
	assert_int_equal(s.overload_lag_ms, 7);
	assert_int_equal(s.limits.max_sessions, 1);
	assert_int_equal(s.limits.max_sessions_per_uid, 2);
	assert_int_equal(s.limits.max_buffers_per_session, 3);
	assert_int_equal(s.limits.max_total_buffer_kb, 5000000000);
	assert_int_equal(s.limits.max_trace_duration_ms, 6000000000);
	assert_int_equal(s.limits.max_producers, 7);
	assert_int_equal(s.limits.max_data_sources_per_producer, 8);
	assert_int_equal(s.limits.max_writers_per_producer, 9);
	assert_int_equal(s.limits.max_name_bytes, 10);
	assert_int_equal(s.limits.max_connections, 11);
	assert_int_equal(s.limits.max_consumers_per_uid, 12);
	assert_int_equal(s.limits.max_send_queue_kb, 13);
	assert_int_equal(s.limits.max_shm_kb, 14);
}

static void
every_field_of_who_may_what_arrives(void **state)
{
	parse("listen { address: \"@c\" port: CONSUMER forwarded: true }\n"
	      "listen { address: \"[::1]:2\" port: CONSUMER\n"
	      "         allow_plain_consumer: true }\n"
	      "tls { dir: \"/certs\" ca: \"/a\" certificate: \"/b\"\n"
	      "      key: \"/c\" crl: \"/d\" allow_tls_1_2: true }\n"
	      "trust { name: \"dev-*\" may: PRODUCER may: RELAY\n"
	      "        may_claim_machine: true }\n"
	      "trust { user: \"ann\" group: \"tracing\" may: ADMIN }\n"
	      "trust { user: \"*\" }\n"
	      "certificate_default: CONSUMER\n"
	      "ignore_certificate_roles: true\n"
	      "dial { address: \"ssh://ann@device-7:2222\" }\n"
	      "dial { address: \"ssh://device-8\" command: \"relay --stdio\"\n"
	      "       machine_name: \"eight\" max_retry_ms: 5 port: RELAY }\n"
	      "dial { address: \"ssh://device-9/run/p\" }\n"
	      "user: \"tracer\" seccomp: true io_threads: 3\n");
	assert_true(s.listen[0].forwarded);
	assert_false(s.listen[0].allow_plain_consumer);
	assert_true(s.listen[1].allow_plain_consumer);
	assert_string_equal(s.tls.dir, "/certs");
	assert_string_equal(s.tls.ca, "/a");
	assert_string_equal(s.tls.certificate, "/b");
	assert_string_equal(s.tls.key, "/c");
	assert_string_equal(s.tls.crl, "/d");
	assert_true(s.tls.allow_tls12);
	assert_int_equal(s.n_rules, 3);
	assert_string_equal(s.rules[0].name, "dev-*");
	assert_int_equal(s.rules[0].may, ROLE_PRODUCER | ROLE_RELAY);
	assert_true(s.rules[0].may_claim_machine);
	assert_null(s.rules[1].name);
	assert_string_equal(s.rules[1].user, "ann");
	assert_string_equal(s.rules[1].group, "tracing");
	assert_int_equal(s.rules[1].may, ROLE_ADMIN);
	assert_int_equal(s.rules[2].may, 0);
	assert_int_equal(s.certificate_default, ROLE_CONSUMER);
	assert_true(s.ignore_certificate_roles);
	assert_int_equal(s.n_dials, 3);
	assert_string_equal(s.dials[0].machine_name, "device-7");
	assert_string_equal(s.dials[0].command, "tributary-relay --stdio");
	assert_int_equal(s.dials[0].max_retry_ms, 30000);
	assert_int_equal(s.dials[0].port, LISTEN_RELAY);
	assert_string_equal(s.dials[1].machine_name, "eight");
	assert_string_equal(s.dials[1].command, "relay --stdio");
	assert_int_equal(s.dials[1].max_retry_ms, 5);
	assert_int_equal(s.dials[1].port, LISTEN_RELAY);
	assert_string_equal(s.dials[2].machine_name, "device-9");
	assert_null(s.dials[2].command);
	assert_string_equal(s.user, "tracer");
	assert_true(s.seccomp);
	assert_int_equal(s.io_threads, 3);
	assert_int_equal(settings_check(&s, err, sizeof(err)), -1);
}

static void
a_rule_that_fits_nobody_is_refused(void **state)
{
	refuse("trust { may: ADMIN }", "`name` (of a certificate)");
	refuse("trust { name: '' }", "empty");
	refuse("trust { name: 'a' user: 'b' }", "write two");
	refuse("trust { name: 'a' group: 'b' }", "write two");
	refuse("trust { name: 'a' may: ROLE_UNSPECIFIED }",
	    "PRODUCER, RELAY, CONSUMER or ADMIN");
	refuse("certificate_default: ROLE_UNSPECIFIED", "certificate_default");
}

#define RECORDING(text)                                                       \
	"archive_dir: '/a' recording { name: 'r' config_file: 'c' " text " }"

static void
a_recording_says_what_is_recorded_and_cut(void **state)
{
	const struct recording_setting *r;

	parse(RECORDING("machines: 'kiosk-*' rotate { every_ms: 1000 size_kb: "
	    "64 at_trigger: 'drop' } split: BY_MACHINE keep { size_mb: 5 hours:"
	    " 2 }") "recording { name: 'f' config_file: '/x/y' flight { "
	    "at_trigger: 'drop' } }");
	assert_string_equal(s.archive_dir, "/a");
	assert_int_equal(s.n_recordings, 2);
	r = &s.recordings[0];
	assert_string_equal(r->name, "r");
	assert_string_equal(r->config_path, "c");
	assert_string_equal(r->machines.words[0], "kiosk-*");
	assert_string_equal(r->triggers.words[0], "drop");
	assert_int_equal(r->every_ms, 1000);
	assert_int_equal(r->max_bytes, 65536);
	assert_true(r->by_machine);
	assert_int_equal(r->keep_bytes, 5 << 20);
	assert_int_equal(r->keep_ms, 7200000);
	assert_string_equal(r[1].config_path, "/x/y");
	assert_true(r[1].is_flight);
	assert_int_equal(r[1].before_ms, 30000);
	assert_int_equal(r[1].after_ms, 10000);
}

static void
a_recording_that_could_not_be_is_refused(void **state)
{
	refuse("recording { name: 'r' config_file: 'c' }", "archive_dir");
	refuse("archive_dir: ''", "archive_dir");
	refuse("archive_dir: 'x'", "whole path");
	free(s.archive_dir);
	s.archive_dir = NULL;
	refuse("archive_dir: '/a' recording { config_file: 'c' }",
	    "no `name`");
	refuse("archive_dir: '/a' recording { name: 'a/b' config_file: 'c' }",
	    "name of a recording");
	refuse("archive_dir: '/a' recording { name: 'r' }", "config_file");
	refuse(RECORDING("rotate { every_ms: 999 }"), "every_ms");
	refuse(RECORDING("rotate { size_kb: 1 }"), "size_kb");
	refuse(RECORDING("rotate { at_trigger: '' }"), "at_trigger");
	refuse(RECORDING("machines: ''"), "machines");
	refuse(RECORDING("keep { hours: 0 }"), "keep");
	refuse(RECORDING("file_pattern: '/x'"), "file_pattern");
	refuse(RECORDING("flight { }"), "at_trigger");
	refuse(RECORDING("flight { at_trigger: 'a' before_ms: 5 }"),
	    "before_ms");
	refuse(RECORDING("flight { at_trigger: 'a' } split: WHOLE"),
	    "exclude each other");
	refuse(RECORDING("") "recording { name: 'r' config_file: 'd' }",
	    "two recordings");
}

static void
a_quota_says_what_machines_and_producers_may_take(void **state)
{
	parse("quota { machine: 'device-*' certificate: 'lab' "
	    "each_machine { kb_per_s: 1024 burst_kb: 4096 max_producers: 10 "
	    "max_connections: 2 max_data_sources: 20 max_sequences: 30 } "
	    "each_producer { kb_per_s: 100 } over: DROP "
	    "guaranteed_buffer_percent: 0 } quota { }");
	assert_int_equal(s.n_quotas, 2);
	assert_string_equal(s.quotas[0].machine, "device-*");
	assert_string_equal(s.quotas[0].certificate, "lab");
	assert_int_equal(s.quotas[0].each_machine.bytes_per_second, 1 << 20);
	assert_int_equal(s.quotas[0].each_machine.burst, 4 << 20);
	assert_int_equal(s.quotas[0].each_machine.max_producers, 10);
	assert_int_equal(s.quotas[0].each_machine.max_connections, 2);
	assert_int_equal(s.quotas[0].each_machine.max_data_sources, 20);
	assert_int_equal(s.quotas[0].each_machine.max_sequences, 30);
	assert_int_equal(s.quotas[0].each_producer.bytes_per_second, 102400);
	assert_int_equal(s.quotas[0].each_producer.burst, 0);
	assert_true(s.quotas[0].drop);
	assert_int_equal(s.quotas[0].guaranteed_percent, 0);
	/* Nothing but the default. */
	assert_null(s.quotas[1].machine);
	assert_int_equal(s.quotas[1].each_machine.bytes_per_second, 0);
	assert_false(s.quotas[1].drop);
	assert_int_equal(s.quotas[1].guaranteed_percent, 50);
}

static void
a_quota_that_cannot_be_meant_is_refused(void **state)
{
	refuse("quota { machine: '' }", "empty `machine`");
	refuse("quota { over: OVER_UNSPECIFIED }", "HOLD or DROP");
	refuse("quota { guaranteed_buffer_percent: 91 }", "at most 90");
	refuse("quota { each_machine { kb_per_s: 0 } }",
	    "each_machine.kb_per_s: 0");
	refuse("quota { each_producer { kb_per_s: 67108865 } }",
	    "at most 67108864");
	refuse("quota { each_producer { burst_kb: 1 } }", "`kb_per_s`");
	refuse("quota { each_producer { kb_per_s: 1 burst_kb: 0 } }",
	    "burst_kb: 0");
	refuse("quota { each_producer { max_producers: 1 } }", "a machine's");
	refuse("quota { each_producer { max_connections: 1 } }", "a machine's");
	refuse("quota { each_machine { max_sequences: 0 } }",
	    "max_sequences: 0");
	refuse("quota { each_machine { kb_per_s: -1 } }", "wants a whole number");
}

static void
a_dial_goes_through_ssh_to_one_device_once(void **state)
{
	refuse("dial { }", "no `address`");
	refuse("dial { address: 'device:1' }", "ssh://[user@]host");
	refuse("dial { address: 'tls://device:1' }", "ssh://[user@]host");
	refuse("dial { address: 'ssh://' }", "ssh://");
	refuse("dial { address: 'ssh://d/localhost:1' }", "UNIX socket");
	refuse("dial { address: 'ssh://d/p' command: 'x' }", "`command`");
	refuse("dial { address: 'ssh://d' port: CONSUMER }", "not dialled");
	refuse("dial { address: 'ssh://d' port: PORT_UNSPECIFIED }",
	    "PRODUCER or RELAY");
	refuse("dial { address: 'ssh://d' max_retry_ms: 0 }", "max_retry_ms");
	refuse("dial { address: 'ssh://d' machine_name: '' }", "machine_name");
	refuse("dial { address: 'ssh://d' } dial { address: 'ssh://d' }",
	    "twice");
}

/* format: with the number of each in it. */
static void
refuse_one_more_than(unsigned most, const char *format, const char *part)
{
	char *text, *at;
	unsigned i;

	at = text = malloc((size_t)(most + 1) * (strlen(format) + 12));
	assert_non_null(text);
	for (i = 0; i <= most; i++)
		at += sprintf(at, format, i);
	refuse(text, part);
	free(text);
}

static void
rules_dials_and_quotas_have_a_most(void **state)
{
	refuse_one_more_than(SETTINGS_RULES_MAX,
	    "trust { name: 'n%u' may: PRODUCER }\n", "1024 rules");
	settings_done(&s);
	assert_int_equal(settings_init(&s), 0);
	refuse_one_more_than(SETTINGS_DIALS_MAX,
	    "dial { address: 'ssh://d%u' }\n", "1024 devices");
	settings_done(&s);
	assert_int_equal(settings_init(&s), 0);
	refuse_one_more_than(SETTINGS_QUOTAS_MAX,
	    "quota { machine: 'm%u' }\n", "1024 quotas");
}

static void
a_socket_cannot_be_what_its_address_forbids(void **state)
{
	refuse("producer_socket: 'ssh://device-7'", "`dial`");
	refuse("listen { address: 'h:1' port: PRODUCER forwarded: true }",
	    "UNIX sockets");
	refuse("listen { address: 'h:1' port: RELAY "
	       "allow_plain_consumer: true }", "relays");
	refuse("tls { key: '' }", "tls.key");
	refuse("user: ''", "user: ");
}

static void
limits_that_are_parts_of_another_follow_it(void **state)
{
	parse("limits { max_connection_memory_kb: 1000\n"
	      "         max_total_buffer_kb: 77 }");
	assert_int_equal(s.limits.max_connection_memory_per_peer_kb, 250);
	assert_int_equal(s.limits.max_buffer_kb_per_consumer, 77);
	parse("limits { max_connection_memory_kb: 1 }");
	assert_int_equal(s.limits.max_connection_memory_per_peer_kb, 1);
	parse("limits { max_connection_memory_kb: 1000\n"
	      "         max_connection_memory_per_peer_kb: 900\n"
	      "         max_total_buffer_kb: 77\n"
	      "         max_buffer_kb_per_consumer: 7 }");
	assert_int_equal(s.limits.max_connection_memory_per_peer_kb, 900);
	assert_int_equal(s.limits.max_buffer_kb_per_consumer, 7);
}

static void
a_mistyped_field_is_shown_with_its_place_and_the_right_name(void **state)
{
	refuse("log_level: \"info\"\n  trace_dri: \"/x\"\n", "t.conf:2:3: error");
	assert_non_null(strstr(err, "trace_dir"));
	assert_non_null(strstr(err, "^"));
}

static void
a_mode_of_files_has_four_octal_digits_and_an_owner_who_writes(void **state)
{
	refuse("trace_file_mode: \"644\"", "four octal digits");
	refuse("trace_file_mode: \"0648\"", "four octal digits");
	refuse("trace_file_mode: \"0644x\"", "four octal digits");
	refuse("trace_file_mode: \"4644\"", "four octal digits");
	refuse("trace_file_mode: \"0444\"", "four octal digits");
	refuse("trace_file_mode: \"\"", "trace_file_mode");
}

static void
a_wrong_type_is_shown_with_its_place(void **state)
{
	refuse("limits {\n  max_sessions: \"many\"\n}\n", "t.conf:2:");
}

static void
a_limit_of_zero_is_refused_by_name(void **state)
{
	static const char *const names[] = {
		"max_sessions", "max_sessions_per_uid",
		"max_buffers_per_session", "max_total_buffer_kb",
		"max_trace_duration_ms", "max_producers",
		"max_data_sources_per_producer", "max_writers_per_producer",
		"max_name_bytes", "max_connections", "max_consumers_per_uid",
		"max_send_queue_kb", "max_shm_kb",
		"max_connections_per_peer", "max_handshakes",
		"max_handshakes_per_peer", "handshake_timeout_ms",
		"bind_timeout_ms", "idle_timeout_ms", "stalled_timeout_ms",
		"max_connection_memory_kb",
		"max_connection_memory_per_peer_kb", "max_input_kb_per_s",
		"max_input_kb_per_s_per_peer", "max_data_sources",
		"max_data_sources_per_peer", "max_buffer_kb_per_consumer",
		"min_free_memory_kb",
	};
	char text[128], part[64];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(text, sizeof(text), "limits { %s: 0 }", names[i]);
		snprintf(part, sizeof(part), "limits.%s: 0 is not", names[i]);
		refuse(text, part);
	}
}

static void
a_limit_over_what_is_possible_is_refused(void **state)
{
	refuse("limits { max_producers: 1000001 }", "1000000");
	refuse("limits { max_writers_per_producer: 32768 }", "32767");
	refuse("limits { max_shm_kb: 32769 }", "32768");
	refuse("limits { max_buffers_per_session: 65536 }", "65535");
}

static void
an_address_that_is_none_is_refused_with_its_field(void **state)
{
	refuse("producer_socket: \"localhost:99999\"", "producer_socket: ");
	refuse("consumer_socket: \"\"", "consumer_socket: ");
	refuse("relay_socket: \"tls://x\"", "relay_socket: ");
	refuse("listen { address: \":1\" port: PRODUCER }", "listen: ");
}

static void
a_listen_without_address_or_port_is_refused(void **state)
{
	refuse("listen { port: PRODUCER }", "`address`");
	refuse("listen { address: \"/x\" }", "`port`");
	refuse("listen { address: \"/x\" port: PORT_UNSPECIFIED }",
	    "PRODUCER, CONSUMER or RELAY");
	refuse("listen { address: \"/x\" port: CONSUMMER }", "CONSUMER");
}

static void
more_threads_than_there_may_be_are_refused(void **state)
{
	refuse("io_threads: 65", "the 64 there may be");
}

static void
a_word_that_is_no_log_level_is_refused(void **state)
{
	refuse("log_level: \"verbose\"", "error, warn, info, debug");
}

static void
socket_permissions_have_four_parts_and_octal_modes(void **state)
{
	static const char *const bad[] = {
		"", "a", "a:0660", "a:0660:b", "a:0660:b:", ":0660:b:0660",
		"a:0660::0660", "a:660:b:0660", "a:0680:b:0660",
		"a:0660:b:0660:c", "a:0660:b:0660:", "a:-660:b:0660",
		"a:0660:b:06600",
	};
	struct socket_permissions p;
	char text[200];
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(socket_permissions_parse(&p, bad[i], err,
			sizeof(err)), -1);
	assert_int_equal(socket_permissions_parse(&p, "prod:0666:cons:0600",
		err, sizeof(err)), 0);
	assert_string_equal(p.producer_group, "prod");
	assert_int_equal(p.producer_mode, 0666);
	assert_string_equal(p.consumer_group, "cons");
	assert_int_equal(p.consumer_mode, 0600);
	memset(text, 'g', 100);
	strcpy(text + 100, ":0660:b:0660");
	assert_int_equal(socket_permissions_parse(&p, text, err, sizeof(err)),
	    -1);
	refuse("socket_permissions: \"a:b\"", "four octal digits");
}

static void
a_list_makes_a_listener_of_each_address(void **state)
{
	assert_int_equal(settings_listen(&s, LISTEN_PRODUCER,
		"/a, 127.0.0.1:5 ,@b", false, err, sizeof(err)), 0);
	assert_int_equal(s.n_listen, 3);
	expect_listener(0, LISTEN_PRODUCER, "/a", false);
	expect_listener(1, LISTEN_PRODUCER, "127.0.0.1:5", false);
	expect_listener(2, LISTEN_PRODUCER, "@b", false);
	assert_int_equal(settings_listen(&s, LISTEN_PRODUCER, " , ", false, err,
		sizeof(err)), -1);
}

static void
the_same_address_again_changes_nothing(void **state)
{
	parse("producer_socket: \"/a\" producer_socket: \"/a\"");
	assert_int_equal(s.n_listen, 1);
	parse("listen { address: \"/a\" port: PRODUCER allow_remote: true }");
	assert_int_equal(s.n_listen, 1);
	expect_listener(0, LISTEN_PRODUCER, "/a", true);
}

static void
a_producer_socket_may_carry_relays_but_no_consumers(void **state)
{
	parse("producer_socket: \"/a\" relay_socket: \"/a\"");
	assert_int_equal(s.n_listen, 2);
	refuse("consumer_socket: \"/a\"", "socket of its own");
}

static void
port_0_is_another_port_for_consumers(void **state)
{
	parse("producer_socket: \"127.0.0.1:0\""
	      " consumer_socket: \"127.0.0.1:0\"");
	assert_int_equal(s.n_listen, 2);
}

static void
sockets_have_a_most(void **state)
{
	char text[64];
	unsigned i;

	for (i = 0; i < SETTINGS_LISTEN_MAX; i++) {
		snprintf(text, sizeof(text), "@%u", i);
		assert_int_equal(settings_listen(&s, LISTEN_PRODUCER, text,
			false, err, sizeof(err)), 0);
	}
	assert_int_equal(settings_listen(&s, LISTEN_PRODUCER, "@more", false,
		err, sizeof(err)), -1);
	assert_non_null(strstr(err, "64"));
}

static void
variables_replace_the_sockets_of_the_file(void **state)
{
	parse("producer_socket: \"/file\" consumer_socket: \"/file2\""
	      " relay_socket: \"/file3\"");
	setenv("PERFETTO_PRODUCER_SOCK_NAME", "/env,127.0.0.1:1", 1);
	assert_int_equal(settings_apply_environment(&s, err, sizeof(err)), 0);
	assert_int_equal(s.n_listen, 4);
	expect_listener(0, LISTEN_CONSUMER, "/file2", false);
	expect_listener(1, LISTEN_RELAY, "/file3", false);
	expect_listener(2, LISTEN_PRODUCER, "/env", false);
	expect_listener(3, LISTEN_PRODUCER, "127.0.0.1:1", false);
	setenv("PERFETTO_CONSUMER_SOCK_NAME", "host:port:port", 1);
	assert_int_equal(settings_apply_environment(&s, err, sizeof(err)), -1);
	assert_non_null(strstr(err, "PERFETTO_CONSUMER_SOCK_NAME"));
}

static void
an_empty_variable_is_as_good_as_none(void **state)
{
	parse("producer_socket: \"/file\"");
	setenv("PERFETTO_PRODUCER_SOCK_NAME", "", 1);
	assert_int_equal(settings_apply_environment(&s, err, sizeof(err)), 0);
	assert_int_equal(s.n_listen, 1);
}

static void
default_sockets_fill_only_ports_that_have_none(void **state)
{
	setenv("PERFETTO_CONSUMER_SOCK_NAME", "@default-consumer", 1);
	parse("producer_socket: \"/file\"");
	assert_int_equal(settings_fill_listeners(&s, LISTEN_PRODUCER, err,
		sizeof(err)), 0);
	assert_int_equal(settings_fill_listeners(&s, LISTEN_CONSUMER, err,
		sizeof(err)), 0);
	assert_int_equal(settings_fill_listeners(&s, LISTEN_RELAY, err,
		sizeof(err)), 0);
	assert_int_equal(s.n_listen, 2);
	expect_listener(0, LISTEN_PRODUCER, "/file", false);
	expect_listener(1, LISTEN_CONSUMER, "@default-consumer", false);
}

static void
allowing_an_address_marks_it_wherever_it_is_named(void **state)
{
	parse("producer_socket: \"0.0.0.0:1\" relay_socket: \"0.0.0.0:1\""
	      " consumer_socket: \"0.0.0.0:2\"");
	assert_false(settings_allow_remote(&s, "0.0.0.0:10"));
	assert_true(settings_allow_remote(&s, "0.0.0.0:1"));
	expect_listener(0, LISTEN_PRODUCER, "0.0.0.0:1", true);
	expect_listener(1, LISTEN_CONSUMER, "0.0.0.0:2", false);
	expect_listener(2, LISTEN_RELAY, "0.0.0.0:1", true);
}

static void
the_machine_is_named_by_its_variable(void **state)
{
	settings_done(&s);
	setenv("PERFETTO_MACHINE_NAME", "lab-7", 1);
	assert_int_equal(settings_init(&s), 0);
	assert_string_equal(s.machine_name, "lab-7");
}

static void
a_file_that_cannot_be_read_is_named(void **state)
{
	assert_int_equal(settings_load(&s, "/nonexistent/t.conf", err,
		sizeof(err)), -1);
	assert_non_null(strstr(err, "/nonexistent/t.conf"));
	assert_non_null(strstr(err, "No such file"));
	assert_int_equal(settings_load(&s, "/", err, sizeof(err)), -1);
}

static void
a_file_is_read(void **state)
{
	char path[] = "/tmp/test_settings.XXXXXX";
	static const char text[] = "trace_dir: '/here'\n";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	assert_int_equal(settings_load(&s, path, err, sizeof(err)), 0);
	assert_string_equal(s.trace_dir, "/here");
	unlink(path);
}

static void
every_field_of_links_arrives(void **state)
{
	parse("link { grace_ms: 1 end_wait_ms: 0 window_kb: 256\n"
	      "       max_commands_kb: 3 max_links: 4 max_links_per_peer: 5\n"
	      "       max_producers_per_link: 6 compression: false }");
	assert_int_equal(s.link.grace_ms, 1);
	assert_int_equal(s.link.end_wait_ms, 0);
	assert_int_equal(s.link.window_kb, 256);
	assert_int_equal(s.link.max_commands_kb, 3);
	assert_int_equal(s.link.max_links, 4);
	assert_int_equal(s.link.max_links_per_peer, 5);
	assert_int_equal(s.link.max_producers_per_link, 6);
	assert_false(s.link.compression);
}

static void
limits_of_links_that_make_no_sense_are_refused(void **state)
{
	refuse("link { window_kb: 255 }", "link.window_kb");
	refuse("link { window_kb: 1048577 }", "link.window_kb");
	refuse("link { max_links: 0 }", "link");
	refuse("link { max_links_per_peer: 0 }", "link");
	refuse("link { max_producers_per_link: 65536 }", "65535");
	refuse("link { max_commands_kb: 0 }", "link");
	refuse("overwrite_unwritten: true", "overwrite_unwritten");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(without_a_file_everything_has_its_default),
		CASE(an_empty_file_changes_nothing),
		CASE(every_field_of_a_file_arrives),
		CASE(every_field_of_who_may_what_arrives),
		CASE(a_rule_that_fits_nobody_is_refused),
		CASE(a_recording_says_what_is_recorded_and_cut),
		CASE(a_recording_that_could_not_be_is_refused),
		CASE(a_quota_says_what_machines_and_producers_may_take),
		CASE(a_quota_that_cannot_be_meant_is_refused),
		CASE(a_dial_goes_through_ssh_to_one_device_once),
		CASE(rules_dials_and_quotas_have_a_most),
		CASE(a_socket_cannot_be_what_its_address_forbids),
		CASE(every_field_of_links_arrives),
		CASE(limits_of_links_that_make_no_sense_are_refused),
		CASE(limits_that_are_parts_of_another_follow_it),
		CASE(a_mistyped_field_is_shown_with_its_place_and_the_right_name),
		CASE(a_mode_of_files_has_four_octal_digits_and_an_owner_who_writes),
		CASE(a_wrong_type_is_shown_with_its_place),
		CASE(a_limit_of_zero_is_refused_by_name),
		CASE(a_limit_over_what_is_possible_is_refused),
		CASE(an_address_that_is_none_is_refused_with_its_field),
		CASE(a_listen_without_address_or_port_is_refused),
		CASE(more_threads_than_there_may_be_are_refused),
		CASE(a_word_that_is_no_log_level_is_refused),
		CASE(socket_permissions_have_four_parts_and_octal_modes),
		CASE(a_list_makes_a_listener_of_each_address),
		CASE(the_same_address_again_changes_nothing),
		CASE(a_producer_socket_may_carry_relays_but_no_consumers),
		CASE(port_0_is_another_port_for_consumers),
		CASE(sockets_have_a_most),
		CASE(variables_replace_the_sockets_of_the_file),
		CASE(an_empty_variable_is_as_good_as_none),
		CASE(default_sockets_fill_only_ports_that_have_none),
		CASE(allowing_an_address_marks_it_wherever_it_is_named),
		CASE(the_machine_is_named_by_its_variable),
		CASE(a_file_that_cannot_be_read_is_named),
		CASE(a_file_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
