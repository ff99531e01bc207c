#include "tests/fuzz/clients/victims.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <tributary/data_source.h>
#include <tributary/tributary.h>
#include <unistd.h>

#include "client/library/consumer_loop.h"
#include "client/library/control.h"
#include "client/tracing/consumer/consumer.h"
#include "client/tunnel/producer_loop.h"
#include "relay/outbox/outbox.h"
#include "relay/producers/producers.h"
#include "relay/settings/settings.h"
#include "relay/uplink/uplink.h"
#include "transport/loop/loop.h"
#include "transport/socket/addr.h"

static struct {
	struct loop *loop;
	enum victim kind;
	struct consumer *consumer;
	struct control *control;
	struct producer_loop *producer;
	struct outbox *outbox;
	struct uplink *uplink;
	struct producers *producers;
	bool reading;
	uint32_t channel;
} v;

static struct relay_settings settings;
static int listener = -1;
static struct addr address;

static volatile uint8_t touched; /* every byte can be read */

static void
touch(const void *data, size_t len)
{
	const uint8_t *p = data;
	size_t i;

	for (i = 0; i < len; i++)
		touched ^= p[i];
}

const char *const *
victim_methods(enum victim kind)
{
	static const char *const consumer[] = { "EnableTracing",
		"DisableTracing", "ReadBuffers", "FreeBuffers", "Flush",
		"StartTracing", "ChangeTraceConfig", "Detach", "Attach",
		"GetTraceStats", "ObserveEvents", "QueryServiceState",
		"QueryCapabilities", "SaveTraceForBugreport", "CloneSession",
		NULL };
	static const char *const control[] = { "QueryMachines",
		"QuerySessions", "StartSession", "FlushSession", "StopSession",
		"QueryProducers", NULL };
	static const char *const producer[] = { "InitializeConnection",
		"RegisterDataSource", "UnregisterDataSource", "CommitData",
		"GetAsyncCommand", "RegisterTraceWriter",
		"UnregisterTraceWriter", "NotifyDataSourceStarted",
		"NotifyDataSourceStopped", "ActivateTriggers", "Sync",
		"UpdateDataSource", NULL };
	static const char *const link[] = { "Open", "Up", "Down", NULL };
	static const char *const relay[] = { "InitRelay", "SyncClock", NULL };

	switch (kind) {
	case VICTIM_CONSUMER:
		return consumer;
	case VICTIM_CONTROL:
		return control;
	case VICTIM_PRODUCER:
		return producer;
	case VICTIM_LINK:
		return link;
	case VICTIM_CLASSIC:
	case VICTIMS:
		break;
	}
	return relay;
}

/* ---- the consumer ---- */

static void
on_done(void *arg, bool ok)
{
}

static void
on_message(void *arg, const uint8_t *data, size_t len)
{
	touch(data, data != NULL ? len : 0);
}

static void
on_clone(void *arg, const struct consumer_cloned *r)
{
	touch(r->error, r->error != NULL ? strlen(r->error) : 0);
}

static void
ask_as_consumer(unsigned how)
{
	struct consumer_clone which = { .session_id = how, .fd = -1 };

	switch (how % 10) {
	case 0:
		if (!v.reading) {
			v.reading = true;
			consumer_read_buffers(v.consumer);
		}
		break;
	case 1:
		consumer_query_service_state(v.consumer, how & 16, on_message,
		    NULL);
		break;
	case 2:
		consumer_detach(v.consumer, "key", on_done, NULL);
		break;
	case 3:
		consumer_observe_events(v.consumer, 7);
		break;
	case 4:
		consumer_get_trace_stats(v.consumer, on_message, NULL);
		break;
	case 5:
		consumer_clone_session(v.consumer, &which, on_clone, NULL);
		break;
	case 6:
		consumer_attach(v.consumer, "key", on_message, NULL);
		break;
	case 7:
		consumer_flush(v.consumer, 0, 0, on_done, NULL);
		break;
	case 8:
		consumer_pause(v.consumer);
		break;
	default:
		consumer_resume(v.consumer);
		break;
	}
}

static void
on_connected(void *arg)
{
	unsigned i;

	consumer_enable_tracing(v.consumer, (const uint8_t *)"", 0, -1);
	for (i = 0; i < 8; i++)
		ask_as_consumer(i);
}

