/* Every instruction, and every way in which one fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "service/protovm/protovm.h"
#include "tests/unit/service/protovm/programs.h"
#include "tests/unit/service/protovm/wire_text.h"

#define LIMIT ((size_t)10 << 20)

static struct protovm *vm;

static void
make(const char *program, size_t limit)
{
	struct protovm_program *p;
	char err[256];

	p = wire_text_program(program, err, sizeof(err));
	if (p == NULL)
		fail_msg("%s", err);
	protovm_free(vm);
	vm = protovm_new(p, limit);
	assert_non_null(vm);
	protovm_program_unref(p);
}

static int
teardown(void **state)
{
	(void)state;
	protovm_free(vm);
	vm = NULL;
	return 0;
}

/* A new machine with a state, one packet, its verdict, and the state then. */
static void
check_from(const char *before, const char *program, const char *packet,
    enum protovm_verdict verdict, const char *after)
{
	enum protovm_verdict v;

	make(program, LIMIT);
	wire_text_load(vm, before);
	v = wire_text_apply(vm, packet);
	if (v != verdict)
		fail_msg("%s: verdict %d rather than %d (%s)", packet, v,
		    verdict, protovm_reason(vm));
	assert_int_equal(protovm_count(vm, verdict), 1);
	assert_int_equal(protovm_reason(vm)[0] == '\0', verdict == PROTOVM_OK);
	wire_text_expect(vm, after);
}

/* That is aborted, and leaves the state alone. */
static void
aborts(const char *state, const char *program, const char *packet)
{
	check_from(state, program, packet, PROTOVM_ABORTED, state);
}

/* ---- Perfetto's own tests ---- */

static void
test_elements_delete(void **state)
{
	(void)state;
	make(ELEMENTS, LIMIT);
	wire_text_expect(vm, "");
	assert_int_equal(wire_text_apply(vm, "3:{1:0 2:10} 3:{1:1 2:11}"),
	    PROTOVM_OK);
	wire_text_expect(vm, "1:{1:0 2:10} 1:{1:1 2:11}");
	assert_int_equal(wire_text_apply(vm, "1:0"), PROTOVM_OK);
	wire_text_expect(vm, "1:{1:1 2:11}");
	/* An id that is not there. */
	assert_int_equal(wire_text_apply(vm, "1:7"), PROTOVM_OK);
	wire_text_expect(vm, "1:{1:1 2:11}");
}

static void
test_elements_merge(void **state)
{
	(void)state;
	make(ELEMENTS, LIMIT);
	assert_int_equal(wire_text_apply(vm, "2:{1:0 2:10}"), PROTOVM_OK);
	wire_text_expect(vm, "1:{1:0 2:10}");
	assert_int_equal(wire_text_apply(vm, "2:{1:0 2:100} 2:{1:1 2:101}"),
	    PROTOVM_OK);
	wire_text_expect(vm, "1:{1:0 2:100} 1:{1:1 2:101}");
	assert_int_equal(wire_text_apply(vm, "2:{1:0 3:i32 4:l64}"),
	    PROTOVM_OK);
	wire_text_expect(vm, "1:{1:0 2:100 3:i32 4:l64} 1:{1:1 2:101}");
}

static void
test_elements_set(void **state)
{
	(void)state;
	make(ELEMENTS, LIMIT);
	wire_text_apply(vm, "3:{1:0 2:10} 3:{1:1 2:11}");
	assert_int_equal(wire_text_apply(vm, "3:{1:0} 3:{1:1 2:101}"),
	    PROTOVM_OK);
	wire_text_expect(vm, "1:{1:0} 1:{1:1 2:101}");
}

static void
test_elements_by_index(void **state)
{
	(void)state;
	make(ELEMENTS, LIMIT);
	wire_text_load(vm, "1:{2:10} 1:{2:11} 1:{2:12}");
	assert_int_equal(wire_text_apply(vm, "4:1"), PROTOVM_OK);
	wire_text_expect(vm, "1:{2:10} 1:{2:12}");
	assert_int_equal(wire_text_apply(vm,
	    "5:{1:{2:7} 2:0} 5:{1:{2:8} 2:3} 5:{1:{2:9} 2:2}"), PROTOVM_OK);
	wire_text_expect(vm, "1:{2:7} 1:{2:10} 1:{2:9} 1:{2:12} 1:{2:8}");
	assert_int_equal(wire_text_apply(vm, "4:0 4:0 4:2"), PROTOVM_OK);
	wire_text_expect(vm, "1:{2:9} 1:{2:12}");
	assert_int_equal(wire_text_apply(vm, "5:{1:{2:7} 2:3}"),
	    PROTOVM_ABORTED);
}

