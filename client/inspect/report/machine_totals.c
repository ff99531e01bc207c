#include "client/inspect/report/machine_totals.h"

#include <stdlib.h>

#include "client/inspect/report/session_log.h"
#include "client/trace/trace_sequences.h"

static int
by_id(const void *a, const void *b)
{
	const struct machine_total *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* Adds up neighbours of one id; how many are left. */
static size_t
merge(struct machine_total *m, size_t n)
{
	size_t i, out = 0;

	for (i = 1; i < n; i++) {
		if (m[i].id != m[out].id) {
			m[++out] = m[i];
			continue;
		}
		m[out].packets += m[i].packets;
		m[out].bytes += m[i].bytes;
		m[out].sequences += m[i].sequences;
		m[out].gaps += m[i].gaps;
	}
	return n == 0 ? 0 : out + 1;
}

size_t
machine_totals_make(struct machine_total **out,
    const struct trace_sequences *sequences, const struct session_log *log)
{
	const struct trace_sequence *q;
	struct machine_total *m;
	const struct session_machine *known;
	size_t at = 0, n = log->machines.n;
	struct hash_cursor cursor;

	while (trace_sequences_next(sequences, &at) != NULL)
		n++;
	if ((*out = m = calloc(n + 1, sizeof(*m))) == NULL)
		return 0;
	for (at = n = 0; (q = trace_sequences_next(sequences, &at)) != NULL;)
		m[n++] = (struct machine_total){ .id = q->machine_id,
			.packets = q->packets, .bytes = q->bytes,
			.sequences = 1, .gaps = q->gaps };
	HASH_MAP_FOREACH(known, &log->machines, &cursor, link)
		m[n++].id = known->id;
	qsort(m, n, sizeof(*m), by_id);
	return merge(m, n);
}
