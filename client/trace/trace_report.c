#include "client/trace/trace_report.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "client/text/colour.h"
#include "client/trace/trace_losses.h"
#include "client/trace/trace_summary.h"
#include "protos/plain_text.h"
#include "protos/trace_stats.pb-c.h"
#include "transport/base/human_numbers.h"
#include "transport/base/log.h"

/* Longer lists end in "and N more". */
#define MAX_PRODUCERS 10
#define MAX_TYPES     8
#define MAX_SOURCES   12
#define MAX_LOSSES    16
#define MAX_TROUBLES  16

#define INDENT TRACE_REPORT_INDENT

void
trace_report_head(FILE *out, const struct trace_totals *t, const char *where,
    uint64_t wall_ms)
{
	char bytes[HUMAN_TEXT_MAX], packets[HUMAN_TEXT_MAX];
	char time[HUMAN_TEXT_MAX];

	if (t->duration_ns != 0)
		wall_ms = t->duration_ns / 1000000;
	fputs("Trace           ", out);
	plain_text_put(out, where);
	fputc('\n', out);
	fprintf(out, "Holds           %s packet%s, %s", human_count(packets,
	    t->packets), human_s(t->packets), human_bytes(bytes, t->bytes));
	if (t->compressed != 0 && t->bytes != 0)
		fprintf(out, " (compressed %.1f times)",
		    (double)t->expanded_bytes / (double)t->bytes);
	if (wall_ms != 0)
		fprintf(out, ", %s", human_ms(time, wall_ms));
	fprintf(out, "\n");
}

/* " on car-7", " on machine 740663679", or nothing for the collector's own. */
static void
print_machine(FILE *out, const struct trace_summary *s, uint32_t id)
{
	const char *name = trace_summary_machine_name(s, id);
	char escaped[80];

	if (id != 0 && name != NULL)
		fprintf(out, " on %s", log_escape(escaped, sizeof(escaped),
		    name, strlen(name)));
	else if (id != 0)
		fprintf(out, " on machine %" PRIu32, id);
}

/* Prints a producer's name and process, as far as they are known. */
static void
print_producer(FILE *out, const struct trace_producer *p)
{
	bool named = p->name != NULL && p->name[0] != '\0';
	char name[80];

	if (named)
		fprintf(out, "%s", log_escape(name, sizeof(name), p->name,
		    strlen(p->name)));
	if (p->pid != 0)
		fprintf(out, "%spid %" PRId32, named ? ", " : "", p->pid);
	else if (!named)
		fprintf(out, "an unknown process");
}

void
trace_report_producers(FILE *out, struct trace_summary *s)
{
	const struct trace_producer *p;
	char packets[HUMAN_TEXT_MAX], bytes[HUMAN_TEXT_MAX];
	size_t i, n = trace_summary_producers(s, &p);

	if (n == 0)
		fprintf(out, "Producers       none wrote anything\n");
	for (i = 0; i < n && i < MAX_PRODUCERS; i++) {
		fprintf(out, "%s", i == 0 ? "Producers       " : INDENT);
		print_producer(out, &p[i]);
		print_machine(out, s, p[i].machine_id);
		fprintf(out, ": %s packet%s, %s\n",
		    human_count(packets, p[i].packets), human_s(p[i].packets),
		    human_bytes(bytes, p[i].bytes));
	}
	if (n > MAX_PRODUCERS)
		fprintf(out, INDENT "and %zu more\n", n - MAX_PRODUCERS);
}

static void
data_sources(FILE *out, const struct trace_summary *s)
{
	const char *const *names;
	size_t i, n = trace_summary_data_sources(s, &names);
	char name[80];

	if (n == 0)
		return;
	fprintf(out, "Data sources    ");
	for (i = 0; i < n && i < MAX_SOURCES; i++)
		fprintf(out, "%s%s", i == 0 ? "" : ", ",
		    log_escape(name, sizeof(name), names[i], strlen(names[i])));
	if (n > MAX_SOURCES)
		fprintf(out, " and %zu more", n - MAX_SOURCES);
	fprintf(out, "\n");
}

void
trace_report_types(FILE *out, struct trace_summary *s)
{
	const struct trace_packet_type *t;
	char count[HUMAN_TEXT_MAX];
	size_t i, n = trace_summary_types(s, &t);

	if (n == 0)
		return;
	fprintf(out, "Packets         ");
	for (i = 0; i < n && i < MAX_TYPES; i++)
		fprintf(out, "%s%s %s", i == 0 ? "" : ", ",
		    t[i].name[0] == '\0' ? "other" : t[i].name,
		    human_count(count, t[i].packets));
	if (n > MAX_TYPES)
		fprintf(out, " and %zu other type%s", n - MAX_TYPES,
		    human_s(n - MAX_TYPES));
	fprintf(out, "\n");
}

