#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "link.pb-c.h"
#include "relay/outbox/outbox_internal.h"
#include "relay/outbox/spool_format.h"
#include "tests/unit/relay/outbox/outbox_world.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_reader.h"

#define MEMORY  (1u << 20)
#define SPOOL   (16u << 20)
#define LOST(cause) TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_##cause

static int
setup(void **state)
{
	static struct outbox_world w;

	world_init(&w, MEMORY);
	world_spool(&w, SPOOL);
	world_open(&w);
	outbox_set_window(w.o, 1u << 20);
	assert_int_equal(outbox_new_channel(w.o), 1);
	assert_int_equal(outbox_new_channel(w.o), 2);
	*state = &w;
	return 0;
}

static int
teardown(void **state)
{
	world_done(*state);
	return 0;
}

static void
a_link_that_another_user_made_is_not_followed(void **state)
{
	struct outbox_world *w = *state;
	char link[300], err[256] = "";
	struct outbox_setup setup = w->setup;

	if (geteuid() != 0) {
		print_message("not root: no link of another user\n");
		skip();
	}
	outbox_close(w->o);
	snprintf(link, sizeof(link), "%s-link", setup.spool_dir);
	assert_int_equal(symlink(setup.spool_dir, link), 0);
	setup.spool_dir = link;
	assert_int_equal(lchown(link, 65534, 65534), 0);
	assert_null(outbox_open(&setup, err, sizeof(err)));
	assert_non_null(strstr(err, "symbolic link"));
	assert_int_equal(lchown(link, 0, 0), 0);
	w->o = outbox_open(&setup, err, sizeof(err));
	assert_non_null(w->o);
	outbox_close(w->o);
	assert_int_equal(unlink(link), 0);
	world_open(w);
}

/* n chunks of a writer, of one packet each. */
static void
fill(struct outbox_world *w, uint32_t channel, uint32_t from, uint32_t n)
{
	struct chunk c = { .writer = 3, .buffer = 9, .fragments = 1,
		.payload = 4000 };

	for (c.id = from; c.id < from + n; c.id++)
		assert_true(world_chunk(w, channel, &c));
}

struct arrived {
	uint32_t chunks;
	uint32_t next[4]; /* of a channel, the id after the last one */
	uint64_t lost_chunks;
	uint64_t lost_packets;
	uint64_t lost_bytes;
	uint32_t cause;
	uint32_t closed;
	uint32_t gaps;
};

static void
take_block(const struct outbox_block *b, struct arrived *a)
{
	struct pb_reader r, commit;
	struct shm_chunk chunk;
	struct link_loss l;
	struct pb_field f, g;

	pb_init(&r, b->data, b->len);
	while (pb_next(&r, &f)) {
		if (f.number == LINK_UP_CLOSE)
			a->closed++;
		if (f.number == LINK_UP_LOSS) {
			assert_int_equal(link_parse_loss(&l, f.data, f.len), 0);
			a->lost_chunks += l.chunks;
			a->lost_packets += l.packets;
			a->lost_bytes += l.bytes;
			a->cause = l.cause;
		}
		if (f.number != LINK_UP_COMMIT)
			continue;
		pb_init(&commit, f.data, f.len);
		assert_true(pb_next(&commit, &g));
		pb_init(&commit, g.data, g.len);
		while (pb_next(&commit, &g) && g.number != 4)
			;
		assert_int_equal(shm_chunk_from_bytes(g.data, g.len, &chunk),
		    0);
		assert_true(chunk.chunk_id >= a->next[b->channel % 4]);
		a->gaps += chunk.chunk_id != a->next[b->channel % 4];
		a->next[b->channel % 4] = chunk.chunk_id + 1;
		a->chunks++;
	}
	assert_false(r.bad);
}

