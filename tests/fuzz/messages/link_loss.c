/* A LinkLoss: what is read and written again reads the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/messages/messages.h"
#include "transport/link/link_wire.h"

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond))                                                   \
			abort();                                               \
	} while (0)

void
fuzz_link_loss(const uint8_t *data, size_t size)
{
	uint8_t first[LINK_LOSS_MAX], second[LINK_LOSS_MAX];
	struct link_loss l, again;
	size_t n;

	memset(&l, 0xa5, sizeof(l));
	if (link_parse_loss(&l, data, size) != 0)
		return;
	CHECK(l.cause < LINK_LOSS_CAUSES);
	CHECK(strlen(link_loss_text(l.cause)) > 0);
	n = link_put_loss(first, &l);
	CHECK(n <= LINK_LOSS_MAX);
	CHECK(link_parse_loss(&again, first, n) == 0);
	CHECK(again.writer == l.writer && again.buffer == l.buffer);
	CHECK(again.cause == l.cause && again.old_channel == l.old_channel);
	CHECK(link_put_loss(second, &again) == n);
	CHECK(memcmp(first, second, n) == 0);
}
