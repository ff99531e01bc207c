/* Memory, steps, and malloc() that fails. */
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
#include "service/protovm/protovm_run.h"
#include "tests/unit/service/protovm/failing_malloc.h"
#include "tests/unit/service/protovm/programs.h"
#include "tests/unit/service/protovm/wire_text.h"

#define LIMIT ((size_t)1 << 20)

static struct protovm_program *
program(const char *text)
{
	char err[256];
	struct protovm_program *p = wire_text_program(text, err, sizeof(err));

	if (p == NULL)
		fail_msg("%s", err);
	return p;
}

static struct protovm *
machine(const char *text, size_t limit)
{
	struct protovm_program *p = program(text);
	struct protovm *vm = protovm_new(p, limit);

	assert_non_null(vm);
	assert_ptr_equal(protovm_program(vm), p);
	protovm_program_unref(p);
	return vm;
}

static enum protovm_verdict
apply(struct protovm *vm, const struct pb_writer *packet)
{
	assert_false(packet->failed);
	return protovm_apply(vm, packet->data, packet->len);
}

/* ---- Memory ---- */

static void
test_memory_limit(void **state)
{
	struct protovm *vm = machine(ELEMENTS, 4096);
	char text[5000];

	(void)state;
	assert_int_equal(wire_text_apply(vm, "3:{1:0 2:10} 3:{1:1 2:11}"),
	    PROTOVM_OK);
	/* One element fits, the next does not: neither is there. */
	snprintf(text, sizeof(text), "2:{1:0 2:100} 2:{1:1 9:'%04500d'}", 0);
	assert_int_equal(wire_text_apply(vm, text), PROTOVM_NO_MEMORY);
	wire_text_expect(vm, "1:{1:0 2:10} 1:{1:1 2:11}");
	/* Within the double, but not what may stay. */
	snprintf(text, sizeof(text), "2:{1:1 9:'%04000d'}", 0);
	assert_int_equal(wire_text_apply(vm, text), PROTOVM_NO_MEMORY);
	wire_text_expect(vm, "1:{1:0 2:10} 1:{1:1 2:11}");
	assert_in_range(protovm_memory(vm), 1, 4096 + 1000);
	assert_int_equal(protovm_memory_limit(vm), 4096);
	protovm_free(vm);
}

/* All memory that counts is that of the state. */
static void
check_memory(const struct protovm *vm)
{
	assert_int_equal(vm->memory.used,
	    protovm_value_size(&vm->root.value));
	assert_true(vm->memory.used <= vm->memory.limit);
}

/* What is replaced does not count once the packet is applied. */
static void
test_memory_replaced(void **state)
{
	struct protovm *vm = machine(DO("set {} "), 4096);
	char text[4096];
	unsigned i;

	(void)state;
	snprintf(text, sizeof(text), "9:'%03000d'", 0);
	for (i = 0; i < 10; i++)
		assert_int_equal(wire_text_apply(vm, text), PROTOVM_OK);
	wire_text_expect(vm, text);
	check_memory(vm);
	protovm_free(vm);
}

/* Elements that go make room for those that come, in the same packet. */
static void
test_memory_exchanged(void **state)
{
	struct protovm *vm = machine(ELEMENTS, 4096);
	char text[4096];
	unsigned i;

	(void)state;
	/* Two of one key, of which one is dropped with its bytes. */
	snprintf(text, sizeof(text), "1:{1:9 3:'%0700d'} 1:{1:9 3:'%0700d'} "
	    "1:{1:8 3:'%0700d'}", 0, 0, 0);
	wire_text_load(vm, text);
	for (i = 0; i < 6; i++) {
		snprintf(text, sizeof(text), "1:%u 3:{1:%u 3:'%01200d'} "
		    "2:{1:%u 4:4}", 9 - i, 8 - i, 0, 8 - i);
		assert_int_equal(wire_text_apply(vm, text), PROTOVM_OK);
		check_memory(vm);
	}
	snprintf(text, sizeof(text), "1:{1:3 3:'%01200d'}", 0);
	wire_text_expect(vm, text);
	protovm_free(vm);
}