static void
test_elements_errors(void **state)
{
	(void)state;
	make(ELEMENTS, LIMIT);
	assert_int_equal(wire_text_apply(vm, "3:{1:'no number'}"),
	    PROTOVM_ABORTED);
	assert_string_equal(protovm_reason(vm),
	    "a register is loaded with what is no number");
	wire_text_expect(vm, "");
	/* A failed packet is taken back as a whole. */
	wire_text_apply(vm, "3:{1:0 2:10} 3:{1:1 2:11}");
	assert_int_equal(wire_text_apply(vm, "1:0 2:{1:1 2:5} 2:{1:'x'}"),
	    PROTOVM_ABORTED);
	wire_text_expect(vm, "1:{1:0 2:10} 1:{1:1 2:11}");
	/* Keys are not cut to 32 bits. */
	assert_int_equal(wire_text_apply(vm, "3:{1:0x100000001 2:5}"),
	    PROTOVM_OK);
	wire_text_expect(vm,
	    "1:{1:0 2:10} 1:{1:1 2:11} 1:{1:0x100000001 2:5}");
	/* A packet about something else, whose fields have the same numbers. */
	assert_int_equal(wire_text_apply(vm, "2:{1:1 2:42}"), PROTOVM_OK);
}

/* ---- Perfetto's TestEvent ---- */

static void
patch(const char *fields, enum protovm_verdict verdict, const char *after)
{
	char packet[256], want[256];

	snprintf(packet, sizeof(packet), "8:1000 900:{6:{%s}} 10:7", fields);
	snprintf(want, sizeof(want), "900:{7:{%s}}", after);
	assert_int_equal(wire_text_apply(vm, packet), verdict);
	wire_text_expect(vm, want);
}

static void
test_test_events(void **state)
{
	(void)state;
	make(TEST_EVENTS, LIMIT);
	assert_int_equal(wire_text_apply(vm, "8:1000 11:{9:1} 10:7"),
	    PROTOVM_SKIPPED);
	assert_int_equal(wire_text_apply(vm, "900:{1:'str' 3:5}"),
	    PROTOVM_SKIPPED);
	wire_text_expect(vm, "");
	patch("1:'one' 2:1", PROTOVM_OK, "1:'one' 2:1");
	patch("2:2 3:{1:5 2:{1:6}}", PROTOVM_OK,
	    "1:'one' 2:2 3:{1:5 2:{1:6}}");
	patch("1:'two' 3:{2:{1:7}} 4:{1:9} 4:{1:8 2:{1:1}}", PROTOVM_OK,
	    "1:'two' 2:2 3:{1:5 2:{1:7}} 4:{1:8 2:{1:1}} 4:{1:9}");
	patch("3:{1:4} 4:{1:9 2:{1:3}} 5:8 5:100", PROTOVM_OK,
	    "1:'two' 2:2 3:{1:4 2:{1:7}} 4:{1:9 2:{1:3}}");
	/* A message without its id, behind one that has been merged. */
	patch("2:3 4:{1:5} 4:{2:{1:3}}", PROTOVM_ABORTED,
	    "1:'two' 2:2 3:{1:4 2:{1:7}} 4:{1:9 2:{1:3}}");
	patch("4:{1:9 2:{}}", PROTOVM_OK,
	    "1:'two' 2:2 3:{1:4 2:{1:7}} 4:{1:9}");
}