/* Lines that were printed under "Lost". */
struct losses {
	FILE *out;
	bool coloured;
	size_t lines;
};

static void
begin_line(struct losses *l)
{
	if (l->lines++ > 0)
		fputs(INDENT, l->out);
	else
		fprintf(l->out, "Lost            %s", colour_begin(l->coloured,
		    COLOUR_BAD));
}

/* "of machine door lost by its relay: spool full" */
static void
of_machine(FILE *out, const struct trace_summary *s, const struct trace_loss *l)
{
	const char *name = trace_summary_machine_name(s, l->machine);
	char text[128];

	if (name != NULL)
		fprintf(out, " of machine \"%s\"", log_escape(text,
		    sizeof(text), name, strlen(name)));
	else
		fprintf(out, " of machine %u", (unsigned)l->machine);
	fprintf(out, " %s: %s\n", trace_loss_where(l), l->cause);
}

/* ", on CPU 0 of door", to the end of the line. */
static void
on_processors(FILE *out, const struct trace_summary *s,
    const struct trace_loss *l)
{
	const char *name = trace_summary_machine_name(s, l->machine);
	char text[128];

	if (l->cpus[0] != '\0')
		fprintf(out, ", on %s", l->cpus);
	if (l->place == TRACE_LOSS_IN_KERNEL && l->machine != 0 &&
	    name != NULL)
		fprintf(out, " of machine \"%s\"", log_escape(text,
		    sizeof(text), name, strlen(name)));
	else if (l->place == TRACE_LOSS_IN_KERNEL && l->machine != 0)
		fprintf(out, " of machine %" PRIu32, l->machine);
	fputc('\n', out);
}

static void
counters(struct losses *shown, const struct trace_summary *s)
{
	FILE *out = shown->out;
	char amount[TRACE_LOSS_AMOUNT_MAX], bytes[HUMAN_TEXT_MAX];
	struct trace_loss l[MAX_LOSSES];
	size_t i, n = trace_summary_losses(s, l, MAX_LOSSES);

	for (i = 0; i < n && i < MAX_LOSSES; i++) {
		begin_line(shown);
		fputs(trace_loss_amount(amount, &l[i]), out);
		if (l[i].bytes != 0)
			fprintf(out, " (%s)", human_bytes(bytes, l[i].bytes));
		if (trace_loss_on_link(&l[i])) {
			of_machine(out, s, &l[i]);
			continue;
		}
		if (l[i].buffer >= 0)
			fprintf(out, " of buffer %d", l[i].buffer);
		fprintf(out, " %s", l[i].cause);
		on_processors(out, s, &l[i]);
		if (l[i].hint != NULL)
			fprintf(out, INDENT "  %s\n", l[i].hint);
	}
}

/*
 * Prints refusals as Perfetto's service counts them, for all sessions: perhaps
 * no loss of this trace.
 */
static void
refused_of_all(FILE *out, const Perfetto__Protos__TraceStats *st)
{
	char chunks[HUMAN_TEXT_MAX], patches[HUMAN_TEXT_MAX];

	if (st->tributary_discarded_of_session ||
	    (st->chunks_discarded == 0 && st->patches_discarded == 0))
		return;
	fprintf(out, "Refused         %s chunk%s and %s patch%s since the "
	    "service started, of this\n" INDENT "session or of others\n",
	    human_count(chunks, st->chunks_discarded),
	    human_s(st->chunks_discarded),
	    human_count(patches, st->patches_discarded),
	    st->patches_discarded == 1 ? "" : "es");
}

/* "packets of pump-sdk on car-7 are about 1747.796 s behind: ..." */
static void
foreign_clock(FILE *out, const struct trace_summary *s,
    const Perfetto__Protos__TraceStats__ForeignClock *c)
{
	const char *name = c->producer_name != NULL ? c->producer_name : "";
	double off = (double)c->offset_ns / 1e9;
	char escaped[80];

	fprintf(out, "packets of %s", log_escape(escaped, sizeof(escaped),
	    name, strlen(name)));
	print_machine(out, s, c->machine_id);
	fprintf(out, " are about %.3f s %s: they have the clock of another "
	    "machine\n", off < 0 ? -off : off, off < 0 ? "behind" : "ahead");
}

