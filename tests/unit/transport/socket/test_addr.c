#include <arpa/inet.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <cmocka.h>

#include "transport/socket/addr.h"

static struct addr a;
static char err[512];

static void
parses(const char *text, enum addr_kind kind)
{
	err[0] = '\0';
	if (addr_parse(&a, text, err, sizeof(err)) != 0)
		fail_msg("%s", err);
	assert_int_equal(a.kind, kind);
	assert_string_equal(a.text, text);
}

static void
refuses(const char *text, const char *because)
{
	struct addr before;

	memset(&a, 0x5a, sizeof(a));
	before = a;
	err[0] = '\0';
	assert_int_equal(addr_parse(&a, text, err, sizeof(err)), -1);
	if (strstr(err, because) == NULL)
		fail_msg("\"%s\" lacks \"%s\"", err, because);
	assert_memory_equal(&a, &before, sizeof(a));
}

static const struct sockaddr_un *
un(void)
{
	return (const struct sockaddr_un *)&a.sa;
}

static void
paths_are_unix_sockets(void **state)
{
	static const char *const texts[] = { "/run/p.sock", "unix:/run/p.sock",
		"unix:///run/p.sock", "dir/with:colon", "plain", "./p" };
	static const char *const paths[] = { "/run/p.sock", "/run/p.sock",
		"/run/p.sock", "dir/with:colon", "plain", "./p" };
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		parses(texts[i], ADDR_UNIX);
		assert_string_equal(un()->sun_path, paths[i]);
		assert_int_equal(a.sa_len,
		    offsetof(struct sockaddr_un, sun_path) +
			strlen(paths[i]) + 1);
	}
}

static void
an_at_sign_is_an_abstract_name_without_a_final_nul(void **state)
{
	static const char *const texts[] = { "@name", "unix:@name" };
	size_t i;

	for (i = 0; i < 2; i++) {
		parses(texts[i], ADDR_UNIX);
		assert_memory_equal(un()->sun_path, "\0name", 5);
		assert_int_equal(a.sa_len,
		    offsetof(struct sockaddr_un, sun_path) + 5);
	}
}

static void
a_unix_path_may_have_107_bytes(void **state)
{
	char path[110];

	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[107] = '\0';
	parses(path, ADDR_UNIX);
	path[107] = 'a';
	path[108] = '\0';
	refuses(path, "is 108 bytes long; the system allows 107");
	refuses("", "names no socket");
	refuses("@", "names no socket");
	refuses("unix:", "names no socket");
}

static void
host_and_port_is_tcp(void **state)
{
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)&a.sa;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&a.sa;

	parses("127.0.0.1:20001", ADDR_TCP);
	assert_int_equal(in4->sin_family, AF_INET);
	assert_int_equal(ntohs(in4->sin_port), 20001);
	assert_int_equal(ntohl(in4->sin_addr.s_addr), 0x7f000001);
	parses("tcp:127.0.0.1:1", ADDR_TCP);
	assert_string_equal(a.host, "127.0.0.1");
	parses("[::1]:65535", ADDR_TCP);
	assert_string_equal(a.host, "::1");
	assert_int_equal(in6->sin6_family, AF_INET6);
	assert_int_equal(ntohs(in6->sin6_port), 65535);
	parses("collector.example:0", ADDR_TCP);
	assert_string_equal(a.host, "collector.example");
	assert_string_equal(a.port, "0");
	assert_int_equal(a.sa_len, 0);
}

static void
a_wrong_tcp_address_says_what_is_wrong(void **state)
{
	char long_host[280];

	refuses("host:", "port must be a number from 0 to 65535");
	refuses("host:65536", "port must be a number");
	refuses("host:99999999999999999999", "port must be a number");
	refuses("host:-1", "port must be a number");
	refuses("host: 80", "port must be a number");
	refuses("host:http", "port must be a number");
	refuses(":80", "lacks a host");
	refuses("::1:80", "[address]:port");
	refuses("[::1]", "[address]:port");
	refuses("[::1]80", "[address]:port");
	refuses("[::1:80", "[address]:port");
	refuses("[]:80", "lacks a host");
	refuses("tcp:host", "lacks a port");
	memset(long_host, 'h', sizeof(long_host));
	strcpy(long_host + 260, ":80");
	refuses(long_host, "too long");
}

static void
vsock_takes_numbers(void **state)
{
	const struct sockaddr_vm *vm = (const struct sockaddr_vm *)&a.sa;

	parses("vsock://2:9000", ADDR_VSOCK);
	assert_int_equal(vm->svm_family, AF_VSOCK);
	assert_int_equal(vm->svm_cid, 2);
	assert_int_equal(vm->svm_port, 9000);
	assert_int_equal(a.sa_len, sizeof(*vm));
	parses("vsock:-1:4294967295", ADDR_VSOCK);
	assert_int_equal(vm->svm_cid, VMADDR_CID_ANY);
	assert_int_equal(vm->svm_port, UINT32_MAX);
	refuses("vsock://2", "vsock://CID:PORT");
	refuses("vsock://host:1", "vsock://CID:PORT");
	refuses("vsock://2:4294967296", "vsock://CID:PORT");
	refuses("vsock://:1", "vsock://CID:PORT");
	refuses("vsock://123456789012345678901:1", "vsock://CID:PORT");
}

