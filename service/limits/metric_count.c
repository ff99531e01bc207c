#include "service/limits/metric_count.h"

#include "protos/fields.h"
#include "transport/wire/pb_writer.h"

void
metric_count_put(struct pb_writer *w, uint32_t field, const char *label,
    uint64_t n)
{
	size_t mark = pb_nest_begin(w, field);

	pb_put_string(w, Count_label, label);
	pb_put_uint(w, Count_value, n);
	pb_nest_end(w, mark);
}
