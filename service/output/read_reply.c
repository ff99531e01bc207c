#include "service/output/read_reply.h"

#include <stdlib.h>

#include "service/config/config.h"
#include "service/model/model.h"
#include "service/output/packet_out.h"
#include "service/output/readback.h"
#include "service/output/trace_compression.h"
#include "service/sink/packer.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/wire/pb_reader.h"

struct read_reply {
	struct session *s;
	struct packet_out *out; /* replies */
	bool told;      /* the reply in out was handed out */
	bool read_done; /* the session has no more to read */

	/* Compressed; else NULL and unused. */
	struct packer *packer;
	struct packet_out *gather; /* into the packer's batch */
	struct pb_reader packed;   /* what is left of its result */
	loop_fn ready;
	void *arg;
};

static void
packed_cb(void *arg)
{
	struct read_reply *r = arg;
	const uint8_t *data;
	size_t len;

	data = packer_result(r->packer, &len);
	pb_init(&r->packed, data, len);
	r->ready(r->arg);
}

struct read_reply *
read_reply_new(struct session *s, loop_fn ready, void *arg)
{
	struct packet_compression how = trace_compression(s->config);
	struct read_reply *r;

	if ((r = calloc(1, sizeof(*r))) == NULL)
		return NULL;
	r->s = s;
	r->ready = ready;
	r->arg = arg;
	pb_init(&r->packed, NULL, 0);
	if ((r->out = packet_out_new_reply()) == NULL)
		goto fail;
	if (how.kind != PACKET_PLAIN) {
		r->packer = packer_new(s->service->loop, &how, packed_cb, r);
		r->gather = packet_out_new_file();
		if (r->packer == NULL || r->gather == NULL)
			goto fail;
	}
	readback_begin(s->readback);
	return r;

fail:
	read_reply_free(r);
	return NULL;
}

void
read_reply_free(struct read_reply *r)
{
	if (r == NULL)
		return;
	packer_free(r->packer);
	packet_out_free(r->gather);
	packet_out_free(r->out);
	free(r);
}

/* The next batch goes to the packer. */
static void
gather(struct read_reply *r)
{
	struct sink_batch *b = packer_batch(r->packer);

	pb_init(&r->packed, NULL, 0);
	packet_out_set_batch(r->gather, b);
	r->read_done = readback_fill(r->s->readback, r->gather, NULL) ==
	    READBACK_DONE;
	if (!packet_out_empty(r->gather))
		packer_submit(r->packer);
	packet_out_set_batch(r->gather, NULL);
}

/* Whole packets of the result, as long as there is room. */
static void
pass_on(struct read_reply *r)
{
	struct tb_slice slice;
	struct pb_field f;

	while (packet_out_room(r->out) && pb_next(&r->packed, &f)) {
		slice = (struct tb_slice){ .data = f.data, .len = f.len };
		if (!packet_out_put_whole(r->out, &slice))
			r->s->invalid_packets++;
	}
	if (r->packed.bad) /* never: these are our own bytes */
		pb_init(&r->packed, NULL, 0);
}

static bool
has_packed(const struct read_reply *r)
{
	return r->packed.p < r->packed.end;
}

/* False: the reply is empty, and a batch is still being compressed. */
static bool
fill_packed(struct read_reply *r)
{
	while (packet_out_room(r->out) && !packer_is_busy(r->packer)) {
		if (has_packed(r))
			pass_on(r);
		else if (!r->read_done)
			gather(r);
		else
			break;
	}
	return !packer_is_busy(r->packer) || !packet_out_empty(r->out);
}

enum read_reply_result
read_reply_next(struct read_reply *r, const uint8_t **msg, size_t *len)
{
	bool more;

	if (r->told)
		packet_out_next(r->out);
	r->told = false;
	if (r->packer != NULL) {
		if (!fill_packed(r))
			return READ_REPLY_WAIT;
		more = packer_is_busy(r->packer) || has_packed(r);
	} else {
		if (!r->read_done && packet_out_room(r->out))
			r->read_done = readback_fill(r->s->readback, r->out,
			    NULL) == READBACK_DONE;
		more = false;
	}
	more = more || !r->read_done || packet_out_pending(r->out);
	*msg = packet_out_reply(r->out, len);
	r->told = true;
	return more ? READ_REPLY_MORE : READ_REPLY_LAST;
}
