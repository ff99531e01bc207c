/*
 * tb_script: runs a string of operations on a trace buffer and on its model,
 * and compares all that can be seen after each.
 *
 * Any bytes are a script: a header of SCRIPT_RECORD bytes, then one operation
 * per SCRIPT_RECORD bytes.  So random tests, shrinking, the fuzzer and its
 * corpus share one language.
 */
#ifndef TESTS_UNIT_TRANSPORT_BUFFER_TB_SCRIPT_H
#define TESTS_UNIT_TRANSPORT_BUFFER_TB_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCRIPT_RECORD 8u

/* In the header's byte 5: sequences come and go all the time. */
#define SCRIPT_CHURN 1u

struct script_result {
	size_t ops;      /* run, the failing one included */
	char what[400];  /* why it failed; empty: all was the same */
};

/* Returns true when buffer and model agree all the way. */
bool script_run(const uint8_t *bytes, size_t len, struct script_result *r);

#endif /* TESTS_UNIT_TRANSPORT_BUFFER_TB_SCRIPT_H */
