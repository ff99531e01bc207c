#include "client/show/sources_text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "client/show/source_details.h"
#include "client/text/text_cell.h"
#include "protos/json_out.h"
#include "protos/service_state.pb-c.h"
#include "transport/base/glob.h"
#include "transport/base/machine_word.h"

typedef Perfetto__Protos__TracingServiceState state_pb;
typedef Perfetto__Protos__TracingServiceState__Producer producer_pb;
typedef Perfetto__Protos__DataSourceDescriptor descriptor;

/* Columns of categories in the table. */
#define CATEGORY_COLUMNS 32

/* Placeholder for a producer that the state does not list. */
static const producer_pb nobody = {
	.base = { .descriptor = NULL },
};

struct source {
	const producer_pb *producer;
	const descriptor *what;
};

struct sources {
	struct source *all; /* those that fit, sorted */
	size_t n;
};

/* Never NULL: a number where a machine has no name. */
static const char *
machine_of(const producer_pb *p, char number[16])
{
	if (p->machine_id == 0)
		return "host";
	if (p->machine_name != NULL && p->machine_name[0] != '\0')
		return p->machine_name;
	snprintf(number, 16, "%" PRIu32, p->machine_id);
	return number;
}

static const char *
or_empty(const char *text)
{
	return text == NULL ? "" : text;
}

static bool
is_named(const struct source *s, const struct sources_filter *f)
{
	size_t i;

	for (i = 0; i < f->n_names; i++)
		if (glob_match(f->names[i], or_empty(s->what->name)))
			return true;
	return f->n_names == 0;
}

static bool
is_on(const producer_pb *p, const struct sources_filter *f)
{
	char number[16];
	size_t i;

	for (i = 0; i < f->n_machines; i++)
		if (machine_word_means(f->machines[i], p->machine_id,
		    p->machine_id == 0 ? p->machine_name :
		    machine_of(p, number)))
			return true;
	return f->n_machines == 0;
}

static bool
fits(const struct source *s, const struct sources_filter *f)
{
	return is_named(s, f) && is_on(s->producer, f);
}

/* The host first, then machines and producers by name. */
static int
compare(const void *left, const void *right)
{
	const struct source *a = left, *b = right;
	char x[16], y[16];
	int order;

	if ((a->producer->machine_id == 0) != (b->producer->machine_id == 0))
		return a->producer->machine_id == 0 ? -1 : 1;
	order = strcmp(machine_of(a->producer, x), machine_of(b->producer, y));
	if (order == 0)
		order = strcmp(or_empty(a->producer->name),
		    or_empty(b->producer->name));
	if (order == 0)
		order = (a->producer->id > b->producer->id) -
		    (a->producer->id < b->producer->id);
	if (order == 0)
		order = strcmp(or_empty(a->what->name),
		    or_empty(b->what->name));
	return order;
}

static int
by_id(const void *left, const void *right)
{
	const producer_pb *const *a = left, *const *b = right;

	return ((*a)->id > (*b)->id) - ((*a)->id < (*b)->id);
}

static const producer_pb *
find_producer(producer_pb **sorted, size_t n, int32_t id)
{
	const producer_pb key = { .id = id }, *k = &key;
	producer_pb **found = n == 0 ? NULL :
	    bsearch(&k, sorted, n, sizeof(*sorted), by_id);

	return found == NULL ? &nobody : *found;
}

/* all: NULL without memory, or when there are none. */
static struct sources
collect(const state_pb *state, const struct sources_filter *filter)
{
	struct sources s = { NULL, 0 };
	producer_pb **producers;
	struct source one;
	size_t i;

	producers = calloc(state->n_producers + 1, sizeof(*producers));
	s.all = calloc(state->n_data_sources + 1, sizeof(*s.all));
	if (producers == NULL || s.all == NULL)
		goto out;
	for (i = 0; i < state->n_producers; i++)
		producers[i] = state->producers[i];
	qsort(producers, state->n_producers, sizeof(*producers), by_id);
	for (i = 0; i < state->n_data_sources; i++) {
		one.what = state->data_sources[i]->ds_descriptor;
		one.producer = find_producer(producers, state->n_producers,
		    state->data_sources[i]->producer_id);
		if (one.what != NULL && fits(&one, filter))
			s.all[s.n++] = one;
	}
	qsort(s.all, s.n, sizeof(*s.all), compare);

out:
	free(producers);
	return s;
}

/* ---- a line each ---- */

static const char *
producer_text(const producer_pb *p, char out[TEXT_CELL_MAX])
{
	char name[TEXT_CELL_MAX];

	snprintf(out, TEXT_CELL_MAX, "%.480s (%" PRId32 ")",
	    text_cell_plain(p->name, name), p->pid);
	return out;
}

static void
print_table(FILE *out, const struct sources *s)
{
	int machine_width = 7, producer_width = 14, name_width = 11;
	char number[16], text[TEXT_CELL_MAX];
	const struct source *x;
	size_t i;

	for (i = 0; i < s->n; i++) {
		x = &s->all[i];
		machine_width = text_cell_widen(machine_width,
		    text_cell_plain(machine_of(x->producer, number), text));
		producer_width = text_cell_widen(producer_width,
		    producer_text(x->producer, text));
		name_width = text_cell_widen(name_width,
		    text_cell_plain(x->what->name, text));
	}
	if (s->n > 0)
		fprintf(out, "%-*s  %-*s  %-*s  %s\n", machine_width,
		    "MACHINE", producer_width, "PRODUCER (PID)", name_width,
		    "DATA SOURCE", "CATEGORIES");
	for (i = 0; i < s->n; i++) {
		x = &s->all[i];
		text_cell_put(out, text_cell_plain(machine_of(x->producer,
		    number), text), machine_width);
		text_cell_put(out, producer_text(x->producer, text),
		    producer_width);
		text_cell_put(out, text_cell_plain(x->what->name, text),
		    name_width);
		if (!source_details_categories(out, x->what, CATEGORY_COLUMNS))
			fputs("-", out);
		fputs("\n", out);
	}
}

