#include "service/limits/refusals.h"

#include <stdbool.h>
#include <string.h>

#include "transport/loop/loop.h"

#define OTHER (REFUSALS - 1)

static const char *const names[REFUSALS] = {
	"LimitNOFILE",
	"limits.max_buffer_kb_per_consumer",
	"limits.max_buffers_per_session",
	"limits.max_connection_memory_kb",
	"limits.max_connection_memory_per_peer_kb",
	"limits.max_connections",
	"limits.max_connections_per_peer",
	"limits.max_consumers_per_uid",
	"limits.max_data_sources",
	"limits.max_data_sources_per_peer",
	"limits.max_data_sources_per_producer",
	"limits.max_handshakes",
	"limits.max_handshakes_per_peer",
	"limits.max_name_bytes",
	"limits.max_producers",
	"limits.max_sessions",
	"limits.max_sessions_per_uid",
	"limits.max_total_buffer_kb",
	"limits.max_trace_duration_ms",
	"limits.max_writers_per_producer",
	"limits.min_free_memory_kb",
	"link.max_links",
	"link.max_links_per_peer",
	"link.max_producers_per_link",
	"quota.each_machine.max_connections",
	"quota.each_machine.max_data_sources",
	"quota.each_machine.max_producers",
	"quota.each_producer.max_data_sources",
	[OTHER] = "other",
};

static bool
continues_name(char c)
{
	return (c >= 'a' && c <= 'z') || c == '_' || c == '.';
}

/* The last place where the sentence has the whole name; NULL: none. */
static const char *
find_last(const char *sentence, const char *name)
{
	const char *at = sentence, *last = NULL;
	size_t len = strlen(name);

	for (; (at = strstr(at, name)) != NULL; at += len)
		if (!continues_name(at[len]) || (at[len] == '.' &&
		    !continues_name(at[len + 1])))
			last = at;
	return last;
}

void
refusals_count(struct refusals *r, const char *sentence)
{
	const char *at, *last = NULL;
	size_t i, which = OTHER;

	for (i = 0; i < OTHER && names[i] != NULL; i++) {
		at = find_last(sentence, names[i]);
		if (at == NULL || (last != NULL && at < last))
			continue;
		last = at;
		which = i;
	}
	r->n[which]++;
	r->last_ms[which] = loop_now_ms();
}

const char *
refusals_name(size_t i)
{
	return i < REFUSALS ? names[i] : NULL;
}
