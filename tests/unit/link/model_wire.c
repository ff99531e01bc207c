#include <stdlib.h>
#include <string.h>

#include "tests/unit/link/model.h"
#include "transport/wire/frame.h"

void
pipe_put(struct pipe *p, enum wire_kind kind, const void *a, size_t a_len,
    const void *b, size_t b_len)
{
	size_t len = 1 + a_len + b_len, want = p->len + FRAME_HEADER_BYTES + len;
	uint8_t *at;

	MODEL_CHECK(len <= FRAME_PAYLOAD_MAX);
	if (want > p->cap) {
		p->cap = want * 2;
		MODEL_CHECK((p->data = realloc(p->data, p->cap)) != NULL);
	}
	at = p->data + p->len;
	frame_put_header(at, (uint32_t)len);
	at += FRAME_HEADER_BYTES;
	*at++ = (uint8_t)kind;
	if (a_len > 0)
		memcpy(at, a, a_len);
	if (b_len > 0)
		memcpy(at + a_len, b, b_len);
	p->len = want;
}

void
pipe_move(struct pipe *p, size_t bytes)
{
	p->arrived += bytes < pipe_on_the_way(p) ? bytes : pipe_on_the_way(p);
}

static size_t
first(const struct pipe *p, const uint8_t **data, size_t *len)
{
	size_t used = 0, need;

	switch (frame_next(p->data, p->arrived, data, len, &used, &need)) {
	case FRAME_OK:
		return used;
	case FRAME_MORE:
		return 0;
	case FRAME_TOO_BIG:
		break;
	}
	model_fail(__FILE__, __LINE__, "a frame that is too big");
}

bool
pipe_next(struct pipe *p, enum wire_kind *kind, const uint8_t **data,
    size_t *len)
{
	if (p->arrived == 0 || first(p, data, len) == 0)
		return false;
	MODEL_CHECK(*len > 0);
	*kind = (enum wire_kind)**data;
	(*data)++;
	(*len)--;
	return true;
}

void
pipe_took(struct pipe *p)
{
	const uint8_t *data;
	size_t len, used = first(p, &data, &len);

	memmove(p->data, p->data + used, p->len - used);
	p->len -= used;
	p->arrived -= used;
}

void
pipe_clear(struct pipe *p)
{
	free(p->data);
	memset(p, 0, sizeof(*p));
}
