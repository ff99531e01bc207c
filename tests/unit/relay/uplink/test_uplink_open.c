#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/link.pb-c.h"
#include "protos/metrics.pb-c.h"
#include "relay/outbox/outbox.h"
#include "relay/settings/settings.h"
#include "relay/uplink/open_call.h"
#include "relay/uplink/status.h"
#include "transport/loop/delays.h"

#define WHY(name) TRIBUTARY__LINK_OPENED__WHY__##name
#define LOSS(cause) TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_##cause

static const struct relay_settings settings = {
	.machine_name = (char *)"device-7",
	.machine_id = (char *)"boot-7",
};
static const struct relay_settings compressing = {
	.machine_name = (char *)"device-7",
	.machine_id = (char *)"boot-7",
	.compression_level = 3,
};
static const struct outbox_state linked = {
	.resumable = true,
	.link_id = "link-id-16-bytes",
	.relay_id = "relay-id16-bytes",
	.collector_id = "coll-id-16-bytes",
	.last_sent = 70,
	.last_acked = 50,
	.received = 9,
};
static const struct outbox_state unlinked = {
	.link_id = "link-id-16-bytes",
	.relay_id = "relay-id16-bytes",
};

static Tributary__LinkOpen *
open_of(const struct outbox_state *st, const struct relay_settings *s)
{
	Tributary__LinkOpen *m;
	uint8_t *bytes;
	size_t len;

	bytes = uplink_open_encode(st, s,
	    &(struct uplink_moving){ .can = true }, &len);
	assert_non_null(bytes);
	m = tributary__link_open__unpack(NULL, len, bytes);
	assert_non_null(m);
	free(bytes);
	return m;
}

static void
open_says_where_the_link_stands(void **state)
{
	Tributary__LinkOpen *m = open_of(&linked, &settings);

	assert_int_equal(m->version, 1);
	assert_memory_equal(m->link_id.data, "link-id-16-bytes", 16);
	assert_memory_equal(m->relay_id.data, "relay-id16-bytes", 16);
	assert_int_equal(m->collector_id.len, 16);
	assert_memory_equal(m->collector_id.data, "coll-id-16-bytes", 16);
	assert_int_equal(m->last_sent, 70);
	assert_int_equal(m->last_acknowledged, 50);
	assert_int_equal(m->received, 9);
	assert_int_equal(m->n_compression, 0);
	tributary__link_open__free_unpacked(m, NULL);
}

static void
open_says_which_machine_it_is(void **state)
{
	Tributary__LinkOpen *m = open_of(&unlinked, &compressing);

	assert_string_equal(m->machine_id_hint, "boot-7");
	assert_string_equal(m->machine_name, "device-7");
	assert_int_equal(strncmp(m->software, "tributary-relay ", 16), 0);
	assert_true(m->system_info.len > 0);
	assert_int_equal(m->collector_id.len, 0);
	assert_int_equal(m->n_compression, 1);
	assert_int_equal(m->compression[0],
	    TRIBUTARY__LINK_COMPRESSION__LINK_ZSTD);
	tributary__link_open__free_unpacked(m, NULL);
}

static Tributary__LinkOpened
good(Tributary__LinkOpened__Why why)
{
	static uint8_t id[] = "coll-id-16-bytes";
	Tributary__LinkOpened m = TRIBUTARY__LINK_OPENED__INIT;

	m.has_version = m.has_why = m.has_collector_id = m.has_window = true;
	m.version = 1;
	m.why = why;
	m.collector_id.data = id;
	m.collector_id.len = 16;
	m.window = 1 << 20;
	m.has_received = true;
	m.received = why == WHY(RESUMED) ? 60 : 0;
	return m;
}

/* NULL: it is accepted. */
static const char *
wrong_with(const Tributary__LinkOpened *m, const struct outbox_state *st,
    const struct relay_settings *s)
{
	Tributary__LinkOpened *read;
	const char *wrong = "?";
	uint8_t out[512];
	size_t len = tributary__link_opened__pack(m, out);

	read = uplink_opened_decode(out, len, st, s, &wrong);
	if (read == NULL)
		return wrong;
	uplink_opened_free(read);
	assert_null(wrong);
	return NULL;
}

static void
an_answer_that_fits_is_taken(void **state)
{
	Tributary__LinkOpened m = good(WHY(RESUMED));

	assert_null(wrong_with(&m, &linked, &settings));
	m.received = 70;
	assert_null(wrong_with(&m, &linked, &settings));
	m.received = 50;
	assert_null(wrong_with(&m, &linked, &settings));
	m = good(WHY(NEW));
	assert_null(wrong_with(&m, &unlinked, &settings));
	assert_null(wrong_with(&m, &linked, &settings));
	m.has_compression = true;
	m.compression = TRIBUTARY__LINK_COMPRESSION__LINK_ZSTD;
	assert_null(wrong_with(&m, &unlinked, &compressing));
}

