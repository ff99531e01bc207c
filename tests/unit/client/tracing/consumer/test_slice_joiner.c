#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/tracing/consumer/slice_joiner.h"

struct fixture {
	struct slice_joiner joiner;
	struct pb_writer message;
	char got[400]; /* packets, each followed by a bar */
	bool had_enough;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	pb_writer_init(&f->message);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	slice_joiner_done(&f->joiner);
	pb_writer_done(&f->message);
	free(f);
	return 0;
}

static bool
packet_cb(void *arg, const uint8_t *data, size_t len)
{
	struct fixture *f = arg;

	strncat(f->got, (const char *)data, len);
	strcat(f->got, "|");
	return !f->had_enough;
}

static void
slice(struct fixture *f, const char *data, bool last)
{
	size_t mark = pb_nest_begin(&f->message, 2);

	pb_put_string(&f->message, 1, data);
	if (last)
		pb_put_uint(&f->message, 2, 1);
	pb_nest_end(&f->message, mark);
}

static bool
feed(struct fixture *f)
{
	bool more = slice_joiner_feed(&f->joiner, f->message.data,
	    f->message.len, packet_cb, f);

	pb_writer_reset(&f->message);
	return more;
}

static void
slices_of_several_messages_become_packets(void **state)
{
	struct fixture *f = *state;

	slice(f, "one", true);
	slice(f, "tw", false);
	assert_true(feed(f));
	assert_string_equal(f->got, "one|");
	slice(f, "", false);
	assert_true(feed(f));
	assert_true(feed(f)); /* an empty message changes nothing */
	slice(f, "o", true);
	slice(f, "three", true);
	assert_true(feed(f));
	assert_string_equal(f->got, "one|two|three|");
	assert_null(slice_joiner_error(&f->joiner));
}

static void
an_end_within_a_packet_is_an_error(void **state)
{
	struct fixture *f = *state;

	slice(f, "one", true);
	slice(f, "tw", false);
	assert_true(feed(f));
	assert_non_null(strstr(slice_joiner_error(&f->joiner),
	    "within a packet"));
}

static void
a_malformed_message_is_an_error_and_ends_it(void **state)
{
	struct fixture *f = *state;

	slice(f, "one", true);
	pb_put_raw(&f->message, "\x12\x7f", 2);
	assert_true(feed(f));
	assert_string_equal(f->got, "one|");
	assert_non_null(strstr(slice_joiner_error(&f->joiner), "malformed"));
	slice(f, "two", true);
	assert_true(feed(f));
	assert_string_equal(f->got, "one|");
}

static void
a_malformed_slice_is_no_packet(void **state)
{
	struct fixture *f = *state;

	pb_put_raw(&f->message, "\x12\x03\x10\x01\x0a", 5);
	assert_true(feed(f));
	assert_string_equal(f->got, "");
	assert_non_null(strstr(slice_joiner_error(&f->joiner), "malformed"));
}

static void
whoever_had_enough_gets_no_more(void **state)
{
	struct fixture *f = *state;

	f->had_enough = true;
	slice(f, "o", false);
	slice(f, "ne", true);
	slice(f, "two", true);
	assert_false(feed(f));
	assert_string_equal(f->got, "one|");
}

static void
done_forgets_everything(void **state)
{
	struct fixture *f = *state;

	slice(f, "half", false);
	assert_true(feed(f));
	slice_joiner_done(&f->joiner);
	assert_null(slice_joiner_error(&f->joiner));
	slice(f, "one", true);
	assert_true(feed(f));
	assert_string_equal(f->got, "one|");
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(slices_of_several_messages_become_packets),
		T(an_end_within_a_packet_is_an_error),
		T(a_malformed_message_is_an_error_and_ends_it),
		T(a_malformed_slice_is_no_packet),
		T(whoever_had_enough_gets_no_more),
		T(done_forgets_everything),
	};

	return cmocka_run_group_tests_name("slice_joiner", tests, NULL, NULL);
}
