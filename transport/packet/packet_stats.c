#include "transport/packet/packet_stats.h"

#include "protos/fields.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/wire/pb_writer.h"

static const uint32_t bounds[CHUNK_HISTOGRAM_BOUNDS] = {
	8, 32, 128, 512, 1024, 2048, 4096, 8192, 12288, 16384,
};

void
chunk_histogram_add(struct chunk_histogram *h, size_t payload)
{
	size_t i = 0;

	while (i < CHUNK_HISTOGRAM_BOUNDS && payload > bounds[i])
		i++;
	h->count[i]++;
	h->sum[i] += payload;
}

/* A counter that is 0 is left out: it reads as 0. */
static void
put_counter(struct pb_writer *w, uint32_t field, uint64_t v)
{
	if (v != 0)
		pb_put_uint(w, field, v);
}

static void
put_buffer(struct pb_writer *w, const struct tb_stats *b)
{
	size_t mark = pb_nest_begin(w, TraceStats_buffer_stats);

	put_counter(w, BufferStats_buffer_size, b->buffer_size);
	put_counter(w, BufferStats_bytes_written, b->bytes_written);
	put_counter(w, BufferStats_bytes_overwritten, b->bytes_overwritten);
	put_counter(w, BufferStats_bytes_read, b->bytes_read);
	put_counter(w, BufferStats_padding_bytes_written,
	    b->padding_bytes_written);
	put_counter(w, BufferStats_padding_bytes_cleared,
	    b->padding_bytes_cleared);
	put_counter(w, BufferStats_chunks_written, b->chunks_written);
	put_counter(w, BufferStats_chunks_rewritten, b->chunks_rewritten);
	put_counter(w, BufferStats_chunks_relocated, b->chunks_relocated);
	put_counter(w, BufferStats_chunks_overwritten, b->chunks_overwritten);
	put_counter(w, BufferStats_chunks_discarded, b->chunks_discarded);
	put_counter(w, BufferStats_chunks_read, b->chunks_read);
	put_counter(w, BufferStats_chunks_committed_out_of_order,
	    b->chunks_committed_out_of_order);
	put_counter(w, BufferStats_write_wrap_count, b->write_wrap_count);
	put_counter(w, BufferStats_patches_succeeded, b->patches_succeeded);
	put_counter(w, BufferStats_patches_failed, b->patches_failed);
	put_counter(w, BufferStats_readaheads_succeeded,
	    b->readaheads_succeeded);
	put_counter(w, BufferStats_readaheads_failed, b->readaheads_failed);
	put_counter(w, BufferStats_abi_violations, b->abi_violations);
	put_counter(w, BufferStats_trace_writer_packet_loss,
	    b->trace_writer_packet_loss);
	pb_nest_end(w, mark);
}

/* A packed field: every bucket, those that are 0 too. */
static void
put_buckets(struct pb_writer *w, uint32_t field, const uint64_t *values)
{
	size_t i, mark = pb_nest_begin(w, field);

	for (i = 0; i < CHUNK_HISTOGRAM_BUCKETS; i++)
		pb_put_varint(w, values[i]);
	pb_nest_end(w, mark);
}

static void
put_writers(struct pb_writer *w, const struct packet_writer_stats *writers,
    size_t n)
{
	size_t i, mark;

	for (i = 0; i < CHUNK_HISTOGRAM_BOUNDS; i++)
		pb_put_uint(w, TraceStats_chunk_payload_histogram_def,
		    bounds[i]);
	for (i = 0; i < n; i++) {
		mark = pb_nest_begin(w, TraceStats_writer_stats);
		pb_put_uint(w, WriterStats_sequence_id, writers[i].sequence);
		pb_put_uint(w, WriterStats_buffer, writers[i].buffer);
		put_buckets(w, WriterStats_chunk_payload_histogram_counts,
		    writers[i].histogram.count);
		put_buckets(w, WriterStats_chunk_payload_histogram_sum,
		    writers[i].histogram.sum);
		pb_nest_end(w, mark);
	}
}

