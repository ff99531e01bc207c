#include "client/show/quota_text.h"

#include <inttypes.h>

#include "transport/base/human_numbers.h"

static void
print_refused(FILE *out, uint64_t n, const char *what)
{
	char count[HUMAN_TEXT_MAX];

	if (n != 0)
		fprintf(out, "  refused        %s %s%s over its quota\n",
		    human_count(count, n), what, human_s(n));
}

void
quota_text_print(FILE *out, const Tributary__QuotaState *q)
{
	char a[HUMAN_TEXT_MAX], b[HUMAN_TEXT_MAX];

	if (q->bytes_per_second != 0)
		fprintf(out, "  quota          %s a second\n",
		    human_bytes(a, q->bytes_per_second));
	if (q->held_times != 0)
		fprintf(out, "  held back      %s time%s, %s in all\n",
		    human_count(a, q->held_times), human_s(q->held_times),
		    human_ms(b, q->held_ms));
	if (q->dropped_chunks != 0)
		fprintf(out, "  dropped        %s packets in %s chunks\n",
		    human_count(a, q->dropped_packets),
		    human_count(b, q->dropped_chunks));
	print_refused(out, q->refused_producers, "producer");
	print_refused(out, q->refused_connections, "connection");
	print_refused(out, q->refused_data_sources, "data source");
	print_refused(out, q->refused_sequences, "sequence");
}

void
quota_text_json(FILE *out, const Tributary__QuotaState *q)
{
	fprintf(out, ", \"quota\": {\"bytes_per_second\": %" PRIu64
	    ", \"held_times\": %" PRIu64 ", \"held_ms\": %" PRIu64
	    ", \"dropped_chunks\": %" PRIu64 ", \"dropped_packets\": %" PRIu64
	    ", \"dropped_bytes\": %" PRIu64 ", \"sequences\": %" PRIu32,
	    q->bytes_per_second, q->held_times, q->held_ms, q->dropped_chunks,
	    q->dropped_packets, q->dropped_bytes, q->sequences);
	fprintf(out, ", \"refused\": {\"producers\": %" PRIu64
	    ", \"connections\": %" PRIu64 ", \"data_sources\": %" PRIu64
	    ", \"sequences\": %" PRIu64 "}}", q->refused_producers,
	    q->refused_connections, q->refused_data_sources,
	    q->refused_sequences);
}
