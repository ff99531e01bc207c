#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/show/machines_text.h"
#include "protos/control.pb-c.h"
#include "protos/link.pb-c.h"

#define S 1000000000ull
#define NOW (1700000000ull * S)

/* The collector's own and two devices, one of them cut off with a loss. */
static Tributary__MachineState machines[3];
static Tributary__MachineState *list[3];
static Tributary__LinkStatus status;
static Tributary__LossCount loss;
static Tributary__LossCount *losses[1];
static Tributary__QueryMachinesReply reply;
/* As a single collector's, or as those of two of a fleet. */
static struct machines_list lists[2];
static size_t n_lists;

static char text[16384];

static int
setup(void **state)
{
	static char host[] = "collector", car[] = "car-7";
	static char van[] = "van \"\xff\x1b[2J\"", address[] = "10.0.0.7:4711";
	static char cert[] = "certificate car-7";
	int i;

	tributary__query_machines_reply__init(&reply);
	tributary__link_status__init(&status);
	tributary__loss_count__init(&loss);
	for (i = 0; i < 3; i++) {
		tributary__machine_state__init(&machines[i]);
		list[i] = &machines[i];
	}
	machines[0].name = host;
	machines[0].reach = TRIBUTARY__MACHINE_STATE__REACH__HOST;
	machines[0].state = TRIBUTARY__MACHINE_STATE__STATE__CONNECTED;
	machines[0].producers = 2;
	machines[1].id = 77;
	machines[1].name = car;
	machines[1].address = address;
	machines[1].authenticated = cert;
	machines[1].reach = TRIBUTARY__MACHINE_STATE__REACH__LINK;
	machines[1].state = TRIBUTARY__MACHINE_STATE__STATE__CUT;
	machines[1].cut_since_ns = NOW - 12 * S;
	machines[1].producers = 10;
	machines[1].data_sources = 57;
	machines[1].bytes_received = 1 << 20;
	machines[1].bytes_unpacked = 5 << 20;
	machines[1].has_clock_offset_ns = true;
	machines[1].clock_offset_ns = -1500000;
	machines[1].clock_uncertainty_ns = 42000;
	machines[1].round_trip_ns = 84000;
	machines[1].clock_measured_ns = NOW - 3 * S;
	status.memory_bytes = 1 << 20;
	status.memory_limit = 8 << 20;
	status.spool_bytes = 3 << 20;
	status.spool_limit = 256 << 20;
	machines[1].relay = &status;
	loss.cause = TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_SPOOL_FULL;
	loss.packets = 1234;
	loss.chunks = 56;
	loss.bytes = 4096;
	losses[0] = &loss;
	machines[1].n_losses = 1;
	machines[1].losses = losses;
	machines[2].id = 78;
	machines[2].name = van;
	machines[2].reach = TRIBUTARY__MACHINE_STATE__REACH__DIRECT;
	machines[2].state = TRIBUTARY__MACHINE_STATE__STATE__GONE;
	reply.n_machines = 3;
	reply.machines = list;
	reply.now_ns = NOW;
	lists[0] = lists[1] = (struct machines_list){ NULL, &reply };
	n_lists = 1;
	return 0;
}

static size_t
print(enum list_form form, const char *const *names, size_t n)
{
	FILE *f = fmemopen(text, sizeof(text), "w");
	size_t printed;

	assert_non_null(f);
	printed = machines_print(f, lists, n_lists,
	    &(struct machines_words){ names, n }, form);
	fclose(f);
	return printed;
}

#define assert_says(what)                                                     \
	do {                                                                  \
		if (strstr(text, what) == NULL)                               \
			fail_msg("\"%s\" is not in\n%s", what, text);         \
	} while (0)

static void
the_table_has_a_line_for_each(void **state)
{
	char *line;

	assert_int_equal(print(LIST_TABLE, NULL, 0), 3);
	line = strstr(text, "car-7");
	assert_non_null(line);
	*strchr(line, '\n') = '\0';
	assert_non_null(strstr(line, "77"));
	assert_non_null(strstr(line, "cut off"));
	assert_non_null(strstr(line, "10.0.0.7:4711"));
	assert_non_null(strstr(line, "12.0 s"));
	assert_non_null(strstr(line, "5.0 MiB")); /* data */
	assert_non_null(strstr(line, "4.0 MiB")); /* memory and spool */
	assert_non_null(strstr(line, "1,234"));
	assert_non_null(strstr(line, "-1.500 ms"));
}

