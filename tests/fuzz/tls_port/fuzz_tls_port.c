/*
 * TLS clients at the gate of a collector, with certificates of all kinds: good
 * ones with each role, without a role, revoked, expired, of another authority,
 * none.  Their handshakes and records are OpenSSL's own, carried by hand
 * (stage/network.h): in pieces, with bytes changed or put in between, cut; what
 * they say inside is calls of the ports, or nonsense.
 *
 * Who may not bind a service never gets one, however it tries; in the end
 * nothing is left of anybody.
 *
 * input: records (stage/script.h).
 */
#include <errno.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "service/front/gate.h"
#include "service/port/relay_port.h"
#include "tests/fuzz/stage/network.h"
#include "tests/fuzz/stage/rogue_config.h"
#include "tests/fuzz/stage/script.h"
#include "tests/fuzz/stage/stage.h"
#include "tests/unit/transport/tls/tls_fixture.h"
#include "transport/loop/loop.h"
#include "transport/socket/roles.h"
#include "transport/tls/tls_internal.h"
#include "transport/wire/ipc_frame.h"
#include "transport/wire/pb_writer.h"

#define CLIENTS 3u
#define DOORS   2u
/* Handshakes take a millisecond and more each. */
#define HANDSHAKES_MAX 6u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whose certificate a client shows. */
static const struct holder {
	const char *role;
	uint32_t may; /* 0: is not let in at all */
	bool revoked, expired, foreign;
} holders[] = {
	{ "producer", ROLE_PRODUCER, false, false, false },
	{ "consumer", ROLE_CONSUMER, false, false, false },
	{ "relay", ROLE_PRODUCER | ROLE_RELAY, false, false, false },
	{ "admin", ROLE_CONSUMER | ROLE_ADMIN, false, false, false },
	{ NULL, ROLE_PRODUCER | ROLE_RELAY, false, false, false },
	{ "admin", 0, true, false, false },
	{ "admin", 0, false, true, false },
	{ "admin", 0, false, false, true },
};

#define HOLDERS (sizeof(holders) / sizeof(holders[0]))

static struct tls_context *server, *shown[HOLDERS];
static struct settings settings;

struct client {
	struct tls_conn *tls; /* NULL: not connected */
	struct network network;
	int fd; /* its end */
	bool over;
	uint64_t request;
};

static struct {
	struct stage stage;
	struct rpc_service relay_port;
	struct gate *gate;
	struct entrance doors[DOORS];
	struct client clients[CLIENTS];
	uint32_t let_in;   /* roles of all who came to a door */
	unsigned handshakes;
	unsigned connections;
} f;

/* ---- certificates ---- */

static struct fix_cert *
make_client(size_t i, struct fix_cert *ca, struct fix_cert *other)
{
	const struct holder *h = &holders[i];
	struct fix_wish wish = { .cn = "device", .eku = "clientAuth",
		.role = h->role, .from = h->expired ? 1000000 : 0,
		.to = h->expired ? 2000000 : 0 };
	struct fix_cert *own = fix_cert(h->foreign ? other : ca, &wish);
	char *dir = fix_side(ca, own);

	shown[i] = fix_context(TLS_CLIENT, dir);
	fix_dir_free(dir);
	return own;
}

static void
make_certificates(void)
{
	struct fix_wish wish = { .cn = "collector", .eku = "serverAuth",
		.sans = "DNS:collector" };
	struct fix_cert *ca = fix_ca("Fuzz CA"), *other = fix_ca("Other CA");
	struct fix_cert *own = fix_cert(ca, &wish), *client;
	char *dir = fix_side(ca, own), err[TLS_ERROR_SIZE];
	struct tls_options o = { .side = TLS_SERVER, .dir = dir,
		.allow_tls12 = true };
	size_t i;

	for (i = 0; i < HOLDERS; i++) {
		client = make_client(i, ca, other);
		if (holders[i].revoked)
			fix_write_crl(dir, TLS_CRL_FILE, ca, client, 0, 0);
		fix_cert_free(client);
	}
	if ((server = tls_context_new(&o, err, sizeof(err))) == NULL)
		abort();
	fix_dir_free(dir);
	fix_cert_free(own);
	fix_cert_free(ca);
	fix_cert_free(other);
}

static void
set_up_once(void)
{
	if (settings_init(&settings) != 0)
		abort();
	settings.limits.max_connections_per_peer = 2;
	settings.limits.max_handshakes = 2;
	settings.limits.max_connection_memory_per_peer_kb = 256;
	make_certificates();
}

/* ---- the doors ---- */

static void
bound_cb(struct entrance *e)
{
	uint32_t needed = e == &f.doors[0] ? ROLE_PRODUCER | ROLE_RELAY :
	    ROLE_CONSUMER | ROLE_ADMIN;

	stage_require(f.let_in & needed, "a service for who may not");
}