static void
test_memory_returns(void **state)
{
	struct protovm *vm = machine(ELEMENTS, LIMIT);
	size_t empty = protovm_memory(vm);
	struct pb_writer put, del;
	char text[64];
	unsigned i, round;

	(void)state;
	pb_writer_init(&put);
	pb_writer_init(&del);
	for (i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "2:{1:%u 2:5 3:'name'}", i * 7);
		wire_text(text, &put);
		snprintf(text, sizeof(text), "1:%u", i * 7);
		wire_text(text, &del);
	}
	for (round = 0; round < 3; round++) {
		assert_int_equal(apply(vm, &put), PROTOVM_OK);
		assert_in_range(protovm_memory(vm), 200000, LIMIT);
		assert_int_equal(apply(vm, &del), PROTOVM_OK);
		wire_text_expect(vm, "");
		/* The map itself, and nothing in it. */
		assert_in_range(protovm_memory(vm), empty, empty + 200);
	}
	pb_writer_done(&put);
	pb_writer_done(&del);
	protovm_free(vm);
}

static void
test_state_loaded(void **state)
{
	struct protovm *vm = machine(ELEMENTS, 1000), *copy;
	uint8_t big[1500] = { 0 };

	(void)state;
	assert_int_equal(protovm_set_state(vm,
	    (const uint8_t *)"\x0a\x02\x08\x01", 4), 0);
	wire_text_expect(vm, "1:{1:1}");
	assert_int_equal(protovm_set_state(vm, (const uint8_t *)"\x0a\x02", 2),
	    -1);
	big[0] = 0x0a;
	big[1] = 0xd9;
	big[2] = 0x0b;
	assert_int_equal(protovm_set_state(vm, big, sizeof(big)), -1);
	wire_text_expect(vm, "1:{1:1}");
	assert_int_equal(wire_text_apply(vm, "2:{1:1 2:7}"), PROTOVM_OK);
	copy = protovm_clone(vm);
	assert_non_null(copy);
	assert_int_equal(protovm_count(copy, PROTOVM_OK), 0);
	assert_ptr_equal(protovm_program(copy), protovm_program(vm));
	assert_int_equal(protovm_set_state(vm, NULL, 0), 0);
	wire_text_expect(vm, "");
	protovm_free(vm);
	wire_text_expect(copy, "1:{1:1 2:7}");
	assert_int_equal(wire_text_apply(copy, "2:{1:1 2:8} 2:{1:0}"),
	    PROTOVM_OK);
	wire_text_expect(copy, "1:{1:0} 1:{1:1 2:8}");
	protovm_free(copy);
	protovm_free(NULL);
}

/* ---- Steps ---- */

/* Each field of a packet with each other one: the square of its size. */
#define SQUARE DO(SRC("") IN(SRC(EACH(1)))                                     \
    IN(SRC(EACH(1)) IN(DST(EACH(2)) IN("set {} "))))

static void
numbers(struct pb_writer *w, const char *field, unsigned n)
{
	for (; n > 0; n--)
		wire_text(field, w);
}

static void
test_steps(void **state)
{
	struct protovm *vm = machine(SQUARE, LIMIT);
	struct pb_writer many, packet;
	uint64_t runs;

	(void)state;
	pb_writer_init(&many);
	pb_writer_init(&packet);
	numbers(&many, "2:1", 2000);
	assert_int_equal(protovm_set_state(vm, many.data, many.len), 0);
	numbers(&packet, "1:1", 3);
	assert_int_equal(apply(vm, &packet), PROTOVM_TOO_MANY_STEPS);
	pb_writer_reset(&packet);
	numbers(&packet, "1:1", 2000);
	assert_int_equal(apply(vm, &packet), PROTOVM_TOO_MANY_STEPS);
	/* Now and then it is forgiven; after too many in a row it is not. */
	pb_writer_reset(&packet);
	wire_text("9:1", &packet);
	for (runs = 0; runs < 128; runs++)
		assert_int_equal(apply(vm, &packet), PROTOVM_OK);
	pb_writer_reset(&packet);
	numbers(&packet, "1:1", 2000);
	for (runs = 0; !protovm_is_off(vm); runs++)
		assert_int_equal(apply(vm, &packet), PROTOVM_TOO_MANY_STEPS);
	assert_int_equal(runs, 8);
	assert_int_equal(apply(vm, &packet), PROTOVM_OFF);
	assert_int_equal(protovm_count(vm, PROTOVM_TOO_MANY_STEPS), 10);
	assert_int_equal(protovm_count(vm, PROTOVM_OFF), 1);
	/* The state is there, as it was. */
	pb_writer_reset(&packet);
	protovm_state(vm, &packet);
	assert_int_equal(packet.len, many.len);
	assert_memory_equal(packet.data, many.data, many.len);
	pb_writer_done(&packet);
	pb_writer_done(&many);
	protovm_free(vm);
}