/* Takes all that comes, acknowledged and consumed. */
static struct arrived
take_all(struct outbox_world *w)
{
	struct arrived a = { .chunks = 0 };
	static uint64_t consumed, of[4];
	struct outbox_state st;
	struct outbox_block b;

	outbox_state(w->o, &st);
	if (st.last_acked == 0)
		consumed = of[0] = of[1] = of[2] = of[3] = 0;
	while (outbox_next(w->o, &b)) {
		take_block(&b, &a);
		consumed += b.len;
		assert_int_equal(outbox_acked(w->o, b.number), 0);
		assert_int_equal(outbox_consumed_in_all(w->o, consumed), 0);
		of[b.channel % 4] += b.len;
		assert_int_equal(outbox_consumed(w->o, b.channel,
		    of[b.channel % 4]), 0);
	}
	return a;
}

static struct outbox_stats
stats(struct outbox_world *w)
{
	struct outbox_stats s;

	outbox_stats(w->o, &s);
	return s;
}

/* The segment files, by number; returns how many. */
static unsigned
segments(struct outbox_world *w, char names[][400], unsigned max)
{
	struct dirent **list;
	int i, n = scandir(w->spool, &list, NULL, alphasort);
	unsigned found = 0;

	assert_true(n >= 0);
	for (i = 0; i < n; i++) {
		if (strncmp(list[i]->d_name, "spool-", 6) == 0 && found < max)
			snprintf(names[found++], 400, "%s/%s", w->spool,
			    list[i]->d_name);
		free(list[i]);
	}
	free(list);
	return found;
}

static void
overwrite(const char *name, off_t at, const void *data, size_t len)
{
	int fd = open(name, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, data, len, at), (ssize_t)len);
	close(fd);
}

static void
more_than_memory_goes_to_the_disk_and_comes_back_in_order(void **state)
{
	struct outbox_world *w = *state;
	struct arrived a;
	char names[64][400];

	fill(w, 1, 0, 2000);
	assert_true(stats(w).spool_bytes > 6u << 20);
	assert_true(stats(w).memory_bytes <= MEMORY);
	assert_true(segments(w, names, 64) > 4);
	a = take_all(w);
	assert_int_equal(a.chunks, 2000);
	assert_int_equal(a.lost_chunks, 0);
	assert_int_equal(stats(w).spool_bytes, 0);
	assert_int_equal(segments(w, names, 64), 0);
}

static void
a_later_process_finds_what_the_spool_holds(void **state)
{
	struct outbox_world *w = *state;
	struct arrived a;

	fill(w, 1, 0, 1500);
	world_reopen(w);
	outbox_set_window(w->o, 1u << 20);
	fill(w, 1, 1500, 500);
	world_reopen(w);
	outbox_set_window(w->o, 1u << 20);
	a = take_all(w);
	assert_int_equal(a.chunks, 2000);
	assert_int_equal(a.lost_chunks, 0);
	assert_int_equal(stats(w).spool_damaged, 0);
	assert_int_equal(stats(w).spool_cut_bytes, 0);
}

static void
a_damaged_block_is_counted_and_skipped(void **state)
{
	struct outbox_world *w = *state;
	struct arrived a;
	char names[64][400];

	fill(w, 1, 0, 1000);
	assert_true(segments(w, names, 64) > 1);
	overwrite(names[0], SPOOL_HEAD_BYTES + 100, "damage", 6);
	a = take_all(w);
	assert_true(a.lost_chunks > 0);
	assert_int_equal(a.chunks + a.lost_chunks, 1000);
	assert_int_equal(a.lost_packets, a.lost_chunks);
	assert_int_equal(a.cause, LOST(SPOOL_DAMAGED));
	assert_int_equal(stats(w).spool_damaged, 1);
	assert_int_equal(stats(w).chunks_lost[LOST(SPOOL_DAMAGED)],
	    a.lost_chunks);
}

