/*
 * Random scripts on the buffer and its model.  A script that fails is shrunk
 * and printed; put it into tests/fuzz/trace_buffer/corpus to have it run for good.
 *
 * usage: test_tb_model [SECONDS [SEED]]    SEED is of the first script
 *
 * Without SECONDS it is the same scripts each time, those of $TRIBUTARY_SEED, or
 * 1: SCRIPTS of them, or as many as $TB_MODEL_SECONDS are enough for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "tests/unit/transport/buffer/tb_script.h"

#define SCRIPTS 6000u
/* From the first script of one $TRIBUTARY_SEED to that of the next. */
#define SEED_SPAN 1000000u
#define OPS_MAX 6000u
#define SCRIPT_MAX ((OPS_MAX + 1) * SCRIPT_RECORD)

static double seconds = 12;
static uint64_t seed = SEED_SPAN, most = SCRIPTS;

static uint64_t
next_random(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t
make_script(uint64_t script_seed, uint8_t *bytes)
{
	uint64_t state = script_seed, r;
	size_t ops = 20 + next_random(&state) % 400, i;
	bool churn = script_seed % 64 == 7;

	if (churn)
		ops = OPS_MAX;
	for (i = 0; i < (ops + 1) * SCRIPT_RECORD; i += SCRIPT_RECORD) {
		r = next_random(&state);
		memcpy(bytes + i, &r, SCRIPT_RECORD);
	}
	bytes[5] = churn ? SCRIPT_CHURN : 0;
	return i;
}

/* ---- Shrinking ---- */

static bool
fails(const uint8_t *bytes, size_t len)
{
	struct script_result r;

	return !script_run(bytes, len, &r);
}

/* Leaves out operations, in ever smaller pieces, as long as it still fails. */
static size_t
drop_ops(uint8_t *bytes, size_t len)
{
	static uint8_t copy[SCRIPT_MAX];
	size_t piece, at;

	for (piece = len / 2 / SCRIPT_RECORD * SCRIPT_RECORD;
	    piece >= SCRIPT_RECORD;
	    piece = piece / 2 / SCRIPT_RECORD * SCRIPT_RECORD) {
		for (at = SCRIPT_RECORD; at + piece <= len;) {
			memcpy(copy, bytes, at);
			memcpy(copy + at, bytes + at + piece,
			    len - at - piece);
			if (fails(copy, len - piece)) {
				len -= piece;
				memcpy(bytes, copy, len);
			} else {
				at += piece;
			}
		}
	}
	return len;
}

static void
zero_bytes(uint8_t *bytes, size_t len)
{
	static const uint8_t masks[] = {0x00, 0x0f, 0x7f};
	size_t i, j;
	uint8_t was;

	for (i = 0; i < len; i++)
		for (j = 0; j < sizeof(masks); j++) {
			was = bytes[i];
			bytes[i] &= masks[j];
			if (bytes[i] != was && fails(bytes, len))
				break;
			bytes[i] = was;
		}
}

static void
report(uint64_t script_seed, uint8_t *bytes, size_t len)
{
	struct script_result r;
	size_t i, before;

	script_run(bytes, len, &r);
	fprintf(stderr, "seed %llu, operation %zu: %s\n",
	    (unsigned long long)script_seed, r.ops, r.what);
	len = (r.ops + 1) * SCRIPT_RECORD;
	do {
		before = len;
		len = drop_ops(bytes, len);
		zero_bytes(bytes, len);
	} while (len < before);
	script_run(bytes, len, &r);
	fprintf(stderr, "shrunk to %zu operations: %s\n", r.ops, r.what);
	for (i = 0; i < len; i++)
		fprintf(stderr, "%s%02x", i % SCRIPT_RECORD == 0 ? "\n" : " ",
		    bytes[i]);
	fprintf(stderr, "\n");
}

static void
buffer_and_model_agree_on_random_scripts(void **state)
{
	static uint8_t bytes[SCRIPT_MAX];
	double end = now() + seconds;
	struct script_result r;
	uint64_t scripts = 0, ops = 0;
	size_t len;

	(void)state;
	printf("first seed %llu\n", (unsigned long long)seed);
	do {
		len = make_script(seed + scripts, bytes);
		if (!script_run(bytes, len, &r)) {
			report(seed + scripts, bytes, len);
			fail();
		}
		scripts++;
		ops += r.ops;
	} while (scripts < most && now() < end);
	printf("%llu scripts, %llu operations\n", (unsigned long long)scripts,
	    (unsigned long long)ops);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buffer_and_model_agree_on_random_scripts),
	};
	const char *s = getenv("TB_MODEL_SECONDS");

	if (s != NULL)
		seconds = atof(s);
	if ((s = getenv("TRIBUTARY_SEED")) != NULL)
		seed = strtoull(s, NULL, 10) * SEED_SPAN;
	if (argc > 1) {
		seconds = atof(argv[1]);
		most = UINT64_MAX;
	}
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
