#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "service/filter/bytecode.h"
#include "tests/unit/service/filter/assembler.h"

static struct assembler base, overlay;
static char err[512];

static struct bytecode *
load(const struct assembler *a, const struct assembler *over)
{
	struct bytecode_source s = { "bytecode_v2", a->bytes, a->len }, o;

	err[0] = '\0';
	if (over == NULL)
		return bytecode_load(&s, NULL, err, sizeof(err));
	o = (struct bytecode_source){ "overlay", over->bytes, over->len };
	return bytecode_load(&s, &o, err, sizeof(err));
}

static struct bytecode *
loaded(const struct assembler *over)
{
	struct bytecode *b;

	asm_done(&base, 0);
	b = load(&base, over);
	if (b == NULL)
		fail_msg("%s", err);
	return b;
}

/* The sentence has to have this in it. */
static void
refused(const struct assembler *over, const char *why)
{
	asm_done(&base, 0);
	assert_null(load(&base, over));
	if (strstr(err, why) == NULL)
		fail_msg("\"%s\" is not in: %s", why, err);
}

static void
expect(const struct bytecode *b, uint32_t message, uint32_t field,
    enum field_action action, uint32_t argument)
{
	struct field_rule r = bytecode_rule(b, message, field);

	if (r.action != action || r.argument != argument)
		fail_msg("field %u of message %u: %u(%u)", field, message,
		    r.action, r.argument);
}

static void
every_opcode_says_what_it_says(void **state)
{
	struct bytecode *b;

	asm_begin(&base);
	asm_field(&base, 1);
	asm_range(&base, 3, 2);
	asm_nested(&base, 5, 1);
	asm_string(&base, 7);
	asm_typed_string(&base, 8, 9);
	asm_end(&base);
	asm_field(&base, 2);
	asm_end(&base);
	b = loaded(NULL);
	expect(b, 0, 0, FIELD_DENY, 0);
	expect(b, 0, 1, FIELD_SIMPLE, 0);
	expect(b, 0, 2, FIELD_DENY, 0);
	expect(b, 0, 3, FIELD_SIMPLE, 0);
	expect(b, 0, 4, FIELD_SIMPLE, 0);
	expect(b, 0, 5, FIELD_NESTED, 1);
	expect(b, 0, 6, FIELD_DENY, 0);
	expect(b, 0, 7, FIELD_STRING, 0);
	expect(b, 0, 8, FIELD_STRING, 9);
	expect(b, 0, 9, FIELD_DENY, 0);
	expect(b, 0, UINT32_MAX, FIELD_DENY, 0);
	expect(b, 1, 1, FIELD_DENY, 0);
	expect(b, 1, 2, FIELD_SIMPLE, 0);
	bytecode_free(b);
}

static void
large_fields_are_found_among_ranges(void **state)
{
	struct bytecode *b;
	uint32_t i;

	asm_begin(&base);
	asm_range(&base, 126, 4); /* over the edge of the table */
	for (i = 0; i < 50; i++)
		asm_nested(&base, 1000 + 10 * i, i % 2);
	asm_range(&base, 5000, 1000);
	asm_field(&base, (1u << 29) - 1);
	asm_end(&base);
	asm_string(&base, 200);
	asm_end(&base);
	b = loaded(NULL);
	expect(b, 0, 125, FIELD_DENY, 0);
	for (i = 126; i < 130; i++)
		expect(b, 0, i, FIELD_SIMPLE, 0);
	expect(b, 0, 130, FIELD_DENY, 0);
	for (i = 0; i < 50; i++) {
		expect(b, 0, 999 + 10 * i, FIELD_DENY, 0);
		expect(b, 0, 1000 + 10 * i, FIELD_NESTED, i % 2);
		expect(b, 0, 1001 + 10 * i, FIELD_DENY, 0);
	}
	expect(b, 0, 4999, FIELD_DENY, 0);
	expect(b, 0, 5000, FIELD_SIMPLE, 0);
	expect(b, 0, 5999, FIELD_SIMPLE, 0);
	expect(b, 0, 6000, FIELD_DENY, 0);
	expect(b, 0, (1u << 29) - 1, FIELD_SIMPLE, 0);
	expect(b, 1, 126, FIELD_DENY, 0);
	expect(b, 1, 200, FIELD_STRING, 0);
	expect(b, 1, 1000, FIELD_DENY, 0);
	bytecode_free(b);
}