static void
a_record_whose_head_is_damaged_is_counted_by_what_is_missing(void **state)
{
	struct outbox_world *w = *state;
	struct arrived a;
	char names[64][400];

	fill(w, 1, 0, 1000);
	assert_true(segments(w, names, 64) > 1);
	overwrite(names[0], 20, "damage", 6);
	world_reopen(w);
	outbox_set_window(w->o, 1u << 20);
	assert_true(stats(w).spool_damaged > 0);
	a = take_all(w);
	assert_true(a.lost_chunks > 0);
	assert_int_equal(a.chunks + a.lost_chunks, 1000);
	assert_int_equal(a.lost_packets, a.lost_chunks);
	assert_int_equal(a.cause, LOST(SPOOL_DAMAGED));
}

static void
a_torn_end_is_cut_off_and_counted(void **state)
{
	struct outbox_world *w = *state;
	struct arrived a;
	struct stat st;
	char names[64][400];
	unsigned n;

	fill(w, 1, 0, 1000);
	n = segments(w, names, 64);
	assert_true(n > 1);
	assert_int_equal(stat(names[n - 1], &st), 0);
	assert_int_equal(truncate(names[n - 1], st.st_size - 300), 0);
	world_reopen(w);
	outbox_set_window(w->o, 1u << 20);
	assert_true(stats(w).spool_cut_bytes > 300);
	a = take_all(w);
	assert_true(a.lost_chunks > 0);
	assert_int_equal(a.chunks + a.lost_chunks, 1000);
	assert_int_equal(a.cause, LOST(SPOOL_DAMAGED));
}

static void
a_segment_that_is_gone_does_not_stop_the_rest(void **state)
{
	struct outbox_world *w = *state;
	struct arrived a;
	char names[64][400];

	fill(w, 1, 0, 1000);
	assert_true(segments(w, names, 64) > 1);
	assert_int_equal(unlink(names[0]), 0);
	a = take_all(w);
	assert_true(a.lost_chunks > 0);
	assert_int_equal(a.chunks + a.lost_chunks, 1000);
	assert_int_equal(a.cause, LOST(DISK));
}

/* Not a record is harmed: only their numbers tell. */
static void
a_segment_that_was_taken_away_between_processes_is_told(void **state)
{
	struct outbox_world *w = *state;
	struct arrived a;
	char names[64][400];

	fill(w, 1, 0, 1000);
	assert_true(segments(w, names, 64) > 1);
	outbox_close(w->o);
	assert_int_equal(unlink(names[0]), 0);
	world_open(w);
	outbox_set_window(w->o, 1u << 20);
	a = take_all(w);
	assert_true(a.lost_chunks > 0);
	assert_int_equal(a.chunks + a.lost_chunks, 1000);
	assert_int_equal(a.cause, LOST(SPOOL_DAMAGED));
}

static void
a_close_is_not_lost_with_its_block(void **state)
{
	struct outbox_world *w = *state;
	struct arrived a;
	char names[64][400], zeros[4096] = { 0 };
	unsigned i, n;
	struct stat st;
	off_t at;

	fill(w, 1, 0, 30);
	outbox_put(w->o, 1, LINK_UP_CLOSE, NULL, 0, 0);
	fill(w, 2, 0, 1000);
	n = segments(w, names, 64);
	memset(zeros, 'x', sizeof(zeros));
	for (i = 0; i < n; i++) {
		assert_int_equal(stat(names[i], &st), 0);
		for (at = SPOOL_ALIGN; at < st.st_size; at += SPOOL_ALIGN)
			overwrite(names[i], at - 200, zeros, 200);
	}
	a = take_all(w);
	assert_int_equal(a.closed, 1);
	assert_int_equal(a.lost_chunks, stats(w).chunks_lost[
	    LOST(SPOOL_DAMAGED)]);
}

