#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "protos/trace_packet.pb-c.h"
#include "service/packet/event_log.h"
#include "transport/clock/clock_snapshot.h"

#define PACKET(d) PERFETTO__PROTOS__TRACE_PACKET__DATA_##d

typedef Perfetto__Protos__TracePacket packet;

/* The oldest, taken out and decoded; NULL: none. */
static packet *
take(struct event_log *l, enum event_queue q)
{
	size_t len;
	const uint8_t *data = event_log_peek(l, q, &len);
	packet *p;

	if (data == NULL)
		return NULL;
	p = perfetto__protos__trace_packet__unpack(NULL, len, data);
	assert_non_null(p);
	assert_int_equal(p->trusted_packet_sequence_id, 1);
	event_log_pop(l, q);
	return p;
}

static void
drop(packet *p)
{
	perfetto__protos__trace_packet__free_unpacked(p, NULL);
}

/* Takes one out and says what it is. */
static int
kind(struct event_log *l, enum event_queue q)
{
	packet *p = take(l, q);
	int k = p == NULL ? -1 : (int)p->data_case;

	if (p != NULL)
		drop(p);
	return k;
}

static size_t
empty(struct event_log *l, enum event_queue q)
{
	size_t n = 0;

	while (kind(l, q) != -1)
		n++;
	return n;
}

static void
trigger(struct event_log *l, uint64_t ts)
{
	struct service_trigger t = { .name = "t", .producer_name = "p",
	    .ts = ts };

	event_log_trigger(l, &t);
}

static bool
is_empty(const struct event_log *l)
{
	return event_log_peek(l, EVENT_QUEUE_SNAPSHOTS, NULL) == NULL &&
	    event_log_peek(l, EVENT_QUEUE_EVENTS, NULL) == NULL;
}

static void
packets_come_out_in_the_order_they_happened(void **state)
{
	struct event_log *l = event_log_new(true, true, 6);
	packet *a, *b;

	assert_true(is_empty(l));
	event_log_event(l, SERVICE_EVENT_TRACING_STARTED);
	event_log_snapshot(l);
	event_log_event(l, SERVICE_EVENT_TRACING_DISABLED);
	assert_false(is_empty(l));
	a = take(l, EVENT_QUEUE_EVENTS);
	b = take(l, EVENT_QUEUE_EVENTS);
	assert_int_equal(a->data_case, PACKET(SERVICE_EVENT));
	assert_int_equal(a->service_event->event_type_case,
	    PERFETTO__PROTOS__TRACING_SERVICE_EVENT__EVENT_TYPE_TRACING_STARTED);
	assert_int_equal(b->service_event->event_type_case,
	    PERFETTO__PROTOS__TRACING_SERVICE_EVENT__EVENT_TYPE_TRACING_DISABLED);
	assert_true(a->timestamp > 0);
	assert_true(a->timestamp <= b->timestamp);
	drop(a);
	drop(b);
	assert_int_equal(kind(l, EVENT_QUEUE_EVENTS), -1);
	assert_int_equal(kind(l, EVENT_QUEUE_SNAPSHOTS),
	    PACKET(CLOCK_SNAPSHOT));
	assert_true(is_empty(l));
	event_log_free(l);
}

static void
a_snapshot_has_all_clocks_and_the_primary_one(void **state)
{
	struct event_log *l = event_log_new(true, true, 3);
	struct clock_reading clocks[CLOCK_READINGS_MAX];
	struct clock_snapshot now;
	uint32_t seen = 0;
	size_t i, n;
	packet *p;

	clock_snapshot_take(&now);
	n = clock_snapshot_list(&now, clocks);
	event_log_snapshot(l);
	p = take(l, EVENT_QUEUE_SNAPSHOTS);
	assert_int_equal(p->clock_snapshot->primary_trace_clock, 3);
	assert_int_equal(p->clock_snapshot->n_clocks, n);
	for (i = 0; i < n; i++)
		seen |= 1u << p->clock_snapshot->clocks[i]->clock_id;
	assert_int_equal(seen & 0x7e, 0x7e);
#ifdef __x86_64__
	assert_true(seen >> CLOCK_ID_TSC & 1);
#else
	assert_false(seen >> CLOCK_ID_TSC & 1);
#endif
	drop(p);
	event_log_free(l);
}

