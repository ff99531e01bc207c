#include "transport/metrics/process_metrics.h"

#include <stdbool.h>

#include "protos/metrics.pb-c.h"
#include "transport/process/process_stats.h"
#include "transport/wire/pb_writer.h"

/* Seven varints, of 11 bytes at most. */
#define ENCODED_MAX 80u

void
process_metrics_read(struct Tributary__ProcessMetrics *out)
{
	struct process_stats s;

	process_stats_read(&s);
	tributary__process_metrics__init(out);
	out->has_cpu_ns = out->has_resident_bytes = true;
	out->has_virtual_bytes = out->has_open_fds = out->has_max_fds = true;
	out->has_start_ns = out->has_threads = true;
	out->cpu_ns = s.cpu_ns;
	out->resident_bytes = s.resident_bytes;
	out->virtual_bytes = s.virtual_bytes;
	out->open_fds = s.open_fds;
	out->max_fds = s.max_fds;
	out->start_ns = s.start_ns;
	out->threads = s.threads;
}

void
process_metrics_put(struct pb_writer *w, uint32_t field)
{
	Tributary__ProcessMetrics m;
	uint8_t encoded[ENCODED_MAX];

	process_metrics_read(&m);
	pb_put_bytes(w, field, encoded,
	    tributary__process_metrics__pack(&m, encoded));
}