static void
when_both_are_full_the_oldest_go(void **state)
{
	struct outbox_world *w = *state;
	struct arrived a;

	fill(w, 1, 0, 6000);
	assert_true(stats(w).spool_bytes <= SPOOL);
	assert_true(stats(w).chunks_lost[LOST(SPOOL_FULL)] > 1000);
	a = take_all(w);
	assert_int_equal(a.next[1], 6000);
	assert_int_equal(a.chunks + a.lost_chunks, 6000);
	assert_int_equal(a.lost_packets, a.lost_chunks);
	assert_int_equal(a.lost_bytes, 4000 * a.lost_chunks);
	assert_int_equal(a.cause, LOST(SPOOL_FULL));
}

static void
or_the_newest_do_by_setting(void **state)
{
	struct outbox_world *w = *state;
	struct arrived a;

	outbox_close(w->o);
	w->setup.drop = RELAY_DROP_NEWEST;
	world_open(w);
	outbox_set_window(w->o, 1u << 20);
	fill(w, 1, 0, 6000);
	assert_true(stats(w).chunks_lost[LOST(SPOOL_FULL)] > 1000);
	a = take_all(w);
	assert_true(a.chunks > 4000);
	assert_int_equal(a.chunks + a.lost_chunks, 6000);
	assert_int_equal(a.lost_packets, a.lost_chunks);
}

static void
a_disk_that_takes_nothing_is_told_and_memory_goes_on(void **state)
{
	struct outbox_world *w = *state;
	struct rlimit old, none;
	struct arrived a;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	none = old;
	none.rlim_cur = 4096;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	fill(w, 1, 0, 1000);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_non_null(stats(w).spool_error);
	assert_int_equal(w->overflows, 0);
	a = take_all(w);
	assert_true(a.chunks > 50);
	assert_int_equal(a.chunks + a.lost_chunks, 1000);
	assert_int_equal(a.lost_packets, a.lost_chunks);
	assert_int_equal(a.cause, LOST(DISK));
	signal(SIGXFSZ, SIG_DFL);
}

/* From now on nothing can be written to the disk, or all again. */
static void
disk_fails(struct outbox_world *w, bool fails)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = fails ? 4096 : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	if (!fails)
		ob_retry_cb(w->o);
}

/* Chunks with nothing but the middle of one packet. */
static void
fill_within(struct outbox_world *w, uint32_t *id, uint32_t n)
{
	struct chunk c = { .writer = 3, .buffer = 9, .fragments = 1,
		.flags = SHM_FIRST_CONTINUES_FROM_PREV |
		    SHM_LAST_CONTINUES_ON_NEXT, .payload = 4000 };
	uint32_t to = *id + n;

	for (; *id < to; (*id)++) {
		c.id = *id;
		assert_true(world_chunk(w, 1, &c));
	}
}

static void
a_packet_across_what_the_disk_took_is_lost_once(void **state)
{
	struct outbox_world *w = *state;
	struct chunk first = { .writer = 3, .buffer = 9, .fragments = 1,
		.flags = SHM_LAST_CONTINUES_ON_NEXT, .payload = 4000 };
	struct arrived a;
	uint32_t id = 1;

	assert_true(world_chunk(w, 1, &first));
	disk_fails(w, true);
	fill_within(w, &id, 400);
	disk_fails(w, false);
	fill_within(w, &id, 20);
	disk_fails(w, true);
	fill_within(w, &id, 400);
	disk_fails(w, false);
	a = take_all(w);
	assert_int_equal(a.chunks + a.lost_chunks, id);
	assert_int_equal(a.gaps, 2);
	assert_int_equal(a.lost_packets, 1);
	assert_int_equal(stats(w).packets_lost[LOST(DISK)], 1);
}

static void
two_relays_cannot_share_a_spool(void **state)
{
	struct outbox_world *w = *state;
	struct outbox_setup s = w->setup;
	char err[256] = "";

	s.state_dirfd = -1;
	assert_null(outbox_open(&s, err, sizeof(err)));
	assert_non_null(strstr(err, "another relay"));
}

