#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/web/web_page.h"
#include "client/web/web_request.h"
#include "client/web/web_snapshot.h"
#include "protos/control.pb-c.h"

#define EVIL  "<script>alert('1')</script>\"\x1b[31m&"
#define TAMED "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot;"           \
    "\\x1b[31m&amp;"

/* To be freed. */
static char *
print(const struct web_snapshot *s, const struct web_query *q)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	web_page_print(out, s, q, "unix:/run/c", false, 1800000000);
	fclose(out);
	return text;
}

static size_t
count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)) != NULL; text += strlen(what))
		n++;
	return n;
}

static void
text_of_peers_is_escaped_everywhere(void **state)
{
	Tributary__QueryMetricsReply metrics =
	    TRIBUTARY__QUERY_METRICS_REPLY__INIT;
	Tributary__QuerySessionsReply sessions =
	    TRIBUTARY__QUERY_SESSIONS_REPLY__INIT;
	Tributary__QueryRecordingsReply recordings =
	    TRIBUTARY__QUERY_RECORDINGS_REPLY__INIT;
	Tributary__QueryMachinesReply machines =
	    TRIBUTARY__QUERY_MACHINES_REPLY__INIT;
	Tributary__QueryProducersReply producers =
	    TRIBUTARY__QUERY_PRODUCERS_REPLY__INIT;
	Tributary__SessionState session = TRIBUTARY__SESSION_STATE__INIT;
	Tributary__RecordingState recording = TRIBUTARY__RECORDING_STATE__INIT;
	Tributary__MachineState machine = TRIBUTARY__MACHINE_STATE__INIT;
	Tributary__ProducerState producer = TRIBUTARY__PRODUCER_STATE__INIT;
	Tributary__QueryMetricsReply__Count loss =
	    TRIBUTARY__QUERY_METRICS_REPLY__COUNT__INIT, *loss_at = &loss;
	Tributary__SessionState *session_at = &session;
	Tributary__RecordingState *recording_at = &recording;
	Tributary__MachineState *machine_at = &machine;
	Tributary__ProducerState *producer_at = &producer;
	double rate = 1000;
	struct web_snapshot s = { .metrics = &metrics, .sessions = &sessions,
		.recordings = &recordings, .machines = &machines,
		.producers = &producers, .producer_rates = { &rate, 1 } };
	char evil[] = EVIL, *text;
	struct web_query q;

	session.unique_session_name = session.owner = session.error = evil;
	sessions.sessions = &session_at;
	recording.name = recording.reason = evil;
	recording.state = TRIBUTARY__RECORDING_STATE__STATE__WAITING;
	recordings.recordings = &recording_at;
	machine.id = producer.machine_id = 1;
	machine.name = machine.address = evil;
	machines.machines = &machine_at;
	producer.id = 1;
	producer.name = producer.machine_name = evil;
	producers.producers = &producer_at;
	loss.label = evil;
	loss.has_value = 1;
	loss.value = 1;
	metrics.lost_packets = metrics.refused = &loss_at;
	metrics.version = evil;
	sessions.n_sessions = recordings.n_recordings = 1;
	machines.n_machines = producers.n_producers = 1;
	metrics.n_lost_packets = metrics.n_refused = 1;
	web_query_init(&q);
	text = print(&s, &q);
	assert_null(strstr(text, "<script"));
	assert_null(strchr(text, '\x1b'));
	/* Problems, tables, search, version: nothing was left out. */
	assert_true(count(text, TAMED) >= 11);
	free(text);
	strcpy(q.search, "\"><script>");
	text = print(&s, &q);
	assert_null(strstr(text, "<script"));
	assert_non_null(strstr(text, "value=\"&quot;&gt;&lt;script&gt;\""));
	free(text);
}

#define CROWD 10000u

/* m-0 to m-9999, of which each hundredth is cut off; to be freed as a whole. */
struct crowd {
	Tributary__QueryMachinesReply reply;
	Tributary__MachineState all[CROWD], *at[CROWD];
	double rates[CROWD];
	char names[CROWD][8];
	struct web_snapshot snapshot;
};

static struct crowd *
crowd_new(void)
{
	struct crowd *c = calloc(1, sizeof(*c));
	size_t i;

	assert_non_null(c);
	tributary__query_machines_reply__init(&c->reply);
	for (i = 0; i < CROWD; i++) {
		tributary__machine_state__init(&c->all[i]);
		snprintf(c->names[i], sizeof(c->names[i]), "m-%zu", i);
		c->all[i].id = (uint32_t)i + 1;
		c->all[i].name = c->names[i];
		c->all[i].state = i % 100 == 0 ?
		    TRIBUTARY__MACHINE_STATE__STATE__CUT :
		    TRIBUTARY__MACHINE_STATE__STATE__CONNECTED;
		c->at[i] = &c->all[i];
		c->rates[i] = 1;
	}
	c->reply.machines = c->at;
	c->reply.n_machines = CROWD;
	c->snapshot.machines = &c->reply;
	c->snapshot.machine_rates = (struct web_rates){ c->rates, CROWD };
	return c;
}

