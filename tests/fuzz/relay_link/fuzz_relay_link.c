/*
 * A whole relay at a whole collector, both ours, over a network that the input
 * carries (network.h): which bytes pass and when, where it is cut, when it comes
 * back.  Behind the relay there are an honest producer (stage/witness.h) and one
 * that does what it likes; sessions come and go at the collector.  Whatever the
 * network does, the relay resumes, and everything of the honest one arrives,
 * once and in order.
 *
 * Where bytes are changed on the way, or another collector has the place of the
 * first, nothing is promised but that all live.
 *
 * input: records (stage/script.h); the first is flags.
 */
#include <stdlib.h>
#include <string.h>

#include "relay/outbox/outbox.h"
#include "relay/producers/producers_internal.h"
#include "relay/settings/settings.h"
#include "relay/uplink/uplink.h"
#include "tests/fuzz/stage/network.h"
#include "tests/fuzz/stage/rogue_consumer.h"
#include "tests/fuzz/stage/rogue_producer.h"
#include "tests/fuzz/stage/stage.h"
#include "tests/fuzz/stage/witness.h"
#include "transport/loop/loop.h"

#define FLUSHES_MAX 3u /* each takes milliseconds */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct relay_settings settings;

static struct {
	struct stage stage;
	struct network network;
	struct outbox *outbox;
	struct uplink *uplink;
	struct producers *producers;
	const struct rpc_service *list[1];
	struct rpc_stats stats;
	struct wire_entry entry;
	struct rogue_producer rogue;
	struct rogue_consumer consumer;
	struct witness *witness; /* NULL: bytes are harmed */
	unsigned flushes;
} f;

static void
set_up_once(void)
{
	if (relay_settings_init(&settings) != 0)
		abort();
	settings.dialled = true;
	settings.memory_bytes = 8u << 20;
	settings.compression_level = 1;
	settings.protocol = RELAY_LINK_ONLY;
	settings.limits = (struct relay_limits){
		.max_producers = 3,
		.max_data_sources_per_producer = 4,
		.max_shm_kb = 1024,
		.max_total_shm_kb = 1024,
		.max_send_queue_kb = 64,
		.max_name_bytes = 32,
	};
}

/* ---- the relay ---- */

static void
ready_cb(void *arg)
{
	uplink_outbox_ready(f.uplink);
}

static void
overflow_cb(void *arg)
{
	uplink_outbox_overflow(f.uplink);
}

static uint32_t
new_channel_cb(void *arg)
{
	return outbox_new_channel(f.outbox);
}

static uint64_t
channel_place_cb(void *arg, uint32_t channel)
{
	return outbox_channel_place(f.outbox, channel);
}

static bool
has_arrived_cb(void *arg, uint32_t channel, uint64_t place)
{
	return outbox_has_arrived(f.outbox, channel, place);
}

static void
start_relay(bool compressed)
{
	static const struct outbox_ops ops = { ready_cb, overflow_cb };
	struct outbox_setup outbox = { .loop = f.stage.loop,
	    .state_dirfd = -1, .memory_bytes = settings.memory_bytes,
	    .synchronous = true, .ops = &ops };
	struct uplink_setup uplink = { .loop = f.stage.loop,
	    .settings = &settings };
	struct producers_setup producers = { .loop = f.stage.loop,
	    .settings = &settings, .state_dirfd = -1,
	    .new_channel = new_channel_cb,
	    .channel_place = channel_place_cb,
	    .has_arrived = has_arrived_cb };
	char err[512];

	settings.compression_level = compressed;
	f.outbox = outbox_open(&outbox, err, sizeof(err));
	uplink.outbox = f.outbox;
	if (f.outbox == NULL ||
	    (f.uplink = uplink_new(&uplink, err, sizeof(err))) == NULL)
		abort();
	producers.upward = uplink_upward(f.uplink);
	f.producers = producers_new(&producers, err, sizeof(err));
	if (f.producers == NULL)
		abort();
	uplink_start(f.uplink, f.producers);
	f.list[0] = producers_service(f.producers);
	f.entry = (struct wire_entry){ f.stage.loop, f.list, 1, &f.stats,
		producers_guard(f.producers) };
	f.stage.producers = &f.entry;
}