static void
without_its_memory_what_the_spool_holds_is_counted_as_lost(void **state)
{
	struct outbox_world *w = *state;
	struct link_loss l[8];
	struct outbox_state before, after;
	uint64_t chunks = 0;
	char name[128];
	size_t i, n;

	fill(w, 1, 0, 1000);
	outbox_state(w->o, &before);
	outbox_close(w->o);
	snprintf(name, sizeof(name), "%s/outbox", w->dir);
	assert_int_equal(unlink(name), 0); /* as after a boot */
	world_open(w);
	outbox_state(w->o, &after);
	assert_memory_not_equal(before.link_id, after.link_id, LINK_ID_BYTES);
	assert_memory_equal(before.relay_id, after.relay_id, LINK_ID_BYTES);
	n = outbox_take_old_losses(w->o, l, 8);
	assert_true(n > 0);
	for (i = 0; i < n; i++) {
		assert_int_equal(l[i].old_channel, 1);
		assert_int_equal(l[i].writer, 3);
		chunks += l[i].chunks;
	}
	assert_true(chunks > 700 && chunks <= 1000);
	assert_int_equal(stats(w).spool_bytes, 0);
	assert_int_equal(outbox_take_old_losses(w->o, l, 8), 0);
}

static void
a_reset_counts_all_in_memory_and_in_the_spool(void **state)
{
	struct outbox_world *w = *state;
	struct outbox_state before, after;
	struct link_loss l[8];
	struct outbox_block b;

	fill(w, 1, 0, 1000);
	assert_true(outbox_next(w->o, &b));
	outbox_state(w->o, &before);
	outbox_reset(w->o, LOST(COLLECTOR_RESTARTED));
	outbox_state(w->o, &after);
	assert_memory_not_equal(before.link_id, after.link_id, LINK_ID_BYTES);
	assert_int_equal(after.last_sent, 0);
	assert_false(outbox_next(w->o, &b));
	assert_int_equal(outbox_take_old_losses(w->o, l, 8), 1);
	assert_int_equal(l[0].old_channel, 1);
	assert_int_equal(l[0].writer, 3);
	assert_int_equal(l[0].buffer, 9);
	assert_int_equal(l[0].chunks, 1000);
	assert_int_equal(l[0].packets, 1000);
	assert_int_equal(l[0].bytes, 4000 * 1000);
	assert_int_equal(l[0].cause, LOST(COLLECTOR_RESTARTED));
	assert_int_equal(stats(w).memory_bytes, 0);
	assert_int_equal(stats(w).spool_bytes, 0);
	/* And it goes on. */
	outbox_set_window(w->o, 1u << 20);
	fill(w, 1, 0, 10);
	assert_int_equal(take_all(w).chunks, 10);
}

/* The one that is kept to tell of a block, too. */
static void
take_every_page(struct outbox_world *w)
{
	w->o->spare = ARENA_NONE;
	world_take_every_page(w);
}

static void
what_is_read_ahead_leaves_the_pages_for_what_must_not_be_dropped(void **state)
{
	struct outbox_world *w = *state;
	uint32_t kept = MEMORY / ARENA_PAGE / 16, i;
	struct outbox_block b;

	/* Blocks of ten pages. */
	for (i = 0; i < 90; i++) {
		fill(w, 1, 10 * i, 10);
		ob_block_close(w->o, ob_channel_find(w->o, 1)->open);
	}
	while (w->o->arena.free_pages > kept + 4)
		assert_int_not_equal(arena_take(&w->o->arena, 1), ARENA_NONE);
	for (i = 0; i < 20 && outbox_next(w->o, &b); i++)
		assert_in_range(w->o->arena.free_pages, kept,
		    MEMORY / ARENA_PAGE);
	assert_true(i > 0);
}

/*
 * A process before this one may have had blocks where the gate is.  Nothing
 * could be read back then, and nothing was ever sent again.  Fills all there is,
 * and puts one block there.  Returns the number of chunks.
 */
