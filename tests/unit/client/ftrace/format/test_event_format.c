#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "client/ftrace/format/event_format.h"
#include "client/ftrace/format/page_layout.h"

#define COMMON                                                                 \
	"format:\n"                                                            \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n" \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n" \
	"\tfield:unsigned char common_preempt_count;"                          \
	"\toffset:3;\tsize:1;\tsigned:0;\n"                                    \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
#define FMT "\nprint fmt: \"field:%d\", REC->x\n"

static struct event_format *format;
static char err[256];

static int
teardown(void **state)
{
	event_format_free(format);
	format = NULL;
	err[0] = '\0';
	return 0;
}

static struct event_format *
parse(const char *text)
{
	event_format_free(format);
	format = event_format_parse("g", text, strlen(text), err, sizeof(err));
	return format;
}

static const struct event_field *
one_field(const char *line)
{
	char text[2048];

	snprintf(text, sizeof(text), "name: e\nID: 7\n" COMMON "%s\n%s",
	    line, FMT);
	if (parse(text) == NULL)
		fail_msg("%s: %s", line, err);
	assert_int_equal(format->n_fields, 1);
	return &format->fields[0];
}

static void
sched_switch_is_understood(void **state)
{
	const struct event_field *f;

	assert_non_null(parse("name: sched_switch\nID: 314\n" COMMON
	    "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:1;\n"
	    "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
	    "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
	    FMT));
	assert_string_equal(format->group, "g");
	assert_string_equal(format->name, "sched_switch");
	assert_int_equal(format->id, 314);
	assert_int_equal(format->size, 40);
	assert_int_equal(format->n_common, 4);
	assert_int_equal(format->pid_offset, 4);
	assert_string_equal(format->common[1].name, "common_flags");
	assert_int_equal(format->n_fields, 3);
	f = event_format_field(format, "prev_comm");
	assert_int_equal(f->kind, EVENT_FIELD_TEXT);
	assert_string_equal(f->type, "char");
	assert_int_equal(f->offset, 8);
	assert_int_equal(f->size, 16);
	f = event_format_field(format, "prev_state");
	assert_int_equal(f->kind, EVENT_FIELD_NUMBER);
	assert_string_equal(f->type, "long");
	assert_true(f->is_signed);
	assert_null(event_format_field(format, "common_pid"));
}

static void
each_kind_of_field_is_told_apart(void **state)
{
	static const struct {
		const char *decl, *name, *type;
		unsigned size;
		enum event_field_kind kind;
	} cases[] = {
		{ "unsigned long ip", "ip", "unsigned long", 8,
		    EVENT_FIELD_NUMBER },
		{ "bool success", "success", "bool", 1, EVENT_FIELD_NUMBER },
		{ "char buf[]", "buf", "char", 0, EVENT_FIELD_TEXT_REST },
		{ "char buf", "buf", "char", 0, EVENT_FIELD_TEXT_REST },
		{ "char status", "status", "char", 1, EVENT_FIELD_NUMBER },
		{ "char rwbs[8]", "rwbs", "char", 8, EVENT_FIELD_TEXT },
		{ "char w[(7 + 1)]", "w", "char", 8, EVENT_FIELD_TEXT },
		{ "unsigned long args[6]", "args", "unsigned long", 48,
		    EVENT_FIELD_BYTES },
		{ "__u8 a[4]", "a", "__u8", 4, EVENT_FIELD_BYTES },
		{ "__data_loc char[] name", "name", "__data_loc char[]", 4,
		    EVENT_FIELD_DATA_LOC_TEXT },
		{ "__data_loc __u8[] buf", "buf", "__data_loc __u8[]", 4,
		    EVENT_FIELD_DATA_LOC_BYTES },
		{ "__data_loc cpumask_t cpus", "cpus", "__data_loc cpumask_t",
		    4, EVENT_FIELD_DATA_LOC_BYTES },
		{ "__rel_loc char[] name", "name", "__rel_loc char[]", 4,
		    EVENT_FIELD_REL_LOC_TEXT },
		{ "__rel_loc u8[] b", "b", "__rel_loc u8[]", 4,
		    EVENT_FIELD_REL_LOC_BYTES },
		{ "void * function", "function", "void *", 8,
		    EVENT_FIELD_POINTER },
		{ "const struct x *p", "p", "const struct x *", 8,
		    EVENT_FIELD_POINTER },
		{ "const char * reason", "reason", "const char *", 8,
		    EVENT_FIELD_TEXT_POINTER },
		{ "char *s", "s", "char *", 4, EVENT_FIELD_TEXT_POINTER },
		{ "struct in6_addr a", "a", "struct in6_addr", 16,
		    EVENT_FIELD_BYTES },
		{ "unsigned int flag:3", "flag:3", "unsigned int", 4,
		    EVENT_FIELD_NUMBER },
		{ "unsigned", "unsigned", "", 4, EVENT_FIELD_NUMBER },
		{ "", "", "", 4, EVENT_FIELD_NUMBER },
	};
	const struct event_field *f;
	char line[256];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(line, sizeof(line),
		    "\tfield:%s;\toffset:8;\tsize:%u;\tsigned:0;",
		    cases[i].decl, cases[i].size);
		f = one_field(line);
		assert_string_equal(f->name, cases[i].name);
		assert_string_equal(f->type, cases[i].type);
		if (f->kind != cases[i].kind)
			fail_msg("%s: kind %d", cases[i].decl, (int)f->kind);
		assert_false(f->is_signed);
		assert_int_equal(format->size, 8 + cases[i].size);
	}
}

