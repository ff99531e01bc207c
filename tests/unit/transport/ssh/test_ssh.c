#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "transport/ssh/ssh.h"

static struct {
	struct addr addr;
	struct ssh_args args;
	char err[512];
	char text[1024];
	char joined[4096];
} t;

static void
address(const char *text)
{
	if (addr_parse(&t.addr, text, t.err, sizeof(t.err)) != 0)
		fail_msg("%s", t.err);
}

static const char *
joined(void)
{
	size_t i, n = 0;

	for (i = 0; t.args.argv[i] != NULL; i++)
		n += (size_t)snprintf(t.joined + n, sizeof(t.joined) - n,
		    "%s|", t.args.argv[i]);
	return t.joined;
}

static void
has(const char *piece)
{
	if (strstr(joined(), piece) == NULL)
		fail_msg("%s lacks %s", t.joined, piece);
}

static void
has_not(const char *piece)
{
	if (strstr(joined(), piece) != NULL)
		fail_msg("%s has %s", t.joined, piece);
}

static void
ends_with(const char *piece)
{
	size_t n = strlen(joined()), m = strlen(piece);

	if (n < m || strcmp(t.joined + n - m, piece) != 0)
		fail_msg("%s does not end with %s", t.joined, piece);
}

static void
runs(const char *service, const char *command)
{
	assert_int_equal(ssh_args_connect(&t.args, &t.addr, service, command,
	    t.err, sizeof(t.err)), 0);
}

static void
forwards(const char *local)
{
	assert_int_equal(ssh_args_forward(&t.args, &t.addr, local, t.err,
	    sizeof(t.err)), 0);
}

static void
without_a_path_a_command_is_run(void **state)
{
	address("ssh://device-7");
	runs("producer", NULL);
	ends_with("|--|device-7|tributary connect producer|");
	has("ssh|-o|BatchMode=yes|");
	has("|-o|ClearAllForwardings=yes|");
	has_not("ControlPath"); /* the user's own shared connection will do */
	runs(NULL, NULL);
	ends_with("|--|device-7|tributary connect|");
	runs("producer", "cd /x && ./relay --stdio");
	ends_with("|--|device-7|cd /x && ./relay --stdio|");
}

static void
user_and_port_are_options_and_the_host_never_is(void **state)
{
	address("ssh://me@[::1]:2222");
	runs("consumer", NULL);
	ends_with("|-p|2222|-l|me|--|::1|tributary connect consumer|");
}

static void
a_socket_is_reached_through_one_of_our_own(void **state)
{
	address("ssh://host/run/perfetto/traced-producer.sock");
	forwards("/tmp/x/s");
	has("|-N|");
	has("|-L|/tmp/x/s:/run/perfetto/traced-producer.sock|");
	ends_with("|--|host|");
	/* Else the forwarding would stay with whom we share it. */
	has("|ControlPath=none|");
	/* It would clear ours. */
	has_not("ClearAllForwardings");
}

static void
a_port_is_reached_through_a_socket_of_our_own(void **state)
{
	address("ssh://host:22/localhost:7443");
	forwards("/tmp/x/s");
	has("|-L|/tmp/x/s:localhost:7443|");
	ends_with("|-p|22|--|host|");
}

static void
the_far_side_listens_for_us(void **state)
{
	address("ssh://host/run/tributary/device.sock");
	assert_int_equal(ssh_args_listen(&t.args, &t.addr, t.addr.path,
	    "/run/local.sock", t.err, sizeof(t.err)), 0);
	has("|-N|");
	has("|-R|/run/tributary/device.sock:/run/local.sock|");
	has("|ExitOnForwardFailure=yes|");
	has("|StreamLocalBindUnlink=yes|");
	ends_with("|--|host|");
}

static void
nothing_but_a_stream_is_asked_for(void **state)
{
	address("ssh://host");
	runs("producer", NULL);
	has("|ForwardAgent=no|");
	has("|ForwardX11=no|");
	has("|Tunnel=no|");
	has("|PermitLocalCommand=no|");
	has("|RemoteCommand=none|");
	has("|-T|");
	/* The user's agent, keys and known_hosts are his own. */
	has_not("IdentityAgent");
	has_not("StrictHostKeyChecking");
	has_not("KnownHosts");
}

