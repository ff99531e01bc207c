#include "service/output/file_loss.h"

#include <stdlib.h>

#include "protos/fields.h"
#include "protos/link.pb-c.h"
#include "service/ingest/session_losses.h"
#include "service/model/model.h"
#include "service/output/packet_out.h"
#include "service/output/readback.h"
#include "service/sink/file_sink.h"
#include "transport/link/link_wire.h"
#include "transport/packet/service_packets.h"
#include "transport/wire/pb_reader.h"

#define CAUSE TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_TRACE_FILE

struct file_loss {
	struct session *s;
	uint64_t packets;
	/* The drain. */
	struct sink_batch batch;
	struct packet_out *out;
	struct loop_call call;
	loop_fn done;
	void *arg;
};

/* Packets of one sequence in a row, counted with one look-up. */
struct run {
	uint32_t machine;
	uint32_t sequence; /* 0: none yet */
	struct link_loss loss;
};

struct file_loss *
file_loss_new(struct session *s)
{
	struct file_loss *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return NULL;
	f->s = s;
	f->batch.nominal = f->batch.cap = SINK_BATCH_BYTES;
	return f;
}

void
file_loss_free(struct file_loss *f)
{
	if (f == NULL)
		return;
	loop_call_cancel(&f->call);
	free(f->batch.data);
	free(f);
}

static void
end_run(struct file_loss *f, struct run *run)
{
	if (run->sequence == 0)
		return;
	session_losses_add_to(f->s, run->machine, run->sequence, NULL,
	    &run->loss);
	f->packets += run->loss.packets;
	run->sequence = 0;
}

static void
count_packet(struct file_loss *f, struct run *run, const uint8_t *data,
    size_t len)
{
	uint32_t machine = 0, sequence = 0;
	struct pb_reader r;
	struct pb_field p;

	PB_FOREACH(&p, &r, data, len) {
		if (p.number == TracePacket_trusted_packet_sequence_id &&
		    p.wire == PB_VARINT)
			sequence = (uint32_t)p.value;
		else if (p.number == TracePacket_machine_id &&
		    p.wire == PB_VARINT)
			machine = (uint32_t)p.value;
		else if (p.number == TracePacket_tributary_repeated)
			return; /* in an earlier segment */
	}
	if (sequence == 0 || sequence == SERVICE_PACKETS_SEQUENCE)
		return;
	if (sequence != run->sequence || machine != run->machine) {
		end_run(f, run);
		*run = (struct run){ .machine = machine, .sequence = sequence,
			.loss = { .cause = CAUSE } };
	}
	run->loss.packets++;
	run->loss.bytes += len;
}

void
file_loss_count(struct file_loss *f, const uint8_t *data, size_t len)
{
	struct run run = { .sequence = 0 };
	struct pb_reader r;
	struct pb_field p;

	PB_FOREACH(&p, &r, data, len)
		if (p.number == Trace_packet && p.wire == PB_BYTES)
			count_packet(f, &run, p.data, p.len);
	end_run(f, &run);
}

static void
drain_cb(void *arg)
{
	struct file_loss *f = arg;
	enum readback_result r;

	f->batch.len = 0;
	packet_out_set_batch(f->out, &f->batch);
	r = readback_fill(f->s->readback, f->out, NULL);
	packet_out_set_batch(f->out, NULL);
	file_loss_count(f, f->batch.data, f->batch.len);
	if (r == READBACK_FULL)
		loop_defer(f->s->service->loop, &f->call, drain_cb, f);
	else
		f->done(f->arg);
}

void
file_loss_drain(struct file_loss *f, struct packet_out *out, loop_fn done,
    void *arg)
{
	f->out = out;
	f->done = done;
	f->arg = arg;
	if ((f->batch.data = malloc(f->batch.cap)) == NULL) {
		/* A loss of unknown amount. */
		(void)session_losses_mark(f->s, 0, CAUSE);
		loop_defer(f->s->service->loop, &f->call, done, arg);
		return;
	}
	readback_begin(f->s->readback);
	loop_defer(f->s->service->loop, &f->call, drain_cb, f);
}

uint64_t
file_loss_packets(const struct file_loss *f)
{
	return f->packets;
}