static void
ten_thousand_machines_come_in_pages(void **state)
{
	struct crowd *c = crowd_new();
	struct web_query q;
	char *text;

	web_query_init(&q);
	text = print(&c->snapshot, &q);
	assert_int_equal(count(text, ">m-"), WEB_PAGE_MACHINES);
	assert_non_null(strstr(text, "10000 machines, page 1 of 200"));
	assert_non_null(strstr(text, "100 machines are cut off."));
	assert_non_null(strstr(text, ">Next<"));
	assert_null(strstr(text, ">Previous<"));
	assert_true(strlen(text) < 48 * 1024);
	free(text);
	q.page = 200;
	text = print(&c->snapshot, &q);
	assert_int_equal(count(text, ">m-"), WEB_PAGE_MACHINES);
	assert_non_null(strstr(text, ">m-9999<"));
	assert_null(strstr(text, ">Next<"));
	assert_true(strlen(text) < 48 * 1024);
	free(text);
	q.page = 1000;
	text = print(&c->snapshot, &q);
	assert_non_null(strstr(text, "page 1 of 200"));
	free(text);
	free(c);
}

static void
machines_are_found_by_name_and_state(void **state)
{
	struct crowd *c = crowd_new();
	struct web_query q;
	char *text;

	web_query_init(&q);
	strcpy(q.search, "M-999");
	text = print(&c->snapshot, &q);
	assert_int_equal(count(text, ">m-"), 11);
	assert_non_null(strstr(text, "11 machines, page 1 of 1"));
	free(text);
	strcpy(q.search, "cut");
	text = print(&c->snapshot, &q);
	assert_non_null(strstr(text, "100 machines, page 1 of 2"));
	assert_non_null(strstr(text, ">m-4900<"));
	assert_null(strstr(text, ">m-1<"));
	free(text);
	strcpy(q.search, "nobody");
	text = print(&c->snapshot, &q);
	assert_non_null(strstr(text, "0 machines, page 1 of 1"));
	free(text);
	free(c);
}

static void
the_last_refusal_is_told(void **state)
{
	Tributary__QueryMetricsReply metrics =
	    TRIBUTARY__QUERY_METRICS_REPLY__INIT;
	Tributary__QueryMetricsReply__Count refusal =
	    TRIBUTARY__QUERY_METRICS_REPLY__COUNT__INIT, *at = &refusal;
	struct web_snapshot s = { .metrics = &metrics };
	char label[] = "limits.max_sessions", *text;
	struct web_query q;

	refusal.label = label;
	refusal.value = 7;
	refusal.last_ns = UINT64_C(1799999970) * 1000000000;
	metrics.now_ns = UINT64_C(1800000000) * 1000000000;
	metrics.refused = &at;
	metrics.n_refused = 1;
	web_query_init(&q);
	text = print(&s, &q);
	assert_non_null(strstr(text, ">limits.max_sessions<"));
	assert_non_null(strstr(text, "data-head=\"The last one\""));
	assert_non_null(strstr(text, ">30.0 s<"));
	free(text);
}

static void
health_comes_first_and_refreshing_can_be_stopped(void **state)
{
	struct web_snapshot s = { .why = "nobody <listens> there" };
	struct web_query q;
	char *text;

	web_query_init(&q);
	text = print(&s, &q);
	assert_non_null(strstr(text, "<main>\n<section class=\"state bad\""));
	assert_non_null(strstr(text, "Not healthy"));
	assert_non_null(strstr(text, "nobody &lt;listens&gt; there"));
	assert_non_null(strstr(text, "http-equiv=\"refresh\" content=\"5\""));
	assert_non_null(strstr(text, "refresh=0"));
	free(text);
	q.refresh_s = 0;
	s.why[0] = '\0';
	text = print(&s, &q);
	assert_non_null(strstr(text, "<section class=\"state good\""));
	assert_null(strstr(text, "http-equiv"));
	free(text);
}

static void
the_fastest_talkers_come_first(void **state)
{
	Tributary__QueryProducersReply producers =
	    TRIBUTARY__QUERY_PRODUCERS_REPLY__INIT;
	static Tributary__ProducerState all[30], *at[30];
	static double rates[30];
	struct web_snapshot s = { .producers = &producers,
		.producer_rates = { rates, 30 } };
	static char names[30][8];
	struct web_query q;
	char *text;
	size_t i;

	for (i = 0; i < 30; i++) {
		tributary__producer_state__init(&all[i]);
		snprintf(names[i], sizeof(names[i]), "p-%zu", i);
		all[i].name = names[i];
		at[i] = &all[i];
		rates[i] = (double)(i * 7 % 30) - 1;
	}
	producers.producers = at;
	producers.n_producers = 30;
	web_query_init(&q);
	text = print(&s, &q);
	assert_int_equal(count(text, ">p-"), WEB_PAGE_TALKERS);
	/* 17 * 7 % 30 is 29; 4 * 7 % 30 is 28. */
	assert_true(strstr(text, ">p-17<") < strstr(text, ">p-4<"));
	assert_non_null(strstr(text, ">p-17<"));
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_of_peers_is_escaped_everywhere),
		cmocka_unit_test(ten_thousand_machines_come_in_pages),
		cmocka_unit_test(machines_are_found_by_name_and_state),
		cmocka_unit_test(
		    health_comes_first_and_refreshing_can_be_stopped),
		cmocka_unit_test(the_last_refusal_is_told),
		cmocka_unit_test(the_fastest_talkers_come_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
