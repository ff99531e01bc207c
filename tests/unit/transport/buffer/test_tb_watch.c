#include <stdio.h>
#include <string.h>

#include "tests/unit/transport/buffer/tb_fixture.h"

/* The listener: notes "a486 " for a packet read, "A486 " for one overwritten. */
struct notes {
	char text[4096];
	uint64_t of; /* the producer that it wants */
};

static bool
wants(void *arg, uint64_t producer)
{
	const struct notes *n = arg;

	return producer == n->of;
}

static void
leaves(void *arg, const struct tb_packet *p, bool overwritten)
{
	struct notes *n = arg;
	size_t len = strlen(n->text), i, k, size = 0;
	char letter;

	assert_non_null(p);
	assert_int_equal(p->origin->producer, n->of);
	letter = (char)p->slices[0].data[0];
	for (i = 0; i < p->n_slices; i++)
		for (k = 0; k < p->slices[i].len; k++, size++)
			assert_int_equal(p->slices[i].data[k], letter);
	assert_int_equal(size, p->size);
	snprintf(n->text + len, sizeof(n->text) - len, "%c%zu ",
	    overwritten ? letter - 'a' + 'A' : letter, p->size);
}

static void
expect_notes(struct notes *n, const char *text)
{
	assert_string_equal(n->text, text);
	n->text[0] = '\0';
}

static void
watch(struct trace_buffer *tb, struct tb_watch *w, struct notes *n)
{
	*n = (struct notes){ .of = 1 };
	*w = (struct tb_watch){ .wants = wants, .leaves = leaves, .arg = n };
	trace_buffer_watch(tb, w);
}

/* Overwrites so many chunks of 504 bytes, of which the ring holds eight. */
static void
push_out(struct trace_buffer *tb, uint32_t *id, unsigned n)
{
	while (n-- > 0)
		commit(tb, 9, 9, (*id)++, 0, "z486");
}

static void
packets_are_shown_before_they_are_overwritten_in_their_order(void **state)
{
	struct trace_buffer *tb = *state;
	struct tb_watch w;
	struct notes n;
	uint32_t id = 0;

	watch(tb, &w, &n);
	commit(tb, 1, 1, 0, 0, "a100 b200 c180");
	commit(tb, 2, 1, 0, 0, "y486");
	commit(tb, 1, 1, 1, 0, "d486");
	push_out(tb, &id, 5);
	expect_notes(&n, "");
	push_out(tb, &id, 1);
	expect_notes(&n, "A100 B200 C180 ");
	push_out(tb, &id, 1);
	expect_notes(&n, "");
	push_out(tb, &id, 1);
	expect_notes(&n, "D486 ");
}

static void
chunks_that_came_out_of_order_are_shown_in_order_and_once(void **state)
{
	struct trace_buffer *tb = *state;
	struct tb_watch w;
	struct notes n;
	uint32_t id = 0;

	watch(tb, &w, &n);
	commit(tb, 1, 1, 2, 0, "c486");
	commit(tb, 1, 1, 0, 0, "a486");
	commit(tb, 1, 1, 1, 0, "b486");
	push_out(tb, &id, 6);
	/* Chunk 2 had to go, and the two before it went with it. */
	expect_notes(&n, "A486 B486 C486 ");
	push_out(tb, &id, 8);
	expect_notes(&n, "");
}

static void
a_packet_of_several_chunks_is_shown_whole_with_its_first(void **state)
{
	struct trace_buffer *tb = *state;
	struct tb_watch w;
	struct notes n;
	uint32_t id = 0;

	watch(tb, &w, &n);
	commit(tb, 1, 1, 0, TO_NEXT, "a100 b384");
	commit(tb, 1, 1, 1, FROM_PREV | TO_NEXT, "b486");
	commit(tb, 1, 1, 2, FROM_PREV, "b100 c384");
	push_out(tb, &id, 6);
	expect_notes(&n, "A100 B970 ");
	push_out(tb, &id, 2);
	expect_notes(&n, "C384 ");
}

static void
packets_that_are_not_whole_are_not_shown(void **state)
{
	struct trace_buffer *tb = *state;
	struct tb_watch w;
	struct notes n;
	uint32_t id = 0;

	watch(tb, &w, &n);
	/* Never patched; no beginning; no end; no part between. */
	commit(tb, 1, 1, 0, PATCH, "a100 b384");
	commit(tb, 1, 2, 5, FROM_PREV, "c100 d384");
	commit(tb, 1, 3, 0, TO_NEXT, "e100 f384");
	commit(tb, 1, 4, 0, TO_NEXT, "g100 h384");
	commit(tb, 1, 4, 2, FROM_PREV, "h100 i384");
	scrape(tb, 1, 5, 0, 0, "j100 k384", 487);
	push_out(tb, &id, 16);
	expect_notes(&n, "A100 D384 E100 G100 I384 J100 ");
	/* The rest of a scraped chunk that comes late. */
	commit(tb, 1, 5, 0, 0, "j100 k384");
	push_out(tb, &id, 16);
	expect_notes(&n, "K384 ");
}

