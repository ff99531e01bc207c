#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "service/protovm/protovm_program.h"
#include "tests/unit/service/protovm/wire_text.h"

static char err[256];

static void
refused(const char *text, const char *why)
{
	err[0] = '\0';
	assert_null(wire_text_program(text, err, sizeof(err)));
	if (strstr(err, why) == NULL)
		fail_msg("\"%s\" is not in: %s", why, err);
}

/* One SELECT with these fields. */
static void
select_refused(const char *select, const char *why)
{
	char text[512];

	snprintf(text, sizeof(text), "instructions { select { %s } }", select);
	refused(text, why);
}

static void
wire_refused(const char *wire, const char *why)
{
	struct pb_writer w;

	err[0] = '\0';
	pb_writer_init(&w);
	wire_text(wire, &w);
	assert_null(protovm_program_new(w.data, w.len, err, sizeof(err)));
	pb_writer_done(&w);
	if (strstr(err, why) == NULL)
		fail_msg("\"%s\" is not in: %s", why, err);
}

static void
test_no_instructions(void **state)
{
	struct protovm_program *p = protovm_program_new(NULL, 0, err,
	    sizeof(err));
	size_t len = 1;

	(void)state;
	assert_non_null(p);
	assert_int_equal(p->n_instructions, 0);
	protovm_program_bytes(p, &len);
	assert_int_equal(len, 0);
	protovm_program_unref(protovm_program_ref(p));
	protovm_program_unref(p);
	protovm_program_unref(NULL);
}

static void
test_layout(void **state)
{
	struct protovm_program *p = wire_text_program(
	    "version: 1 "
	    "instructions { abort_level: ABORT "
	    "  select { cursor: VM_CURSOR_DST create_if_not_exist: true "
	    "    relative_path { field_id: 7 } "
	    "    relative_path { field_id: 8 } "
	    "    relative_path { map_key_field_id: 9 register_to_match: 31 } "
	    "  } "
	    "  nested_instructions { reg_load { dst_register: 3 } } "
	    "  nested_instructions { merge { skip_submessages: true } } "
	    "} "
	    "instructions { abort_level: SKIP_CURRENT_INSTRUCTION "
	    "  select { relative_path { field_id: 5 is_repeated: true "
	    "    store_foreach_index_into_register: 2 } } "
	    "}", err, sizeof(err));
	struct protovm_instruction *ins;

	(void)state;
	if (p == NULL)
		fail_msg("%s", err);
	assert_int_equal(p->n_instructions, 4);
	ins = p->instructions;
	assert_int_equal(ins[0].op, PROTOVM_SELECT);
	assert_int_equal(ins[0].level, PROTOVM_ABORT);
	assert_int_equal(ins[0].end, 3);
	assert_false(ins[0].in_source);
	assert_true(ins[0].create);
	assert_int_equal(ins[0].n_path, 2);
	assert_int_equal(p->components[0].step, PROTOVM_FIELD);
	assert_int_equal(p->components[0].field, 7);
	assert_int_equal(p->components[1].step, PROTOVM_KEY);
	assert_int_equal(p->components[1].field, 8);
	assert_int_equal(p->components[1].arg, 9);
	assert_int_equal(p->components[1].reg, 31);
	assert_int_equal(ins[1].op, PROTOVM_REG_LOAD);
	assert_int_equal(ins[1].level, PROTOVM_BREAK_OUTER);
	assert_int_equal(ins[1].reg, 3);
	assert_true(ins[1].in_source);
	assert_int_equal(ins[1].end, 2);
	assert_int_equal(ins[2].op, PROTOVM_MERGE);
	assert_true(ins[2].skip_submessages);
	assert_false(ins[2].del_if_src_empty);
	assert_int_equal(ins[3].level, PROTOVM_SKIP);
	assert_true(ins[3].in_source);
	assert_int_equal(p->components[2].step, PROTOVM_EACH);
	assert_true(p->components[2].stores);
	assert_int_equal(p->components[2].reg, 2);
	protovm_program_unref(p);
}

static void
test_refused(void **state)
{
	(void)state;
	refused("version: 2", "version 2; versions up to 1 are known");
	refused("instructions { set {} } instructions { }",
	    "instruction 1: no operation that is known");
	refused("instructions { set {} nested_instructions { del {} } "
		"nested_instructions { nested_instructions { } set {} } }",
	    "instruction 0.1.0: no operation");
	refused("instructions { reg_load { dst_register: 32 } }",
	    "no such register");
	wire_refused("2:{4:{} 6:9}", "no such abort_level");
	wire_refused("2:{9:{}}", "no operation that is known");
	wire_refused("2:{1:{1:4}}", "no such cursor");
	wire_refused("2:{1:'~~~'}", "malformed select");
	wire_refused("2:{2:'~~~'}", "malformed reg_load");
	wire_refused("2:{3:'~~~'}", "malformed merge");
	wire_refused("2:{1:{2:'~~~'}}", "malformed path component");
	wire_refused("2:'~~~'", "instruction 0: malformed");
}

