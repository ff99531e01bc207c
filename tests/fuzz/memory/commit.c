/*
 * CommitDataRequest at a live service: one producer with shared memory and one
 * emulated, two sessions, ring and discard buffers.  The first bytes say what
 * stands in the shared memory, the rest is requests, taken as they are.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "protos/text_parse.h"
#include "protos/trace_config.pb-c.h"
#include "service/collector/service.h"
#include "service/config/config.h"
#include "service/ingest/commit.h"
#include "service/ingest/writers.h"
#include "service/output/packet_out.h"
#include "service/output/readback.h"
#include "service/session/producer.h"
#include "service/session/session.h"
#include "service/settings/settings.h"
#include "tests/fuzz/memory/memory.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_writer.h"

#define CONFIG                                                                \
	"buffers { size_kb: 8 } buffers { size_kb: 8 fill_policy: DISCARD } " \
	"data_sources { config { name: \"a\" } } "                            \
	"data_sources { config { name: \"b\" target_buffer: 1 } }"

/*
 * Longer inputs are whole pages, for the reader of shared memory alone: as
 * requests they would be thousands and take a second each.
 */
#define INPUT_MAX 4096

static struct settings settings;
static uint8_t *config_bytes;
static size_t config_len;

static struct loop *loop;
static struct service *service;

static void
op_tracing(void *port, struct shm *shm, size_t page_size)
{
}

static void
op_config(void *port, uint64_t id, const uint8_t *config, size_t len)
{
}

static void
op_stop(void *port, uint64_t id)
{
}

static void
op_flush(void *port, uint64_t request_id, const uint64_t *ids, size_t n,
    uint64_t flags)
{
}

static void
op_clear(void *port, const uint64_t *ids, size_t n)
{
}

static void
op_resume(void *port)
{
}

static const struct producer_ops ops = { op_tracing, op_config, op_config,
	op_stop, op_flush, op_clear, op_resume };

static void
set_up_once(void)
{
	log_init("fuzz", LOG_LEVEL_ERROR);
	if (settings_init(&settings) != 0 ||
	    text_parse(&perfetto__protos__trace_config__descriptor, CONFIG,
	    strlen(CONFIG), &config_bytes, &config_len, NULL) != 0 ||
	    (loop = loop_new()) == NULL)
		abort();
}

static struct producer *
make_producer(bool emulated)
{
	struct producer_hello hello = { .name = "p", .emulated = emulated,
	    .scrape = true, .machine = &service->host };
	struct producer *p;
	const char *why;

	p = producer_new(service, &hello, &ops, NULL, &why);
	if (p == NULL ||
	    producer_register(p, (const uint8_t *)"\x0a\x01" "a", 3) != NULL ||
	    producer_register(p, (const uint8_t *)"\x0a\x01" "b", 3) != NULL)
		abort();
	return p;
}

static struct session *
make_session(void)
{
	static const struct principal owner = { .auth = PEER_UNIX };
	struct config *c;
	struct session *s;
	char err[200];

	c = config_new(config_bytes, config_len, false, &settings.limits, err,
	    sizeof(err));
	if (c == NULL)
		abort();
	s = session_new(service, &(struct session_request){ .config = c,
	    .fd = -1, .owner = &owner }, err, sizeof(err));
	if (s == NULL)
		abort();
	return s;
}

static void
read_all(struct session *s)
{
	struct packet_out *out = packet_out_new_reply();
	enum readback_result r = READBACK_FULL;

	if (out == NULL)
		abort();
	readback_begin(s->readback);
	while (r != READBACK_DONE || !packet_out_empty(out)) {
		if (r != READBACK_DONE && packet_out_room(out))
			r = readback_fill(s->readback, out, NULL);
		packet_out_next(out);
	}
	packet_out_free(out);
}

/* Up to 256 bytes: layout and states of four pages, then their chunks. */
static size_t
fill_memory(struct producer *p, const uint8_t *data, size_t size)
{
	uint8_t *map = NULL;
	struct shm_slot slot;
	size_t page, n = size < 256 ? size : 256;

	/* The writer's side knows where the memory is. */
	if (!shm_acquire(p->shm, SHM_DIV1, 1, 0, 0, &slot))
		abort();
	map = slot.payload - SHM_PAGE_HEADER_BYTES - SHM_CHUNK_HEADER_BYTES -
	    slot.page * shm_page_size(p->shm);
	for (page = 0; page < 4 && page * 64 < n; page++) {
		size_t len = n - page * 64 < 64 ? n - page * 64 : 64;

		memcpy(map + page * shm_page_size(p->shm), data + page * 64,
		    len);
	}
	return n;
}

void
fuzz_commit(const uint8_t *data, size_t size)
{
	uint64_t flush_id;
	struct producer *mapped, *emulated;
	struct session *one, *two;
	size_t n;
	bool turn = false;

	if (size > INPUT_MAX)
		return;
	if (loop == NULL)
		set_up_once();
	if ((service = service_new(loop, &settings, -1)) == NULL)
		abort();
	mapped = make_producer(false);
	emulated = make_producer(true);
	one = make_session();
	two = make_session();
	writers_register(mapped, 1, one->buffers[0].id);
	writers_register(mapped, 2, one->buffers[1].id);
	writers_register(mapped, 3, two->buffers[0].id);
	n = fill_memory(mapped, data, size);
	data += n;
	size -= n;
	/* Requests: one byte of length, and whose it is. */
	while (size > 0) {
		n = *data < size ? *data : size - 1;
		if (commit_data(turn ? mapped : emulated, data + 1, n,
		    &flush_id) == COMMIT_AGAIN)
			abort(); /* nobody writes a file */
		turn = !turn;
		data += n + 1;
		size -= n + 1;
		if (size % 4 == 0)
			(void)commit_scrape(mapped, size % 8 ? one : NULL,
			    size % 8 != 0);
		if (size % 16 == 0)
			read_all(one);
	}
	session_free(two);
	producer_gone(emulated);
	read_all(one);
	producer_gone(mapped);
	read_all(one);
	session_free(one);
	service_free(service);
}
