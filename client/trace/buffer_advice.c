#include "client/trace/buffer_advice.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "protos/trace_stats.pb-c.h"
#include "transport/base/compiler.h"
#include "transport/base/human_numbers.h"

typedef Perfetto__Protos__TraceStats__BufferStats buffer_stats;

/* Less than this of the recording is told in bytes. */
#define GONE_MIN_MS 100u
/* Below this a rate says nothing. */
#define RATE_MIN_MS 1000u
/* Chunks that hold so little on average waste the buffer with headers. */
#define SMALL_CHUNK_BYTES 256u
/* No chunk is larger. */
#define CHUNK_MAX_BYTES (64u * 1024u)
/* Statements about chunks in general need at least this many. */
#define MANY_CHUNKS 1000u

static void say(struct buffer_advice *r, bool loss, const char *format, ...)
    PRINTF_LIKE(3, 4);

static void
say(struct buffer_advice *r, bool loss, const char *format, ...)
{
	struct buffer_sentence *s;
	va_list args;

	if (r->n == BUFFER_ADVICE_SENTENCES)
		return;
	s = &r->sentences[r->n++];
	s->loss = loss;
	va_start(args, format);
	vsnprintf(s->text, sizeof(s->text), format, args);
	va_end(args);
}

/* "40 s", "0.4 s", "3 min 05 s": a part is compared with its whole. */
static const char *
time_text(char out[HUMAN_TEXT_MAX], uint64_t ms)
{
	if (ms < 10000 || ms >= 120000)
		return human_ms(out, ms);
	snprintf(out, HUMAN_TEXT_MAX, "%" PRIu64 " s", (ms + 500) / 1000);
	return out;
}

/* Rounds up to a size that people type: the next whole number of a unit. */
static uint64_t
round_up_size(uint64_t bytes)
{
	uint64_t step = 4096;

	while (step < UINT64_MAX / 64 && bytes > 64 * step)
		step *= 2;
	return bytes > UINT64_MAX - step ? bytes :
	    (bytes + step - 1) / step * step;
}

/* Writes a size without the ".0" of one chosen by a person. */
static const char *
size_text(char out[HUMAN_TEXT_MAX], uint64_t bytes)
{
	static const struct {
		const char *name;
		unsigned shift;
	} units[] = { { "TiB", 40 }, { "GiB", 30 }, { "MiB", 20 },
		{ "KiB", 10 } };
	size_t i;

	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		uint64_t unit = UINT64_C(1) << units[i].shift;

		if (bytes < unit)
			continue;
		if (bytes % unit != 0)
			break;
		snprintf(out, HUMAN_TEXT_MAX, "%" PRIu64 " %s", bytes / unit,
		    units[i].name);
		return out;
	}
	return human_bytes(out, bytes);
}

static uint64_t
times(uint64_t v, double share)
{
	return (uint64_t)((double)v * share + 0.5);
}

/* ---- what came and was not kept ---- */

static void
measure(struct buffer_advice *r, const struct buffer_facts *f)
{
	const buffer_stats *st = f->stats;
	double kept, gone;

	gone = (double)st->bytes_overwritten;
	/* Refused chunks count with the mean size of those stored. */
	if (st->chunks_written > 0)
		gone += (double)st->chunks_discarded *
		    ((double)st->bytes_written / (double)st->chunks_written);
	kept = (double)st->bytes_written - (double)st->bytes_overwritten;
	if (kept < 0)
		kept = 0;
	if (gone <= 0)
		return;
	r->gone_share = gone / (gone + kept);
	r->gone_bytes = gone < 9e18 ? (uint64_t)gone : UINT64_MAX / 2;
	r->gone_ms = times(f->duration_ms, r->gone_share);
	/*
	 * A streamed buffer lost data to a slow reader: the size that it needs
	 * depends on the reader's longest delay, which is unknown.  Twice the
	 * size is a guess.
	 */
	if (f->streamed && !f->discard)
		r->enough_bytes = round_up_size(st->buffer_size * 2);
	else if (gone + kept < 9e18)
		r->enough_bytes = round_up_size((uint64_t)((gone + kept) *
		    1.02));
	if (r->enough_bytes <= st->buffer_size)
		r->enough_bytes = 0;
}

