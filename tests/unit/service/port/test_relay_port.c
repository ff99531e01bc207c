/*
 * A relay over loopback TCP, and over a UNIX socket, at the real RelayPort.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "protos/trace_packet.pb-c.h"
#include "service/collector/service.h"
#include "service/port/peer_identity.h"
#include "service/port/producer_port.h"
#include "service/port/relay_port.h"
#include "service/settings/settings.h"
#include "transport/base/log.h"
#include "transport/connect/listener.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_client.h"
#include "transport/rpc/rpc_host.h"
#include "transport/socket/addr.h"
#include "transport/socket/peer.h"
#include "transport/stream/stream.h"
#include "transport/tls/tls.h"
#include "transport/wire/pb_writer.h"
#include "transport/wire/service_names.h"

#define WAIT_MS 10000

/* The hint of relay-tcp.jsonl, and the id in the trace of that run. */
#define RECORDED_HINT    "c242fcbe-89a6-4173-8ca5-15538e50f99c"
#define RECORDED_MACHINE 2306351469u
/* FNV-1a of "127.0.0.1". */
#define LOOPBACK_MACHINE 0x4d914beu

enum answer { ANSWER_NONE, ANSWER_YES, ANSWER_NO };

static struct {
	struct loop *loop;
	struct settings settings;
	struct service *service;
	struct rpc_service port;
	const struct rpc_service *ports[1];
	struct rpc_stats stats;
	struct listener *listener;
	struct rpc_client *client;
	bool ready, down;
	enum answer answer;
	const struct peer *as; /* who connects; NULL: as the socket says */
	/* producer_identity() of the last connection */
	struct rpc_service probe;
	int32_t uid, pid;
	struct machine *machine;
	int32_t claimed_uid;
	/* A producer's connection in the place of a relay's. */
	struct rpc_service producers;
	bool is_producer;
	bool to_be_measured; /* said to the last producer */
} f;

static size_t
count_machines(const struct machine_table *table)
{
	static uint32_t ids[MACHINES_MAX];

	return machine_table_ids(table, ids);
}

static void
ready_cb(struct rpc_client *c, void *arg)
{
	f.ready = true;
}

static void
down_cb(struct rpc_client *c, const char *text, void *arg)
{
	f.down = true;
}

static const struct rpc_client_ops client_ops = { ready_cb, down_cb, NULL };

static void
accept_cb(struct listener *l, int fd, void *arg)
{
	struct stream_setup stream = { .peer = f.as };
	struct rpc_conn_setup setup = {
		.services = f.ports,
		.n_services = 1,
		.stats = &f.stats,
		.stream = f.as != NULL ? &stream : NULL,
	};

	assert_non_null(rpc_conn_new(f.loop, fd, &setup));
}

static bool
is_settled(void)
{
	return f.ready || f.down;
}

static bool
is_answered(void)
{
	return f.answer != ANSWER_NONE || f.down;
}

static void
wait_until(bool (*cond)(void))
{
	uint64_t end = loop_now_ms() + WAIT_MS;

	while (!cond()) {
		assert_true(loop_now_ms() < end);
		loop_run_once(f.loop);
	}
}

/* A producer port that only notes who is there. */
static void *
probe_bind(struct rpc_conn *c, void *arg)
{
	producer_identity(f.service, c, &f.uid, &f.pid, &f.machine);
	return &f;
}

static void
probe_gone(void *ctx)
{
}

