#include "transport/metrics/relay_metrics.h"

#include <stdbool.h>
#include <string.h>

#include "protos/link.pb-c.h"
#include "protos/metrics.pb-c.h"
#include "protos/relay_report.pb-c.h"
#include "transport/link/link_wire.h"
#include "transport/loop/delays.h"
#include "transport/metrics/metrics.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))

#define LINK(member)  METRICS_ONE(Tributary__RelayReportLink, member)
#define CLOCK(member) METRICS_ONE(Tributary__RelayReportClock, member)
#define STORE(member) METRICS_ONE(Tributary__RelayReportStore, member)

/* RelayReportLink.state */
static const char *const link_states[] = { "waiting", "connecting", "linked",
	"classic", "stopped", NULL };

static const struct metrics_family link_state = {
	"tributary_relay_link_state", "1 for the state of the connection to "
	"the collector; classic: in Perfetto's way.", METRICS_GAUGE,
	METRICS_WHOLE, "state", 0, 0, false };

static const struct metrics_family of_link[] = {
	{ "tributary_relay_reconnects", "Connections to the collector after "
	    "the first.", METRICS_COUNTER, METRICS_WHOLE, LINK(reconnects) },
	{ "tributary_relay_choice", "Which of several collectors the link is "
	    "to, in this machine's order; 1: home.", METRICS_GAUGE,
	    METRICS_WHOLE, LINK(choice) },
	{ "tributary_relay_moves", "Moves from one collector to another.",
	    METRICS_COUNTER, METRICS_WHOLE, LINK(moves) },
	{ "tributary_relay_data_bytes", "Data that was sent up the link, "
	    "before compression.", METRICS_COUNTER, METRICS_WHOLE,
	    LINK(bytes_up) },
	{ "tributary_relay_sent_bytes", "The same, as it was sent.",
	    METRICS_COUNTER, METRICS_WHOLE, LINK(bytes_sent) },
	{ "tributary_relay_resent_bytes", "Data that was sent once more after "
	    "a cut.", METRICS_COUNTER, METRICS_WHOLE, LINK(bytes_again) },
};

static const struct metrics_family of_clock[] = {
	{ "tributary_relay_clock_offset_seconds", "The collector's "
	    "CLOCK_BOOTTIME minus the relay's.", METRICS_GAUGE, METRICS_NS,
	    METRICS_ONE_SIGNED(Tributary__RelayReportClock, offset_ns) },
	{ "tributary_relay_clock_error_seconds", "How far the offset may be "
	    "off.", METRICS_GAUGE, METRICS_NS, CLOCK(uncertainty_ns) },
	{ "tributary_relay_round_trip_seconds", "Shortest round trip of the "
	    "last measurement of clocks.", METRICS_GAUGE, METRICS_NS,
	    CLOCK(round_trip_ns) },
	{ "tributary_relay_clock_age_seconds", "Time since the clocks were "
	    "measured.", METRICS_GAUGE, METRICS_MS, CLOCK(measured_ms_ago) },
};

static const struct metrics_family backlog = {
	"tributary_relay_backlog_bytes", "Data that waits for the collector.",
	METRICS_GAUGE, METRICS_WHOLE, "where", 0, 0, false };
static const struct metrics_family backlog_limit = {
	"tributary_relay_backlog_limit_bytes", "Room for it.", METRICS_GAUGE,
	METRICS_WHOLE, "where", 0, 0, false };
static const struct metrics_family spool_failed = {
	"tributary_relay_spool_failed", "1: the spool does not work.",
	METRICS_GAUGE, METRICS_WHOLE, NULL, 0, 0, false };

static const struct metrics_family of_store[] = {
	{ "tributary_relay_oldest_data_seconds", "Age of the oldest data that "
	    "was not sent.", METRICS_GAUGE, METRICS_MS, STORE(oldest_ms) },
	{ "tributary_relay_unacknowledged_blocks", "Blocks that were sent, and "
	    "not acknowledged.", METRICS_GAUGE, METRICS_WHOLE,
	    STORE(blocks_on_the_way) },
	{ "tributary_relay_spool_damaged_blocks", "Blocks of the spool that "
	    "were found damaged.", METRICS_COUNTER, METRICS_WHOLE,
	    STORE(spool_damaged) },
	{ "tributary_relay_spool_cut_bytes", "Bytes that were cut off the end "
	    "of the spool at the start.", METRICS_COUNTER, METRICS_WHOLE,
	    STORE(spool_cut_bytes) },
};

static const struct metrics_family producers = {
	"tributary_relay_producers", "Connected producers.", METRICS_GAUGE,
	METRICS_WHOLE, NULL, 0, 0, false };
static const struct metrics_family data_sources = {
	"tributary_relay_data_sources", "Registered data sources.",
	METRICS_GAUGE, METRICS_WHOLE, NULL, 0, 0, false };

