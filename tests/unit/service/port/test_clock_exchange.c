#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "protos/trace_packet.pb-c.h"
#include "service/machine/machine.h"
#include "service/port/clock_exchange.h"
#include "transport/wire/pb_writer.h"

#define MACHINE 2306351469u

static struct clock_exchange x;
static struct pb_writer w;
static struct clock_snapshot host;
static const char *why;

/* Our clocks at the time ns, all alike. */
static void
host_at(uint64_t ns)
{
	size_t i;

	for (i = 0; i < CLOCK_SNAPSHOT_N; i++) {
		host.clocks[i].id = (uint32_t)i + 1;
		host.clocks[i].ns = ns;
	}
}

static int
setup(void **state)
{
	memset(&x, 0, sizeof(x));
	pb_writer_init(&w);
	why = NULL;
	host_at(1000000);
	return 0;
}

static int
teardown(void **state)
{
	pb_writer_done(&w);
	return 0;
}

static void
request(uint64_t phase)
{
	pb_writer_reset(&w);
	if (phase != 0)
		pb_put_uint(&w, 1, phase);
}

static void
clock_of(uint64_t id, uint64_t ns)
{
	size_t mark = pb_nest_begin(&w, 2);

	pb_put_uint(&w, 1, id);
	pb_put_uint(&w, 2, ns);
	pb_nest_end(&w, mark);
}

static enum clock_exchange_verdict
step(void)
{
	return clock_exchange_step(&x, w.data, w.len, &host, &why);
}

static enum clock_exchange_verdict
ping(uint64_t ns)
{
	request(1);
	clock_of(CLOCK_ID_BOOTTIME, ns);
	return step();
}

static enum clock_exchange_verdict
update(uint64_t ns)
{
	request(2);
	clock_of(CLOCK_ID_BOOTTIME, ns);
	return step();
}

/* The packet of the exchange, unpacked. */
static Perfetto__Protos__TracePacket *
packet(void)
{
	struct machine m = { .id = MACHINE };
	Perfetto__Protos__TracePacket *p;

	assert_int_equal(machine_clock_take_exchange(&m, &x.ping, &x.update,
	    &why), 0);
	p = perfetto__protos__trace_packet__unpack(NULL, m.clock_sync_len,
	    m.clock_sync);
	assert_non_null(p);
	machine_done(&m);
	return p;
}

static void
expect_clock(const Perfetto__Protos__ClockSnapshot *s, size_t i, uint32_t id,
    uint64_t ns)
{
	assert_true(i < s->n_clocks);
	assert_int_equal(s->clocks[i]->clock_id, id);
	assert_int_equal(s->clocks[i]->timestamp, ns);
}

static size_t
unhex(const char *hex, uint8_t *out)
{
	unsigned byte;
	size_t n;

	for (n = 0; sscanf(hex, "%2x", &byte) == 1; n++, hex += 2)
		out[n] = (uint8_t)byte;
	return n;
}

/* The args of both SyncClock calls of traced_relay in relay-tcp.jsonl. */
static const char recorded_ping[] =
	"08011209080610e4d1ecacc34d120c080210b4d8aba2b59ffbf41812090804108aabfd"
	"aac34d120c080110fcff9aa4b59ffbf4181209080310edd2ecacc34d1209080510f0b6"
	"c4f4c24d120a080910ceb1ebf2e8c101";
static const char recorded_update[] =
	"08021209080610cc88b4adc34d120c080210b4ea9fa4b59ffbf41812090804108abdf1"
	"acc34d120c080110e5b6e2a4b59ffbf4181209080310d789b4adc34d1209080510eded"
	"8bf5c24d120a080910e4f79df4e8c101";

