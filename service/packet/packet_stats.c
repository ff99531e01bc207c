#include "service/buffer/trace_buffer.h"
#include "service/packet/packet_stats.h"
#include "transport/wire/pb_writer.h"

/* Field numbers: reference wire-format.md, common/trace_stats.proto */
enum trace_stats_field {
	STATS_BUFFER_STATS = 1,
	STATS_PRODUCERS_CONNECTED = 2,
	STATS_PRODUCERS_SEEN = 3,
	STATS_DATA_SOURCES_REGISTERED = 4,
	STATS_DATA_SOURCES_SEEN = 5,
	STATS_TRACING_SESSIONS = 6,
	STATS_TOTAL_BUFFERS = 7,
	STATS_CHUNKS_DISCARDED = 8,
	STATS_PATCHES_DISCARDED = 9,
	STATS_INVALID_PACKETS = 10,
	STATS_FILTER_STATS = 11,
	STATS_FLUSHES_REQUESTED = 12,
	STATS_FLUSHES_SUCCEEDED = 13,
	STATS_FLUSHES_FAILED = 14,
	STATS_FINAL_FLUSH_OUTCOME = 15,
	STATS_HISTOGRAM_DEF = 17,
	STATS_WRITER_STATS = 18,
	STATS_LINK_LOSSES = 1001, /* ours: protos/trace_stats.proto */
	STATS_DISCARDED_OF_SESSION = 1002,
	STATS_FOREIGN_CLOCKS = 1010,
};

enum filter_stats_field {
	FILTER_INPUT_PACKETS = 1,
	FILTER_INPUT_BYTES = 2,
	FILTER_OUTPUT_BYTES = 3,
	FILTER_ERRORS = 4,
	FILTER_TIME_TAKEN = 5,
	FILTER_DISCARDED = 20,
};

enum link_loss_field {
	LOSS_MACHINE = 1,
	LOSS_SEQUENCE = 2,
	LOSS_PRODUCER = 3,
	LOSS_CAUSE = 4,
	LOSS_CHUNKS = 5,
	LOSS_PACKETS = 6,
	LOSS_BYTES = 7,
};

enum foreign_clock_field {
	FOREIGN_PRODUCER = 1,
	FOREIGN_NAME = 2,
	FOREIGN_MACHINE = 3,
	FOREIGN_OFFSET = 4,
	FOREIGN_PACKETS = 5,
};

enum buffer_stats_field {
	BUFFER_BYTES_WRITTEN = 1,
	BUFFER_CHUNKS_WRITTEN = 2,
	BUFFER_CHUNKS_OVERWRITTEN = 3,
	BUFFER_WRITE_WRAP_COUNT = 4,
	BUFFER_PATCHES_SUCCEEDED = 5,
	BUFFER_PATCHES_FAILED = 6,
	BUFFER_READAHEADS_SUCCEEDED = 7,
	BUFFER_READAHEADS_FAILED = 8,
	BUFFER_ABI_VIOLATIONS = 9,
	BUFFER_CHUNKS_REWRITTEN = 10,
	BUFFER_OUT_OF_ORDER = 11,
	BUFFER_SIZE = 12,
	BUFFER_BYTES_OVERWRITTEN = 13,
	BUFFER_BYTES_READ = 14,
	BUFFER_PADDING_WRITTEN = 15,
	BUFFER_PADDING_CLEARED = 16,
	BUFFER_CHUNKS_READ = 17,
	BUFFER_CHUNKS_DISCARDED = 18,
	BUFFER_WRITER_PACKET_LOSS = 19,
	BUFFER_CHUNKS_RELOCATED = 20,
};

enum writer_stats_field {
	WRITER_SEQUENCE_ID = 1,
	WRITER_COUNTS = 2,
	WRITER_SUM = 3,
	WRITER_BUFFER = 4,
};

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
	size_t mark = pb_nest_begin(w, STATS_BUFFER_STATS);

	put_counter(w, BUFFER_SIZE, b->buffer_size);
	put_counter(w, BUFFER_BYTES_WRITTEN, b->bytes_written);
	put_counter(w, BUFFER_BYTES_OVERWRITTEN, b->bytes_overwritten);
	put_counter(w, BUFFER_BYTES_READ, b->bytes_read);
	put_counter(w, BUFFER_PADDING_WRITTEN, b->padding_bytes_written);
	put_counter(w, BUFFER_PADDING_CLEARED, b->padding_bytes_cleared);
	put_counter(w, BUFFER_CHUNKS_WRITTEN, b->chunks_written);
	put_counter(w, BUFFER_CHUNKS_REWRITTEN, b->chunks_rewritten);
	put_counter(w, BUFFER_CHUNKS_RELOCATED, b->chunks_relocated);
	put_counter(w, BUFFER_CHUNKS_OVERWRITTEN, b->chunks_overwritten);
	put_counter(w, BUFFER_CHUNKS_DISCARDED, b->chunks_discarded);
	put_counter(w, BUFFER_CHUNKS_READ, b->chunks_read);
	put_counter(w, BUFFER_OUT_OF_ORDER, b->chunks_committed_out_of_order);
	put_counter(w, BUFFER_WRITE_WRAP_COUNT, b->write_wrap_count);
	put_counter(w, BUFFER_PATCHES_SUCCEEDED, b->patches_succeeded);
	put_counter(w, BUFFER_PATCHES_FAILED, b->patches_failed);
	put_counter(w, BUFFER_READAHEADS_SUCCEEDED, b->readaheads_succeeded);
	put_counter(w, BUFFER_READAHEADS_FAILED, b->readaheads_failed);
	put_counter(w, BUFFER_ABI_VIOLATIONS, b->abi_violations);
	put_counter(w, BUFFER_WRITER_PACKET_LOSS, b->trace_writer_packet_loss);
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
		pb_put_uint(w, STATS_HISTOGRAM_DEF, bounds[i]);
	for (i = 0; i < n; i++) {
		mark = pb_nest_begin(w, STATS_WRITER_STATS);
		pb_put_uint(w, WRITER_SEQUENCE_ID, writers[i].sequence);
		pb_put_uint(w, WRITER_BUFFER, writers[i].buffer);
		put_buckets(w, WRITER_COUNTS, writers[i].histogram.count);
		put_buckets(w, WRITER_SUM, writers[i].histogram.sum);
		pb_nest_end(w, mark);
	}
}

