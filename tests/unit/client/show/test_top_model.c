#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/show/top_model.h"
#include "client/show/top_print.h"
#include "client/show/top_table.h"
#include "client/text/text_width.h"
#include "protos/control.pb-c.h"
#include "protos/utf8.h"

#define SECOND 1000000000ull

static struct top_model *model;
static char *text;

static Tributary__SessionState__Buffer buffer =
    TRIBUTARY__SESSION_STATE__BUFFER__INIT;
static Tributary__SessionState__Buffer *buffers[1] = { &buffer };
static Tributary__SessionState session = TRIBUTARY__SESSION_STATE__INIT;
static Tributary__SessionState *sessions[1] = { &session };
static Tributary__QuerySessionsReply sessions_reply =
    TRIBUTARY__QUERY_SESSIONS_REPLY__INIT;

static int
setup(void **state)
{
	buffer.has_size = buffer.has_used = 1;
	buffer.size = 4 << 20;
	buffer.used = 1 << 20;
	buffer.bytes_written = 1 << 20;
	session.id = 7;
	session.unique_session_name = (char *)(uintptr_t)"robots";
	session.state = TRIBUTARY__SESSION_STATE__STATE__STARTED;
	session.has_started_ns = 1;
	session.started_ns = 1000 * SECOND;
	session.packets = 100;
	session.packets_lost = 0;
	session.n_buffers = 1;
	session.buffers = buffers;
	sessions_reply.n_sessions = 1;
	sessions_reply.sessions = sessions;
	sessions_reply.all_sessions = 1;
	sessions_reply.now_ns = 1090 * SECOND;
	model = top_model_new("here");
	return model == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	top_model_free(model);
	free(text);
	text = NULL;
	return 0;
}

static const char *
print(int width, size_t height)
{
	size_t len;
	FILE *out;

	free(text);
	text = NULL;
	out = open_memstream(&text, &len);
	assert_non_null(out);
	top_print(out, &model, 1, &(struct top_size){ width, height, "\n" });
	fclose(out);
	return text;
}

static size_t
lines(const char *s)
{
	size_t n = 0;

	for (; *s != '\0'; s++)
		n += *s == '\n';
	return n;
}

#define assert_says(s, what)                                                  \
	do {                                                                  \
		if (strstr(s, what) == NULL)                                  \
			fail_msg("\"%s\" is not in:\n%s", what, s);           \
	} while (0)
#define assert_silent(s, what) assert_null(strstr(s, what))

static void
the_first_look_knows_no_rates(void **state)
{
	const char *s;

	assert_says(print(0, 0), "asking");
	top_model_sessions(model, 5000, &sessions_reply);
	s = print(0, 0);
	assert_says(s, "7 robots");
	assert_says(s, "started");
	assert_says(s, "1 min 30 s");
	assert_says(s, "25 %");
	assert_says(s, "- packets/s");
}

static void
rates_are_of_the_time_between_two_looks(void **state)
{
	const char *s;

	top_model_sessions(model, 5000, &sessions_reply);
	buffer.bytes_written += 3 << 20;
	session.packets += 3000;
	session.packets_lost += 30;
	top_model_sessions(model, 7000, &sessions_reply);
	s = print(0, 0);
	assert_says(s, "1.5 MiB/s");
	assert_says(s, "1,500 packets/s");
	assert_says(s, "15 lost/s");
	/* Nothing more comes. */
	top_model_sessions(model, 9000, &sessions_reply);
	assert_says(print(0, 0), "0 packets/s");
}

static void
a_counter_that_began_anew_is_no_huge_rate(void **state)
{
	top_model_sessions(model, 5000, &sessions_reply);
	session.packets = 10;
	top_model_sessions(model, 6000, &sessions_reply);
	assert_says(print(0, 0), "10 packets/s");
}

/* It is not ours: its numbers need not be of this world. */
static void
a_collector_that_counts_absurdly_does_no_harm(void **state)
{
	const char *s;

	session.packets = buffer.bytes_written = 0;
	top_model_sessions(model, 5000, &sessions_reply);
	session.packets = buffer.bytes_written = UINT64_MAX;
	buffer.used = UINT64_MAX;
	buffer.size = 1;
	top_model_sessions(model, 5001, &sessions_reply);
	s = print(0, 0);
	assert_says(s, "18,446,744,073,709,551,615 packets/s");
	assert_says(s, "18446744073709551615 %");
}

