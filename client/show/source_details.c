#include "client/show/source_details.h"

#include "client/text/text_cell.h"
#include "client/text/text_width.h"
#include "protos/data_source.pb-c.h"

typedef Perfetto__Protos__DataSourceDescriptor descriptor;

size_t
source_details_n_categories(const descriptor *d)
{
	size_t n = 0;

	if (d->track_event_descriptor != NULL)
		n += d->track_event_descriptor->n_available_categories;
	if (d->ftrace_descriptor != NULL)
		n += d->ftrace_descriptor->n_atrace_categories;
	return n;
}

struct source_category
source_details_category(const descriptor *d, size_t i)
{
	size_t n = d->track_event_descriptor == NULL ? 0 :
	    d->track_event_descriptor->n_available_categories;
	const Perfetto__Protos__FtraceDescriptor__AtraceCategory *a;
	const Perfetto__Protos__TrackEventCategory *t;

	if (i >= n) {
		a = d->ftrace_descriptor->atrace_categories[i - n];
		return (struct source_category){
			.name = a->name,
			.description = a->description,
		};
	}
	t = d->track_event_descriptor->available_categories[i];
	return (struct source_category){
		.name = t->name,
		.description = t->description,
		.tags = t->tags,
		.n_tags = t->n_tags,
	};
}

bool
source_details_categories(FILE *out, const descriptor *d, int columns)
{
	size_t i, n = source_details_n_categories(d);
	char text[TEXT_CELL_MAX];
	const char *name;
	int used = 0;

	for (i = 0; i < n; i++) {
		name = text_cell_plain(source_details_category(d, i).name,
		    text);
		used += text_width(name) + 1;
		if (columns != 0 && used > columns && i > 0) {
			fprintf(out, ",... (%zu more)", n - i);
			break;
		}
		fprintf(out, "%s%s", i == 0 ? "" : ",", name);
	}
	return n > 0;
}
