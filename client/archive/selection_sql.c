#include "client/archive/selection_sql.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "transport/base/glob.h"

void
selection_sql_init(struct selection_sql *q)
{
	q->text[0] = '\0';
	q->len = q->n = q->n_patterns = 0;
	q->too_long = false;
}

void
selection_sql_add(struct selection_sql *q, const char *text)
{
	size_t n = strlen(text);

	if (n >= sizeof(q->text) - q->len) {
		q->too_long = true;
		return;
	}
	memcpy(q->text + q->len, text, n + 1);
	q->len += n;
}

static void
add_value(struct selection_sql *q, struct catalog_value v)
{
	if (q->n == SELECTION_SQL_VALUES)
		q->too_long = true;
	else
		q->values[q->n++] = v;
}

void
selection_sql_integer(struct selection_sql *q, const char *text, int64_t v)
{
	char number[24];

	snprintf(number, sizeof(number), "%" PRId64, v);
	selection_sql_add(q, text);
	selection_sql_add(q, number);
}

/* The pattern of a program at any path. */
static const char *
pattern(struct selection_sql *q, const char *name)
{
	char *out;
	int n;

	if (q->n_patterns == sizeof(q->patterns) / sizeof(q->patterns[0])) {
		q->too_long = true;
		return "";
	}
	out = q->patterns[q->n_patterns++];
	n = snprintf(out, SELECTION_PATTERN_BYTES, "*/%s", name);
	if (n < 0 || n >= (int)SELECTION_PATTERN_BYTES)
		q->too_long = true;
	return out;
}

void
selection_sql_name(struct selection_sql *q, const char *column,
    const char *name)
{
	selection_sql_add(q, column);
	if (glob_is_pattern(name)) {
		selection_sql_add(q, " GLOB ?");
		add_value(q, CATALOG_GLOB(name));
	} else {
		selection_sql_add(q, " = ?");
		add_value(q, CATALOG_STR(name));
	}
}

void
selection_sql_program(struct selection_sql *q, const char *column,
    const char *name)
{
	selection_sql_add(q, "(");
	selection_sql_name(q, column, name);
	selection_sql_add(q, " OR ");
	selection_sql_add(q, column);
	selection_sql_add(q, " GLOB ?)");
	add_value(q, CATALOG_GLOB(pattern(q, name)));
}
