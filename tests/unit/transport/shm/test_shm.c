/*
 * The shared memory as both sides see it: one test per promise of
 * transport/shm/shm.h, with a hostile writer that changes words while they are
 * read.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/transport/shm/patched.h"
#include "transport/shm/shm.h"

#define LAST_CONTINUES 2u
#define NEEDS_PATCHING 4u

#define PAGE 4096u

static int allocations;
static bool no_memory;

void *__real_reallocarray(void *old, size_t n, size_t size);
void *__wrap_reallocarray(void *old, size_t n, size_t size);

void *
__wrap_reallocarray(void *old, size_t n, size_t size)
{
	allocations++;
	return no_memory ? NULL : __real_reallocarray(old, n, size);
}

/* The raw memory, as the other side maps it. */
static uint8_t *
other_side(const struct shm *s)
{
	void *p = mmap(NULL, shm_size(s), PROT_READ | PROT_WRITE, MAP_SHARED,
	    shm_fd(s), 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static uint32_t
page_word(const uint8_t *mem, size_t page, size_t page_size)
{
	uint32_t w;

	memcpy(&w, mem + page * page_size, sizeof(w));
	return w;
}

static void
sizes_fall_back_to_defaults_when_they_are_wrong(void **state)
{
	static const struct {
		size_t size, page, want_size, want_page;
	} t[] = {
		{ 0, 0, 256 * 1024, 4096 },
		{ 1024 * 1024, 32768, 1024 * 1024, 32768 },
		{ 1024 * 1024, 0, 1024 * 1024, 4096 },
		{ 0, 16384, 256 * 1024, 16384 },
		{ 64 * 1024 * 1024, 4096, 32 * 1024 * 1024, 4096 },
		{ 1024 * 1024, 12288, 256 * 1024, 4096 },
		{ 1024 * 1024, 65536, 256 * 1024, 4096 },
		{ 1024 * 1024, 1024, 256 * 1024, 4096 },
		{ 4096 + 1, 4096, 256 * 1024, 4096 },
		{ 4096, 8192, 256 * 1024, 4096 },
		{ SIZE_MAX, SIZE_MAX, 256 * 1024, 4096 },
	};
	size_t i, size, page;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		shm_valid_sizes(t[i].size, t[i].page, &size, &page);
		assert_int_equal(size, t[i].want_size);
		assert_int_equal(page, t[i].want_page);
	}
}

static void
memory_we_make_is_sealed_and_empty(void **state)
{
	struct shm *s = shm_new(8 * PAGE, 2 * PAGE);
	uint8_t *mem;
	size_t i;

	assert_non_null(s);
	assert_int_equal(shm_size(s), 8 * PAGE);
	assert_int_equal(shm_page_size(s), 2 * PAGE);
	assert_int_equal(shm_pages(s), 4);
	assert_int_equal(fcntl(shm_fd(s), F_GET_SEALS),
	    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	assert_int_equal(ftruncate(shm_fd(s), PAGE), -1);
	assert_int_equal(ftruncate(shm_fd(s), 16 * PAGE), -1);
	mem = other_side(s);
	for (i = 0; i < 8 * PAGE; i++)
		assert_int_equal(mem[i], 0);
	munmap(mem, 8 * PAGE);
	shm_free(s);
}

static void
wrong_sizes_are_not_made(void **state)
{
	assert_null(shm_new(0, PAGE));
	assert_null(shm_new(PAGE + 1, PAGE));
	assert_null(shm_new(3 * PAGE, 3 * PAGE));
	assert_null(shm_new(2 * SHM_SIZE_MAX, PAGE));
	assert_null(shm_new(16 * PAGE, 16 * PAGE));
}

static int
memfd(off_t size, unsigned seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void
refused(int fd, size_t page, const char *because)
{
	char err[200] = "";

	assert_null(shm_adopt(fd, page, err, sizeof(err)));
	assert_string_not_equal(err, "");
	assert_non_null(strstr(err, because));
	/* still the caller's */
	assert_int_equal(close(fd), 0);
}

static void
a_descriptor_that_can_shrink_or_is_of_a_wrong_size_is_refused(void **state)
{
	char path[] = "/tmp/tributary-shm-XXXXXX";
	int fd, fds[2];

	refused(memfd(4 * PAGE, 0), PAGE, "not sealed");
	refused(memfd(4 * PAGE, F_SEAL_GROW), PAGE, "not sealed");
	refused(memfd(4 * PAGE + 1, F_SEAL_SHRINK), PAGE, "not a multiple");
	refused(memfd(0, F_SEAL_SHRINK), PAGE, "not a multiple");
	refused(memfd(PAGE, F_SEAL_SHRINK), 2 * PAGE, "not a multiple");
	refused(memfd(4 * PAGE, F_SEAL_SHRINK), 3 * PAGE, "page");
	refused(memfd(4 * PAGE, F_SEAL_SHRINK), 0, "page");
	refused(memfd((off_t)SHM_SIZE_MAX + PAGE, F_SEAL_SHRINK), PAGE,
	    "not a multiple");
	refused(memfd(4 * PAGE, F_SEAL_SHRINK | F_SEAL_WRITE), PAGE, "map");
	assert_int_equal(pipe(fds), 0);
	close(fds[1]);
	refused(fds[0], PAGE, "no memfd");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4 * PAGE), 0);
	unlink(path);
	refused(fd, PAGE, ""); /* which sentence depends on /tmp */
}

static void
a_bad_descriptor_is_refused(void **state)
{
	char err[200] = "";

	assert_null(shm_adopt(-1, PAGE, err, sizeof(err)));
	assert_string_not_equal(err, "");
}

static void
memory_of_the_other_side_is_the_same_memory(void **state)
{
	struct shm *writer = shm_new(4 * PAGE, PAGE), *reader;
	struct shm_slot slot;
	struct shm_chunk c;
	char err[200];

	reader = shm_adopt(dup(shm_fd(writer)), PAGE, err, sizeof(err));
	assert_non_null(reader);
	assert_int_equal(shm_pages(reader), 4);
	assert_true(shm_acquire(writer, SHM_DIV1, 7, 42, 1, &slot));
	assert_int_equal(slot.len, PAGE - 16);
	memcpy(slot.payload, "hello", 5);
	shm_add_fragment(writer, &slot);
	shm_add_fragment(writer, &slot);
	shm_set_flag(writer, &slot, NEEDS_PATCHING);
	shm_complete(writer, &slot);

	assert_int_equal(shm_take(reader, slot.page, slot.index, &c),
	    SHM_TAKEN);
	assert_int_equal(c.writer_id, 7);
	assert_int_equal(c.chunk_id, 42);
	assert_int_equal(c.num_fragments, 2);
	assert_int_equal(c.flags, 1 | NEEDS_PATCHING);
	assert_int_equal(c.len, PAGE - 16);
	assert_memory_equal(c.payload, "hello", 5);
	shm_release(reader, slot.page, slot.index);
	shm_free(reader);
	shm_free(writer);
}

static void
the_words_are_laid_out_as_the_abi_says(void **state)
{
	struct shm *s = shm_new(2 * PAGE, PAGE);
	struct shm_slot slot[2];
	struct shm_chunk c;
	uint8_t *mem = other_side(s);
	static const uint8_t head[8] = { 0x44, 0x33, 0x22, 0x11, 0xef, 0x7b,
	    0x01, 0x08 }; /* id, writer 0x7bef, 1 fragment, flag 2 */

	/* 7 chunks: (4096 - 8) / 7 = 584, a multiple of 4 */
	assert_true(shm_acquire(s, SHM_DIV7, 0x7bef, 0x11223344, 2, &slot[0]));
	assert_int_equal(page_word(mem, 0, PAGE), 4u << 28 | 1);
	assert_true(shm_acquire(s, SHM_DIV7, 1, 0, 0, &slot[1]));
	assert_int_equal(page_word(mem, 0, PAGE), 4u << 28 | 5);
	assert_int_equal(slot[1].payload - slot[0].payload, 584);
	shm_add_fragment(s, &slot[0]);
	assert_memory_equal(mem + 8, head, 8);
	shm_complete(s, &slot[0]);
	assert_int_equal(page_word(mem, 0, PAGE), 4u << 28 | 7);
	assert_int_equal(shm_take(s, 0, 0, &c), SHM_TAKEN);
	assert_int_equal(page_word(mem, 0, PAGE), 4u << 28 | 6);
	shm_release(s, 0, 0);
	assert_int_equal(page_word(mem, 0, PAGE), 4u << 28 | 4);
	shm_complete(s, &slot[1]);
	assert_int_equal(shm_take(s, 0, 1, &c), SHM_TAKEN);
	shm_release(s, 0, 1);
	/* the last one frees the page's layout */
	assert_int_equal(page_word(mem, 0, PAGE), 0);
	munmap(mem, 2 * PAGE);
	shm_free(s);
}

static void
every_layout_divides_every_page_without_overlap(void **state)
{
	static const unsigned n_of[] = { 0, 1, 2, 4, 7, 14 };
	struct shm_slot slot, prev;
	size_t page, i;
	unsigned layout;
	struct shm *s;

	for (page = PAGE; page <= SHM_PAGE_MAX; page *= 2)
		for (layout = SHM_DIV1; layout <= SHM_DIV14; layout++) {
			s = shm_new(page, page);
			assert_non_null(s);
			for (i = 0; i < n_of[layout]; i++) {
				assert_true(shm_acquire(s, layout, 1,
				    (uint32_t)i, 0, &slot));
				assert_int_equal(slot.index, i);
				assert_int_equal(slot.len,
				    ((page - 8) / n_of[layout] & ~(size_t)3) -
				    8);
				if (i > 0)
					assert_ptr_equal(slot.payload,
					    prev.payload + prev.len + 8);
				memset(slot.payload, 0xff, slot.len);
				prev = slot;
			}
			assert_false(shm_acquire(s, layout, 1, 99, 0, &slot));
			shm_free(s);
		}
}

static void
acquiring_fails_when_all_is_taken_and_works_after_a_release(void **state)
{
	struct shm *s = shm_new(4 * PAGE, PAGE);
	struct shm_slot slot[8], more;
	struct shm_chunk c;
	int i;

	for (i = 0; i < 8; i++)
		assert_true(shm_acquire(s, SHM_DIV2, 1, (uint32_t)i, 0,
		    &slot[i]));
	assert_false(shm_acquire(s, SHM_DIV2, 1, 8, 0, &more));
	assert_false(shm_acquire(s, SHM_DIV14, 1, 8, 0, &more));
	shm_complete(s, &slot[5]);
	assert_false(shm_acquire(s, SHM_DIV2, 1, 8, 0, &more));
	assert_int_equal(shm_take(s, slot[5].page, slot[5].index, &c),
	    SHM_TAKEN);
	assert_false(shm_acquire(s, SHM_DIV2, 1, 8, 0, &more));
	shm_release(s, slot[5].page, slot[5].index);
	assert_true(shm_acquire(s, SHM_DIV2, 1, 8, 0, &more));
	assert_int_equal(more.page, slot[5].page);
	assert_int_equal(more.index, slot[5].index);
	shm_free(s);
}

static void
a_layout_that_does_not_exist_is_refused(void **state)
{
	struct shm *s = shm_new(PAGE, PAGE);
	struct shm_slot slot;

	assert_false(shm_acquire(s, SHM_NOT_PARTITIONED, 1, 0, 0, &slot));
	assert_false(shm_acquire(s, (enum shm_layout)6, 1, 0, 0, &slot));
	assert_true(shm_acquire(s, SHM_DIV14, 1, 0, 0, &slot));
	shm_free(s);
}

static void
the_count_of_fragments_never_runs_into_the_flags(void **state)
{
	struct shm *s = shm_new(PAGE, PAGE);
	struct shm_slot slot;
	struct shm_chunk c;
	int i;

	assert_true(shm_acquire(s, SHM_DIV1, 1, 0, 0, &slot));
	for (i = 0; i < 3000; i++)
		shm_add_fragment(s, &slot);
	shm_set_flag(s, &slot, LAST_CONTINUES | NEEDS_PATCHING);
	clear_flag(&slot, NEEDS_PATCHING);
	shm_complete(s, &slot);
	assert_int_equal(shm_take(s, 0, 0, &c), SHM_TAKEN);
	assert_int_equal(c.num_fragments, 1023);
	assert_int_equal(c.flags, LAST_CONTINUES);
	shm_free(s);
}

static void
taking_what_is_not_there_says_why(void **state)
{
	struct shm *s = shm_new(2 * PAGE, PAGE);
	struct shm_slot slot;
	struct shm_chunk c;

	assert_int_equal(shm_take(s, 0, 0, &c), SHM_BAD_INDEX);
	assert_int_equal(shm_take(s, 2, 0, &c), SHM_BAD_INDEX);
	assert_int_equal(shm_take(s, UINT32_MAX, 0, &c), SHM_BAD_INDEX);
	assert_true(shm_acquire(s, SHM_DIV4, 1, 0, 0, &slot));
	assert_int_equal(shm_take(s, 0, 4, &c), SHM_BAD_INDEX);
	assert_int_equal(shm_take(s, 0, UINT32_MAX, &c), SHM_BAD_INDEX);
	assert_int_equal(shm_take(s, 0, 0, &c), SHM_NOT_COMPLETE);
	assert_int_equal(shm_take(s, 0, 1, &c), SHM_NOT_COMPLETE);
	shm_complete(s, &slot);
	assert_int_equal(shm_take(s, 0, 0, &c), SHM_TAKEN);
	/* twice */
	assert_int_equal(shm_take(s, 0, 0, &c), SHM_NOT_COMPLETE);
	shm_free(s);
}

static void
releasing_what_is_not_being_read_changes_nothing(void **state)
{
	struct shm *s = shm_new(PAGE, PAGE);
	uint8_t *mem = other_side(s);
	struct shm_slot slot;
	uint32_t word;

	shm_release(s, 0, 0);
	shm_release(s, 1, 0);
	shm_release(s, UINT32_MAX, UINT32_MAX);
	assert_int_equal(page_word(mem, 0, PAGE), 0);
	assert_true(shm_acquire(s, SHM_DIV2, 1, 5, 0, &slot));
	word = page_word(mem, 0, PAGE);
	shm_release(s, 0, 0);
	shm_release(s, 0, 1);
	shm_release(s, 0, 2);
	assert_int_equal(page_word(mem, 0, PAGE), word);
	shm_complete(s, &slot);
	word = page_word(mem, 0, PAGE);
	shm_release(s, 0, 0);
	assert_int_equal(page_word(mem, 0, PAGE), word);
	munmap(mem, PAGE);
	shm_free(s);
}

static void
a_released_chunk_has_an_empty_header(void **state)
{
	static const uint8_t zero[8];
	struct shm *s = shm_new(PAGE, PAGE);
	uint8_t *mem = other_side(s);
	struct shm_slot slot;
	struct shm_chunk c;

	assert_true(shm_acquire(s, SHM_DIV1, 9, 5, 1, &slot));
	shm_add_fragment(s, &slot);
	shm_complete(s, &slot);
	assert_int_equal(shm_take(s, 0, 0, &c), SHM_TAKEN);
	shm_release(s, 0, 0);
	assert_memory_equal(mem + 8, zero, 8);
	munmap(mem, PAGE);
	shm_free(s);
}

static void
a_chunk_that_is_put_back_can_be_taken_again(void **state)
{
	struct shm *s = shm_new(8 * PAGE, PAGE);
	struct shm_slot slot;
	struct shm_chunk c;

	assert_true(shm_acquire(s, SHM_DIV4, 10, 3, 0, &slot));
	/* Not what is being written. */
	shm_put_back(s, slot.page, slot.index);
	assert_int_equal(shm_take(s, slot.page, slot.index, &c),
	    SHM_NOT_COMPLETE);
	shm_add_fragment(s, &slot);
	shm_complete(s, &slot);
	assert_int_equal(shm_take(s, slot.page, slot.index, &c), SHM_TAKEN);
	assert_int_equal(shm_take(s, slot.page, slot.index, &c),
	    SHM_NOT_COMPLETE);
	shm_put_back(s, slot.page, slot.index);
	assert_int_equal(shm_take(s, slot.page, slot.index, &c), SHM_TAKEN);
	assert_int_equal(c.writer_id, 10);
	assert_int_equal(c.chunk_id, 3);
	assert_int_equal(c.num_fragments, 1);
	shm_put_back(s, 8, 0);
	shm_put_back(s, 0, 4);
	shm_put_back(s, UINT32_MAX, UINT32_MAX);
	shm_free(s);
}

struct seen {
	int n;
	struct shm_chunk c[16];
	bool complete[16];
};

static bool
note(void *arg, const struct shm_chunk *c, bool complete)
{
	struct seen *seen = arg;

	assert_true(seen->n < 16);
	seen->c[seen->n] = *c;
	seen->complete[seen->n++] = complete;
	return true;
}

static void
scraping_shows_unfinished_and_finished_chunks(void **state)
{
	struct shm *s = shm_new(8 * PAGE, PAGE);
	struct shm_slot slot[5];
	struct shm_chunk c;
	struct seen seen = { 0 };
	uint8_t before[8 * PAGE], *mem = other_side(s);
	int i;

	for (i = 0; i < 5; i++) {
		assert_true(shm_acquire(s, SHM_DIV2, (uint16_t)(10 + i),
		    (uint32_t)i, 0, &slot[i]));
		shm_add_fragment(s, &slot[i]);
	}
	/* 0: one fragment, unfinished; 1: finished; 2: two, unfinished */
	shm_complete(s, &slot[1]);
	shm_add_fragment(s, &slot[2]);
	/* 3: being read; 4: three, unfinished */
	shm_complete(s, &slot[3]);
	assert_int_equal(shm_take(s, slot[3].page, slot[3].index, &c),
	    SHM_TAKEN);
	shm_add_fragment(s, &slot[4]);
	shm_add_fragment(s, &slot[4]);

	memcpy(before, mem, sizeof(before));
	/* When the reader has gone, what it was reading is left. */
	shm_scrape_left(s, note, &seen);
	assert_memory_equal(before, mem, sizeof(before));
	assert_int_equal(seen.n, 4);
	assert_int_equal(seen.c[2].writer_id, 13);
	assert_true(seen.complete[2]);
	seen.n = 0;
	shm_scrape(s, true, note, &seen);
	assert_memory_equal(before, mem, sizeof(before));

	assert_int_equal(seen.n, 3);
	assert_int_equal(seen.c[0].writer_id, 11);
	assert_true(seen.complete[0]);
	assert_int_equal(seen.c[0].num_fragments, 1);
	assert_int_equal(seen.c[1].writer_id, 12);
	assert_false(seen.complete[1]);
	assert_int_equal(seen.c[1].num_fragments, 2);
	assert_int_equal(seen.c[1].page, 1);
	assert_int_equal(seen.c[1].index, 0);
	assert_ptr_equal(seen.c[1].payload, slot[2].payload);
	assert_int_equal(seen.c[1].len, slot[2].len);
	assert_int_equal(seen.c[2].writer_id, 14);
	assert_false(seen.complete[2]);
	assert_int_equal(seen.c[2].num_fragments, 3);
	munmap(mem, 8 * PAGE);
	shm_free(s);
}

/* Each page holds one, of the writer and id that are given. */
static void
scraping_tells_what_is_behind_a_chunk_still_to_come(void **state)
{
	static const struct {
		uint16_t writer;
		uint32_t id;
		bool complete, behind;
		int shown;
	} given[] = {
		{ 1, 1, true, true, 1 },
		{ 1, 0, false, false, -1 }, /* one fragment */
		{ 1, UINT32_MAX, true, false, 0 },
		{ 2, 7, true, false, 2 }, /* another's */
		{ 3, 5, true, false, 3 },
		{ 3, 6, false, false, -1 },
	};
	struct shm *s = shm_new(8 * PAGE, PAGE);
	struct seen seen = { 0 };
	struct shm_slot slot;
	int i, n;

	for (i = 0; i < 6; i++) {
		assert_true(shm_acquire(s, SHM_DIV1, given[i].writer,
		    given[i].id, 0, &slot));
		shm_add_fragment(s, &slot);
		if (given[i].complete)
			shm_complete(s, &slot);
	}
	shm_scrape(s, true, note, &seen);
	assert_int_equal(seen.n, 4);
	for (i = 0; i < 6; i++) {
		if ((n = given[i].shown) < 0)
			continue;
		assert_int_equal(seen.c[n].chunk_id, given[i].id);
		assert_int_equal(seen.c[n].behind, given[i].behind);
	}
	/* When nobody will complete it, nothing waits for it. */
	seen.n = 0;
	shm_scrape_left(s, note, &seen);
	shm_scrape(s, false, note, &seen);
	assert_int_equal(seen.n, 8);
	for (i = 1; i < 8; i += 4) {
		assert_int_equal(seen.c[i].chunk_id, 1);
		assert_false(seen.c[i].behind);
	}
	shm_free(s);
}

static bool
note_but_leave_7(void *arg, const struct shm_chunk *c, bool complete)
{
	return note(arg, c, complete) && c->chunk_id != 7;
}

static void
scraping_shows_nothing_behind_a_chunk_that_is_left(void **state)
{
	static const struct {
		uint16_t writer;
		uint32_t id;
	} given[] = { { 1, 8 }, { 2, 9 }, { 1, 7 }, { 1, 6 }, { 2, 8 } },
	    shown[] = { { 1, 6 }, { 1, 7 }, { 2, 8 }, { 2, 9 } };
	struct shm *s = shm_new(8 * PAGE, PAGE);
	struct seen seen = { 0 };
	struct shm_slot slot;
	int i;

	for (i = 0; i < 5; i++) {
		assert_true(shm_acquire(s, SHM_DIV1, given[i].writer,
		    given[i].id, 0, &slot));
		shm_add_fragment(s, &slot);
		shm_complete(s, &slot);
	}
	shm_scrape(s, true, note_but_leave_7, &seen);
	shm_scrape(s, false, note_but_leave_7, &seen);
	shm_scrape_left(s, note_but_leave_7, &seen);
	assert_int_equal(seen.n, 12);
	for (i = 0; i < 12; i++) {
		assert_int_equal(seen.c[i].writer_id, shown[i % 4].writer);
		assert_int_equal(seen.c[i].chunk_id, shown[i % 4].id);
		assert_false(seen.c[i].behind);
	}
	shm_free(s);
}

/* It is done for each producer at each flush. */
static void
scraping_allocates_only_for_the_order_of_what_is_there(void **state)
{
	struct shm *s = shm_new(8 * PAGE, PAGE);
	struct seen seen = { 0 };
	struct shm_slot slot;

	allocations = 0;
	shm_scrape(s, true, note, &seen);
	assert_true(shm_acquire(s, SHM_DIV1, 1, 0, 0, &slot));
	shm_scrape(s, true, note, &seen); /* nothing in it yet */
	assert_int_equal(allocations, 0);
	shm_add_fragment(s, &slot);
	shm_complete(s, &slot);
	shm_scrape(s, false, note, &seen);
	assert_int_equal(seen.n, 1);
	assert_int_equal(allocations, 1);
	shm_scrape(s, true, note, &seen);
	assert_int_equal(seen.n, 2);
	assert_int_equal(allocations, 2);
	no_memory = true;
	shm_scrape(s, true, note, &seen);
	no_memory = false;
	assert_int_equal(seen.n, 3);
	shm_free(s);
}

/* A complete chunk that takes the page. */
static void
fill_page(uint8_t *mem, size_t page, size_t page_size)
{
	uint32_t word = (uint32_t)SHM_DIV1 << 28 | SHM_COMPLETE;
	uint16_t packets = 1;

	memcpy(mem + page * page_size, &word, sizeof(word));
	memcpy(mem + page * page_size + 8 + 6, &packets, sizeof(packets));
}

static blkcnt_t
memory_taken(const struct shm *s)
{
	struct stat st;

	assert_int_equal(fstat(shm_fd(s), &st), 0);
	return st.st_blocks;
}

static void
scraping_takes_no_memory_for_pages_that_nobody_wrote(void **state)
{
	static const size_t page_sizes[] = { PAGE, 4 * PAGE };
	struct seen seen = { 0 };
	struct shm *s;
	uint8_t *mem;
	blkcnt_t before;
	size_t i, size;

	for (i = 0; i < 2; i++) {
		size = page_sizes[i];
		s = shm_new(64 * size, size);
		mem = other_side(s);
		seen.n = 0;
		shm_scrape(s, true, note, &seen);
		assert_int_equal(seen.n, 0);
		assert_int_equal(memory_taken(s), 0);
		fill_page(mem, 0, size);
		fill_page(mem, 40, size);
		fill_page(mem, 41, size);
		fill_page(mem, 63, size);
		/* Its header is not there, where pages are larger. */
		mem[50 * size + size - 1] = 1;
		before = memory_taken(s);
		shm_scrape(s, true, note, &seen);
		assert_int_equal(memory_taken(s), before);
		assert_int_equal(seen.n, 4);
		assert_int_equal(seen.c[0].page, 0);
		assert_int_equal(seen.c[1].page, 40);
		assert_int_equal(seen.c[2].page, 41);
		assert_int_equal(seen.c[3].page, 63);
		munmap(mem, 64 * size);
		shm_free(s);
	}
}

static void
an_acquired_chunk_never_shows_what_was_there_before(void **state)
{
	struct shm *s = shm_new(PAGE, PAGE);
	struct shm_slot slot;
	struct shm_chunk c;
	struct seen seen = { 0 };

	/* where the headers of 14 chunks will be: packets that look real */
	assert_true(shm_acquire(s, SHM_DIV1, 1, 0, 0, &slot));
	memset(slot.payload, 0x05, slot.len);
	shm_complete(s, &slot);
	assert_int_equal(shm_take(s, 0, 0, &c), SHM_TAKEN);
	shm_release(s, 0, 0);
	while (shm_acquire(s, SHM_DIV14, 1, 1, 0, &slot))
		;
	shm_scrape(s, true, note, &seen);
	assert_int_equal(seen.n, 0);
	shm_free(s);
}

static void
a_chunk_sent_as_bytes_is_described_like_one_in_memory(void **state)
{
	static const uint8_t data[] = { 0x44, 0x33, 0x22, 0x11, 0xef, 0x7b,
	    0xff, 0xff, 'x', 'y' };
	struct shm_chunk c;

	assert_int_equal(shm_chunk_from_bytes(data, sizeof(data), &c), 0);
	assert_int_equal(c.chunk_id, 0x11223344);
	assert_int_equal(c.writer_id, 0x7bef);
	assert_int_equal(c.num_fragments, 1023);
	assert_int_equal(c.flags, 7); /* the bits that exist */
	assert_int_equal(c.len, 2);
	assert_memory_equal(c.payload, "xy", 2);
	assert_int_equal(shm_chunk_from_bytes(data, 8, &c), 0);
	assert_int_equal(c.len, 0);
	assert_int_equal(shm_chunk_from_bytes(data, 7, &c), -1);
	assert_int_equal(shm_chunk_from_bytes(data, 0, &c), -1);
}

static void
reserved_layouts_hold_no_chunks(void **state)
{
	struct shm *s = shm_new(PAGE, PAGE);
	uint8_t *mem = other_side(s);
	uint32_t layout, word;
	struct shm_slot slot;
	struct shm_chunk c;
	struct seen seen = { 0 };

	for (layout = 6; layout <= 7; layout++) {
		word = layout << 28 | 0x0fffffff;
		memcpy(mem, &word, 4);
		assert_int_equal(shm_take(s, 0, 0, &c), SHM_BAD_INDEX);
		assert_false(shm_acquire(s, SHM_DIV1, 1, 0, 0, &slot));
		shm_release(s, 0, 0);
		shm_scrape(s, true, note, &seen);
		assert_int_equal(seen.n, 0);
	}
	munmap(mem, PAGE);
	shm_free(s);
}

/* ---- threads ---- */

struct hostile {
	uint8_t *mem;
	size_t size;
	atomic_bool stop;
};

/* Writes words that look valid, and words that do not, everywhere at once. */
static void *
hostile_writer(void *arg)
{
	struct hostile *h = arg;
	uint32_t x = 2463534242u, off, v;

	while (!atomic_load(&h->stop)) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		off = (x % 4 == 0 ? x % (uint32_t)h->size :
		    x % (uint32_t)(h->size / PAGE) * PAGE) & ~3u;
		v = x % 8 << 28 | (x * 2654435761u & 0x0fffffff);
		atomic_store_explicit((_Atomic uint32_t *)(void *)
		    (h->mem + off), v, memory_order_relaxed);
	}
	return NULL;
}