/* Reads the whole packet for a field that it has not. */
#define SCAN DO(SKIP SRC(FIELD(9)))

static void
test_steps_of_large_packets(void **state)
{
	struct protovm *eight = machine(SCAN SCAN SCAN SCAN SCAN SCAN SCAN
	    SCAN, LIMIT);
	struct protovm *four = machine(SCAN SCAN SCAN SCAN, LIMIT);
	struct pb_writer w;

	(void)state;
	pb_writer_init(&w);
	while (w.len < (4u << 20))
		pb_put_uint(&w, 1, 1);
	assert_int_equal(apply(four, &w), PROTOVM_TOO_MANY_STEPS);
	assert_int_equal(protovm_apply(four, w.data, w.len / 2), PROTOVM_OK);
	assert_int_equal(protovm_apply(eight, w.data, w.len / 2),
	    PROTOVM_TOO_MANY_STEPS);
	assert_int_equal(protovm_apply(eight, w.data, w.len / 4), PROTOVM_OK);
	pb_writer_done(&w);
	protovm_free(eight);
	protovm_free(four);
}

/*
 * A small packet may be the first that looks into much, and is: the bytes have
 * paid for it.  Once.
 */
static void
test_steps_of_parsing(void **state)
{
	struct protovm *vm = machine(DO(SRC(FIELD(1)) IN(DST(FIELD(2) FIELD(3))
	    IN("set {} "))) DO(SRC(FIELD(4)) IN(MAKE(FIELD(2)) IN("set {} "))),
	    (size_t)64 << 20);
	struct pb_writer w;
	unsigned i, n = 0;
	size_t mark;

	(void)state;
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, 2);
	wire_text("3:'x'", &w);
	for (i = 4; i < 50000; i++)
		pb_put_uint(&w, i, 1);
	pb_nest_end(&w, mark);
	assert_int_equal(protovm_set_state(vm, w.data, w.len), 0);
	pb_writer_done(&w);
	/* Aborted, it is parsed again, until nothing is left of its pay. */
	while (wire_text_apply(vm, "1:5") == PROTOVM_ABORTED)
		n++;
	assert_int_equal(protovm_count(vm, PROTOVM_TOO_MANY_STEPS), 1);
	assert_in_range(n, 1, 3);
	assert_int_equal(wire_text_apply(vm, "1:{5:5}"),
	    PROTOVM_TOO_MANY_STEPS);
	protovm_free(vm);
}

static void
test_steps_suffice(void **state)
{
	struct protovm *vm = machine(ELEMENTS, (size_t)64 << 20);
	struct pb_writer w;
	char text[64];
	unsigned i;

	(void)state;
	pb_writer_init(&w);
	for (i = 0; i < 100000; i++) {
		snprintf(text, sizeof(text), "2:{1:%u 2:%u}",
		    i * 2654435761u >> 8, i);
		wire_text(text, &w);
	}
	assert_int_equal(apply(vm, &w), PROTOVM_OK);
	for (i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "2:{1:%u 2:1}", i);
		assert_int_equal(wire_text_apply(vm, text), PROTOVM_OK);
	}
	pb_writer_done(&w);
	protovm_free(vm);
}

/* ---- Depth ---- */

/* So many levels of a SELECT of every field 1, and SET of field 2. */
static void
put_deep_program(struct pb_writer *w, unsigned levels)
{
	size_t marks[PROTOVM_DEPTH_MAX];
	unsigned i;

	for (i = 0; i < levels; i++) {
		marks[i] = pb_nest_begin(w, i == 0 ? 2 : 7);
		wire_text("1:{2:{1:1 5:1}}", w);
	}
	wire_text("7:{1:{1:2 2:{1:2} 3:1} 7:{4:{}}}", w);
	while (i-- > 0)
		pb_nest_end(w, marks[i]);
}