static uint32_t
fill_with_the_read_reserve(struct outbox_world *w)
{
	struct outbox *o = w->o;
	uint32_t i;

	o->drop = RELAY_DROP_NEWEST;
	o->spool.limit = SPOOL / 8;
	for (i = 0; stats(w).chunks_lost[LOST(SPOOL_FULL)] == 0; i++) {
		fill(w, 1, i, 1);
		if (i % 8 == 7 && ob_channel_find(o, 1)->open != NULL)
			ob_block_close(o, ob_channel_find(o, 1)->open);
	}
	assert_int_equal(o->spool.read_reserve, RESERVE_FREE);
	o->spool.read_reserve = RESERVE_MISSING;
	arena_give(&o->arena, 0, OB_READ_RESERVE);
	o->arena.set_apart = 0;
	fill(w, 1, i++, 1);
	ob_block_close(o, ob_channel_find(o, 1)->open);
	assert_int_equal(TAILQ_LAST(&ob_channel_find(o, 1)->blocks,
	    ob_blocks)->page, 0);
	o->arena.set_apart = OB_READ_RESERVE;
	return i;
}

static void
without_pages_in_a_row_the_spool_is_read_all_the_same(void **state)
{
	struct outbox_world *w = *state;
	struct arrived a;
	uint32_t n;

	n = fill_with_the_read_reserve(w);
	take_every_page(w);
	a = take_all(w);
	assert_int_equal(a.chunks + a.lost_chunks, n);
	assert_int_equal(stats(w).spool_bytes, 0);
	assert_int_not_equal(w->o->spool.read_reserve, RESERVE_MISSING);
}

static void
what_lies_in_the_read_reserve_moves_where_there_is_room(void **state)
{
	struct outbox_world *w = *state;
	uint32_t n, page;
	uint64_t lost;
	struct arrived a;

	n = fill_with_the_read_reserve(w);
	lost = stats(w).chunks_lost[LOST(SPOOL_FULL)];
	page = arena_take(&w->o->arena, 1);
	assert_int_not_equal(page, ARENA_NONE);
	take_every_page(w);
	arena_give(&w->o->arena, page, 1);
	a = take_all(w);
	assert_int_equal(a.chunks + a.lost_chunks, n);
	assert_int_equal(stats(w).chunks_lost[LOST(SPOOL_FULL)], lost);
	assert_int_not_equal(w->o->spool.read_reserve, RESERVE_MISSING);
}

/* It could not be told in this link, and was told in none. */
static void
what_is_dropped_without_a_page_to_tell_it_is_counted_with_its_link(
    void **state)
{
	struct outbox_world *w = *state;
	struct outbox *o = w->o;
	struct link_loss l[8];
	uint64_t told = 0;
	size_t n, i, lost = 0;

	fill(w, 1, 0, 1000);
	/* Those in memory, first, are told where they stood. */
	while (w->overflows == 0) {
		take_every_page(w);
		told = stats(w).chunks_lost[LOST(SPOOL_FULL)];
		assert_true(ob_drop_in_spool(o));
		while (disk_reap(o->spool.disk) > 0)
			;
		world_turn(w);
	}
	assert_int_equal(stats(w).chunks_lost[LOST(SPOOL_FULL)], told);
	assert_false(ob_drop_in_spool(o)); /* it ends: nothing is dropped any more */
	outbox_reset(o, LOST(GRACE));
	while ((n = outbox_take_old_losses(o, l, 8)) > 0)
		for (i = 0; i < n; i++)
			lost += l[i].chunks;
	assert_int_equal(lost, 1000);
	assert_int_equal(stats(w).chunks_lost[LOST(GRACE)], 1000 - told);
}

