#include "client/trace/trace_losses.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "protos/trace_stats.pb-c.h"
#include "transport/base/human_numbers.h"
#include "transport/link/link_wire.h"

typedef Perfetto__Protos__TraceStats trace_stats;
typedef Perfetto__Protos__TraceStats__BufferStats buffer_stats;
typedef Perfetto__Protos__TraceStats__LinkLossStats link_loss_stats;

/* Collects causes; counts on when out is full. */
struct list {
	struct trace_loss *out;
	size_t max;
	size_t n;
	uint64_t total; /* of data */
};

static void
add(struct list *l, struct trace_loss loss, bool is_data)
{
	if (loss.count == 0)
		return;
	if (l->n < l->max)
		l->out[l->n] = loss;
	l->n++;
	if (is_data)
		l->total += loss.count;
}

static void
add_buffer(struct list *l, int i, const buffer_stats *b)
{
	add(l, (struct trace_loss){
	    .count = b->chunks_overwritten, .unit = "chunk",
	    .cause = "overwritten in the ring buffer by newer data",
	    .hint = "a larger buffer (-b, or size_kb) keeps more",
	    .buffer = i, .bytes = b->bytes_overwritten }, true);
	add(l, (struct trace_loss){
	    .count = b->chunks_discarded, .unit = "chunk",
	    .cause = "arrived when the buffer was full",
	    .hint = "a larger buffer (size_kb) keeps more; into a file, "
		    "fill_policy: RING_BUFFER does",
	    .buffer = i }, true);
	/* A writer leaves one mark for all that it drops in a row. */
	add(l, (struct trace_loss){
	    .count = b->trace_writer_packet_loss, .unit = "packet",
	    .at_least = true,
	    .cause = "dropped by producers whose shared memory was full",
	    .hint = "raise shm_size_kb of the producer in the config",
	    .buffer = i }, true);
	add(l, (struct trace_loss){
	    .count = b->abi_violations, .unit = "chunk",
	    .cause = "broken by the producer that wrote them",
	    .buffer = i }, true);
	add(l, (struct trace_loss){
	    .count = b->patches_failed, .unit = "patch",
	    .cause = "for data that was gone already",
	    .buffer = i }, true);
}

/* Adds up the sequences of each machine and cause. */
static size_t
sum_links(const trace_stats *s, struct trace_loss *out)
{
	const link_loss_stats *l;
	size_t i, k, n = 0;

	for (i = 0; i < s->n_tributary_link_losses; i++) {
		l = s->tributary_link_losses[i];
		for (k = 0; k < n; k++)
			if (out[k].machine == l->machine_id && out[k].cause ==
			    link_loss_text(l->cause))
				break;
		if (k == TRACE_LOSSES_LINKS_MAX)
			continue;
		if (k == n)
			out[n++] = (struct trace_loss){
				.unit = "packet",
				.cause = link_loss_text(l->cause),
				.buffer = -1,
				.place = l->cause >= LINK_LOSS_OF_RELAYS ?
				    TRACE_LOSS_BY_COLLECTOR :
				    TRACE_LOSS_BY_RELAY,
				.machine = l->machine_id,
			};
		out[k].count += l->packets;
		out[k].bytes += l->bytes;
	}
	return n;
}

static void
add_links(struct list *list, const trace_stats *s)
{
	struct trace_loss l[TRACE_LOSSES_LINKS_MAX];
	size_t i, n = sum_links(s, l);

	for (i = 0; i < n; i++) {
		if (l[i].count == 0) {
			l[i].count = 1;
			l[i].how_much_unknown = true;
		}
		add(list, l[i], true);
	}
}

/* Not for Perfetto's service: its counts are of all sessions since it began. */
static void
add_refused(struct list *l, const trace_stats *s)
{
	add(l, (struct trace_loss){
	    .count = s->chunks_discarded, .unit = "chunk",
	    .cause = "refused: broken, or meant for a buffer that is not the "
		     "producer's",
	    .buffer = -1 }, true);
	add(l, (struct trace_loss){
	    .count = s->patches_discarded, .unit = "patch",
	    .cause = "refused: meant for a buffer that is not the producer's",
	    .buffer = -1 }, true);
}