static void
test_depth(void **state)
{
	struct protovm_program *p;
	struct protovm *vm;
	struct pb_writer w;
	size_t marks[64];
	char err[128];
	unsigned i;

	(void)state;
	pb_writer_init(&w);
	put_deep_program(&w, 64);
	assert_null(protovm_program_new(w.data, w.len, err, sizeof(err)));
	assert_non_null(strstr(err, "nested too deep"));
	pb_writer_reset(&w);
	put_deep_program(&w, 62);
	p = protovm_program_new(w.data, w.len, err, sizeof(err));
	assert_non_null(p);
	vm = protovm_new(p, LIMIT);
	assert_non_null(vm);
	protovm_program_unref(p);
	pb_writer_reset(&w);
	for (i = 0; i < 62; i++)
		marks[i] = pb_nest_begin(&w, 1);
	wire_text("9:9", &w);
	while (i-- > 0)
		pb_nest_end(&w, marks[i]);
	assert_int_equal(apply(vm, &w), PROTOVM_OK);
	wire_text_expect(vm, "2:{9:9}");
	pb_writer_done(&w);
	protovm_free(vm);
}

/* ---- malloc() ---- */

/* Arrays, maps, wraps, duplicates, new fields and journals longer than one. */
#define EVERYTHING ELEMENTS                                                   \
    DO(SRC(EACH(6)) IN(MAKE(FIELD(2) INDEX(0)) IN("set {} ")))                \
    DO(SRC(EACH(7)) IN(MAKE(FIELD(3) FIELD(3)) IN("merge {} ")))              \
    DO(SKIP SRC(FIELD(8)) IN(MAKE(FIELD(4) KEY(1, 0)) IN("set {} ")))              \
    DO(SKIP SRC(FIELD(9)) IN(DST("") IN("del {} ")))

static const char *const packets[] = {
	"2:{1:1 2:5 9:'bytes'} 2:{1:7} 2:{1:2 2:7} 3:{1:5 2:5} 1:7",
	"6:{1:1} 7:{1:1 2:2} 1:2 8:{2:2}",
	"7:{2:{} 3:'xyz'} 6:{2:2}",
	"2:{1:1 3:1 4:1 5:1 6:1 7:1 8:1 9:1 10:1 11:1 12:1 13:1 14:1 15:1 16:1 "
	"17:1 18:1 19:1 20:1 21:1 22:1 23:1 24:1 25:1 26:1 27:1 28:1 29:1 30:1 "
	"31:1 32:1 33:1 34:1 35:1 36:1 37:1 38:1 39:1 40:1 41:1 42:1 43:1 44:1 "
	"45:1 46:1 47:1 48:1 49:1 50:1 51:1 52:1 53:1 54:1 55:1 56:1 57:1 58:1 "
	"59:1 60:1 61:1 62:1 63:1 64:1 65:1 66:1 67:1 68:1 69:1 70:1 71:1 72:1}",
	"9:1 2:{1:99 2:'x'}",
};
#define N_PACKETS (sizeof(packets) / sizeof(packets[0]))
#define BEFORE "1:{1:3} 1:{1:4 5:5} 1:{1:3 2:9} 2:{} 4:{1:6 2:2} 4:{1:6 2:3}"

static void
expect_same(const struct protovm *vm, const struct pb_writer *want)
{
	struct pb_writer got;

	pb_writer_init(&got);
	protovm_state(vm, &got);
	assert_int_equal(got.len, want->len);
	if (got.len > 0)
		assert_memory_equal(got.data, want->data, got.len);
	pb_writer_done(&got);
}

/*
 * The packet, with each call of malloc() failing once: nothing has changed
 * then, and the next attempt succeeds.
 */
static void
apply_failing(struct protovm *vm, const struct pb_writer *packet)
{
	struct pb_writer before;
	enum protovm_verdict v;
	unsigned n;

	pb_writer_init(&before);
	protovm_state(vm, &before);
	for (n = 1;; n++) {
		failing_malloc(n);
		v = protovm_apply(vm, packet->data, packet->len);
		if (failing_malloc_calls() < n)
			break;
		failing_malloc(0);
		assert_int_equal(v, PROTOVM_NO_MEMORY);
		expect_same(vm, &before);
	}
	failing_malloc(0);
	if (v != PROTOVM_OK)
		fail_msg("verdict %d: %s", v, protovm_reason(vm));
	assert_true(n > 2);
	pb_writer_done(&before);
}