static void
a_session_that_is_new_has_no_rate_yet(void **state)
{
	top_model_sessions(model, 5000, &sessions_reply);
	session.id = 8;
	top_model_sessions(model, 6000, &sessions_reply);
	assert_says(print(0, 0), "8 robots");
	assert_says(print(0, 0), "- packets/s");
}

static void
what_others_wrote_does_not_steer_the_terminal(void **state)
{
	static char name[] = "\x1b[2J\nx\xc2\x9b" "1m\xff";
	const char *s;

	session.unique_session_name = name;
	top_model_sessions(model, 5000, &sessions_reply);
	top_model_trouble(model, "gone\x1b]0;\x07");
	for (s = print(0, 0); *s != '\0'; s++)
		assert_true(*s == '\n' || ((unsigned char)*s >= ' ' &&
		    (unsigned char)*s < 0x7f));
	assert_says(text, "7 \\x1b[2J\\x0ax\\xc2\\x9b1m\\xff");
}

static void
colours_are_asked_for_and_cost_no_columns(void **state)
{
	Tributary__OverloadState overload = TRIBUTARY__OVERLOAD_STATE__INIT;
	const char *s;

	overload.level = 2;
	sessions_reply.overload = &overload;
	session.packets_lost = 5;
	top_model_sessions(model, 5000, &sessions_reply);
	sessions_reply.overload = NULL;
	assert_silent(print(0, 0), "\033");
	assert_says(text, "  OVERLOADED, level 2\n");
	top_model_look(model, true, false);
	s = print(0, 0);
	assert_says(s, "\033[1mhere\033[0m  ");
	assert_says(s, "  \033[31mOVERLOADED, level 2\033[0m\n");
	assert_says(s, "\033[1mSESSION\033[0m ");
	assert_says(s, "7 robots  \033[32mstarted\033[0m  ");
	assert_says(s, "\033[33m5\033[0m");
	/* A narrow screen shows it, too. */
	assert_says(print(40, 0), "\033[31mOVERLOADED, level 2\033[0m  ");
	top_model_trouble(model, "refused");
	assert_says(print(0, 0), "\033[31mrefused\033[0m\n");
}

static void
trends_are_of_the_last_answers(void **state)
{
	uint64_t i, now = 5000;

	top_model_look(model, false, true);
	top_model_sessions(model, now, &sessions_reply);
	assert_says(print(0, 0), "PRODUCERS  TREND\n");
	/* One more each time; the first answer has no rate. */
	for (i = 1; i <= 7; i++) {
		buffer.bytes_written += i << 20;
		top_model_sessions(model, now += 1000, &sessions_reply);
	}
	assert_says(print(0, 0), "  " "         " "\u2582\u2583\u2584\u2585"
	    "\u2586\u2587\u2588\n");
	/* What is too old goes. */
	for (i = 0; i < 16; i++)
		top_model_sessions(model, now += 1000, &sessions_reply);
	assert_silent(print(0, 0), "\u2588");
	assert_says(text, "\u2581\u2581\n");
	session.id = 8;
	top_model_sessions(model, now += 1000, &sessions_reply);
	assert_silent(print(0, 0), "\u2581");
	/* The first of the columns that go where there is no room. */
	assert_says(print(100, 0), "PRODUCERS");
	assert_silent(text, "TREND");
}

static void
wide_names_are_as_wide_as_they_look(void **state)
{
	static char wide[] = "\u673a\u5668\u4eba\u673a\u5668\u4eba";
	char line[600], escaped[600];
	const char *s, *end;
	int width;

	session.unique_session_name = wide;
	top_model_sessions(model, 5000, &sessions_reply);
	assert_says(print(0, 0), "\nSESSION         STATE ");
	assert_says(text, "\n7 \u673a\u5668\u4eba\u673a\u5668\u4eba  started");
	for (width = 1; width < 40; width++) {
		for (s = print(width, 0); *s != '\0'; s = *end == '\0' ? end :
		    end + 1) {
			end = s + strcspn(s, "\n");
			snprintf(line, sizeof(line), "%.*s", (int)(end - s), s);
			assert_true(text_width(line) <= width);
			/* A character that was cut would be escaped. */
			assert_string_equal(utf8_escape(escaped,
			    sizeof(escaped), line, strlen(line), ""), line);
		}
	}
}