static int
setup(void **state)
{
	struct addr a;
	char err[512];

	memset(&f, 0, sizeof(f));
	f.claimed_uid = 1000;
	log_init("test", LOG_LEVEL_ERROR);
	if ((f.loop = loop_new()) == NULL || settings_init(&f.settings) != 0)
		return -1;
	if ((f.service = service_new(f.loop, &f.settings, -1)) == NULL)
		return -1;
	relay_port_init(&f.port, f.service);
	producer_port_init(&f.producers, f.service);
	f.probe = (struct rpc_service){
		.name = "ProducerPort",
		.bind = probe_bind,
		.gone = probe_gone,
	};
	f.ports[0] = &f.port;
	if (addr_parse(&a, "127.0.0.1:0", err, sizeof(err)) != 0)
		return -1;
	f.listener = listener_new(f.loop, &(struct listener_setup){ .addr = &a,
	    .fn = accept_cb }, err, sizeof(err));
	return f.listener == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	int i;

	rpc_client_free(f.client);
	rpc_conns_close_all(&f.stats);
	for (i = 0; i < 16; i++)
		loop_run_once(f.loop);
	listener_free(f.listener);
	service_free(f.service);
	settings_done(&f.settings);
	loop_free(f.loop);
	return 0;
}

static void
connect_tcp(const char *hint, const char *name)
{
	char text[64], err[512];
	struct addr a;

	snprintf(text, sizeof(text), "127.0.0.1:%d", listener_port(f.listener));
	assert_int_equal(addr_parse(&a, text, err, sizeof(err)), 0);
	f.ready = f.down = false;
	f.client = rpc_client_new(f.loop,
	    &(struct rpc_client_setup){ .addr = &a, .service = f.ports[0]->name,
	    .ops = &client_ops }, err, sizeof(err));
	assert_non_null(f.client);
	if (hint != NULL)
		rpc_client_set_identity(f.client, 4711, f.claimed_uid, hint,
		    name);
	wait_until(is_settled);
}

static void
connect_unix(void)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_non_null(rpc_conn_new(f.loop, pair[0], &(struct rpc_conn_setup){
	    .services = f.ports, .n_services = 1, .stats = &f.stats }));
	f.ready = f.down = false;
	f.client = rpc_client_from_fd(f.loop, pair[1], f.ports[0]->name,
	    &client_ops, NULL);
	assert_non_null(f.client);
	rpc_client_set_identity(f.client, 4711, 1000, RECORDED_HINT, "claimed");
	wait_until(is_settled);
	assert_true(f.ready);
}

static void
disconnect(void)
{
	int i;

	rpc_client_free(f.client);
	f.client = NULL;
	for (i = 0; i < 16; i++)
		loop_run_once(f.loop);
}

static void
reply_cb(void *arg, bool ok, bool more, const uint8_t *msg, size_t len, int fd)
{
	assert_false(more);
	f.to_be_measured = len == 2 && msg[1] == 1;
	f.answer = ok ? ANSWER_YES : ANSWER_NO;
}

static enum answer
call(const char *method, const void *args, size_t len)
{
	f.answer = ANSWER_NONE;
	rpc_invoke(f.client, method, args, len, reply_cb, NULL);
	wait_until(is_answered);
	return f.answer;
}

static enum answer
introduce(const char *method, const void *system_info, size_t len)
{
	enum answer a;
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_bytes(&w, 1, system_info, len);
	a = call(method, w.data, w.len);
	pb_writer_done(&w);
	return a;
}

static enum answer
init_relay(const void *system_info, size_t len)
{
	return introduce("InitRelay", system_info, len);
}

static enum answer
sync_clock(uint64_t phase, uint64_t boottime)
{
	struct pb_writer w;
	enum answer a;
	size_t mark;

	pb_writer_init(&w);
	pb_put_uint(&w, 1, phase);
	mark = pb_nest_begin(&w, 2);
	pb_put_uint(&w, 1, 6);
	pb_put_uint(&w, 2, boottime);
	pb_nest_end(&w, mark);
	a = call(f.is_producer ? PRODUCER_SYNC_CLOCK : "SyncClock", w.data,
	    w.len);
	pb_writer_done(&w);
	return a;
}

static const char info[] = "\x0a\x07\x0a\x05Linux";

