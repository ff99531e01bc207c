#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "transport/sink/packet_boundary.h"

static void
whole_packets_are_kept_whole(void **state)
{
	static const uint8_t two[] = { 0x0a, 2, 1, 2, 0x0a, 0 };

	assert_int_equal(packet_boundary(two, sizeof(two)), sizeof(two));
	assert_int_equal(packet_boundary(two, 0), 0);
}

static void
a_cut_packet_is_left_out_wherever_it_is_cut(void **state)
{
	static const uint8_t p[] = {
		0x0a, 3, 1, 2, 3,               /* ends at 5 */
		0x0a, 0x82, 0x80, 0x00, 7, 7,   /* a long length; ends at 11 */
		0x0a, 1, 9,                     /* ends at 14 */
	};
	size_t len, want;

	for (len = 0; len <= sizeof(p); len++) {
		want = len >= 14 ? 14 : len >= 11 ? 11 : len >= 5 ? 5 : 0;
		assert_int_equal(packet_boundary(p, len), want);
	}
}

static void
a_length_that_wraps_around_ends_the_walk(void **state)
{
	uint8_t p[] = { 0x0a, 0, 0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 1, 0, 0 };

	assert_int_equal(packet_boundary(p, sizeof(p)), 2);
	p[12] = 0xff; /* a varint of more than ten bytes */
	assert_int_equal(packet_boundary(p, sizeof(p)), 2);
}

static void
what_is_no_packet_ends_the_walk(void **state)
{
	static const uint8_t p[] = { 0x0a, 1, 5, 0x12, 1, 5 };

	assert_int_equal(packet_boundary(p, sizeof(p)), 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_packets_are_kept_whole),
		cmocka_unit_test(a_cut_packet_is_left_out_wherever_it_is_cut),
		cmocka_unit_test(a_length_that_wraps_around_ends_the_walk),
		cmocka_unit_test(what_is_no_packet_ends_the_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
