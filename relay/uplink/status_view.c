#include <stdio.h>
#include <string.h>

#include "relay/clocks/link_clocks.h"
#include "relay/perfetto/perfetto_relay.h"
#include "relay/settings/settings.h"
#include "relay/uplink/uplink_internal.h"
#include "transport/loop/loop.h"

const char *
uplink_state_text(enum uplink_state s)
{
	switch (s) {
	case UPLINK_WAITING:
		return "waiting";
	case UPLINK_CONNECTING:
		return "connecting";
	case UPLINK_LINKED:
		return "linked";
	case UPLINK_CLASSIC:
		return "classic";
	case UPLINK_STOPPED:
		return "stopped";
	}
	return "?";
}

static void
view_classic(const struct uplink *u, struct uplink_view *out)
{
	out->why_classic = u->setup.settings->protocol == RELAY_CLASSIC_ONLY ?
	    "the settings ask for it (protocol)" :
	    "the collector does not know Tributary's link there";
	out->without_clocks = perfetto_relay_without_clocks(u->classic);
}

static void
view_choice(const struct uplink *u, struct uplink_view *out)
{
	const struct choice *c = &u->choice;

	out->n_collectors = c->n;
	out->rank = c->at;
	snprintf(out->home, sizeof(out->home), "%.*s",
	    (int)sizeof(out->home) - 1, u->setup.to[choice_home(c)].text);
	out->why = choice_why_text(c->why);
	out->moves = c->moves;
	out->moved_ms = c->moved_ms;
}

void
uplink_view(const struct uplink *u, struct uplink_view *out)
{
	struct link_clocks_view clocks;

	memset(out, 0, sizeof(*out));
	out->state = u->state;
	snprintf(out->peer, sizeof(out->peer), "%.*s",
	    (int)sizeof(out->peer) - 1, uplink_peer_text(u));
	snprintf(out->last_error, sizeof(out->last_error), "%s",
	    u->last_error);
	if (u->setup.n_to > 1)
		view_choice(u, out);
	out->since_ms = u->since_ms;
	if (u->state == UPLINK_WAITING)
		out->next_try_ms = u->next_try_ms;
	out->reconnects = u->totals.reconnects;
	out->bytes_up = u->totals.bytes_up + u->perfetto_relay_totals.bytes_up;
	out->bytes_sent =
	    u->totals.bytes_sent + u->perfetto_relay_totals.bytes_up;
	out->bytes_again = u->totals.bytes_again;
	out->compressed = u->conn != NULL &&
	    uplink_conn_is_compressed(u->conn);
	memcpy(out->chunks_lost, u->perfetto_relay_totals.chunks_lost,
	    sizeof(out->chunks_lost));
	memcpy(out->packets_lost, u->perfetto_relay_totals.packets_lost,
	    sizeof(out->packets_lost));
	memcpy(out->bytes_lost, u->perfetto_relay_totals.bytes_lost,
	    sizeof(out->bytes_lost));
	if (u->classic != NULL)
		view_classic(u, out);
	link_clocks_view(u->clocks, &clocks);
	out->clock_known = clocks.known;
	out->clock_offset_ns = clocks.offset_ns;
	out->clock_uncertainty_ns = clocks.uncertainty_ns;
	out->round_trip_ns = clocks.round_trip_ns;
	if (clocks.known)
		out->round_trips_ago_ms = loop_now_ms() - clocks.measured_ms;
}