static bool
check_inside(void *arg, const struct shm_chunk *c, bool complete)
{
	struct shm *s = arg;

	assert_true(c->page < shm_pages(s));
	assert_true(c->index < SHM_CHUNKS_PER_PAGE_MAX);
	assert_true(c->len + 16 <= shm_page_size(s));
	assert_true(c->num_fragments <= 1023);
	assert_true(c->flags <= 7);
	assert_true(complete || c->num_fragments >= 2);
	return true;
}

static void
a_hostile_writer_cannot_lead_the_reader_out_of_the_memory(void **state)
{
	struct shm *s = shm_new(16 * PAGE, PAGE);
	struct hostile h = { .size = 16 * PAGE };
	struct shm_slot slot;
	struct shm_chunk c;
	pthread_t t;
	uint32_t page, i, taken = 0;
	int round;

	h.mem = other_side(s);
	assert_int_equal(pthread_create(&t, NULL, hostile_writer, &h), 0);
	for (round = 0; round < 2000 || (taken < 100 && round < 2000000);
	    round++) {
		for (page = 0; page < 17; page++)
			for (i = 0; i < 15; i++)
				if (shm_take(s, page, i, &c) == SHM_TAKEN) {
					(void)check_inside(s, &c, true);
					shm_release(s, page, i);
					taken++;
				}
		shm_scrape(s, true, check_inside, s);
		if (shm_acquire(s, SHM_DIV7, 1, 1, 0, &slot)) {
			assert_true(slot.len + 16 <= PAGE);
			shm_add_fragment(s, &slot);
			shm_complete(s, &slot);
		}
	}
	atomic_store(&h.stop, true);
	pthread_join(t, NULL);
	assert_true(taken >= 100);
	munmap(h.mem, 16 * PAGE);
	shm_free(s);
}