/* ---- a block for each producer ---- */

static void
print_producer(FILE *out, const producer_pb *p)
{
	char number[16], text[TEXT_CELL_MAX];

	fprintf(out, "%s", text_cell_plain(p->name, text));
	fprintf(out, " on %s\n", text_cell_plain(machine_of(p, number), text));
	fprintf(out, "  id       %" PRId32, p->id);
	if (p->pid != 0)
		fprintf(out, ", pid %" PRId32, p->pid);
	fprintf(out, ", uid %" PRId32 "%s\n", p->uid, p->frozen ?
	    ", frozen" : "");
	if (p->sdk_version != NULL && p->sdk_version[0] != '\0')
		fprintf(out, "  sdk      %s\n",
		    text_cell_plain(p->sdk_version, text));
}

static void
print_category(FILE *out, const struct source_category *c)
{
	char text[TEXT_CELL_MAX];
	size_t i;

	fprintf(out, "    %s", text_cell_plain(c->name, text));
	for (i = 0; i < c->n_tags; i++)
		fprintf(out, "%s%s", i == 0 ? " [" : ", ",
		    text_cell_plain(c->tags[i], text));
	if (c->n_tags > 0)
		fputs("]", out);
	if (c->description != NULL && c->description[0] != '\0')
		fprintf(out, ": %s", text_cell_plain(c->description, text));
	fputs("\n", out);
}

static void
print_source(FILE *out, const descriptor *d)
{
	struct source_category c;
	char text[TEXT_CELL_MAX];
	size_t i;

	fprintf(out, "  source   %s", text_cell_plain(d->name, text));
	if (d->will_notify_on_start)
		fputs(", says when it has started", out);
	if (d->will_notify_on_stop)
		fputs(", says when it has stopped", out);
	if (d->handles_incremental_state_clear)
		fputs(", clears incremental state", out);
	if (d->no_flush)
		fputs(", needs no flush", out);
	if (d->gpu_counter_descriptor.len > 0)
		fputs(", describes GPU counters", out);
	fputs("\n", out);
	for (i = 0; i < source_details_n_categories(d); i++) {
		c = source_details_category(d, i);
		print_category(out, &c);
	}
}

static void
print_long(FILE *out, const struct sources *s)
{
	size_t i;

	for (i = 0; i < s->n; i++) {
		if (i == 0 || s->all[i].producer != s->all[i - 1].producer) {
			fputs(i == 0 ? "" : "\n", out);
			print_producer(out, s->all[i].producer);
		}
		print_source(out, s->all[i].what);
	}
}

/* ---- JSON ---- */

static void
json_categories(struct json_out *j, const descriptor *d)
{
	struct source_category c;
	size_t i;

	json_array(j, "categories");
	for (i = 0; i < source_details_n_categories(d); i++) {
		c = source_details_category(d, i);
		json_object(j, NULL);
		json_string(j, "name", or_empty(c.name));
		json_string(j, "description", or_empty(c.description));
		json_strings(j, "tags", c.tags, c.n_tags);
		json_object_end(j);
	}
	json_array_end(j);
}

static void
json_source(struct json_out *j, const struct source *s)
{
	const producer_pb *p = s->producer;
	const descriptor *d = s->what;
	char number[16];

	json_object(j, NULL);
	json_string(j, "name", or_empty(d->name));
	json_string(j, "machine", or_empty(machine_of(p, number)));
	json_uint(j, "machine_id", p->machine_id);
	json_string(j, "producer", or_empty(p->name));
	json_int(j, "producer_id", p->id);
	json_int(j, "pid", p->pid);
	json_int(j, "uid", p->uid);
	json_string(j, "sdk_version", or_empty(p->sdk_version));
	json_bool(j, "frozen", p->frozen);
	json_bool(j, "will_notify_on_start", d->will_notify_on_start);
	json_bool(j, "will_notify_on_stop", d->will_notify_on_stop);
	json_bool(j, "handles_incremental_state_clear",
	    d->handles_incremental_state_clear);
	json_bool(j, "no_flush", d->no_flush);
	json_categories(j, d);
	json_object_end(j);
}

static void
print_json(FILE *out, const struct sources *s)
{
	struct json_out j = { .out = out, .row = "\n  " };
	size_t i;

	json_array(&j, NULL);
	for (i = 0; i < s->n; i++)
		json_source(&j, &s->all[i]);
	json_array_end(&j);
	fputc('\n', out);
}

size_t
sources_print(FILE *out, const state_pb *state,
    const struct sources_filter *filter, enum list_form form)
{
	struct sources s = collect(state, filter);

	switch (form) {
	case LIST_TABLE:
		print_table(out, &s);
		break;
	case LIST_LONG:
		print_long(out, &s);
		break;
	case LIST_JSON:
		print_json(out, &s);
		break;
	}
	free(s.all);
	return s.n;
}
