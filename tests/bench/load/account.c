#include "tests/bench/load/account.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/load/account_told.h"
#include "tests/bench/load/load_ledger.h"
#include "tests/bench/load/numbered.h"
#include "transport/link/link_wire.h"
#include "transport/wire/pb_reader.h"

/* Of TracePacket. */
enum {
	PACKET_SEQUENCE = 10,
	PACKET_STATS = 35,
	PACKET_DROPPED = 42,
	PACKET_MACHINE = 98,
	PACKET_FOR_TESTING = 900,
	PACKET_SEGMENT = 1001,
};
/* Of a Segment. */
enum { SEGMENT_RECORDING_UUID = 1, SEGMENT_END = 9, END_CAUSE = 3 };
#define UUID_SIZE 16u

struct state {
	uint64_t next;     /* the number that is expected */
	uint64_t present;
	uint64_t missing;  /* below the ledger's sure, before some packet */
	uint64_t unmarked; /* of them: the packet behind does not tell */
	uint64_t unsure;   /* missing, but from sure on */
	uint64_t tail;      /* as add_up() counted them, as the next */
	uint64_t cut_short;
	uint64_t gap_from, gap_to; /* the last gap */
	uint32_t sequence; /* id in the trace; 0: none was seen */
	uint32_t machine;
	uint64_t part;     /* account.part in which it was seen */
};

struct book {
	struct load_ledger *ledger;
	struct state *states; /* owned; one for each entry */
	uint64_t n;
};

struct account {
	struct book books[ACCOUNT_LEDGERS_MAX];
	size_t n_books;
	uint32_t sessions[ACCOUNT_SESSIONS_MAX];
	size_t n_sessions;
	uint8_t *stats; /* the last TraceStats of the file; owned */
	size_t stats_len;
	struct told told; /* of this part and, what is left, of those before */
	/* Sessions of a recording, one behind the other; 0: no segments. */
	uint64_t part;
	uint8_t uuid[UUID_SIZE]; /* of the part */
	bool whole;              /* the part has its end */
	struct account_options options;
	struct account_result r;
};

