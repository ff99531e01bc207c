#include "transport/wire/frame.h"

enum frame_verdict
frame_next(const uint8_t *buf, size_t len, const uint8_t **payload,
    size_t *payload_len, size_t *used, size_t *need)
{
	uint32_t n;

	if (len < FRAME_HEADER_BYTES) {
		*need = FRAME_HEADER_BYTES;
		return FRAME_MORE;
	}
	n = (uint32_t)buf[0] | (uint32_t)buf[1] << 8 | (uint32_t)buf[2] << 16 |
	    (uint32_t)buf[3] << 24;
	if (n > FRAME_PAYLOAD_MAX)
		return FRAME_TOO_BIG;
	if (len - FRAME_HEADER_BYTES < n) {
		*need = FRAME_HEADER_BYTES + n;
		return FRAME_MORE;
	}
	*payload = buf + FRAME_HEADER_BYTES;
	*payload_len = n;
	*used = FRAME_HEADER_BYTES + n;
	return FRAME_OK;
}
