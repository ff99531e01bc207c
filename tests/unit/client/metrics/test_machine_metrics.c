#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/metrics/machine_metrics.h"
#include "protos/control.pb-c.h"
#include "protos/text_error.h"
#include "protos/text_parse.h"

typedef Tributary__QueryMachinesReply reply;
typedef Tributary__MachineState machine_state;

/* To be freed by done(). */
static reply *
read_reply(const char *text)
{
	struct text_error where;
	ProtobufCMessage *m;

	m = text_parse_message(&tributary__query_machines_reply__descriptor,
	    text, strlen(text), &where);
	if (m == NULL)
		fail_msg("%u: %s", where.line, where.message);
	return (reply *)m;
}

static void
done(reply *r)
{
	tributary__query_machines_reply__free_unpacked(r, NULL);
}

static void
finds(const reply *r, const char *name, uint32_t id)
{
	const machine_state *s;

	assert_int_equal(machine_metrics_find(r, name, &s),
	    MACHINE_METRICS_ONE);
	assert_int_equal(s->id, id);
}

static void
a_name_means_the_machine_that_is_there(void **state)
{
	reply *r = read_reply("machines { id: 0 name: \"Linux\" state: CONNECTED } "
	    "machines { id: 1 name: \"host\" state: CONNECTED } "
	    "machines { id: 2 name: \"a\" state: GONE cut_since_ns: 5 } "
	    "machines { id: 3 name: \"a\" state: CONNECTED } "
	    "machines { id: 4 name: \"a\" state: CUT cut_since_ns: 9 } "
	    "machines { id: 5 name: \"b\" state: GONE cut_since_ns: 5 } "
	    "machines { id: 6 name: \"b\" state: GONE cut_since_ns: 7 } "
	    "machines { id: 7 name: \"b\" state: GONE cut_since_ns: 6 } "
	    "machines { id: 8 name: \"c\" state: CONNECTED } "
	    "machines { id: 9 name: \"c\" state: CONNECTED } machines { id: 10 }");
	const machine_state *s;

	finds(r, "host", 0);
	finds(r, "a", 3);
	finds(r, "b", 6);
	assert_int_equal(machine_metrics_find(r, "c", &s),
	    MACHINE_METRICS_SEVERAL);
	assert_int_equal(machine_metrics_find(r, "Linux", &s),
	    MACHINE_METRICS_NONE);
	assert_int_equal(machine_metrics_find(r, "*", &s),
	    MACHINE_METRICS_NONE);
	done(r);
}

/* Of the first machine; to be freed. */
static char *
print(const char *machine)
{
	char text[2000], *out = NULL;
	size_t size;
	FILE *file;
	reply *r;

	snprintf(text, sizeof(text), "machines { %s }", machine);
	r = read_reply(text);
	assert_non_null(file = open_memstream(&out, &size));
	machine_metrics_print(file, r->machines[0], 10000000000,
	    METRICS_PROMETHEUS);
	fclose(file);
	done(r);
	return out;
}

static void
assert_has(const char *text, const char *lines)
{
	if (strstr(text, lines) == NULL)
		fail_msg("no \"%s\" in:\n%s", lines, text);
}

static void
all_that_is_known_is_printed(void **state)
{
	char *out = print("id: 7 name: \"a\" state: CUT reconnects: 3 "
	    "producers: 4 bytes_received: 100 software: "
	    "\"tributary-relay 1.2\" clock_offset_ns: 1500000000 "
	    "clock_uncertainty_ns: 20000 round_trip_ns: 40000 "
	    "clock_measured_ns: 7000000000 "
	    "losses { cause: LINK_LOSS_DISK packets: 8 times: 2 } "
	    "relay { memory_bytes: 5 memory_limit: 6 reconnects: 2 "
	    "oldest_ms: 1234 process { resident_bytes: 77 } "
	    "loop_delays: 1 loop_delays: 2 loop_delays: 0 loop_delays: 0 "
	    "loop_delays: 0 loop_delays: 0 loop_delays: 0 loop_delays: 0 "
	    "loop_delays: 0 loop_delays: 0 loop_delays: 0 loop_delays: 9 "
	    "loop_delay_sum_ns: 5 }");

	assert_has(out, "tributary_machine_state{state=\"connected\"} 0\n"
	    "tributary_machine_state{state=\"cut\"} 1\n"
	    "tributary_machine_state{state=\"gone\"} 0\n");
	assert_has(out, "tributary_machine_producers 4\n");
	assert_has(out, "tributary_machine_reconnects_total 3\n");
	assert_has(out, "tributary_machine_received_bytes_total 100\n");
	assert_has(out,
	    "tributary_machine_lost_packets_total{cause=\"disk\"} 8\n");
	assert_has(out,
	    "tributary_machine_lost_packets_total{cause=\"quota\"} 0\n");
	assert_has(out, "tributary_machine_losses_of_unknown_size_total"
	    "{cause=\"disk\"} 2\n");
	assert_has(out, "tributary_relay_build_info{version=\"1.2\"} 1\n");
	assert_has(out, "tributary_relay_clock_offset_seconds -1.500000000\n");
	assert_has(out, "tributary_relay_clock_age_seconds 3.000\n");
	assert_has(out, "tributary_relay_reconnects_total 2\n");
	assert_has(out, "tributary_relay_backlog_bytes{where=\"memory\"} 5\n"
	    "# HELP");
	assert_has(out, "tributary_relay_oldest_data_seconds 1.234\n");
	assert_has(out, "tributary_relay_process_resident_memory_bytes 77\n");
	assert_has(out, "tributary_relay_event_loop_lag_seconds_bucket"
	    "{le=\"1.000000000\"} 3\n"
	    "tributary_relay_event_loop_lag_seconds_bucket{le=\"+Inf\"} 12\n");
	free(out);
}

static void
a_machine_without_a_relay_has_no_numbers_of_one(void **state)
{
	char *out = print("id: 7 state: CONNECTED software: \"other 1\"");

	assert_has(out, "tributary_machine_state{state=\"connected\"} 1\n");
	assert_null(strstr(out, "tributary_relay_"));
	free(out);
}

/* Neither what an older relay leaves out, nor rows that nobody knows. */
static void
what_a_relay_does_not_tell_is_left_out(void **state)
{
	char *out = print("id: 7 relay { memory_bytes: 5 loop_delays: 3 }");

	assert_has(out, "tributary_relay_backlog_bytes{where=\"memory\"} 5\n");
	assert_null(strstr(out, "tributary_relay_process"));
	assert_null(strstr(out, "event_loop_lag"));
	assert_null(strstr(out, "link_state"));
	free(out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_means_the_machine_that_is_there),
		cmocka_unit_test(all_that_is_known_is_printed),
		cmocka_unit_test(
		    a_machine_without_a_relay_has_no_numbers_of_one),
		cmocka_unit_test(what_a_relay_does_not_tell_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
