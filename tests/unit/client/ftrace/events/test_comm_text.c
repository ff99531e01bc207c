#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "client/ftrace/events/comm_text.h"

/* Bytes around 0 and 128, which sums of them carry into. */
static const uint8_t bytes[] = { 1, 'a', 0x7f, 0x80, 0x81, 0xff };

static void
a_names_end_is_its_first_nul(void **state)
{
	uint8_t text[COMM_BYTES], expected[COMM_BYTES];
	uint64_t half[2];
	size_t len, i, k;

	for (i = 0; i < sizeof(bytes); i++) {
		for (k = 0; k < sizeof(bytes); k++) {
			for (len = 0; len <= COMM_BYTES; len++) {
				memset(text, bytes[i], sizeof(text));
				if (len < COMM_BYTES) {
					memset(text + len, bytes[k],
					    COMM_BYTES - len);
					text[len] = 0;
				}
				memset(expected, 0, sizeof(expected));
				memcpy(expected, text, len);
				assert_int_equal(comm_text_len(text), len);
				comm_text_load(half, text);
				assert_memory_equal(half, expected,
				    sizeof(expected));
			}
		}
	}
}

static void
a_second_nul_is_no_matter(void **state)
{
	static const uint8_t text[COMM_BYTES] = "ab\0cd\0efgh\0ijkl";
	static const uint8_t zeros[COMM_BYTES];
	uint64_t half[2];

	assert_int_equal(comm_text_len(text), 2);
	assert_int_equal(comm_text_len(zeros), 0);
	comm_text_load(half, text);
	assert_memory_equal(half, "ab\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_names_end_is_its_first_nul),
		cmocka_unit_test(a_second_nul_is_no_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
