#include "client/ftrace/format/event_format.h"

#include <stdlib.h>
#include <string.h>

#include "client/ftrace/format/format_lines.h"
#include "transport/base/failure.h"

/* Tracepoints, and the kernel's own print, have ids of 16 bits. */
#define ID_MAX UINT16_MAX

/*
 * One block: the format, its fields (all, until they are sorted: common ones
 * come first in the text), then text.
 */
struct block {
	struct event_format format;
	char *at; /* the next byte of text; there is always room */
	struct event_field fields[];
};

static bool
words_are(const struct format_words *w, const char *text)
{
	return w->len == strlen(text) && memcmp(w->at, text, w->len) == 0;
}

static bool
words_begin(const struct format_words *w, const char *text)
{
	size_t n = strlen(text);

	return w->len >= n && memcmp(w->at, text, n) == 0;
}

static const char *
keep(struct block *b, const char *text, size_t len)
{
	char *kept = b->at;

	if (len > 0)
		memcpy(kept, text, len);
	kept[len] = '\0';
	b->at += len + 1;
	return kept;
}

static bool
is_char(const struct format_words *type)
{
	return words_are(type, "char") || words_are(type, "const char");
}

/* "__data_loc char[]" or the like, behind its first word. */
static enum event_field_kind
located(const struct format_line *line, size_t skip,
    enum event_field_kind text)
{
	struct format_words rest = { line->type.at + skip,
	    line->type.len - skip };

	if (line->size != 4)
		return EVENT_FIELD_BYTES;
	return words_are(&rest, "char[]") || words_are(&rest, "char []") ?
	    text : text + 1;
}

static enum event_field_kind
kind_of(const struct format_line *line)
{
	struct format_words pointed = line->type;

	if (words_begin(&line->type, "__data_loc "))
		return located(line, 11, EVENT_FIELD_DATA_LOC_TEXT);
	if (words_begin(&line->type, "__rel_loc "))
		return located(line, 10, EVENT_FIELD_REL_LOC_TEXT);
	/* Before 5.18 print has "char buf" of size 0, without brackets. */
	if (line->size == 0)
		return is_char(&line->type) ? EVENT_FIELD_TEXT_REST :
		    EVENT_FIELD_BYTES;
	if (line->is_array)
		return is_char(&line->type) ? EVENT_FIELD_TEXT :
		    EVENT_FIELD_BYTES;
	if (line->type.len > 0 && line->type.at[line->type.len - 1] == '*' &&
	    (line->size == 4 || line->size == 8)) {
		do
			pointed.len--;
		while (pointed.len > 0 && pointed.at[pointed.len - 1] == ' ');
		return is_char(&pointed) ? EVENT_FIELD_TEXT_POINTER :
		    EVENT_FIELD_POINTER;
	}
	switch (line->size) {
	case 1:
	case 2:
	case 4:
	case 8:
		return EVENT_FIELD_NUMBER;
	}
	return EVENT_FIELD_BYTES;
}

static void
add_field(struct block *b, const struct format_line *line)
{
	struct event_format *f = &b->format;
	struct event_field *field = &b->fields[f->n_common + f->n_fields];

	field->name = keep(b, line->name.at, line->name.len);
	field->type = keep(b, line->type.at, line->type.len);
	field->offset = (uint16_t)line->offset;
	field->size = (uint16_t)line->size;
	field->is_signed = line->is_signed;
	field->kind = kind_of(line);
	if (line->offset + line->size > f->size)
		f->size = (uint16_t)(line->offset + line->size);
	/* Each event has the common fields first. */
	if (f->n_fields == 0 && words_begin(&line->name, "common_"))
		f->n_common++;
	else
		f->n_fields++;
}

