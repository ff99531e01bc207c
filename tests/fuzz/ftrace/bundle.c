/*
 * Any bytes as records of a page, in all forms of events and with all filters:
 * what comes of them is a message that protobuf-c reads, with as many events
 * and errors as the bundle says, whatever lies in the records.
 *
 * The last byte says the form; all of them are the page.
 */
#include <stdlib.h>
#include <string.h>

#include "client/ftrace/events/event_plan.h"
#include "client/ftrace/events/ftrace_bundle.h"
#include "client/ftrace/events/kernel_symbols.h"
#include "client/ftrace/events/pid_notes.h"
#include "client/ftrace/events/printk_strings.h"
#include "client/ftrace/events/symbol_index.h"
#include "client/ftrace/events/syscall_filter.h"
#include "client/ftrace/format/event_format.h"
#include "client/ftrace/page/page_reader.h"
#include "client/tracing/packet/packet.h"
#include "protos/ftrace_bundle.pb-c.h"
#include "protos/trace_packet.pb-c.h"
#include "tests/fuzz/ftrace/ftrace.h"

#define COMMON \
	"format:\n" \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n" \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n" \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;" \
	"\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
#define FIELD(type_and_name, offset, size, is_signed) \
	"\tfield:" type_and_name ";\toffset:" #offset ";\tsize:" #size \
	";\tsigned:" #is_signed ";\n"

#define END "\nprint fmt: \"\"\n"

/* Numbers that the corpus' pages of a real kernel have: ids are its own. */
static const struct {
	const char *group, *text;
} events[] = {
	{ "sched", "name: sched_switch\nID: 314\n" COMMON
	    FIELD("char prev_comm[16]", 8, 16, 1)
	    FIELD("pid_t prev_pid", 24, 4, 1) FIELD("int prev_prio", 28, 4, 1)
	    FIELD("long prev_state", 32, 8, 1)
	    FIELD("char next_comm[16]", 40, 16, 1)
	    FIELD("pid_t next_pid", 56, 4, 1)
	    FIELD("int next_prio", 60, 4, 1)
	    END },
	{ "sched", "name: sched_waking\nID: 317\n" COMMON
	    FIELD("char comm[16]", 8, 16, 1) FIELD("pid_t pid", 24, 4, 1)
	    FIELD("int prio", 28, 4, 1) FIELD("int target_cpu", 32, 4, 1)
	    END },
	{ "ftrace", "name: print\nID: 5\n" COMMON
	    FIELD("unsigned long ip", 8, 8, 0) FIELD("char buf[]", 16, 0, 1)
	    END },
	{ "raw_syscalls", "name: sys_enter\nID: 346\n" COMMON
	    FIELD("long id", 8, 8, 1)
	    FIELD("unsigned long args[6]", 16, 48, 0)
	    END },
	{ "raw_syscalls", "name: sys_exit\nID: 345\n" COMMON
	    FIELD("long id", 8, 4, 1) FIELD("long ret", 12, 8, 1)
	    END },
	{ "block", "name: block_rq_issue\nID: 1190\n" COMMON
	    FIELD("dev_t dev", 8, 4, 0) FIELD("sector_t sector", 16, 8, 0)
	    FIELD("char rwbs[8]", 32, 8, 1)
	    FIELD("__data_loc char[] cmd", 56, 4, 1)
	    END },
	{ "workqueue", "name: workqueue_execute_start\nID: 257\n" COMMON
	    FIELD("void * work", 8, 8, 0) FIELD("void * function", 16, 8, 0)
	    END },
	{ "mine", "name: all_kinds\nID: 6\n" COMMON
	    FIELD("__data_loc char[] a", 8, 4, 1)
	    FIELD("__rel_loc char[] b", 12, 4, 1)
	    FIELD("const char * c", 16, 8, 0) FIELD("void * d", 24, 4, 0)
	    FIELD("s8 e", 28, 1, 1) FIELD("u16 f", 30, 2, 0)
	    FIELD("char g[]", 32, 0, 1)
	    END },
};

#define N_EVENTS (sizeof(events) / sizeof(events[0]))
#define IDS      2048u

enum { COMPACT = 1, DESCRIBED = 2, SYSCALLS = 4 };

