#include "tests/fuzz/stage/witness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protos/text_parse.h"
#include "protos/trace_config.pb-c.h"
#include "service/packet/sequence_map.h"
#include "service/session/producer.h"
#include "service/session/session.h"
#include "tests/fuzz/stage/stage.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define SEQUENCES 3u
#define PACKET_ROOM 128u
#define PACKETS_PER_CHUNK 8u
/* Its own buffer never fills: so many chunks of at most 1 KiB. */
#define CHUNKS_MAX 200u

/* Methods, by their place in wire-format.md. */
enum { P_INIT = 1, P_REGISTER = 2, P_COMMIT = 4, P_COMMANDS = 5 };
enum { C_ENABLE = 1, C_READ = 3, C_FLUSH = 5 };

#define CONFIG                                                                 \
	"buffers { size_kb: 256 } buffers { size_kb: 16 } "                    \
	"buffers { size_kb: 16 fill_policy: DISCARD } "                        \
	"data_sources { config { name: \"quiet0\" } } "                        \
	"data_sources { config { name: \"quiet1\" target_buffer: 1 } } "       \
	"data_sources { config { name: \"quiet2\" target_buffer: 2 } } "       \
	"data_sources { config { name: \"a\" target_buffer: 1 "                \
	"protovm_config { memory_limit_kb: 16 } } } "                          \
	"data_sources { config { name: \"b\" target_buffer: 2 } } "            \
	"trace_all_machines: true flush_timeout_ms: 1 "                        \
	"data_source_stop_timeout_ms: 1"

struct sequence {
	uint32_t buffer; /* global id; 0: not told yet */
	uint32_t id;     /* of the packets; 0: none was read yet */
	uint32_t chunk;
	uint64_t written;
	uint64_t seen;   /* up to here, read or told lost */
	uint64_t lost;
};

struct witness {
	struct stage *stage;
	struct wire producer, consumer;
	bool mapped;
	struct shm *shm;
	size_t commits_open;
	uint32_t producer_id;
	uint64_t session_id;
	struct sequence sequences[SEQUENCES];

	uint64_t read_request;
	bool read_done;
	uint64_t flush_request;
	bool flush_done;
	struct pb_writer packet; /* what came of it so far */
};

static struct session *
session_of(const struct witness *w)
{
	struct session *s = session_find(w->stage->service, w->session_id);

	stage_require(s != NULL && s->state == SESSION_STARTED,
	    "the neighbour's session is gone");
	return s;
}

/* ---- what it writes ---- */

/* The n-th packet of a sequence; returns its length. */
static size_t
make_packet(uint8_t out[PACKET_ROOM], unsigned k, uint64_t n)
{
	uint8_t pattern[64];
	struct pb_writer w;
	size_t len, i;

	for (i = 0; i < n % 50; i++)
		pattern[i] = (uint8_t)(n * 31 + i + k);
	pb_writer_init(&w);
	pb_put_uint(&w, 8, n + 1);
	pb_put_uint(&w, 1500, k);
	pb_put_bytes(&w, 1501, pattern, i);
	if (w.failed || w.len > PACKET_ROOM)
		abort();
	memcpy(out, w.data, w.len);
	len = w.len;
	pb_writer_done(&w);
	return len;
}

/* Fragments from packet n on; returns the bytes. */
static size_t
put_fragments(uint8_t *out, unsigned k, uint64_t n, unsigned count)
{
	size_t at = 0, len;

	while (count-- > 0) {
		len = make_packet(out + at + 1, k, n++);
		out[at] = (uint8_t)len; /* less than 128: a byte */
		at += 1 + len;
	}
	return at;
}

static void
commit(struct witness *w, const struct pb_writer *args)
{
	wire_call(&w->producer, P_COMMIT, args, -1, false);
	w->commits_open++;
}

static void
write_mapped(struct witness *w, struct sequence *q, unsigned count)
{
	unsigned k = (unsigned)(q - w->sequences), i;
	struct shm_slot slot;
	struct pb_writer a;
	size_t mark;

	stage_require(shm_acquire(w->shm, SHM_DIV4, (uint16_t)(k + 1),
	    q->chunk, 0, &slot), "the neighbour's memory is not given back");
	put_fragments(slot.payload, k, q->written, count);
	for (i = 0; i < count; i++)
		shm_add_fragment(w->shm, &slot);
	shm_complete(w->shm, &slot);
	pb_writer_init(&a);
	mark = pb_nest_begin(&a, 1);
	pb_put_uint(&a, 1, slot.page);
	pb_put_uint(&a, 2, slot.index);
	pb_put_uint(&a, 3, q->buffer);
	pb_nest_end(&a, mark);
	commit(w, &a);
	pb_writer_done(&a);
}

