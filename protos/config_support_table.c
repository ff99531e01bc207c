/*
 * The rows.  docs/config.md has them too, and a test compares the two.
 */
#include "protos/config_support.h"

/* Versions that began to serve something. */
#define V1 "0.1.0"

#define FTRACE "data_sources.config.ftrace_config"
#define PROTOVM "data_sources.config.protovm_config"

#define SERVED(path, note)  { path, CONFIG_SERVED, V1, note }
#define CLIENT(path, note)  { path, CONFIG_CLIENT, V1, note }
#define ANDROID(path, note) { path, CONFIG_ANDROID, NULL, note }
#define PROBES(path, note)  { path, CONFIG_PROBES, V1, note }
#define IGNORED(path, note) { path, CONFIG_IGNORED, NULL, note }

static const struct config_support table[] = {
	SERVED("buffers", "up to limits.max_buffers_per_session; data sources "
	    "name them by index or name"),
	SERVED("buffers.size_kb", "at least 1; refused where limits or the "
	    "machine's free memory have no room"),
	SERVED("buffers.fill_policy", "RING_BUFFER where it is left "
	    "out; DISCARD with write_into_file gives a warning"),
	SERVED("buffers.transfer_on_clone", "CloneSession moves the buffer and "
	    "leaves an empty one"),
	SERVED("buffers.clear_before_clone", "CloneSession empties the buffer "
	    "before it flushes"),
	SERVED("buffers.name", "for target_buffer_name; each once"),
	SERVED("buffers.experimental_mode", "every buffer works as "
	    "TRACE_BUFFER_V2 does"),
	SERVED("data_sources", "up to 4096; each goes to every producer that "
	    "fits"),
	SERVED("data_sources.config", "reaches the producer whole, with fields "
	    "that the service fills in"),
	SERVED(PROTOVM, "runs the programs that the source's producers offer, "
	    "on packets that leave the buffer"),
	SERVED(PROTOVM ".memory_limit_kb", "of each program's state; 1024 where "
	    "it is left out, at most 65536"),
	PROBES(FTRACE, "of the data source linux.ftrace"),
	PROBES(FTRACE ".ftrace_events", "group/name, where both may be "
	    "patterns with * and ?; a name alone is of any group"),
	IGNORED(FTRACE ".atrace_categories", "atrace is a part of Android; "
	    "name the events in ftrace_events"),
	IGNORED(FTRACE ".atrace_apps", "atrace is a part of Android"),
	IGNORED(FTRACE ".atrace_categories_prefer_sdk", "atrace is a part of "
	    "Android"),
	IGNORED(FTRACE ".atrace_userspace_only", "atrace is a part of "
	    "Android"),
	PROBES(FTRACE ".buffer_size_kb", "of each processor; 2048 where it is "
	    "left out, 8192 from 7 GiB of memory on; the largest of all "
	    "sessions counts"),
	PROBES(FTRACE ".buffer_size_lower_bound", "the default, where that is "
	    "more"),
	PROBES(FTRACE ".drain_period_ms", "100 where it is left out, at most "
	    "60000; the shortest of all sessions counts"),
	PROBES(FTRACE ".drain_buffer_percent", "reads as soon as a buffer is "
	    "that full, besides; needs Linux 6.9"),
	PROBES(FTRACE ".compact_sched", "of sched_switch and sched_waking"),
	PROBES(FTRACE ".compact_sched.enabled", "true where it is left out"),
	PROBES(FTRACE ".print_filter", "of ftrace/print; the first rule that "
	    "fits decides, and where none does the event is recorded"),
	PROBES(FTRACE ".print_filter.rules", "in their order"),
	PROBES(FTRACE ".print_filter.rules.prefix", "the beginning of the "
	    "text"),
	PROBES(FTRACE ".print_filter.rules.atrace_msg", "TYPE, a bar, a pid, a "
	    "bar, and the prefix"),
	PROBES(FTRACE ".print_filter.rules.atrace_msg.type", "one letter as a "
	    "rule: B, E, C, S, F"),
	PROBES(FTRACE ".print_filter.rules.atrace_msg.prefix", "the beginning "
	    "of what follows the pid"),
	PROBES(FTRACE ".print_filter.rules.allow", "whether it is recorded"),
	PROBES(FTRACE ".symbolize_ksyms", "names of the kernel's functions, "
	    "from /proc/kallsyms"),
	PROBES(FTRACE ".ksyms_mem_policy", "whether the table of names is kept "
	    "from one session to the next"),
	PROBES(FTRACE ".throttle_rss_stat", "kmem/rss_stat_throttled instead "
	    "of kmem/rss_stat, where the kernel has it"),
	PROBES(FTRACE ".denser_generic_event_encoding", "with a descriptor for "
	    "each kind of event that has no message of its own"),
	PROBES(FTRACE ".disable_generic_events", "leaves out events without a "
	    "message of their own, and says which"),
	PROBES(FTRACE ".syscall_events", "names such as sys_read; switches "
	    "raw_syscalls on"),
	IGNORED(FTRACE ".enable_function_graph", "the tracer function_graph is "
	    "not served"),
	IGNORED(FTRACE ".function_filters", "the tracer function_graph is not "
	    "served"),
	IGNORED(FTRACE ".function_graph_roots", "the tracer function_graph is "
	    "not served"),
	IGNORED(FTRACE ".function_graph_max_depth", "the tracer function_graph "
	    "is not served"),
	IGNORED(FTRACE ".kprobe_events", "kprobes are not made for a session; "
	    "make one in tracefs, and name it in ftrace_events as "
	    "kprobes/NAME"),
	IGNORED(FTRACE ".kprobe_events.probe", "kprobes are not made for a "
	    "session"),
	IGNORED(FTRACE ".kprobe_events.type", "kprobes are not made for a "
	    "session"),
	PROBES(FTRACE ".preserve_ftrace_buffer", "events from before the "
	    "session are recorded, too"),
	PROBES(FTRACE ".use_monotonic_raw_clock", "CLOCK_MONOTONIC_RAW; where "
	    "sessions ask for different clocks the first one's counts"),
	PROBES(FTRACE ".instance_name", "a folder of tracefs/instances, made "
	    "where it is not there; hyp and hypervisor are refused"),
	IGNORED(FTRACE ".debug_ftrace_abi", "pages of the kernel that cannot "
	    "be read are counted, and not kept"),
	PROBES(FTRACE ".tids_to_trace", "threads whose events are recorded; "
	    "where sessions share a tracefs each has its own"),
	PROBES(FTRACE ".tracefs_options", "set while the session lasts"),
	PROBES(FTRACE ".tracefs_options.name", "as in tracefs/options"),
	PROBES(FTRACE ".tracefs_options.state", "STATE_ENABLED or "
	    "STATE_DISABLED"),
	PROBES(FTRACE ".tracing_cpumask", "hexadecimal; set while the session "
	    "lasts"),
	IGNORED(FTRACE ".initialize_ksyms_synchronously_for_testing", "it has "
	    "none in Perfetto, either"),
	SERVED("data_sources.producer_name_filter", "exact names; "
	    "ChangeTraceConfig may add some"),
	SERVED("data_sources.producer_name_regex_filter", "must fit the whole "
	    "name; ChangeTraceConfig may add some"),
	SERVED("data_sources.machine_name_filter", "names of machines, or "
	    "patterns with * and ?; host, or its own name, is the "
	    "collector's"),
	SERVED("builtin_data_sources", "the service's own packets"),
	SERVED("builtin_data_sources.disable_clock_snapshotting", "no "
	    "ClockSnapshot packets"),
	SERVED("builtin_data_sources.disable_trace_config", "no TraceConfig "
	    "packet"),
	SERVED("builtin_data_sources.disable_system_info", "no SystemInfo "
	    "packets, of remote machines neither"),
	SERVED("builtin_data_sources.disable_service_events", "no "
	    "TracingServiceEvent packets"),
	SERVED("builtin_data_sources.primary_trace_clock", "named in each "
	    "ClockSnapshot; BOOTTIME where it is left out"),
	SERVED("builtin_data_sources.snapshot_interval_ms", "10000 where it is "
	    "left out, at least 100"),
	SERVED("builtin_data_sources.prefer_suspend_clock_for_snapshot", "the "
	    "interval goes on while the machine sleeps"),
	SERVED("builtin_data_sources.disable_chunk_usage_histograms", "no "
	    "WriterStats in TraceStats"),
	SERVED("builtin_data_sources.disable_extension_descriptors", "there "
	    "are none to write here, set or not"),
	SERVED("builtin_data_sources.enable_concurrent_session_events",
	    "changes of other sessions meanwhile, as far as the owner may see "
	    "them"),
	SERVED("duration_ms", "up to limits.max_trace_duration_ms"),
	SERVED("prefer_suspend_clock_for_duration", "the duration goes on "
	    "while the machine sleeps"),
	SERVED("enable_extra_guardrails", "at most 24 h and 128 MiB, no "
	    "deferred_start, five minutes between two of one name"),
	SERVED("lockdown_mode", "by an admin: only producers of the service's "
	    "own user, until it is cleared"),
	SERVED("producers", "shared memory by the producer's name"),
	SERVED("producers.producer_name", "exact"),
	SERVED("producers.shm_size_kb", "wins over the producer's hint; a "
	    "value that makes no sense gives the default"),
	SERVED("producers.page_size_kb", "likewise"),
	ANDROID("statsd_metadata", "of Android's statsd"),
	ANDROID("statsd_metadata.triggering_alert_id", "likewise"),
	ANDROID("statsd_metadata.triggering_config_uid", "likewise"),
	ANDROID("statsd_metadata.triggering_config_id", "likewise"),
	ANDROID("statsd_metadata.triggering_subscription_id", "likewise"),
	SERVED("write_into_file", "into the descriptor, or output_path"),
	SERVED("output_path", "below the setting trace_dir; a file that is "
	    "there already is not touched"),
	SERVED("file_write_period_ms", "5000 where it is left out, at least "
	    "100"),
	SERVED("max_file_size_bytes", "ends the session before the packet that "
	    "would pass it; statistics are its last packet"),
	SERVED("guardrail_overrides", "for enable_extra_guardrails"),
	ANDROID("guardrail_overrides.max_upload_per_day_bytes", "of uploads"),
	SERVED("guardrail_overrides.max_tracing_buffer_size_kb", "where it is "
	    "more than the guardrail's 128 MiB"),
	SERVED("deferred_start", "waits for StartTracing"),
	SERVED("flush_period_ms", "none where it is left out, but for a "
	    "session that writes a file (below)"),
	SERVED("flush_timeout_ms", "5000 where it is left out; a producer that "
	    "owes an answer for as long is not waited for again at the end"),
	SERVED("data_source_stop_timeout_ms", "5000 where it is left out"),
	ANDROID("notify_traceur", "of Android's System Tracing app"),
	SERVED("bugreport_score", "over 0: every consumer may see and clone "
	    "the session; the highest is cloned for bug reports"),
	SERVED("bugreport_filename", "shown by QueryServiceState; of "
	    "letters, digits, dashes, underscores and dots"),
	SERVED("trigger_config", "not together with duration_ms"),
	SERVED("trigger_config.trigger_mode", "START_TRACING, STOP_TRACING, "
	    "CLONE_SNAPSHOT"),
	SERVED("trigger_config.use_clone_snapshot_if_available",
	    "STOP_TRACING becomes CLONE_SNAPSHOT"),
	SERVED("trigger_config.triggers", "up to 1024, each name once"),
	SERVED("trigger_config.triggers.name", "exact"),
	SERVED("trigger_config.triggers.producer_name_regex", "names of the "
	    "producers that may pull it; must match the whole name"),
	SERVED("trigger_config.triggers.stop_delay_ms", "until the stop, or "
	    "the clone"),
	SERVED("trigger_config.triggers.max_per_24_h", "of all sessions with "
	    "this trigger; more than 4096 count as 4096"),
	SERVED("trigger_config.triggers.skip_probability", "0 to 1"),
	SERVED("trigger_config.trigger_timeout_ms", "required; up to "
	    "limits.max_trace_duration_ms"),
	CLIENT("activate_triggers", "the command pulls them instead of "
	    "recording"),
	SERVED("incremental_state_config", "of data sources that clear it"),
	SERVED("incremental_state_config.clear_period_ms", "never where it is "
	    "left out"),
	ANDROID("allow_user_build_tracing", "of Android's user builds"),
	SERVED("unique_session_name", "one running session of a name; the "
	    "operator's handle"),
	SERVED("compression_type", "DEFLATE; compression wins over it"),
	SERVED("compression", "packets in compressed batches, in files and "
	    "for ReadBuffers"),
	SERVED("compression.deflate", "zlib"),
	SERVED("compression.zstd", "wins over deflate"),
	SERVED("compression.zstd.level", "-20 to 19, beyond them the nearest; 3 "
	    "where it is left out"),
	ANDROID("incident_report_config", "of Android's incidentd"),
	ANDROID("incident_report_config.destination_package", "likewise"),
	ANDROID("incident_report_config.destination_class", "likewise"),
	ANDROID("incident_report_config.privacy_level", "likewise"),
	ANDROID("incident_report_config.skip_incidentd", "likewise"),
	ANDROID("incident_report_config.skip_dropbox", "likewise"),
	ANDROID("statsd_logging", "of Android's statsd"),
	SERVED("trace_uuid_msb", "in TraceUuid; random where both are 0"),
	SERVED("trace_uuid_lsb", "likewise"),
	SERVED("trace_filter", "a filter that does not load refuses the "
	    "session"),
	SERVED("trace_filter.bytecode", "where there is no bytecode_v2"),
	SERVED("trace_filter.bytecode_v2", "with filtered strings"),
	SERVED("trace_filter.string_filter_chain", "in its order"),
	SERVED("trace_filter.string_filter_chain.rules", "up to 256; the "
	    "first that fits decides"),
	SERVED("trace_filter.string_filter_chain.rules.policy", "each of the "
	    "five"),
	SERVED("trace_filter.string_filter_chain.rules.regex_pattern",
	    "within the limits of matching"),
	SERVED("trace_filter.string_filter_chain.rules."
	    "atrace_payload_starts_with", "for the ATRACE policies"),
	SERVED("trace_filter.string_filter_chain.rules.name", "a rule of the "
	    "same name in string_filter_chain_v54 takes its place"),
	SERVED("trace_filter.string_filter_chain.rules.semantic_type", "of the "
	    "strings it looks at; none: of those without a type"),
	SERVED("trace_filter.bytecode_overlay_v54", "changes bytecode_v2"),
	SERVED("trace_filter.string_filter_chain_v54", "adds rules, or changes "
	    "rules of the same name"),
	SERVED("trace_filter.string_filter_chain_v54.rules", "likewise"),
	SERVED("trace_filter.string_filter_chain_v54.rules.policy",
	    "likewise"),
	SERVED("trace_filter.string_filter_chain_v54.rules.regex_pattern",
	    "likewise"),
	SERVED("trace_filter.string_filter_chain_v54.rules."
	    "atrace_payload_starts_with", "likewise"),
	SERVED("trace_filter.string_filter_chain_v54.rules.name", "of the rule "
	    "that it takes the place of"),
	SERVED("trace_filter.string_filter_chain_v54.rules.semantic_type",
	    "likewise"),
	ANDROID("android_report_config", "of Android's reporter service"),
	ANDROID("android_report_config.reporter_service_package", "likewise"),
	ANDROID("android_report_config.reporter_service_class", "likewise"),
	ANDROID("android_report_config.skip_report", "likewise"),
	ANDROID("android_report_config.use_pipe_in_framework_for_testing",
	    "likewise"),
	CLIENT("cmd_trace_start_delay", "the command waits before it starts"),
	CLIENT("cmd_trace_start_delay.min_delay_ms", "at least"),
	CLIENT("cmd_trace_start_delay.max_delay_ms", "at most; chance decides"),
	SERVED("session_semaphores", "up to 64"),
	SERVED("session_semaphores.name", "exact"),
	SERVED("session_semaphores.max_other_session_count", "the smallest of "
	    "all holders counts"),
	SERVED("priority_boost", "of the service while the session exists; "
	    "a warning where the system refuses it"),
	SERVED("priority_boost.policy", "SCHED_OTHER or SCHED_FIFO; the "
	    "highest of all sessions counts"),
	SERVED("priority_boost.priority", "0 to 20 (how much nicer), or 1 to "
	    "99"),
	SERVED("exclusive_prio", "runs alone, and ends sessions of lower "
	    "priority: other owners' sessions only for an admin"),
	SERVED("write_flush_mode", "whether producers are flushed before each "
	    "write of the file"),
	SERVED("fflush_post_write", "fdatasync after each write of the file"),
	SERVED("trace_all_machines", "data sources without "
	    "machine_name_filter start on every machine"),
	SERVED("trace_attributes", "a TraceAttributes packet"),
	SERVED("trace_attributes.attribute", "likewise"),
	SERVED("trace_attributes.attribute.key", "likewise"),
	SERVED("trace_attributes.attribute.long_value", "likewise"),
	SERVED("trace_attributes.attribute.string_value", "likewise"),
	SERVED("tributary_segments", "output_path is a folder then, which is "
	    "created, else -o of `tributary record`; Perfetto's service skips "
	    "it"),
	SERVED("tributary_segments.every_ms", "1000 (a second) to 31 days; at "
	    "multiples of it since 1970, UTC"),
	SERVED("tributary_segments.max_bytes", "of a file as it is on the disk, "
	    "65536 or more; cut soon after, with output_path"),
	SERVED("tributary_segments.at_trigger", "exact names, up to 1024; any "
	    "producer may pull them"),
	SERVED("tributary_segments.split", "with output_path"),
	SERVED("tributary_segments.file_pattern", "with output_path, which is a "
	    "folder then; a name that is taken gets a number"),
	SERVED("tributary_segments.recording", "in the names of files, and in "
	    "each segment"),
};

const struct config_support *
config_support_table(size_t *n)
{
	*n = sizeof(table) / sizeof(table[0]);
	return table;
}