static void
trouble_is_told_in_the_first_line(void **state)
{
	top_model_sessions(model, 5000, &sessions_reply);
	top_model_trouble(model, "connection refused");
	assert_says(print(0, 0), "here  connection refused\n");
	assert_says(text, "7 robots");
	top_model_trouble(model, NULL);
	assert_silent(print(0, 0), "refused");
}

/* Five of each kind. */
static void
fill(void)
{
	static Tributary__MachineState m[5];
	static Tributary__MachineState *mp[5];
	static Tributary__ProducerState p[5];
	static Tributary__ProducerState *pp[5];
	static char names[5][40];
	Tributary__QueryMachinesReply mr = TRIBUTARY__QUERY_MACHINES_REPLY__INIT;
	Tributary__QueryProducersReply pr =
	    TRIBUTARY__QUERY_PRODUCERS_REPLY__INIT;
	uint64_t now;
	size_t i;

	for (i = 0; i < 5; i++) {
		tributary__machine_state__init(&m[i]);
		tributary__producer_state__init(&p[i]);
		snprintf(names[i], sizeof(names[i]),
		    "a-rather-long-name-of-thing-%zu", i);
		m[i].id = p[i].machine_id = (uint32_t)i;
		p[i].id = (uint32_t)i + 100;
		m[i].name = p[i].name = p[i].machine_name = names[i];
		m[i].state = TRIBUTARY__MACHINE_STATE__STATE__CONNECTED;
		mp[i] = &m[i];
		pp[i] = &p[i];
	}
	mr.n_machines = pr.n_producers = 5;
	mr.machines = mp;
	pr.producers = pp;
	for (now = 1000; now <= 2000; now += 1000) {
		top_model_producers(model, now, &pr);
		top_model_machines(model, now, &mr);
		top_model_sessions(model, now, &sessions_reply);
		for (i = 0; i < 5; i++)
			p[i].bytes += i << 20;
		m[3].bytes_unpacked += 9 << 20;
	}
}

static void
the_fastest_are_on_top_and_machines_have_their_producers_rates(void **state)
{
	const char *s, *four, *three;

	fill();
	s = print(0, 0);
	assert_says(s, "host");
	assert_says(s, "4.0 MiB/s");
	three = strstr(s, "a-rather-long-name-of-thing-3");
	four = strstr(s, "a-rather-long-name-of-thing-4");
	/* 9 MiB/s by its link. */
	assert_true(three != NULL && four != NULL && three < four);
	assert_says(s, "9.0 MiB/s");
}

static void
the_kernels_losses_are_shown_where_there_are_any(void **state)
{
	static uint32_t cpus[] = { 0, 3, 4, 5, 6 };
	Tributary__KernelLost lost = TRIBUTARY__KERNEL_LOST__INIT;
	Tributary__ProducerState p = TRIBUTARY__PRODUCER_STATE__INIT;
	Tributary__ProducerState *all[] = { &p };
	Tributary__QueryProducersReply r =
	    TRIBUTARY__QUERY_PRODUCERS_REPLY__INIT;

	p.name = (char *)(uintptr_t)"probes";
	r.n_producers = 1;
	r.producers = all;
	top_model_producers(model, 1000, &r);
	assert_silent(print(0, 0), "KERNEL");
	lost.events = 1651;
	lost.n_cpus = 2;
	lost.cpus = cpus;
	p.kernel_lost = &lost;
	top_model_producers(model, 2000, &r);
	assert_says(print(0, 0), "KERNEL LOST");
	assert_says(print(0, 0), "1,651 on CPU 0, 3");
	lost.n_cpus = 5;
	top_model_producers(model, 3000, &r);
	assert_says(print(0, 0), "1,651 on 5 CPUs");
	p.kernel_lost = NULL;
	top_model_producers(model, 4000, &r);
	assert_silent(print(0, 0), "KERNEL");
}

