/*
 * Configs with random damage: whatever the text has become, the parser
 * accepts a message that reads back, or names a place.  What is checked of
 * each is in the fuzz target, which this links.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/fuzz/texts/texts.h"

#define ROUNDS   20000
#define MAX_TEXT 2048

/* Complete, and rich in syntax. */
static const char config[] =
    "# A config.\n"
    "buffers: { size_kb: 0x800 fill_policy: RING_BUFFER name: \"a\\tb\" };\n"
    "data_sources [{ config < name: 'linux.' \"ftrace\"\n"
    "  ftrace_config { ftrace_events: [\"sched/*\", \"p\\x6f\"]\n"
    "    print_filter { rules { prefix: \"\\u00e9\" allow: true } } } > }]\n"
    "data_sources { config { name: \"linux.perf\" perf_event_config {\n"
    "  timebase { frequency: 99 counter: SW_CPU_CLOCK }\n"
    "  callstack_sampling { scope { target_pid: -1, target_pid: 010 } } }\n"
    "  } producer_name_filter: [] }\n"
    "duration_ms: 10000, write_into_file: t\n"
    "trigger_config { triggers { skip_probability: -2.5e-1f } }\n"
    "trace_uuid_msb: -9223372036854775808 # end\n";

/* Inserted whole: bytes alone seldom make a new word. */
static const char *const pieces[] = { "{", "}", "<", ">", "[", "]", ":", ",",
    ";", "-", "\"", "'", "\\", "#", "\n", "\t", "//", "0x", "1e999", "inf",
    "nan", "true", "duration_ms", "buffers", "config", "name: 'x'",
    "size_kb: 1", "\\ud800", "\xc3\xa9", "\xff", "\x1b", "qnx_config{}",
    "18446744073709551616", "DISCARD" };

static uint64_t
next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* One random change of text[0..len); the new length. */
static size_t
mutate(uint8_t *text, size_t len, uint64_t *seed)
{
	size_t at = 1 + next(seed) % (len - 1);
	size_t n = next(seed) % 16 + 1;
	const char *piece;

	if (n > len - at)
		n = len - at;
	switch (next(seed) % 4) {
	case 0: /* a byte becomes another */
		text[at] = (uint8_t)next(seed);
		return len;
	case 1: /* some bytes go */
		if (len - n < 2)
			return len;
		memmove(text + at, text + at + n, len - at - n);
		return len - n;
	case 2: /* some are there twice */
		if (len + n > MAX_TEXT)
			return len;
		memmove(text + at + n, text + at, len - at);
		return len + n;
	default:
		piece = pieces[next(seed) % (sizeof(pieces) /
		    sizeof(pieces[0]))];
		n = strlen(piece);
		if (len + n > MAX_TEXT)
			return len;
		memmove(text + at + n, text + at, len - at);
		memcpy(text + at, piece, n);
		return len + n;
	}
}

static void
damaged_configs_are_read_back_or_placed(void **state)
{
	uint64_t seed = UINT64_C(0x9e3779b97f4a7c15);
	uint8_t text[MAX_TEXT], *copy;
	size_t len, changes, i;

	for (i = 0; i < ROUNDS; i++) {
		len = sizeof(config) - 1;
		memcpy(text, config, len);
		for (changes = i % 5; changes > 0; changes--)
			len = mutate(text, len, &seed);
		/* A block of its own, so that ASan sees a byte too far. */
		copy = malloc(len);
		assert_non_null(copy);
		memcpy(copy, text, len);
		fuzz_text_parse(copy, len);
		free(copy);
	}
}

static void
configs_cut_anywhere_are_read_back_or_placed(void **state)
{
	uint8_t *copy;
	size_t len;

	for (len = 1; len < sizeof(config); len++) {
		copy = malloc(len);
		assert_non_null(copy);
		memcpy(copy, config, len);
		fuzz_text_parse(copy, len);
		free(copy);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(damaged_configs_are_read_back_or_placed),
		cmocka_unit_test(configs_cut_anywhere_are_read_back_or_placed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
