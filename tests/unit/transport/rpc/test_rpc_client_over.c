/* A client over TLS and over ssh. */
#include <openssl/x509.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/transport/tls/tls_fixture.h"
#include "transport/base/log.h"
#include "transport/connect/dial.h"
#include "transport/connect/listener.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_client.h"
#include "transport/rpc/rpc_host.h"
#include "transport/socket/addr.h"
#include "transport/socket/peer.h"
#include "transport/tls/tls.h"

static struct {
	struct loop *loop;
	struct fix_cert *ca;
	char *server_dir, *client_dir, *ssh_dir;
	struct tls_context *server;
	struct listener *listener;
	struct rpc_stats stats;
	struct rpc_client *client;
	char err[DIAL_TEXT_MAX];
	char address[64];
	char ssh[300];
	bool silent; /* the listener hangs up at once */

	/* what the host saw */
	char peer_name[128];
	struct rpc_claimed_identity identity;

	int ready, down, replies;
	char text[2048];
} t;

static enum rpc_verdict
echo(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	rpc_reply(call, args, len, false, -1);
	return RPC_OK;
}

static void *
on_bind(struct rpc_conn *c, void *arg)
{
	const struct peer *p = rpc_conn_peer(c);

	t.identity = *rpc_conn_identity(c);
	snprintf(t.peer_name, sizeof(t.peer_name), "%s",
	    p->cert != NULL ? p->cert->name : "");
	return &t;
}

static const struct rpc_method methods[] = { { "Echo", echo } };
static const struct rpc_service service = {
	.name = "ProducerPort",
	.methods = methods,
	.n_methods = 1,
	.bind = on_bind,
};
static const struct rpc_service *const services[] = { &service };

static void
on_accept(struct listener *l, int fd, void *arg)
{
	struct stream_setup stream = { 0 };
	struct rpc_conn_setup s = {
		.services = services,
		.n_services = 1,
		.stats = &t.stats,
		.stream = &stream,
	};

	if (t.silent) {
		close(fd);
		return;
	}
	stream.tls = tls_conn_new(t.server, fd, NULL, "a client");
	assert_non_null(stream.tls);
	assert_non_null(rpc_conn_new(t.loop, fd, &s));
}

static void
on_ready(struct rpc_client *c, void *arg)
{
	t.ready++;
}

static void
on_down(struct rpc_client *c, const char *text, void *arg)
{
	t.down++;
	snprintf(t.text, sizeof(t.text), "%s", text);
}

static const struct rpc_client_ops ops = {
	.ready = on_ready,
	.down = on_down,
};

static void
on_reply(void *arg, bool ok, bool more, const uint8_t *msg, size_t len, int fd)
{
	assert_true(ok);
	assert_int_equal(len, 5);
	t.replies++;
}

#define RUN_UNTIL(cond)                                                        \
	do {                                                                   \
		uint64_t start_ = loop_now_ms();                               \
		while (!(cond)) {                                              \
			loop_run_once(t.loop);                                 \
			assert_true(loop_now_ms() - start_ < 30000);           \
		}                                                              \
	} while (0)

static char *
make_side(struct fix_cert *ca, const char *cn, const char *sans)
{
	struct fix_wish wish = { .cn = cn, .sans = sans };
	struct fix_cert *c = fix_cert(ca, &wish);
	char *dir = fix_side(ca, c);

	fix_cert_free(c);
	return dir;
}

static int
setup(void **state)
{
	struct addr a;

	memset(&t, 0, sizeof(t));
	log_init("test", LOG_LEVEL_ERROR);
	t.loop = loop_new();
	t.ca = fix_ca("the CA");
	t.server_dir = make_side(t.ca, "collector", "IP:127.0.0.1");
	t.client_dir = make_side(t.ca, "device-7", NULL);
	t.server = fix_context(TLS_SERVER, t.server_dir);
	assert_int_equal(addr_parse(&a, "127.0.0.1:0", t.err, sizeof(t.err)),
	    0);
	t.listener = listener_new(t.loop, &(struct listener_setup){ .addr = &a,
	    .fn = on_accept }, t.err, sizeof(t.err));
	assert_non_null(t.listener);
	snprintf(t.address, sizeof(t.address), "tls://127.0.0.1:%d",
	    listener_port(t.listener));
	t.ssh_dir = fix_dir();
	snprintf(t.ssh, sizeof(t.ssh), "%s/ssh", t.ssh_dir);
	setenv("TRIBUTARY_SSH", t.ssh, 1);
	return 0;
}

static int
teardown(void **state)
{
	rpc_client_free(t.client);
	rpc_conns_close_all(&t.stats);
	listener_free(t.listener);
	loop_free(t.loop);
	tls_context_free(t.server);
	fix_cert_free(t.ca);
	fix_dir_free(t.server_dir);
	fix_dir_free(t.client_dir);
	unlink(t.ssh);
	fix_dir_free(t.ssh_dir);
	return 0;
}

static void
connects(const char *address, const struct dial_options *how)
{
	struct addr a;

	t.ready = t.down = 0;
	assert_int_equal(addr_parse(&a, address, t.err, sizeof(t.err)), 0);
	t.client = rpc_client_new(t.loop,
	    &(struct rpc_client_setup){ .addr = &a, .how = how,
	    .service = "ProducerPort", .ops = &ops }, t.err, sizeof(t.err));
	if (t.client == NULL)
		fail_msg("%s", t.err);
}

