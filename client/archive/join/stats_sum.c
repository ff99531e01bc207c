#include "client/archive/join/stats_sum.h"

#include <stdlib.h>

#include "client/archive/join/segment_packet.h"
#include "protos/fields.h"
#include "transport/packet/stats_span.h"
#include "transport/wire/pb_writer.h"

struct stats_sum {
	struct pb_writer sum;    /* fields of TraceStats */
	struct pb_writer packet; /* the last one's other fields */
};

struct stats_sum *
stats_sum_new(void)
{
	return calloc(1, sizeof(struct stats_sum));
}

void
stats_sum_free(struct stats_sum *s)
{
	if (s == NULL)
		return;
	pb_writer_done(&s->sum);
	pb_writer_done(&s->packet);
	free(s);
}

int
stats_sum_add(struct stats_sum *s, const struct segment_packet *p)
{
	struct pb_writer sum;
	struct pb_reader r;
	struct pb_field f;

	pb_writer_init(&sum);
	stats_span_add(&sum, (struct stats_reading){ s->sum.data, s->sum.len },
	    (struct stats_reading){ p->content.data, p->content.len });
	pb_writer_done(&s->sum);
	s->sum = sum;
	pb_writer_reset(&s->packet);
	PB_FOREACH(&f, &r, p->data, p->len) {
		if (f.number != TracePacket_trace_stats)
			pb_put_raw(&s->packet, f.start,
			    (size_t)(r.p - f.start));
	}
	return s->sum.failed || s->packet.failed ? -1 : 0;
}

int
stats_sum_packet(const struct stats_sum *s, struct pb_writer *w)
{
	if (s->packet.len == 0)
		return 0;
	pb_put_raw(w, s->packet.data, s->packet.len);
	pb_put_bytes(w, TracePacket_trace_stats, s->sum.data, s->sum.len);
	return w->failed ? -1 : 0;
}