static void
an_old_kernel_does_not_say_what_is_signed(void **state)
{
	assert_false(one_field("\tfield:int x;\toffset:8;\tsize:4;")->is_signed);
}

static void
the_print_fmt_is_not_read(void **state)
{
	assert_non_null(parse("name: e\nID: 7\n" COMMON
	    "print fmt: \"\n\tfield:broken\nID: 9\n"));
	assert_int_equal(format->id, 7);
	assert_int_equal(format->n_fields, 0);
}

static void
refused(const char *text, const char *why)
{
	if (parse(text) != NULL)
		fail_msg("taken: %s", text);
	if (strstr(err, why) == NULL)
		fail_msg("%s instead of %s", err, why);
}

static void
a_text_that_is_no_format_is_refused(void **state)
{
	refused("", "ends before");
	refused("name: e\nID: 7\n" COMMON, "ends before");
	refused("name: e\n" COMMON FMT, "no ID");
	refused("name: e\nID: 0\n" COMMON FMT, "no ID");
	refused("name: e\nID: 65536\n" COMMON FMT, "no ID");
	refused("ID: 7\n" COMMON FMT, "no name");
	refused("name: e\nID: 7\n" FMT, "common_type and common_pid");
	refused("name: e\nID: 7\n" COMMON "\tfield:int x;\toffset:8;\n" FMT,
	    "no field");
	refused("name: e\nID: 7\n" COMMON
	    "\tfield:int x;\toffset:65535;\tsize:1;\tsigned:0;\n" FMT,
	    "no field");
	refused("name: e\nID: 7\n" COMMON
	    "\tfield:int x;\toffset:-1;\tsize:1;\tsigned:0;\n" FMT,
	    "no field");
	refused("name: e\nID: 7\n" COMMON
	    "\tfield:int x;\toffset:8;\tsize:4;\tsigned:2;\n" FMT, "no field");
}

static void
more_fields_than_any_event_has_are_refused(void **state)
{
	static char text[64 * 1024];
	size_t i, n;

	n = (size_t)snprintf(text, sizeof(text), "name: e\nID: 7\n" COMMON);
	for (i = 4; i < EVENT_FORMAT_FIELDS_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
		    "\tfield:char c;\toffset:8;\tsize:1;\tsigned:0;\n");
	snprintf(text + n, sizeof(text) - n, "print fmt: \"\"\n");
	assert_non_null(parse(text));
	assert_int_equal(format->n_common + format->n_fields,
	    EVENT_FORMAT_FIELDS_MAX);
	snprintf(text + n, sizeof(text) - n,
	    "\tfield:char c;\toffset:8;\tsize:1;\tsigned:0;\nprint fmt: \"\"\n");
	refused(text, "more than");
}

#define PAGE                                                                   \
	"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"             \
	"\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"            \
	"\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"

static void
the_header_of_pages_is_understood(void **state)
{
	const char *text = PAGE
	    "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
	struct page_layout l;

	assert_int_equal(page_layout_parse(&l, text, strlen(text), err,
	    sizeof(err)), 0);
	assert_int_equal(l.commit_offset, 8);
	assert_int_equal(l.commit_size, 8);
	assert_int_equal(l.data_offset, 16);
	assert_int_equal(l.page_size, 4096);
}

static void
a_strange_header_of_pages_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		PAGE,
		PAGE "\tfield: char data;\toffset:8;\tsize:4080;\tsigned:1;\n",
		PAGE "\tfield: char data;\toffset:16;\tsize:0;\tsigned:1;\n",
		PAGE "\tfield: char data;\toffset:16;\tsize:4080;\n"
		    "\tfield: local_t commit;\toffset:0;\tsize:8;\n",
	};
	struct page_layout l;
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(page_layout_parse(&l, texts[i],
		    strlen(texts[i]), err, sizeof(err)), -1);
		assert_non_null(strstr(err, "header_page"));
	}
}

int
main(void)
{
#define T(name) cmocka_unit_test_teardown(name, teardown)
	const struct CMUnitTest tests[] = {
		T(sched_switch_is_understood),
		T(each_kind_of_field_is_told_apart),
		T(an_old_kernel_does_not_say_what_is_signed),
		T(the_print_fmt_is_not_read),
		T(a_text_that_is_no_format_is_refused),
		T(more_fields_than_any_event_has_are_refused),
		T(the_header_of_pages_is_understood),
		T(a_strange_header_of_pages_is_refused),
	};

	return cmocka_run_group_tests_name("event_format", tests, NULL, NULL);
}