/* Everything that is read of every record without looking at its format. */
static bool
has_common_fields(struct event_format *f)
{
	bool type = false, pid = false;
	size_t i;

	for (i = 0; i < f->n_common; i++) {
		const struct event_field *c = &f->common[i];

		if (strcmp(c->name, "common_type") == 0)
			type = c->offset == 0 && c->size == 2;
		if (strcmp(c->name, "common_pid") == 0) {
			pid = c->size == 4;
			f->pid_offset = c->offset;
		}
	}
	return type && pid;
}

static int
take_lines(struct block *b, const char *text, size_t len, char *err,
    size_t err_size)
{
	struct event_format *f = &b->format;
	const char *at = text, *end = text + len;
	struct format_words other;
	struct format_line line;
	uint32_t id;

	for (;;) {
		switch (format_lines_next(&at, end, &line, &other)) {
		case FORMAT_LINE:
			if (f->n_common + f->n_fields ==
			    EVENT_FORMAT_FIELDS_MAX)
				return FAILURE(err, err_size,
				    "more than %u fields",
				    EVENT_FORMAT_FIELDS_MAX);
			add_field(b, &line);
			break;
		case FORMAT_OTHER:
			if (f->name == NULL && words_begin(&other, "name: "))
				f->name = keep(b, other.at + 6, other.len - 6);
			else if (format_lines_number(&other, "ID", ID_MAX, &id))
				f->id = (uint16_t)id;
			/* All else is how the kernel prints a record. */
			if (words_begin(&other, "print fmt:"))
				return 0;
			break;
		case FORMAT_BROKEN:
			return FAILURE(err, err_size, "no field: %.*s",
			    (int)(other.len < 80 ? other.len : 80), other.at);
		case FORMAT_THE_END:
			return FAILURE(err, err_size,
			    "ends before its print fmt");
		}
	}
}

/* Lines are at least as many as fields. */
static size_t
count_lines(const char *text, size_t len)
{
	const char *end = text + len;
	size_t n = 1;

	while (n < EVENT_FORMAT_FIELDS_MAX && text < end &&
	    (text = memchr(text, '\n', (size_t)(end - text))) != NULL) {
		text++;
		n++;
	}
	return n;
}

/* The words of a text and their NULs take no more than the text itself. */
static struct block *
block_new(const char *group, const char *text, size_t len)
{
	size_t n = count_lines(text, len), group_len = strlen(group);
	struct block *b;

	b = malloc(sizeof(*b) + n * sizeof(b->fields[0]) + group_len + 1 + len);
	if (b == NULL)
		return NULL;
	memset(b, 0, sizeof(*b));
	b->at = (char *)(b->fields + n);
	b->format.group = keep(b, group, group_len);
	b->format.common = b->fields;
	return b;
}

struct event_format *
event_format_parse(const char *group, const char *text, size_t len, char *err,
    size_t err_size)
{
	struct event_format *f;
	struct block *b;

	if (len > EVENT_FORMAT_TEXT_MAX) {
		(void)FAILURE(err, err_size, "longer than %u bytes",
		    EVENT_FORMAT_TEXT_MAX);
		return NULL;
	}
	if ((b = block_new(group, text, len)) == NULL) {
		(void)FAILURE(err, err_size, "no memory");
		return NULL;
	}
	f = &b->format;
	if (take_lines(b, text, len, err, err_size) < 0)
		goto fail;
	if (f->name == NULL || f->id == 0) {
		(void)FAILURE(err, err_size, "has no name or no ID");
		goto fail;
	}
	if (!has_common_fields(f)) {
		(void)FAILURE(err, err_size,
		    "has no common_type and common_pid as we know them");
		goto fail;
	}
	f->fields = f->common + f->n_common;
	return f;

fail:
	event_format_free(f);
	return NULL;
}

/* The format is the first member of its block. */
void
event_format_free(struct event_format *f)
{
	free(f);
}

const struct event_field *
event_format_field(const struct event_format *f, const char *name)
{
	size_t i;

	for (i = 0; i < f->n_fields; i++) {
		if (strcmp(f->fields[i].name, name) == 0)
			return &f->fields[i];
	}
	return NULL;
}
