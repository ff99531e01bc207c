#include "client/show/session_json.h"

#include "client/show/sessions_text.h"
#include "protos/control.pb-c.h"
#include "protos/json_out.h"

typedef Tributary__SessionState session_state;
typedef Tributary__SessionState__Buffer session_buffer;

static void
json_buffer(struct json_out *j, const session_buffer *b)
{
	json_object(j, NULL);
	json_uint(j, "size", b->size);
	json_string(j, "name", b->name);
	if (b->has_used)
		json_uint(j, "used", b->used);
	if (b->has_discard)
		json_string(j, "fill_policy", b->discard ? "discard" : "ring");
	if (b->has_bytes_written)
		json_uint(j, "bytes_written", b->bytes_written);
	if (b->has_bytes_lost)
		json_uint(j, "bytes_lost", b->bytes_lost);
	if (b->has_chunks_lost)
		json_uint(j, "chunks_lost", b->chunks_lost);
	if (b->has_write_wrap_count)
		json_uint(j, "write_wrap_count", b->write_wrap_count);
	json_object_end(j);
}

static void
json_file(struct json_out *j, const session_state *s)
{
	if (!s->has_file_bytes)
		return;
	json_object(j, "file");
	json_uint(j, "bytes", s->file_bytes);
	json_string(j, "path", s->file);
	if (s->max_file_bytes != 0)
		json_uint(j, "max_bytes", s->max_file_bytes);
	json_string(j, "compression", s->compression);
	json_object_end(j);
}

/* 0 is a time that is not known. */
static void
json_times(struct json_out *j, const session_state *s)
{
	if (s->created_ns != 0)
		json_uint(j, "created_ns", s->created_ns);
	if (s->started_ns != 0)
		json_uint(j, "started_ns", s->started_ns);
	if (s->ended_ns != 0)
		json_uint(j, "ended_ns", s->ended_ns);
	if (s->planned_ms != 0)
		json_uint(j, "planned_ms", s->planned_ms);
	if (s->has_remaining_ms)
		json_uint(j, "remaining_ms", s->remaining_ms);
}

static void
json_sources(struct json_out *j, const session_state *s)
{
	if (s->has_all_machines) {
		json_strings(j, "machines", s->machines, s->n_machines);
		json_uint(j, "all_machines", s->all_machines);
	}
	if (s->has_producers)
		json_uint(j, "producers", s->producers);
	if (s->has_data_sources)
		json_uint(j, "data_sources", s->data_sources);
	if (s->has_sequences)
		json_uint(j, "sequences", s->sequences);
	if (s->has_packets)
		json_uint(j, "packets", s->packets);
	if (s->has_packets_lost)
		json_uint(j, "packets_lost", s->packets_lost);
	if (s->has_flushes_failed)
		json_uint(j, "flushes_failed", s->flushes_failed);
}

void
session_json(struct json_out *j, const char *key, const char *collector,
    const session_state *s)
{
	size_t i;

	json_object(j, key);
	json_string(j, "collector", collector);
	json_uint(j, "id", s->id);
	json_string(j, "name", s->unique_session_name);
	json_string(j, "state", session_state_text(s));
	json_string(j, "owner", s->owner);
	if (s->has_has_consumer)
		json_bool(j, "has_consumer", s->has_consumer);
	json_string(j, "detach_key", s->detach_key);
	json_times(j, s);
	json_array(j, "buffers");
	for (i = 0; i < s->n_buffers; i++)
		json_buffer(j, s->buffers[i]);
	json_array_end(j);
	json_file(j, s);
	json_sources(j, s);
	if (s->n_triggers != 0) {
		json_strings(j, "triggers", s->triggers, s->n_triggers);
		json_uint(j, "trigger_mode", s->trigger_mode);
		json_uint(j, "triggers_hit", s->triggers_hit);
	}
	if (s->has_filtered)
		json_bool(j, "filtered", s->filtered);
	if (s->cloned_from != 0)
		json_uint(j, "cloned_from", s->cloned_from);
	if (s->n_warnings != 0)
		json_strings(j, "warnings", s->warnings, s->n_warnings);
	json_string(j, "error", s->error);
	json_object_end(j);
}
