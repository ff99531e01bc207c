#include "tests/oom/job_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/trace_config_load.h"
#include "tests/oom/traces.h"
#include "tests/unit/service/filter/assembler.h"
#include "transport/wire/pb_writer.h"

/* The secret, not in its words: the config is in the trace. */
#define SECRET_PATTERN "x*(hid+en)x*"

#define EVERYBODY                                                              \
	"buffers { size_kb: 64 } trace_all_machines: true "                    \
	"data_sources { config { name: 't' } } "
#define FILE_ONLY_AT_END "write_into_file: true file_write_period_ms: 604800 "
#define TRIGGER(mode, delay)                                                   \
	"trigger_config { trigger_mode: " mode " trigger_timeout_ms: 600000 "  \
	"triggers { name: '" JOB_TRIGGER "' producer_name_regex: '^p+$' "      \
	"stop_delay_ms: " delay " } } "

static const char *const texts[] = {
	[JOB_PLAIN] = EVERYBODY FILE_ONLY_AT_END,
	[JOB_STARTED] = EVERYBODY FILE_ONLY_AT_END
	    "compression { zstd { level: 1 } } "
	    TRIGGER("START_TRACING", "600000"),
	[JOB_STOPPED] = EVERYBODY
	    "compression_type: COMPRESSION_TYPE_DEFLATE "
	    TRIGGER("STOP_TRACING", "1"),
	[JOB_CLONED] = EVERYBODY
	    "compression { zstd { level: 1 } } "
	    "unique_session_name: '" JOB_SESSION "' "
	    TRIGGER("CLONE_SNAPSHOT", "0"),
};

bool
job_has_filter(enum job_kind kind)
{
	return kind != JOB_PLAIN;
}

/* Of packets, everything; of for_testing only `str`, without the secret. */
static void
put_filter(struct pb_writer *w)
{
	static struct assembler a;
	struct pb_writer rule, chain, filter;

	asm_trace(&a);
	asm_range(&a, 1, 899);
	asm_nested(&a, 900, 2);
	asm_end(&a);
	asm_string(&a, 1);
	asm_end(&a);
	asm_done(&a, 0);
	pb_writer_init(&rule);
	pb_put_uint(&rule, 1, 1); /* policy: SFP_MATCH_REDACT_GROUPS */
	pb_put_bytes(&rule, 2, SECRET_PATTERN, strlen(SECRET_PATTERN));
	pb_writer_init(&chain);
	pb_put_bytes(&chain, 1, rule.data, rule.len);
	pb_writer_init(&filter);
	pb_put_bytes(&filter, 2, a.bytes, a.len); /* bytecode_v2 */
	pb_put_bytes(&filter, 3, chain.data, chain.len);
	pb_put_bytes(w, 33, filter.data, filter.len); /* trace_filter */
	pb_writer_done(&filter);
	pb_writer_done(&chain);
	pb_writer_done(&rule);
}

uint8_t *
job_config(enum job_kind kind, size_t *len)
{
	const struct trace_config_input in = { (const uint8_t *)texts[kind],
	    strlen(texts[kind]), "config" };
	struct pb_writer w;
	uint8_t *config, *whole;
	size_t n;
	char err[TRACE_CONFIG_LOAD_ERROR_SIZE];

	if (trace_config_load(&in, &config, &n, err, sizeof(err)) < 0)
		fail_msg("%s", err);
	pb_writer_init(&w);
	if (job_has_filter(kind))
		put_filter(&w);
	whole = malloc(n + w.len);
	assert_non_null(whole);
	memcpy(whole, config, n);
	if (w.len > 0)
		memcpy(whole + n, w.data, w.len);
	*len = n + w.len;
	pb_writer_done(&w);
	free(config);
	return whole;
}