static void
on_disconnected(void *arg, const char *why)
{
	touch(why, strlen(why));
	consumer_free(v.consumer);
	v.consumer = NULL;
}

static void
on_warned(void *arg, const char *sentence)
{
	touch(sentence, strlen(sentence));
}

static void
on_disabled(void *arg, const char *error)
{
	touch(error, error != NULL ? strlen(error) : 0);
}

static void
on_packet(void *arg, const uint8_t *data, size_t len)
{
	touch(data, len);
}

static void
on_read(void *arg, const char *error)
{
	v.reading = false;
	on_disabled(arg, error);
}

static void
on_observed(void *arg, const uint8_t *events, size_t len)
{
	touch(events, len);
}

static const struct consumer_ops consumer_ops = {
	.connected = on_connected,
	.disconnected = on_disconnected,
	.warned = on_warned,
	.tracing_disabled = on_disabled,
	.packet = on_packet,
	.read_done = on_read,
	.observed = on_observed,
};

/* ---- the operator ---- */

static void
on_machines(void *arg, const struct Tributary__QueryMachinesReply *reply,
    const char *why)
{
	touch(why, reply == NULL ? strlen(why) : 0);
}

static void
on_sessions(void *arg, const struct Tributary__QuerySessionsReply *reply,
    const char *why)
{
	touch(why, reply == NULL ? strlen(why) : 0);
}

static void
on_producers(void *arg, const struct Tributary__QueryProducersReply *reply,
    const char *why)
{
	touch(why, reply == NULL ? strlen(why) : 0);
}

static void
ask_as_operator(unsigned how)
{
	struct control_sessions which = { .with_stats = true };
	struct control_order order = { .verb = (enum control_verb)(how % 3),
	    .id = how };

	switch (how % 4) {
	case 0:
		control_query_machines(v.control, on_machines, NULL);
		break;
	case 1:
		control_query_sessions(v.control, &which, on_sessions, NULL);
		break;
	case 2:
		control_query_producers(v.control, on_producers, NULL);
		break;
	default:
		control_command(v.control, &order, on_disabled, NULL);
		break;
	}
}

/* ---- the producer ---- */

static bool
on_setup(struct tributary_instance *i, const void *config, size_t len,
    void *arg, void **context)
{
	touch(config, len);
	return true;
}

static void
put_packet(struct tributary_packet *p, struct tributary_instance *i,
    void *context, bool first, void *arg)
{
	static const uint8_t packet[9000] = { 0x42, 10 };

	tributary_put_encoded(p, packet, *(const unsigned *)arg);
}

static void
write_some(struct tributary_instance *i, void *context)
{
	unsigned n, large = 9000;

	for (n = 0; n < 160; n += 40)
		(void)tributary_instance_write(i, put_packet, &n);
	(void)tributary_instance_write(i, put_packet, &large);
}

static bool
write_last(struct tributary_instance *i, void *context)
{
	write_some(i, context);
	return true;
}

static bool
write_flushed(struct tributary_instance *i, void *context, uint64_t flush_id)
{
	return write_last(i, context);
}

static const struct tributary_source_ops source_ops = {
	.size = sizeof(source_ops),
	.setup = on_setup,
	.start = write_some,
	.flush = write_flushed,
	.clear_incremental_state = write_some,
	.stop = write_last,
};

static void
make_producer(void)
{
	static const struct tributary_source_options o = {
		.size = sizeof(o),
		.name = "a",
		.full = TRIBUTARY_FULL_DROP,
		.no_abort = true,
	};
	static bool added; /* for ever */

	if (!added && tributary_source_add(&o, &source_ops) == NULL)
		abort();
	added = true;
	v.producer = producer_loop_new(v.loop, &(struct producer_loop_setup){
	    .address = &address, .name = "p" });
	if (v.producer == NULL)
		abort();
}

/* ---- the relay ---- */

static void
ready_cb(void *arg)
{
	uplink_outbox_ready(v.uplink);
}

static void
overflow_cb(void *arg)
{
	uplink_outbox_overflow(v.uplink);
}

static uint32_t
new_channel_cb(void *arg)
{
	return outbox_new_channel(v.outbox);
}

