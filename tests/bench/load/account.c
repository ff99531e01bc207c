#include "tests/bench/load/account.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
};
#define STATS_BUFFER      1u
#define STATS_DISCARDED   8u
#define STATS_FINAL_FLUSH 15u
#define FINAL_FLUSH_FAILED 2u
#define STATS_LINK_LOSSES 1001u
/* Link losses that are looked up by their sequence. */
#define LOSSES_MAX (1u << 20)

struct state {
	uint64_t next;     /* the number that is expected */
	uint64_t present;
	uint64_t missing;  /* below the ledger's sure, before some packet */
	uint64_t unmarked; /* of them: the packet behind does not tell */
	uint64_t unsure;   /* missing, but from sure on */
	uint64_t gap_from, gap_to; /* the last gap */
	uint32_t sequence; /* id in the trace; 0: none was seen */
	uint32_t machine;
};

struct loss {
	uint32_t sequence; /* 0: of the machine */
	uint32_t machine;
	uint32_t cause;
	uint64_t packets;  /* UINT64_MAX: nobody knows */
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
	uint8_t *stats; /* the last TraceStats; owned */
	size_t stats_len;
	struct loss *losses; /* owned; sorted by sequence */
	size_t n_losses;
	uint64_t chunks_lost; /* that buffers tell of */
	bool not_flushed;     /* the flush at the end failed */
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
tell(struct account *a, const char *cause, uint64_t packets)
{
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
account_new(void)
{
	return calloc(1, sizeof(struct account));
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
	free(a->losses);
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
	if (s->sequence != 0 && s->sequence != sequence) {
		a->r.mixed_up++;
		example(a, "key %u is in sequences %u and %u", n->key,
		    s->sequence, sequence);
	}
	s->sequence = sequence;
	s->machine = machine;
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
	}
	if (event.data != NULL && numbered_read(&n, &event))
		take(a, &n, (uint32_t)sequence, (uint32_t)machine, mask);
}

/* ---- what TraceStats tells ---- */

static void
add_loss(struct account *a, const struct pb_field *m)
{
	struct loss l = { 0 }, *grown;
	bool known = false;
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, m->data, m->len);
	while (pb_next(&r, &f)) {
		if (f.number == 1)
			l.machine = (uint32_t)f.value;
		else if (f.number == 2)
			l.sequence = (uint32_t)f.value;
		else if (f.number == 4)
			l.cause = (uint32_t)f.value;
		else if (f.number == 6) {
			l.packets = f.value;
			known = true;
		}
	}
	if (!known)
		l.packets = UINT64_MAX;
	if (a->n_losses == LOSSES_MAX)
		return;
	if ((a->n_losses & (a->n_losses - 1)) == 0) {
		grown = realloc(a->losses,
		    (a->n_losses > 0 ? 2 * a->n_losses : 1) *
		    sizeof(*a->losses));
		if (grown == NULL)
			return;
		a->losses = grown;
	}
	a->losses[a->n_losses++] = l;
}

static void
read_buffer(struct account *a, const struct pb_field *m)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, m->data, m->len);
	while (pb_next(&r, &f))
		/* chunks_overwritten, abi_violations, chunks_discarded */
		if (f.number == 3 || f.number == 9 || f.number == 18)
			a->chunks_lost += f.value;
}

static int
compare_losses(const void *x, const void *y)
{
	const struct loss *a = x, *b = y;

	return (a->sequence > b->sequence) - (a->sequence < b->sequence);
}

static void
read_stats(struct account *a)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, a->stats, a->stats_len);
	while (pb_next(&r, &f)) {
		if (f.number == STATS_BUFFER && f.wire == PB_BYTES)
			read_buffer(a, &f);
		else if (f.number == STATS_DISCARDED)
			a->chunks_lost += f.value;
		else if (f.number == STATS_FINAL_FLUSH)
			a->not_flushed = f.value == FINAL_FLUSH_FAILED;
		else if (f.number == STATS_LINK_LOSSES && f.wire == PB_BYTES)
			add_loss(a, &f);
	}
	if (a->n_losses > 0)
		qsort(a->losses, a->n_losses, sizeof(*a->losses),
		    compare_losses);
}

/*
 * Takes up to `want` from what is told of a sequence, or (0) of a machine;
 * returns what was.
 */