static void
messages_may_be_empty_and_refer_to_themselves(void **state)
{
	struct bytecode *b;

	asm_begin(&base);
	asm_nested(&base, 1, 2);
	asm_end(&base);
	asm_end(&base);
	asm_nested(&base, 3, 2);
	asm_nested(&base, 4, 1);
	asm_end(&base);
	b = loaded(NULL);
	expect(b, 1, 1, FIELD_DENY, 0);
	expect(b, 2, 3, FIELD_NESTED, 2);
	expect(b, 2, 4, FIELD_NESTED, 1);
	bytecode_free(b);
}

static void
an_empty_range_is_nothing(void **state)
{
	struct bytecode *b;

	asm_begin(&base);
	asm_range(&base, 4, 0);
	asm_field(&base, 4);
	asm_range(&base, 400, 0);
	asm_end(&base);
	b = loaded(NULL);
	expect(b, 0, 4, FIELD_SIMPLE, 0);
	expect(b, 0, 400, FIELD_DENY, 0);
	bytecode_free(b);
}

static void
a_type_that_no_rule_can_name_stays_one(void **state)
{
	struct bytecode *b;

	asm_begin(&base);
	asm_typed_string(&base, 1, 127);
	asm_typed_string(&base, 2, 128);
	asm_typed_string(&base, 3, 1u << 31);
	asm_end(&base);
	b = loaded(NULL);
	expect(b, 0, 1, FIELD_STRING, 127);
	expect(b, 0, 2, FIELD_STRING, BYTECODE_TYPES);
	expect(b, 0, 3, FIELD_STRING, BYTECODE_TYPES);
	bytecode_free(b);
}

/* The words of the overlay: message, field, opcode, argument. */
static void
overlay_entry(uint32_t message, uint32_t field, uint32_t opcode,
    uint32_t argument)
{
	asm_word(&overlay, message);
	asm_word(&overlay, field << 3 | opcode);
	asm_word(&overlay, argument);
}

static void
an_overlay_adds_fields_and_wins(void **state)
{
	struct bytecode *b;

	asm_begin(&base);
	asm_field(&base, 3);
	asm_nested(&base, 5, 1);
	asm_range(&base, 10, 5);
	asm_range(&base, 200, 10);
	asm_end(&base);
	asm_end(&base);
	asm_field(&base, 2);
	asm_end(&base);
	asm_begin(&overlay);
	overlay_entry(0, 1, 5, 7);   /* before all */
	overlay_entry(0, 3, 4, 0);   /* instead */
	overlay_entry(0, 4, 1, 0);   /* between */
	overlay_entry(0, 5, 1, 0);   /* instead of a message */
	overlay_entry(0, 12, 5, 8);  /* within a range */
	overlay_entry(0, 13, 4, 0);
	overlay_entry(0, 204, 4, 0); /* and a large one */
	overlay_entry(0, 300, 1, 0); /* behind all */
	overlay_entry(1, 1, 1, 0);   /* into an empty message */
	overlay_entry(2, 2, 5, 3);
	asm_done(&overlay, 0);
	b = loaded(&overlay);
	expect(b, 0, 1, FIELD_STRING, 7);
	expect(b, 0, 2, FIELD_DENY, 0);
	expect(b, 0, 3, FIELD_STRING, 0);
	expect(b, 0, 4, FIELD_SIMPLE, 0);
	expect(b, 0, 5, FIELD_SIMPLE, 0);
	expect(b, 0, 11, FIELD_SIMPLE, 0);
	expect(b, 0, 12, FIELD_STRING, 8);
	expect(b, 0, 13, FIELD_STRING, 0);
	expect(b, 0, 14, FIELD_SIMPLE, 0);
	expect(b, 0, 15, FIELD_DENY, 0);
	expect(b, 0, 203, FIELD_SIMPLE, 0);
	expect(b, 0, 204, FIELD_STRING, 0);
	expect(b, 0, 205, FIELD_SIMPLE, 0);
	expect(b, 0, 209, FIELD_SIMPLE, 0);
	expect(b, 0, 210, FIELD_DENY, 0);
	expect(b, 0, 300, FIELD_SIMPLE, 0);
	expect(b, 1, 1, FIELD_SIMPLE, 0);
	expect(b, 2, 2, FIELD_STRING, 3);
	bytecode_free(b);
}

