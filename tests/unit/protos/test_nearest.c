/*
 * Which name a mistyped word was meant to be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "protos/nearest.h"

static const char *const names[] = { "duration_ms", "data_sources", "buffers",
    "buffers_extra", "flush_period_ms", "flush_timeout_ms", "ON" };

static const char *
nearest(const char *word)
{
	struct nearest n;
	size_t i;

	nearest_init(&n, word, strlen(word));
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		nearest_offer(&n, names[i]);
	return nearest_best(&n);
}

static void
a_slip_of_the_fingers_is_found(void **state)
{
	assert_string_equal(nearest("bufers"), "buffers");     /* missing */
	assert_string_equal(nearest("bufffers"), "buffers");   /* doubled */
	assert_string_equal(nearest("bufferx"), "buffers");    /* wrong */
	assert_string_equal(nearest("ubffers"), "buffers");    /* swapped */
	assert_string_equal(nearest("BUFFERS"), "buffers");    /* case */
	assert_string_equal(nearest("flush_perod_ms"), "flush_period_ms");
}

static void
a_beginning_is_found_behind_a_slip(void **state)
{
	assert_string_equal(nearest("duration"), "duration_ms");
	assert_string_equal(nearest("duration_ms_max"), "duration_ms");
	assert_string_equal(nearest("buf"), "buffers");
	assert_null(nearest("bu"));
}

static void
what_is_not_near_is_not_guessed(void **state)
{
	assert_null(nearest("xyzzy"));
	assert_null(nearest(""));
	assert_null(nearest("NO-"));
	assert_string_equal(nearest("NO"), "ON");
}

static void
words_of_any_length_are_safe(void **state)
{
	char word[300];
	size_t len;

	memset(word, 'a', sizeof(word));
	for (len = 0; len < sizeof(word); len++) {
		struct nearest n;

		word[len] = '\0';
		nearest_init(&n, word, len);
		nearest_offer(&n, word);
		if (len > 0 && len <= NEAREST_MAX_WORD)
			assert_ptr_equal(nearest_best(&n), word);
		else
			assert_null(nearest_best(&n));
		word[len] = 'a';
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slip_of_the_fingers_is_found),
		cmocka_unit_test(a_beginning_is_found_behind_a_slip),
		cmocka_unit_test(what_is_not_near_is_not_guessed),
		cmocka_unit_test(words_of_any_length_are_safe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
