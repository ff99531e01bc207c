/*
 * packet_show: any packet can be shown, and nothing of what it holds reaches a
 * terminal but as printable text.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/inspect/packet_filter.h"
#include "client/inspect/packet_show.h"
#include "client/trace/packet_splitter.h"
#include "tests/fuzz/traces/traces.h"

struct state {
	struct packet_show *all, *some;
	uint64_t offset;
};

static void
packet_cb(void *arg, const uint8_t *data, size_t len)
{
	struct state *s = arg;

	if (packet_show_take(s->all, data, len, s->offset) !=
	    packet_show_take(s->some, data, len, s->offset))
		abort();
	s->offset += len;
}

void
fuzz_packet_show(const uint8_t *data, size_t size)
{
	struct packet_filter none = { 0 }, filter = { .machine = "c?r*",
		.has_from = true, .from_ns = 5 };
	struct packet_splitter cutter = { 0 };
	char *text = NULL;
	struct state s = { 0 };
	size_t i, len;
	FILE *out;

	if ((out = open_memstream(&text, &len)) == NULL ||
	    (s.all = packet_show_new(out, &none)) == NULL ||
	    (s.some = packet_show_new(NULL, &filter)) == NULL)
		abort();
	(void)!packet_splitter_feed(&cutter, data, size, packet_cb, &s);
	if (packet_show_shown(s.all) != packet_show_seen(s.all) ||
	    packet_show_seen(s.all) != packet_show_seen(s.some) ||
	    packet_show_failed(s.all) != NULL || fclose(out) != 0)
		abort();
	for (i = 0; i < len; i++)
		if (((unsigned char)text[i] < ' ' && text[i] != '\n') ||
		    text[i] == 0x7f)
			abort();
	free(text);
	packet_splitter_done(&cutter);
	packet_show_free(s.all);
	packet_show_free(s.some);
}