static void
a_relay_introduces_its_machine_and_its_clocks(void **state)
{
	Perfetto__Protos__TracePacket *p;
	struct machine *m;

	connect_tcp(RECORDED_HINT, "device-1");
	assert_true(f.ready);
	m = machine_find(f.service->machines, RECORDED_MACHINE);
	assert_non_null(m);
	assert_string_equal(m->name, "device-1");
	assert_null(m->system_info);
	assert_int_equal(init_relay(info, sizeof(info) - 1), ANSWER_YES);
	assert_int_equal(m->system_info_len, sizeof(info) - 1);
	assert_memory_equal(m->system_info, info, sizeof(info) - 1);
	assert_int_equal(sync_clock(1, 100), ANSWER_YES);
	assert_null(m->clock_sync);
	assert_int_equal(sync_clock(2, 200), ANSWER_YES);
	assert_int_equal(m->clock_sync_generation, 1);
	p = perfetto__protos__trace_packet__unpack(NULL, m->clock_sync_len,
	    m->clock_sync);
	assert_non_null(p);
	assert_int_equal(p->machine_id, RECORDED_MACHINE);
	assert_int_equal(p->remote_clock_sync->n_synced_clocks, 2);
	perfetto__protos__trace_packet__free_unpacked(p, NULL);
	assert_null(f.service->host.system_info);
}

/* An exchange of a relay whose clock is so far ahead of ours. */
static void
exchange(uint64_t ahead)
{
	assert_int_equal(sync_clock(1, loop_boottime_ns() + ahead), ANSWER_YES);
	assert_int_equal(sync_clock(2, loop_boottime_ns() + ahead), ANSWER_YES);
}

static void
the_distance_of_the_clocks_is_known_and_how_sure_that_is(void **state)
{
	const uint64_t hour = 3600 * 1000000000ull;
	struct machine *m;
	uint64_t was;

	connect_tcp(RECORDED_HINT, "device-1");
	m = machine_find(f.service->machines, RECORDED_MACHINE);
	assert_false(m->clock.known);
	exchange(hour);
	assert_true(m->clock.known);
	assert_int_equal(m->clock_sync_generation, 1);
	assert_true((uint64_t)llabs(m->clock.offset_ns - (int64_t)hour) <=
	    m->clock.uncertainty_ns);
	assert_true(m->clock.uncertainty_ns <= m->clock.round_trip_ns / 2 + 1);
	assert_true(m->clock.measured_ns > 0);
	/* It was set: what was known before is void. */
	was = m->clock_sync_generation;
	exchange(hour / 2);
	assert_true(m->clock_sync_generation > was);
	assert_true((uint64_t)llabs(m->clock.offset_ns - (int64_t)hour / 2) <=
	    m->clock.uncertainty_ns);
}

static void
a_machine_is_the_same_after_a_reconnect(void **state)
{
	struct machine *m;

	connect_tcp(RECORDED_HINT, "device-1");
	m = machine_find(f.service->machines, RECORDED_MACHINE);
	assert_int_equal(init_relay(info, sizeof(info) - 1), ANSWER_YES);
	disconnect();
	connect_tcp(RECORDED_HINT, "renamed");
	assert_ptr_equal(machine_find(f.service->machines, RECORDED_MACHINE), m);
	assert_int_equal(count_machines(f.service->machines), 1);
	assert_string_equal(m->name, "renamed");
	assert_int_equal(init_relay(info, sizeof(info) - 1), ANSWER_YES);
	assert_int_equal(m->contact.reach, MACHINE_CLASSIC);
	assert_true(machine_is_connected(m));
	assert_int_equal(m->contact.reconnects, 1);
	assert_string_equal(m->contact.authenticated, "unauthenticated");
	disconnect();
	assert_false(machine_is_connected(m));
}

static void
a_second_introduction_is_refused(void **state)
{
	struct machine *m;

	connect_tcp(RECORDED_HINT, "device-1");
	assert_int_equal(init_relay(info, sizeof(info) - 1), ANSWER_YES);
	assert_int_equal(init_relay("", 0), ANSWER_NO);
	m = machine_find(f.service->machines, RECORDED_MACHINE);
	assert_int_equal(m->system_info_len, sizeof(info) - 1);
}