/* RelayReportLoss, in this order. */
static const struct metrics_family of_losses[] = {
	{ "tributary_relay_lost_packets", "Packets that the relay dropped.",
	    METRICS_COUNTER, METRICS_WHOLE, "cause", 0,
	    offsetof(Tributary__RelayReportLoss, packets), false },
	{ "tributary_relay_lost_chunks", "Chunks that the relay dropped.",
	    METRICS_COUNTER, METRICS_WHOLE, "cause", 0,
	    offsetof(Tributary__RelayReportLoss, chunks), false },
	{ "tributary_relay_lost_bytes", "Payload of these.", METRICS_COUNTER,
	    METRICS_WHOLE, "cause", 0,
	    offsetof(Tributary__RelayReportLoss, bytes), false },
};

static void
put_link(const struct metrics_out *m, const Tributary__RelayReportLink *l)
{
	if (l->state != NULL)
		metrics_states(m, &link_state, link_states, l->state);
	metrics_families(m, "", of_link, N(of_link), &l->base);
}

static void
put_places(const struct metrics_out *m, const struct metrics_family *f,
    uint64_t memory, bool has_spool, uint64_t spool)
{
	metrics_head(m, "", f);
	metrics_value(m, "", f, "memory", memory);
	if (has_spool)
		metrics_value(m, "", f, "spool", spool);
}

static void
put_store(const struct metrics_out *m, const Tributary__RelayReportStore *s)
{
	bool has_spool = s->spool_limit > 0;

	put_places(m, &backlog, s->memory_bytes, has_spool, s->spool_bytes);
	put_places(m, &backlog_limit, s->memory_limit, has_spool,
	    s->spool_limit);
	metrics_families(m, "", of_store, N(of_store), &s->base);
}

static void
put_producers(const struct metrics_out *m, const Tributary__RelayReport *r)
{
	uint64_t sources = 0;
	size_t i;

	for (i = 0; i < r->n_producers; i++)
		sources += r->producers[i]->data_sources;
	metrics_one(m, &producers, r->n_producers);
	metrics_one(m, &data_sources, sources);
}

/* NULL: nothing was lost by this cause. */
static const Tributary__RelayReportLoss *
find_loss(const Tributary__RelayReport *r, uint32_t cause)
{
	size_t i;

	for (i = 0; i < r->n_losses; i++)
		if (r->losses[i]->cause != NULL &&
		    strcmp(r->losses[i]->cause, link_loss_text(cause)) == 0)
			return r->losses[i];
	return NULL;
}

/* Each cause, 0 too: a first loss is then an increase. */
static void
put_losses(const struct metrics_out *m, const Tributary__RelayReport *r)
{
	const ProtobufCEnumDescriptor *d =
	    &tributary__link_loss_cause__descriptor;
	const Tributary__RelayReportLoss *l;
	char label[METRICS_LABEL_MAX];
	size_t i;
	int cause;

	for (i = 0; i < N(of_losses); i++) {
		metrics_head(m, "", &of_losses[i]);
		for (cause = 0; cause < (int)LINK_LOSS_OF_RELAYS; cause++) {
			if (!metrics_enum_label(label, d, cause, "LINK_LOSS_"))
				continue;
			l = find_loss(r, (uint32_t)cause);
			metrics_value(m, "", &of_losses[i], label, l == NULL ?
			    0 : *(const uint64_t *)((const char *)l +
			    of_losses[i].at));
		}
	}
}

/* Prints nothing where the peer has other rows. */
static void
put_lag(const struct metrics_out *m, const uint64_t *counts, size_t n,
    uint64_t sum_ns)
{
	struct metrics_row rows[DELAYS];
	size_t i;

	if (n != DELAYS)
		return;
	for (i = 0; i < DELAYS; i++)
		rows[i] = (struct metrics_row){ delays_most_ns(i), counts[i] };
	metrics_histogram(m, "tributary_relay_event_loop_lag_seconds", "How "
	    "late the relay's event loop ran its timers.", rows, DELAYS,
	    sum_ns);
}

void
relay_metrics_print(const struct metrics_out *m,
    const struct Tributary__RelayReport *r)
{
	if (r->version != NULL)
		metrics_build(m, "tributary_relay_build", "The version of the "
		    "relay.", r->version);
	if (r->link != NULL)
		put_link(m, r->link);
	if (r->clock != NULL)
		metrics_families(m, "", of_clock, N(of_clock),
		    &r->clock->base);
	if (r->store != NULL)
		put_store(m, r->store);
	put_lag(m, r->loop_delays, r->n_loop_delays, r->loop_delay_sum_ns);
	if (r->process != NULL)
		metrics_process(m, "tributary_relay_", r->process);
}

void
relay_metrics_print_own(const struct metrics_out *m,
    const struct Tributary__RelayReport *r)
{
	relay_metrics_print(m, r);
	if (r->store != NULL)
		metrics_one(m, &spool_failed, r->store->spool_error != NULL);
	put_producers(m, r);
	put_losses(m, r);
}