static void
put_link_loss(struct pb_writer *w, const struct packet_link_loss *l)
{
	size_t mark = pb_nest_begin(w, STATS_LINK_LOSSES);

	pb_put_uint(w, LOSS_MACHINE, l->machine);
	put_counter(w, LOSS_SEQUENCE, l->sequence);
	if (l->producer != NULL)
		pb_put_string(w, LOSS_PRODUCER, l->producer);
	pb_put_uint(w, LOSS_CAUSE, l->cause);
	put_counter(w, LOSS_CHUNKS, l->chunks);
	put_counter(w, LOSS_PACKETS, l->packets);
	put_counter(w, LOSS_BYTES, l->bytes);
	pb_nest_end(w, mark);
}

static void
put_foreign_clock(struct pb_writer *w, const struct packet_foreign_clock *c)
{
	size_t mark = pb_nest_begin(w, STATS_FOREIGN_CLOCKS);

	pb_put_uint(w, FOREIGN_PRODUCER, c->producer);
	pb_put_string(w, FOREIGN_NAME, c->name);
	put_counter(w, FOREIGN_MACHINE, c->machine);
	pb_put_int(w, FOREIGN_OFFSET, c->offset_ns);
	pb_put_uint(w, FOREIGN_PACKETS, c->packets);
	pb_nest_end(w, mark);
}

static void
put_filter(struct pb_writer *w, const struct packet_filter_stats *f)
{
	size_t i, mark = pb_nest_begin(w, STATS_FILTER_STATS);

	pb_put_uint(w, FILTER_INPUT_PACKETS, f->input_packets);
	pb_put_uint(w, FILTER_INPUT_BYTES, f->input_bytes);
	pb_put_uint(w, FILTER_OUTPUT_BYTES, f->output_bytes);
	pb_put_uint(w, FILTER_ERRORS, f->errors);
	pb_put_uint(w, FILTER_TIME_TAKEN, f->time_taken_ns);
	for (i = 0; i < f->n_buffers; i++)
		pb_put_uint(w, FILTER_DISCARDED, f->discarded[i]);
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
	pb_put_uint(w, STATS_PRODUCERS_CONNECTED, st->producers_connected);
	pb_put_uint(w, STATS_PRODUCERS_SEEN, st->producers_seen);
	pb_put_uint(w, STATS_DATA_SOURCES_REGISTERED,
	    st->data_sources_registered);
	pb_put_uint(w, STATS_DATA_SOURCES_SEEN, st->data_sources_seen);
	pb_put_uint(w, STATS_TRACING_SESSIONS, st->tracing_sessions);
	pb_put_uint(w, STATS_TOTAL_BUFFERS, st->total_buffers);
	pb_put_uint(w, STATS_CHUNKS_DISCARDED, st->chunks_discarded);
	pb_put_uint(w, STATS_PATCHES_DISCARDED, st->patches_discarded);
	if (st->chunks_discarded != 0 || st->patches_discarded != 0)
		pb_put_uint(w, STATS_DISCARDED_OF_SESSION, 1);
	pb_put_uint(w, STATS_INVALID_PACKETS, st->invalid_packets);
	if (st->filter != NULL)
		put_filter(w, st->filter);
	pb_put_uint(w, STATS_FLUSHES_REQUESTED, st->flushes_requested);
	pb_put_uint(w, STATS_FLUSHES_SUCCEEDED, st->flushes_succeeded);
	pb_put_uint(w, STATS_FLUSHES_FAILED, st->flushes_failed);
	put_counter(w, STATS_FINAL_FLUSH_OUTCOME, st->final_flush_outcome);
	for (i = 0; i < st->n_link_losses; i++)
		put_link_loss(w, &st->link_losses[i]);
	for (i = 0; i < st->n_foreign_clocks; i++)
		put_foreign_clock(w, &st->foreign_clocks[i]);
}
