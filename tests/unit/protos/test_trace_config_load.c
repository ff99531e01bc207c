/*
 * Text and binary configs, told apart by their bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/trace_config.pb-c.h"
#include "protos/trace_config_load.h"

static int
load(const void *buf, size_t len, uint8_t **out, size_t *out_len, char *err)
{
	const struct trace_config_input in = { buf, len, "my.cfg" };

	return trace_config_load(&in, out, out_len, err,
	    TRACE_CONFIG_LOAD_ERROR_SIZE);
}

static void
expect_bytes(const void *buf, size_t len, const void *bytes, size_t n)
{
	char err[TRACE_CONFIG_LOAD_ERROR_SIZE] = "";
	uint8_t *out;
	size_t out_len;

	if (load(buf, len, &out, &out_len, err) < 0)
		fail_msg("%s", err);
	assert_int_equal(out_len, n);
	assert_memory_equal(out, bytes, n);
	free(out);
}

static void
expect_error(const void *buf, size_t len, const char *expected)
{
	char err[TRACE_CONFIG_LOAD_ERROR_SIZE] = "";
	uint8_t *out = NULL;
	size_t out_len;

	assert_int_equal(load(buf, len, &out, &out_len, err), -1);
	assert_string_equal(err, expected);
	assert_null(out);
}

static void
text_is_encoded(void **state)
{
	static const char text[] = "# caf\xc3\xa9\nbuffers { size_kb: 4 }\n";
	/* Latin-1 in a comment harms nobody. */
	static const char latin1[] = "# caf\xe9\nbuffers { size_kb: 4 }\n";

	expect_bytes(text, sizeof(text) - 1, "\x0a\x02\x08\x04", 4);
	expect_bytes(latin1, sizeof(latin1) - 1, "\x0a\x02\x08\x04", 4);
}

static void
binary_comes_back_as_it_is(void **state)
{
	/* buffers { size_kb: 4096 } duration_ms: 100 9999: 1 */
	static const uint8_t in[] = { 0x0a, 3, 0x08, 0x80, 0x20, 0x18, 100,
	    0xf8, 0xf0, 0x04, 1 };

	expect_bytes(in, sizeof(in), in, sizeof(in));
}

static void
a_binary_config_of_mostly_text_is_binary(void **state)
{
	/* data_sources { config { name chrome_config { trace_config } } } */
	static const char in[] = "\x12\x47\x0a\x45\x0a\x0btrack_event"
	    "\xaa\x06\x35\x0a\x33"
	    "{\"record_mode\":\"record-until-full\",\"categories\":[]}";

	expect_bytes(in, sizeof(in) - 1, in, sizeof(in) - 1);
}

static void
a_text_with_an_error_yields_the_error_of_the_text(void **state)
{
	static const char text[] = "buffers {\n  size_mb: 4\n}\n";
	static const char short_text[] = "b";
	static const char stray[] = "buffers {\n  size_kb: 4\x01\n}\n";

	expect_error(text, sizeof(text) - 1,
	    "my.cfg:2:3: error: TraceConfig.BufferConfig has no field "
	    "'size_mb'; did you mean 'size_kb'?\n"
	    "  size_mb: 4\n"
	    "  ^");
	expect_error(short_text, 1,
	    "my.cfg:1:1: error: TraceConfig has no field 'b'\nb\n^");
	expect_error(stray, sizeof(stray) - 1,
	    "my.cfg:2:13: error: a field of TraceConfig.BufferConfig is "
	    "wanted; '\\x01' has no meaning here\n"
	    "  size_kb: 4?\n"
	    "            ^");
}

static void
neither_is_said_to_be_neither(void **state)
{
	static const char elf[] = "\x7f" "ELF\x02\x01\x01\0\0\0\0\0\0\0\0\0";

	expect_error(elf, sizeof(elf) - 1,
	    "my.cfg: error: this is no trace config, neither as protobuf text "
	    "nor in binary");
}

static void
a_cut_binary_config_is_neither(void **state)
{
	static const uint8_t in[] = { 0x0a, 3, 0x08, 0x80, 0x20, 0x12, 9, 1 };

	expect_error(in, sizeof(in),
	    "my.cfg: error: this is no trace config, neither as protobuf text "
	    "nor in binary");
}

static void
an_empty_config_is_refused(void **state)
{
	static const char empty[] = "my.cfg: error: the config is empty";

	expect_error("", 0, empty);
	expect_error("\n# nothing yet\n", 15, empty);
}

static void
a_config_beyond_the_limit_is_refused(void **state)
{
	uint8_t *big = calloc(1, TRACE_CONFIG_LOAD_MAX + 1);

	assert_non_null(big);
	expect_error(big, TRACE_CONFIG_LOAD_MAX + 1,
	    "my.cfg: error: a trace config is at most 4194304 bytes long");
	free(big);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_encoded),
		cmocka_unit_test(binary_comes_back_as_it_is),
		cmocka_unit_test(a_binary_config_of_mostly_text_is_binary),
		cmocka_unit_test(
		    a_text_with_an_error_yields_the_error_of_the_text),
		cmocka_unit_test(neither_is_said_to_be_neither),
		cmocka_unit_test(a_cut_binary_config_is_neither),
		cmocka_unit_test(an_empty_config_is_refused),
		cmocka_unit_test(a_config_beyond_the_limit_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