static void
an_answer_that_cannot_be_is_refused(void **state)
{
	static uint8_t other[] = "another-16-bytes";
	Tributary__LinkOpened m;
	const char *wrong;

	m = good(WHY(RESUMED));
	assert_non_null(wrong_with(&m, &unlinked, &settings));
	m.collector_id.data = other;
	assert_non_null(wrong_with(&m, &linked, &settings));
	m = good(WHY(RESUMED));
	m.received = 71; /* was never sent */
	assert_non_null(wrong_with(&m, &linked, &settings));
	m.received = 49; /* was acknowledged, and is gone */
	assert_non_null(wrong_with(&m, &linked, &settings));
	m = good(WHY(NEW));
	m.version = 2;
	assert_non_null(wrong_with(&m, &unlinked, &settings));
	m = good(WHY(NEW));
	m.collector_id.len = 15;
	assert_non_null(wrong_with(&m, &unlinked, &settings));
	m = good(WHY(NEW));
	m.window = LINK_BLOCK_MAX - 1;
	assert_non_null(wrong_with(&m, &unlinked, &settings));
	m = good(WHY(NEW));
	m.has_compression = true;
	m.compression = TRIBUTARY__LINK_COMPRESSION__LINK_ZSTD;
	assert_non_null(wrong_with(&m, &unlinked, &settings));
	assert_null(uplink_opened_decode((const uint8_t *)"\x0a\xff", 2,
	    &unlinked, &settings, &wrong));
}

static void
what_an_old_link_lost_has_a_cause(void **state)
{
	Tributary__LinkOpened m = good(WHY(COLLECTOR_RESTARTED));

	assert_int_equal(uplink_opened_cause(&m), LOSS(COLLECTOR_RESTARTED));
	m.why = WHY(GRACE_OVER);
	assert_int_equal(uplink_opened_cause(&m), LOSS(GRACE));
	m.why = WHY(GIVEN_UP);
	assert_int_equal(uplink_opened_cause(&m), LOSS(GRACE));
	m.why = 77; /* of a newer collector */
	assert_int_equal(uplink_opened_cause(&m), LOSS(GRACE));
}

static void
a_status_of_the_largest_numbers_fits(void **state)
{
	struct outbox_stats stats = {
		.memory_bytes = UINT64_MAX,
		.memory_limit = UINT64_MAX,
		.spool_bytes = UINT64_MAX,
		.spool_limit = UINT64_MAX,
		.oldest_ms = UINT64_MAX,
		.chunks_lost = { [1] = 2, [7] = 3 },
		.packets_lost = { [1] = UINT64_MAX - 9, [2] = 9 },
	};
	Tributary__ProcessMetrics process = TRIBUTARY__PROCESS_METRICS__INIT;
	struct delays delays = { .sum_ns = UINT64_MAX };
	uint8_t out[LINK_STATUS_MAX];
	Tributary__LinkStatus *m;

	process.has_cpu_ns = process.has_resident_bytes = true;
	process.has_virtual_bytes = process.has_open_fds = true;
	process.has_max_fds = process.has_start_ns = process.has_threads = true;
	process.cpu_ns = process.resident_bytes = process.virtual_bytes =
	    process.open_fds = process.max_fds = process.start_ns =
	    process.threads = UINT64_MAX;
	memset(delays.n, 0xff, sizeof(delays.n));
	m = tributary__link_status__unpack(NULL, uplink_status_encode(out,
	    &(struct uplink_status){ &stats, UINT32_MAX, UINT64_MAX, &process,
	    &delays }), out);
	assert_non_null(m);
	assert_true(m->process->threads == UINT64_MAX);
	assert_int_equal(m->n_loop_delays, DELAYS);
	assert_int_equal(m->loop_delays[0], UINT32_MAX);
	assert_true(m->loop_delay_sum_ns == UINT64_MAX);
	assert_int_equal(m->chunks_lost, 5);
	assert_true(m->packets_lost == UINT64_MAX);
	assert_int_equal(m->producers, UINT32_MAX);
	assert_true(m->oldest_ms == UINT64_MAX);
	tributary__link_status__free_unpacked(m, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_says_where_the_link_stands),
		cmocka_unit_test(open_says_which_machine_it_is),
		cmocka_unit_test(an_answer_that_fits_is_taken),
		cmocka_unit_test(an_answer_that_cannot_be_is_refused),
		cmocka_unit_test(what_an_old_link_lost_has_a_cause),
		cmocka_unit_test(a_status_of_the_largest_numbers_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
