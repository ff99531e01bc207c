#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bundle_fixture.h"
#include "protos/trace_packet.pb-c.h"

struct real_kernel *kernel;
struct ftrace_bundle bundle;
struct tributary_packet packet;
const struct event_format *format;
uint8_t record[512];
Perfetto__Protos__FtraceEventBundle *read_back;

static void
begin_bundle(void)
{
	struct ftrace_bundle_head head = { .cpu = 3, .previous_end = 7 };

	packet_init(&packet);
	ftrace_bundle_begin(&bundle, &packet, &head);
}

void
bundle_fixture_begin(enum event_plan_form generic, bool compact)
{
	struct ftrace_bundle_setup setup = { .compact = compact };

	kernel = real_kernel_new(getenv("FTRACE_DATA"), generic);
	setup.env = real_env(kernel);
	ftrace_bundle_init(&bundle, &setup);
	begin_bundle();
}

static void
forget(void)
{
	if (read_back != NULL)
		perfetto__protos__ftrace_event_bundle__free_unpacked(read_back,
		    NULL);
	read_back = NULL;
	packet_done(&packet);
}

void
bundle_fixture_begin_again(void)
{
	forget();
	begin_bundle();
}

void
bundle_fixture_done(void)
{
	forget();
	ftrace_bundle_done(&bundle);
	real_kernel_free(kernel);
}

void
new_record(const char *name)
{
	int32_t tid = TID;

	format = real_format(kernel, name);
	memset(record, 0, sizeof(record));
	memcpy(record, &format->id, 2);
	memcpy(record + format->pid_offset, &tid, 4);
}

void
set(const char *name, uint64_t v)
{
	const struct event_field *f = event_format_field(format, name);

	assert_non_null(f);
	assert_true(f->size <= 8);
	memcpy(record + f->offset, &v, f->size);
}

void
set_text(const char *name, const char *text)
{
	const struct event_field *f = event_format_field(format, name);

	assert_non_null(f);
	memcpy(record + f->offset, text, strlen(text) + 1);
}

size_t
set_located(const char *name, const char *text)
{
	size_t len = strlen(text) + 1;

	set(name, (uint64_t)len << 16 | format->size);
	memcpy(record + format->size, text, len);
	return format->size + len;
}

enum translate_verdict
add_at(uint64_t time, size_t len)
{
	return ftrace_bundle_add(&bundle, kernel->plans[format->id], time,
	    record, len);
}

Perfetto__Protos__FtraceEventBundle *
finish(void)
{
	Perfetto__Protos__TracePacket *p;

	ftrace_bundle_end(&bundle);
	assert_false(packet.failed);
	assert_int_equal(packet.depth, 0);
	p = perfetto__protos__trace_packet__unpack(NULL, packet_len(&packet),
	    packet.data);
	assert_non_null(p);
	assert_int_equal(p->data_case,
	    PERFETTO__PROTOS__TRACE_PACKET__DATA_FTRACE_EVENTS);
	read_back = perfetto__protos__ftrace_event_bundle__unpack(NULL,
	    p->ftrace_events.len, p->ftrace_events.data);
	assert_non_null(read_back);
	perfetto__protos__trace_packet__free_unpacked(p, NULL);
	return read_back;
}

