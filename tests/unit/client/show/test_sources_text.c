#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/show/sources_text.h"
#include "client/show/state_text.h"
#include "protos/service_state.pb-c.h"
#include "protos/text_parse.h"

#define STATE (&perfetto__protos__tracing_service_state__descriptor)

static Perfetto__Protos__TracingServiceState *state_pb;
static char text[16384];

/* Out of order, with a producer that is not described. */
static const char written[] =
    "producers { id: 2 name: 'zeta' pid: 20 machine_id: 7 "
    "  machine_name: 'car-7' sdk_version: 'v5' frozen: true } "
    "producers { id: 1 name: 'probes\\x1b[2J' pid: 10 uid: 4 "
    "  machine_name: 'desk' } "
    "producers { id: 3 name: 'alpha' pid: 30 machine_id: 8 } "
    "data_sources { producer_id: 2 ds_descriptor { name: 'track_event' "
    "  no_flush: true track_event_descriptor { "
    "    available_categories { name: 'cc' description: 'says \"hi\"' "
    "      tags: 'slow' tags: 'ui' } "
    "    available_categories { name: 'a.category.with.a.long.name' } "
    "    available_categories { name: 'another.long.name' } } } } "
    "data_sources { producer_id: 1 ds_descriptor { name: 'linux.two' } } "
    "data_sources { producer_id: 1 ds_descriptor { name: 'linux.one' "
    "  will_notify_on_stop: true } } "
    "data_sources { producer_id: 3 ds_descriptor { name: 'linux.ftrace' "
    "  ftrace_descriptor { atrace_categories { name: 'gfx' } } } } "
    "data_sources { producer_id: 99 ds_descriptor { name: 'orphan' } } "
    "data_sources { producer_id: 99 } "
    "tracing_sessions { id: 5 consumer_uid: 1000 state: 'STARTED' "
    "  unique_session_name: 'ring' buffer_size_kb: 1024 buffer_size_kb: "
    "  1024 duration_ms: 60000 num_data_sources: 2 } "
    "supports_tracing_sessions: true num_sessions: 3 "
    "num_sessions_started: 1 tracing_service_version: 'v1'";

static int
setup(void **state)
{
	state_pb = (Perfetto__Protos__TracingServiceState *)
	    text_parse_message(STATE, written, strlen(written), NULL);
	assert_non_null(state_pb);
	return 0;
}

static int
teardown(void **state)
{
	perfetto__protos__tracing_service_state__free_unpacked(state_pb, NULL);
	return 0;
}

static size_t
print(const char *name, const char *machine, enum list_form form)
{
	struct sources_filter filter = {
		.names = &name, .n_names = name != NULL,
		.machines = &machine, .n_machines = machine != NULL,
	};
	FILE *f;
	size_t n;

	memset(text, 0, sizeof(text));
	f = fmemopen(text, sizeof(text) - 1, "w");
	n = sources_print(f, state_pb, &filter, form);
	fclose(f);
	return n;
}

static void
the_table_is_sorted_by_machine_and_producer(void **state)
{
	assert_int_equal(print(NULL, NULL, LIST_TABLE), 5);
	assert_string_equal(text,
	    "MACHINE  PRODUCER (PID)      DATA SOURCE   CATEGORIES\n"
	    "host     - (0)               orphan        -\n"
	    "host     probes\\x1b[2J (10)  linux.one     -\n"
	    "host     probes\\x1b[2J (10)  linux.two     -\n"
	    "8        alpha (30)          linux.ftrace  gfx\n"
	    "car-7    zeta (20)           track_event   "
	    "cc,a.category.with.a.long.name,... (1 more)\n");
}

static void
names_and_machines_choose(void **state)
{
	assert_int_equal(print("linux.*", NULL, LIST_TABLE), 3);
	assert_int_equal(print(NULL, "host", LIST_TABLE), 3);
	assert_int_equal(print(NULL, "desk", LIST_TABLE), 2);
	assert_int_equal(print("linux.*", "car-*", LIST_TABLE), 0);
	assert_string_equal(text, "");
}

static void
the_long_form_tells_categories(void **state)
{
	assert_int_equal(print(NULL, "car-7", LIST_LONG), 1);
	assert_string_equal(text,
	    "zeta on car-7\n"
	    "  id       2, pid 20, uid 0, frozen\n"
	    "  sdk      v5\n"
	    "  source   track_event, needs no flush\n"
	    "    cc [slow, ui]: says \"hi\"\n"
	    "    a.category.with.a.long.name\n"
	    "    another.long.name\n");
}

static void
json_is_whole_and_escaped(void **state)
{
	assert_int_equal(print(NULL, NULL, LIST_JSON), 5);
	assert_non_null(strstr(text, "\"producer\": \"probes\\u001b[2J\""));
	assert_non_null(strstr(text, "{\"name\": \"cc\", \"description\": "
	    "\"says \\\"hi\\\"\", \"tags\": [\"slow\", \"ui\"]}"));
	assert_int_equal(text[0], '[');
	print("nothing", NULL, LIST_JSON);
	assert_string_equal(text, "[]\n");
}

static void
the_state_is_printed_for_people(void **state)
{
	FILE *f;

	memset(text, 0, sizeof(text));
	f = fmemopen(text, sizeof(text) - 1, "w");
	state_text_print(f, state_pb, false);
	fclose(f);
	assert_null(strchr(text, '\x1b'));
	assert_non_null(strstr(text, "PRODUCERS (3)"));
	assert_non_null(strstr(text, "DATA SOURCES (6)"));
	assert_non_null(strstr(text,
	    "cc,a.category.with.a.long.name,... (1 more)"));
	assert_non_null(strstr(text, "SESSIONS (3, of which 1 started)"));
	assert_non_null(strstr(text, "2: 2.0 MiB"));
	assert_non_null(strstr(text, "(2 of others are not shown)"));
	memset(text, 0, sizeof(text));
	f = fmemopen(text, sizeof(text) - 1, "w");
	state_text_print(f, state_pb, true);
	fclose(f);
	assert_non_null(strstr(text,
	    "cc,a.category.with.a.long.name,another.long.name\n"));
}

/* It is not ours: its numbers need not be of this world. */
static void
a_state_with_less_than_no_sessions_hides_none(void **state)
{
	FILE *f;

	state_pb->num_sessions = INT32_MIN;
	memset(text, 0, sizeof(text));
	f = fmemopen(text, sizeof(text) - 1, "w");
	state_text_print(f, state_pb, false);
	fclose(f);
	assert_non_null(strstr(text, "SESSIONS (-2147483648, "));
	assert_null(strstr(text, "of others are not shown"));
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(the_table_is_sorted_by_machine_and_producer),
		T(names_and_machines_choose),
		T(the_long_form_tells_categories),
		T(json_is_whole_and_escaped),
		T(the_state_is_printed_for_people),
		T(a_state_with_less_than_no_sessions_hides_none),
	};

	return cmocka_run_group_tests_name("sources_text", tests, NULL, NULL);
}