static void
gone_cb(struct entrance *e)
{
	stage_require(f.connections-- > 0, "more go than came");
}

static void
open_doors(void)
{
	struct gate_setup setup = {
		.loop = f.stage.loop,
		.settings = &settings,
		.ports = { &f.stage.ports[STAGE_PRODUCER],
		    &f.stage.ports[STAGE_CONSUMER], &f.relay_port },
		.control = &f.stage.ports[STAGE_CONTROL],
		.link = &f.stage.ports[STAGE_LINK],
		.heap = &f.stage.service->heap,
		.refusals = &f.stage.service->refusals,
	};
	size_t i;

	relay_port_init(&f.relay_port, f.stage.service);
	if ((f.gate = gate_new(&setup)) == NULL)
		abort();
	for (i = 0; i < DOORS; i++) {
		entrance_init(&f.doors[i], f.gate, i == 0 ? LISTEN_PRODUCER :
		    LISTEN_CONSUMER, true);
		f.doors[i].tls = server;
		f.doors[i].bound = bound_cb;
		f.doors[i].gone = gone_cb;
	}
}

/* ---- clients ---- */

static void
leave(struct client *c, bool politely)
{
	if (c->tls == NULL)
		return;
	if (!politely)
		network_cut(&c->network);
	tls_conn_free(c->tls);
	c->tls = NULL;
	if (politely)
		network_carry(&c->network, NETWORK_UP, 65536);
	network_cut(&c->network);
	close(c->fd);
}

static void
arrive(struct client *c, const uint8_t how[6])
{
	size_t holder = how[0] % HOLDERS;
	int service;

	leave(c, false);
	if (f.handshakes == HANDSHAKES_MAX)
		return;
	f.handshakes++;
	network_open(&c->network, &c->fd, &service);
	c->tls = tls_conn_new(shown[holder], c->fd, "collector", "collector");
	if (c->tls == NULL)
		abort();
	if (how[1] & 2)
		SSL_set_max_proto_version(c->tls->ssl, TLS1_2_VERSION);
	c->over = false;
	f.let_in |= holders[holder].may;
	f.connections++;
	/* One that is refused never was there. */
	if (!gate_take(&f.doors[how[1] & 1], service, &stage_remote))
		f.connections--;
}

/* What an honest client does when its socket is ready. */
static void
serve(struct client *c)
{
	static uint8_t bytes[65536];
	struct iovec iov = { bytes, sizeof(bytes) };
	ssize_t n;

	if (c->tls == NULL || c->over)
		return;
	if (!tls_conn_is_open(c->tls)) {
		if (tls_conn_handshake(c->tls) < 0)
			c->over = true;
		return;
	}
	n = tls_conn_receive(c->tls, &iov, 1);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		c->over = true;
}

static void
carry_cb(void *arg)
{
	struct client *c;
	int way;

	for (c = f.clients; c < f.clients + CLIENTS; c++) {
		serve(c);
		for (way = 0; way < NETWORK_WAYS; way++)
			if (!c->network.stalled[way])
				network_carry(&c->network,
				    (enum network_way)way, 65536);
	}
	stage_require(f.stage.service->n_sessions == 0 || f.let_in &
	    (ROLE_CONSUMER | ROLE_ADMIN), "a session of who may have none");
	stage_require(f.stage.service->n_producers == 0 || f.let_in &
	    (ROLE_PRODUCER | ROLE_RELAY), "a producer who may not be one");
}

static void
say(struct client *c, const void *data, size_t len)
{
	struct iovec iov = { (void *)(uintptr_t)data, len };

	if (c->tls == NULL || c->over || !tls_conn_is_open(c->tls) || len == 0)
		return;
	if (tls_conn_send(c->tls, &iov, 1) != (ssize_t)len)
		c->over = true; /* it would have to offer the rest again */
}

static void
bind_to(struct client *c, const uint8_t how[6])
{
	static const char *const names[] = { "ProducerPort", "ConsumerPort",
		"RelayPort", "TributaryLink", "TributaryControl", "Nothing" };
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	if (how[1] & 1) {
		mark = ipc_frame_begin(&w, 0, IPC_SET_PEER_IDENTITY);
		pb_put_uint(&w, 1, how[2]);
		pb_put_uint(&w, 2, how[3]);
		pb_put_string(&w, 3, script_name(how[4]));
		pb_put_string(&w, 4, script_name(how[5]));
		ipc_frame_end(&w, mark);
		say(c, w.data, w.len);
	}
	mark = ipc_frame_begin(&w, 0, IPC_BIND_SERVICE);
	pb_put_string(&w, 1, names[how[0] % 6]);
	ipc_frame_end(&w, mark);
	say(c, w.data, w.len);
	pb_writer_done(&w);
}