static void
test_deleted_destination(void **state)
{
	(void)state;
	check_from("1:5", DO(DST("") IN("del {} ")), "3:{}", PROTOVM_OK, "");
	aborts("2:5", DO(MAKE(FIELD(1)) IN(SRC(FIELD(3)) IN("del {} "))),
	    "3:{1:1}");
	aborts("2:5", DO(MAKE(FIELD(1)) IN(DST("") IN("del {} "))
	    IN("del {} ")), "3:{1:1}");
	aborts("2:5", DO(MAKE(FIELD(1)) IN("del {} " IN("del {} "))), "");
	aborts("1:{}", DO(DST(FIELD(1)) IN("del {} ") IN("set {} ")), "");
	aborts("1:{}", DO(DST(FIELD(1)) IN("del {} ") IN("merge {} ")), "");
	aborts("1:{}", DO(DST(FIELD(1)) IN("del {} ") IN("insert {} ")), "");
	aborts("1:{}", DO(DST(FIELD(1)) IN("del {} ") IN(DST(FIELD(1)))), "");
	aborts("1:{}", DO(DST(FIELD(1)) IN("del {} ")
	    IN("reg_load { cursor: VM_CURSOR_DST }")), "");
	check_from("1:7 2:8", DO(DST(FIELD(1)) IN("del {} ")) DO("merge {} "),
	    "3:9", PROTOVM_OK, "2:8 3:9");
}

/* ---- Abort levels ---- */

#define FAILS(level) IN(level SRC(FIELD(9)))
#define SETS(n) IN(MAKE(FIELD(n)) IN("set {} "))

static void
test_levels(void **state)
{
	(void)state;
	/* Later instructions of its list are left out, and so on outwards. */
	check_from("", DO(SRC("") SETS(1) FAILS("") SETS(2)) DO(SRC("") SETS(3)),
	    "1:5", PROTOVM_SKIPPED, "1:{1:5}");
	check_from("", DO(SRC("") SETS(1) FAILS(SKIP) SETS(2)) DO(SRC("")
	    SETS(3)), "1:5", PROTOVM_OK, "1:{1:5} 2:{1:5} 3:{1:5}");
	check_from("", DO(SKIP SRC("") SETS(1) FAILS("") SETS(2))
	    DO(SRC("") SETS(3)), "1:5", PROTOVM_OK, "1:{1:5} 3:{1:5}");
	aborts("7:7", DO(SRC("") SETS(1) FAILS(ABORT) SETS(2)), "1:5");
	/* Nested in something else than a SELECT. */
	check_from("", DO("merge {} " FAILS("") SETS(2)) DO("del {} "), "1:5",
	    PROTOVM_SKIPPED, "1:5");
	/* Failures deep inside are aborts, whatever a level says. */
	aborts("", DO(SKIP LOAD(1)), "1:5");
}

/* ---- The source ---- */

static void
test_source(void **state)
{
	(void)state;
	check_from("", DO(SRC(FIELD(2) FIELD(3)) IN("merge {} ")),
	    "1:1 2:{1:1 3:{1:5 2:'x'}}", PROTOVM_OK, "1:5 2:'x'");
	/* The first of several. */
	check_from("", DO(SRC(FIELD(2)) IN("set {} ")), "2:{1:1} 2:{1:2}",
	    PROTOVM_OK, "1:1");
	check_from("", DO(SRC(FIELD(2) INDEX(1)) IN("set {} ")),
	    "2:{1:1} 2:{1:2}", PROTOVM_OK, "1:2");
	check_from("7:1", DO(SRC(FIELD(2) INDEX(2)) IN("set {} ")),
	    "2:{1:1} 2:{1:2}", PROTOVM_SKIPPED, "7:1");
	check_from("", DO(SRC(FIELD(1)) IN(LOAD(3)))
	    DO(SRC(FIELD(2) INDEX_REG(3)) IN(MAKE(FIELD(4)) IN("set {} "))),
	    "1:2 2:10 2:11 2:12", PROTOVM_OK, "4:12");
	aborts("", DO(SRC(FIELD(1) FIELD(2))), "1:5");
	aborts("", DO(SRC(FIELD(1) EACH(2))), "1:5");
	aborts("", DO(SRC(FIELD(1) INDEX_REG(3))), "1:5");
	check_from("", DO(SRC(EACH(1) EACH(2)) IN("merge {} ")),
	    "1:{2:{1:1} 2:{2:2}} 5:5 1:{} 1:{2:{3:3}}", PROTOVM_OK,
	    "1:1 2:2 3:3");
	check_from("", DO("select { relative_path { field_id: 1 is_repeated: "
	    "true store_foreach_index_into_register: 6 } } "
	    IN(MAKE(FIELD(1) INDEX_REG(6)) IN("set {} "))), "1:9 2:1 1:8 1:7",
	    PROTOVM_OK, "1:9 1:8 1:7");
}

