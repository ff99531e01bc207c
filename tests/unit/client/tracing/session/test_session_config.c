#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <tributary/session.h>
#include <cmocka.h>

#include "client/tracing/session/session_config.h"
#include "transport/wire/pb_writer.h"

#define BYTES(s) (const uint8_t *)(s), sizeof(s) - 1

static void
the_defaults_are_a_ring_for_all_track_events(void **state)
{
	static const char want[] = "\x0a\x05\x08\x80\x20\x20\x01" /* buffers */
	    "\x12\x0f\x0a\x0d\x0a\x0btrack_event";
	struct pb_writer w;

	pb_writer_init(&w);
	session_config_put(&w, NULL);
	assert_int_equal(w.len, sizeof(want) - 1);
	assert_memory_equal(w.data, want, w.len);
	pb_writer_done(&w);
}

static void
options_are_in_the_config(void **state)
{
	static const char *const categories[] = { "a", NULL };
	static const char want[] = "\x0a\x04\x08\x01\x20\x02"
	    "\x12\x18\x0a\x16\x0a\x0btrack_event"
	    "\x8a\x07\x06\x12\x01" "a\x0a\x01*" /* track_event_config */
	    "\x18\xd0\x0f" /* duration_ms 2000 */
	    "\xb2\x01\x01n"; /* unique_session_name */
	struct tributary_session_options o = TRIBUTARY_SESSION_OPTIONS;
	struct pb_writer w;

	o.buffer_kb = 1;
	o.discard = true;
	o.categories = categories;
	o.seconds = 2;
	o.unique_name = "n";
	pb_writer_init(&w);
	session_config_put(&w, &o);
	assert_int_equal(w.len, sizeof(want) - 1);
	assert_memory_equal(w.data, want, w.len);
	pb_writer_done(&w);
}

/* Of a program that was compiled when the struct had less in it. */
static void
a_shorter_struct_has_the_defaults_of_the_rest(void **state)
{
	struct tributary_session_options o = TRIBUTARY_SESSION_OPTIONS;
	struct pb_writer short_one, whole;

	pb_writer_init(&short_one);
	pb_writer_init(&whole);
	o.buffer_kb = 7;
	session_config_put(&whole, &o);
	o.seconds = 9;
	o.size = offsetof(struct tributary_session_options, seconds);
	session_config_put(&short_one, &o);
	assert_int_equal(short_one.len, whole.len);
	assert_memory_equal(short_one.data, whole.data, whole.len);
	pb_writer_done(&short_one);
	pb_writer_done(&whole);
}

static void
a_deferred_start_and_triggers_are_waited_for(void **state)
{
	assert_false(session_config_waits(NULL, 0));
	assert_false(session_config_waits(BYTES("\x18\x07\x60\x00")));
	assert_true(session_config_waits(BYTES("\x18\x07\x60\x01")));
	assert_true(session_config_waits(BYTES("\x8a\x01\x00")));
	assert_false(session_config_waits(BYTES("\x8a\x01\x05"))); /* cut */
}

static void
events_tell_of_the_start(void **state)
{
	assert_true(session_config_has_started(BYTES("\x10\x01")));
	assert_false(session_config_has_started(BYTES("\x10\x00")));
	assert_false(session_config_has_started(BYTES("\x0a\x00")));
	assert_false(session_config_has_started(BYTES("\x10")));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_defaults_are_a_ring_for_all_track_events),
		cmocka_unit_test(options_are_in_the_config),
		cmocka_unit_test(a_shorter_struct_has_the_defaults_of_the_rest),
		cmocka_unit_test(a_deferred_start_and_triggers_are_waited_for),
		cmocka_unit_test(events_tell_of_the_start),
	};

	return cmocka_run_group_tests_name("session_config", tests, NULL, NULL);
}