void
trace_report_foreign_clocks(FILE *out, const struct trace_summary *s)
{
	const Perfetto__Protos__TraceStats *st = trace_summary_stats(s);
	size_t i, n = st != NULL ? st->n_tributary_foreign_clocks : 0;
	bool unknown = false, relayed = false;

	for (i = 0; i < n; i++) {
		if (st->tributary_foreign_clocks[i]->machine_id == 0)
			unknown = true;
		else
			relayed = true;
	}
	for (i = 0; i < n && i < MAX_PRODUCERS; i++) {
		fputs(i == 0 ? "Wrong times     " : INDENT, out);
		foreign_clock(out, s, st->tributary_foreign_clocks[i]);
	}
	if (n > MAX_PRODUCERS)
		fprintf(out, INDENT "and of %zu more producers\n",
		    n - MAX_PRODUCERS);
	if (unknown)
		fprintf(out, INDENT "  give such a machine a relay "
		    "(tributary-relay), which measures its clock\n");
	if (relayed)
		fprintf(out, INDENT "  the relay or tunnel of such a machine "
		    "could not measure its clock: start the collector\n" INDENT
		    "  with --enable-relay-endpoint; tributary-relay --status "
		    "there says more\n");
}

/*
 * Events first, each a line under one heading; what else went wrong at the
 * set-up of ftrace follows under its own.
 */
static void
troubles(FILE *out, const struct trace_summary *s, bool not_recorded)
{
	const struct trace_sequence *q;
	const struct ftrace_trouble *t;
	size_t i, at = 0, lines = 0;

	while ((q = trace_sequences_next(trace_summary_sequences(s), &at)) !=
	    NULL) {
		for (i = 0; i < q->ftrace.n_troubles; i++) {
			t = &q->ftrace.troubles[i];
			if (t->not_recorded != not_recorded)
				continue;
			if (++lines > MAX_TROUBLES)
				continue;
			fputs(lines > 1 ? INDENT : not_recorded ?
			    "Not recorded    " : "Ftrace          ", out);
			plain_text_put(out, t->text);
			print_machine(out, s, q->machine_id);
			fputc('\n', out);
		}
	}
	if (lines > MAX_TROUBLES)
		fprintf(out, INDENT "and %zu more\n", lines - MAX_TROUBLES);
}

void
trace_report_troubles(FILE *out, const struct trace_summary *s)
{
	troubles(out, s, true);
	troubles(out, s, false);
}

static const char *
no_losses(const struct trace_summary *s)
{
	if (trace_summary_stats(s) == NULL)
		return "not known: the trace holds no statistics";
	if (trace_summary_totals(s)->after_stats != 0)
		return "not known: packets come after its last statistics";
	return "nothing";
}

void
trace_report_losses(FILE *out, const struct trace_summary *s)
{
	const struct trace_totals *t = trace_summary_totals(s);
	struct losses l = { .out = out, .coloured = colour_is_on(out) };
	char count[HUMAN_TEXT_MAX];
	unsigned bit;

	counters(&l, s);
	for (bit = 0; bit < TRACE_SUMMARY_LOSS_BITS; bit++) {
		if (t->gaps_by_reason[bit] == 0)
			continue;
		begin_line(&l);
		fprintf(out, "%s gap%s in sequences: %s\n",
		    human_count(count, t->gaps_by_reason[bit]),
		    human_s(t->gaps_by_reason[bit]),
		    trace_summary_reason(bit));
	}
	if (t->malformed != 0) {
		begin_line(&l);
		fprintf(out, "%s packet%s in the trace malformed\n",
		    human_count(count, t->malformed), human_s(t->malformed));
	}
	if (l.lines > 0)
		fputs(colour_end(l.coloured, COLOUR_BAD), out);
	if (l.lines == 0)
		fprintf(out, "Lost            %s\n", no_losses(s));
	else if (trace_summary_stats(s) != NULL && t->after_stats != 0)
		fprintf(out, INDENT "  and more perhaps: %s packet%s come%s "
		    "after its last statistics\n", human_count(count,
		    t->after_stats), human_s(t->after_stats),
		    t->after_stats == 1 ? "s" : "");
	if (trace_summary_stats(s) != NULL)
		refused_of_all(out, trace_summary_stats(s));
}

void
trace_report_print(FILE *out, struct trace_summary *s, const char *where,
    uint64_t wall_ms)
{
	const struct trace_totals *t = trace_summary_totals(s);

	trace_report_head(out, t, where, wall_ms);
	trace_report_producers(out, s);
	data_sources(out, s);
	trace_report_types(out, s);
	trace_report_foreign_clocks(out, s);
	trace_report_troubles(out, s);
	trace_report_losses(out, s);
}