static void
another_program_can_be_named(void **state)
{
	address("ssh://host");
	setenv("TRIBUTARY_SSH", "/opt/my ssh", 1);
	runs("producer", NULL);
	assert_int_equal(strncmp(joined(), "/opt/my ssh|-o|", 15), 0);
	setenv("TRIBUTARY_SSH", "", 1);
	runs("producer", NULL);
	assert_int_equal(strncmp(joined(), "ssh|-o|", 7), 0);
	unsetenv("TRIBUTARY_SSH");
}

static void
paths_that_mean_more_to_ssh_are_refused(void **state)
{
	static const char *const bad[] = { "relative", "/a:b", "/a%h", "/a${B}",
		"/a b", "/a\\b", "" };
	size_t i;

	address("ssh://host/run/x.sock");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(ssh_args_forward(&t.args, &t.addr, bad[i],
		    t.err, sizeof(t.err)), -1);
		assert_non_null(strstr(t.err, "absolute"));
		assert_int_equal(ssh_args_listen(&t.args, &t.addr, bad[i],
		    "/x", t.err, sizeof(t.err)), -1);
		assert_int_equal(ssh_args_listen(&t.args, &t.addr, "/x",
		    bad[i], t.err, sizeof(t.err)), -1);
	}
}

static void
a_command_that_is_too_long_is_refused(void **state)
{
	char command[4000];

	memset(command, 'x', sizeof(command));
	command[sizeof(command) - 1] = '\0';
	address("ssh://host");
	assert_int_equal(ssh_args_connect(&t.args, &t.addr, NULL, command,
	    t.err, sizeof(t.err)), -1);
	assert_string_equal(t.err,
	    "ssh://host: the command line for ssh is too long");
}

static void
means(const char *said, int status, const char *const *pieces)
{
	ssh_error_text(&t.addr, said, status, t.text, sizeof(t.text));
	for (; *pieces != NULL; pieces++)
		if (strstr(t.text, *pieces) == NULL)
			fail_msg("\"%s\" lacks \"%s\"", t.text, *pieces);
}
#define MEANS(said, status, ...)                                               \
	means(said, status, (const char *const[]){ __VA_ARGS__, NULL })

static void
a_host_key_that_is_not_known_names_the_file_and_the_command(void **state)
{
	address("ssh://me@host:2222");
	MEANS("Host key verification failed.\r\n", 255, "host key of host is "
	    "not known on this machine", "ssh -p 2222 me@host",
	    "~/.ssh/known_hosts");
}

static void
a_host_key_that_changed_names_the_line_and_the_command(void **state)
{
	address("ssh://host:2222");
	MEANS("@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n"
	    "Offending ED25519 key in /home/me/.ssh/known_hosts:3\r\n"
	    "  remove with:\r\n"
	    "Host key verification failed.\r\n", 255,
	    "is not the one in /home/me/.ssh/known_hosts:3",
	    "ssh-keygen -R '[host]:2222'", "on this machine");
	address("ssh://host");
	MEANS("WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!\r\n", 255,
	    "~/.ssh/known_hosts", "ssh-keygen -R 'host'");
	MEANS("@ WARNING: REVOKED HOST KEY DETECTED! @\r\n", 255, "revoked",
	    "RevokedHostKeys");
}

static void
a_denied_permission_names_both_sides_files(void **state)
{
	address("ssh://host");
	MEANS("me@host: Permission denied (publickey,password).\r\n", 255,
	    "host does not let us in (me@host: Permission denied "
	    "(publickey,password))", "~/.ssh/authorized_keys there",
	    "~/.ssh/config here");
	MEANS("Received disconnect from 10.0.0.1 port 22:2: Too many "
	    "authentication failures\r\n", 255, "IdentitiesOnly");
}

static void
the_way_to_the_host_is_told_apart(void **state)
{
	address("ssh://host");
	MEANS("ssh: Could not resolve hostname host: Name or service not "
	    "known\r\n", 255, "this machine cannot find host", "check the name");
	MEANS("ssh: connect to host host port 22: Connection refused\r\n", 255,
	    "no sshd answers at port 22 of host");
	MEANS("ssh: connect to host host port 22: Connection timed out\r\n",
	    255, "no answer from host", "firewall");
	MEANS("Connection timed out during banner exchange\r\n", 255,
	    "no answer from host");
	MEANS("ssh: connect to host host port 22: No route to host\r\n", 255,
	    "no route to host");
	MEANS("kex_exchange_identification: Connection closed by remote host"
	    "\r\n", 255, "sshd of host", "MaxStartups");
	MEANS("Timeout, server host not responding.\r\n", 255,
	    "does not answer any more");
}

