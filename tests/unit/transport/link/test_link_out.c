#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "transport/link/link_out.h"

#define LIMIT (256u * 1024u)

static struct link_out *o;

static int
setup(void **state)
{
	return (o = link_out_new(LIMIT)) == NULL;
}

static int
teardown(void **state)
{
	link_out_free(o);
	return 0;
}

static void
put(uint32_t channel, const char *text)
{
	assert_int_equal(link_out_put(o, channel, LINK_DOWN_COMMAND, text,
	    strlen(text)), 0);
}

static void
assert_next(uint64_t number, uint32_t channel, const char *block)
{
	struct link_out_block b;

	assert_true(link_out_next(o, &b));
	assert_int_equal(b.number, number);
	assert_int_equal(b.channel, channel);
	assert_int_equal(b.len, strlen(block));
	assert_memory_equal(b.data, block, b.len);
}

static void
assert_no_next(void)
{
	struct link_out_block b;

	assert_false(link_out_next(o, &b));
}

static void
messages_of_a_channel_that_follow_each_other_share_a_block(void **state)
{
	put(1, "a");
	put(1, "bc");
	put(2, "d");
	put(1, "e");
	assert_int_equal(link_out_acked(o, 1), -1);
	assert_next(1, 1, "\x0a\x01" "a" "\x0a\x02" "bc");
	assert_next(2, 2, "\x0a\x01" "d");
	assert_next(3, 1, "\x0a\x01" "e");
	assert_no_next();
	assert_int_equal(link_out_acked(o, 4), -1);
	assert_int_equal(link_out_acked(o, 3), 0);
}

static void
a_block_that_was_sent_does_not_grow(void **state)
{
	put(1, "a");
	assert_next(1, 1, "\x0a\x01" "a");
	put(1, "b");
	assert_next(2, 1, "\x0a\x01" "b");
	assert_int_equal(link_out_resume(o, 0), 0);
	put(1, "c");
	assert_next(1, 1, "\x0a\x01" "a");
	assert_next(2, 1, "\x0a\x01" "b");
	assert_next(3, 1, "\x0a\x01" "c");
	assert_no_next();
}

static void
what_was_not_taken_is_sent_again_under_its_numbers(void **state)
{
	put(1, "a");
	put(2, "b");
	put(3, "c");
	assert_next(1, 1, "\x0a\x01" "a");
	assert_next(2, 2, "\x0a\x01" "b");
	assert_int_equal(link_out_resume(o, 1), 0);
	assert_next(2, 2, "\x0a\x01" "b");
	assert_next(3, 3, "\x0a\x01" "c");
	assert_int_equal(link_out_resume(o, 3), 0);
	assert_no_next();
	assert_int_equal(link_out_bytes(o), 0);
}

static void
an_acknowledgement_frees_and_may_come_again(void **state)
{
	size_t all, one;

	put(1, "a");
	one = link_out_bytes(o);
	assert_true(one > 3);
	put(2, "b");
	all = link_out_bytes(o);
	assert_next(1, 1, "\x0a\x01" "a");
	assert_int_equal(link_out_acked(o, 1), 0);
	assert_int_equal(link_out_bytes(o), all - one);
	assert_int_equal(link_out_acked(o, 1), 0);
	assert_int_equal(link_out_acked(o, 0), 0);
	assert_next(2, 2, "\x0a\x01" "b");
	assert_int_equal(link_out_acked(o, 2), 0);
	assert_int_equal(link_out_bytes(o), 0);
	put(2, "c");
	assert_next(3, 2, "\x0a\x01" "c");
}

static void
what_was_never_sent_is_never_acknowledged(void **state)
{
	assert_int_equal(link_out_acked(o, 1), -1);
	assert_int_equal(link_out_resume(o, 1), -1);
	put(1, "a");
	put(2, "b");
	assert_next(1, 1, "\x0a\x01" "a");
	assert_int_equal(link_out_acked(o, 2), -1);
	assert_int_equal(link_out_acked(o, UINT64_MAX), -1);
	assert_int_equal(link_out_resume(o, 2), -1);
	assert_next(2, 2, "\x0a\x01" "b");
}

static void
an_end_cannot_forget_what_it_has_taken(void **state)
{
	put(1, "a");
	assert_next(1, 1, "\x0a\x01" "a");
	assert_int_equal(link_out_acked(o, 1), 0);
	assert_int_equal(link_out_resume(o, 0), -1);
	assert_int_equal(link_out_resume(o, 1), 0);
}

static void
what_is_over_the_limit_is_refused_until_some_is_acknowledged(void **state)
{
	static uint8_t data[LINK_MESSAGE_MAX + 1];
	struct link_out_block b;
	uint32_t n = 0;

	assert_int_equal(link_out_put(o, 1, LINK_DOWN_COMMAND, data,
	    LINK_MESSAGE_MAX + 1), -1);
	assert_int_equal(link_out_bytes(o), 0);
	while (link_out_put(o, ++n, LINK_DOWN_COMMAND, data,
	    LINK_MESSAGE_MAX) == 0)
		assert_true(n < 10);
	assert_int_equal(n, 3); /* two of 96 KiB fit in 256 */
	assert_true(link_out_bytes(o) <= LIMIT);
	assert_true(link_out_next(o, &b));
	assert_true(b.len <= LINK_BLOCK_MAX);
	assert_int_equal(link_out_put(o, 3, LINK_DOWN_COMMAND, data,
	    LINK_MESSAGE_MAX), -1);
	assert_int_equal(link_out_acked(o, 1), 0);
	assert_int_equal(link_out_put(o, 3, LINK_DOWN_COMMAND, data,
	    LINK_MESSAGE_MAX), 0);
}

static void
blocks_of_one_byte_count_too(void **state)
{
	uint32_t n = 0;

	while (link_out_put(o, n, LINK_DOWN_COMMAND, "", 0) == 0)
		assert_true(++n <= LIMIT / 32);
	assert_true(n > 100);
}

static void
a_block_that_is_full_is_followed_by_another(void **state)
{
	static uint8_t data[30000];
	struct link_out_block b;
	size_t sum = 0;
	int i;

	for (i = 0; i < 8; i++)
		assert_int_equal(link_out_put(o, 1, LINK_DOWN_REFUSED, data,
		    sizeof(data)), 0);
	for (i = 0; link_out_next(o, &b); i++) {
		assert_true(b.len <= LINK_BLOCK_MAX);
		sum += b.len;
	}
	assert_int_equal(i, 3);
	assert_int_equal(sum, 8 * (sizeof(data) + 4));
}

int
main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(messages_of_a_channel_that_follow_each_other_share_a_block),
		CASE(a_block_that_was_sent_does_not_grow),
		CASE(what_was_not_taken_is_sent_again_under_its_numbers),
		CASE(an_acknowledgement_frees_and_may_come_again),
		CASE(what_was_never_sent_is_never_acknowledged),
		CASE(an_end_cannot_forget_what_it_has_taken),
		CASE(what_is_over_the_limit_is_refused_until_some_is_acknowledged),
		CASE(blocks_of_one_byte_count_too),
		CASE(a_block_that_is_full_is_followed_by_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