static void
write_as_data(struct witness *w, struct sequence *q, unsigned count)
{
	unsigned k = (unsigned)(q - w->sequences);
	uint8_t chunk[8 + PACKETS_PER_CHUNK * (PACKET_ROOM + 1)] = { 0 };
	struct pb_writer a;
	size_t mark, len;

	memcpy(chunk, &q->chunk, 4);
	chunk[4] = (uint8_t)(k + 1);
	chunk[6] = (uint8_t)count;
	len = 8 + put_fragments(chunk + 8, k, q->written, count);
	pb_writer_init(&a);
	mark = pb_nest_begin(&a, 1);
	pb_put_uint(&a, 3, q->buffer);
	pb_put_bytes(&a, 4, chunk, len);
	pb_nest_end(&a, mark);
	commit(w, &a);
	pb_writer_done(&a);
}

static void
write_all(struct witness *w, unsigned packets)
{
	unsigned turns = 0;
	unsigned k;
	struct sequence *q;

	for (k = 0; k < SEQUENCES; k++) {
		q = &w->sequences[k];
		if (w->shm != NULL)
			write_mapped(w, q, packets);
		else
			write_as_data(w, q, packets);
		q->chunk++;
		q->written += packets;
	}
	while (w->commits_open > 0) {
		stage_wait(w->stage, &turns,
		    "the neighbour's commit is not answered");
	}
}

void
witness_write(struct witness *w, unsigned packets)
{
	if (w->sequences[0].chunk < CHUNKS_MAX)
		write_all(w, 1 + packets % PACKETS_PER_CHUNK);
}

/* ---- what the collector tells its producer ---- */

static void
on_instance(struct witness *w, const uint8_t *msg, size_t len)
{
	struct pb_reader r, rc;
	struct pb_field f, c;
	struct sequence *q;
	uint64_t buffer = 0;
	const char *name = "";
	size_t name_len = 0;

	pb_init(&r, msg, len);
	while (pb_next(&r, &f)) {
		if (f.number != 2 || f.wire != PB_BYTES)
			continue;
		pb_init(&rc, f.data, f.len);
		while (pb_next(&rc, &c)) {
			if (c.number == 1 && c.wire == PB_BYTES) {
				name = (const char *)c.data;
				name_len = c.len;
			} else if (c.number == 2) {
				buffer = c.value;
			}
		}
	}
	if (name_len != 6 || memcmp(name, "quiet", 5) != 0)
		return;
	/* Others may want it, too; it writes for its own session alone. */
	q = &w->sequences[(name[5] - '0') % SEQUENCES];
	if (q->buffer == 0)
		q->buffer = (uint32_t)buffer;
}

static void
on_flush(struct witness *w, const uint8_t *msg, size_t len)
{
	struct pb_writer a;
	struct pb_reader r;
	struct pb_field f;

	pb_writer_init(&a);
	pb_init(&r, msg, len);
	while (pb_next(&r, &f))
		if (f.number == 2)
			pb_put_uint(&a, 3, f.value);
	commit(w, &a);
	pb_writer_done(&a);
}

static void
on_memory(struct witness *w, const uint8_t *msg, size_t len, int fd)
{
	struct pb_reader r;
	struct pb_field f;
	size_t page = 4096;
	char err[200];

	if (fd < 0)
		return;
	pb_init(&r, msg, len);
	while (pb_next(&r, &f))
		if (f.number == 1)
			page = f.value * 1024;
	w->shm = shm_adopt(fd, page, err, sizeof(err));
	if (w->shm == NULL)
		abort();
}

static void
producer_reply(void *arg, uint64_t request, bool ok, bool more,
    const uint8_t *msg, size_t len, int fd)
{
	struct witness *w = arg;
	struct pb_reader r;
	struct pb_field f;

	stage_require(ok, "the neighbour's producer is refused");
	if (!more && w->commits_open > 0 && request > 5) {
		w->commits_open--; /* the first five calls are others */
		return;
	}
	pb_init(&r, msg, len);
	while (more && pb_next(&r, &f)) {
		if (f.number == 3)
			on_memory(w, f.data, f.len, fd);
		else if (f.number == 6)
			on_instance(w, f.data, f.len);
		else if (f.number == 5)
			on_flush(w, f.data, f.len);
	}
}