static void
test_paths_refused(void **state)
{
	(void)state;
	select_refused("create_if_not_exist: true", "needs the cursor DST");
	select_refused("relative_path { }", "a path begins with a field_id");
	select_refused("relative_path { array_index: 1 }", "begins with");
	select_refused("relative_path { field_id: 0 }", "no such field");
	select_refused("relative_path { field_id: 536870912 }",
	    "no such field");
	select_refused("relative_path { field_id: 1 } relative_path { }",
	    "a path component has no field_id");
	select_refused("relative_path { field_id: 1 is_repeated: true } "
		       "relative_path { array_index: 1 }", "no field_id");
	select_refused("relative_path { field_id: 1 } "
		       "relative_path { array_index: 1 } "
		       "relative_path { array_index: 1 }", "no field_id");
	select_refused("relative_path { field_id: 1 } "
		       "relative_path { array_index_register: 32 }",
	    "no such register");
	select_refused("relative_path { field_id: 1 } relative_path { "
		       "map_key_field_id: 1 register_to_match: 1 }",
	    "needs the cursor DST");
	select_refused("cursor: VM_CURSOR_DST relative_path { field_id: 1 } "
		       "relative_path { map_key_field_id: 1 }",
	    "register_to_match is missing");
	select_refused("cursor: VM_CURSOR_BOTH "
		       "relative_path { field_id: 1 is_repeated: true }",
	    "is_repeated needs");
	select_refused("relative_path { field_id: 1 is_repeated: true "
		       "store_foreach_index_into_register: 40 }",
	    "no such register");
}

/* So many levels of `open`, and one SET in the innermost. */
static char *
nested(const char *open, unsigned levels)
{
	size_t each = strlen(open) + 64, used = 0;
	char *text = malloc(each * (levels + 1));
	unsigned i;

	assert_non_null(text);
	used += (size_t)sprintf(text, "instructions { ");
	for (i = 0; i < levels; i++)
		used += (size_t)sprintf(text + used,
		    "%s nested_instructions { ", open);
	used += (size_t)sprintf(text + used, "set {} ");
	for (i = 0; i <= levels; i++)
		used += (size_t)sprintf(text + used, "}");
	return text;
}

static void
too_deep(const char *open, unsigned levels)
{
	char *text = nested(open, levels);
	struct protovm_program *p = wire_text_program(text, err, sizeof(err));

	free(text);
	if (p == NULL)
		fail_msg("%u levels: %s", levels, err);
	protovm_program_unref(p);
	text = nested(open, levels + 1);
	refused(text, "nested too deep");
	free(text);
}

static void
test_depth(void **state)
{
	(void)state;
	/* protobuf's text parser stops at 64 messages. */
	too_deep("select { relative_path { field_id: 1 } "
		 "relative_path { field_id: 1 } "
		 "relative_path { field_id: 1 } "
		 "relative_path { field_id: 1 } }", 25);
	too_deep("select { cursor: VM_CURSOR_DST "
		 "relative_path { field_id: 1 } "
		 "relative_path { field_id: 1 } "
		 "relative_path { field_id: 1 } "
		 "relative_path { field_id: 1 } }", 16);
}

static void
test_size(void **state)
{
	struct protovm_program *p;
	struct pb_writer w;
	unsigned i;

	(void)state;
	pb_writer_init(&w);
	for (i = 0; i < PROTOVM_INSTRUCTIONS_MAX; i++)
		wire_text("2:{4:{}}", &w);
	p = protovm_program_new(w.data, w.len, err, sizeof(err));
	if (p == NULL)
		fail_msg("%s", err);
	assert_int_equal(p->n_instructions, PROTOVM_INSTRUCTIONS_MAX);
	protovm_program_unref(p);
	wire_text("2:{4:{}}", &w);
	assert_null(protovm_program_new(w.data, w.len, err, sizeof(err)));
	assert_non_null(strstr(err, "too many instructions"));
	pb_writer_reset(&w);
	while (w.len <= PROTOVM_PROGRAM_BYTES_MAX)
		wire_text("9:'0123456789012345678901234567890123456789'", &w);
	assert_null(protovm_program_new(w.data, w.len, err, sizeof(err)));
	assert_non_null(strstr(err, "at most 65536 are allowed"));
	pb_writer_done(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_instructions),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_paths_refused),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