static void
no_line_is_wider_and_no_screen_higher_than_the_terminal(void **state)
{
	char line[600];
	const char *s, *end;
	size_t height;
	int width;

	fill();
	for (width = 1; width < 140; width += 3) {
		for (height = 1; height < 30; height++) {
			s = print(width, height);
			assert_true(lines(s) < height || height == 1);
			for (; *s != '\0'; s = *end == '\0' ? end : end + 1) {
				end = s + strcspn(s, "\n");
				snprintf(line, sizeof(line), "%.*s",
				    (int)(end - s), s);
				assert_true(text_width(line) <= width);
			}
		}
	}
	assert_says(print(80, 12), "more\n");
	assert_silent(print(200, 60), "more");
}

static void
narrow_terminals_keep_names_rates_and_losses(void **state)
{
	const char *s;

	fill();
	s = print(40, 40);
	assert_says(s, "RATE");
	assert_says(s, "LOST");
	assert_silent(s, "BUFFERS  ");
	assert_says(s, "a-rather");
}

static void
tables_keep_the_heaviest_rows(void **state)
{
	static const struct top_column columns[] = { { "NAME", 0, false },
		{ "N", 1, true } };
	struct top_table t = { .columns = columns, .n_columns = 2 };
	struct top_row *row;
	size_t i;

	for (i = 0; i < TOP_MAX_ROWS * 2; i++) {
		row = top_table_add(&t, (double)i);
		assert_non_null(row);
		snprintf(row->cells[0], TOP_CELL, "%zu", i);
	}
	assert_null(top_table_add(&t, 0));
	top_table_sort(&t);
	assert_int_equal(t.n_rows, TOP_MAX_ROWS);
	assert_int_equal(t.all, TOP_MAX_ROWS * 2 + 1);
	assert_string_equal(t.rows[0].cells[0], "1023");
	assert_string_equal(t.rows[TOP_MAX_ROWS - 1].cells[0], "512");
	top_table_done(&t);
}

static void
collectors_of_a_fleet_share_tables(void **state)
{
	struct top_model *two[2] = { model, top_model_new("second") };
	struct top_size size = { 0, 0, "\n" };
	size_t len;
	FILE *out;

	assert_non_null(two[1]);
	top_model_sessions(two[0], 5000, &sessions_reply);
	top_model_sessions(two[1], 5000, &sessions_reply);
	top_model_trouble(two[1], "it is gone");
	/* What the second wrote since makes it the heavier. */
	buffer.bytes_written += 5 << 20;
	top_model_sessions(two[1], 6000, &sessions_reply);
	for (size.height = 0; size.height < 12; size.height++) {
		free(text);
		assert_non_null(out = open_memstream(&text, &len));
		top_print(out, two, 2, &size);
		fclose(out);
		assert_true(size.height == 0 || lines(text) < size.height);
		if (size.height != 0)
			continue;
		assert_says(text, "here  ");
		assert_says(text, "\nsecond  it is gone\n");
		assert_says(text, "\nCOLLECTOR  SESSION ");
		assert_true(strstr(text, "\nsecond     7 robots") <
		    strstr(text, "\nhere       7 robots"));
	}
	top_model_free(two[1]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_first_look_knows_no_rates),
		TEST(rates_are_of_the_time_between_two_looks),
		TEST(a_counter_that_began_anew_is_no_huge_rate),
		TEST(a_collector_that_counts_absurdly_does_no_harm),
		TEST(a_session_that_is_new_has_no_rate_yet),
		TEST(what_others_wrote_does_not_steer_the_terminal),
		TEST(colours_are_asked_for_and_cost_no_columns),
		TEST(trends_are_of_the_last_answers),
		TEST(wide_names_are_as_wide_as_they_look),
		TEST(trouble_is_told_in_the_first_line),
		TEST(the_fastest_are_on_top_and_machines_have_their_producers_rates),
		TEST(the_kernels_losses_are_shown_where_there_are_any),
		TEST(no_line_is_wider_and_no_screen_higher_than_the_terminal),
		TEST(narrow_terminals_keep_names_rates_and_losses),
		TEST(collectors_of_a_fleet_share_tables),
		TEST(tables_keep_the_heaviest_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
