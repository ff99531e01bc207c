#include "client/trace/ftrace_rings.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/trace/ftrace_losses.h"
#include "client/trace/trace_losses.h"
#include "client/trace/trace_sequences.h"
#include "protos/fields.h"
#include "transport/wire/pb_reader.h"

static const char source[] = "linux.ftrace";

static void
note(struct ftrace_rings *r, const struct pb_field *name)
{
	if (name->len >= sizeof(r->name)) {
		r->told = FTRACE_RINGS_SEVERAL;
	} else if (r->told == FTRACE_RINGS_UNKNOWN) {
		memcpy(r->name, name->data, name->len);
		r->name[name->len] = '\0';
		r->told = FTRACE_RINGS_ONE;
	} else if (strlen(r->name) != name->len ||
	    memcmp(r->name, name->data, name->len) != 0) {
		r->told = FTRACE_RINGS_SEVERAL;
	}
}

void
ftrace_rings_take(struct ftrace_rings *r, const struct pb_field *config)
{
	struct pb_field f, g, name = { .data = (const uint8_t *)"", .len = 0 };
	struct pb_reader outer, inner;
	bool is_ftrace = false;

	PB_FOREACH(&f, &outer, config->data, config->len) {
		if (f.wire != PB_BYTES)
			continue;
		if (f.number == DataSourceConfig_name)
			is_ftrace = f.len == sizeof(source) - 1 &&
			    memcmp(f.data, source, f.len) == 0;
		if (f.number != DataSourceConfig_ftrace_config)
			continue;
		PB_FOREACH(&g, &inner, f.data, f.len) {
			if (g.number == FtraceConfig_instance_name &&
			    g.wire == PB_BYTES)
				name = g;
		}
	}
	if (is_ftrace)
		note(r, &name);
}

/* Sequences of one connection of a producer are beside each other. */
static int
by_producer(const void *a, const void *b)
{
	const struct trace_sequence *x = *(const struct trace_sequence *const *)
	    a, *y = *(const struct trace_sequence *const *)b;

	if (x->machine_id != y->machine_id)
		return x->machine_id < y->machine_id ? -1 : 1;
	if (x->producer_id != y->producer_id)
		return x->producer_id < y->producer_id ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* Whether the trace tells that both read the same buffer. */
static bool
share(const struct ftrace_rings *r, const struct trace_sequence *a,
    const struct trace_sequence *b)
{
	return r->told == FTRACE_RINGS_ONE && a->producer_id != 0 &&
	    a->producer_id == b->producer_id && a->machine_id == b->machine_id;
}

static bool
has_losses(const struct trace_sequence *q)
{
	return ftrace_losses_list(&q->ftrace, q->machine_id, NULL, 0) != 0;
}

/* Allocates the sequences that lost something; NULL: no memory, or none did. */
static const struct trace_sequence **
sorted(const struct trace_sequences *t, size_t *n)
{
	const struct trace_sequence **all, *q;
	size_t at = 0;

	*n = 0;
	while ((q = trace_sequences_next(t, &at)) != NULL)
		*n += has_losses(q);
	if (*n == 0 || (all = calloc(*n, sizeof(*all))) == NULL)
		return NULL;
	*n = at = 0;
	while ((q = trace_sequences_next(t, &at)) != NULL)
		if (has_losses(q))
			all[(*n)++] = q;
	qsort(all, *n, sizeof(*all), by_producer);
	return all;
}

static size_t
list_each(const struct trace_sequences *t, struct trace_loss *out, size_t max)
{
	const struct trace_sequence *q;
	size_t at = 0, n = 0;

	while ((q = trace_sequences_next(t, &at)) != NULL)
		n += ftrace_losses_list(&q->ftrace, q->machine_id,
		    n < max ? out + n : NULL, n < max ? max - n : 0);
	return n;
}

size_t
ftrace_rings_list(const struct ftrace_rings *r,
    const struct trace_sequences *t, struct trace_loss *out, size_t max)
{
	const struct trace_sequence **all;
	size_t i, end, n_all, n = 0;

	if ((all = sorted(t, &n_all)) == NULL)
		return list_each(t, out, max);
	for (i = 0; i < n_all; i = end) {
		struct ftrace_losses joined = { .told_begin = true };

		for (end = i; end < n_all && (end == i ||
		    share(r, all[i], all[end])); end++)
			ftrace_losses_join(&joined, &all[end]->ftrace);
		n += ftrace_losses_list(&joined, all[i]->machine_id,
		    n < max ? out + n : NULL, n < max ? max - n : 0);
		ftrace_losses_done(&joined);
	}
	free(all);
	return n;
}
