#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "client/web/web_health.h"
#include "client/web/web_snapshot.h"
#include "protos/control.pb-c.h"

#define NOW UINT64_C(1800000000)
#define DAY UINT64_C(86400)

/* A collector on whose parts a case changes something. */
static struct parts {
	struct web_snapshot s;
	Tributary__QueryMetricsReply metrics;
	Tributary__QuerySessionsReply sessions;
	Tributary__QueryRecordingsReply recordings;
	Tributary__QueryMachinesReply machines;
	Tributary__SessionState session, *session_at;
	Tributary__RecordingState recording, *recording_at;
	Tributary__MachineState machine, *machine_at;
	Tributary__QueryMetricsReply__Count disk, *disk_at;
	struct web_health h;
} p;

static int
setup(void **state)
{
	memset(&p, 0, sizeof(p));
	tributary__query_metrics_reply__init(&p.metrics);
	tributary__query_sessions_reply__init(&p.sessions);
	tributary__query_recordings_reply__init(&p.recordings);
	tributary__query_machines_reply__init(&p.machines);
	tributary__session_state__init(&p.session);
	tributary__recording_state__init(&p.recording);
	tributary__machine_state__init(&p.machine);
	tributary__query_metrics_reply__count__init(&p.disk);
	p.session_at = &p.session;
	p.sessions.sessions = &p.session_at;
	p.recording_at = &p.recording;
	p.recordings.recordings = &p.recording_at;
	p.machine_at = &p.machine;
	p.machines.machines = &p.machine_at;
	p.disk_at = &p.disk;
	p.metrics.disk_free_bytes = &p.disk_at;
	p.sessions.n_sessions = p.recordings.n_recordings = 1;
	p.machines.n_machines = p.metrics.n_disk_free_bytes = 1;
	p.recording.name = (char *)"always";
	p.recording.state = TRIBUTARY__RECORDING_STATE__STATE__RUNNING;
	p.machine.state = TRIBUTARY__MACHINE_STATE__STATE__CONNECTED;
	p.disk.label = (char *)"archive_dir";
	p.disk.value = UINT64_C(1) << 40;
	p.s.metrics = &p.metrics;
	p.s.sessions = &p.sessions;
	p.s.recordings = &p.recordings;
	p.s.machines = &p.machines;
	return 0;
}

static void
assert_problem(const char *text)
{
	web_health_judge(&p.h, &p.s, NOW);
	assert_int_equal(p.h.n, 1);
	assert_string_equal(p.h.problems[0], text);
}

static void
all_is_well(void **state)
{
	web_health_judge(&p.h, &p.s, NOW);
	assert_int_equal(p.h.n, 0);
}

static void
a_collector_that_does_not_answer_is_the_only_problem(void **state)
{
	p.machine.state = TRIBUTARY__MACHINE_STATE__STATE__CUT;
	strcpy(p.s.why, "nobody listens there");
	assert_problem("The collector cannot be asked: nobody listens there");
}

static void
a_recording_that_waits_says_why(void **state)
{
	p.recording.state = TRIBUTARY__RECORDING_STATE__STATE__WAITING;
	p.recording.reason = (char *)"the disk is full";
	assert_problem("Recording always does not run, and will be tried "
	    "again: the disk is full.");
}

static void
a_recording_that_a_person_stopped_is_told(void **state)
{
	p.recording.state = TRIBUTARY__RECORDING_STATE__STATE__STOPPED;
	assert_problem("Recording always was stopped by a person.");
}

static void
a_session_that_failed_is_a_problem(void **state)
{
	p.session.id = 7;
	p.session.error = (char *)"its file is gone";
	assert_problem("Session 7 failed: its file is gone");
}

static void
machines_that_are_cut_off_are_counted(void **state)
{
	p.machine.state = TRIBUTARY__MACHINE_STATE__STATE__CUT;
	assert_problem("1 machine is cut off.");
}

static void
machines_that_went_are_none(void **state)
{
	p.machine.state = TRIBUTARY__MACHINE_STATE__STATE__GONE;
	web_health_judge(&p.h, &p.s, NOW);
	assert_int_equal(p.h.n, 0);
}

static void
a_certificate_is_told_of_two_weeks_before(void **state)
{
	p.metrics.has_certificate_expiry_s = 1;
	p.metrics.certificate_expiry_s = NOW + 14 * DAY;
	web_health_judge(&p.h, &p.s, NOW);
	assert_int_equal(p.h.n, 0);
	p.metrics.certificate_expiry_s = NOW + 14 * DAY - 1;
	assert_problem("The collector's certificate ends in 13 days.");
	p.metrics.certificate_expiry_s = NOW - 1;
	assert_problem("The collector's certificate has ended: nobody can "
	    "connect with TLS.");
}

static void
a_disk_is_told_of_a_day_before(void **state)
{
	p.recording.bytes_per_second = 1 << 20;
	p.disk.value = (UINT64_C(24) * 3600) << 20;
	assert_true(web_health_hours_left(&p.s, "archive_dir") == 24.0);
	assert_true(web_health_hours_left(&p.s, "trace_dir") < 0);
	web_health_judge(&p.h, &p.s, NOW);
	assert_int_equal(p.h.n, 0);
	p.disk.value /= 2;
	assert_problem("The disk of archive_dir is full in 12.0 hours.");
	p.recording.bytes_per_second = 0;
	p.disk.value = 1 << 20;
	assert_problem("The disk of archive_dir is nearly full: 1.0 MiB are "
	    "left.");
}

static void
problems_are_bounded(void **state)
{
	Tributary__SessionState *all[100];
	size_t i;

	for (i = 0; i < 100; i++)
		all[i] = &p.session;
	p.session.error = (char *)"x";
	p.sessions.sessions = all;
	p.sessions.n_sessions = 100;
	web_health_judge(&p.h, &p.s, NOW);
	assert_int_equal(p.h.n, WEB_PROBLEMS_MAX);
	assert_int_equal(p.h.more, 100 - WEB_PROBLEMS_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(all_is_well, setup),
		cmocka_unit_test_setup(
		    a_collector_that_does_not_answer_is_the_only_problem,
		    setup),
		cmocka_unit_test_setup(a_recording_that_waits_says_why, setup),
		cmocka_unit_test_setup(a_recording_that_a_person_stopped_is_told,
		    setup),
		cmocka_unit_test_setup(a_session_that_failed_is_a_problem,
		    setup),
		cmocka_unit_test_setup(machines_that_are_cut_off_are_counted,
		    setup),
		cmocka_unit_test_setup(machines_that_went_are_none, setup),
		cmocka_unit_test_setup(a_certificate_is_told_of_two_weeks_before,
		    setup),
		cmocka_unit_test_setup(a_disk_is_told_of_a_day_before, setup),
		cmocka_unit_test_setup(problems_are_bounded, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
