#include "client/inspect/report/verdict.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/inspect/report/inspection.h"
#include "client/inspect/report/session_log.h"
#include "client/inspect/scan/trace_scan.h"
#include "client/trace/trace_losses.h"
#include "client/trace/trace_summary.h"
#include "protos/trace_config.pb-c.h"
#include "protos/trace_stats.pb-c.h"
#include "transport/base/human_numbers.h"

/* The first bytes of a zip archive. */
#define ZIP "PK\x03\x04"

typedef Perfetto__Protos__TraceConfig trace_config;

/* Causes that the sentence names. */
#define NAMED 3

/* A file that ended at its size limit lacks less than this, or a packet. */
#define AT_LIMIT_BYTES (32u * 1024u)

/* Packets that need incremental state that no packet before them has. */
static uint64_t
undecodable(const struct inspection *i)
{
	const struct trace_sequences *t =
	    trace_summary_sequences(inspection_summary(i));
	const struct trace_sequence *q;
	size_t k = 0;
	uint64_t n = 0;

	while ((q = trace_sequences_next(t, &k)) != NULL)
		n += q->without_state;
	return n;
}

static bool
lost_something(const struct inspection *i)
{
	const struct trace_summary *s = inspection_summary(i);
	struct trace_loss first;

	return trace_summary_totals(s)->gaps != 0 ||
	    trace_summary_losses(s, &first, 1) != 0 || undecodable(i) != 0;
}

/* Number of producers whose times are of a clock without measurements. */
static size_t
foreign_clocks(const struct inspection *i)
{
	const Perfetto__Protos__TraceStats *st =
	    trace_summary_stats(inspection_summary(i));

	return st != NULL ? st->n_tributary_foreign_clocks : 0;
}

/* The size that the config allowed, where the file was ended by it; else 0. */
static uint64_t
limit_reached(const struct inspection *i)
{
	const struct session_log *l = inspection_log(i);
	uint64_t limit, bytes = inspection_scan(i)->bytes;

	if (l->config == NULL || !l->config->write_into_file)
		return 0;
	limit = l->config->max_file_size_bytes;
	return bytes <= limit && limit - bytes < AT_LIMIT_BYTES ? limit : 0;
}

/*
 * By its event, or where a trace ends before that: every service that writes a
 * uuid writes it, too.
 */
static bool
has_begun(const struct session_log *l)
{
	const trace_config *c = l->config;

	return l->events[SESSION_STARTED].n != 0 || (c != NULL &&
	    l->has_uuid && c->trace_filter == NULL &&
	    (c->builtin_data_sources == NULL ||
	    !c->builtin_data_sources->disable_service_events));
}

/*
 * Whether the session began and nothing tells how it went on.  What is read out
 * of memory has the session's events before its data, and statistics behind
 * them, unless a filter takes these.  A file has statistics in the middle, too,
 * those of Perfetto's service perhaps none at its end, but the event that all
 * was read.
 */
static bool
end_is_missing(const struct inspection *i)
{
	const struct session_log *l = inspection_log(i);
	const struct trace_summary *s = inspection_summary(i);
	const struct trace_totals *t = trace_summary_totals(s);
	bool into_file = l->config != NULL && l->config->write_into_file;
	bool filtered = l->config != NULL && l->config->trace_filter != NULL;

	/* A segment says where it ends; its session goes on in the next one. */
	if (!has_begun(l) || l->segment_ended)
		return false;
	if (t->after_read != 0)
		return true;
	if (into_file)
		return l->events[SESSION_DISABLED].n == 0 &&
		    l->events[SESSION_CLONE_STARTED].n == 0;
	return !filtered && (trace_summary_stats(s) == NULL ||
	    t->after_stats != 0);
}

static enum inspect_verdict_kind
kind_of(const struct inspection *i)
{
	const struct trace_scan *scan = inspection_scan(i);

	/* Traces in it that are stored as they are would be found. */
	if (scan->packets == 0 || memcmp(scan->first, ZIP, strlen(ZIP)) == 0)
		return INSPECT_NO_TRACE;
	if (scan->n_damages != 0 || inspection_compressed(i)->bad != 0)
		return INSPECT_DAMAGED;
	if (scan->tail_bytes != 0)
		return INSPECT_CUT_OFF;
	if (end_is_missing(i))
		return limit_reached(i) != 0 ? INSPECT_LOSSY :
		    INSPECT_UNFINISHED;
	if (lost_something(i))
		return INSPECT_LOSSY;
	return foreign_clocks(i) != 0 ? INSPECT_WRONG_TIMES : INSPECT_WHOLE;
}

