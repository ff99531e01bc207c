#include "client/show/quota_text.h"

#include "protos/json_out.h"
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
quota_text_json(struct json_out *j, const Tributary__QuotaState *q)
{
	json_object(j, "quota");
	json_uint(j, "bytes_per_second", q->bytes_per_second);
	json_uint(j, "held_times", q->held_times);
	json_uint(j, "held_ms", q->held_ms);
	json_uint(j, "dropped_chunks", q->dropped_chunks);
	json_uint(j, "dropped_packets", q->dropped_packets);
	json_uint(j, "dropped_bytes", q->dropped_bytes);
	json_uint(j, "sequences", q->sequences);
	json_object(j, "refused");
	json_uint(j, "producers", q->refused_producers);
	json_uint(j, "connections", q->refused_connections);
	json_uint(j, "data_sources", q->refused_data_sources);
	json_uint(j, "sequences", q->refused_sequences);
	json_object_end(j);
	json_object_end(j);
}