static void
put_link_loss(struct pb_writer *w, const struct packet_link_loss *l)
{
	size_t mark = pb_nest_begin(w, TraceStats_tributary_link_losses);

	pb_put_uint(w, LinkLossStats_machine_id, l->machine);
	put_counter(w, LinkLossStats_trusted_packet_sequence_id, l->sequence);
	if (l->producer != NULL)
		pb_put_string(w, LinkLossStats_producer_name, l->producer);
	pb_put_uint(w, LinkLossStats_cause, l->cause);
	put_counter(w, LinkLossStats_chunks, l->chunks);
	put_counter(w, LinkLossStats_packets, l->packets);
	put_counter(w, LinkLossStats_bytes, l->bytes);
	pb_nest_end(w, mark);
}

static void
put_foreign_clock(struct pb_writer *w, const struct packet_foreign_clock *c)
{
	size_t mark = pb_nest_begin(w, TraceStats_tributary_foreign_clocks);

	pb_put_uint(w, ForeignClock_producer_id, c->producer);
	pb_put_string(w, ForeignClock_producer_name, c->name);
	put_counter(w, ForeignClock_machine_id, c->machine);
	pb_put_int(w, ForeignClock_offset_ns, c->offset_ns);
	pb_put_uint(w, ForeignClock_packets, c->packets);
	pb_nest_end(w, mark);
}

static void
put_filter(struct pb_writer *w, const struct packet_filter_stats *f)
{
	size_t i, mark = pb_nest_begin(w, TraceStats_filter_stats);

	pb_put_uint(w, FilterStats_input_packets, f->input_packets);
	pb_put_uint(w, FilterStats_input_bytes, f->input_bytes);
	pb_put_uint(w, FilterStats_output_bytes, f->output_bytes);
	pb_put_uint(w, FilterStats_errors, f->errors);
	pb_put_uint(w, FilterStats_time_taken_ns, f->time_taken_ns);
	for (i = 0; i < f->n_buffers; i++)
		pb_put_uint(w, FilterStats_bytes_discarded_per_buffer,
		    f->discarded[i]);
	pb_nest_end(w, mark);
}

void
packet_stats_encode(struct pb_writer *w, const struct packet_stats *st)
{
	size_t i;

	for (i = 0; i < st->n_buffers; i++)
		put_buffer(w, st->buffers[i]);
	if (st->n_writers > 0)
		put_writers(w, st->writers, st->n_writers);
	pb_put_uint(w, TraceStats_producers_connected, st->producers_connected);
	pb_put_uint(w, TraceStats_producers_seen, st->producers_seen);
	pb_put_uint(w, TraceStats_data_sources_registered,
	    st->data_sources_registered);
	pb_put_uint(w, TraceStats_data_sources_seen, st->data_sources_seen);
	pb_put_uint(w, TraceStats_tracing_sessions, st->tracing_sessions);
	pb_put_uint(w, TraceStats_total_buffers, st->total_buffers);
	pb_put_uint(w, TraceStats_chunks_discarded, st->chunks_discarded);
	pb_put_uint(w, TraceStats_patches_discarded, st->patches_discarded);
	if (st->chunks_discarded != 0 || st->patches_discarded != 0)
		pb_put_uint(w, TraceStats_tributary_discarded_of_session, 1);
	pb_put_uint(w, TraceStats_invalid_packets, st->invalid_packets);
	if (st->filter != NULL)
		put_filter(w, st->filter);
	pb_put_uint(w, TraceStats_flushes_requested, st->flushes_requested);
	pb_put_uint(w, TraceStats_flushes_succeeded, st->flushes_succeeded);
	pb_put_uint(w, TraceStats_flushes_failed, st->flushes_failed);
	put_counter(w, TraceStats_final_flush_outcome, st->final_flush_outcome);
	for (i = 0; i < st->n_link_losses; i++)
		put_link_loss(w, &st->link_losses[i]);
	for (i = 0; i < st->n_foreign_clocks; i++)
		put_foreign_clock(w, &st->foreign_clocks[i]);
}