/* Parts of a list: "a, b, c and 2 more". */
struct parts {
	char *out;
	size_t size, len;
	size_t n;
};

static void
part(struct parts *p, const char *text)
{
	int n;

	if (p->n++ >= NAMED || p->len >= p->size)
		return;
	n = snprintf(p->out + p->len, p->size - p->len, "%s%s",
	    p->n == 1 ? "" : ", ", text);
	if (n > 0)
		p->len += (size_t)n;
}

static void
lossy(struct inspect_verdict *v, const struct inspection *i)
{
	const struct trace_summary *s = inspection_summary(i);
	const struct trace_totals *t = trace_summary_totals(s);
	struct parts p = { .out = v->text, .size = sizeof(v->text) };
	char text[160], count[HUMAN_TEXT_MAX];
	struct trace_loss l[NAMED];
	size_t k, n = trace_summary_losses(s, l, NAMED);

	p.len = (size_t)snprintf(p.out, p.size, "whole but lossy: ");
	for (k = 0; k < n; k++) {
		if (k < NAMED)
			trace_loss_text(text, sizeof(text), &l[k]);
		part(&p, text);
	}
	if (n == 0 && t->gaps != 0) {
		snprintf(text, sizeof(text), "%s packet%s say%s that something "
		    "before %s is missing", human_count(count, t->gaps),
		    human_s(t->gaps), t->gaps == 1 ? "s" : "",
		    t->gaps == 1 ? "it" : "them");
		part(&p, text);
	}
	if (end_is_missing(i)) {
		snprintf(text, sizeof(text), "it ends where it reached its "
		    "max_file_size_bytes (%s)", human_bytes(count,
		    limit_reached(i)));
		part(&p, text);
	}
	if (p.n == 0) {
		snprintf(text, sizeof(text), "%s packet%s cannot be decoded: "
		    "an earlier packet that they refer to is not in "
		    "it", human_count(count,
		    undecodable(i)), human_s(undecodable(i)));
		part(&p, text);
	}
	if (p.n > NAMED && p.len < p.size)
		p.len += (size_t)snprintf(p.out + p.len, p.size - p.len,
		    ", and %zu more", p.n - NAMED);
	if (foreign_clocks(i) != 0 && p.len < p.size)
		snprintf(p.out + p.len, p.size - p.len, "; the times of %zu "
		    "producer%s are wrong", foreign_clocks(i),
		    human_s(foreign_clocks(i)));
}

static void
wrong_times(struct inspect_verdict *v, size_t producers)
{
	snprintf(v->text, sizeof(v->text), "whole but with wrong times: "
	    "%zu producer%s the clock of another machine", producers,
	    producers == 1 ? " has" : "s have");
}

/* The first of all that is wrong, and how many there are. */
static uint64_t
first_damage(const struct inspection *i, uint64_t *offset, char *what,
    size_t size)
{
	const struct inspect_compressed *c = inspection_compressed(i);
	const struct trace_scan *scan = inspection_scan(i);

	if (scan->n_damages != 0 && (c->bad == 0 ||
	    scan->damages[0].offset < c->offset)) {
		*offset = scan->damages[0].offset;
		trace_damage_text(what, size, &scan->damages[0]);
	} else {
		*offset = c->offset;
		snprintf(what, size, "a compressed packet cannot be read to "
		    "its end: %s", c->text);
	}
	return scan->n_damages + c->bad;
}

static void
damaged(struct inspect_verdict *v, const struct inspection *i)
{
	const struct trace_scan *scan = inspection_scan(i);
	char what[240], packets[HUMAN_TEXT_MAX], bytes[HUMAN_TEXT_MAX];
	char more[80] = "", behind[96] = "";
	uint64_t n, offset;

	n = first_damage(i, &offset, what, sizeof(what));
	if (n > 1)
		snprintf(more, sizeof(more), ", and %" PRIu64 " more place%s",
		    n - 1, human_s(n - 1));
	if (scan->n_damages != 0)
		snprintf(behind, sizeof(behind), "; %s packet%s (%s) could be "
		    "read behind it", human_count(packets,
		    scan->packets_behind), human_s(scan->packets_behind),
		    human_bytes(bytes, scan->bytes_behind));
	snprintf(v->text, sizeof(v->text), "damaged at byte %" PRIu64
	    ": %s%s%s", offset, what, more, behind);
}