static void
overlay_refused(const char *why)
{
	asm_done(&overlay, 0);
	refused(&overlay, why);
}

static void
a_bad_overlay_is_refused(void **state)
{
	asm_begin(&base);
	asm_field(&base, 3);
	asm_end(&base);
	asm_begin(&overlay);
	asm_word(&overlay, 0);
	asm_word(&overlay, 1 << 3 | 1);
	overlay_refused("cut off"); /* two words */
	asm_begin(&overlay);
	overlay_entry(0, 3, 2, 5);
	overlay_refused("opcode 2 is not for an overlay");
	asm_begin(&overlay);
	overlay_entry(0, 3, 3, 0);
	overlay_refused("opcode 3 is not for an overlay");
	asm_begin(&overlay);
	overlay_entry(0, 0, 1, 0);
	overlay_refused("no field 0");
	asm_begin(&overlay);
	overlay_entry(1, 4, 1, 0);
	overlay_refused("there is no message 1");
	asm_begin(&overlay);
	overlay_entry(0, 4, 1, 0);
	overlay_entry(0, 4, 1, 0);
	overlay_refused("ascending");
	asm_begin(&overlay);
	overlay_entry(1, 4, 1, 0);
	overlay_entry(0, 5, 1, 0);
	overlay_refused("ascending");
	asm_begin(&overlay);
	overlay_entry(0, 4, 1, 0);
	asm_done(&overlay, 1);
	refused(&overlay, "overlay: its checksum is wrong");
}

static void
bytes_that_are_no_words_are_refused(void **state)
{
	asm_begin(&base);
	asm_field(&base, 3);
	asm_end(&base);
	asm_done(&base, 0);
	base.len--; /* of the checksum's five, most likely */
	assert_null(load(&base, NULL));
	base.len = 0;
	assert_null(load(&base, NULL));
	assert_non_null(strstr(err, "empty"));
	memset(base.bytes, 0xff, 4);
	base.len = 4;
	assert_null(load(&base, NULL));
	assert_non_null(strstr(err, "cut off"));
	memcpy(base.bytes, "\xff\xff\xff\xff\x1f", 5);
	base.len = 5;
	assert_null(load(&base, NULL));
	assert_non_null(strstr(err, "32 bits"));
	memset(base.bytes, 0xff, 12);
	base.len = 12; /* longer than any varint */
	assert_null(load(&base, NULL));
}

static void
every_cut_and_every_changed_bit_is_refused(void **state)
{
	struct assembler cut;
	size_t i, bit;

	asm_trace(&base);
	asm_field(&base, 3);
	asm_range(&base, 126, 9);
	asm_nested(&base, 1000, 1);
	asm_typed_string(&base, 1001, 3);
	asm_end(&base);
	asm_done(&base, 0);
	for (i = 0; i < base.len; i++) {
		cut = base;
		cut.len = i;
		assert_null(load(&cut, NULL));
		for (bit = 0; bit < 8; bit++) {
			cut = base;
			cut.bytes[i] ^= (uint8_t)(1u << bit);
			assert_null(load(&cut, NULL));
			assert_true(err[0] != '\0');
		}
	}
	bytecode_free(loaded(NULL));
}

static void
a_wrong_checksum_is_refused(void **state)
{
	asm_trace(&base);
	asm_end(&base);
	asm_done(&base, 1);
	assert_null(load(&base, NULL));
	assert_non_null(strstr(err, "checksum"));
}

static void
the_checksum_is_fnv_1a_of_four_bytes_a_word(void **state)
{
	/*
	 * A message without fields, and the lower half of the sum of four
	 * zeroes, 4d25767f9dce13f5, as other programs have it.
	 */
	static const uint8_t bytes[] = { 0x00, 0xf5, 0xa7, 0xb8, 0xee, 0x09 };
	struct bytecode_source s = { "bytecode", bytes, sizeof(bytes) };
	struct bytecode *b;

	b = bytecode_load(&s, NULL, err, sizeof(err));
	assert_non_null(b);
	bytecode_free(b);
}