static void
tls_addresses_are_those_of_tcp(void **state)
{
	parses("tls://host:7443", ADDR_TLS);
	assert_string_equal(a.host, "host");
	assert_string_equal(a.port, "7443");
	assert_int_equal(a.sa_len, 0);
	parses("tls://[::1]:1", ADDR_TLS);
	assert_string_equal(a.host, "::1");
	assert_int_not_equal(a.sa_len, 0);
	refuses("tls://host", "lacks a port");
	refuses("tls://:1", "lacks a host");
}

static void
is_ssh(const char *text, const char *user, const char *host, const char *port,
    const char *path)
{
	parses(text, ADDR_SSH);
	assert_string_equal(a.user, user);
	assert_string_equal(a.host, host);
	assert_string_equal(a.port, port);
	assert_string_equal(a.path, path);
}

static void
ssh_addresses_name_a_host_and_what_it_leads_to(void **state)
{
	is_ssh("ssh://device-7", "", "device-7", "", "");
	is_ssh("ssh://device-7/", "", "device-7", "", "");
	is_ssh("ssh://me@h.lab:22/run/x.sock", "me", "h.lab", "22",
	    "/run/x.sock");
	is_ssh("ssh://h/localhost:7443", "", "h", "", "localhost:7443");
	is_ssh("ssh://[fe80::1]:2022/tmp/p", "", "fe80::1", "2022", "/tmp/p");
	is_ssh("ssh://[::1]", "", "::1", "", "");
}

static void
ssh_addresses_that_could_be_taken_for_something_else_are_refused(void **state)
{
	const char *host = "is not ssh://";
	const char *path = "behind the host stands";

	refuses("ssh://", host);
	refuses("ssh://-oProxyCommand=x", host);
	refuses("ssh://-l@h", host);
	refuses("ssh://a@-h", host);
	refuses("ssh://@h", host);
	refuses("ssh://h:", host);
	refuses("ssh://h:0", host);
	refuses("ssh://h:65536", host);
	refuses("ssh://h:22x", host);
	refuses("ssh://[::1", host);
	refuses("ssh://[::1]x", host);
	refuses("ssh://[a b]", host);
	refuses("ssh://h;reboot", host);
	refuses("ssh://h$(x)/p", host);
	refuses("ssh://h/a b", path);
	refuses("ssh://h/a'b", path);
	refuses("ssh://h/`x`", path);
	refuses("ssh://h/x:y", path);
	refuses("ssh://h/-x:1", path);
	refuses("ssh://h/x:0", path);
	refuses("ssh://h/:1", path);
}

static void
what_is_no_address_is_refused_by_name(void **state)
{
	char text[400];

	refuses("http://host", "unknown kind of address");
	memset(text, 'x', sizeof(text) - 1);
	text[399] = '\0';
	refuses(text, "longer than 299 bytes");
}

static void
an_address_that_needs_no_name_server_resolves_to_itself(void **state)
{
	struct sockaddr_storage sa[4];
	socklen_t len[4];

	parses("127.0.0.1:7", ADDR_TCP);
	assert_int_equal(addr_resolve(&a, sa, len, 4, err, sizeof(err)), 1);
	assert_memory_equal(&sa[0], &a.sa, a.sa_len);
	assert_int_equal(len[0], a.sa_len);
	assert_int_equal(addr_resolve(&a, sa, len, 0, err, sizeof(err)), 0);
	parses("/x", ADDR_UNIX);
	assert_int_equal(addr_resolve(&a, sa, len, 4, err, sizeof(err)), 1);
	assert_int_equal(len[0], a.sa_len);
}

static void
localhost_resolves_to_local_addresses(void **state)
{
	struct sockaddr_storage sa[4];
	socklen_t len[4];
	int i, n;

	parses("localhost:7", ADDR_TCP);
	n = addr_resolve(&a, sa, len, 4, err, sizeof(err));
	assert_true(n >= 1);
	for (i = 0; i < n; i++)
		assert_true(addr_is_local(&sa[i]));
}

static void
a_name_that_does_not_resolve_is_named(void **state)
{
	struct sockaddr_storage sa[1];
	socklen_t len[1];

	/* Not a legal host name: no server is asked. */
	parses("no such host:7", ADDR_TCP);
	assert_int_equal(addr_resolve(&a, sa, len, 1, err, sizeof(err)), -1);
	assert_non_null(strstr(err, "cannot resolve no such host"));
}