/* Some of what each service knows, at whichever is there. */
static void
call(struct client *c, const uint8_t how[6])
{
	uint8_t head[IPC_HEAD_MAX], config[6] = { 0 };
	struct pb_writer a, w;
	size_t mark;

	pb_writer_init(&a);
	pb_writer_init(&w);
	switch (how[0] % 4) {
	case 0: /* EnableTracing, ChangeTraceConfig; Open of a link */
		memcpy(config, how + 2, 4);
		rogue_config_put(&a, 1, config);
		break;
	case 1: /* InitializeConnection, Detach, Clone ... */
		pb_put_uint(&a, 1, script_number(how[2]));
		pb_put_string(&a, 3, script_name(how[3]));
		break;
	case 2: /* RegisterDataSource */
		mark = pb_nest_begin(&a, 1);
		pb_put_string(&a, 1, script_name(how[2]));
		pb_nest_end(&a, mark);
		break;
	case 3:
		pb_put_raw(&a, how + 2, how[2] % 5);
		break;
	}
	pb_put_raw(&w, head, ipc_put_invoke_head(head, ++c->request,
	    1 + (how[0] >> 2) % 3, 1 + how[1] % 15, how[0] & 128, a.len));
	if (a.len > 0)
		pb_put_raw(&w, a.data, a.len);
	say(c, w.data, w.len);
	pb_writer_done(&a);
	pb_writer_done(&w);
}

/* Bytes between the records. */
static void
inject(struct client *c, const uint8_t how[6])
{
	uint8_t bytes[300] = { 0x16, 3, 3, 0, 0x30, 1 };

	if (!network_is_up(&c->network))
		return;
	if (how[0] & 1)
		script_fill(bytes + 5, sizeof(bytes) - 5, how[1]);
	bytes[0] = how[0] & 2 ? how[2] : (uint8_t)(0x14 + how[0] % 5);
	bytes[4] = how[3];
	(void)!send(c->network.end[NETWORK_DOWN], bytes,
	    1 + how[4] % (sizeof(bytes) - 1), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void
shake_again(struct client *c, unsigned how)
{
	if (c->tls == NULL || c->over || !tls_conn_is_open(c->tls))
		return;
	if (SSL_version(c->tls->ssl) == TLS1_3_VERSION) {
		SSL_key_update(c->tls->ssl, how & 1 ? SSL_KEY_UPDATE_REQUESTED :
		    SSL_KEY_UPDATE_NOT_REQUESTED);
		say(c, "\0\0\0\0", 4); /* an empty frame brings it along */
	} else if (how & 2) {
		SSL_renegotiate(c->tls->ssl);
		say(c, "\0\0\0\0", 4);
	}
}

static void
act(const struct script_op *op)
{
	struct client *c = &f.clients[op->who / 2 % CLIENTS];
	enum network_way way = (enum network_way)(op->how[0] & 1);
	uint8_t junk[200];

	switch (op->what % 16) {
	case 0:
	case 1:
		arrive(c, op->how);
		break;
	case 2:
	case 3:
		bind_to(c, op->how);
		break;
	case 4:
	case 5:
	case 6:
		call(c, op->how);
		break;
	case 7:
		script_fill(junk, sizeof(junk), op->how[0]);
		say(c, junk, 1 + op->how[1] % sizeof(junk));
		break;
	case 8:
		inject(c, op->how);
		break;
	case 9:
		c->network.harm[way] = op->how[1];
		network_carry(&c->network, way, op->how[2]);
		break;
	case 10:
		network_carry(&c->network, way, op->how[1]);
		if (op->how[2] & 1)
			network_cut(&c->network);
		break;
	case 11:
		c->network.stalled[way] = op->how[1] & 1;
		break;
	case 12:
		shake_again(c, op->how[0]);
		break;
	case 13:
		leave(c, op->how[0] & 1);
		break;
	case 14:
		if (op->how[0] >= 200)
			gate_close_revoked(f.gate, server);
		break;
	default:
		stage_linger(&f.stage, op->how, 16);
		break;
	}
	if (op->who & 1)
		stage_turn(&f.stage, 4);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script_op op;
	unsigned turns = 0;
	size_t i;

	if (server == NULL)
		set_up_once();
	memset(&f, 0, sizeof(f));
	stage_begin(&f.stage);
	stage_set_grace(1);
	for (i = 0; i < CLIENTS; i++)
		network_init(&f.clients[i].network);
	f.stage.carry = carry_cb;
	open_doors();
	for (i = 0; script_op(data, size, i, &op); i++)
		act(&op);
	stage_turn(&f.stage, 8);
	for (i = 0; i < CLIENTS; i++)
		leave(&f.clients[i], i & 1);
	gate_close_all(f.gate);
	while (f.connections > 0)
		stage_wait(&f.stage, &turns, "a connection is left");
	f.stage.carry = NULL;
	gate_free(f.gate);
	stage_end(&f.stage);
	return 0;
}