/* ---- what it reads ---- */

static void
judge_own(struct witness *w, struct sequence *q, const uint8_t *data,
    size_t len, uint64_t n, bool dropped)
{
	unsigned k = (unsigned)(q - w->sequences);
	uint8_t want[PACKET_ROOM];
	size_t want_len;

	stage_require(n >= q->seen, "a packet comes twice or out of order");
	stage_require(n < q->written, "a packet that nobody wrote");
	want_len = make_packet(want, k, n);
	stage_require(len > want_len && memcmp(data, want, want_len) == 0,
	    "a packet is not what was written");
	if (n > q->seen) {
		stage_require(k > 0, "a packet is lost of its own buffer");
		stage_require(dropped, "a loss is not told");
		q->lost += n - q->seen;
	}
	q->seen = n + 1;
}

/* Which of its sequences has this id; NULL: none. */
static struct sequence *
sequence_of(struct witness *w, uint64_t id)
{
	struct session *s = session_of(w);
	unsigned k;

	for (k = 0; k < SEQUENCES; k++) {
		struct sequence *q = &w->sequences[k];

		if (q->id == 0)
			q->id = sequence_map_find_id(s->sequences,
			    w->producer_id, k + 1);
		if (q->id != 0 && q->id == id)
			return q;
	}
	return NULL;
}

static void
judge(struct witness *w, const uint8_t *data, size_t len)
{
	unsigned ids = 0, uids = 0;
	uint64_t id = 0, uid = 0, n = 0, dropped = 0;
	struct sequence *q;
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, data, len);
	while (pb_next(&r, &f)) {
		if (f.number == 10) {
			ids++;
			id = f.value;
		} else if (f.number == 3) {
			uids++;
			uid = f.value;
		} else if (f.number == 8) {
			n = f.value;
		} else if (f.number == 42) {
			dropped = f.value;
		}
	}
	stage_require(!r.bad, "a packet is malformed");
	stage_require(ids <= 1 && uids <= 1, "a trusted field is forged");
	if (id == 0 || (q = sequence_of(w, id)) == NULL)
		return;
	stage_require(uid == (w->mapped ? stage_neighbour.uid :
	    PEER_UID_UNKNOWN), "a packet of another user");
	judge_own(w, q, data, len, n - 1, dropped != 0);
}

static void
on_slice(struct witness *w, const uint8_t *msg, size_t len)
{
	struct pb_reader r;
	struct pb_field f;
	bool last = false;

	pb_init(&r, msg, len);
	while (pb_next(&r, &f)) {
		if (f.number == 1 && f.wire == PB_BYTES)
			pb_put_raw(&w->packet, f.data, f.len);
		else if (f.number == 2)
			last = f.value != 0;
	}
	if (!last)
		return;
	judge(w, w->packet.data, w->packet.len);
	pb_writer_reset(&w->packet);
}

static void
consumer_reply(void *arg, uint64_t request, bool ok, bool more,
    const uint8_t *msg, size_t len, int fd)
{
	struct witness *w = arg;
	struct pb_reader r;
	struct pb_field f;

	if (fd >= 0)
		close(fd);
	if (request == w->flush_request)
		w->flush_done = true;
	if (request != w->read_request)
		return;
	stage_require(ok, "the neighbour may not read");
	pb_init(&r, msg, len);
	while (pb_next(&r, &f))
		if (f.number == 2 && f.wire == PB_BYTES)
			on_slice(w, f.data, f.len);
	if (!more)
		w->read_done = true;
}

void
witness_read(struct witness *w)
{
	unsigned turns = 0;

	w->read_done = false;
	w->read_request = wire_call(&w->consumer, C_READ, NULL, -1, false);
	while (!w->read_done) {
		stage_wait(w->stage, &turns,
		    "the neighbour waits for its packets");
	}
	stage_require(w->packet.len == 0, "a packet has no end");
}

void
witness_flush(struct witness *w)
{
	struct pb_writer a;
	unsigned turns = 0;

	pb_writer_init(&a);
	pb_put_uint(&a, 1, 2); /* ms */
	w->flush_done = false;
	w->flush_request = wire_call(&w->consumer, C_FLUSH, &a, -1, false);
	pb_writer_done(&a);
	while (!w->flush_done) {
		stage_wait(w->stage, &turns,
		    "the neighbour's flush is not answered");
	}
}

