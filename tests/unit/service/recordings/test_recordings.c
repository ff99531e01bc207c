#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "protos/control.pb-c.h"
#include "service/recordings/recording.h"
#include "service/recordings/recordings.h"
#include "service/session/trigger.h"
#include "tests/unit/fake_time.h"
#include "tests/unit/service/session/fixture.h"
#include "transport/wire/pb_writer.h"

#define STATE(name) TRIBUTARY__RECORDING_STATE__STATE__##name
#define CONFIG "buffers { size_kb: 64 } data_sources { config { name: 'src' } }"
/* A recording that needs no file to run. */
#define FLIGHT(name)                                                          \
	"recording { name: '" name "' config_file: 'c.pbtx' "                 \
	"flight { at_trigger: 'drop' } } "

static struct recordings *all;
static Tributary__QueryRecordingsReply *told;

static void
write_file(const struct fixture *f, const char *name, const char *text)
{
	char path[128];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	assert_non_null(out = fopen(path, "w"));
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

static void
write_settings(const struct fixture *f, const char *recordings)
{
	char text[1024];

	snprintf(text, sizeof(text), "archive_dir: '%s' %s", f->dir,
	    recordings);
	write_file(f, "settings.pbtx", text);
}

static void
begin_with(struct fixture *f, const char *recordings)
{
	char path[128], err[SETTINGS_ERROR_SIZE];

	write_file(f, "c.pbtx", CONFIG);
	write_settings(f, recordings);
	snprintf(path, sizeof(path), "%s/settings.pbtx", f->dir);
	if (settings_load(&f->settings, path, err, sizeof(err)) != 0 ||
	    (all = recordings_new(f->service, err, sizeof(err))) == NULL)
		fail_msg("%s", err);
	recordings_begin(all);
}

static int
setup(void **state)
{
	all = NULL;
	told = NULL;
	fixture_pass_time = fake_time_tick;
	fake_time_reset();
	return fixture_setup(state);
}

static int
teardown(void **state)
{
	recordings_free(all);
	if (told != NULL)
		tributary__query_recordings_reply__free_unpacked(told, NULL);
	return fixture_teardown(state);
}

/* NULL: there is no such recording. */
static const Tributary__RecordingState *
look_as(const char *name, uint32_t uid)
{
	struct pb_writer w;
	size_t i;

	if (told != NULL)
		tributary__query_recordings_reply__free_unpacked(told, NULL);
	pb_writer_init(&w);
	recordings_report(all, fake_user(uid), 1, &w);
	told = tributary__query_recordings_reply__unpack(NULL, w.len, w.data);
	pb_writer_done(&w);
	assert_non_null(told);
	for (i = 0; i < told->n_recordings; i++)
		if (strcmp(told->recordings[i]->name, name) == 0)
			return told->recordings[i];
	return NULL;
}

static const Tributary__RecordingState *
look(const char *name)
{
	return look_as(name, 0);
}

static Tributary__RecordingState__State
state_of(const char *name)
{
	const Tributary__RecordingState *s = look(name);

	assert_non_null(s);
	return s->state;
}

static bool
a_waits(void *arg)
{
	return state_of("a") == STATE(WAITING);
}

static bool
a_runs(void *arg)
{
	return state_of("a") == STATE(RUNNING);
}

static bool
c_is_gone(void *arg)
{
	return look("c") == NULL;
}

struct outcome {
	int calls;
	char error[RECORDING_TEXT];
};

static void
note(void *arg, const char *error)
{
	struct outcome *o = arg;

	o->calls++;
	snprintf(o->error, sizeof(o->error), "%s", error != NULL ? error : "");
}

static bool
is_answered(void *arg)
{
	return ((struct outcome *)arg)->calls > 0;
}

/* Gives an order and waits for its answer, which is a sentence, or "". */
static const char *
order_as(struct fixture *f, enum recording_verb verb, const char *name,
    uint32_t uid)
{
	static struct outcome o;

	memset(&o, 0, sizeof(o));
	recordings_order(all, &(struct recording_order){ .verb = verb,
	    .name = name, .who = fake_user(uid) }, note, &o);
	fixture_wait(f, is_answered, &o);
	assert_int_equal(o.calls, 1);
	return o.error;
}

static const char *
order(struct fixture *f, enum recording_verb verb, const char *name)
{
	return order_as(f, verb, name, 0);
}

static void
a_recording_is_a_session_of_the_daemon(void **state)
{
	struct fixture *f = *state;
	struct session *s;

	begin_with(f, FLIGHT("a") FLIGHT("b"));
	assert_int_equal(state_of("a"), STATE(RUNNING));
	assert_int_equal(state_of("b"), STATE(RUNNING));
	s = session_find_by_name(f->service, "a");
	assert_non_null(s);
	assert_int_equal(s->owner.uid, geteuid());
	assert_int_equal(look("a")->session, s->id);
	/* Nobody else sees it, or learns that it is there. */
	assert_null(look_as("a", 31001));
	assert_non_null(strstr(order_as(f, RECORDING_DO_STOP, "a", 31001),
	    "may not command"));
	assert_non_null(strstr(order(f, RECORDING_DO_STOP, "none"),
	    "may not command"));
	assert_int_equal(state_of("a"), STATE(RUNNING));
}

static void
it_begins_again_whatever_ended_it(void **state)
{
	struct fixture *f = *state;
	uint64_t first, pause;

	begin_with(f, FLIGHT("a"));
	first = look("a")->session;
	session_disable(session_find_by_name(f->service, "a"), "the disk died");
	fixture_wait(f, a_waits, NULL);
	assert_string_equal(look("a")->reason, "the disk died");
	pause = fake_time_next();
	assert_in_range(pause, RECORDING_PAUSE_MIN_MS / 2 - 100,
	    RECORDING_PAUSE_MIN_MS);
	fixture_wait(f, a_runs, NULL);
	assert_int_not_equal(look("a")->session, first);
	assert_int_equal(look("a")->begun, 2);
	assert_string_equal(look("a")->reason, "the disk died");
}

static void
pauses_grow_until_a_session_lasts(void **state)
{
	struct fixture *f = *state;
	int i;

	begin_with(f, FLIGHT("a"));
	for (i = 0; i < 8; i++) {
		session_disable(session_find_by_name(f->service, "a"), "bad");
		fixture_wait(f, a_waits, NULL);
		assert_true(fake_time_next() <= RECORDING_PAUSE_MAX_MS);
		if (i == 7)
			assert_true(fake_time_next() >
			    RECORDING_PAUSE_MAX_MS / 2 - 100);
		fake_time_pass(fake_time_next(), NULL);
		fixture_wait(f, a_runs, NULL);
	}
	fake_time_pass(RECORDING_STEADY_MS, NULL);
	session_disable(session_find_by_name(f->service, "a"), "bad");
	fixture_wait(f, a_waits, NULL);
	assert_true(fake_time_next() <= RECORDING_PAUSE_MIN_MS);
}

static void
a_recording_that_a_person_stopped_stays_so(void **state)
{
	struct fixture *f = *state;

	begin_with(f, FLIGHT("a"));
	assert_string_equal(order(f, RECORDING_DO_STOP, "a"), "");
	assert_int_equal(state_of("a"), STATE(STOPPED));
	assert_true(TAILQ_EMPTY(&f->service->sessions));
	assert_string_equal(order(f, RECORDING_DO_STOP, "a"), "");
	/* A change of its settings does not start it. */
	write_file(f, "c.pbtx", CONFIG " flush_period_ms: 5");
	recordings_reload(all);
	assert_int_equal(state_of("a"), STATE(STOPPED));
	assert_int_equal(fake_time_next(), UINT64_MAX);
	assert_string_equal(order(f, RECORDING_DO_START, "a"), "");
	assert_int_equal(state_of("a"), STATE(RUNNING));
	assert_string_equal(order(f, RECORDING_DO_START, "a"),
	    "it records already");
}

static bool
was_called(void *arg)
{
	return ((struct outcome *)arg)->calls > 0;
}

static void
give(enum recording_verb verb, struct outcome *o)
{
	memset(o, 0, sizeof(*o));
	recordings_order(all, &(struct recording_order){ .verb = verb,
	    .name = "a", .who = fake_user(0) }, note, o);
}

static void
a_start_right_behind_a_stop_begins_anew_at_once(void **state)
{
	struct fixture *f = *state;
	struct outcome stop, start;

	begin_with(f, FLIGHT("a"));
	give(RECORDING_DO_STOP, &stop);
	give(RECORDING_DO_START, &start);
	assert_int_equal(stop.calls + start.calls, 0);
	fixture_wait(f, was_called, &stop);
	assert_string_equal(stop.error, "");
	fixture_wait(f, was_called, &start);
	assert_string_equal(start.error, "");
	assert_int_equal(state_of("a"), STATE(RUNNING));
	assert_int_equal(look("a")->begun, 2);
}

static void
a_pause_ends_by_stop_and_by_start(void **state)
{
	struct fixture *f = *state;

	begin_with(f, FLIGHT("a"));
	session_disable(session_find_by_name(f->service, "a"), "bad");
	fixture_wait(f, a_waits, NULL);
	assert_string_equal(order(f, RECORDING_DO_START, "a"), "");
	session_disable(session_find_by_name(f->service, "a"), "bad");
	fixture_wait(f, a_waits, NULL);
	assert_string_equal(order(f, RECORDING_DO_STOP, "a"), "");
	assert_int_equal(fake_time_next(), UINT64_MAX);
}

static void
a_session_that_cannot_begin_is_tried_again(void **state)
{
	struct fixture *f = *state;
	struct fake_consumer c;

	assert_non_null(fake_enable(f, &c, CONFIG "unique_session_name: 'a'",
	    -1));
	begin_with(f, FLIGHT("a"));
	fixture_wait(f, a_waits, NULL);
	assert_non_null(strstr(look("a")->reason, "already exists"));
	assert_non_null(strstr(order(f, RECORDING_DO_START, "a"),
	    "already exists"));
	fake_end(f, &c);
	fixture_wait(f, a_runs, NULL);
}

static void
other_settings_leave_alone_what_stays_the_same(void **state)
{
	struct fixture *f = *state;
	uint64_t a, b;

	begin_with(f, FLIGHT("a") FLIGHT("b") FLIGHT("c"));
	a = look("a")->session;
	b = look("b")->session;
	/* a stays, b is changed, c goes, d comes. */
	write_file(f, "other.pbtx", CONFIG " flush_period_ms: 5");
	write_settings(f, FLIGHT("d") FLIGHT("a") "recording { name: 'b' "
	    "config_file: 'other.pbtx' flight { at_trigger: 'drop' } }");
	recordings_reload(all);
	fixture_wait(f, c_is_gone, NULL);
	assert_int_equal(look("a")->session, a);
	assert_int_equal(look("a")->begun, 1);
	assert_int_not_equal(look("b")->session, b);
	assert_int_equal(state_of("b"), STATE(RUNNING));
	assert_int_equal(state_of("d"), STATE(RUNNING));
}

static void
a_recording_that_comes_back_at_once_begins_anew(void **state)
{
	struct fixture *f = *state;

	begin_with(f, FLIGHT("a"));
	write_settings(f, "");
	recordings_reload(all);
	write_settings(f, FLIGHT("a"));
	recordings_reload(all);
	fixture_wait(f, a_runs, NULL);
	assert_int_equal(told->n_recordings, 1);
}

static void
settings_that_are_wrong_change_nothing(void **state)
{
	struct fixture *f = *state;
	uint64_t a;

	begin_with(f, FLIGHT("a"));
	a = look("a")->session;
	write_settings(f, "recording { name: 'b' config_file: 'none.pbtx' }");
	recordings_reload(all);
	write_file(f, "settings.pbtx", "archive_dir: '/' " FLIGHT("b"));
	recordings_reload(all);
	write_file(f, "settings.pbtx", "nonsense");
	recordings_reload(all);
	assert_int_equal(look("a")->session, a);
	assert_int_equal(told->n_recordings, 1);
}

static void
a_flight_recorder_is_not_cut(void **state)
{
	struct fixture *f = *state;

	begin_with(f, FLIGHT("a"));
	assert_non_null(strstr(order(f, RECORDING_DO_ROTATE, "a"),
	    "flight recorder"));
}

static uint64_t
snapshots_of_a(void)
{
	return look("a")->snapshots;
}

static bool
one_is_written(void *arg)
{
	return snapshots_of_a() == 1;
}

static bool
two_are_written(void *arg)
{
	return snapshots_of_a() == 2;
}

static bool
one_has_failed(void *arg)
{
	return look("a")->snapshots_failed == 1;
}

static void
triggers_that_come_together_share_a_segment(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;
	int i;

	begin_with(f, FLIGHT("a"));
	fake_producer_init(&p, f, "p", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, false);
	for (i = 0; i < 5; i++)
		trigger_activate(p.p, "drop", 4);
	assert_int_equal(snapshots_of_a(), 0);
	fake_time_pass(10000, NULL); /* after_ms */
	fixture_wait(f, one_is_written, NULL);
	assert_int_equal(look("a")->shared, 3);
	/* The second is for all others, and not before the first has rested. */
	assert_in_range(fake_time_next(), 1, 10000);
	fake_time_pass(10000, NULL);
	fixture_wait(f, two_are_written, NULL);
	fake_time_pass(30000, NULL);
	assert_int_equal(snapshots_of_a(), 2);
	fake_producer_done(&p);
}

static void
a_segment_that_cannot_be_written_is_told(void **state)
{
	struct fixture *f = *state;
	struct fake_producer p;

	begin_with(f, FLIGHT("a"));
	fake_producer_init(&p, f, "p", true);
	p.ack_flushes = true;
	fake_producer_register(&p, "src", false, false);
	f->settings.limits.max_sessions = 1;
	trigger_activate(p.p, "drop", 4);
	fake_time_pass(10000, NULL);
	fixture_wait(f, one_has_failed, NULL);
	assert_non_null(strstr(look("a")->snapshot_error, "max_sessions"));
	assert_int_equal(snapshots_of_a(), 0);
	assert_int_equal(state_of("a"), STATE(RUNNING));
	/* The next one makes it good. */
	f->settings.limits.max_sessions = 16;
	trigger_activate(p.p, "drop", 4);
	fake_time_pass(30000, NULL);
	fixture_wait(f, one_is_written, NULL);
	assert_null(look("a")->snapshot_error);
	assert_int_equal(look("a")->snapshots_failed, 1);
	fake_producer_done(&p);
}

static void
an_order_is_forgotten_with_its_connection(void **state)
{
	struct outcome o = { 0 };
	struct fixture *f = *state;

	begin_with(f, FLIGHT("a"));
	recordings_order(all, &(struct recording_order){
	    .verb = RECORDING_DO_STOP, .name = "a", .who = fake_user(0) },
	    note, &o);
	recordings_forget(all, &o);
	assert_string_equal(order(f, RECORDING_DO_STOP, "a"), "");
	assert_int_equal(o.calls, 0);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_recording_is_a_session_of_the_daemon),
		CASE(it_begins_again_whatever_ended_it),
		CASE(pauses_grow_until_a_session_lasts),
		CASE(a_recording_that_a_person_stopped_stays_so),
		CASE(a_start_right_behind_a_stop_begins_anew_at_once),
		CASE(a_pause_ends_by_stop_and_by_start),
		CASE(a_session_that_cannot_begin_is_tried_again),
		CASE(other_settings_leave_alone_what_stays_the_same),
		CASE(a_recording_that_comes_back_at_once_begins_anew),
		CASE(settings_that_are_wrong_change_nothing),
		CASE(a_flight_recorder_is_not_cut),
		CASE(triggers_that_come_together_share_a_segment),
		CASE(a_segment_that_cannot_be_written_is_told),
		CASE(an_order_is_forgotten_with_its_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