static void
an_introduction_that_does_not_parse_is_refused(void **state)
{
	char big[MACHINE_INFO_MAX + 4];
	struct pb_writer w;

	connect_tcp(RECORDED_HINT, "device-1");
	assert_int_equal(init_relay("\x0a\xff", 2), ANSWER_NO);
	assert_int_equal(call("InitRelay", "\x0a\x7f", 2), ANSWER_NO);
	assert_int_equal(f.stats.bad_args, 2);
	memset(big, 'x', sizeof(big));
	pb_writer_init(&w);
	pb_put_bytes(&w, 4, big, MACHINE_INFO_MAX);
	assert_int_equal(init_relay(w.data, w.len), ANSWER_NO);
	pb_writer_done(&w);
	assert_null(machine_find(f.service->machines, RECORDED_MACHINE)->
	    system_info);
	/* It may still do better. */
	assert_int_equal(init_relay(info, sizeof(info) - 1), ANSWER_YES);
}

static void
clock_calls_out_of_order_are_refused(void **state)
{
	struct machine *m;

	connect_tcp(RECORDED_HINT, "device-1");
	assert_int_equal(sync_clock(2, 100), ANSWER_NO);
	assert_int_equal(sync_clock(3, 100), ANSWER_NO);
	assert_int_equal(call("SyncClock", "\x12\x05", 2), ANSWER_NO);
	m = machine_find(f.service->machines, RECORDED_MACHINE);
	assert_int_equal(m->clock_sync_generation, 0);
	assert_int_equal(sync_clock(1, 100), ANSWER_YES);
	assert_int_equal(sync_clock(2, 100), ANSWER_YES);
	assert_int_equal(m->clock_sync_generation, 1);
}

static void
a_relay_that_claims_nothing_is_known_by_its_address(void **state)
{
	struct machine *m;

	connect_tcp(NULL, NULL);
	assert_true(f.ready);
	assert_int_equal(count_machines(f.service->machines), 1);
	m = machine_find(f.service->machines, LOOPBACK_MACHINE);
	assert_string_equal(m->name, "127.0.0.1");
	assert_int_equal(init_relay(info, sizeof(info) - 1), ANSWER_YES);
	assert_null(f.service->host.system_info);
	disconnect();
	connect_tcp(NULL, NULL); /* from another port */
	assert_int_equal(count_machines(f.service->machines), 1);
}

static void
a_machine_without_a_claimed_name_has_that_of_its_system_info(void **state)
{
	struct pb_writer w;
	struct machine *m;

	connect_tcp(RECORDED_HINT, "");
	m = machine_find(f.service->machines, RECORDED_MACHINE);
	assert_string_equal(m->name, "127.0.0.1");
	pb_writer_init(&w);
	pb_put_string(&w, 17, "lab-7");
	assert_int_equal(init_relay(w.data, w.len), ANSWER_YES);
	pb_writer_done(&w);
	assert_string_equal(m->name, "lab-7");
}

static void
a_relay_on_a_unix_socket_changes_nothing_of_the_host(void **state)
{
	log_init("test", LOG_LEVEL_ERROR);
	connect_unix();
	assert_int_equal(init_relay(info, sizeof(info) - 1), ANSWER_YES);
	assert_int_equal(sync_clock(1, 100), ANSWER_YES);
	assert_int_equal(sync_clock(2, 200), ANSWER_YES);
	assert_int_equal(count_machines(f.service->machines), 0);
	assert_null(f.service->host.system_info);
	assert_null(f.service->host.clock_sync);
}