/* "about the first 40 s of 60 s are gone" */
static void
gone_text(char *out, size_t size, const struct buffer_advice *r,
    const struct buffer_facts *f)
{
	const char *which = f->discard ? "the last " : f->streamed ? "" :
	    "the first ";
	char a[HUMAN_TEXT_MAX], b[HUMAN_TEXT_MAX];

	if (r->gone_ms >= GONE_MIN_MS)
		snprintf(out, size, "about %s%s of %s are gone", which,
		    time_text(a, r->gone_ms), time_text(b, f->duration_ms));
	else
		snprintf(out, size, "about %s%s (%.*f %%) of the input are "
		    "gone", which, human_bytes(a, r->gone_bytes),
		    r->gone_share < 0.01 ? 2 : 0, r->gone_share * 100);
}

static void
enough_text(char *out, size_t size, const struct buffer_advice *r,
    const struct buffer_facts *f)
{
	char a[HUMAN_TEXT_MAX];

	out[0] = '\0';
	if (f->discard && f->streamed)
		snprintf(out, size, "; reading it makes no room under DISCARD: "
		    "RING_BUFFER would have gone on");
	else if (f->streamed)
		snprintf(out, size, "; its reader was too slow: a faster disk "
		    "or reader, or %s, may hold it",
		    size_text(a, r->enough_bytes != 0 ? r->enough_bytes :
		    f->stats->buffer_size * 2));
	else if (r->enough_bytes != 0)
		snprintf(out, size, "; %s would have held it", size_text(a,
		    r->enough_bytes));
}

static void
say_overwritten(struct buffer_advice *r, const struct buffer_facts *f)
{
	const buffer_stats *st = f->stats;
	char gone[96], enough[128], wraps[HUMAN_TEXT_MAX];

	if (st->bytes_overwritten == 0 && st->chunks_overwritten == 0)
		return;
	gone_text(gone, sizeof(gone), r, f);
	enough_text(enough, sizeof(enough), r, f);
	if (st->write_wrap_count > 0)
		say(r, true, "wrapped %s time%s: %s%s", human_count(wraps,
		    st->write_wrap_count), human_s(st->write_wrap_count), gone,
		    enough);
	else
		say(r, true, "overwrote unread data: %s%s", gone,
		    enough);
}

static void
say_refused(struct buffer_advice *r, const struct buffer_facts *f)
{
	const buffer_stats *st = f->stats;
	char gone[96], enough[128], n[HUMAN_TEXT_MAX], size[HUMAN_TEXT_MAX];

	if (st->chunks_discarded == 0)
		return;
	human_count(n, st->chunks_discarded);
	if (!f->discard || st->chunks_written == 0) {
		say(r, true, "refused %s chunk%s that it had no room for", n,
		    human_s(st->chunks_discarded));
		return;
	}
	gone_text(gone, sizeof(gone), r, f);
	enough_text(enough, sizeof(enough), r, f);
	say(r, true, "%s full after %s and refused %s chunk%s: %s%s",
	    f->running ? "is" : "was", size_text(size, st->buffer_size), n,
	    human_s(st->chunks_discarded), gone, enough);
}

/* ---- what did not get there ---- */

static void
say_hurt(struct buffer_advice *r, const buffer_stats *st)
{
	char n[HUMAN_TEXT_MAX];
	size_t before = r->n;

	if (st->trace_writer_packet_loss != 0)
		say(r, true, "lacks at least %s packet%s that producers dropped because "
		    "their shared memory was full; a larger shm_size_kb for "
		    "them, or more CPU for the collector, keeps them",
		    human_count(n, st->trace_writer_packet_loss),
		    human_s(st->trace_writer_packet_loss));
	if (st->abi_violations != 0)
		say(r, true, "refused %s chunk%s, broken by %s%s",
		    human_count(n, st->abi_violations),
		    human_s(st->abi_violations), st->abi_violations == 1 ?
		    "its producer" : "their producers",
		    st->buffer_size <= CHUNK_MAX_BYTES ? ", or larger than "
		    "the buffer itself" : "");
	if (st->patches_failed != 0)
		say(r, true, "got %s patch%s for packets that were gone "
		    "already", human_count(n, st->patches_failed),
		    st->patches_failed == 1 ? "" : "es");
	if (r->n > before && r->verdict == BUFFER_WHOLE)
		r->verdict = BUFFER_HURT;
}

/* ---- what is well ---- */