static void
test_malformed(void **state)
{
	static const uint8_t cut[] = { 0x08, 0x05, 0x12, 0x02, 0x08 };

	(void)state;
	make(ELEMENTS, LIMIT);
	wire_text_apply(vm, "3:{1:0 2:10}");
	assert_int_equal(protovm_apply(vm, cut, sizeof(cut)),
	    PROTOVM_BAD_PACKET);
	assert_int_equal(wire_text_apply(vm, "2:{1:1} 2:'~~~'"),
	    PROTOVM_BAD_PACKET);
	wire_text_expect(vm, "1:{1:0 2:10}");
	check_from("1:1", DO(SRC(FIELD(2) EACH(3))), "2:'~~~'",
	    PROTOVM_BAD_PACKET, "1:1");
	check_from("1:1", DO(SRC(FIELD(2)) IN("merge {} ")), "2:'~~~'",
	    PROTOVM_BAD_PACKET, "1:1");
}

/* ---- The state ---- */

static void
test_state_fields(void **state)
{
	(void)state;
	check_from("2:{3:1}", DO(DST(FIELD(2) FIELD(3)) IN("del {} ")), "",
	    PROTOVM_OK, "2:{}");
	check_from("2:{3:1}", DO(DST(FIELD(2) FIELD(4)) IN("del {} ")), "",
	    PROTOVM_SKIPPED, "2:{3:1}");
	check_from("2:{3:1}", DO(MAKE(FIELD(2) FIELD(4) FIELD(5))
	    IN("set {} ")), "7:7", PROTOVM_OK, "2:{3:1 4:{5:{7:7}}}");
	/* What was only selected is not there. */
	check_from("2:{3:1}", DO(MAKE(FIELD(4))), "", PROTOVM_OK, "2:{3:1}");
	aborts("2:3", DO(DST(FIELD(2) FIELD(1))), "");
	aborts("2:3", DO(DST(FIELD(2) EACH(1))), "");
	aborts("2:'~~~'", DO(DST(FIELD(2) FIELD(1))), "");
	/* Repeated fields are found by an index or a key. */
	aborts("2:1 2:2", DO(DST(FIELD(2))), "");
	/* BOTH moves the destination alone. */
	check_from("", DO("select { cursor: VM_CURSOR_BOTH "
	    "create_if_not_exist: true " FIELD(2) "} " IN("set {} ")),
	    "2:5", PROTOVM_OK, "2:{2:5}");
}

static void
test_state_arrays(void **state)
{
	(void)state;
	check_from("2:1 3:3 2:2", DO(DST(FIELD(2) INDEX(0)) IN("del {} ")), "",
	    PROTOVM_OK, "2:2 3:3");
	/* One past the end is appended, with or without being told to. */
	check_from("2:{1:1}", DO(DST(FIELD(2) INDEX(1)) IN("set {} ")), "5:5",
	    PROTOVM_OK, "2:{1:1} 2:{5:5}");
	aborts("2:{1:1}", DO(MAKE(FIELD(2) INDEX(2))), "");
	aborts("2:{1:1}", DO(MAKE(FIELD(3) INDEX(1))), "");
	check_from("", DO(MAKE(FIELD(2) INDEX(0)) IN("set {} ")), "5:5",
	    PROTOVM_OK, "2:{5:5}");
	/* Then one field is an array for good. */
	aborts("2:{1:1}", DO(DST(FIELD(2) INDEX(0))) DO(DST(FIELD(2))), "");
	check_from("2:{1:1} 2:{1:2} 2:{1:3}", DO(DST(EACH(2)) IN(MAKE(FIELD(4))
	    IN("set {} "))), "5:5", PROTOVM_OK,
	    "2:{1:1 4:{5:5}} 2:{1:2 4:{5:5}} 2:{1:3 4:{5:5}}");
	check_from("2:{1:1} 2:{1:2} 2:{1:3}", DO(DST(EACH(2))
	    IN("insert {} ")), "5:5", PROTOVM_OK,
	    "2:{5:5} 2:{1:1} 2:{5:5} 2:{1:2} 2:{5:5} 2:{1:3}");
	check_from("2:{1:1} 2:{1:2} 2:{1:3}", DO(DST(EACH(2)) IN("del {} ")),
	    "", PROTOVM_OK, "");
	check_from("2:{1:1}", DO(DST(EACH(3)) IN("del {} ")) DO("merge {} "),
	    "4:4", PROTOVM_OK, "2:{1:1} 4:4");
	check_from("2:7", DO(SRC(FIELD(1)) IN(DST(EACH(2)) IN("set {} "))),
	    "1:8", PROTOVM_OK, "2:8");
}