static void
what_a_quota_did_is_said(void **state)
{
	Tributary__QuotaState q;

	tributary__quota_state__init(&q);
	q.bytes_per_second = 300 << 10;
	q.held_times = 2;
	q.held_ms = 1500;
	q.dropped_chunks = 3;
	q.dropped_packets = 40;
	q.refused_producers = 1;
	q.refused_sequences = 5;
	machines[1].quota = &q;
	print(LIST_LONG, NULL, 0);
	assert_says("quota          300.0 KiB a second");
	assert_says("held back      2 times, 1.5 s in all");
	assert_says("dropped        40 packets in 3 chunks");
	assert_says("refused        1 producer over its quota");
	assert_says("refused        5 sequences over its quota");
	assert_null(strstr(text, "0 connection"));
	print(LIST_JSON, NULL, 0);
	assert_says("\"quota\": {\"bytes_per_second\": 307200, "
	    "\"held_times\": 2");
	assert_says("\"refused\": {\"producers\": 1, ");
}

static void
the_collectors_own_is_called_host(void **state)
{
	const char *const names[] = { "host" };

	assert_int_equal(print(LIST_TABLE, names, 1), 1);
	assert_says("\nhost ");
	assert_null(strstr(text, "car-7"));
}

static void
machines_of_a_fleet_are_told_by_their_collectors(void **state)
{
	lists[0].collector = "c1";
	lists[1].collector = "second";
	n_lists = 2;
	assert_int_equal(print(LIST_TABLE, NULL, 0), 6);
	assert_memory_equal(text, "COLLECTOR  NAME ", 16);
	assert_says("\nc1         host ");
	assert_says("\nsecond     car-7");
	print(LIST_LONG, NULL, 0);
	assert_says("  collector      second\n");
	print(LIST_JSON, NULL, 0);
	assert_says("{\"collector\": \"c1\", \"id\": 0, \"name\": \"host\"");
	assert_says("{\"collector\": \"second\", ");
}

static void
patterns_choose(void **state)
{
	const char *const cars[] = { "car-*" }, *const none[] = { "bus" };

	assert_int_equal(print(LIST_TABLE, cars, 1), 1);
	assert_int_equal(print(LIST_TABLE, none, 1), 0);
	assert_int_equal(print(LIST_JSON, none, 1), 0);
	assert_string_equal(text, "[]\n");
}

static void
a_block_says_everything(void **state)
{
	assert_int_equal(print(LIST_LONG, NULL, 0), 3);
	assert_says("certificate car-7");
	assert_says("10 with 57 data sources");
	assert_says("5.0 MiB (1.0 MiB as it came)");
	assert_says("1.0 MiB of 8.0 MiB");
	assert_says("3.0 MiB of 256.0 MiB");
	assert_says("-1.500 ms ahead of the collector's, +- 42.0 us");
	assert_says("round trip 84.0 us; measured 3.0 s ago");
	assert_says("1,234 packets in 56 chunks (4.0 KiB)");
}

static void
nothing_in_a_name_reaches_the_terminal_raw(void **state)
{
	print(LIST_TABLE, NULL, 0);
	assert_null(strchr(text, '\x1b'));
	assert_null(strchr(text, '\xff'));
	print(LIST_LONG, NULL, 0);
	assert_null(strchr(text, '\x1b'));
}

static void
json_is_json_whatever_the_names(void **state)
{
	assert_int_equal(print(LIST_JSON, NULL, 0), 3);
	assert_says("\"name\": \"van \\\"\\ufffd\\u001b[2J\\\"\"");
	assert_says("\"offset_ns\": -1500000");
	assert_says("\"packets\": 1234");
	assert_says("\"spool_bytes\": 3145728");
	assert_int_equal(text[0], '[');
	assert_string_equal(text + strlen(text) - 3, "\n]\n");
}

static void
a_loss_of_unknown_size_is_said_to_be_one(void **state)
{
	loss.packets = loss.chunks = loss.bytes = 0;
	loss.cause = TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_CUT_AT_END;
	print(LIST_TABLE, NULL, 0);
	assert_says("unknown");
	print(LIST_LONG, NULL, 0);
	assert_says("an unknown number of packets");
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		T(the_table_has_a_line_for_each),
		T(what_a_quota_did_is_said),
		T(the_collectors_own_is_called_host),
		T(machines_of_a_fleet_are_told_by_their_collectors),
		T(patterns_choose),
		T(a_block_says_everything),
		T(nothing_in_a_name_reaches_the_terminal_raw),
		T(json_is_json_whatever_the_names),
		T(a_loss_of_unknown_size_is_said_to_be_one),
	};

	return cmocka_run_group_tests_name("machines_text", tests, NULL, NULL);
}