static void
the_initial_snapshot_is_kept_when_there_are_too_many(void **state)
{
	struct event_log *l = event_log_new(true, true, 6);
	const uint8_t *first;
	uint8_t copy[512];
	size_t len, n;
	unsigned i;

	event_log_snapshot(l);
	first = event_log_peek(l, EVENT_QUEUE_SNAPSHOTS, &len);
	assert_true(len <= sizeof(copy));
	memcpy(copy, first, len);
	for (i = 0; i < 3 * EVENT_LOG_SNAPSHOTS_MAX; i++)
		event_log_snapshot(l);
	first = event_log_peek(l, EVENT_QUEUE_SNAPSHOTS, &n);
	assert_int_equal(n, len);
	assert_memory_equal(first, copy, len);
	/* Thinned out, not cut off. */
	n = empty(l, EVENT_QUEUE_SNAPSHOTS);
	assert_true(n >= EVENT_LOG_SNAPSHOTS_MAX / 2);
	assert_true(n <= EVENT_LOG_SNAPSHOTS_MAX);
	event_log_free(l);
}

static void
of_too_many_events_the_oldest_go(void **state)
{
	struct event_log *l = event_log_new(true, true, 6);
	uint64_t i;
	packet *p;

	for (i = 1; i <= EVENT_LOG_EVENTS_MAX + 10; i++)
		trigger(l, i);
	p = take(l, EVENT_QUEUE_EVENTS);
	assert_int_equal(p->timestamp, 11);
	drop(p);
	assert_int_equal(empty(l, EVENT_QUEUE_EVENTS),
	    EVENT_LOG_EVENTS_MAX - 1);
	event_log_free(l);
}

static void
a_clone_trigger_goes_before_all_others_even_when_full(void **state)
{
	struct event_log *l = event_log_new(true, true, 6);
	struct service_trigger t = { .name = "c", .producer_name = "p" };
	uint64_t i;

	for (i = 1; i <= EVENT_LOG_EVENTS_MAX; i++)
		trigger(l, i);
	event_log_clone_trigger(l, &t);
	assert_int_equal(kind(l, EVENT_QUEUE_EVENTS),
	    PACKET(CLONE_SNAPSHOT_TRIGGER));
	assert_int_equal(kind(l, EVENT_QUEUE_EVENTS), PACKET(TRIGGER));
	assert_int_equal(empty(l, EVENT_QUEUE_EVENTS),
	    EVENT_LOG_EVENTS_MAX - 2);
	event_log_free(l);
}

static void
what_is_switched_off_is_not_written(void **state)
{
	struct event_log *l = event_log_new(false, false, 6);
	struct service_slow_source slow = { "p", "d" };

	event_log_snapshot(l);
	event_log_event(l, SERVICE_EVENT_TRACING_STARTED);
	event_log_slow(l, SERVICE_EVENT_SLOW_STARTING_DATA_SOURCES, &slow, 1);
	event_log_buffer_cloned(l, 0);
	assert_true(is_empty(l));
	/* Triggers are no service events. */
	trigger(l, 1);
	assert_int_equal(kind(l, EVENT_QUEUE_EVENTS), PACKET(TRIGGER));
	event_log_free(l);
}

static void
a_copy_holds_all_and_is_independent(void **state)
{
	struct event_log *l = event_log_new(true, true, 6), *c;

	event_log_snapshot(l);
	trigger(l, 1);
	trigger(l, 2);
	c = event_log_clone(l);
	assert_non_null(c);
	event_log_free(l);
	assert_int_equal(empty(c, EVENT_QUEUE_SNAPSHOTS), 1);
	assert_int_equal(empty(c, EVENT_QUEUE_EVENTS), 2);
	event_log_free(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_come_out_in_the_order_they_happened),
		cmocka_unit_test(a_snapshot_has_all_clocks_and_the_primary_one),
		cmocka_unit_test(the_initial_snapshot_is_kept_when_there_are_too_many),
		cmocka_unit_test(of_too_many_events_the_oldest_go),
		cmocka_unit_test(a_clone_trigger_goes_before_all_others_even_when_full),
		cmocka_unit_test(what_is_switched_off_is_not_written),
		cmocka_unit_test(a_copy_holds_all_and_is_independent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