static void
cut_off(struct inspect_verdict *v, const struct trace_scan *scan)
{
	char wants[80] = "";

	if (scan->tail_wants != 0)
		snprintf(wants, sizeof(wants), " of the %" PRIu64 " that it "
		    "should have", scan->tail_wants);
	snprintf(v->text, sizeof(v->text), "cut off: the file ends within a "
	    "packet, which begins at byte %" PRIu64 " and has %" PRIu64
	    " byte%s%s", scan->tail_offset, scan->tail_bytes,
	    human_s(scan->tail_bytes), wants);
}

/*
 * Names a format that is mistaken for a trace, by its first bytes; NULL:
 * another.
 */
static const char *
other_format(const uint8_t first[4])
{
	static const struct {
		const char *first;
		const char *what;
	} formats[] = {
		{ "\x1f\x8b", "it is compressed by gzip: unpack it first "
		    "(zcat FILE | tributary inspect -)" },
		{ "\x28\xb5\x2f\xfd", "it is compressed by zstd: unpack it "
		    "first (zstdcat FILE | tributary inspect -)" },
		{ ZIP, "it is a zip archive: unpack it first; Perfetto's UI "
		    "opens that of record --fleet as it is" },
		{ "{\"", "it looks like JSON" },
		{ "[{", "it looks like JSON" },
		{ "\x7f" "ELF", "it is a program" },
		{ "PERF", "it is a file of perf record" },
	};
	size_t i;

	for (i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (memcmp(first, formats[i].first,
		    strlen(formats[i].first)) == 0)
			return formats[i].what;
	}
	return NULL;
}

static void
no_trace(struct inspect_verdict *v, const struct trace_scan *scan)
{
	char what[160];

	if (scan->bytes == 0) {
		snprintf(v->text, sizeof(v->text), "empty: not one byte");
	} else if (other_format(scan->first) != NULL) {
		snprintf(v->text, sizeof(v->text), "no trace: %s",
		    other_format(scan->first));
	} else if (scan->n_damages != 0) {
		trace_damage_text(what, sizeof(what), &scan->damages[0]);
		snprintf(v->text, sizeof(v->text), "no trace: byte %" PRIu64
		    ": %s, and none is found behind it",
		    scan->damages[0].offset, what);
	} else {
		snprintf(v->text, sizeof(v->text), "no trace: not one whole "
		    "packet is in its %" PRIu64 " byte%s", scan->bytes,
		    human_s(scan->bytes));
	}
}

void
inspect_verdict_make(struct inspect_verdict *out, const struct inspection *i)
{
	const struct trace_scan *scan = inspection_scan(i);

	out->kind = kind_of(i);
	switch (out->kind) {
	case INSPECT_WHOLE:
		snprintf(out->text, sizeof(out->text), "whole");
		break;
	case INSPECT_LOSSY:
		lossy(out, i);
		break;
	case INSPECT_WRONG_TIMES:
		wrong_times(out, foreign_clocks(i));
		break;
	case INSPECT_UNFINISHED:
		snprintf(out->text, sizeof(out->text), "unfinished: the "
		    "session's end is not in it: it is still being written, "
		    "or was not written to its end (a full disk, a limit of "
		    "its size, a program that was killed)");
		break;
	case INSPECT_CUT_OFF:
		cut_off(out, scan);
		break;
	case INSPECT_DAMAGED:
		damaged(out, i);
		break;
	case INSPECT_NO_TRACE:
		no_trace(out, scan);
		break;
	}
}

const char *
inspect_verdict_word(enum inspect_verdict_kind kind)
{
	switch (kind) {
	case INSPECT_WHOLE:
		return "whole";
	case INSPECT_LOSSY:
		return "lossy";
	case INSPECT_WRONG_TIMES:
		return "wrong_times";
	case INSPECT_UNFINISHED:
		return "unfinished";
	case INSPECT_CUT_OFF:
		return "cut_off";
	case INSPECT_DAMAGED:
		return "damaged";
	case INSPECT_NO_TRACE:
		return "no_trace";
	}
	return "";
}