static void
the_recorded_exchange_of_a_real_relay_makes_the_packet_of_its_trace(
    void **state)
{
	Perfetto__Protos__RemoteClockSync *sync;
	Perfetto__Protos__TracePacket *p;
	uint8_t bytes[128];
	size_t n;

	host_at(2663779470360);
	n = unhex(recorded_ping, bytes);
	assert_int_equal(clock_exchange_step(&x, bytes, n, &host, &why),
	    CLOCK_EXCHANGE_PINGED);
	host_at(2663780426993);
	n = unhex(recorded_update, bytes);
	assert_int_equal(clock_exchange_step(&x, bytes, n, &host, &why),
	    CLOCK_EXCHANGE_DONE);
	p = packet();
	assert_int_equal(p->machine_id, MACHINE);
	assert_int_equal(p->trusted_uid, (int)getuid());
	sync = p->remote_clock_sync;
	assert_non_null(sync);
	assert_int_equal(sync->n_synced_clocks, 2);
	assert_int_equal(sync->synced_clocks[1]->client_clocks->n_clocks, 7);
	expect_clock(sync->synced_clocks[1]->client_clocks, 0, 6,
	    2663780254796);
	expect_clock(sync->synced_clocks[1]->client_clocks, 3, 1,
	    1795226490684087141);
	expect_clock(sync->synced_clocks[1]->client_clocks, 6, 9,
	    6659590552548);
	/*
	 * Our round trip was the shorter one, by an eighth: its first reading of
	 * the relay's clocks, which has no TSC, is reckoned.
	 */
	assert_int_equal(sync->synced_clocks[0]->client_clocks->n_clocks, 6);
	expect_clock(sync->synced_clocks[0]->client_clocks, 0, 6,
	    2663780254796 - (2663780426993 - 2663779470360));
	expect_clock(sync->synced_clocks[0]->host_clocks, 5, 6, 2663779470360);
	expect_clock(sync->synced_clocks[1]->host_clocks, 5, 6, 2663780426993);
	perfetto__protos__trace_packet__free_unpacked(p, NULL);
}

static void
an_exchange_can_be_had_again_and_again(void **state)
{
	uint64_t t;

	for (t = 1; t < 5; t++) {
		assert_int_equal(ping(t * 100), CLOCK_EXCHANGE_PINGED);
		assert_int_equal(update(t * 100 + 1), CLOCK_EXCHANGE_DONE);
		assert_int_equal(x.ping.client[0].ns, t * 100);
		assert_int_equal(x.update.client[0].ns, t * 100 + 1);
	}
}

static void
a_ping_after_a_ping_replaces_it(void **state)
{
	assert_int_equal(ping(100), CLOCK_EXCHANGE_PINGED);
	assert_int_equal(ping(200), CLOCK_EXCHANGE_PINGED);
	assert_int_equal(update(300), CLOCK_EXCHANGE_DONE);
	assert_int_equal(x.ping.client[0].ns, 200);
}

static void
an_update_needs_a_ping_of_its_own(void **state)
{
	assert_int_equal(update(100), CLOCK_EXCHANGE_REFUSED);
	assert_non_null(strstr(why, "without a PING"));
	assert_int_equal(ping(100), CLOCK_EXCHANGE_PINGED);
	assert_int_equal(update(200), CLOCK_EXCHANGE_DONE);
	assert_int_equal(update(300), CLOCK_EXCHANGE_REFUSED);
}

static void
a_phase_that_is_none_is_refused(void **state)
{
	static const uint64_t phases[] = { 0, 3, UINT64_MAX };
	size_t i;

	for (i = 0; i < 3; i++) {
		assert_int_equal(ping(100), CLOCK_EXCHANGE_PINGED);
		request(phases[i]);
		clock_of(6, 200);
		assert_int_equal(step(), CLOCK_EXCHANGE_REFUSED);
		assert_int_equal(update(300), CLOCK_EXCHANGE_REFUSED);
	}
}

static void
absurd_clocks_are_refused(void **state)
{
	int i;

	request(1);
	assert_int_equal(step(), CLOCK_EXCHANGE_REFUSED);
	request(1);
	clock_of(0, 1);
	assert_int_equal(step(), CLOCK_EXCHANGE_REFUSED);
	request(1);
	clock_of(64, 1);
	assert_int_equal(step(), CLOCK_EXCHANGE_REFUSED);
	request(1);
	clock_of(6, 0);
	assert_int_equal(step(), CLOCK_EXCHANGE_REFUSED);
	request(1);
	clock_of(6, (uint64_t)INT64_MAX + 1);
	assert_int_equal(step(), CLOCK_EXCHANGE_REFUSED);
	request(1);
	clock_of(6, 1);
	clock_of(6, 2);
	assert_int_equal(step(), CLOCK_EXCHANGE_REFUSED);
	request(1);
	for (i = 1; i <= (int)MACHINE_CLOCKS_MAX; i++)
		clock_of((uint64_t)i, 1);
	assert_int_equal(step(), CLOCK_EXCHANGE_PINGED);
	clock_of(63, 1);
	assert_int_equal(step(), CLOCK_EXCHANGE_REFUSED);
}