static void
test_state_maps(void **state)
{
	const char *load = DO(SRC(FIELD(1)) IN(LOAD(0)))
	    DO(DST(FIELD(2) KEY(1, 0)) IN("merge {} "));

	(void)state;
	check_from("2:{1:4 2:4} 2:{1:3} 2:{1:5}", load, "1:4 3:9", PROTOVM_OK,
	    "2:{1:3} 2:{1:4 2:4 3:9} 2:{1:5}");
	/* One element is enough, and of equal keys the first stays. */
	check_from("2:{1:4 2:4}", load, "1:5", PROTOVM_OK,
	    "2:{1:4 2:4} 2:{1:5}");
	check_from("2:{1:4 2:4} 2:{1:4 2:5} 2:{1:3}", load, "1:3", PROTOVM_OK,
	    "2:{1:3} 2:{1:4 2:4}");
	check_from("9:9", load, "1:3", PROTOVM_SKIPPED, "9:9");
	aborts("2:{1:4} 2:{2:4}", load, "1:4");
	aborts("2:{1:'x'} 2:{1:4}", load, "1:4");
	aborts("2:'~~~'", load, "1:4");
	aborts("2:4", load, "1:4");
	aborts("2:4 2:5", load, "1:4");
	aborts("2:{}", DO(DST(FIELD(2) KEY(1, 0))), "1:4");
	/* A map is no array, and cannot be merged. */
	aborts("2:{1:4}", DO(SRC(FIELD(1)) IN(LOAD(0)))
	    DO(DST(FIELD(2) KEY(1, 0))) DO(DST(FIELD(2) INDEX(0))), "1:4");
	aborts("2:{1:4}", DO(SRC(FIELD(1)) IN(LOAD(0)))
	    DO(DST(FIELD(2) KEY(1, 0))) DO(DST(EACH(2))), "1:4");
	aborts("2:{1:4}", DO(SRC(FIELD(1)) IN(LOAD(0)))
	    DO(DST(FIELD(2) KEY(1, 0))) DO("merge {} "), "1:4 2:{1:5}");
	/* Elements that were looked into before. */
	check_from("2:{1:4 3:{}} 2:{1:3}", DO(DST(FIELD(2) INDEX(0))
	    IN(DST(FIELD(3)) IN("set {} "))) DO(SRC(FIELD(1)) IN(LOAD(0)))
	    DO(DST(FIELD(2) KEY(1, 0)) IN("del {} ")), "1:3", PROTOVM_OK,
	    "2:{1:4 3:{1:3}}");
}

static void
test_registers(void **state)
{
	(void)state;
	aborts("2:{1:4}", DO(DST(FIELD(2) KEY(1, 0))), "1:4");
	check_from("1:{1:8}", DO(DST(FIELD(1) FIELD(1))
	    IN("reg_load { cursor: VM_CURSOR_DST dst_register: 9 } "))
	    DO(MAKE(FIELD(2) KEY(1, 9)) IN("set {} ")), "1:8", PROTOVM_OK,
	    "1:{1:8} 2:{1:8}");
	aborts("1:{1:8}", DO(DST(FIELD(1)) IN("reg_load { cursor: "
	    "VM_CURSOR_DST } ")), "");
	/* No packet sees the registers of the one before. */
	make(DO(SKIP SRC(FIELD(1)) IN(LOAD(0)))
	    DO(MAKE(FIELD(2) KEY(1, 0)) IN("merge {} ")), LIMIT);
	assert_int_equal(wire_text_apply(vm, "1:5"), PROTOVM_OK);
	assert_int_equal(wire_text_apply(vm, "3:5"), PROTOVM_ABORTED);
	wire_text_expect(vm, "2:{1:5}");
}

/* ---- Merge, set ---- */