static void
words_that_make_no_sense_are_refused(void **state)
{
	asm_begin(&base);
	refused(NULL, "there is no message");
	asm_begin(&base);
	asm_field(&base, 0);
	asm_end(&base);
	refused(NULL, "word 0: there is no field 0");
	asm_begin(&base);
	asm_field(&base, 1);
	asm_word(&base, 2 << 3 | 6);
	asm_end(&base);
	refused(NULL, "word 1: opcode 6 is not known");
	asm_begin(&base);
	asm_word(&base, 2 << 3 | 7);
	asm_end(&base);
	refused(NULL, "opcode 7 is not known");
	asm_begin(&base);
	asm_word(&base, 2 << 3); /* an end with a field number */
	asm_end(&base);
	refused(NULL, "opcode 0 is not known");
	asm_begin(&base);
	asm_field(&base, 1);
	refused(NULL, "the last message has no end");
}

static void
missing_arguments_are_refused(void **state)
{
	uint32_t opcode[] = { 2, 3, 5 };
	size_t i;

	for (i = 0; i < 3; i++) {
		asm_begin(&base);
		asm_word(&base, 9 << 3 | opcode[i]);
		refused(NULL, "its argument is missing");
	}
}

static void
fields_out_of_order_are_refused(void **state)
{
	asm_begin(&base);
	asm_field(&base, 5);
	asm_field(&base, 4);
	asm_end(&base);
	refused(NULL, "field 4 is not in ascending order");
	asm_begin(&base);
	asm_field(&base, 5);
	asm_string(&base, 5);
	asm_end(&base);
	refused(NULL, "ascending");
	asm_begin(&base);
	asm_range(&base, 130, 10);
	asm_field(&base, 139);
	asm_end(&base);
	refused(NULL, "ascending");
}

static void
ranges_beyond_the_last_field_are_refused(void **state)
{
	asm_begin(&base);
	asm_range(&base, 2, (1u << 29) - 1);
	asm_end(&base);
	refused(NULL, "beyond the last one");
	asm_begin(&base);
	asm_range(&base, 2, UINT32_MAX);
	asm_end(&base);
	refused(NULL, "beyond the last one");
	asm_begin(&base);
	asm_range(&base, 2, (1u << 29) - 2);
	asm_end(&base);
	bytecode_free(loaded(NULL));
}

static void
messages_that_are_not_there_are_refused(void **state)
{
	asm_begin(&base);
	asm_nested(&base, 1, 2);
	asm_end(&base);
	asm_end(&base);
	refused(NULL, "there is no message 2");
	asm_begin(&base);
	asm_nested(&base, 1, UINT32_MAX);
	asm_end(&base);
	refused(NULL, "there is no message 4294967295");
}

static void
there_is_a_limit_of_messages(void **state)
{
	uint32_t i;

	asm_begin(&base);
	for (i = 0; i < BYTECODE_MESSAGES_MAX; i++)
		asm_end(&base);
	bytecode_free(loaded(NULL));
	asm_end(&base);
	refused(NULL, "more than 4096 messages");
}

static void
there_is_a_limit_of_bytes(void **state)
{
	uint8_t *bytes = calloc(1, BYTECODE_BYTES_MAX + 1);
	struct bytecode_source s = { "bytecode", bytes,
	    BYTECODE_BYTES_MAX + 1 };

	assert_non_null(bytes);
	assert_null(bytecode_load(&s, NULL, err, sizeof(err)));
	assert_non_null(strstr(err, "too long"));
	free(bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_opcode_says_what_it_says),
		cmocka_unit_test(large_fields_are_found_among_ranges),
		cmocka_unit_test(messages_may_be_empty_and_refer_to_themselves),
		cmocka_unit_test(an_empty_range_is_nothing),
		cmocka_unit_test(a_type_that_no_rule_can_name_stays_one),
		cmocka_unit_test(an_overlay_adds_fields_and_wins),
		cmocka_unit_test(a_bad_overlay_is_refused),
		cmocka_unit_test(bytes_that_are_no_words_are_refused),
		cmocka_unit_test(every_cut_and_every_changed_bit_is_refused),
		cmocka_unit_test(a_wrong_checksum_is_refused),
		cmocka_unit_test(the_checksum_is_fnv_1a_of_four_bytes_a_word),
		cmocka_unit_test(words_that_make_no_sense_are_refused),
		cmocka_unit_test(missing_arguments_are_refused),
		cmocka_unit_test(fields_out_of_order_are_refused),
		cmocka_unit_test(ranges_beyond_the_last_field_are_refused),
		cmocka_unit_test(messages_that_are_not_there_are_refused),
		cmocka_unit_test(there_is_a_limit_of_messages),
		cmocka_unit_test(there_is_a_limit_of_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
