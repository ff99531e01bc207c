#include "client/ftrace/format/page_layout.h"

#include <stdbool.h>
#include <string.h>

#include "client/ftrace/format/format_lines.h"
#include "transport/base/failure.h"

/* Fields of the header that we need, as bits. */
enum { TIMESTAMP = 1, COMMIT = 2, DATA = 4, ALL = 7 };

static bool
is_named(const struct format_line *line, const char *name)
{
	return line->name.len == strlen(name) &&
	    memcmp(line->name.at, name, line->name.len) == 0;
}

/* The bit of a field that is as it has to be. */
static int
take(struct page_layout *l, const struct format_line *line)
{
	if (is_named(line, "timestamp"))
		return line->offset == 0 && line->size == 8 ? TIMESTAMP : 0;
	if (is_named(line, "commit")) {
		l->commit_offset = (uint16_t)line->offset;
		l->commit_size = (uint16_t)line->size;
		return line->size == 4 || line->size == 8 ? COMMIT : 0;
	}
	if (is_named(line, "data")) {
		l->data_offset = (uint16_t)line->offset;
		l->page_size = line->offset + line->size;
		return DATA;
	}
	return 0;
}

int
page_layout_parse(struct page_layout *layout, const char *text, size_t len,
    char *err, size_t err_size)
{
	struct page_layout l = { 0 };
	const char *at = text, *end = text + len;
	enum format_lines_verdict verdict;
	struct format_words other;
	struct format_line line;
	int found = 0;

	while ((verdict = format_lines_next(&at, end, &line, &other)) !=
	    FORMAT_THE_END) {
		if (verdict == FORMAT_LINE)
			found |= take(&l, &line);
	}
	if (found != ALL || l.commit_offset < 8 ||
	    l.data_offset < l.commit_offset + l.commit_size ||
	    l.page_size <= l.data_offset)
		return FAILURE(err, err_size, "events/header_page: has not "
		    "the timestamp, commit and data that we know");
	*layout = l;
	return 0;
}
