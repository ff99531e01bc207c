#include "client/metrics/machine_metrics.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "protos/control.pb-c.h"
#include "protos/relay_report.pb-c.h"
#include "transport/base/machine_word.h"
#include "transport/loop/delays.h"
#include "transport/metrics/relay_metrics.h"

typedef Tributary__MachineState machine_state;

#define CONNECTED TRIBUTARY__MACHINE_STATE__STATE__CONNECTED
#define CUT       TRIBUTARY__MACHINE_STATE__STATE__CUT

/* As LinkOpen.software of a relay begins; its version follows. */
#define RELAY_SOFTWARE "tributary-relay "

#define ONE(member) METRICS_ONE(machine_state, member)

static const char *const states[] = { "connected", "cut", "gone", NULL };

static const struct metrics_family state = { "tributary_machine_state",
	"1 for the state of the machine at the collector.", METRICS_GAUGE,
	METRICS_WHOLE, "state", 0, 0, false };
static const struct metrics_family producers = {
	"tributary_machine_producers", "Its producers that the collector "
	"knows.", METRICS_GAUGE, METRICS_WHOLE, NULL, 0, 0, false };
static const struct metrics_family data_sources = {
	"tributary_machine_data_sources", "Their data sources.",
	METRICS_GAUGE, METRICS_WHOLE, NULL, 0, 0, false };

static const struct metrics_family families[] = {
	{ "tributary_machine_reconnects", "Connections of its relay after the "
	    "first.", METRICS_COUNTER, METRICS_WHOLE, ONE(reconnects) },
	{ "tributary_machine_received_bytes", "Data from it, as it arrived.",
	    METRICS_COUNTER, METRICS_WHOLE, ONE(bytes_received) },
	{ "tributary_machine_unpacked_bytes", "The same without compression.",
	    METRICS_COUNTER, METRICS_WHOLE, ONE(bytes_unpacked) },
	{ "tributary_machine_waiting_bytes", "Data from it that waits at the "
	    "collector for a buffer.", METRICS_GAUGE, METRICS_WHOLE,
	    ONE(bytes_waiting) },
};

static const struct metrics_family lost = { "tributary_machine_lost_packets",
	"Its packets that were lost, as far as the collector was told.",
	METRICS_COUNTER, METRICS_WHOLE, "cause",
	0, 0, false };
static const struct metrics_family lost_unknown = {
	"tributary_machine_losses_of_unknown_size", "Sessions that lost "
	"something of which nobody knows how much.", METRICS_COUNTER,
	METRICS_WHOLE, "cause", 0, 0, false };

/* ---- which machine ---- */

static bool
is_called(const machine_state *s, const char *name)
{
	bool host = strcmp(name, MACHINE_WORD_HOST) == 0;

	if (host || s->id == 0)
		return host && s->id == 0;
	return s->name != NULL && strcmp(name, s->name) == 0;
}

/* When it came, or went. */
static uint64_t
since(const machine_state *s)
{
	return s->state == CONNECTED ? s->connected_since_ns : s->cut_since_ns;
}

static bool
is_before(const machine_state *a, const machine_state *b)
{
	return a->state != b->state ? a->state < b->state :
	    since(a) > since(b);
}

enum machine_metrics_found
machine_metrics_find(const struct Tributary__QueryMachinesReply *r,
    const char *name, const struct Tributary__MachineState **out)
{
	const machine_state *s, *best = NULL;
	size_t i, connected = 0;

	for (i = 0; i < r->n_machines; i++) {
		s = r->machines[i];
		if (!is_called(s, name))
			continue;
		connected += s->state == CONNECTED;
		if (best == NULL || is_before(s, best))
			best = s;
	}
	if (best == NULL)
		return MACHINE_METRICS_NONE;
	if (connected > 1)
		return MACHINE_METRICS_SEVERAL;
	*out = best;
	return MACHINE_METRICS_ONE;
}

/* ---- its relay ---- */

/* Parts of a RelayReport that the collector knows of. */
struct report {
	Tributary__RelayReport all;
	Tributary__RelayReportLink link;
	Tributary__RelayReportClock clock;
	Tributary__RelayReportStore store;
	uint64_t loop_delays[DELAYS];
};

