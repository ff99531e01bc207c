#include "client/command/machine_filter.h"

#include <stdio.h>

#include "protos/fields.h"
#include "transport/base/failure.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

static bool
has_filter(const struct pb_field *source)
{
	struct pb_reader r;
	struct pb_field f;
	bool found = false;

	PB_FOREACH(&f, &r, source->data, source->len)
		found |= f.number == TraceConfig_DataSource_machine_name_filter;
	return found;
}

/*
 * Returns the field of the config that chooses machines itself, where the
 * command line does not say the same; or NULL.
 */
static const char *
said_already(const struct machine_filter *m, const uint8_t *config,
    size_t len)
{
	const char *what = NULL;
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, config, len) {
		if (f.number == TraceConfig_trace_all_machines &&
		    f.value != 0 && !m->all)
			what = "trace_all_machines";
		else if (f.number == TraceConfig_data_sources &&
		    f.wire == PB_BYTES && has_filter(&f))
			what = "machine_name_filter";
	}
	return what;
}

static void
put_source(const struct machine_filter *m, const struct pb_field *f,
    struct pb_writer *out)
{
	size_t mark = pb_nest_begin(out, TraceConfig_data_sources), i;

	pb_put_raw(out, f->data, f->len);
	for (i = 0; i < m->n_names; i++)
		pb_put_string(out, TraceConfig_DataSource_machine_name_filter,
		    m->names[i]);
	pb_nest_end(out, mark);
}

int
machine_filter_put(const struct machine_filter *m, const uint8_t *config,
    size_t len, struct pb_writer *out, char *err, size_t err_size)
{
	const char *what = said_already(m, config, len);
	struct pb_reader r;
	struct pb_field f;

	if (what != NULL)
		return FAILURE(err, err_size, "the config says itself which "
		    "machines to record (%s): leave out %s, or take it out of "
		    "the config", what,
		    m->n_names > 0 ? "--machine" : "--all-machines");
	PB_FOREACH(&f, &r, config, len) {
		if (f.number == TraceConfig_data_sources && f.wire == PB_BYTES)
			put_source(m, &f, out);
		else if (f.number != TraceConfig_trace_all_machines)
			pb_put_raw(out, f.start, (size_t)(r.p - f.start));
	}
	if (m->all)
		pb_put_uint(out, TraceConfig_trace_all_machines, 1);
	if (!out->failed && !r.bad)
		return 0;
	return FAILURE(err, err_size, out->failed ? "out of memory" :
	    "the config is damaged");
}