static void
make_relay(void)
{
	static const struct outbox_ops ops = { ready_cb, overflow_cb };
	struct outbox_setup outbox = { .loop = v.loop, .state_dirfd = -1,
	    .memory_bytes = settings.memory_bytes, .synchronous = true,
	    .ops = &ops };
	struct uplink_setup uplink = { .loop = v.loop, .settings = &settings };
	struct producers_setup producers = { .loop = v.loop,
	    .settings = &settings, .state_dirfd = -1,
	    .new_channel = new_channel_cb };
	char err[512];

	settings.dialled = v.kind == VICTIM_LINK;
	settings.protocol = v.kind == VICTIM_LINK ? RELAY_LINK_ONLY :
	    RELAY_CLASSIC_ONLY;
	uplink.to = v.kind == VICTIM_LINK ? NULL : &address;
	uplink.n_to = 1;
	if ((v.outbox = outbox_open(&outbox, err, sizeof(err))) == NULL)
		abort();
	uplink.outbox = v.outbox;
	if ((v.uplink = uplink_new(&uplink, err, sizeof(err))) == NULL)
		abort();
	producers.upward = uplink_upward(v.uplink);
	v.producers = producers_new(&producers, err, sizeof(err));
	if (v.producers == NULL)
		abort();
	uplink_start(v.uplink, v.producers);
	v.channel = outbox_new_channel(v.outbox);
}

/* There is something to be sent and acknowledged. */
static void
say_something(unsigned how)
{
	static const uint8_t commit[] = { 0x0a, 0x0c, 0x18, 1, 0x22, 8, 0, 0, 0,
		0, 1, 0, 0, 0 };
	uint8_t *room;

	outbox_put(v.outbox, v.channel, LINK_UP_TRIGGER, "t", 1, 0);
	room = outbox_reserve(v.outbox, v.channel, sizeof(commit), true);
	if (room == NULL)
		return;
	memcpy(room, commit, sizeof(commit));
	outbox_commit(v.outbox, v.channel, sizeof(commit));
}

/* ---- all of them ---- */

static void
set_up_once(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	char err[200], name[64];
	int n;

	n = snprintf(name, sizeof(name), "@tributary-fuzz-%d", (int)getpid());
	memcpy(sun.sun_path + 1, name + 1, (size_t)n - 1);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    0);
	if (bind(listener, (struct sockaddr *)&sun, (socklen_t)
	    (offsetof(struct sockaddr_un, sun_path) + (size_t)n)) != 0 ||
	    listen(listener, 16) != 0 ||
	    addr_parse(&address, name, err, sizeof(err)) != 0 ||
	    relay_settings_init(&settings) != 0)
		abort();
	settings.memory_bytes = 1u << 20;
	settings.compression_level = 1;
}

int
victim_accept(void)
{
	return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
}

int
victim_begin(struct loop *l, enum victim kind)
{
	char err[200];
	int pair[2], left;

	if (listener < 0)
		set_up_once();
	while ((left = victim_accept()) >= 0)
		close(left); /* of an earlier one */
	memset(&v, 0, sizeof(v));
	v.loop = l;
	v.kind = kind;
	switch (kind) {
	case VICTIM_CONSUMER:
		v.consumer = consumer_loop_new(l, &(struct consumer_loop_setup){
		    .address = &address, .ops = &consumer_ops }, err,
		    sizeof(err));
		return -1;
	case VICTIM_CONTROL:
		v.control = control_new(l, &address, NULL, err, sizeof(err));
		ask_as_operator(0);
		ask_as_operator(1);
		return -1;
	case VICTIM_PRODUCER:
		make_producer();
		return -1;
	case VICTIM_CLASSIC:
		make_relay();
		return -1;
	case VICTIM_LINK:
	case VICTIMS:
		break;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		abort();
	make_relay();
	uplink_take(v.uplink, pair[1]);
	return pair[0];
}

void
victim_act(unsigned how)
{
	if (v.consumer != NULL)
		ask_as_consumer(how);
	if (v.control != NULL)
		ask_as_operator(how);
	if (v.producer != NULL)
		tributary_trigger("t");
	if (v.uplink != NULL && v.kind == VICTIM_LINK)
		say_something(how);
}

void
victim_end(void)
{
	consumer_free(v.consumer);
	control_free(v.control);
	producer_loop_free(v.producer, 1);
	if (v.uplink == NULL)
		return;
	producers_free(v.producers);
	uplink_free(v.uplink);
	outbox_close(v.outbox);
	v.uplink = NULL;
}