static bool
reads_make_room(const struct buffer_facts *f)
{
	return f->streamed && !f->discard;
}

static void
say_filling(struct buffer_advice *r, const struct buffer_facts *f)
{
	const buffer_stats *st = f->stats;
	char has[HUMAN_TEXT_MAX], size[HUMAN_TEXT_MAX], in[HUMAN_TEXT_MAX];
	/* Without overwriting, data that was read still takes room. */
	uint64_t used = f->discard && st->bytes_written > f->used ?
	    st->bytes_written : f->used;
	uint64_t left = st->buffer_size > used ? st->buffer_size - used : 0;
	double rate = 0;

	if (f->duration_ms >= RATE_MIN_MS)
		rate = (double)st->bytes_written / (double)f->duration_ms;
	/* A reader makes room, so the rate of writing fills nothing. */
	if (!reads_make_room(f) && rate > 0 && left > 0 && (double)left / rate < 1e15)
		r->full_in_ms = (uint64_t)((double)left / rate);
	human_bytes(has, used);
	size_text(size, st->buffer_size);
	if (reads_make_room(f))
		say(r, false, "has %s of %s waiting to be read; all that came "
		    "was kept", has, size);
	else if (r->full_in_ms != 0)
		say(r, false, "holds %s of %s, all that came; at this rate it "
		    "%s in about %s", has, size, f->discard ? "is full" :
		    "begins to overwrite", time_text(in, r->full_in_ms));
	else
		say(r, false, "holds %s of %s, all that came", has, size);
}

static void
say_kept(struct buffer_advice *r, const struct buffer_facts *f)
{
	const buffer_stats *st = f->stats;
	char bytes[HUMAN_TEXT_MAX], size[HUMAN_TEXT_MAX];
	char wraps[HUMAN_TEXT_MAX];

	human_bytes(bytes, st->bytes_written);
	size_text(size, st->buffer_size);
	if (st->write_wrap_count > 0)
		say(r, false, "wrapped %s time%s, and all of its %s were read "
		    "in time", human_count(wraps, st->write_wrap_count),
		    human_s(st->write_wrap_count), bytes);
	else
		say(r, false, "kept all that came: %s, with room for %s", bytes,
		    size);
}

static void
say_small_chunks(struct buffer_advice *r, const buffer_stats *st)
{
	uint64_t mean;
	char n[HUMAN_TEXT_MAX];

	if (st->chunks_written < MANY_CHUNKS)
		return;
	mean = st->bytes_written / st->chunks_written;
	if (mean < SMALL_CHUNK_BYTES)
		say(r, false, "got %s chunks of %" PRIu64 " bytes on average: "
		    "producers that write little and often fill it with "
		    "headers", human_count(n, st->chunks_written), mean);
}

void
buffer_advice_make(struct buffer_advice *out,
    const struct buffer_facts *facts)
{
	struct buffer_facts f = *facts;
	const buffer_stats *st = f.stats;
	char size[HUMAN_TEXT_MAX];

	memset(out, 0, sizeof(*out));
	/* More bytes read than the buffer's size: it was read all along. */
	if (st->buffer_size != 0 && st->bytes_read > st->buffer_size)
		f.streamed = true;
	out->verdict = st->bytes_overwritten != 0 ||
	    st->chunks_overwritten != 0 || st->chunks_discarded != 0 ?
	    BUFFER_CUT : BUFFER_WHOLE;
	measure(out, &f);
	say_overwritten(out, &f);
	say_refused(out, &f);
	say_hurt(out, st);
	if (st->bytes_written == 0 && out->verdict == BUFFER_WHOLE) {
		out->verdict = BUFFER_EMPTY;
		say(out, false, "%s empty: nothing was written into its %s",
		    f.running ? "is" : "stayed", size_text(size,
		    st->buffer_size));
	} else if (out->verdict != BUFFER_CUT && st->bytes_written != 0) {
		if (f.running)
			say_filling(out, &f);
		else
			say_kept(out, &f);
	}
	say_small_chunks(out, st);
}

const char *
buffer_verdict_word(enum buffer_verdict v)
{
	switch (v) {
	case BUFFER_EMPTY:
		return "empty";
	case BUFFER_WHOLE:
		return "whole";
	case BUFFER_CUT:
		return "cut";
	case BUFFER_HURT:
		return "hurt";
	}
	return "";
}