#define WRITERS 3
#define CHUNKS_EACH 4000

struct writer_thread {
	struct shm *s;
	uint16_t id;
};

/* Numbers its chunks and fills each with a pattern of its own. */
static void *
honest_writer(void *arg)
{
	struct writer_thread *w = arg;
	struct shm_slot slot;
	uint32_t id;
	static const enum shm_layout layouts[] = { SHM_DIV1, SHM_DIV4,
	    SHM_DIV14 };

	for (id = 0; id < CHUNKS_EACH;) {
		if (!shm_acquire(w->s, layouts[w->id % 3], w->id, id, 0,
		    &slot)) {
			sched_yield();
			continue;
		}
		memset(slot.payload, (int)(w->id * 16 + id % 16), slot.len);
		shm_add_fragment(w->s, &slot);
		shm_add_fragment(w->s, &slot);
		shm_complete(w->s, &slot);
		id++;
	}
	return NULL;
}

static void
several_writers_and_a_reader_lose_and_mix_nothing(void **state)
{
	struct shm *s = shm_new(8 * PAGE, PAGE);
	struct writer_thread w[WRITERS];
	uint32_t next[WRITERS] = { 0 }, page, i, done = 0;
	bool seen[WRITERS][CHUNKS_EACH] = { 0 };
	pthread_t t[WRITERS];
	struct shm_chunk c;
	size_t k;

	for (i = 0; i < WRITERS; i++) {
		w[i] = (struct writer_thread){ s, (uint16_t)(i + 1) };
		assert_int_equal(pthread_create(&t[i], NULL, honest_writer,
		    &w[i]), 0);
	}
	while (done < WRITERS * CHUNKS_EACH)
		for (page = 0; page < shm_pages(s); page++)
			for (i = 0; i < 14; i++) {
				if (shm_take(s, page, i, &c) != SHM_TAKEN)
					continue;
				assert_in_range(c.writer_id, 1, WRITERS);
				assert_true(c.chunk_id < CHUNKS_EACH);
				assert_int_equal(c.num_fragments, 2);
				assert_false(seen[c.writer_id - 1][c.chunk_id]);
				seen[c.writer_id - 1][c.chunk_id] = true;
				next[c.writer_id - 1]++;
				for (k = 0; k < c.len; k += 97)
					assert_int_equal(c.payload[k],
					    (uint8_t)(c.writer_id * 16 +
					    c.chunk_id % 16));
				shm_release(s, page, i);
				done++;
			}
	for (i = 0; i < WRITERS; i++) {
		pthread_join(t[i], NULL);
		assert_int_equal(next[i], CHUNKS_EACH);
	}
	shm_free(s);
}

