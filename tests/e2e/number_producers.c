/*
 * number_producers: many producers in one process that number their packets.
 *
 *	number_producers ADDRESS PRODUCERS SOURCE PACKETS SESSIONS [TLS-DIR]
 *
 * Each producer waits until its data source was started by SESSIONS sessions,
 * then writes PACKETS packets into each, numbered from 0 by
 * for_testing.counter; for_testing.seq_value tells the writers apart.  Most
 * packets are small, some span several chunks.  Says "ready" when all are
 * registered and "written" when all packets were taken; ends when all were
 * stopped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/load/load_producer.h"
#include "tests/load/load_tls.h"
#include "transport/loop/loop.h"
#include "transport/wire/pb_writer.h"

#define CHUNK_ROOM 4080u /* of a page: less its header and the chunk's */
#define FIRST_CONTINUES 1
#define LAST_CONTINUES  2

/* One sequence: its packets, cut into chunks. */
struct stream {
	struct load_producer *producer;
	uint32_t buffer;
	uint16_t writer;
	uint32_t seq_value;
	uint32_t next_chunk;
	uint64_t next_packet;
	struct pb_writer packet; /* the one being written */
	size_t written;          /* of it */
};

static uint64_t packets_each;

static size_t
padding(const struct stream *s)
{
	uint64_t x = (s->seq_value * 2654435761u + s->next_packet) *
	    0x9e3779b97f4a7c15u >> 33;

	if (s->next_packet % 64 == 63)
		return 3000 + x % 9000;
	return x % 160;
}

static void
make_packet(struct stream *s)
{
	static const char filler[12001];
	size_t mark, inner;

	pb_writer_reset(&s->packet);
	pb_put_uint(&s->packet, 8, loop_boottime_ns());
	mark = pb_nest_begin(&s->packet, 900);
	pb_put_uint(&s->packet, 2, s->seq_value);
	pb_put_uint(&s->packet, 3, s->next_packet);
	inner = pb_nest_begin(&s->packet, 5);
	pb_put_bytes(&s->packet, 4, filler, padding(s));
	pb_nest_end(&s->packet, inner);
	pb_nest_end(&s->packet, mark);
	if (s->packet.failed)
		load_die("no memory");
	s->written = 0;
	s->next_packet++;
}

/* Commits one chunk; false: this stream has nothing left. */
static bool
write_chunk(struct stream *s)
{
	uint8_t chunk[CHUNK_ROOM];
	size_t used = 0, rest, n;
	uint16_t fragments = 0;
	uint8_t flags = 0;

	if (s->written > 0 && s->written < s->packet.len)
		flags |= FIRST_CONTINUES;
	while (used + 4 < CHUNK_ROOM && fragments < 1000) {
		if (s->written == s->packet.len) {
			if (s->next_packet == packets_each)
				break;
			make_packet(s);
		}
		rest = s->packet.len - s->written;
		n = CHUNK_ROOM - used - 4;
		if (n > rest)
			n = rest;
		used += pb_encode_varint(chunk + used, n);
		memcpy(chunk + used, s->packet.data + s->written, n);
		used += n;
		s->written += n;
		fragments++;
	}
	if (fragments == 0)
		return false;
	if (s->written < s->packet.len)
		flags |= LAST_CONTINUES;
	load_producer_chunk(s->producer, s->buffer, s->writer, s->next_chunk++,
	    fragments, flags, chunk, used);
	return true;
}

static void
open_stream(struct stream *s, struct load_producer *p, size_t producer,
    size_t instance)
{
	struct pb_writer w;

	memset(s, 0, sizeof(*s));
	s->producer = p;
	s->buffer = p->instances[instance].buffer;
	s->writer = (uint16_t)(instance + 1);
	s->seq_value = (uint32_t)(producer * LOAD_INSTANCES + instance);
	pb_writer_init(&s->packet);
	pb_writer_init(&w);
	pb_put_uint(&w, 1, s->writer);
	pb_put_uint(&w, 2, s->buffer);
	load_conn_call(&p->conn, "RegisterTraceWriter", w.data, w.len, true,
	    -1);
	pb_writer_done(&w);
}

static void
write_all(struct stream *streams, size_t n)
{
	size_t i;
	bool more = true;

	while (more) {
		more = false;
		for (i = 0; i < n; i++)
			more |= write_chunk(&streams[i]);
	}
}

int
main(int argc, char **argv)
{
	struct tls_context *tls = NULL;
	struct load_producer *ps;
	struct stream *streams;
	size_t n, sessions, i, k;
	char name[64];

	if (argc != 6 && argc != 7)
		load_die("ADDRESS PRODUCERS SOURCE PACKETS SESSIONS "
		    "[TLS-DIR]");
	if (argc == 7)
		tls = load_tls_context(argv[6], TLS_CLIENT);
	load_tls_use(tls);
	n = strtoul(argv[2], NULL, 10);
	packets_each = strtoull(argv[4], NULL, 10);
	sessions = strtoul(argv[5], NULL, 10);
	ps = calloc(n, sizeof(*ps));
	streams = calloc(n * sessions, sizeof(*streams));
	if (ps == NULL || streams == NULL || sessions > LOAD_INSTANCES)
		load_die("too many");

	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "numbers.%zu", i);
		load_producer_open(&ps[i], argv[1], name, argv[3], 0);
	}
	puts("ready");
	fflush(stdout);
	load_producers_wait_started(ps, n, sessions);
	for (i = 0; i < n; i++)
		for (k = 0; k < sessions; k++)
			open_stream(&streams[i * sessions + k], &ps[i], i, k);
	write_all(streams, n * sessions);
	for (i = 0; i < n; i++)
		load_producer_sync(&ps[i]);
	puts("written");
	fflush(stdout);
	load_producers_wait_stopped(ps, n);

	for (i = 0; i < n; i++)
		load_producer_close(&ps[i]);
	for (i = 0; i < n * sessions; i++)
		pb_writer_done(&streams[i].packet);
	free(streams);
	free(ps);
	tls_context_free(tls);
	return 0;
}
