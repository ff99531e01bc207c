#include "tests/oom/traces.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/trace/packet_expand.h"
#include "protos/trace_stats.pb-c.h"
#include "transport/wire/pb_reader.h"

/* Fields of TracePacket. */
#define FOR_TESTING 900
#define TRACE_STATS 35

/* Far longer than any file takes. */
#define WHOLE_WAIT_MS 30000

uint64_t
traces_lost(const struct Perfetto__Protos__TraceStats *stats)
{
	uint64_t lost = stats->invalid_packets;
	size_t i;

	for (i = 0; i < stats->n_buffer_stats; i++)
		lost += stats->buffer_stats[i]->chunks_discarded +
		    stats->buffer_stats[i]->trace_writer_packet_loss;
	if (stats->filter_stats != NULL)
		lost += stats->filter_stats->errors;
	return lost;
}

static void
add_stats(struct traces_count *c, const uint8_t *data, size_t len)
{
	struct Perfetto__Protos__TraceStats *stats =
	    perfetto__protos__trace_stats__unpack(NULL, len, data);

	assert_non_null(stats);
	c->lost = traces_lost(stats);
	perfetto__protos__trace_stats__free_unpacked(stats, NULL);
}

static void
plain_packet(void *arg, const uint8_t *data, size_t len)
{
	struct traces_count *c = arg;
	struct pb_reader r;
	struct pb_field f;

	assert_true(pb_well_formed(data, len));
	if (c->filtered &&
	    memmem(data, len, TRACES_SECRET, strlen(TRACES_SECRET)) != NULL)
		fail_msg("a packet that the filter has to change went by it");
	pb_init(&r, data, len);
	while (pb_next(&r, &f)) {
		c->packets += f.number == FOR_TESTING;
		if (f.number == TRACE_STATS)
			add_stats(c, f.data, f.len);
	}
}

void
traces_packet(struct traces_count *c, const uint8_t *data, size_t len)
{
	struct packet_expand *x = packet_expand_new(plain_packet, c);
	char err[256];

	assert_non_null(x);
	switch (packet_expand_packet(x, data, len, err, sizeof(err))) {
	case PACKET_EXPAND_PLAIN:
		plain_packet(c, data, len);
		break;
	case PACKET_EXPAND_DONE:
		break;
	case PACKET_EXPAND_BAD:
		fail_msg("a compressed packet: %s", err);
	}
	packet_expand_free(x);
}

/*
 * What a file holds, once it ends on a packet: a session that was cut off may
 * still be writing, and a reader may see half a write().
 */
static size_t
read_whole(int fd, uint8_t *data, size_t size)
{
	ssize_t n = 0;
	int i;

	for (i = 0; i < WHOLE_WAIT_MS; i++) {
		n = pread(fd, data, size, 0);
		assert_in_range(n, 0, size - 1);
		if (pb_well_formed(data, (size_t)n))
			return (size_t)n;
		usleep(1000);
	}
	fail_msg("a file of %zd bytes ends in the middle of a packet", n);
	return 0;
}

void
traces_file(struct traces_count *c, int fd)
{
	static uint8_t data[1 << 20];
	size_t n = read_whole(fd, data, sizeof(data));
	struct pb_reader trace;
	struct pb_field f;

	pb_init(&trace, data, n);
	while (pb_next(&trace, &f)) {
		assert_int_equal(f.number, 1);
		/* Of what a filter takes everything out of, nothing is left. */
		assert_true(c->filtered || f.len > 0);
		traces_packet(c, f.data, f.len);
	}
}