static void
forwarding_that_is_refused_names_the_setting(void **state)
{
	address("ssh://host/127.0.0.1:7443");
	MEANS("channel 1: open failed: administratively prohibited: open "
	    "failed\r\n", -1, "may not forward to 127.0.0.1:7443",
	    "AllowTcpForwarding", "/etc/ssh/sshd_config there",
	    "tributary connect");
	address("ssh://host/run/x.sock");
	MEANS("channel 1: open failed: administratively prohibited: open "
	    "failed\r\n", -1, "AllowStreamLocalForwarding");
	/* sshd says the same of a socket that is not there. */
	MEANS("channel 1: open failed: connect failed: open failed\r\n", -1,
	    "no program listens there", "AllowStreamLocalForwarding",
	    "/run/x.sock");
	MEANS("Error: remote port forwarding failed for listen path "
	    "/run/x.sock\r\n", 255, "cannot listen for us",
	    "StreamLocalBindUnlink");
}

static void
nobody_listening_over_there_is_not_taken_for_no_sshd(void **state)
{
	address("ssh://host/127.0.0.1:7443");
	MEANS("channel 1: open failed: connect failed: Connection refused\r\n",
	    -1, "let us in, but no program listens at 127.0.0.1:7443 there");
}

static void
a_command_that_is_missing_says_what_to_install(void **state)
{
	address("ssh://host");
	MEANS("bash: line 1: tributary: command not found\r\n", 127,
	    "install tributary on host", "ssh://host/run/perfetto/");
}

static void
what_the_far_command_says_is_passed_on(void **state)
{
	address("ssh://host");
	MEANS("Welcome!\ntributary connect: no program listens at /run/x: "
	    "Connection refused\n", 1,
	    "host said: tributary connect: no program listens at /run/x: "
	    "Connection refused");
}

static void
what_is_not_known_is_passed_on_escaped(void **state)
{
	address("ssh://host");
	MEANS("banner\r\n\033]0;evil\007\r\n\r\n", 255,
	    "ssh to host said: \\x1b]0;evil\\x07");
	MEANS("", 255, "status 255");
	MEANS("", 0, "ssh to host ended");
	MEANS("", 128 + 9, "signal 9");
	MEANS("", -1, "closed the stream");
	/* A banner of sshd's, and the connection ends for another reason. */
	MEANS("Welcome!\r\n", -1, "closed the stream (ssh said: Welcome!)");
}

static void
sentences_fit_where_they_are_cut(void **state)
{
	char out[16];

	address("ssh://host");
	ssh_error_text(&t.addr, "Host key verification failed.", 255, out,
	    sizeof(out));
	assert_int_equal(strlen(out), sizeof(out) - 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_path_a_command_is_run),
		cmocka_unit_test(user_and_port_are_options_and_the_host_never_is),
		cmocka_unit_test(a_socket_is_reached_through_one_of_our_own),
		cmocka_unit_test(a_port_is_reached_through_a_socket_of_our_own),
		cmocka_unit_test(the_far_side_listens_for_us),
		cmocka_unit_test(nothing_but_a_stream_is_asked_for),
		cmocka_unit_test(another_program_can_be_named),
		cmocka_unit_test(paths_that_mean_more_to_ssh_are_refused),
		cmocka_unit_test(a_command_that_is_too_long_is_refused),
		cmocka_unit_test(
		    a_host_key_that_is_not_known_names_the_file_and_the_command),
		cmocka_unit_test(
		    a_host_key_that_changed_names_the_line_and_the_command),
		cmocka_unit_test(a_denied_permission_names_both_sides_files),
		cmocka_unit_test(the_way_to_the_host_is_told_apart),
		cmocka_unit_test(forwarding_that_is_refused_names_the_setting),
		cmocka_unit_test(
		    nobody_listening_over_there_is_not_taken_for_no_sshd),
		cmocka_unit_test(a_command_that_is_missing_says_what_to_install),
		cmocka_unit_test(what_the_far_command_says_is_passed_on),
		cmocka_unit_test(what_is_not_known_is_passed_on_escaped),
		cmocka_unit_test(sentences_fit_where_they_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
