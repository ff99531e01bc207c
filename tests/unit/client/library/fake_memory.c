#include "tests/unit/client/library/fake_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/commit_data.pb-c.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_reader.h"

#define FLAG_CONTINUES_PREV 1
#define FLAG_CONTINUES_NEXT 2

typedef Perfetto__Protos__CommitDataRequest Request;
typedef Perfetto__Protos__CommitDataRequest__ChunksToMove Move;

void
fake_memory_init(struct fake_memory *m, struct shm *shm)
{
	memset(m, 0, sizeof(*m));
	m->shm = shm;
}

void
fake_memory_done(struct fake_memory *m)
{
	size_t i;

	for (i = 0; i < m->n; i++)
		free(m->packets[i].data);
	for (i = 0; i < FAKE_WRITERS; i++)
		free(m->writers[i].part);
}

static void
add_part(struct fake_memory *m, uint16_t writer, const uint8_t *data,
    size_t len)
{
	uint8_t *p;

	p = realloc(m->writers[writer].part,
	    m->writers[writer].part_len + len + 1);
	assert_non_null(p);
	memcpy(p + m->writers[writer].part_len, data, len);
	m->writers[writer].part = p;
	m->writers[writer].part_len += len;
}

static void
end_packet(struct fake_memory *m, uint16_t writer, uint32_t buffer)
{
	struct fake_packet *p = &m->packets[m->n++];

	assert_true(m->n <= FAKE_PACKETS);
	p->writer = writer;
	p->buffer = buffer;
	p->data = m->writers[writer].part;
	p->len = m->writers[writer].part_len;
	m->writers[writer].part = NULL;
	m->writers[writer].part_len = 0;
}

static void
take_chunk(struct fake_memory *m, const struct shm_chunk *c, uint32_t buffer)
{
	const uint8_t *p = c->payload, *end = c->payload + c->len;
	uint16_t w = c->writer_id;
	uint64_t size = 0;
	unsigned i;
	bool last;

	assert_in_range(w, 1, FAKE_WRITERS - 1);
	assert_int_equal(c->chunk_id, m->writers[w].next_chunk);
	m->writers[w].next_chunk++;
	assert_true(c->num_fragments >= 1);
	assert_int_equal(m->writers[w].part != NULL,
	    (c->flags & FLAG_CONTINUES_PREV) != 0);
	for (i = 0; i < c->num_fragments; i++) {
		last = i + 1u == c->num_fragments;
		p = pb_varint(p, end, &size);
		assert_non_null(p);
		if (size == SHM_SIZE_DROP_PACKET) {
			assert_true(last);
			assert_false(c->flags & FLAG_CONTINUES_NEXT);
			free(m->writers[w].part);
			m->writers[w].part = NULL;
			m->writers[w].part_len = 0;
			m->given_up++;
			break;
		}
		assert_true(size <= (uint64_t)(end - p));
		add_part(m, w, p, (size_t)size);
		p += size;
		if (!last || (c->flags & FLAG_CONTINUES_NEXT) == 0)
			end_packet(m, w, buffer);
	}
	m->chunks++;
}

static void
move_chunk(struct fake_memory *m, const Move *move)
{
	struct shm_chunk c;

	assert_true(move->has_page && move->has_chunk &&
	    move->has_target_buffer);
	assert_int_equal(move->has_data, m->shm == NULL);
	if (m->shm == NULL) {
		assert_int_equal(shm_chunk_from_bytes(move->data.data,
		    move->data.len, &c), 0);
		take_chunk(m, &c, move->target_buffer);
		return;
	}
	assert_int_equal(shm_take(m->shm, move->page, move->chunk, &c),
	    SHM_TAKEN);
	take_chunk(m, &c, move->target_buffer);
	shm_release(m->shm, move->page, move->chunk);
}

void
fake_memory_commit(struct fake_memory *m, const uint8_t *msg, size_t len)
{
	Request *r;
	size_t i;

	r = perfetto__protos__commit_data_request__unpack(NULL, len, msg);
	assert_non_null(r);
	m->requests++;
	if (len > m->longest_request)
		m->longest_request = len;
	for (i = 0; i < r->n_chunks_to_move; i++)
		move_chunk(m, r->chunks_to_move[i]);
	assert_int_equal(r->n_chunks_to_patch, 0);
	if (r->has_flush_request_id) {
		m->flush_id = r->flush_request_id;
		m->chunks_at_flush = m->chunks;
	}
	perfetto__protos__commit_data_request__free_unpacked(r, NULL);
}
