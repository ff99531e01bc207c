#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/fields.h"
#include "transport/shm/commit_wire.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_writer.h"

/* The one field of a request. */
static struct pb_field
only_field(const uint8_t *data, size_t len, uint32_t number)
{
	struct pb_reader r;
	struct pb_field f, more;

	pb_init(&r, data, len);
	assert_true(pb_next(&r, &f));
	assert_int_equal(f.number, number);
	assert_false(pb_next(&r, &more));
	assert_false(r.bad);
	return f;
}

static void
a_chunk_is_read_as_it_was_written(void **state)
{
	static const size_t lengths[] = { 0, 1, 119, 120, 127, 128, 4080, 16383,
		16384, 32752, 96000 };
	static const uint32_t buffers[] = { 0, 1, 127, 128, 65535 };
	struct commit_chunk head = { .chunk_id = 0x89abcdef, .writer = 32767,
	    .packets = 7u << 10 | 1023u };
	struct commit_move m;
	struct shm_chunk c;
	struct pb_field f;
	uint8_t *out;
	size_t i, k, n;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (k = 0; k < sizeof(buffers) / sizeof(buffers[0]); k++) {
			head.buffer = buffers[k];
			head.incomplete = (i + k) % 2;
			n = commit_chunk_head_size(&head);
			assert_true(n <= 32);
			/* To the byte: the sanitizer watches. */
			out = malloc(n + lengths[i]);
			assert_non_null(out);
			memset(out + n, 'p', lengths[i]);
			commit_put_chunk_head(out, &head, lengths[i]);
			f = only_field(out, n + lengths[i],
			    CommitDataRequest_chunks_to_move);
			assert_true(commit_parse_move(&m, f.data, f.len));
			assert_int_equal(m.buffer, buffers[k]);
			assert_int_equal(m.incomplete, head.incomplete);
			assert_int_equal(m.len, 8 + lengths[i]);
			assert_int_equal(shm_chunk_from_bytes(m.data, m.len,
			    &c), 0);
			assert_int_equal(c.chunk_id, 0x89abcdef);
			assert_int_equal(c.writer_id, 32767);
			assert_int_equal(c.num_fragments, 1023);
			assert_int_equal(c.flags, 7);
			assert_int_equal(c.len, lengths[i]);
			free(out);
		}
}

static void
moves_that_do_not_parse_are_refused(void **state)
{
	static const uint8_t not_bytes[] = { 0x20, 1 };
	static const uint8_t cut[] = { 0x22, 5, 1 };
	struct commit_move m;

	assert_false(commit_parse_move(&m, not_bytes, sizeof(not_bytes)));
	assert_false(commit_parse_move(&m, cut, sizeof(cut)));
	assert_true(commit_parse_move(&m, NULL, 0));
	assert_null(m.data);
}

static void
a_patch_changes_nothing_but_its_buffer(void **state)
{
	struct pb_writer w, want;
	struct commit_patch p;
	struct pb_field f;
	uint8_t *out;
	size_t one, n;

	/* Out of order, twice, and with a field that nobody knows. */
	pb_writer_init(&w);
	pb_put_uint(&w, 3, 9);
	pb_put_uint(&w, 1, 4);
	pb_put_uint(&w, 2, 5);
	one = pb_nest_begin(&w, 4);
	pb_put_uint(&w, 1, 100);
	pb_put_bytes(&w, 2, "abcd", 4);
	pb_nest_end(&w, one);
	pb_put_uint(&w, 1, 6);
	pb_put_uint(&w, 50, 1);
	assert_true(commit_parse_patch(&p, w.data, w.len));
	assert_int_equal(p.buffer, 6);
	assert_int_equal(p.writer, 5);

	pb_writer_init(&want);
	pb_put_uint(&want, 1, 65535);
	pb_put_uint(&want, 3, 9);
	pb_put_uint(&want, 2, 5);
	one = pb_nest_begin(&want, 4);
	pb_put_uint(&want, 1, 100);
	pb_put_bytes(&want, 2, "abcd", 4);
	pb_nest_end(&want, one);
	pb_put_uint(&want, 50, 1);

	out = malloc(w.len + COMMIT_PATCH_MORE);
	assert_non_null(out);
	n = commit_put_patch(out, w.data, w.len, 65535);
	assert_true(n <= w.len + COMMIT_PATCH_MORE);
	f = only_field(out, n, CommitDataRequest_chunks_to_patch);
	assert_int_equal(f.len, want.len);
	assert_memory_equal(f.data, want.data, want.len);
	free(out);
	pb_writer_done(&w);
	pb_writer_done(&want);
}

static void
patches_that_do_not_parse_are_refused(void **state)
{
	static const uint8_t not_bytes[] = { 0x20, 1 };
	static const uint8_t inner[] = { 0x22, 2, 0x12, 5 };
	static const uint8_t cut[] = { 0x08 };
	struct commit_patch p;

	assert_false(commit_parse_patch(&p, not_bytes, sizeof(not_bytes)));
	assert_false(commit_parse_patch(&p, inner, sizeof(inner)));
	assert_false(commit_parse_patch(&p, cut, sizeof(cut)));
}

static void
a_flush_acknowledgement_holds_any_id(void **state)
{
	uint8_t out[COMMIT_FLUSH_MAX];
	size_t n;

	n = commit_put_flush(out, 1);
	assert_int_equal(only_field(out, n,
	    CommitDataRequest_flush_request_id).value, 1);
	n = commit_put_flush(out, UINT64_MAX);
	assert_true(n <= sizeof(out));
	assert_true(only_field(out, n,
	    CommitDataRequest_flush_request_id).value == UINT64_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chunk_is_read_as_it_was_written),
		cmocka_unit_test(moves_that_do_not_parse_are_refused),
		cmocka_unit_test(a_patch_changes_nothing_but_its_buffer),
		cmocka_unit_test(patches_that_do_not_parse_are_refused),
		cmocka_unit_test(a_flush_acknowledgement_holds_any_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
