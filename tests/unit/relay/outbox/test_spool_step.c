#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "relay/outbox/spool_format.h"

/* Two pages, the second almost not there: a block of 4032 bytes. */
#define BLOCK 4032u
#define SIZE  (SPOOL_HEAD_BYTES + BLOCK)
#define NEXT  (2u * SPOOL_ALIGN)

static uint8_t file[4 * SPOOL_ALIGN];

static int
setup(void **state)
{
	struct spool_record r = { .channel = 1, .len = BLOCK, .first = 1,
		.last = 1 };

	memset(file, 0, sizeof(file));
	spool_put_head(file, &r);
	memset(file + SPOOL_HEAD_BYTES, 0x55, BLOCK);
	r.first = r.last = 2;
	spool_put_head(file + NEXT, &r);
	memset(file + NEXT + SPOOL_HEAD_BYTES, 0x55, BLOCK);
	return 0;
}

static bool
read_file(void *arg, uint64_t at, uint8_t head[SPOOL_HEAD_BYTES])
{
	memcpy(head, file + at, SPOOL_HEAD_BYTES);
	return true;
}

/* "R1 R2 ": what a reader of so many bytes finds. */
static const char *
found(uint64_t end)
{
	struct spool_walk w = { .read = read_file, .end = end };
	static char out[64];
	struct spool_record r;
	enum spool_step step;
	uint64_t where;

	out[0] = '\0';
	while ((step = spool_step(&w, &r, &where)) != SPOOL_STEP_END) {
		switch (step) {
		case SPOOL_STEP_RECORD:
			strcat(out, r.first == 1 ? "R1 " : "R2 ");
			break;
		case SPOOL_STEP_DAMAGE:
			strcat(out, "damage ");
			break;
		case SPOOL_STEP_TORN:
			strcat(out, "torn ");
			break;
		case SPOOL_STEP_END:
			break;
		}
	}
	return out;
}

static void
whole_records_are_found(void **state)
{
	assert_string_equal(found(NEXT + SIZE), "R1 R2 ");
	assert_string_equal(found(SIZE), "R1 ");
}

static void
the_rest_of_what_was_punched_out_is_not_torn(void **state)
{
	memset(file + NEXT, 0, SIZE);
	assert_string_equal(found(NEXT + SIZE), "R1 ");
	memset(file, 0, SIZE);
	assert_string_equal(found(SIZE), "");
}

static void
the_block_of_a_dead_record_is_stepped_over(void **state)
{
	memcpy(file, spool_dead, SPOOL_DEAD_BYTES);
	assert_string_equal(found(NEXT + SIZE), "R2 ");
	memcpy(file + NEXT, spool_dead, SPOOL_DEAD_BYTES);
	assert_string_equal(found(NEXT + SIZE), "");
}

static void
a_torn_or_damaged_record_is_one(void **state)
{
	assert_string_equal(found(NEXT + SIZE - 1), "R1 torn ");
	assert_string_equal(found(NEXT + 60), "R1 torn ");
	file[40] ^= 1;
	assert_string_equal(found(NEXT + SIZE), "damage R2 ");
}

int
main(void)
{
#define CASE(fn) cmocka_unit_test_setup(fn, setup)
	const struct CMUnitTest tests[] = {
		CASE(whole_records_are_found),
		CASE(the_rest_of_what_was_punched_out_is_not_torn),
		CASE(the_block_of_a_dead_record_is_stepped_over),
		CASE(a_torn_or_damaged_record_is_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