/* Clocks are the other way round there: the collector's minus the relay's. */
static void
take_clock(struct report *to, const machine_state *s, uint64_t now_ns)
{
	Tributary__RelayReportClock *c = &to->clock;

	if (!s->has_clock_offset_ns)
		return;
	tributary__relay_report_clock__init(c);
	to->all.clock = c;
	c->has_offset_ns = c->has_uncertainty_ns = c->has_round_trip_ns =
	    c->has_measured_ms_ago = true;
	c->offset_ns = (int64_t)(0 - (uint64_t)s->clock_offset_ns);
	c->uncertainty_ns = s->clock_uncertainty_ns;
	c->round_trip_ns = s->round_trip_ns;
	if (now_ns > s->clock_measured_ns)
		c->measured_ms_ago = (now_ns - s->clock_measured_ns) / 1000000;
}

static void
take_status(struct report *to, const Tributary__LinkStatus *s)
{
	size_t i;

	tributary__relay_report_link__init(&to->link);
	to->all.link = &to->link;
	to->link.has_reconnects = s->has_reconnects;
	to->link.reconnects = s->reconnects;
	tributary__relay_report_store__init(&to->store);
	to->all.store = &to->store;
	to->store.memory_bytes = s->memory_bytes;
	to->store.memory_limit = s->memory_limit;
	to->store.spool_bytes = s->spool_bytes;
	to->store.spool_limit = s->spool_limit;
	to->store.has_oldest_ms = s->has_oldest_ms;
	to->store.oldest_ms = s->oldest_ms;
	to->all.process = s->process;
	to->all.loop_delay_sum_ns = s->loop_delay_sum_ns;
	if (s->n_loop_delays != DELAYS)
		return;
	for (i = 0; i < DELAYS; i++)
		to->loop_delays[i] = s->loop_delays[i];
	to->all.loop_delays = to->loop_delays;
	to->all.n_loop_delays = DELAYS;
}

static void
put_relay(const struct metrics_out *m, const machine_state *s, uint64_t now_ns)
{
	const size_t begin = strlen(RELAY_SOFTWARE);
	struct report r;

	tributary__relay_report__init(&r.all);
	if (s->software != NULL &&
	    strncmp(s->software, RELAY_SOFTWARE, begin) == 0)
		r.all.version = s->software + begin;
	take_clock(&r, s, now_ns);
	if (s->relay != NULL)
		take_status(&r, s->relay);
	relay_metrics_print(m, &r.all);
}

/* ---- the machine ---- */

static const char *
state_of(const machine_state *s)
{
	return s->state == CONNECTED ? "connected" : s->state == CUT ? "cut" :
	    "gone";
}

/* Each cause, 0 too: a first loss is then an increase. */
static void
put_losses(const struct metrics_out *m, const machine_state *s,
    const struct metrics_family *f)
{
	const ProtobufCEnumDescriptor *d =
	    &tributary__link_loss_cause__descriptor;
	char label[METRICS_LABEL_MAX];
	unsigned cause;
	uint64_t n;
	size_t i;

	metrics_head(m, "", f);
	for (cause = 0; cause < d->n_values; cause++) {
		n = 0;
		for (i = 0; i < s->n_losses; i++)
			if ((unsigned)s->losses[i]->cause == cause)
				n = f == &lost ? s->losses[i]->packets :
				    s->losses[i]->times;
		if (metrics_enum_label(label, d, (int)cause, "LINK_LOSS_"))
			metrics_value(m, "", f, label, n);
	}
}

void
machine_metrics_print(FILE *out, const struct Tributary__MachineState *s,
    uint64_t now_ns, enum metrics_form form)
{
	const struct metrics_out m = { .out = out, .form = form };

	metrics_states(&m, &state, states, state_of(s));
	metrics_one(&m, &producers, s->producers);
	metrics_one(&m, &data_sources, s->data_sources);
	metrics_families(&m, "", families,
	    sizeof(families) / sizeof(families[0]), &s->base);
	put_losses(&m, s, &lost);
	put_losses(&m, s, &lost_unknown);
	put_relay(&m, s, now_ns);
	metrics_end(&m);
}
