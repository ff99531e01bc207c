#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/record/fleet_manifest.h"
#include "client/trace/trace_summary.h"
#include "transport/wire/pb_writer.h"

static struct trace_summary *s[2];
static struct fleet_trace traces[2];
static char *text;

static int
setup(void **state)
{
	size_t i;

	for (i = 0; i < 2; i++)
		assert_non_null(s[i] = trace_summary_new());
	traces[0] = (struct fleet_trace){ "c1.pftrace", "c1", s[0], 0 };
	traces[1] = (struct fleet_trace){ "c2.pftrace", "c2", s[1], 0 };
	return 0;
}

static int
teardown(void **state)
{
	trace_summary_free(s[0]);
	trace_summary_free(s[1]);
	free(text);
	text = NULL;
	return 0;
}

/* Field numbers of TracePacket, ClockSnapshot and SystemInfo, typed. */
static void
put_packet(struct trace_summary *to, struct pb_writer *w)
{
	assert_false(w->failed);
	trace_summary_packet(to, w->data, w->len);
	pb_writer_done(w);
}

static void
put_clock(struct pb_writer *w, unsigned id, uint64_t ns)
{
	size_t mark = pb_nest_begin(w, 1);

	pb_put_uint(w, 1, id);
	pb_put_uint(w, 2, ns);
	pb_nest_end(w, mark);
}

static void
put_snapshot(struct trace_summary *to, uint64_t boottime, uint64_t realtime)
{
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w, 6);
	put_clock(&w, 6, boottime);
	put_clock(&w, 1, realtime);
	pb_nest_end(&w, mark);
	put_packet(to, &w);
}

/* A device's packet, and its name where it is known. */
static void
put_device(struct trace_summary *to, uint32_t id, const char *name)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, 10, id);
	pb_put_uint(&w, 98, id);
	pb_put_uint(&w, 8, 1);
	put_packet(to, &w);
	if (name != NULL)
		trace_summary_machine(to, id, name);
}

static void
print(void)
{
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	fleet_manifest_print(out, traces, 2, "0a");
	assert_int_equal(fclose(out), 0);
}

#define assert_says(what)                                                     \
	do {                                                                  \
		if (strstr(text, what) == NULL)                               \
			fail_msg("%s is not in\n%s", what, text);             \
	} while (0)

static void
clocks_are_related_by_the_wall(void **state)
{
	put_snapshot(s[0], 1000, 500000);
	put_snapshot(s[1], 70, 500100);
	/* Later readings change nothing: clocks may be set meanwhile. */
	put_snapshot(s[1], 80, 1);
	print();
	assert_memory_equal(text, "{\"perfetto_manifest\":{\"version\":1,", 34);
	assert_says("\"trace_time\":{\"clock\":\"BOOTTIME\",\"file\":"
	    "\"c1.pftrace\"}");
	/* At 500000 of both walls c1's boot clock is at 1000, c2's at -30. */
	assert_says("{\"path\":\"c2.pftrace\",\"machine\":{\"name\":\"c2\"},"
	    "\"clocks\":{\"clock\":\"BOOTTIME\",\"sync_to\":{\"file\":"
	    "\"c1.pftrace\",\"clock\":\"BOOTTIME\"},\"offset_ns\":1030}}");
	assert_says("\"attributes\":{\"tributary.trace_uuid\":\"0a\"}");
}

static void
a_wall_that_is_ahead_is_set_right(void **state)
{
	put_snapshot(s[0], 1000, 500000);
	put_snapshot(s[1], 1000, 500400);
	traces[1].ahead_ns = 400; /* the same moment, then */
	print();
	assert_says("\"offset_ns\":0}");
}

static void
a_trace_without_clocks_is_left_alone(void **state)
{
	put_snapshot(s[1], 70, 500100);
	print();
	assert_says("\"file\":\"c2.pftrace\"}");
	assert_null(strstr(text, "\"clocks\""));
}

static void
every_machine_of_a_trace_is_named_once(void **state)
{
	put_snapshot(s[0], 1, 1);
	put_snapshot(s[1], 1, 1);
	put_device(s[0], 7, "kiosk-7");
	put_device(s[0], 8, "kiosk-7");  /* after a reboot, perhaps */
	put_device(s[0], 9, "c2");       /* not the collector of this name */
	put_device(s[0], 10, NULL);
	trace_summary_machine(s[0], 11, "idle"); /* no packet of it */
	put_device(s[1], 7, "kiosk-7");  /* moved: the same machine */
	print();
	assert_says("{\"path\":\"c1.pftrace\",\"machines\":["
	    "{\"id\":0,\"name\":\"c1\"},{\"id\":7,\"name\":\"kiosk-7\"},"
	    "{\"id\":8,\"name\":\"kiosk-7 (8)\"},{\"id\":9,\"name\":\"c2 (9)\"},"
	    "{\"id\":10,\"name\":\"machine 10 of c1\"}]}");
	assert_says("\"machines\":[{\"id\":0,\"name\":\"c2\"},"
	    "{\"id\":7,\"name\":\"kiosk-7\"}],\"clocks\":{\"clock\":"
	    "\"BOOTTIME\",\"machine\":\"c2\",\"sync_to\":{\"file\":"
	    "\"c1.pftrace\",\"clock\":\"BOOTTIME\",\"machine\":\"c1\"}");
	assert_says("\"trace_time\":{\"clock\":\"BOOTTIME\",\"machine\":\"c1\"");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(clocks_are_related_by_the_wall),
		T(a_wall_that_is_ahead_is_set_right),
		T(a_trace_without_clocks_is_left_alone),
		T(every_machine_of_a_trace_is_named_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
