/*
 * The kernel's descriptions of records and pages, as any bytes: what is taken
 * has its fields inside of the record, and names that can be printed.
 */
#include <stdlib.h>
#include <string.h>

#include "client/ftrace/format/event_format.h"
#include "client/ftrace/format/page_layout.h"
#include "tests/fuzz/texts/texts.h"

static void
check_fields(const struct event_format *f, const struct event_field *field,
    size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (field[i].offset + field[i].size > f->size ||
		    strchr(field[i].name, '\n') != NULL ||
		    strchr(field[i].type, '\n') != NULL)
			abort();
	}
}

void
fuzz_ftrace_format(const uint8_t *data, size_t size)
{
	struct page_layout layout;
	struct event_format *f;
	char err[256] = "";

	f = event_format_parse("group", (const char *)data, size, err,
	    sizeof(err));
	if (f == NULL && err[0] == '\0')
		abort();
	if (f != NULL) {
		check_fields(f, f->common, f->n_common);
		check_fields(f, f->fields, f->n_fields);
		if (f->id == 0 || f->pid_offset + 4 > f->size)
			abort();
		event_format_free(f);
	}
	if (page_layout_parse(&layout, (const char *)data, size, err,
	    sizeof(err)) == 0 && layout.page_size <= layout.data_offset)
		abort();
}
