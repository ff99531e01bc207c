#include "transport/wire/pb_writer.h"

#include <stdlib.h>
#include <string.h>

#include "transport/wire/pb_reader.h"

#define PB_WRITER_FIRST_BYTES 256u

void
pb_writer_init(struct pb_writer *w)
{
	memset(w, 0, sizeof(*w));
}

void
pb_writer_done(struct pb_writer *w)
{
	free(w->data);
	pb_writer_init(w);
}

void
pb_writer_reset(struct pb_writer *w)
{
	w->len = 0;
	w->failed = false;
}

/* Room for n more bytes at w->data + w->len. */
static bool
pb_reserve(struct pb_writer *w, size_t n)
{
	size_t cap;
	uint8_t *p;

	if (UNLIKELY(w->failed))
		return false;
	if (LIKELY(w->cap - w->len >= n))
		return true;
	if (n > SIZE_MAX / 2 - w->len)
		goto fail;
	cap = w->cap ? w->cap : PB_WRITER_FIRST_BYTES;
	while (cap < w->len + n)
		cap *= 2;
	if ((p = realloc(w->data, cap)) == NULL)
		goto fail;
	w->data = p;
	w->cap = cap;
	return true;

fail:
	w->failed = true;
	return false;
}

void
pb_put_raw(struct pb_writer *w, const void *data, size_t len)
{
	if (len == 0 || !pb_reserve(w, len))
		return;
	memcpy(w->data + w->len, data, len);
	w->len += len;
}

void
pb_put_varint(struct pb_writer *w, uint64_t v)
{
	if (!pb_reserve(w, PB_VARINT_MAX))
		return;
	w->len += pb_encode_varint(w->data + w->len, v);
}

static void
pb_put_tag(struct pb_writer *w, uint32_t field, enum pb_wire wire)
{
	pb_put_varint(w, (uint64_t)field << 3 | wire);
}

void
pb_put_uint(struct pb_writer *w, uint32_t field, uint64_t v)
{
	pb_put_tag(w, field, PB_VARINT);
	pb_put_varint(w, v);
}

void
pb_put_int(struct pb_writer *w, uint32_t field, int64_t v)
{
	pb_put_uint(w, field, (uint64_t)v);
}

void
pb_put_sint(struct pb_writer *w, uint32_t field, int64_t v)
{
	pb_put_uint(w, field, ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0));
}

void
pb_put_bytes(struct pb_writer *w, uint32_t field, const void *data, size_t len)
{
	pb_put_tag(w, field, PB_BYTES);
	pb_put_varint(w, len);
	pb_put_raw(w, data, len);
}

void
pb_put_string(struct pb_writer *w, uint32_t field, const char *s)
{
	pb_put_bytes(w, field, s, strlen(s));
}

size_t
pb_nest_begin(struct pb_writer *w, uint32_t field)
{
	pb_put_tag(w, field, PB_BYTES);
	return w->len;
}

void
pb_nest_end(struct pb_writer *w, size_t mark)
{
	size_t len = w->len - mark;
	size_t n = pb_varint_size(len);

	if (!pb_reserve(w, n))
		return;
	memmove(w->data + mark + n, w->data + mark, len);
	pb_encode_varint(w->data + mark, len);
	w->len += n;
}