static void
end_relay(void)
{
	unsigned turns = 0;

	while (f.producers->n_connections > 0 || f.stats.n_conns > 0 ||
	    f.producers->n_locals > 0)
		stage_wait(&f.stage, &turns, "somebody is left at the relay");
	stage_require(f.producers->shm_bytes == 0, "shared memory is left");
	producers_free(f.producers);
	uplink_free(f.uplink);
	outbox_close(f.outbox);
	f.uplink = NULL;
}

/* ---- the network ---- */

static void
connect_them(void)
{
	struct stream_setup over = { .peer = &stage_remote };
	struct rpc_conn_setup setup = { .services = f.stage.list,
	    .n_services = STAGE_PORTS, .stats = &f.stage.stats,
	    .stream = &over };
	int relay, collector;

	network_open(&f.network, &relay, &collector);
	if (rpc_conn_new(f.stage.loop, collector, &setup) == NULL)
		abort();
	uplink_take(f.uplink, relay);
}

static void
carry_cb(void *arg)
{
	int way;

	for (way = 0; way < NETWORK_WAYS; way++)
		if (!f.network.stalled[way])
			network_carry(&f.network, (enum network_way)way,
			    65536);
}

/* It is whole again: what is kept comes. */
static void
mend_network(void)
{
	if (!network_is_up(&f.network))
		connect_them();
	f.network.stalled[0] = f.network.stalled[1] = false;
}

static void
act_on_network(const struct script_op *op)
{
	const uint8_t *how = op->how;
	enum network_way way = (enum network_way)(how[0] & 1);

	switch (op->what % 8) {
	case 0:
		network_cut(&f.network);
		break;
	case 1: /* after so many bytes */
		network_carry(&f.network, way, how[1] | (how[2] & 15u) << 8);
		network_cut(&f.network);
		break;
	case 2:
		mend_network();
		break;
	case 3:
		f.network.stalled[way] = how[1] & 1;
		break;
	case 4:
		if (f.witness == NULL)
			f.network.harm[way] = how[1];
		network_carry(&f.network, way, how[2]);
		break;
	case 5: /* a new one while the old one is not known to be gone */
		connect_them();
		break;
	case 6:
		if (f.witness == NULL) {
			stage_replace_collector(&f.stage);
			connect_them();
			break;
		}
		/* fallthrough */
	default:
		network_carry(&f.network, way, how[1] | (how[2] & 15u) << 8);
		break;
	}
}

/* ---- the others ---- */

static void
act_honestly(const struct script_op *op)
{
	if (f.witness == NULL)
		return;
	switch (op->what % 8) {
	case 0:
		if (f.flushes++ < FLUSHES_MAX)
			witness_flush(f.witness);
		break;
	case 1:
		witness_read(f.witness);
		break;
	case 2:
		stage_linger(&f.stage, op->how, 8);
		break;
	default:
		witness_write(f.witness, op->how[0]);
		break;
	}
}

static void
act(const struct script_op *op)
{
	switch (op->who / 2 % 8) {
	case 0:
	case 1:
	case 2:
		act_on_network(op);
		break;
	case 3:
	case 4:
		act_honestly(op);
		break;
	case 5:
		rogue_consumer_act(&f.consumer, op);
		break;
	default:
		rogue_producer_act(&f.rogue, op);
		break;
	}
	if (op->who & 1)
		stage_turn(&f.stage, 1);
}

static void
begin(unsigned flags)
{
	memset(&f, 0, sizeof(f));
	if (settings.state_dir == NULL)
		set_up_once();
	stage_begin(&f.stage);
	stage_set_grace(flags & 4 ? 3 : 60000);
	network_init(&f.network);
	start_relay(flags & 2);
	f.stage.carry = carry_cb;
	connect_them();
	stage_turn(&f.stage, 4);
	if (!(flags & 4))
		f.witness = witness_new(&f.stage, flags & 1);
	rogue_producer_init(&f.rogue, &f.stage, f.witness);
	rogue_consumer_init(&f.consumer, &f.stage);
}

static void
end(void)
{
	rogue_producer_leave(&f.rogue);
	rogue_consumer_leave(&f.consumer);
	mend_network();
	stage_turn(&f.stage, 3);
	if (f.witness != NULL)
		witness_end(f.witness);
	f.stage.n_wires = 0;
	end_relay();
	stage_set_grace(1);
	network_cut(&f.network);
	f.stage.carry = NULL;
	stage_end(&f.stage);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script_op op;
	size_t i;

	if (size == 0)
		return 0;
	begin(data[0]);
	for (i = 1; script_op(data, size, i, &op); i++)
		act(&op);
	end();
	return 0;
}
