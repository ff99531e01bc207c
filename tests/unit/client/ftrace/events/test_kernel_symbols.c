#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/ftrace/events/kernel_symbols.h"

static struct kernel_symbols *k;

static int
setup(void **state)
{
	k = kernel_symbols_new();
	return k == NULL;
}

static int
teardown(void **state)
{
	kernel_symbols_free(k);
	return 0;
}

/* In parts of so many bytes. */
static size_t
feed(const char *text, size_t part)
{
	size_t len = strlen(text), n;

	while (len > 0) {
		n = part < len ? part : len;
		assert_true(kernel_symbols_feed(k, text, n));
		text += n;
		len -= n;
	}
	return kernel_symbols_end(k);
}

static const char usual[] =
    "0000000000000000 A fixed_percpu_data\n"
    "ffffffff81002000 T schedule\n"
    "ffffffff81001000 t do_one_initcall\n"
    "ffffffff81002000 T schedule_alias\n"
    "ffffffff81003000 D jiffies\n"
    "ffffffffc0004000 W virtqueue_notify\t[virtio_ring]\n"
    "ffffffffc0004800 w weak\n"
    "no line\n"
    "\n"
    "ffffffff81001800 t\n"
    "ffffffff81001800 \n"
    "ffffffff81001800 t \n"
    "12345678901234567 t too_long\n"
    "ffffffffffffffff t last";

static void
names_are_found_by_addresses_inside_of_functions(void **state)
{
	static const size_t parts[] = { 1, 2, 7, 64, 100000 };
	size_t i;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (i > 0) {
			teardown(NULL);
			setup(NULL);
		}
		/* `last` has no end of line: it is not whole. */
		assert_int_equal(feed(usual, parts[i]), 5);
		assert_string_equal(kernel_symbols_find(k, 0xffffffff81001000),
		    "do_one_initcall");
		assert_string_equal(kernel_symbols_find(k, 0xffffffff81001fff),
		    "do_one_initcall");
		/* The first of the file's two names. */
		assert_string_equal(kernel_symbols_find(k, 0xffffffff81002000),
		    "schedule");
		assert_string_equal(kernel_symbols_find(k, 0xffffffff81002abc),
		    "schedule");
		assert_string_equal(kernel_symbols_find(k, 0xffffffffc0004001),
		    "virtqueue_notify");
	}
}

static void
an_address_outside_of_functions_has_no_name(void **state)
{
	feed(usual, 1000);
	assert_null(kernel_symbols_find(k, 0));
	assert_null(kernel_symbols_find(k, 0xffffffff81000fff));
	assert_null(kernel_symbols_find(k, 0xffff888000001234));
	/* A heap's address behind all functions. */
	assert_null(kernel_symbols_find(k, 0xffffffffffff0000));
}

static void
hidden_addresses_are_no_symbols(void **state)
{
	assert_int_equal(feed("0000000000000000 T a\n0000000000000000 t b\n",
	    1000), 0);
	assert_null(kernel_symbols_find(k, 0));
	assert_null(kernel_symbols_find(k, 0xffffffff81000000));
}

static void
a_line_that_is_too_long_is_passed_over(void **state)
{
	char *text = malloc(3000);

	strcpy(text, "ffffffff81001000 t ");
	memset(text + 19, 'x', 2000);
	strcpy(text + 2019, "\nffffffff81002000 t b\n");
	assert_int_equal(feed(text, 50), 1);
	assert_string_equal(kernel_symbols_find(k, 0xffffffff81002000), "b");
	free(text);
}

static void
many_symbols_are_kept(void **state)
{
	char line[64], name[16];
	uint64_t i;

	for (i = 0; i < 100000; i++) {
		snprintf(line, sizeof(line), "%016lx t f%lu\n",
		    0xffffffff80000000 + (i * 7919 % 100000) * 16,
		    i * 7919 % 100000);
		assert_true(kernel_symbols_feed(k, line, strlen(line)));
	}
	assert_int_equal(kernel_symbols_end(k), 100000);
	for (i = 0; i < 100000; i += 997) {
		snprintf(name, sizeof(name), "f%lu", i);
		assert_string_equal(kernel_symbols_find(k,
		    0xffffffff80000000 + i * 16 + 15), name);
	}
	assert_true(kernel_symbols_bytes(k) > 100000 * 10);
	assert_true(kernel_symbols_bytes(k) < 100000 * 40);
}

int
main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(names_are_found_by_addresses_inside_of_functions),
		CASE(an_address_outside_of_functions_has_no_name),
		CASE(hidden_addresses_are_no_symbols),
		CASE(a_line_that_is_too_long_is_passed_over),
		CASE(many_symbols_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
