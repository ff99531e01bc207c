#include "tests/bench/load/numbered.h"

#include <string.h>
#include <zlib.h>

#include "transport/wire/pb_writer.h"

#define PACKET_TIMESTAMP 8u
#define PACKET_SEQUENCE_FLAGS 13u
#define PACKET_FOR_TESTING 900u
enum { EVENT_STR = 1, EVENT_SEQ_VALUE, EVENT_COUNTER, EVENT_PAYLOAD = 5 };
#define PAYLOAD_SINGLE_STRING 4u
#define CHECKSUM_DIGITS 8u

/* Text of any length up to this is cut from any place of twice as much. */
static char texts[2 * NUMBERED_TEXT_MAX];

/* Letters, digits and two more: half compressible, as traces are. */
static void
make_texts(void)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .";
	uint64_t x = 88172645463325252u;
	size_t i;

	for (i = 0; i < sizeof(texts); i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		texts[i] = letters[x % 64];
	}
}

static uint32_t
checksum(uint32_t key, uint64_t number, const void *text, size_t len)
{
	uint8_t head[12];

	memcpy(head, &key, 4);
	memcpy(head + 4, &number, 8);
	return (uint32_t)crc32(crc32(0, head, sizeof(head)), text,
	    (uInt)len);
}

static void
put_digits(uint8_t out[CHECKSUM_DIGITS], uint32_t v)
{
	int i;

	for (i = CHECKSUM_DIGITS - 1; i >= 0; i--, v >>= 4)
		out[i] = (uint8_t)"0123456789abcdef"[v & 15];
}

static void
put_wide(uint8_t out[NUMBERED_SIZE_BYTES], size_t v)
{
	unsigned i;

	for (i = 0; i < NUMBERED_SIZE_BYTES - 1; i++, v >>= 7)
		out[i] = (uint8_t)(v | 0x80);
	out[i] = (uint8_t)(v & 0x7f);
}

size_t
numbered_put(struct pb_writer *w, uint32_t key, uint64_t number,
    uint64_t timestamp_ns, uint32_t flags, size_t size)
{
	size_t size_at, inner, len = 0, room;
	uint8_t digits[CHECKSUM_DIGITS];
	const char *text;

	if (texts[0] == '\0')
		make_texts();
	text = texts + (key * 2654435761u + number * 40503u) %
	    NUMBERED_TEXT_MAX;
	pb_writer_reset(w);
	pb_put_uint(w, PACKET_TIMESTAMP, timestamp_ns);
	if (flags != 0)
		pb_put_uint(w, PACKET_SEQUENCE_FLAGS, flags);
	pb_put_varint(w, PACKET_FOR_TESTING << 3 | PB_BYTES);
	size_at = w->len;
	pb_put_raw(w, "\0\0\0", NUMBERED_SIZE_BYTES);
	pb_put_uint(w, EVENT_SEQ_VALUE, key);
	pb_put_uint(w, EVENT_COUNTER, number);
	/* Checksum, and the heads of what is still to come. */
	room = w->len + 2 + CHECKSUM_DIGITS + 2 + 2 +
	    (size > 140 ? 2u : 0u) + (size > 16400 ? 2u : 0u);
	if (size > room)
		len = size - room;
	if (len > NUMBERED_TEXT_MAX)
		len = NUMBERED_TEXT_MAX;
	put_digits(digits, checksum(key, number, text, len));
	pb_put_bytes(w, EVENT_STR, digits, sizeof(digits));
	inner = pb_varint_size(len) + 1 + len;
	pb_put_varint(w, EVENT_PAYLOAD << 3 | PB_BYTES);
	pb_put_varint(w, inner);
	pb_put_bytes(w, PAYLOAD_SINGLE_STRING, text, len);
	if (!w->failed)
		put_wide(w->data + size_at, w->len - size_at -
		    NUMBERED_SIZE_BYTES);
	return size_at;
}

static void
read_text(const struct pb_field *payload, const uint8_t **text, size_t *len)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, payload->data, payload->len);
	while (pb_next(&r, &f))
		if (f.number == PAYLOAD_SINGLE_STRING && f.wire == PB_BYTES) {
			*text = f.data;
			*len = f.len;
		}
}

bool
numbered_read(struct numbered *n, const struct pb_field *for_testing)
{
	const uint8_t *sum = NULL, *text = (const uint8_t *)"";
	uint8_t digits[CHECKSUM_DIGITS];
	bool has_key = false, has_number = false;
	struct pb_reader r;
	struct pb_field f;
	size_t len = 0;

	pb_init(&r, for_testing->data, for_testing->len);
	while (pb_next(&r, &f)) {
		if (f.number == EVENT_SEQ_VALUE && f.wire == PB_VARINT) {
			n->key = (uint32_t)f.value;
			has_key = true;
		} else if (f.number == EVENT_COUNTER && f.wire == PB_VARINT) {
			n->number = f.value;
			has_number = true;
		} else if (f.number == EVENT_STR && f.wire == PB_BYTES &&
		    f.len == CHECKSUM_DIGITS) {
			sum = f.data;
		} else if (f.number == EVENT_PAYLOAD && f.wire == PB_BYTES) {
			read_text(&f, &text, &len);
		}
	}
	if (!has_key || !has_number)
		return false;
	put_digits(digits, checksum(n->key, n->number, text, len));
	n->whole = !r.bad && sum != NULL &&
	    memcmp(sum, digits, sizeof(digits)) == 0;
	return true;
}