static void
a_clock_that_goes_backwards_is_refused(void **state)
{
	assert_int_equal(ping(200), CLOCK_EXCHANGE_PINGED);
	assert_int_equal(update(199), CLOCK_EXCHANGE_REFUSED);
	assert_non_null(strstr(why, "backwards"));
	assert_int_equal(ping(200), CLOCK_EXCHANGE_PINGED);
	assert_int_equal(update(200), CLOCK_EXCHANGE_DONE);
}

static void
a_clock_that_people_set_may_go_backwards(void **state)
{
	request(1);
	clock_of(CLOCK_ID_REALTIME, 200);
	assert_int_equal(step(), CLOCK_EXCHANGE_PINGED);
	request(2);
	clock_of(CLOCK_ID_REALTIME, 100);
	assert_int_equal(step(), CLOCK_EXCHANGE_DONE);
}

static void
ping_and_update_need_a_clock_in_common(void **state)
{
	assert_int_equal(ping(100), CLOCK_EXCHANGE_PINGED);
	request(2);
	clock_of(CLOCK_ID_MONOTONIC, 200);
	assert_int_equal(step(), CLOCK_EXCHANGE_REFUSED);
	assert_non_null(strstr(why, "in common"));
}

static void
an_exchange_that_took_too_long_is_not_used(void **state)
{
	host_at(1000);
	assert_int_equal(ping(100), CLOCK_EXCHANGE_PINGED);
	host_at(1000 + MACHINE_CLOCK_LONGEST_NS);
	assert_int_equal(update(200), CLOCK_EXCHANGE_DONE);
	host_at(1000);
	assert_int_equal(ping(100), CLOCK_EXCHANGE_PINGED);
	host_at(1001 + MACHINE_CLOCK_LONGEST_NS);
	assert_int_equal(update(200), CLOCK_EXCHANGE_TOO_LONG);
}

static void
a_request_cut_anywhere_never_completes_an_exchange_wrongly(void **state)
{
	uint8_t bytes[128];
	size_t n, cut;
	uint8_t *copy;

	n = unhex(recorded_ping, bytes);
	for (cut = 0; cut < n; cut++) {
		/* exact, so that a sanitizer sees one byte too far */
		assert_non_null(copy = malloc(cut + (cut == 0)));
		memcpy(copy, bytes, cut);
		switch (clock_exchange_step(&x, copy, cut, &host, &why)) {
		case CLOCK_EXCHANGE_PINGED: /* cut between two clocks */
		case CLOCK_EXCHANGE_BAD:
		case CLOCK_EXCHANGE_REFUSED:
			break;
		case CLOCK_EXCHANGE_DONE:
		case CLOCK_EXCHANGE_TOO_LONG:
			fail();
		}
		free(copy);
	}
	assert_int_equal(clock_exchange_step(&x, (const uint8_t *)"\x12\x05",
		2, &host, &why), CLOCK_EXCHANGE_BAD);
}

static void
unknown_fields_are_passed_over(void **state)
{
	request(1);
	pb_put_string(&w, 99, "from the future");
	clock_of(6, 100);
	assert_int_equal(step(), CLOCK_EXCHANGE_PINGED);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_recorded_exchange_of_a_real_relay_makes_the_packet_of_its_trace),
		CASE(an_exchange_can_be_had_again_and_again),
		CASE(a_ping_after_a_ping_replaces_it),
		CASE(an_update_needs_a_ping_of_its_own),
		CASE(a_phase_that_is_none_is_refused),
		CASE(absurd_clocks_are_refused),
		CASE(a_clock_that_goes_backwards_is_refused),
		CASE(a_clock_that_people_set_may_go_backwards),
		CASE(ping_and_update_need_a_clock_in_common),
		CASE(an_exchange_that_took_too_long_is_not_used),
		CASE(a_request_cut_anywhere_never_completes_an_exchange_wrongly),
		CASE(unknown_fields_are_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
