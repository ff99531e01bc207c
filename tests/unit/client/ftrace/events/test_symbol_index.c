#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "client/ftrace/events/kernel_symbols.h"
#include "client/ftrace/events/symbol_index.h"
#include "client/tracing/packet/packet.h"
#include "protos/trace_packet.pb-c.h"

#define FUNCTION UINT64_C(0xffffffff81001000)

static struct symbol_index s;
static struct kernel_symbols *names;

static int
setup(void **state)
{
	static const char text[] = "ffffffff81001000 t one\n"
	    "ffffffff81002000 t two\n";

	memset(&s, 0, sizeof(s));
	names = kernel_symbols_new();
	assert_non_null(names);
	assert_true(kernel_symbols_feed(names, text, strlen(text)));
	assert_int_equal(kernel_symbols_end(names), 2);
	return 0;
}

static int
teardown(void **state)
{
	symbol_index_done(&s);
	kernel_symbols_free(names);
	return 0;
}

/* Writes what is new; the names, in order, are `expected`. */
static void
assert_written(const char *expected, bool clears)
{
	Perfetto__Protos__TracePacket *p;
	struct tributary_packet packet;
	char text[256] = "";
	size_t i, n, len = 0;

	packet_init(&packet);
	symbol_index_write(&s, names, &packet);
	assert_int_equal((packet.flags & 1) != 0, clears);
	p = perfetto__protos__trace_packet__unpack(NULL, packet_len(&packet),
	    packet.data);
	assert_non_null(p);
	n = p->interned_data == NULL ? 0 : p->interned_data->n_kernel_symbols;
	for (i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
		    "%lu=%.*s ", p->interned_data->kernel_symbols[i]->iid,
		    (int)p->interned_data->kernel_symbols[i]->str.len,
		    (char *)p->interned_data->kernel_symbols[i]->str.data);
	assert_string_equal(text, expected);
	perfetto__protos__trace_packet__free_unpacked(p, NULL);
	packet_done(&packet);
}

static void
addresses_are_numbered_in_the_order_that_they_come_in(void **state)
{
	uint64_t i;

	assert_int_equal(symbol_index_add(&s, 0), 0);
	for (i = 0; i < 5000; i++)
		assert_int_equal(symbol_index_add(&s, FUNCTION + i * 16),
		    i + 1);
	for (i = 0; i < 5000; i++)
		assert_int_equal(symbol_index_add(&s, FUNCTION + i * 16),
		    i + 1);
	assert_int_equal(s.n_missed, 0);
}

static void
each_name_is_written_once(void **state)
{
	/* A packet without events may be dropped, and its flags with it. */
	assert_written("", false);
	symbol_index_add(&s, FUNCTION + 8);
	symbol_index_add(&s, 0xffff888000000000);
	assert_written("1=one ", true);
	assert_written("", false);
	symbol_index_add(&s, FUNCTION + 8);
	symbol_index_add(&s, FUNCTION + 0x1000);
	assert_written("3=two ", false);
	assert_written("", false);
}

static void
after_the_state_was_cleared_numbers_begin_anew(void **state)
{
	symbol_index_add(&s, FUNCTION);
	assert_written("1=one ", true);
	symbol_index_clear(&s);
	/* Also without a name: an old one must not be taken for it. */
	assert_int_equal(symbol_index_add(&s, 0xffff888000000000), 1);
	assert_written("", true);
	assert_int_equal(symbol_index_add(&s, FUNCTION), 2);
	assert_written("2=one ", false);
}

static void
an_index_that_is_full_gives_no_more_numbers(void **state)
{
	uint64_t i;

	for (i = 1; i <= SYMBOL_INDEX_MAX; i++)
		assert_int_equal(symbol_index_add(&s, i << 8), i);
	assert_int_equal(symbol_index_add(&s, i << 8), 0);
	assert_int_equal(symbol_index_add(&s, 1 << 8), 1);
	assert_int_equal(s.n_missed, 1);
}

int
main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(addresses_are_numbered_in_the_order_that_they_come_in),
		CASE(each_name_is_written_once),
		CASE(after_the_state_was_cleared_numbers_begin_anew),
		CASE(an_index_that_is_full_gives_no_more_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