static void
a_machine_in_use_is_refused_to_nobody_and_kept(void **state)
{
	struct machine *m;

	connect_tcp(RECORDED_HINT, "device-1");
	m = machine_find(f.service->machines, RECORDED_MACHINE);
	assert_int_equal(m->refs, 1);
	disconnect();
	assert_int_equal(m->refs, 0);
	assert_ptr_equal(machine_find(f.service->machines, RECORDED_MACHINE),
	    m);
}

static void
a_relay_finds_no_place_when_all_machines_are_in_use(void **state)
{
	struct machine_claim c = { .name = "m" };
	struct machine *all[MACHINES_MAX];
	uint32_t i;

	for (i = 0; i < MACHINES_MAX; i++) {
		c.id = i + 1;
		c.peer = i / MACHINES_PER_PEER_MAX;
		all[i] = machine_claim(f.service->machines, &c);
		assert_non_null(all[i]);
		machine_ref(all[i]);
	}
	connect_tcp(RECORDED_HINT, "device-1");
	assert_false(f.ready);
	rpc_client_free(f.client);
	machine_unref(all[7]);
	connect_tcp(RECORDED_HINT, "device-1");
	assert_true(f.ready);
	disconnect();
	for (i = 0; i < MACHINES_MAX; i++)
		if (i != 7)
			machine_unref(all[i]);
}

/* The device of a certificate, and of somebody who dialled it. */
static struct tls_identity device_7 = { .name = "device-7" };
static const struct peer of_certificate = { .kind = ADDR_TLS,
	.auth = PEER_CERT, .cert = &device_7, .uid = PEER_UID_UNKNOWN,
	.text = "device-7 at 10.0.0.7:4711" };
static const struct peer of_dial = { .kind = ADDR_SSH, .auth = PEER_NOBODY,
	.machine_name = "eight", .uid = PEER_UID_UNKNOWN, .addr_hash = 8,
	.text = "ssh://device-8" };

static void
a_certificate_fixes_the_name_of_its_relays_machine(void **state)
{
	Perfetto__Protos__SystemInfo *said;
	struct pb_writer w;
	struct machine *m;

	f.as = &of_certificate;
	f.ports[0] = &f.probe;
	connect_tcp(RECORDED_HINT, "host");
	m = f.machine;
	assert_string_equal(m->name, "device-7");
	assert_int_not_equal(m->id, RECORDED_MACHINE);
	machine_ref(m);
	disconnect();
	f.ports[0] = &f.port;
	connect_tcp(RECORDED_HINT, "host");
	assert_int_equal(count_machines(f.service->machines), 1);
	pb_writer_init(&w);
	pb_put_string(&w, 17, "somebody else");
	pb_put_string(&w, 2, "fingerprint");
	assert_int_equal(init_relay(w.data, w.len), ANSWER_YES);
	pb_writer_done(&w);
	assert_string_equal(m->name, "device-7");
	/* Without the name: a trace gets the machine's. */
	said = perfetto__protos__system_info__unpack(NULL, m->system_info_len,
	    m->system_info);
	assert_non_null(said);
	assert_null(said->machine_name);
	assert_string_equal(said->android_build_fingerprint, "fingerprint");
	perfetto__protos__system_info__free_unpacked(said, NULL);
	assert_int_equal(m->refs, 2);
	machine_unref(m);
}

static void
a_dialled_device_has_the_name_of_the_settings(void **state)
{
	f.as = &of_dial;
	f.ports[0] = &f.probe;
	connect_tcp(NULL, NULL);
	assert_string_equal(f.machine->name, "eight");
	assert_int_equal(f.uid, PEER_UID_UNKNOWN);
	disconnect();
	connect_tcp(RECORDED_HINT, "nine");
	assert_string_equal(f.machine->name, "eight");
	assert_int_equal(f.uid, 1000);
}

static void
a_certificate_that_claims_nothing_is_not_the_host(void **state)
{
	f.as = &of_certificate;
	f.ports[0] = &f.probe;
	connect_tcp(NULL, NULL);
	assert_ptr_not_equal(f.machine, &f.service->host);
	assert_string_equal(f.machine->name, "device-7");
	assert_int_equal(f.uid, PEER_UID_UNKNOWN);
}