static void
with_a_thread_no_call_waits_and_all_arrives(void **state)
{
	struct outbox_world *w = *state;
	uint32_t id = 0, taken = 0, idle = 0;
	struct arrived a;

	outbox_close(w->o);
	w->setup.synchronous = false;
	w->setup.fsync = RELAY_FSYNC_PERIODIC;
	world_open(w);
	while (id < 3000) {
		world_turn(w);
		if (!outbox_is_busy(w->o))
			fill(w, 1, id++, 1);
	}
	outbox_set_window(w->o, 1u << 20);
	while (taken < 3000 && idle < 100000000) {
		world_turn(w);
		a = take_all(w);
		assert_int_equal(a.lost_chunks, 0);
		taken += a.chunks;
		idle = a.chunks > 0 ? 0 : idle + 1;
	}
	assert_int_equal(taken, 3000);
}

static void
a_head_is_read_as_it_was_written_and_no_bit_may_change(void **state)
{
	struct spool_record r = { .channel = 7, .len = 500, .first = 3,
		.last = 4, .time_ms = 9, .closes = true, .chunks = 1,
		.packets = 2, .bytes = 3, .crc = 4 }, got;
	uint8_t head[SPOOL_HEAD_BYTES];
	unsigned bit;

	memset(r.tag, 5, sizeof(r.tag));
	spool_put_head(head, &r);
	memset(&got, 0, sizeof(got));
	assert_int_equal(spool_read_head(head, &got), SPOOL_RECORD);
	assert_memory_equal(got.tag, r.tag, sizeof(r.tag));
	assert_int_equal(got.channel, 7);
	assert_int_equal(got.len, 500);
	assert_int_equal(got.last, 4);
	assert_true(got.closes);
	assert_int_equal(got.crc, 4);
	for (bit = 0; bit < 8 * SPOOL_HEAD_BYTES; bit++) {
		head[bit / 8] ^= 1u << bit % 8;
		assert_int_equal(spool_read_head(head, &got), SPOOL_DAMAGED);
		head[bit / 8] ^= 1u << bit % 8;
	}
	/* The standard's example. */
	assert_int_equal(spool_crc("123456789", 9), 0xcbf43926u);
}

/* Or a link to any file of ours could be a spool's torn end. */
static void
a_folder_that_others_may_write_to_is_refused(void **state)
{
	struct outbox_world *w = *state;
	char err[256];

	outbox_close(w->o);
	assert_int_equal(chmod(w->spool, 0777), 0);
	w->o = outbox_open(&w->setup, err, sizeof(err));
	assert_null(w->o);
	assert_non_null(strstr(err, "chmod go-w"));
	assert_int_equal(chmod(w->spool, 0700), 0);
	world_open(w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(a_link_that_another_user_made_is_not_followed),
		T(more_than_memory_goes_to_the_disk_and_comes_back_in_order),
		T(a_later_process_finds_what_the_spool_holds),
		T(a_damaged_block_is_counted_and_skipped),
		T(a_record_whose_head_is_damaged_is_counted_by_what_is_missing),
		T(a_torn_end_is_cut_off_and_counted),
		T(a_segment_that_is_gone_does_not_stop_the_rest),
		T(a_segment_that_was_taken_away_between_processes_is_told),
		T(a_close_is_not_lost_with_its_block),
		T(when_both_are_full_the_oldest_go),
		T(a_folder_that_others_may_write_to_is_refused),
		T(or_the_newest_do_by_setting),
		T(a_disk_that_takes_nothing_is_told_and_memory_goes_on),
		T(a_packet_across_what_the_disk_took_is_lost_once),
		T(two_relays_cannot_share_a_spool),
		T(without_its_memory_what_the_spool_holds_is_counted_as_lost),
		T(a_reset_counts_all_in_memory_and_in_the_spool),
		T(what_is_read_ahead_leaves_the_pages_for_what_must_not_be_dropped),
		T(without_pages_in_a_row_the_spool_is_read_all_the_same),
		T(what_lies_in_the_read_reserve_moves_where_there_is_room),
		T(what_is_dropped_without_a_page_to_tell_it_is_counted_with_its_link),
		T(with_a_thread_no_call_waits_and_all_arrives),
		cmocka_unit_test(
		    a_head_is_read_as_it_was_written_and_no_bit_may_change),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
