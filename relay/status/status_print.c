/*
 * A relay's report, for people.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "protos/relay_report.pb-c.h"
#include "relay/status/status.h"
#include "transport/base/human_numbers.h"

/* Column where values begin. */
#define LABEL "%-11s "

static const char *
text(const char *s)
{
	return s != NULL ? s : "?";
}

static bool
is(const char *a, const char *b)
{
	return a != NULL && strcmp(a, b) == 0;
}

static void
print_state(FILE *out, const Tributary__RelayReportLink *l)
{
	char since[HUMAN_TEXT_MAX], next[HUMAN_TEXT_MAX];

	human_ms(since, l->since_ms);
	if (is(l->state, "linked"))
		fprintf(out, LABEL "linked for %s\n", "", since);
	else if (is(l->state, "classic"))
		fprintf(out, LABEL "connected for %s, in Perfetto's own way: "
		    "nothing survives a cut\n" LABEL "because %s\n", "", since,
		    "", text(l->why_classic));
	else if (l->has_next_try_ms)
		fprintf(out, LABEL "not connected for %s; next attempt in "
		    "%s\n", "", since, human_ms(next, l->next_try_ms));
	else
		fprintf(out, LABEL "%s for %s\n", "", text(l->state), since);
	if (l->last_error != NULL)
		fprintf(out, LABEL "last error: %s\n", "", l->last_error);
}

static void
print_choice(FILE *out, const Tributary__RelayReportLink *l)
{
	char ago[HUMAN_TEXT_MAX];

	if (l->choice == 1)
		fprintf(out, LABEL "this machine's home, of %u collectors\n",
		    "", l->collectors);
	else
		fprintf(out, LABEL "choice %" PRIu64 " of %u for this machine, whose "
		    "home is %s\n", "", l->choice, l->collectors,
		    text(l->home));
	if (l->why != NULL)
		fprintf(out, LABEL "because %s\n", "", l->why);
	if (l->moves > 0)
		fprintf(out, LABEL "%" PRIu64 " move%s, the last %s ago\n", "",
		    l->moves, human_s(l->moves),
		    human_ms(ago, l->moved_ms_ago));
}

static void
print_link(FILE *out, const Tributary__RelayReportLink *l)
{
	char up[HUMAN_TEXT_MAX], sent[HUMAN_TEXT_MAX], again[HUMAN_TEXT_MAX];

	fprintf(out, LABEL "%s\n", "collector", l->peer != NULL && *l->peer ?
	    l->peer : "none yet: waiting for it to dial");
	if (l->collectors > 1)
		print_choice(out, l);
	print_state(out, l);
	fprintf(out, LABEL "%s up, %s sent", "", human_bytes(up, l->bytes_up),
	    human_bytes(sent, l->bytes_sent));
	if (l->compressed && l->bytes_sent > 0)
		fprintf(out, " (compressed %.1f times)",
		    (double)l->bytes_up / (double)l->bytes_sent);
	if (l->bytes_again > 0)
		fprintf(out, ", %s of it once more after a cut",
		    human_bytes(again, l->bytes_again));
	fprintf(out, "; %" PRIu64 " reconnect%s\n", l->reconnects,
	    human_s(l->reconnects));
}

static void
print_no_clock(FILE *out, const Tributary__RelayReportLink *l)
{
	if (l != NULL && l->without_clocks)
		fprintf(out, LABEL "not measured, so this machine's times may "
		    "be wrong: the collector has\n" LABEL "no relay endpoint "
		    "there; start it with --enable-relay-endpoint\n", "clock",
		    "");
	else if (l != NULL && is(l->state, "classic"))
		fprintf(out, LABEL "measured by the collector, which does not "
		    "tell it in Perfetto's own way\n", "clock");
	else
		fprintf(out, LABEL "not measured yet\n", "clock");
}

static void
print_clock(FILE *out, const Tributary__RelayReportClock *c)
{
	char ago[HUMAN_TEXT_MAX];

	fprintf(out, LABEL "the collector's is %+.6f s off, to within %.3f "
	    "ms; round trip %.3f ms, measured %s ago\n", "clock",
	    (double)c->offset_ns / 1e9, (double)c->uncertainty_ns / 1e6,
	    (double)c->round_trip_ns / 1e6, human_ms(ago, c->measured_ms_ago));
}