/* ---- its life ---- */

static void
register_sources(struct witness *w)
{
	char name[] = "quiet0";
	struct pb_writer a;
	size_t mark;
	unsigned k;

	for (k = 0; k < SEQUENCES; k++) {
		name[5] = (char)('0' + k);
		pb_writer_init(&a);
		mark = pb_nest_begin(&a, 1);
		pb_put_string(&a, 1, name);
		pb_nest_end(&a, mark);
		wire_call(&w->producer, P_REGISTER, &a, -1, false);
		pb_writer_done(&a);
	}
}

static void
enable(struct witness *w)
{
	static uint8_t *config;
	static size_t len;
	struct pb_writer a;

	if (config == NULL && text_parse(
	    &perfetto__protos__trace_config__descriptor, CONFIG,
	    strlen(CONFIG), &config, &len, NULL) != 0)
		abort();
	pb_writer_init(&a);
	pb_put_bytes(&a, 1, config, len);
	wire_call(&w->consumer, C_ENABLE, &a, -1, false);
	pb_writer_done(&a);
}

static bool
is_ready(const struct witness *w)
{
	unsigned k;

	for (k = 0; k < SEQUENCES; k++)
		if (w->sequences[k].buffer == 0)
			return false;
	return !w->mapped || w->shm != NULL;
}

static void
connect_producer(struct witness *w)
{
	struct pb_writer a;

	stage_open(w->stage, &w->producer, STAGE_PRODUCER, w->mapped ?
	    &stage_neighbour : &stage_remote);
	pb_writer_init(&a);
	pb_put_string(&a, 3, "witness");
	wire_call(&w->producer, P_INIT, &a, -1, false);
	pb_writer_done(&a);
	wire_call(&w->producer, P_COMMANDS, NULL, -1, false);
	register_sources(w);
}

struct witness *
witness_new(struct stage *s, bool mapped)
{
	struct witness *w = calloc(1, sizeof(*w));
	unsigned turns = 0;

	if (w == NULL)
		abort();
	w->stage = s;
	w->mapped = mapped;
	pb_writer_init(&w->packet);
	wire_init(&w->producer);
	wire_init(&w->consumer);
	w->producer.reply = producer_reply;
	w->consumer.reply = consumer_reply;
	w->producer.arg = w->consumer.arg = w;
	stage_add(s, &w->producer);
	stage_add(s, &w->consumer);
	connect_producer(w);
	stage_open(s, &w->consumer, STAGE_CONSUMER, &stage_neighbour);
	stage_turn(s, 2);
	enable(w);
	while (!is_ready(w)) {
		stage_wait(s, &turns, "the neighbour's session does not start");
	}
	w->producer_id = TAILQ_FIRST(&s->service->producers)->id;
	w->session_id = TAILQ_FIRST(&s->service->sessions)->id;
	return w;
}

uint32_t
witness_buffer(const struct witness *w, unsigned i)
{
	return w->sequences[i % SEQUENCES].buffer;
}

static void
judge_all(struct witness *w)
{
	struct session *s = session_of(w);
	const struct tb_stats *ring = trace_buffer_stats(s->buffers[1].tb);
	const struct tb_stats *full = trace_buffer_stats(s->buffers[2].tb);
	const struct sequence *q = w->sequences;

	stage_require(q[0].seen == q[0].written, "a packet is missing");
	stage_require(q[1].seen == q[1].written, "the last one is missing");
	stage_require(q[1].lost == 0 || ring->chunks_overwritten > 0,
	    "what a ring lost is not counted");
	stage_require(q[2].seen == q[2].written || full->chunks_discarded > 0,
	    "what a full buffer lost is not counted");
}

void
witness_end(struct witness *w)
{
	unsigned turns = 0;

	witness_flush(w);
	witness_read(w);
	write_all(w, 1);
	witness_read(w);
	/* Over a relay it takes a while. */
	while (w->stage->producers != NULL && (w->sequences[0].seen <
	    w->sequences[0].written || w->sequences[1].seen <
	    w->sequences[1].written)) {
		stage_wait(w->stage, &turns, "what a relay has does not come");
		witness_read(w);
	}
	judge_all(w);
	wire_close(&w->producer);
	wire_close(&w->consumer);
	shm_free(w->shm);
	pb_writer_done(&w->packet);
	free(w);
}