static void __attribute__((__format__(__printf__, 2, 3)))
example(struct account *a, const char *fmt, ...)
{
	va_list ap;

	if (a->r.n_examples == ACCOUNT_EXAMPLES_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(a->r.examples[a->r.n_examples++], ACCOUNT_EXAMPLE_SIZE, fmt,
	    ap);
	va_end(ap);
}

static void
tell(void *arg, const char *cause, uint64_t packets)
{
	struct account *a = arg;
	struct account_result *r = &a->r;
	size_t i;

	if (packets == 0)
		return;
	r->told += packets;
	for (i = 0; i < r->n_causes; i++)
		if (strcmp(r->causes[i].name, cause) == 0)
			break;
	if (i == ACCOUNT_CAUSES_MAX)
		i--;
	if (i == r->n_causes) {
		snprintf(r->causes[i].name, sizeof(r->causes[i].name), "%s",
		    cause);
		r->n_causes++;
	}
	r->causes[i].packets += packets;
}

/* Of a previous_packet_dropped: what says most. */
static const char *
mark_text(uint64_t mask)
{
	static const struct {
		uint32_t bit;
		const char *text;
	} bits[] = {
		{ 64, "overwritten" }, { 256, "shared memory full" },
		{ 128, "given up by the writer" }, { 4, "chunk corrupted" },
		{ 2, "gap in the chunks" }, { 8, "beginning missing" },
		{ 16, "middle missing" }, { 32, "broken chain" },
	};
	uint32_t cause;
	size_t i;

	for (cause = 1; cause < LINK_LOSS_CAUSES; cause++)
		if (mask & UINT64_C(1) << (15 + cause))
			return link_loss_text(cause);
	for (i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		if (mask & bits[i].bit)
			return bits[i].text;
	return "told without a cause";
}

struct account *
account_new(const struct account_options *o)
{
	struct account *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return NULL;
	a->options = *o;
	a->whole = true;
	return a;
}

void
account_free(struct account *a)
{
	size_t i;

	if (a == NULL)
		return;
	for (i = 0; i < a->n_books; i++)
		free(a->books[i].states);
	free(a->stats);
	told_done(&a->told);
	free(a);
}

int
account_add_ledger(struct account *a, struct load_ledger *l)
{
	struct book *b = &a->books[a->n_books];

	if (a->n_books == ACCOUNT_LEDGERS_MAX)
		return -1;
	b->ledger = l;
	b->n = load_ledger_count(l);
	b->states = calloc(b->n + 1, sizeof(*b->states));
	if (b->states == NULL)
		return -1;
	a->n_books++;
	return 0;
}

/* ---- packets ---- */

static struct load_entry *
find(struct account *a, uint32_t key, struct state **state)
{
	struct load_entry *e;
	struct book *b;
	size_t i;

	for (i = 0; i < a->n_books; i++) {
		b = &a->books[i];
		e = load_ledger_at(b->ledger, key);
		if (e == NULL || key - load_ledger_first(b->ledger) >= b->n)
			continue;
		*state = &b->states[key - load_ledger_first(b->ledger)];
		return e;
	}
	return NULL;
}

static void
see_session(struct account *a, uint32_t session)
{
	size_t i;

	for (i = 0; i < a->n_sessions; i++)
		if (a->sessions[i] == session)
			return;
	if (a->n_sessions < ACCOUNT_SESSIONS_MAX)
		a->sessions[a->n_sessions++] = session;
}

/* Numbers [s->next, number) are not there. */
static void
take_gap(struct account *a, struct state *s, const struct load_entry *e,
    uint64_t number, uint64_t mask)
{
	uint64_t sure = number < e->sure ? number : e->sure, missing = 0;

	if (sure > s->next)
		missing = sure - s->next;
	s->missing += missing;
	s->unsure += number - s->next - missing;
	s->gap_from = s->next;
	s->gap_to = number;
	if (mask != 0)
		tell(a, mark_text(mask), missing);
	else
		s->unmarked += missing;
}

/* One that was expected before. */
static void
take_late(struct account *a, const struct numbered *n,
    const struct state *s)
{
	if (n->number >= s->gap_from && n->number < s->gap_to) {
		a->r.disordered++;
		example(a, "packet %" PRIu64 " of key %u comes behind %" PRIu64,
		    n->number, n->key, s->next - 1);
	} else {
		a->r.doubled++;
		example(a, "packet %" PRIu64 " of key %u is there again",
		    n->number, n->key);
	}
}

/* Undoes what add_up() has counted of a sequence that goes on. */
static void
take_back(struct account *a, struct state *s, const struct load_entry *e)
{
	a->r.sequences--;
	a->r.sequences_seen--;
	a->r.written -= e->written;
	a->r.missing -= s->missing + s->tail;
	a->r.missing_unsure -= s->unsure;
	a->r.cut_short -= s->cut_short;
	s->missing += s->tail;
	s->unmarked = s->tail = s->cut_short = 0;
}

/* Numbers [s->next, number) went with the session that was cut short. */
static void
take_lost(struct account *a, struct state *s, const struct load_entry *e,
    uint64_t number)
{
	uint64_t kept = number < e->kept ? number : e->kept, missing = 0;

	if (kept > s->next)
		missing = kept - s->next;
	s->missing += missing;
	s->unmarked += missing;
	a->r.cut_short += number - s->next - missing;
	s->next = number;
}

static void
take(struct account *a, const struct numbered *n, uint32_t sequence,
    uint32_t machine, uint64_t mask)
{
	struct load_entry *e;
	struct state *s;

	if ((e = find(a, n->key, &s)) == NULL) {
		a->r.strangers++;
		example(a, "packet %" PRIu64 " of key %u is in no ledger",
		    n->number, n->key);
		return;
	}
	if (!n->whole) {
		a->r.altered++;
		example(a, "packet %" PRIu64 " of key %u is not what was "
		    "written", n->number, n->key);
	}
	see_session(a, e->session);
	if (e->end == LOAD_LOST && s->part != a->part &&
	    n->number >= s->next) {
		/* Its link goes on in the session of the next collector. */
		if (s->sequence != 0)
			take_back(a, s, e);
		take_lost(a, s, e, n->number);
	} else if (s->sequence != 0 && (s->sequence != sequence ||
	    s->part != a->part)) {
		a->r.mixed_up++;
		example(a, "key %u is in sequences %u and %u%s", n->key,
		    s->sequence, sequence, s->part != a->part ?
		    " of two sessions" : "");
	}
	s->sequence = sequence;
	s->machine = machine;
	s->part = a->part;
	if (n->number >= e->written) {
		a->r.never_written++;
		example(a, "packet %" PRIu64 " of key %u, of %" PRIu64
		    " written", n->number, n->key, e->written);
		return;
	}
	if (n->number < s->next) {
		take_late(a, n, s);
		return;
	}
	if (n->number > s->next)
		take_gap(a, s, e, n->number, mask);
	s->next = n->number + 1;
	s->present++;
	a->r.present++;
}

static void
keep_stats(struct account *a, const struct pb_field *f)
{
	uint8_t *copy = malloc(f->len + 1);

	if (copy == NULL)
		return;
	memcpy(copy, f->data, f->len);
	free(a->stats);
	a->stats = copy;
	a->stats_len = f->len;
}

/* ---- the parts ---- */

static void end_part(struct account *a);

/* The file's statistics, of a segment those of its span. */
static void
take_stats(struct account *a)
{
	if (a->stats != NULL)
		told_read(&a->told, a->stats, a->stats_len);
	free(a->stats);
	a->stats = NULL;
}

/* A segment begins or ends: the next of a session, or the first of the next. */
static void
take_segment(struct account *a, const struct pb_field *segment)
{
	struct pb_field f, end, uuid = { .data = NULL };
	bool is_end = false, goes_on = false;
	struct pb_reader r, inner;

	pb_init(&r, segment->data, segment->len);
	while (pb_next(&r, &f)) {
		if (f.number == SEGMENT_RECORDING_UUID &&
		    f.wire == PB_BYTES && f.len == UUID_SIZE)
			uuid = f;
		if (f.number != SEGMENT_END || f.wire != PB_BYTES)
			continue;
		is_end = true;
		pb_init(&inner, f.data, f.len);
		while (pb_next(&inner, &end))
			goes_on |= end.number == END_CAUSE;
	}
	if (is_end) {
		a->whole |= !goes_on;
		return;
	}
	take_stats(a);
	if (uuid.data == NULL || (a->part > 0 &&
	    memcmp(a->uuid, uuid.data, UUID_SIZE) == 0))
		return;
	if (a->part > 0)
		end_part(a);
	a->part++;
	a->r.parts++;
	a->whole = false;
	memcpy(a->uuid, uuid.data, UUID_SIZE);
}

void
account_packet(struct account *a, const uint8_t *data, size_t len)
{
	struct pb_field f, event = { .data = NULL };
	uint64_t sequence = 0, machine = 0, mask = 0;
	struct pb_reader r;
	struct numbered n;

	a->r.packets++;
	pb_init(&r, data, len);
	while (pb_next(&r, &f)) {
		if (f.number == PACKET_SEQUENCE && f.wire == PB_VARINT)
			sequence = f.value;
		else if (f.number == PACKET_DROPPED && f.wire == PB_VARINT)
			mask = f.value;
		else if (f.number == PACKET_MACHINE && f.wire == PB_VARINT)
			machine = f.value;
		else if (f.number == PACKET_FOR_TESTING && f.wire == PB_BYTES)
			event = f;
		else if (f.number == PACKET_STATS && f.wire == PB_BYTES)
			keep_stats(a, &f);
		else if (f.number == PACKET_SEGMENT && f.wire == PB_BYTES)
			take_segment(a, &f);
	}
	if (event.data != NULL && numbered_read(&n, &event))
		take(a, &n, (uint32_t)sequence, (uint32_t)machine, mask);
}

/* ---- the sum ---- */

static bool
is_expected(const struct account *a, const struct load_entry *e)
{
	size_t i;

	if (a->options.has_session)
		return e->session == a->options.session;
	for (i = 0; i < a->n_sessions; i++)
		if (a->sessions[i] == e->session)
			return true;
	return false;
}

/*
 * Of packets from s->next on, how many have to be there.  The others are on the
 * way, or went with a session that was cut short.
 */
static uint64_t
take_tail(struct account *a, struct state *s, const struct load_entry *e,
    bool short_end)
{
	uint64_t must = short_end ? e->kept : e->sure, tail = 0;

	if (must > s->next)
		tail = must - s->next;
	s->tail = tail;
	if (short_end && e->sure > s->next + tail)
		a->r.cut_short += s->cut_short = e->sure - s->next - tail;
	else if (!short_end && e->written > s->next)
		s->unsure += e->written - s->next - tail;
	return tail;
}

static void
count(struct account *a, struct state *s, const struct load_entry *e,
    uint64_t tail)
{
	a->r.sequences++;
	a->r.written += e->written;
	a->r.missing += s->missing + tail;
	a->r.missing_unsure += s->unsure;
}

/* A sequence whose part has ended. */
static void
add_up(struct account *a, struct state *s, const struct load_entry *e,
    uint32_t key)
{
	uint64_t tail = take_tail(a, s, e, a->options.prefix || !a->whole);
	uint64_t untold = s->unmarked + tail;
	const char *cause = told_of_end(&a->told);

	count(a, s, e, tail);
	a->r.sequences_seen++;
	untold -= told_use(&a->told, s->sequence, s->machine, untold, tell, a);
	untold -= told_use(&a->told, 0, s->machine, untold, tell, a);
	/* What has no packet behind it that could tell. */
	if (untold <= tail && cause != NULL) {
		tell(a, cause, untold);
		untold = 0;
	}
	a->r.untold += untold;
	if (untold > 0)
		example(a, "%" PRIu64 " packets of key %u are missing without "
		    "a word (%" PRIu64 " of %" PRIu64 " sure came, the last "
		    "is %" PRIu64 ")", untold, key, s->present, e->sure,
		    s->next);
}

/*
 * A sequence of which nothing came has no id by which it could be named: what
 * is told of sequences that nobody saw may be its.  Returns what is missing.
 */
static uint64_t
add_up_unseen(struct account *a, struct state *s, const struct load_entry *e)
{
	uint64_t tail = take_tail(a, s, e, a->options.prefix ||
	    e->end == LOAD_LOST);

	count(a, s, e, tail);
	return tail;
}

/* Calls of add_up() for those of this part, or of add_up_unseen(). */
static uint64_t
add_up_all(struct account *a, bool seen)
{
	uint64_t missing = 0, k;
	struct load_entry *e;
	struct state *s;
	struct book *b;
	uint32_t key;
	size_t i;

	for (i = 0; i < a->n_books; i++) {
		b = &a->books[i];
		for (k = 0; k < b->n; k++) {
			s = &b->states[k];
			key = load_ledger_first(b->ledger) + (uint32_t)k;
			e = load_ledger_at(b->ledger, key);
			if (e == NULL || !is_expected(a, e) ||
			    (s->sequence != 0) != seen ||
			    (seen && s->part != a->part))
				continue;
			if (seen)
				add_up(a, s, e, key);
			else
				missing += add_up_unseen(a, s, e);
		}
	}
	return missing;
}

static void
end_part(struct account *a)
{
	a->r.parts_cut_short += !a->whole;
	told_sort(&a->told);
	(void)add_up_all(a, true);
	told_next_part(&a->told);
}

void
account_finish(struct account *a, struct account_result *out)
{
	uint64_t unseen;

	take_stats(a);
	end_part(a);
	unseen = add_up_all(a, false);
	unseen -= told_use_rest(&a->told, unseen, tell, a);
	a->r.untold += unseen;
	if (unseen > 0)
		example(a, "%" PRIu64 " packets of sequences of which nothing "
		    "is there", unseen);
	*out = a->r;
}

bool
account_is_good(const struct account_result *r)
{
	return r->untold == 0 && r->doubled == 0 && r->disordered == 0 &&
	    r->altered == 0 && r->never_written == 0 && r->strangers == 0 &&
	    r->mixed_up == 0;
}