static void
test_malloc_fails(void **state)
{
	struct protovm_program *p = program(EVERYTHING);
	struct protovm *vm = NULL, *sound = protovm_new(p, LIMIT);
	struct pb_writer w, want;
	unsigned n;
	size_t i;

	(void)state;
	assert_non_null(sound);
	for (n = 1; vm == NULL; n++) {
		failing_malloc(n);
		vm = protovm_new(p, LIMIT);
	}
	failing_malloc(0);
	assert_int_equal(n, 3);
	pb_writer_init(&w);
	pb_writer_init(&want);
	wire_text(BEFORE, &w);
	failing_malloc(1);
	assert_int_equal(protovm_set_state(vm, w.data, w.len), -1);
	failing_malloc(0);
	assert_int_equal(protovm_set_state(vm, w.data, w.len), 0);
	assert_int_equal(protovm_set_state(sound, w.data, w.len), 0);
	for (i = 0; i < N_PACKETS; i++) {
		pb_writer_reset(&w);
		wire_text(packets[i], &w);
		apply_failing(vm, &w);
		apply(sound, &w);
		pb_writer_reset(&want);
		protovm_state(sound, &want);
		expect_same(vm, &want);
	}
	pb_writer_done(&w);
	pb_writer_done(&want);
	protovm_free(vm);
	protovm_free(sound);
	protovm_program_unref(p);
}

/* As with malloc() that fails, by limits of all sizes. */
static void
apply_within(struct protovm *vm, const char *packet)
{
	struct pb_writer before;

	pb_writer_init(&before);
	protovm_state(vm, &before);
	if (wire_text_apply(vm, packet) == PROTOVM_NO_MEMORY)
		expect_same(vm, &before);
	check_memory(vm);
	pb_writer_done(&before);
}

static void
test_every_limit(void **state)
{
	struct protovm_program *p = program(EVERYTHING);
	struct protovm *vm;
	struct pb_writer w;
	size_t limit, i;
	bool failed = true;

	(void)state;
	pb_writer_init(&w);
	wire_text(BEFORE, &w);
	for (limit = 80; failed; limit += 8) {
		vm = protovm_new(p, limit);
		assert_non_null(vm);
		assert_int_equal(protovm_set_state(vm, w.data, w.len), 0);
		for (i = 0; i < N_PACKETS; i++)
			apply_within(vm, packets[i]);
		failed = protovm_count(vm, PROTOVM_NO_MEMORY) > 0;
		protovm_free(vm);
	}
	assert_in_range(limit, 2000, 20000);
	pb_writer_done(&w);
	protovm_program_unref(p);
}

static void
test_malloc_fails_elsewhere(void **state)
{
	static const uint8_t wire[] = { 0x12, 0x02, 0x22, 0x00 };
	struct protovm_program *p = NULL;
	struct protovm *vm, *copy = NULL;
	char err[64];
	unsigned n;

	(void)state;
	for (n = 1; p == NULL; n++) {
		failing_malloc(n);
		p = protovm_program_new(wire, sizeof(wire), err, sizeof(err));
		if (p == NULL)
			assert_string_equal(err, "no memory");
	}
	failing_malloc(0);
	assert_int_equal(n, 6);
	vm = protovm_new(p, LIMIT);
	assert_non_null(vm);
	assert_int_equal(wire_text_apply(vm, "1:5 2:'x'"), PROTOVM_OK);
	for (n = 1; copy == NULL; n++) {
		failing_malloc(n);
		copy = protovm_clone(vm);
	}
	failing_malloc(0);
	assert_true(n > 3);
	wire_text_expect(copy, "1:5 2:'x'");
	protovm_free(copy);
	protovm_free(vm);
	protovm_program_unref(p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_limit),
		cmocka_unit_test(test_memory_replaced),
		cmocka_unit_test(test_memory_exchanged),
		cmocka_unit_test(test_memory_returns),
		cmocka_unit_test(test_state_loaded),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_steps_of_large_packets),
		cmocka_unit_test(test_steps_of_parsing),
		cmocka_unit_test(test_steps_suffice),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_malloc_fails),
		cmocka_unit_test(test_every_limit),
		cmocka_unit_test(test_malloc_fails_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
