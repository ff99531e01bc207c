#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/inspect/report/asked_sources.h"
#include "client/trace/trace_summary.h"
#include "protos/trace_config.pb-c.h"
#include "protos/trace_stats.pb-c.h"
#include "transport/wire/pb_writer.h"

/* A config, TraceStats of its buffers, and packets of one type. */
struct fixture {
	struct pb_writer config, stats;
	struct trace_packet_type type;
	struct asked_sources *asked;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	pb_writer_init(&f->config);
	pb_writer_init(&f->stats);
	f->asked = calloc(1, sizeof(*f->asked));
	f->type = (struct trace_packet_type){ .type = 7, .packets = 3 };
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	pb_writer_done(&f->config);
	pb_writer_done(&f->stats);
	free(f->asked);
	free(f);
	return 0;
}

static void
source(struct fixture *f, const char *name, uint32_t buffer,
    const char *buffer_name)
{
	size_t outer = pb_nest_begin(&f->config, 2);
	size_t inner = pb_nest_begin(&f->config, 1);

	pb_put_string(&f->config, 1, name);
	pb_put_uint(&f->config, 2, buffer);
	if (buffer_name != NULL)
		pb_put_string(&f->config, 11, buffer_name);
	pb_nest_end(&f->config, inner);
	pb_nest_end(&f->config, outer);
}

static void
buffer(struct fixture *f, const char *name, uint64_t bytes_written)
{
	size_t mark = pb_nest_begin(&f->config, 1);

	pb_put_string(&f->config, 7, name);
	pb_nest_end(&f->config, mark);
	mark = pb_nest_begin(&f->stats, 1);
	pb_put_uint(&f->stats, 1, bytes_written);
	pb_nest_end(&f->stats, mark);
}

/* What is found of each is checked in its order. */
static void
expect(struct fixture *f, size_t n, const enum asked_wrote *wrote)
{
	Perfetto__Protos__TraceConfig *config =
	    perfetto__protos__trace_config__unpack(NULL, f->config.len,
	    f->config.data);
	Perfetto__Protos__TraceStats *stats =
	    perfetto__protos__trace_stats__unpack(NULL, f->stats.len,
	    f->stats.data);
	size_t i;

	assert_non_null(config);
	assert_non_null(stats);
	asked_sources_make(f->asked, config, stats, &f->type, 1);
	assert_int_equal(f->asked->n, n);
	for (i = 0; i < n; i++)
		assert_int_equal(f->asked->all[i].wrote, wrote[i]);
	perfetto__protos__trace_config__free_unpacked(config, NULL);
	perfetto__protos__trace_stats__free_unpacked(stats, NULL);
}

static void
an_empty_buffer_says_that_nothing_came(void **state)
{
	struct fixture *f = *state;

	buffer(f, "full", 100);
	buffer(f, "empty", 0);
	source(f, "whoever", 1, NULL);
	source(f, "by.name", 0, "empty");
	source(f, "linux.sys_stats", 1, NULL);
	expect(f, 3, (enum asked_wrote[]){ ASKED_NOTHING, ASKED_NOTHING,
	    ASKED_NOTHING });
}

static void
who_is_alone_in_a_buffer_wrote_what_is_in_it(void **state)
{
	struct fixture *f = *state;

	buffer(f, "a", 100);
	buffer(f, "b", 100);
	source(f, "alone", 0, NULL);
	source(f, "one.of.two", 1, NULL);
	source(f, "two.of.two", 1, NULL);
	expect(f, 3, (enum asked_wrote[]){ ASKED_WROTE, ASKED_UNKNOWN,
	    ASKED_UNKNOWN });
}

static void
types_of_packets_tell_of_sources_that_are_known(void **state)
{
	struct fixture *f = *state;

	buffer(f, "a", 100);
	source(f, "linux.sys_stats", 0, NULL);
	source(f, "linux.ftrace", 0, NULL);
	source(f, "linux.ftraceable", 0, NULL);
	expect(f, 3, (enum asked_wrote[]){ ASKED_WROTE, ASKED_NOTHING,
	    ASKED_UNKNOWN });
}

static void
one_that_is_asked_twice_is_told_once(void **state)
{
	struct fixture *f = *state;

	buffer(f, "a", 100);
	source(f, "linux.sys_stats", 0, NULL);
	source(f, "linux.sys_stats", 0, NULL);
	source(f, "", 0, NULL);
	expect(f, 1, (enum asked_wrote[]){ ASKED_WROTE });
}

static void
a_trace_without_config_asks_for_nothing(void **state)
{
	struct fixture *f = *state;

	asked_sources_make(f->asked, NULL, NULL, &f->type, 1);
	assert_int_equal(f->asked->n, 0);
}

static void
longer_lists_are_cut_and_counted(void **state)
{
	struct fixture *f = *state;
	char name[20];
	size_t i;

	for (i = 0; i < ASKED_SOURCES_MAX + 5; i++) {
		snprintf(name, sizeof(name), "s%zu", i);
		source(f, name, 0, NULL);
	}
	buffer(f, "a", 0);
	{
		enum asked_wrote wrote[ASKED_SOURCES_MAX];

		for (i = 0; i < ASKED_SOURCES_MAX; i++)
			wrote[i] = ASKED_NOTHING;
		expect(f, ASKED_SOURCES_MAX, wrote);
	}
	assert_int_equal(f->asked->left_out, 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(an_empty_buffer_says_that_nothing_came),
		T(who_is_alone_in_a_buffer_wrote_what_is_in_it),
		T(types_of_packets_tell_of_sources_that_are_known),
		T(one_that_is_asked_twice_is_told_once),
		T(a_trace_without_config_asks_for_nothing),
		T(longer_lists_are_cut_and_counted),
	};

	return cmocka_run_group_tests_name("asked_sources", tests, NULL, NULL);
}