static uint64_t
use_losses(struct account *a, uint32_t sequence, uint32_t machine,
    uint64_t want)
{
	size_t low = 0, high = a->n_losses, mid;
	uint64_t used = 0, n;
	struct loss *l;

	while (low < high) {
		mid = (low + high) / 2;
		if (a->losses[mid].sequence < sequence)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < a->n_losses && used < want &&
	    a->losses[low].sequence == sequence; low++) {
		l = &a->losses[low];
		if (sequence == 0 && l->machine != machine)
			continue;
		n = l->packets < want - used ? l->packets : want - used;
		if (l->packets != UINT64_MAX)
			l->packets -= n;
		tell(a, link_loss_text(l->cause), n);
		used += n;
	}
	return used;
}

/* ---- the sum ---- */

static bool
is_expected(const struct account *a, const struct account_options *o,
    const struct load_entry *e)
{
	size_t i;

	if (o->has_session)
		return e->session == o->session;
	for (i = 0; i < a->n_sessions; i++)
		if (a->sessions[i] == e->session)
			return true;
	return false;
}

/*
 * What no mark tells.  A sequence of which nothing came has no id by which it
 * could be named: what is told of the machine, or of sequences that nobody
 * saw, may be its.
 */
static uint64_t
account_unmarked(struct account *a, const struct state *s, uint64_t want)
{
	uint64_t used = 0;

	if (s->sequence == 0)
		return want;
	used = use_losses(a, s->sequence, s->machine, want);
	if (used < want)
		used += use_losses(a, 0, s->machine, want - used);
	return want - used;
}

/* What has no packet behind it that could tell. */
static uint64_t
tell_of_end(struct account *a, uint64_t packets)
{
	if (a->chunks_lost > 0)
		tell(a, "chunks lost by a buffer", packets);
	else if (a->not_flushed)
		tell(a, "not flushed at the end", packets);
	else
		return 0;
	return packets;
}

/* Of sequences that were told of and of which no packet came. */
static void
account_unseen(struct account *a, uint64_t *untold)
{
	size_t i;
	uint64_t n;

	for (i = 0; i < a->n_losses && *untold > 0; i++) {
		n = a->losses[i].packets < *untold ? a->losses[i].packets :
		    *untold;
		tell(a, link_loss_text(a->losses[i].cause), n);
		*untold -= n;
	}
}

static void
add_up(struct account *a, const struct account_options *o, struct book *b,
    uint64_t *unseen)
{
	struct account_result *r = &a->r;
	uint64_t i, tail, untold;
	struct load_entry *e;
	struct state *s;
	uint32_t key;

	for (i = 0; i < b->n; i++) {
		key = load_ledger_first(b->ledger) + (uint32_t)i;
		e = load_ledger_at(b->ledger, key);
		s = &b->states[i];
		if (e == NULL || !is_expected(a, o, e))
			continue;
		r->sequences++;
		r->sequences_seen += s->sequence != 0;
		r->written += e->written;
		tail = !o->prefix && e->sure > s->next ?
		    e->sure - s->next : 0;
		if (e->written > s->next && !o->prefix)
			s->unsure += e->written - s->next - tail;
		r->missing += s->missing + tail;
		r->missing_unsure += s->unsure;
		untold = account_unmarked(a, s, s->unmarked + tail);
		if (s->sequence == 0) {
			*unseen += untold;
			continue;
		}
		if (untold > 0 && untold <= tail)
			untold -= tell_of_end(a, untold);
		r->untold += untold;
		if (untold > 0)
			example(a, "%" PRIu64 " packets of key %u are missing "
			    "without a word (%" PRIu64 " of %" PRIu64 " sure "
			    "came, the last is %" PRIu64 ")", untold, key,
			    s->present, e->sure, s->next);
	}
}

void
account_finish(struct account *a, const struct account_options *o,
    struct account_result *out)
{
	uint64_t unseen = 0;
	size_t i;

	if (a->stats != NULL)
		read_stats(a);
	for (i = 0; i < a->n_books; i++)
		add_up(a, o, &a->books[i], &unseen);
	account_unseen(a, &unseen);
	if (unseen > 0)
		unseen -= tell_of_end(a, unseen);
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
