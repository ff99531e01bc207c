#include "tests/load/ledger_stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/load/load_conn.h"
#include "tests/load/sample_text.h"
#include "transport/loop/loop.h"

#define SIZE_BYTES 4u /* a fragment's, and a patched message's */

void
ledger_stream_init(struct ledger_stream *s, struct shm *shm,
    uint32_t seq_value, uint32_t size)
{
	memset(s, 0, sizeof(*s));
	s->shm = shm;
	s->seq_value = seq_value;
	s->size = size;
	s->layout = seq_value % 2 == 0 ? SHM_DIV4 : SHM_DIV1;
	pb_writer_init(&s->packet);
}

void
ledger_stream_done(struct ledger_stream *s)
{
	pb_writer_done(&s->packet);
	free(s->unsure);
}

/* A varint of four bytes, whatever its value. */
static void
put_wide(uint8_t out[SIZE_BYTES], size_t value)
{
	int i;

	for (i = 0; i < 3; i++)
		out[i] = (uint8_t)(value >> 7 * i | 0x80);
	out[3] = (uint8_t)(value >> 21 & 0x7f);
}

static size_t
padding(const struct ledger_stream *s)
{
	uint64_t x = (s->seq_value * 2654435761u + s->next_packet) *
	    0x9e3779b97f4a7c15u >> 33;

	if (s->next_packet % 64 == 63)
		return 3000 + x % 9000;
	return x % (2 * s->size + 1);
}

static void
put_filler(struct ledger_stream *s, struct pb_writer *w)
{
	static const char zeros[65536];
	static char text[65536];
	size_t len = padding(s);

	if (s->text)
		sample_text(text, len, (uint64_t)s->seq_value << 32 |
		    s->next_packet);
	pb_put_bytes(w, 4, s->text ? text : zeros, len);
}

static void
make_packet(struct ledger_stream *s)
{
	struct pb_writer *w = &s->packet;
	uint8_t wide[SIZE_BYTES];
	size_t inner;

	pb_writer_reset(w);
	pb_put_uint(w, 8, loop_boottime_ns());
	pb_put_varint(w, 900u << 3 | 2);
	s->size_at = w->len;
	pb_put_raw(w, "\0\0\0", SIZE_BYTES);
	pb_put_uint(w, 2, s->seq_value);
	pb_put_uint(w, 3, s->next_packet);
	inner = pb_nest_begin(w, 5);
	put_filler(s, w);
	pb_nest_end(w, inner);
	if (w->failed)
		load_die("no memory");
	put_wide(wide, w->len - s->size_at - SIZE_BYTES);
	memcpy(w->data + s->size_at, wide, SIZE_BYTES);
	s->written = 0;
	s->next_packet++;
}

static void
add_chunk(struct ledger_stream *s, struct pb_writer *commit)
{
	size_t mark = pb_nest_begin(commit, 1);

	pb_put_uint(commit, 1, s->slot.page);
	pb_put_uint(commit, 2, s->slot.index);
	pb_put_uint(commit, 3, s->buffer);
	pb_nest_end(commit, mark);
}

static void
complete_slot(struct ledger_stream *s, struct pb_writer *commit)
{
	shm_complete(s->shm, &s->slot);
	s->has_slot = false;
	if (commit != NULL)
		add_chunk(s, commit);
}

/* The packet's size is not known yet, as far as anybody can tell. */
static void
hide_size(struct ledger_stream *s, uint8_t *fragment)
{
	struct ledger_patch *p = &s->patches[s->n_patches++];

	memset(p, 0, sizeof(*p));
	p->packet = s->next_packet - 1;
	p->chunk = s->next_chunk - 1;
	p->offset = (uint32_t)(fragment - s->slot.payload + s->size_at);
	memcpy(p->size, s->packet.data + s->size_at, SIZE_BYTES);
	memset(fragment + s->size_at, 0, SIZE_BYTES);
	shm_set_flag(s->shm, &s->slot, SHM_NEEDS_PATCHING);
}

/* Puts the next piece of the packet into the slot, which has room for some. */
static size_t
put_fragment(struct ledger_stream *s)
{
	uint8_t *at = s->slot.payload + s->used;
	size_t rest = s->packet.len - s->written;
	size_t n = s->slot.len - s->used - SIZE_BYTES;
	bool first = s->written == 0;
	uint8_t wide[SIZE_BYTES];

	if (n > rest)
		n = rest;
	put_wide(wide, n);
	memcpy(at, wide, SIZE_BYTES);
	memcpy(at + SIZE_BYTES, s->packet.data + s->written, n);
	s->written += n;
	s->used += SIZE_BYTES + n;
	if (n < rest) {
		shm_set_flag(s->shm, &s->slot, SHM_LAST_CONTINUES_ON_NEXT);
		if (s->patching && first && n >= s->size_at + SIZE_BYTES &&
		    s->n_patches < LEDGER_PATCHES_MAX)
			hide_size(s, at + SIZE_BYTES);
	}
	shm_add_fragment(s->shm, &s->slot);
	s->fragments++;
	return n;
}