static struct event_plan *plans[2][IDS]; /* by DESCRIBED */
static struct printk_strings *strings;
static struct kernel_symbols *symbols;

static void
make_plans(void)
{
	static const char kallsyms[] = "0000000000001000 t f\n";
	struct event_format *f;
	char why[256], line[700];
	size_t i;

	for (i = 0; i < N_EVENTS; i++) {
		f = event_format_parse(events[i].group, events[i].text,
		    strlen(events[i].text), why, sizeof(why));
		if (f == NULL || f->id >= IDS)
			abort();
		plans[0][f->id] = event_plan_new(f, EVENT_PLAN_GENERIC);
		plans[1][f->id] = event_plan_new(f, EVENT_PLAN_DESCRIBED);
		event_format_free(f);
	}
	memset(line, 'x', sizeof(line));
	memcpy(line, "0x10 : \"", 8);
	line[sizeof(line) - 1] = '"';
	strings = printk_strings_new(line, sizeof(line));
	symbols = kernel_symbols_new();
	if (strings == NULL || symbols == NULL || !kernel_symbols_feed(symbols,
	    kallsyms, strlen(kallsyms)))
		abort();
	kernel_symbols_end(symbols);
}

/* As protobuf-c reads it. */
static void
check_packet(const struct tributary_packet *packet,
    const struct ftrace_bundle *b)
{
	Perfetto__Protos__FtraceEventBundle *m;
	Perfetto__Protos__TracePacket *p;
	size_t n;

	if (packet->failed || packet->depth != 0)
		abort();
	p = perfetto__protos__trace_packet__unpack(NULL, packet_len(packet),
	    packet->data);
	if (p == NULL || p->data_case !=
	    PERFETTO__PROTOS__TRACE_PACKET__DATA_FTRACE_EVENTS)
		abort();
	m = perfetto__protos__ftrace_event_bundle__unpack(NULL,
	    p->ftrace_events.len, p->ftrace_events.data);
	if (m == NULL || m->n_error != b->n_errors)
		abort();
	n = m->n_event;
	if (m->compact_sched != NULL)
		n += m->compact_sched->n_switch_timestamp +
		    m->compact_sched->n_waking_timestamp;
	if (n != b->n_events)
		abort();
	perfetto__protos__ftrace_event_bundle__free_unpacked(m, NULL);
	perfetto__protos__trace_packet__free_unpacked(p, NULL);
}

static void
add_page(struct ftrace_bundle *b, struct event_plan *const *by_id,
    const uint8_t *page, size_t len)
{
	static const struct page_layout layout = { 8, 8, 16, 4096 };
	struct page_record record;
	struct page_reader r;
	uint16_t id;

	if (!page_reader_init(&r, page, len, &layout))
		return;
	while (page_reader_next(&r, &record)) {
		id = page_record_id(&record) % IDS;
		if (by_id[id] != NULL && ftrace_bundle_add(b, by_id[id],
		    record.time, record.data, record.len) == EVENT_NO_ROOM)
			abort();
	}
}

void
fuzz_bundle(const uint8_t *data, size_t size)
{
	static struct ftrace_bundle bundle;
	static const struct ftrace_bundle_head head = { .cpu = 1 };
	static const struct syscall_filter calls = { { 1 } };
	struct symbol_index index = { 0 };
	struct pid_notes pids = { 0 };
	struct ftrace_bundle_setup setup = { 0 };
	struct tributary_packet packet;
	uint8_t form;

	if (size == 0)
		return;
	form = data[size - 1];
	if (strings == NULL)
		make_plans();
	setup.env = (struct translate_env){ .symbols = &index,
		.strings = strings, .pids = &pids };
	setup.symbols = symbols;
	setup.compact = (form & COMPACT) != 0;
	setup.syscalls = (form & SYSCALLS) != 0 ? &calls : NULL;
	ftrace_bundle_init(&bundle, &setup);
	packet_init(&packet);
	ftrace_bundle_begin(&bundle, &packet, &head);
	add_page(&bundle, plans[(form & DESCRIBED) != 0], data, size);
	ftrace_bundle_end(&bundle);
	check_packet(&packet, &bundle);
	packet_done(&packet);
	ftrace_bundle_done(&bundle);
	symbol_index_done(&index);
	pid_notes_done(&pids);
}
