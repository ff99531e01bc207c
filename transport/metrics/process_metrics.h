/* process_metrics: what the kernel says of this process, as a message. */
#ifndef TRANSPORT_METRICS_PROCESS_METRICS_H
#define TRANSPORT_METRICS_PROCESS_METRICS_H

#include <stdint.h>

struct Tributary__ProcessMetrics;
struct pb_writer;

/* Sets *out, with all of its fields. */
void process_metrics_read(struct Tributary__ProcessMetrics *out);
/* Appends the message as this field. */
void process_metrics_put(struct pb_writer *w, uint32_t field);

#endif /* TRANSPORT_METRICS_PROCESS_METRICS_H */