static void
packets_are_shown_when_they_are_read_and_then_not_again(void **state)
{
	struct trace_buffer *tb = *state;
	struct tb_watch w;
	struct notes n;
	uint32_t id = 0;

	watch(tb, &w, &n);
	commit(tb, 1, 1, 0, 0, "a100 b384");
	commit(tb, 1, 1, 1, 0, "c486");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a100", 0);
	expect_notes(&n, "a100 ");
	push_out(tb, &id, 16);
	expect_notes(&n, "B384 C486 ");
}

static void
other_producers_and_cleared_packets_are_not_shown(void **state)
{
	struct trace_buffer *tb = *state;
	struct tb_watch w;
	struct notes n;
	uint32_t id = 0;

	watch(tb, &w, &n);
	commit(tb, 1, 1, 0, 0, "a486");
	commit(tb, 2, 1, 0, 0, "b486");
	trace_buffer_clear(tb);
	push_out(tb, &id, 16);
	expect_notes(&n, "");
	trace_buffer_begin_read(tb);
	expect_packet_of(tb, 9, 9, "z486", TB_LOSS_OVERWRITE);
	expect_notes(&n, "");
	trace_buffer_watch(tb, NULL);
	commit(tb, 1, 1, 1, 0, "c486");
	push_out(tb, &id, 16);
	expect_notes(&n, "");
}

/* The clone's packets go on where the listener's notes end. */
static void
a_clone_has_the_packets_that_were_not_shown(void **state)
{
	struct trace_buffer *tb = *state, *copy;
	struct tb_watch w;
	struct notes n;
	uint32_t id = 0;

	watch(tb, &w, &n);
	commit(tb, 1, 1, 0, 0, "a486");
	commit(tb, 1, 1, 1, 0, "b486");
	commit(tb, 2, 1, 0, 0, "y486");
	commit(tb, 1, 1, 2, 0, "c100 d384");
	push_out(tb, &id, 5);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "b486", TB_LOSS_OVERWRITE);
	expect_packet_of(tb, 2, 1, "y486", 0);
	expect_packet(tb, "c100", 0);
	expect_notes(&n, "A486 b486 c100 ");
	copy = whole_clone(tb, false);
	trace_buffer_begin_read(copy);
	/* Of a producer that is not shown a clone has the read ones, too. */
	expect_packet_of(copy, 2, 1, "y486", 0);
	expect_packet_of(copy, 1, 1, "d384", TB_LOSS_OVERWRITE);
	expect_packet_of(copy, 9, 9, "z486", 0);
	expect_notes(&n, "");
	trace_buffer_free(copy);
}

/* Copying goes on while the source is read and overwritten. */
static void
a_clone_has_what_is_shown_after_its_begin(void **state)
{
	struct trace_buffer *tb = *state, *copy;
	struct tb_watch w;
	struct notes n;
	uint32_t id = 0;

	watch(tb, &w, &n);
	commit(tb, 1, 1, 0, 0, "a486");
	commit(tb, 1, 1, 1, 0, "b486");
	commit(tb, 1, 1, 2, 0, "c486");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a486", 0);
	copy = trace_buffer_clone(tb);
	expect_packet(tb, "b486", 0);
	push_out(tb, &id, 16);
	expect_notes(&n, "a486 b486 C486 ");
	while (trace_buffer_fill(copy, 1) == TB_FILL_MORE)
		;
	trace_buffer_begin_read(copy);
	expect_packet(copy, "b486", TB_LOSS_OVERWRITE);
	expect_packet(copy, "c486", 0);
	expect_end(copy);
	trace_buffer_free(copy);
}

static void
a_buffer_that_is_taken_has_the_packets_that_were_not_shown(void **state)
{
	struct trace_buffer *tb = *state, *copy;
	struct tb_watch w;
	struct notes n;

	watch(tb, &w, &n);
	commit(tb, 1, 1, 0, 0, "a486");
	commit(tb, 1, 1, 1, TO_NEXT, "b100 c384");
	commit(tb, 1, 1, 2, FROM_PREV, "c100 d384");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a486", 0);
	expect_packet(tb, "b100", 0);
	expect_packet(tb, "c484", 0);
	expect_notes(&n, "a486 b100 c484 ");
	copy = whole_clone(tb, true);
	trace_buffer_begin_read(copy);
	expect_packet(copy, "d384", TB_LOSS_OVERWRITE);
	expect_end(copy);
	trace_buffer_free(copy);
}

/* A chunk that is kept for its producer's share is shown when it goes. */
static void
kept_chunks_are_shown_once_in_the_end(void **state)
{
	struct trace_buffer *tb = *state;
	struct tb_watch w;
	struct notes n;
	uint32_t id = 0;
	size_t i;

	watch(tb, &w, &n);
	assert_true(trace_buffer_guarantee(tb, 7, 50));
	commit(tb, 1, 1, 0, 0, "a486");
	push_out(tb, &id, 20);
	expect_notes(&n, "");
	commit(tb, 1, 1, 1, 0, "b486");
	commit(tb, 1, 1, 2, 0, "c486");
	commit(tb, 1, 1, 3, 0, "d486");
	commit(tb, 1, 1, 4, 0, "e486");
	push_out(tb, &id, 20);
	trace_buffer_begin_read(tb);
	while (trace_buffer_read(tb, &(struct tb_packet){ .size = 0 }))
		;
	for (i = 0; n.text[i] != '\0'; i++)
		n.text[i] |= 0x20;
	expect_notes(&n, "a486 b486 c486 d486 e486 ");
}