static void
a_producer_on_a_unix_socket_is_who_the_kernel_says(void **state)
{
	f.ports[0] = &f.probe;
	connect_unix();
	assert_int_equal(f.uid, geteuid());
	assert_int_equal(f.pid, getpid());
	assert_ptr_equal(f.machine, &f.service->host);
}

static void
a_producer_on_tcp_that_claims_nothing_is_nobody_on_the_host(void **state)
{
	f.ports[0] = &f.probe;
	connect_tcp(NULL, NULL);
	assert_int_equal(f.uid, PEER_UID_UNKNOWN);
	assert_int_equal(f.pid, PEER_PID_UNKNOWN);
	assert_ptr_equal(f.machine, &f.service->host);
}

static void
a_producer_on_tcp_is_never_root(void **state)
{
	f.ports[0] = &f.probe;
	f.claimed_uid = 0;
	connect_tcp(RECORDED_HINT, "device-1");
	assert_int_equal(f.uid, PEER_UID_UNKNOWN);
	assert_int_equal(f.pid, 4711);
}

static void
a_producer_behind_a_relay_is_labelled_as_claimed(void **state)
{
	f.ports[0] = &f.probe;
	connect_tcp(RECORDED_HINT, "device-1");
	assert_int_equal(f.uid, 1000);
	assert_int_equal(f.pid, 4711);
	assert_int_equal(f.machine->id, RECORDED_MACHINE);
	assert_string_equal(f.machine->name, "device-1");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void
be_producer(void)
{
	f.ports[0] = &f.producers;
	f.is_producer = true;
}

/* With a name. */
static enum answer
init_producer(void)
{
	return call("InitializeConnection", "\x1a\x01p", 3);
}

static void
a_producer_speaks_for_its_own_machine(void **state)
{
	struct machine *m;

	be_producer();
	connect_tcp(RECORDED_HINT, "pump");
	assert_int_equal(introduce(PRODUCER_INIT_MACHINE, info,
	    sizeof(info) - 1), ANSWER_NO);
	assert_int_equal(sync_clock(1, 100), ANSWER_NO);
	assert_int_equal(init_producer(), ANSWER_YES);
	assert_int_equal(introduce(PRODUCER_INIT_MACHINE, info,
	    sizeof(info) - 1), ANSWER_YES);
	assert_true(f.to_be_measured);
	m = machine_find(f.service->machines, RECORDED_MACHINE);
	assert_string_equal(m->name, "pump");
	assert_true(m->system_info_len > 0);
	exchange(3600 * 1000000000ull);
	assert_int_equal(m->clock_sync_generation, 1);
	assert_null(f.service->host.clock_sync);
}

/* Not even where it has said no name yet that could be forged. */
static void
a_producer_does_not_rename_its_machine(void **state)
{
	static const char forged[] = "\x8a\x01\x06" "forged";
	struct machine *m;

	be_producer();
	connect_tcp(RECORDED_HINT, "");
	assert_int_equal(init_producer(), ANSWER_YES);
	assert_int_equal(introduce(PRODUCER_INIT_MACHINE, forged,
	    sizeof(forged) - 1), ANSWER_YES);
	m = machine_find(f.service->machines, RECORDED_MACHINE);
	assert_string_equal(m->name, "127.0.0.1");
	assert_null(memmem(m->system_info, m->system_info_len, "forged", 6));
}

static void
a_producer_does_not_set_the_clocks_of_a_machine_whose_relay_is_cut_off(
    void **state)
{
	struct machine *m;

	be_producer();
	connect_tcp(RECORDED_HINT, "pump");
	assert_int_equal(init_producer(), ANSWER_YES);
	m = machine_find(f.service->machines, RECORDED_MACHINE);
	m->contact.cut = true;
	assert_int_equal(introduce(PRODUCER_INIT_MACHINE, info,
	    sizeof(info) - 1), ANSWER_YES);
	assert_false(f.to_be_measured);
	assert_int_equal(m->system_info_len, 0);
	exchange(3600 * 1000000000ull);
	assert_int_equal(m->clock_sync_generation, 0);
}

static void
what_a_relay_says_counts_more_than_a_producer(void **state)
{
	struct rpc_client *relay;
	struct machine *m;

	connect_tcp(RECORDED_HINT, "device-1");
	assert_int_equal(init_relay(info, sizeof(info) - 1), ANSWER_YES);
	exchange(3600 * 1000000000ull);
	relay = f.client;
	be_producer();
	connect_tcp(RECORDED_HINT, "device-1");
	assert_int_equal(init_producer(), ANSWER_YES);
	assert_int_equal(introduce(PRODUCER_INIT_MACHINE, "", 0), ANSWER_YES);
	assert_false(f.to_be_measured);
	m = machine_find(f.service->machines, RECORDED_MACHINE);
	assert_int_equal(m->system_info_len, sizeof(info) - 1);
	exchange(7200 * 1000000000ull);
	assert_int_equal(m->clock_sync_generation, 1);
	rpc_client_free(relay);
}

static void
a_producer_on_the_hosts_clocks_is_the_hosts(void **state)
{
	char text[64], err[512];
	struct addr a;

	be_producer();
	snprintf(text, sizeof(text), "127.0.0.1:%d", listener_port(f.listener));
	assert_int_equal(addr_parse(&a, text, err, sizeof(err)), 0);
	f.client = rpc_client_new(f.loop,
	    &(struct rpc_client_setup){ .addr = &a, .service = "ProducerPort",
	    .ops = &client_ops }, err, sizeof(err));
	rpc_client_set_own_identity(f.client, NULL);
	wait_until(is_settled);
	assert_int_equal(init_producer(), ANSWER_YES);
	assert_int_equal(introduce(PRODUCER_INIT_MACHINE, info,
	    sizeof(info) - 1), ANSWER_YES);
	assert_false(f.to_be_measured);
	assert_int_equal(count_machines(f.service->machines), 0);
	assert_null(f.service->host.system_info);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_relay_introduces_its_machine_and_its_clocks),
		CASE(the_distance_of_the_clocks_is_known_and_how_sure_that_is),
		CASE(a_machine_is_the_same_after_a_reconnect),
		CASE(a_second_introduction_is_refused),
		CASE(an_introduction_that_does_not_parse_is_refused),
		CASE(clock_calls_out_of_order_are_refused),
		CASE(a_relay_that_claims_nothing_is_known_by_its_address),
		CASE(a_machine_without_a_claimed_name_has_that_of_its_system_info),
		CASE(a_relay_on_a_unix_socket_changes_nothing_of_the_host),
		CASE(a_machine_in_use_is_refused_to_nobody_and_kept),
		CASE(a_relay_finds_no_place_when_all_machines_are_in_use),
		CASE(a_certificate_fixes_the_name_of_its_relays_machine),
		CASE(a_dialled_device_has_the_name_of_the_settings),
		CASE(a_certificate_that_claims_nothing_is_not_the_host),
		CASE(a_producer_on_a_unix_socket_is_who_the_kernel_says),
		CASE(a_producer_on_tcp_that_claims_nothing_is_nobody_on_the_host),
		CASE(a_producer_on_tcp_is_never_root),
		CASE(a_producer_behind_a_relay_is_labelled_as_claimed),
		CASE(a_producer_speaks_for_its_own_machine),
		CASE(a_producer_does_not_rename_its_machine),
		CASE(a_producer_does_not_set_the_clocks_of_a_machine_whose_relay_is_cut_off),
		CASE(what_a_relay_says_counts_more_than_a_producer),
		CASE(a_producer_on_the_hosts_clocks_is_the_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
