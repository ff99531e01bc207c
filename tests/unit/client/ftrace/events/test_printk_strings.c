#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "client/ftrace/events/printk_strings.h"

static const char text[] =
    "0xffffffff89ae9b18 : \"sync_filesystems\"\n"
    "0xffffffff89ae3168 : \"CPU_ON\"\n"
    "0xffffffff89ae3168 : \"CPU_ON\"\n"
    "0xffffffff89ae3170 : \"with \\\"quotes\\\" and : in it\"\n"
    "0xffffffff89ae3180 : \"\"\n"
    "ffffffff89ae3190 : \"no 0x\"\n"
    "0xffffffff89ae3190 \"no colon\"\n"
    "0xffffffff89ae3190 : \"no end\n"
    "0x : \"no address\"\n"
    "0xffffffff89ae31a0 : \"the end\"";

static void
text_is_found_by_its_address_alone(void **state)
{
	struct printk_strings *s = printk_strings_new(text, strlen(text));

	assert_non_null(s);
	assert_string_equal(printk_strings_find(s, 0xffffffff89ae3168),
	    "CPU_ON");
	assert_string_equal(printk_strings_find(s, 0xffffffff89ae9b18),
	    "sync_filesystems");
	assert_string_equal(printk_strings_find(s, 0xffffffff89ae31a0),
	    "the end");
	assert_string_equal(printk_strings_find(s, 0xffffffff89ae3170),
	    "with \\\"quotes\\\" and : in it");
	assert_string_equal(printk_strings_find(s, 0xffffffff89ae3169), "");
	assert_string_equal(printk_strings_find(s, 0xffffffff89ae3190), "");
	assert_string_equal(printk_strings_find(s, 0), "");
	printk_strings_free(s);
}

static void
a_text_of_nothing_is_no_error(void **state)
{
	struct printk_strings *s = printk_strings_new("", 0);

	assert_non_null(s);
	assert_string_equal(printk_strings_find(s, 1), "");
	printk_strings_free(s);
	printk_strings_free(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_found_by_its_address_alone),
		cmocka_unit_test(a_text_of_nothing_is_no_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