static void
a_chunk_is_known_as_scraped_until_it_is_forgotten(void **state)
{
	struct shm *s = shm_new(4 * PAGE, PAGE);
	struct shm_chunk c = { .page = 3, .index = 13 };

	assert_non_null(s);
	assert_false(shm_was_scraped(s, 3, 13));
	shm_forget_scraped(s, 3, 13);
	assert_true(shm_remember_scraped(s, &c));
	assert_true(shm_was_scraped(s, 3, 13));
	assert_false(shm_was_scraped(s, 3, 12));
	assert_false(shm_was_scraped(s, 2, 13));
	c.index = 0;
	assert_true(shm_remember_scraped(s, &c));
	shm_forget_scraped(s, 3, 13);
	assert_false(shm_was_scraped(s, 3, 13));
	assert_true(shm_was_scraped(s, 3, 0));
	shm_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    sizes_fall_back_to_defaults_when_they_are_wrong),
		cmocka_unit_test(memory_we_make_is_sealed_and_empty),
		cmocka_unit_test(wrong_sizes_are_not_made),
		cmocka_unit_test(
		    a_descriptor_that_can_shrink_or_is_of_a_wrong_size_is_refused),
		cmocka_unit_test(a_bad_descriptor_is_refused),
		cmocka_unit_test(memory_of_the_other_side_is_the_same_memory),
		cmocka_unit_test(the_words_are_laid_out_as_the_abi_says),
		cmocka_unit_test(
		    every_layout_divides_every_page_without_overlap),
		cmocka_unit_test(
		    acquiring_fails_when_all_is_taken_and_works_after_a_release),
		cmocka_unit_test(a_layout_that_does_not_exist_is_refused),
		cmocka_unit_test(
		    the_count_of_fragments_never_runs_into_the_flags),
		cmocka_unit_test(taking_what_is_not_there_says_why),
		cmocka_unit_test(
		    releasing_what_is_not_being_read_changes_nothing),
		cmocka_unit_test(a_released_chunk_has_an_empty_header),
		cmocka_unit_test(a_chunk_that_is_put_back_can_be_taken_again),
		cmocka_unit_test(
		    scraping_shows_unfinished_and_finished_chunks),
		cmocka_unit_test(
		    scraping_tells_what_is_behind_a_chunk_still_to_come),
		cmocka_unit_test(
		    scraping_shows_nothing_behind_a_chunk_that_is_left),
		cmocka_unit_test(
		    scraping_allocates_only_for_the_order_of_what_is_there),
		cmocka_unit_test(
		    scraping_takes_no_memory_for_pages_that_nobody_wrote),
		cmocka_unit_test(
		    an_acquired_chunk_never_shows_what_was_there_before),
		cmocka_unit_test(
		    a_chunk_sent_as_bytes_is_described_like_one_in_memory),
		cmocka_unit_test(reserved_layouts_hold_no_chunks),
		cmocka_unit_test(
		    a_chunk_is_known_as_scraped_until_it_is_forgotten),
		cmocka_unit_test(
		    a_hostile_writer_cannot_lead_the_reader_out_of_the_memory),
		cmocka_unit_test(
		    several_writers_and_a_reader_lose_and_mix_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