static void
packet_is_whole(struct ledger_stream *s)
{
	size_t i;

	s->whole++;
	s->bytes += s->packet.len;
	for (i = 0; i < s->n_patches; i++)
		s->patches[i].whole = true;
}

static bool
take_slot(struct ledger_stream *s)
{
	uint8_t flags = s->written > 0 && s->written < s->packet.len ?
	    SHM_FIRST_CONTINUES_FROM_PREV : 0;

	s->has_slot = shm_acquire(s->shm, s->layout, s->writer, s->next_chunk,
	    flags, &s->slot);
	if (!s->has_slot)
		return false;
	s->next_chunk++;
	s->used = 0;
	s->fragments = 0;
	return true;
}

bool
ledger_stream_is_within(const struct ledger_stream *s)
{
	return s->written < s->packet.len;
}

size_t
ledger_stream_write(struct ledger_stream *s, size_t bytes,
    struct pb_writer *commit)
{
	size_t done = 0;

	while (done < bytes || ledger_stream_is_within(s)) {
		if (s->packets_max > 0 && s->next_packet == s->packets_max &&
		    !ledger_stream_is_within(s))
			break;
		if (s->has_slot && (s->slot.len - s->used < SIZE_BYTES + 32 ||
		    s->fragments >= 1000 ||
		    (ledger_stream_is_within(s) && s->written > 0 &&
			s->fragments > 0)))
			complete_slot(s, commit);
		if (!s->has_slot && !take_slot(s))
			break;
		if (!ledger_stream_is_within(s))
			make_packet(s);
		done += put_fragment(s);
		if (!ledger_stream_is_within(s))
			packet_is_whole(s);
	}
	return done;
}

void
ledger_stream_flush(struct ledger_stream *s, struct pb_writer *commit)
{
	if (s->has_slot && s->fragments > 0)
		complete_slot(s, commit);
}

bool
ledger_stream_has_patches(const struct ledger_stream *s)
{
	size_t i;

	for (i = 0; i < s->n_patches; i++)
		if (s->patches[i].whole && s->patches[i].commit == 0)
			return true;
	return false;
}

void
ledger_stream_patch(struct ledger_stream *s, struct pb_writer *commit,
    uint64_t number)
{
	struct ledger_patch *p;
	size_t i, mark, inner;

	for (i = 0; i < s->n_patches; i++) {
		p = &s->patches[i];
		if (!p->whole || p->commit != 0)
			continue;
		mark = pb_nest_begin(commit, 2);
		pb_put_uint(commit, 1, s->buffer);
		pb_put_uint(commit, 2, s->writer);
		pb_put_uint(commit, 3, p->chunk);
		inner = pb_nest_begin(commit, 4);
		pb_put_uint(commit, 1, p->offset);
		pb_put_bytes(commit, 2, p->size, SIZE_BYTES);
		pb_nest_end(commit, inner);
		pb_nest_end(commit, mark);
		p->commit = number;
	}
}

void
ledger_stream_acted(struct ledger_stream *s, uint64_t number)
{
	size_t i, kept = 0;

	for (i = 0; i < s->n_patches; i++)
		if (s->patches[i].commit == 0 ||
		    s->patches[i].commit > number)
			s->patches[kept++] = s->patches[i];
	s->n_patches = kept;
}

/* Packets whose sizes may have got there, or not. */
static void
book_unsure(struct ledger_stream *s)
{
	size_t i;

	if (s->n_patches == 0 || s->unsure != NULL)
		return;
	s->unsure = calloc(s->n_patches, sizeof(*s->unsure));
	if (s->unsure == NULL)
		load_die("no memory");
	for (i = 0; i < s->n_patches; i++)
		if (s->patches[i].whole)
			s->unsure[s->n_unsure++] = s->patches[i].packet;
	s->n_patches = 0;
}

void
ledger_stream_close(struct ledger_stream *s, enum ledger_end end)
{
	if (s->end == LEDGER_WRITING) {
		s->end = end;
		/* Whoever scrapes what the dead left finds it complete. */
		if (s->has_slot && s->fragments > 0)
			complete_slot(s, NULL);
		s->shm = NULL;
	}
	if (end == LEDGER_LOST)
		book_unsure(s);
}

void
ledger_stream_print(const struct ledger_stream *s, FILE *out)
{
	static const char *const ends[] = {
		[LEDGER_WRITING] = "writing",
		[LEDGER_STOPPED] = "stopped",
		[LEDGER_LOST] = "lost",
	};
	size_t i;

	fprintf(out, "\"seq\": %" PRIu32 ", \"written\": %" PRIu64
	    ", \"bytes\": %" PRIu64 ", \"within\": %s, \"end\": \"%s\", "
	    "\"unsure\": [",
	    s->seq_value, s->whole, s->bytes,
	    ledger_stream_is_within(s) && s->written > 0 ? "true" : "false",
	    ends[s->end]);
	for (i = 0; i < s->n_unsure; i++)
		fprintf(out, "%s%" PRIu64, i > 0 ? ", " : "", s->unsure[i]);
	fputs("]", out);
}