static void
test_merge(void **state)
{
	(void)state;
	check_from("1:1 2:'a'", DO("merge {} "), "3:l3 2:'b' 4:{1:1}",
	    PROTOVM_OK, "1:1 2:'b' 3:l3 4:{1:1}");
	check_from("1:1", DO("merge {} "), "", PROTOVM_OK, "1:1");
	/* A new kind is as good. */
	check_from("1:1", DO("merge {} "), "1:'x'", PROTOVM_OK, "1:'x'");
	/* All elements of what is known to be repeated are replaced. */
	check_from("1:1 1:2 2:2", DO("merge {} "), "1:7 1:8 1:9", PROTOVM_OK,
	    "1:7 1:8 1:9 2:2");
	check_from("1:1 1:2 2:2", DO("merge {} ") DO("merge {} "), "1:7 1:8",
	    PROTOVM_OK, "1:7 1:8 2:2");
	/* Of what is not, the last stays. */
	check_from("2:2", DO("merge {} "), "1:7 1:8 1:9", PROTOVM_OK,
	    "1:9 2:2");
	aborts("1:5", DO(SRC(FIELD(1)) IN("merge {} ")), "1:5");
	aborts("1:5", DO(DST(FIELD(1)) IN("merge {} ")), "1:5");
	aborts("1:'~~~'", DO(DST(FIELD(1)) IN("merge {} ")), "1:5");
}

static void
test_merge_options(void **state)
{
	const char *del = DO("merge { del_if_src_empty: true } ");

	(void)state;
	check_from("1:{1:1} 2:2 3:3 3:4", del, "1:{} 3:{} 4:{} 5:5",
	    PROTOVM_OK, "2:2 4:{} 5:5");
	check_from("1:1", del, "1:{} 1:{}", PROTOVM_OK, "1:{}");
	/* A message that the program has looked into is skipped. */
	check_from("1:{1:1} 2:{1:1}", DO(DST(FIELD(1) FIELD(1)))
	    DO("merge { skip_submessages: true } "), "1:{1:9} 2:{1:9} 3:{}",
	    PROTOVM_OK, "1:{1:1} 2:{1:9} 3:{}");
	check_from("1:{1:1} 2:{1:1}", DO(DST(FIELD(1) FIELD(1)))
	    DO("merge {} "), "1:{1:9} 2:{1:9} 3:{}",
	    PROTOVM_OK, "1:{1:9} 2:{1:9} 3:{}");
}

static void
test_set(void **state)
{
	const char *one = DO(SRC(FIELD(1)) IN(MAKE(FIELD(2)) IN("set {} ")));

	(void)state;
	check_from("", one, "1:5", PROTOVM_OK, "2:5");
	check_from("2:i4", one, "1:l5", PROTOVM_OK, "2:l5");
	check_from("2:{1:1}", one, "1:{3:3}", PROTOVM_OK, "2:{3:3}");
	check_from("2:{1:1}", one, "1:''", PROTOVM_OK, "2:''");
	check_from("1:1", DO("set {} "), "", PROTOVM_OK, "");
	aborts("2:1", one, "1:'x'");
	/* The state as a whole stays a message. */
	aborts("2:1", DO(SRC(FIELD(1)) IN("set {} ")), "1:'~~~'");
	aborts("2:'x'", one, "1:1");
	aborts("", DO(SRC(FIELD(1)) IN("set {} ")), "1:1");
	/* Elsewhere than in an array, INSERT is SET. */
	check_from("2:i4", DO(SRC(FIELD(1)) IN(MAKE(FIELD(2))
	    IN("insert {} "))), "1:5", PROTOVM_OK, "2:5");
	aborts("2:1 2:2", DO(MAKE(FIELD(2))), "");
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_teardown(test_elements_delete, teardown),
	cmocka_unit_test_teardown(test_elements_merge, teardown),
	cmocka_unit_test_teardown(test_elements_set, teardown),
	cmocka_unit_test_teardown(test_elements_by_index, teardown),
	cmocka_unit_test_teardown(test_elements_errors, teardown),
	cmocka_unit_test_teardown(test_test_events, teardown),
	cmocka_unit_test_teardown(test_deleted_destination, teardown),
	cmocka_unit_test_teardown(test_levels, teardown),
	cmocka_unit_test_teardown(test_source, teardown),
	cmocka_unit_test_teardown(test_malformed, teardown),
	cmocka_unit_test_teardown(test_state_fields, teardown),
	cmocka_unit_test_teardown(test_state_arrays, teardown),
	cmocka_unit_test_teardown(test_state_maps, teardown),
	cmocka_unit_test_teardown(test_registers, teardown),
	cmocka_unit_test_teardown(test_merge, teardown),
	cmocka_unit_test_teardown(test_merge_options, teardown),
	cmocka_unit_test_teardown(test_set, teardown),
};

int
main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
