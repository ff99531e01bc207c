#include "tests/fuzz/stage/rogue_config.h"

#include <stdlib.h>
#include <string.h>

#include "protos/text_parse.h"
#include "protos/trace_config.pb-c.h"
#include "tests/fuzz/stage/script.h"
#include "transport/wire/pb_writer.h"

#define SOURCES "data_sources { config { name: \"a\" } } "
#define SHORT   "flush_timeout_ms: 1 data_source_stop_timeout_ms: 1 "

/* Another collector may have the same one. */
#define SHARED  "trace_all_machines: true trace_uuid_lsb: 3 "

static const char *const bases[] = {
	"buffers { size_kb: 16 } " SOURCES SHORT,
	"buffers { size_kb: 16 } " SOURCES SHORT SHARED,
	"buffers { size_kb: 8 } buffers { size_kb: 8 fill_policy: DISCARD } "
	    SOURCES "data_sources { config { name: \"b\" target_buffer: 1 } } "
	    SHORT "bugreport_score: 3 unique_session_name: \"n\"",
	"buffers { size_kb: 16 } " SOURCES SHORT "deferred_start: true "
	    "duration_ms: 1",
	"buffers { size_kb: 16 } " SOURCES SHORT "trigger_config { "
	    "trigger_mode: START_TRACING trigger_timeout_ms: 50 triggers { "
	    "name: \"t\" stop_delay_ms: 1 } }",
	"buffers { size_kb: 16 } " SOURCES SHORT "trigger_config { "
	    "trigger_mode: STOP_TRACING trigger_timeout_ms: 50 triggers { "
	    "name: \"t\" max_per_24_h: 1 } triggers { name: \"u\" "
	    "producer_name_regex: \"p.*\" } }",
	"buffers { size_kb: 16 transfer_on_clone: true } " SOURCES SHORT
	    "bugreport_score: 1 trigger_config { trigger_mode: CLONE_SNAPSHOT "
	    "trigger_timeout_ms: 50 triggers { name: \"t\" } }",
	"buffers { size_kb: 16 clear_before_clone: true } data_sources { "
	    "config { name: \"a\" } producer_name_filter: \"p\" } "
	    "data_sources { config { name: \"c\" } } " SHORT
	    SHARED "incremental_state_config { clear_period_ms: 1 } "
	    "flush_period_ms: 1 exclusive_prio: 1 "
	    "unique_session_name: \"n\"",
	"buffers { size_kb: 4 } " SHORT "exclusive_prio: 2 "
	    "session_semaphores { name: \"s\" }",
	/* Of files there is a descriptor, or not. */
	"buffers { size_kb: 16 } " SOURCES SHORT "write_into_file: true",
	"buffers { size_kb: 8 } " SOURCES SHORT "write_into_file: true "
	    "file_write_period_ms: 100 max_file_size_bytes: 20000 "
	    "write_flush_mode: WRITE_FLUSH_ENABLED " SHARED,
};

static const char *const changes[] = {
	"",
	"duration_ms: 1",
	"data_sources { config { name: \"c\" target_buffer: 3 } }",
	"data_sources { config { name: \"b\" } producer_name_regex_filter: "
	    "\"[a-z\" machine_name_filter: \"x\" }",
	"data_sources { config { name: \"quiet0\" } }",
	"buffers { size_kb: 4294967295 }",
	"buffers { size_kb: 8 } buffers { size_kb: 8 } buffers { size_kb: 8 } "
	    "buffers { size_kb: 8 } buffers { size_kb: 8 }",
	"compression { zstd { level: 99 } }",
	"compression_type: COMPRESSION_TYPE_DEFLATE",
	"unique_session_name: \"n\" bugreport_score: 7",
	"exclusive_prio: 9",
	"session_semaphores { name: \"s\" max_other_session_count: 1 }",
	"trace_filter { bytecode_v2: \"\\001\\002\\003\" }",
	"trace_filter { string_filter_chain { rules { policy: "
	    "SFP_MATCH_BREAK regex_pattern: \"((a\" } } }",
	"output_path: \"/tmp/../x\" write_into_file: true",
	"deferred_start: true",
	"lockdown_mode: LOCKDOWN_SET",
	"builtin_data_sources { disable_clock_snapshotting: true "
	    "disable_trace_config: true snapshot_interval_ms: 1 }",
	"builtin_data_sources { enable_concurrent_session_events: true "
	    "primary_trace_clock: BUILTIN_CLOCK_REALTIME }",
	"enable_extra_guardrails: true",
	"trigger_config { trigger_mode: STOP_TRACING triggers { name: \"t\" "
	    "producer_name_regex: \"(.*)*\" skip_probability: 0.5 } "
	    "trigger_timeout_ms: 1 }",
	"flush_period_ms: 1 incremental_state_config { clear_period_ms: 1 }",
	"priority_boost { policy: POLICY_SCHED_FIFO priority: 7 }",
	"activate_triggers: \"t\" activate_triggers: \"u\"",
	"producers { producer_name: \"p\" shm_size_kb: 4 page_size_kb: 4 }",
	"cmd_trace_start_delay { min_delay_ms: 1 max_delay_ms: 2 } "
	    "trace_uuid_msb: 1 trace_uuid_lsb: 2",
};

#define N_BASES   (sizeof(bases) / sizeof(bases[0]))
#define N_CHANGES (sizeof(changes) / sizeof(changes[0]))

struct encoded {
	uint8_t *bytes;
	size_t len;
};

static void
encode(struct encoded *out, const char *text)
{
	if (text_parse(&perfetto__protos__trace_config__descriptor, text,
	    strlen(text), &out->bytes, &out->len, NULL) != 0)
		abort();
}

void
rogue_config_put(struct pb_writer *out, uint32_t number, const uint8_t how[6])
{
	static struct encoded base[N_BASES], change[N_CHANGES];
	size_t mark, i;

	if (base[0].bytes == NULL) {
		for (i = 0; i < N_BASES; i++)
			encode(&base[i], bases[i]);
		for (i = 0; i < N_CHANGES; i++)
			encode(&change[i], changes[i]);
	}
	mark = pb_nest_begin(out, number);
	i = how[0] % N_BASES;
	pb_put_raw(out, base[i].bytes, base[i].len);
	for (i = 1; i < 3; i++)
		if (how[i] >= 128 && change[how[i] % N_CHANGES].len > 0)
			pb_put_raw(out, change[how[i] % N_CHANGES].bytes,
			    change[how[i] % N_CHANGES].len);
	if (how[3] >= 240) /* bytes that are no config, or another one */
		pb_put_raw(out, how + 3, 3);
	pb_nest_end(out, mark);
}