/* ---- At random: shown and not shown are one history ---- */

#define WRITERS 3u

/* Numbers of packets, for each writer the next one that has to come. */
struct history {
	uint32_t next[WRITERS];
};

struct random_writer {
	uint32_t chunk;   /* id of the next */
	uint32_t packets; /* begun so far */
	uint32_t rest;    /* bytes of the last that the next chunk has */
};

static uint64_t dice_state;

static uint32_t
dice(uint32_t below)
{
	dice_state = dice_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(dice_state >> 33) % below;
}

/* A packet's bytes are its number, again and again. */
static void
comes_next(struct history *h, const struct tb_packet *p)
{
	uint32_t w = p->origin->writer - 1;
	size_t i, k;

	for (i = 0; i < p->n_slices; i++)
		for (k = 0; k < p->slices[i].len; k++)
			assert_int_equal(p->slices[i].data[k],
			    h->next[w] & 0xff);
	h->next[w]++;
}

static bool
wants_all(void *arg, uint64_t producer)
{
	return true;
}

static void
note_next(void *arg, const struct tb_packet *p, bool overwritten)
{
	comes_next(arg, p);
}

static void
random_chunk(struct trace_buffer *tb, struct random_writer *writers)
{
	uint32_t w = dice(WRITERS), size, n;
	struct random_writer *to = &writers[w];
	struct build b;
	uint8_t flags = 0;

	build_start(&b);
	if (to->rest > 0) {
		flags |= FROM_PREV;
		build_fragment(&b, (char)(to->packets - 1), to->rest);
		to->rest = 0;
	}
	for (n = dice(4); n > 0; n--) {
		size = 1 + dice(200);
		build_fragment(&b, (char)to->packets++, size);
	}
	if (b.fragments > 0 && dice(3) == 0) {
		flags |= TO_NEXT;
		to->rest = 1 + dice(150);
	}
	if (b.fragments == 0)
		return;
	assert_true(trace_buffer_write(tb, &(struct tb_origin){ .producer = 1,
	    .writer = w + 1 }, &(struct tb_chunk){ .id = to->chunk++,
	    .num_fragments = b.fragments, .flags = flags, .complete = true,
	    .payload = b.bytes, .len = b.len }));
}

/* The clone begins where the listener stands, and ends at the last packet. */
static void
check_clone(struct trace_buffer *tb, const struct history *shown,
    const struct random_writer *writers, bool take)
{
	struct history h = *shown;
	struct trace_buffer *copy = whole_clone(tb, take);
	struct tb_packet p;
	uint32_t i;

	trace_buffer_begin_read(copy);
	while (trace_buffer_read(copy, &p))
		comes_next(&h, &p);
	for (i = 0; i < WRITERS; i++)
		assert_int_equal(h.next[i] + (writers[i].rest > 0),
		    writers[i].packets);
	trace_buffer_free(copy);
}

static void
no_packet_is_shown_twice_or_never(void **state)
{
	struct random_writer writers[WRITERS];
	struct trace_buffer *tb;
	struct history shown;
	struct tb_watch w = { wants_all, note_next, &shown };
	struct tb_packet p;
	uint32_t round, i, n;

	for (round = 0; round < 200; round++) {
		dice_state = round;
		memset(writers, 0, sizeof(writers));
		memset(&shown, 0, sizeof(shown));
		tb = trace_buffer_new(8192, TB_RING);
		trace_buffer_watch(tb, &w);
		for (i = 0; i < 300; i++) {
			random_chunk(tb, writers);
			if (dice(40) == 0)
				check_clone(tb, &shown, writers, false);
			if (dice(10) != 0)
				continue;
			trace_buffer_begin_read(tb);
			for (n = dice(30); n > 0 && trace_buffer_read(tb, &p);)
				n--;
		}
		check_clone(tb, &shown, writers, true);
		trace_buffer_free(tb);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(packets_are_shown_before_they_are_overwritten_in_their_order),
		RULE(chunks_that_came_out_of_order_are_shown_in_order_and_once),
		RULE(a_packet_of_several_chunks_is_shown_whole_with_its_first),
		RULE(packets_that_are_not_whole_are_not_shown),
		RULE(packets_are_shown_when_they_are_read_and_then_not_again),
		RULE(other_producers_and_cleared_packets_are_not_shown),
		RULE(a_clone_has_the_packets_that_were_not_shown),
		RULE(a_clone_has_what_is_shown_after_its_begin),
		RULE(a_buffer_that_is_taken_has_the_packets_that_were_not_shown),
		RULE(kept_chunks_are_shown_once_in_the_end),
		cmocka_unit_test(no_packet_is_shown_twice_or_never),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