static void
collect(struct list *l, const trace_stats *s)
{
	bool final_failed;
	size_t i;

	for (i = 0; i < s->n_buffer_stats; i++)
		add_buffer(l, (int)i, s->buffer_stats[i]);
	if (s->tributary_discarded_of_session)
		add_refused(l, s);
	add(l, (struct trace_loss){
	    .count = s->invalid_packets, .unit = "packet",
	    .cause = "malformed or forged, and dropped",
	    .buffer = -1 }, true);
	if (s->filter_stats != NULL)
		add(l, (struct trace_loss){
		    .count = s->filter_stats->errors, .unit = "packet",
		    .cause = "emptied, as the trace filter could not read them",
		    .buffer = -1 }, true);

	add_links(l, s);
	final_failed = s->final_flush_outcome ==
	    PERFETTO__PROTOS__TRACE_STATS__FINAL_FLUSH_OUTCOME__FINAL_FLUSH_FAILED;
	add(l, (struct trace_loss){
	    .count = final_failed, .unit = "flush",
	    .cause = "at the end timed out: the newest data of a producer may "
		     "be missing",
	    .buffer = -1 }, false);
}

size_t
trace_losses_list(const trace_stats *stats, struct trace_loss *out, size_t max)
{
	struct list l = { .out = out, .max = max };

	collect(&l, stats);
	return l.n;
}

uint64_t
trace_losses_total(const trace_stats *stats)
{
	struct list l = { .max = 0 };

	collect(&l, stats);
	return l.total;
}

static void
put(char *out, size_t size, size_t *len, const char *text)
{
	int n;

	if (*len >= size)
		return;
	if ((n = snprintf(out + *len, size - *len, "%s", text)) > 0)
		*len += (size_t)n;
}

bool
trace_loss_on_link(const struct trace_loss *l)
{
	return l->place == TRACE_LOSS_BY_RELAY ||
	    l->place == TRACE_LOSS_BY_COLLECTOR;
}

const char *
trace_loss_where(const struct trace_loss *l)
{
	return l->place == TRACE_LOSS_BY_COLLECTOR ?
	    "dropped by the collector" : "lost by its relay";
}

char *
trace_loss_amount(char out[TRACE_LOSS_AMOUNT_MAX], const struct trace_loss *l)
{
	char count[HUMAN_TEXT_MAX];

	if (l->how_much_unknown)
		snprintf(out, TRACE_LOSS_AMOUNT_MAX,
		    "an unknown number of packets");
	else
		snprintf(out, TRACE_LOSS_AMOUNT_MAX, "%s%s %s%s",
		    l->at_least ? "at least " : "",
		    human_count(count, l->count), l->unit,
		    human_plural(l->unit, l->count));
	return out;
}

char *
trace_loss_text(char *out, size_t size, const struct trace_loss *l)
{
	char amount[TRACE_LOSS_AMOUNT_MAX], bytes[HUMAN_TEXT_MAX], text[160];
	size_t len = 0;

	if (size > 0)
		out[0] = '\0';
	put(out, size, &len, trace_loss_amount(amount, l));
	if (l->bytes != 0) {
		snprintf(text, sizeof(text), " (%s)",
		    human_bytes(bytes, l->bytes));
		put(out, size, &len, text);
	}
	text[0] = '\0';
	if (trace_loss_on_link(l))
		snprintf(text, sizeof(text), " of machine %" PRIu32 " %s:",
		    l->machine, trace_loss_where(l));
	else if (l->buffer >= 0)
		snprintf(text, sizeof(text), " of buffer %d", l->buffer);
	put(out, size, &len, text);
	put(out, size, &len, " ");
	put(out, size, &len, l->cause);
	if (l->cpus[0] != '\0') {
		put(out, size, &len, ", on ");
		put(out, size, &len, l->cpus);
	}
	if (l->place == TRACE_LOSS_IN_KERNEL && l->machine != 0) {
		snprintf(text, sizeof(text), " of machine %" PRIu32,
		    l->machine);
		put(out, size, &len, text);
	}
	return out;
}
