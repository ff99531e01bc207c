#include "client/trace/packet_splitter.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "protos/fields.h"
#include "transport/wire/pb_reader.h"

#define TAIL_KEPT (1u << 20)

void
packet_splitter_done(struct packet_splitter *c)
{
	free(c->tail);
	memset(c, 0, sizeof(*c));
}

enum trace_cut
packet_splitter_look(const uint8_t *data, size_t len, size_t *header,
    size_t *total)
{
	const uint8_t *p;
	uint64_t size;

	*header = *total = 0;
	if (len == 0)
		return TRACE_CUT_MORE;
	if (data[0] != PB_TAG(Trace_packet, PB_BYTES))
		return TRACE_CUT_BAD;
	if ((p = pb_varint(data + 1, data + len, &size)) == NULL)
		return len < PACKET_SPLITTER_HEADER_MAX ? TRACE_CUT_MORE :
		    TRACE_CUT_BAD;
	if (size > PACKET_SPLITTER_MAX_PACKET)
		return TRACE_CUT_BAD;
	*header = (size_t)(p - data);
	*total = *header + (size_t)size;
	return *total <= len ? TRACE_CUT_OK : TRACE_CUT_MORE;
}

static int
tail_append(struct packet_splitter *c, const uint8_t *data, size_t len)
{
	size_t cap = c->tail_cap == 0 ? 4096 : c->tail_cap;
	uint8_t *grown;

	while (cap < c->tail_len + len)
		cap *= 2;
	if (cap != c->tail_cap) {
		if ((grown = realloc(c->tail, cap)) == NULL)
			return -1;
		c->tail = grown;
		c->tail_cap = cap;
	}
	memcpy(c->tail + c->tail_len, data, len);
	c->tail_len += len;
	return 0;
}

/*
 * Appends bytes to the incomplete packet, and hands the packet out once it is
 * complete.  Returns the number of bytes taken; -1: bad length, or no memory.
 */
static ssize_t
feed_tail(struct packet_splitter *c, const uint8_t *data, size_t len,
    packet_splitter_fn fn, void *arg)
{
	size_t header = 0, total, take;

	if (packet_splitter_look(c->tail, c->tail_len, &header, &total) ==
	    TRACE_CUT_BAD)
		return -1;
	/* Byte by byte until the length is known. */
	take = total == 0 ? 1 : total - c->tail_len;
	if (take > len)
		take = len;
	if (tail_append(c, data, take) < 0)
		return -1;
	switch (packet_splitter_look(c->tail, c->tail_len, &header, &total)) {
	case TRACE_CUT_OK:
		fn(arg, c->tail + header, total - header);
		c->whole_bytes += total;
		c->tail_len = 0;
		/* Memory for one large packet is not kept to the end. */
		if (c->tail_cap > TAIL_KEPT) {
			free(c->tail);
			c->tail = NULL;
			c->tail_cap = 0;
		}
		break;
	case TRACE_CUT_MORE:
		break;
	case TRACE_CUT_BAD:
		return -1;
	}
	return (ssize_t)take;
}

int
packet_splitter_feed(struct packet_splitter *c, const uint8_t *data, size_t len,
    packet_splitter_fn fn, void *arg)
{
	size_t header, total;
	ssize_t n;

	while (len > 0) {
		if (c->tail_len > 0) {
			if ((n = feed_tail(c, data, len, fn, arg)) < 0)
				return -1;
			data += n;
			len -= (size_t)n;
			continue;
		}
		switch (packet_splitter_look(data, len, &header, &total)) {
		case TRACE_CUT_OK:
			fn(arg, data + header, total - header);
			c->whole_bytes += total;
			data += total;
			len -= total;
			break;
		case TRACE_CUT_MORE:
			return tail_append(c, data, len);
		case TRACE_CUT_BAD:
			return -1;
		}
	}
	return 0;
}
