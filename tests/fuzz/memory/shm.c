/*
 * The whole shared memory is the input: whatever a producer left there is
 * scraped, taken, released and acquired, and changed in between.
 *
 * Input: one byte of page size, one of operations (n), n operations of six
 * bytes (what, page, index, three bytes of value), then the memory.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/fuzz/memory/memory.h"
#include "tests/unit/transport/shm/patched.h"
#include "transport/shm/shm.h"

#define OP_BYTES 6u
#define PAGES 4u

static volatile uint8_t sink;

/* Touches all of what was handed out. */
static void
look(const struct shm *s, const struct shm_chunk *c)
{
	size_t i;

	if (c->page >= shm_pages(s) || c->len >= shm_page_size(s) ||
	    c->num_fragments > 1023 || c->flags > 7)
		abort();
	for (i = 0; i < c->len; i++)
		sink ^= c->payload[i];
}

static bool
scraped(void *arg, const struct shm_chunk *c, bool complete)
{
	if (!complete && c->num_fragments < 2)
		abort();
	look(arg, c);
	return true;
}

static void
take_and_release_all(struct shm *s)
{
	struct shm_chunk c;
	uint32_t page, i;

	for (page = 0; page <= PAGES; page++)
		for (i = 0; i <= SHM_CHUNKS_PER_PAGE_MAX; i++)
			if (shm_take(s, page, i, &c) == SHM_TAKEN) {
				look(s, &c);
				shm_release(s, page, i);
			}
}

static void
operate(struct shm *s, uint8_t *mem, const uint8_t *op)
{
	uint32_t page = op[1], index = op[2], value;
	struct shm_chunk c;
	struct shm_slot slot;

	value = op[3] | (uint32_t)op[4] << 8 | (uint32_t)op[5] << 24;
	switch (op[0] % 6) {
	case 0:
		if (shm_take(s, page, index, &c) == SHM_TAKEN)
			look(s, &c);
		break;
	case 1:
		shm_release(s, page, index);
		break;
	case 2:
		shm_scrape(s, index % 2 == 0, scraped, s);
		break;
	case 3: /* a page's word */
		memcpy(mem + page % PAGES * shm_page_size(s), &value, 4);
		break;
	case 4: /* any word */
		memcpy(mem + (page << 8 | index) * 4 % (shm_size(s) - 4),
		    &value, 4);
		break;
	case 5:
		if (shm_acquire(s, (enum shm_layout)(index % 7), op[3], value,
		    op[4], &slot)) {
			memset(slot.payload, op[5], slot.len);
			shm_add_fragment(s, &slot);
			shm_set_flag(s, &slot, op[5]);
			clear_flag(&slot, op[4]);
			shm_complete(s, &slot);
		}
		break;
	}
}

void
fuzz_shm(const uint8_t *data, size_t size)
{
	const uint8_t *ops;
	struct shm_chunk c;
	struct shm *s;
	uint8_t *mem;
	size_t page, n, i;

	if (shm_chunk_from_bytes(data, size, &c) == 0)
		for (i = 0; i < c.len; i++)
			sink ^= c.payload[i];
	if (size < 2)
		return;
	page = SHM_PAGE_UNIT << data[0] % 4;
	n = data[1];
	data += 2;
	size -= 2;
	if (n > size / OP_BYTES)
		n = size / OP_BYTES;
	ops = data;
	data += n * OP_BYTES;
	size -= n * OP_BYTES;

	if ((s = shm_new(PAGES * page, page)) == NULL)
		return;
	mem = mmap(NULL, shm_size(s), PROT_READ | PROT_WRITE, MAP_SHARED,
	    shm_fd(s), 0);
	if (mem == MAP_FAILED)
		abort();
	memcpy(mem, data, size < shm_size(s) ? size : shm_size(s));
	shm_scrape(s, true, scraped, s);
	for (i = 0; i < n; i++)
		operate(s, mem, ops + i * OP_BYTES);
	take_and_release_all(s);
	munmap(mem, shm_size(s));
	shm_free(s);
}