static bool
is_local(const char *text)
{
	assert_int_equal(addr_parse(&a, text, err, sizeof(err)), 0);
	return addr_is_local(&a.sa);
}

static void
loopback_and_unix_are_local_and_nothing_else(void **state)
{
	assert_true(is_local("127.0.0.1:1"));
	assert_true(is_local("127.255.0.1:1"));
	assert_true(is_local("[::1]:1"));
	assert_true(is_local("[::ffff:127.0.0.1]:1"));
	assert_true(is_local("/x"));
	assert_true(is_local("@x"));
	assert_true(is_local("vsock://1:1"));
	assert_false(is_local("0.0.0.0:1"));
	assert_false(is_local("10.0.0.1:1"));
	assert_false(is_local("[::]:1"));
	assert_false(is_local("[::ffff:10.0.0.1]:1"));
	assert_false(is_local("[fe80::1]:1"));
	assert_false(is_local("vsock://2:1"));
	assert_false(is_local("vsock://-1:1"));
}

static void
formats(const char *text, const char *as)
{
	char out[64];

	assert_int_equal(addr_parse(&a, text, err, sizeof(err)), 0);
	addr_format(&a.sa, a.sa_len, out, sizeof(out));
	assert_string_equal(out, as);
}

static void
addresses_are_written_as_they_are_read(void **state)
{
	char out[16];

	formats("10.0.0.7:4711", "10.0.0.7:4711");
	formats("[2001:db8::1]:80", "[2001:db8::1]:80");
	formats("[::ffff:10.0.0.1]:80", "10.0.0.1:80");
	formats("vsock://2:9000", "vsock:2:9000");
	formats("/some/path", "unix");
	addr_format(&a.sa, 0, out, sizeof(out));
	assert_string_equal(out, "unknown");
}

static void
a_list_is_cut_at_commas(void **state)
{
	const char *list = " /a/b , @c,,127.0.0.1:5,";
	char item[16];

	assert_int_equal(addr_list_next(&list, item, sizeof(item)), 1);
	assert_string_equal(item, "/a/b");
	assert_int_equal(addr_list_next(&list, item, sizeof(item)), 1);
	assert_string_equal(item, "@c");
	assert_int_equal(addr_list_next(&list, item, sizeof(item)), 1);
	assert_string_equal(item, "127.0.0.1:5");
	assert_int_equal(addr_list_next(&list, item, sizeof(item)), 0);
	assert_int_equal(addr_list_next(&list, item, sizeof(item)), 0);
	list = "1234567890123456,b";
	assert_int_equal(addr_list_next(&list, item, sizeof(item)), -1);
	assert_int_equal(addr_list_next(&list, item, sizeof(item)), 1);
	assert_string_equal(item, "b");
}

static void
the_environment_names_the_default_sockets(void **state)
{
	setenv("PERFETTO_PRODUCER_SOCK_NAME", "/p,@q", 1);
	setenv("PERFETTO_CONSUMER_SOCK_NAME", "", 1);
	assert_string_equal(addr_default_producer(), "/p,@q");
	/* Empty is unset: one of the two default places. */
	assert_true(
	    strcmp(addr_default_consumer(),
		"/run/perfetto/traced-consumer.sock") == 0 ||
	    strcmp(addr_default_consumer(), "/tmp/perfetto-consumer") == 0);
	unsetenv("PERFETTO_PRODUCER_SOCK_NAME");
	unsetenv("PERFETTO_CONSUMER_SOCK_NAME");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_unix_sockets),
		cmocka_unit_test(
		    an_at_sign_is_an_abstract_name_without_a_final_nul),
		cmocka_unit_test(a_unix_path_may_have_107_bytes),
		cmocka_unit_test(host_and_port_is_tcp),
		cmocka_unit_test(a_wrong_tcp_address_says_what_is_wrong),
		cmocka_unit_test(vsock_takes_numbers),
		cmocka_unit_test(tls_addresses_are_those_of_tcp),
		cmocka_unit_test(
		    ssh_addresses_name_a_host_and_what_it_leads_to),
		cmocka_unit_test(
		    ssh_addresses_that_could_be_taken_for_something_else_are_refused),
		cmocka_unit_test(what_is_no_address_is_refused_by_name),
		cmocka_unit_test(
		    an_address_that_needs_no_name_server_resolves_to_itself),
		cmocka_unit_test(localhost_resolves_to_local_addresses),
		cmocka_unit_test(a_name_that_does_not_resolve_is_named),
		cmocka_unit_test(loopback_and_unix_are_local_and_nothing_else),
		cmocka_unit_test(addresses_are_written_as_they_are_read),
		cmocka_unit_test(a_list_is_cut_at_commas),
		cmocka_unit_test(the_environment_names_the_default_sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
