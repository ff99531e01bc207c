#include "tests/fuzz/stage/rogue_producer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/stage/stage.h"
#include "tests/fuzz/stage/witness.h"
#include "transport/shm/shm.h"
#include "transport/wire/ipc_frame.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* Methods, by their place in wire-format.md. */
enum {
	INITIALIZE = 1, REGISTER, UNREGISTER, COMMIT, COMMANDS,
	REGISTER_WRITER, UNREGISTER_WRITER, STARTED, STOPPED, TRIGGERS, SYNC,
	UPDATE,
};

#define CHUNK_MAX 4000u
#define OWN_MEMORY 65536u

static void
drop_memory(struct rogue_producer *p)
{
	if (p->shm != NULL)
		munmap(p->shm, p->shm_len);
	p->shm = NULL;
	p->shm_len = 0;
}

static void
map(struct rogue_producer *p, int fd)
{
	off_t len = lseek(fd, 0, SEEK_END);
	void *at;

	if (p->shm != NULL || len <= 0)
		return;
	at = mmap(NULL, (size_t)len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return;
	p->shm = at;
	p->shm_len = (size_t)len;
}

static void
on_reply(void *arg, uint64_t request, bool ok, bool more, const uint8_t *msg,
    size_t len, int fd)
{
	struct rogue_producer *p = arg;

	/* Commands are well-formed. */
	stage_require(pb_well_formed(msg, len), "a reply does not parse");
	if (fd < 0)
		return;
	stage_require(ftruncate(fd, 0) != 0, "its memory can shrink");
	map(p, fd);
	close(fd);
}

void
rogue_producer_init(struct rogue_producer *p, struct stage *s,
    const struct witness *aim)
{
	memset(p, 0, sizeof(*p));
	p->stage = s;
	p->aim = aim;
	wire_init(&p->wire);
	p->wire.reply = on_reply;
	p->wire.arg = p;
	stage_add(s, &p->wire);
}

void
rogue_producer_leave(struct rogue_producer *p)
{
	wire_close(&p->wire);
	drop_memory(p);
}

/* ---- arriving ---- */

static void
make_identity(struct pb_writer *f, const uint8_t how[6])
{
	size_t mark = ipc_frame_begin(f, 0, IPC_SET_PEER_IDENTITY);

	pb_put_uint(f, 1, how[3]);
	pb_put_uint(f, 2, how[4] & 1 ? 0 : stage_neighbour.uid);
	pb_put_string(f, 3, script_name(how[5]));
	pb_put_string(f, 4, script_name(how[4]));
	ipc_frame_end(f, mark);
}

/* Memory of its own: good, unsealed, of a wrong size, or no memory. */
static int
own_memory(struct rogue_producer *p, unsigned how)
{
	int fd;

	if (how % 8 == 7)
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		abort();
	if (ftruncate(fd, how % 8 == 6 ? 4095 : OWN_MEMORY) != 0)
		abort();
	if (how % 8 < 5)
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
	drop_memory(p);
	map(p, fd);
	return fd;
}

static void
initialize(struct rogue_producer *p, const uint8_t how[6])
{
	struct pb_writer a;
	int fd = -1;

	pb_writer_init(&a);
	pb_put_uint(&a, 1, script_number(how[1]) << 12);
	pb_put_uint(&a, 2, script_number(how[2]) << 14);
	pb_put_string(&a, 3, how[3] & 1 ? "witness" : script_name(how[3]));
	pb_put_uint(&a, 4, how[0] >> 3 & 3);
	if (how[0] & 4) {
		pb_put_uint(&a, 6, 1);
		fd = own_memory(p, how[4]);
	}
	wire_call(&p->wire, INITIALIZE, &a, fd, how[0] & 128);
	if (fd >= 0)
		close(fd);
	pb_writer_done(&a);
	if (!(how[0] & 64))
		wire_call(&p->wire, COMMANDS, NULL, -1, false);
}

static void
arrive(struct rogue_producer *p, const uint8_t how[6])
{
	struct pb_writer hello;

	rogue_producer_leave(p);
	pb_writer_init(&hello);
	if (how[0] & 2)
		make_identity(&hello, how);
	p->wire.hello = &hello;
	stage_open(p->stage, &p->wire, STAGE_PRODUCER, how[0] & 1 ?
	    &stage_remote : &stage_stranger);
	p->wire.hello = NULL;
	pb_writer_done(&hello);
	if (!(how[0] & 32))
		initialize(p, how);
}

/* In good form or in the middle of something. */
static void
depart(struct rogue_producer *p, const uint8_t how[2])
{
	static const uint8_t half[] = { 200, 0, 0, 0, 0x2a, 0x50 };

	if (how[0] & 1)
		wire_send(&p->wire, half, 1 + how[1] % sizeof(half), -1);
	if (how[0] & 2)
		shutdown(p->wire.fd, how[0] & 4 ? SHUT_WR : SHUT_RD);
	if (!(how[0] & 2) || how[0] & 8)
		rogue_producer_leave(p);
}

/* ---- data sources and writers ---- */

/* A program that keeps field 1501, perhaps with an error in it; or nonsense. */
static void
put_program(struct pb_writer *a, const uint8_t how[6])
{
	static const uint8_t keeps_1501[] = {
		0x12, 0x1a, 0x0a, 0x07, 0x08, 0x01, 0x12, 0x03, 0x08, 0xdd,
		0x0b, 0x3a, 0x0f, 0x0a, 0x09, 0x08, 0x02, 0x12, 0x03, 0x08,
		0xdd, 0x0b, 0x18, 0x01, 0x3a, 0x02, 0x22, 0x00
	};
	uint8_t program[sizeof(keeps_1501)];

	memcpy(program, keeps_1501, sizeof(program));
	if (how[4] % 4 == 2)
		program[how[5] % sizeof(program)] ^= 1u << how[3] % 8;
	else if (how[4] % 4 == 3)
		script_fill(program, sizeof(program), how[5]);
	if (how[4] % 4 != 0)
		pb_put_bytes(a, 10, program, sizeof(program));
}

static void
put_descriptor(struct pb_writer *a, const uint8_t how[6])
{
	size_t mark = pb_nest_begin(a, 1);

	pb_put_string(a, 1, script_name(how[0]));
	pb_put_uint(a, 2, how[1] & 1);
	pb_put_uint(a, 3, how[1] >> 1 & 1);
	pb_put_uint(a, 4, how[1] >> 2 & 1);
	pb_put_uint(a, 9, how[1] >> 3 & 1);
	if (how[1] & 16)
		pb_put_bytes(a, 6, how, 6);
	put_program(a, how);
	pb_nest_end(a, mark);
}

/* Its own, another's, one that is gone, none. */
static uint32_t
some_buffer(const struct rogue_producer *p, uint8_t b)
{
	switch (p->aim != NULL ? b % 8 : 4 + b % 4) {
	case 0:
	case 1:
	case 2:
	case 3:
		return witness_buffer(p->aim, 1 + b % 2);
	case 4:
		return p->stage->service->last_buffer_id;
	case 5:
		return p->aim != NULL ? witness_buffer(p->aim, 0) : 1;
	case 6:
		return p->stage->service->last_buffer_id - 1u - (b >> 3);
	default:
		return (uint32_t)script_number(b);
	}
}

static void
call_by_number(struct rogue_producer *p, uint32_t method, uint64_t first,
    uint64_t second)
{
	struct pb_writer a;

	pb_writer_init(&a);
	pb_put_uint(&a, 1, first);
	pb_put_uint(&a, 2, second);
	wire_call(&p->wire, method, &a, -1, false);
	pb_writer_done(&a);
}

static void
call_by_name(struct rogue_producer *p, uint32_t method, const uint8_t how[6])
{
	struct pb_writer a;

	pb_writer_init(&a);
	pb_put_string(&a, 1, script_name(how[0]));
	if (method == TRIGGERS && how[1] & 1)
		pb_put_string(&a, 1, script_name(how[2]));
	wire_call(&p->wire, method, &a, -1, how[1] & 128);
	pb_writer_done(&a);
}

/* ---- chunks ---- */

enum content { WHOLE, BIG, CUT, NONSENSE, FORGED, GIVEN_UP, EMPTY, MANY };

/* A packet with a length before it. */
static size_t
put_packet(uint8_t *out, enum content what, uint8_t seed)
{
	struct pb_writer w, f;
	size_t n;

	pb_writer_init(&w);
	pb_writer_init(&f);
	pb_put_uint(&w, 8, seed);
	if (what == BIG) {
		static const uint8_t big[3000];

		pb_put_bytes(&w, 1501, big, sizeof(big));
	} else if (what == FORGED) {
		pb_put_uint(&w, 10, 2);
		pb_put_uint(&w, 3, stage_neighbour.uid);
	} else {
		pb_put_bytes(&w, 1501, &seed, 1);
	}
	pb_put_varint(&f, w.len + (what == CUT) * (1u + seed));
	pb_put_raw(&f, w.data, w.len);
	n = f.len;
	memcpy(out, f.data, n);
	pb_writer_done(&w);
	pb_writer_done(&f);
	return n;
}

/* What stands behind a chunk's header; returns the bytes. */
static size_t
put_content(uint8_t *out, unsigned what, unsigned fragments, uint8_t seed)
{
	static const uint8_t given_up[] = { 0xff, 0xff, 0xff, 0x7f };
	size_t at = 0;
	unsigned i;

	switch ((enum content)(what % 8)) {
	case NONSENSE:
		script_fill(out, 5u + seed, seed);
		return 5u + seed;
	case EMPTY:
		return 0;
	case GIVEN_UP:
		memcpy(out, given_up, sizeof(given_up));
		return sizeof(given_up);
	case WHOLE:
	case BIG:
	case CUT:
	case FORGED:
	case MANY:
		break;
	}
	for (i = 0; i < fragments && i < 8 && at < 900; i++)
		at += put_packet(out + at, what % 8, seed);
	return at;
}

struct header {
	uint32_t id;
	uint16_t writer;
	unsigned fragments;
	uint8_t flags;
};

/*
 * how[0]: writer, and how its chunks are numbered; how[1]: fragments and flags;
 * how[2]: content.
 */
static void
choose_header(struct rogue_producer *p, const uint8_t how[6],
    struct header *out)
{
	unsigned writer = how[0] % ROGUE_WRITERS;
	unsigned named = how[0] >= 250 ? (unsigned)how[2] << 8 : writer;

	out->writer = (uint16_t)named;
	out->fragments = how[1] % 8 == 7 ? 1023 : how[1] % 8;
	out->flags = how[1] >> 3 & 7;
	switch (how[0] >> 3 & 7) {
	case 0:
		out->id = p->chunks[writer] - 1; /* again */
		break;
	case 1:
		out->id = p->chunks[writer] += how[2]; /* a gap */
		break;
	case 2:
		out->id = (uint32_t)script_number(how[2]) - how[3];
		break;
	default:
		out->id = p->chunks[writer]++;
		break;
	}
}

static void
put_header(uint8_t out[8], const struct header *h)
{
	uint16_t count = (uint16_t)(h->fragments | (unsigned)h->flags << 10);

	memcpy(out, &h->id, 4);
	memcpy(out + 4, &h->writer, 2);
	memcpy(out + 6, &count, 2);
}

static void
commit_data(struct rogue_producer *p, const uint8_t how[6])
{
	uint8_t chunk[CHUNK_MAX + 8];
	struct pb_writer a;
	struct header h;
	size_t mark, len;

	choose_header(p, how, &h);
	put_header(chunk, &h);
	len = 8 + put_content(chunk + 8, how[2], h.fragments, how[3]);
	if (how[5] >= 250)
		len = how[3] % 9;
	pb_writer_init(&a);
	mark = pb_nest_begin(&a, 1);
	pb_put_uint(&a, 3, some_buffer(p, how[4]));
	pb_put_bytes(&a, 4, chunk, len);
	pb_put_uint(&a, 5, how[5] & 1);
	pb_nest_end(&a, mark);
	if (how[5] & 2)
		pb_put_uint(&a, 3, p->stage->service->last_flush_id);
	wire_call(&p->wire, COMMIT, &a, -1, how[5] & 4);
	pb_writer_done(&a);
}

/* Into the memory, as a writer would; how[5]: how far it gets. */
static void
write_memory(struct rogue_producer *p, const uint8_t how[6])
{
	unsigned pages = (unsigned)(p->shm_len / SHM_PAGE_UNIT);
	unsigned page, state = how[5] >> 2 & 3;
	uint8_t content[CHUNK_MAX], *at;
	struct header h;
	struct pb_writer a;
	uint32_t word;
	size_t mark, len;

	if (pages == 0)
		return;
	page = how[3] % (pages < 8 ? pages : 8);
	at = p->shm + (size_t)page * SHM_PAGE_UNIT;
	choose_header(p, how, &h);
	put_header(at + SHM_PAGE_HEADER_BYTES, &h);
	len = put_content(content, how[2], h.fragments, how[3]);
	memcpy(at + SHM_PAGE_HEADER_BYTES + SHM_CHUNK_HEADER_BYTES, content,
	    len);
	/* One chunk in the page, in any state but mostly a complete one. */
	word = (uint32_t)SHM_DIV1 << 28 | (state == 0 ? SHM_COMPLETE : state);
	memcpy(at, &word, sizeof(word));
	if (how[5] & 1)
		return; /* for whoever scrapes */
	pb_writer_init(&a);
	mark = pb_nest_begin(&a, 1);
	pb_put_uint(&a, 1, page);
	pb_put_uint(&a, 2, how[5] >> 5);
	pb_put_uint(&a, 3, some_buffer(p, how[4]));
	pb_nest_end(&a, mark);
	wire_call(&p->wire, COMMIT, &a, -1, how[5] & 2);
	pb_writer_done(&a);
}

/* Headers of pages and chunks, and what lies anywhere. */
static void
scribble(struct rogue_producer *p, const uint8_t how[6])
{
	size_t at;

	if (p->shm_len < 64)
		return;
	at = (size_t)(how[0] % 8) * SHM_PAGE_UNIT + (how[1] & 1 ?
	    (size_t)how[1] * 8 : how[1] % 24u);
	if (at + 16 > p->shm_len)
		at = p->shm_len - 16;
	if (how[1] & 2)
		script_fill(p->shm + at, 16, how[2]);
	else
		memcpy(p->shm + at, how + 2, 4);
}

static void
patch(struct rogue_producer *p, const uint8_t how[6])
{
	unsigned writer = how[0] % ROGUE_WRITERS, n = 1 + (how[5] >> 1) % 4;
	struct pb_writer a;
	size_t mark, one;

	pb_writer_init(&a);
	mark = pb_nest_begin(&a, 2);
	pb_put_uint(&a, 1, some_buffer(p, how[4]));
	pb_put_uint(&a, 2, writer);
	pb_put_uint(&a, 3, p->chunks[writer] - 1 - how[1] % 4);
	while (n-- > 0) {
		one = pb_nest_begin(&a, 4);
		pb_put_uint(&a, 1, script_number(how[2]) + n);
		pb_put_bytes(&a, 2, how + 2, how[3] % 5);
		pb_nest_end(&a, one);
	}
	pb_put_uint(&a, 5, how[5] & 1);
	pb_nest_end(&a, mark);
	wire_call(&p->wire, COMMIT, &a, -1, true);
	pb_writer_done(&a);
}

static void
acknowledge_flush(struct rogue_producer *p, const uint8_t how[6])
{
	uint64_t id = how[0] < 200 ? p->stage->service->last_flush_id -
	    how[0] % 4 : script_number(how[1]);
	struct pb_writer a;

	pb_writer_init(&a);
	pb_put_uint(&a, 3, id);
	wire_call(&p->wire, COMMIT, &a, -1, how[2] & 1);
	pb_writer_done(&a);
}

/* Anything: a call with any arguments, or bytes that are no frame. */
static void
say_nonsense(struct rogue_producer *p, const uint8_t how[6])
{
	struct pb_writer a;
	uint8_t bytes[64];

	script_fill(bytes, sizeof(bytes), how[1]);
	if (how[0] >= 224) {
		wire_send(&p->wire, bytes, 1 + how[2] % sizeof(bytes), -1);
		return;
	}
	pb_writer_init(&a);
	if (how[0] & 1)
		pb_put_raw(&a, how + 2, 4);
	else
		pb_put_raw(&a, bytes, how[2] % sizeof(bytes));
	wire_call(&p->wire, 1 + how[0] % 14, &a, -1, false);
	pb_writer_done(&a);
}

static void
call(struct rogue_producer *p, uint32_t method, const uint8_t how[6])
{
	struct pb_writer a;

	pb_writer_init(&a);
	put_descriptor(&a, how);
	wire_call(&p->wire, method, &a, -1, false);
	pb_writer_done(&a);
}

void
rogue_producer_act(struct rogue_producer *p, const struct script_op *op)
{
	const uint8_t *how = op->how;

	static const uint8_t plain[6] = { 0, 1, 4, 0, 0, 0 };

	if (p->wire.fd < 0 && op->what % 16 != 0)
		arrive(p, plain);
	switch (op->what % 16) {
	case 0:
		arrive(p, how);
		break;
	case 1:
		call(p, how[2] & 1 ? UPDATE : REGISTER, how);
		break;
	case 2:
		call_by_name(p, UNREGISTER, how);
		break;
	case 3:
		call_by_number(p, REGISTER_WRITER, script_number(how[0]),
		    some_buffer(p, how[1]));
		break;
	case 4:
		call_by_number(p, UNREGISTER_WRITER, script_number(how[0]), 0);
		break;
	case 5:
	case 6:
		commit_data(p, how);
		break;
	case 7:
	case 8:
		write_memory(p, how);
		break;
	case 9:
		scribble(p, how);
		break;
	case 10:
		patch(p, how);
		break;
	case 11:
		acknowledge_flush(p, how);
		break;
	case 12:
		call_by_number(p, how[0] & 1 ? STARTED : STOPPED,
		    p->stage->service->last_instance_id - how[1] % 8, 0);
		break;
	case 13:
		call_by_name(p, TRIGGERS, how);
		break;
	case 14:
		if (how[0] >= 128)
			depart(p, how + 1);
		else
			p->wire.deaf = how[0] & 1;
		break;
	case 15:
		say_nonsense(p, how);
		break;
	}
}