/* With the certificates in dir, in vain: the sentence has these pieces. */
static void
fails(const char *dir, const char *piece, const char *other)
{
	struct dial_options how = { .tls_dir = dir };

	connects(t.address, &how);
	RUN_UNTIL(t.down || t.ready);
	assert_int_equal(t.ready, 0);
	if (strstr(t.text, piece) == NULL || strstr(t.text, other) == NULL)
		fail_msg("\"%s\" lacks \"%s\" or \"%s\"", t.text, piece,
		    other);
}

static void
calls_are_answered_over_tls(void **state)
{
	struct dial_options how = { .tls_dir = t.client_dir };

	connects(t.address, &how);
	RUN_UNTIL(t.ready || t.down);
	assert_int_equal(t.down, 0);
	assert_string_equal(t.peer_name, "device-7");
	assert_false(t.identity.present);
	assert_false(rpc_client_can_pass_fds(t.client));
	rpc_invoke(t.client, "Echo", "hello", 5, on_reply, NULL);
	RUN_UNTIL(t.replies);
}

static void
an_identity_goes_ahead_over_tls_where_it_was_set(void **state)
{
	struct dial_options how = { .tls_dir = t.client_dir };

	connects(t.address, &how);
	rpc_client_set_identity(t.client, 4711, 1000, "boot", NULL);
	RUN_UNTIL(t.ready);
	assert_true(t.identity.present);
	assert_int_equal(t.identity.pid, 4711);
	assert_string_equal(t.identity.machine_id_hint, "boot");
	assert_string_equal(t.identity.machine_name, "");
}

static void
a_server_of_another_authority_is_not_believed(void **state)
{
	struct fix_cert *other = fix_ca("another CA");
	char *dir = make_side(other, "device-7", NULL);

	fails(dir, t.address, "ca.pem");
	fix_dir_free(dir);
	fix_cert_free(other);
}

static void
a_server_of_another_name_is_not_believed(void **state)
{
	struct dial_options how = {
		.tls_dir = t.client_dir,
		.tls_name = "elsewhere.example.org",
	};

	connects(t.address, &how);
	RUN_UNTIL(t.down);
	assert_non_null(strstr(t.text, "elsewhere.example.org"));
}

static void
the_name_may_be_told_apart_from_the_address(void **state)
{
	struct dial_options how = { .tls_name = "127.0.0.1" };
	char address[64];

	how.tls_dir = t.client_dir;
	snprintf(address, sizeof(address), "tls://localhost:%d",
	    listener_port(t.listener));
	connects(address, &how);
	RUN_UNTIL(t.ready || t.down);
	assert_int_equal(t.down, 0);
}

static void
a_server_that_hangs_up_is_said(void **state)
{
	t.silent = true;
	fails(t.client_dir, t.address, "");
}

/* ---- ssh ---- */

static void
ssh_does(const char *script)
{
	FILE *f = fopen(t.ssh, "we");

	fprintf(f, "#!/bin/sh\n%s\n", script);
	fclose(f);
	assert_int_equal(chmod(t.ssh, 0700), 0);
}

static void
what_ssh_fails_at_is_said(void **state)
{
	ssh_does("echo 'me@host: Permission denied (publickey).' >&2; "
	    "exit 255");
	connects("ssh://host", NULL);
	RUN_UNTIL(t.down);
	assert_non_null(strstr(t.text, "ssh://host: host does not let us in"));
	rpc_client_free(t.client);
	connects("ssh://host/run/x.sock", NULL);
	RUN_UNTIL(t.down);
	assert_non_null(strstr(t.text,
	    "ssh://host/run/x.sock: host does not let us in"));
}

static void
what_the_command_over_there_says_is_passed_on(void **state)
{
	ssh_does("echo 'tributary connect: nobody is at home' >&2; exit 1");
	connects("ssh://host", NULL);
	RUN_UNTIL(t.down);
	assert_string_equal(t.text, "ssh://host: host said: tributary connect: "
	    "nobody is at home");
}

static void
the_command_is_asked_for_the_service(void **state)
{
	/* Its last argument, to standard error. */
	ssh_does("for word; do :; done; echo \"$word\" >&2; exit 1");
	connects("ssh://host", NULL);
	RUN_UNTIL(t.down);
	assert_string_equal(t.text,
	    "ssh://host: host said: tributary connect producer");
}

static void
a_client_may_be_freed_while_ssh_runs(void **state)
{
	ssh_does("exec sleep 1000");
	connects("ssh://host", NULL);
	loop_run_once(t.loop);
	rpc_client_free(t.client);
	connects("ssh://host/run/x.sock", NULL);
	loop_run_once(t.loop);
	rpc_client_free(t.client);
	t.client = NULL;
	loop_run_once(t.loop);
	assert_int_equal(t.down, 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(calls_are_answered_over_tls),
		TEST(an_identity_goes_ahead_over_tls_where_it_was_set),
		TEST(a_server_of_another_authority_is_not_believed),
		TEST(a_server_of_another_name_is_not_believed),
		TEST(the_name_may_be_told_apart_from_the_address),
		TEST(a_server_that_hangs_up_is_said),
		TEST(what_ssh_fails_at_is_said),
		TEST(what_the_command_over_there_says_is_passed_on),
		TEST(the_command_is_asked_for_the_service),
		TEST(a_client_may_be_freed_while_ssh_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