static void
print_store(FILE *out, const Tributary__RelayReportStore *s)
{
	char memory[HUMAN_TEXT_MAX], limit[HUMAN_TEXT_MAX];
	char age[HUMAN_TEXT_MAX];

	fprintf(out, LABEL "%s of %s in memory", "waiting",
	    human_bytes(memory, s->memory_bytes),
	    human_bytes(limit, s->memory_limit));
	if (s->spool_limit == 0)
		fprintf(out, ", no spool");
	else
		fprintf(out, ", %s of %s in the spool",
		    human_bytes(memory, s->spool_bytes),
		    human_bytes(limit, s->spool_limit));
	if (s->oldest_ms > 0)
		fprintf(out, "; the oldest for %s",
		    human_ms(age, s->oldest_ms));
	putc('\n', out);
	if (s->spool_error != NULL)
		fprintf(out, LABEL "the spool does not work: %s\n", "",
		    s->spool_error);
	if (s->spool_damaged > 0 || s->spool_cut_bytes > 0)
		fprintf(out, LABEL "found damaged in the spool: %" PRIu64
		    " block%s, and %s cut off its end\n", "",
		    s->spool_damaged, human_s(s->spool_damaged),
		    human_bytes(memory, s->spool_cut_bytes));
}

static void
print_producer(FILE *out, const Tributary__RelayReportProducer *p)
{
	char bytes[HUMAN_TEXT_MAX], chunks[HUMAN_TEXT_MAX];

	fprintf(out, "  %8d %6d %8" PRIu64 " %8" PRIu64 " %8" PRIu64
	    " %12s %10s  %s%s%s", p->pid, p->uid, p->data_sources,
	    p->instances, p->writers, human_count(chunks, p->chunks),
	    human_bytes(bytes, p->bytes), text(p->name),
	    p->announced ? "" : " (not known to the collector)",
	    p->emulated ? " (without shared memory)" : "");
	if (p->discarded > 0)
		fprintf(out, " (%s chunks or patches broke the rules)",
		    human_count(chunks, p->discarded));
	if (p->late > 0)
		fprintf(out, " (%s came after their session)",
		    human_count(chunks, p->late));
	putc('\n', out);
}

static void
print_producers(FILE *out, const Tributary__RelayReport *r)
{
	size_t i;

	fprintf(out, LABEL, "producers");
	if (r->n_producers == 0)
		fprintf(out, "none;");
	else
		fprintf(out, "%zu;", r->n_producers);
	fprintf(out, " they connect to");
	for (i = 0; i < r->n_producer_socket; i++)
		fprintf(out, "%s %s", i == 0 ? "" : ",",
		    r->producer_socket[i]);
	putc('\n', out);
	if (r->n_producers == 0)
		return;
	fprintf(out, "  %8s %6s %8s %8s %8s %12s %10s  %s\n", "PID", "UID",
	    "SOURCES", "RUNNING", "WRITERS", "CHUNKS", "SIZE", "NAME");
	for (i = 0; i < r->n_producers; i++)
		print_producer(out, r->producers[i]);
}

static void
print_losses(FILE *out, const Tributary__RelayReport *r)
{
	char packets[HUMAN_TEXT_MAX], chunks[HUMAN_TEXT_MAX];
	char bytes[HUMAN_TEXT_MAX];
	const Tributary__RelayReportLoss *l;
	size_t i;

	if (r->n_losses == 0)
		fprintf(out, LABEL "none\n", "losses");
	for (i = 0; i < r->n_losses; i++) {
		l = r->losses[i];
		fprintf(out, LABEL "%s packets in %s chunks (%s): %s\n",
		    i == 0 ? "losses" : "", human_count(packets, l->packets),
		    human_count(chunks, l->chunks),
		    human_bytes(bytes, l->bytes), text(l->cause));
	}
}

void
status_print(FILE *out, const struct Tributary__RelayReport *r)
{
	char running[HUMAN_TEXT_MAX];

	fprintf(out, LABEL "tributary-relay %s, process %d, for %s\n", "relay",
	    text(r->version), r->pid, human_ms(running, r->running_ms));
	fprintf(out, LABEL "%s\n", "machine", text(r->machine_name));
	if (r->link != NULL)
		print_link(out, r->link);
	if (r->clock != NULL)
		print_clock(out, r->clock);
	else
		print_no_clock(out, r->link);
	if (r->store != NULL)
		print_store(out, r->store);
	print_producers(out, r);
	print_losses(out, r);
}
