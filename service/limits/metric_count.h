/* metric_count: one labelled value of a family in QueryMetricsReply. */
#ifndef SERVICE_LIMITS_METRIC_COUNT_H
#define SERVICE_LIMITS_METRIC_COUNT_H

#include <stdint.h>

struct pb_writer;

/* Appends a Count as this field. */
void metric_count_put(struct pb_writer *w, uint32_t field, const char *label,
    uint64_t n);

#endif /* SERVICE_LIMITS_METRIC_COUNT_H */
