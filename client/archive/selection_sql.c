#include "client/archive/selection_sql.h"

#include <stdio.h>
#include <string.h>

#include "client/archive/selection.h"
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
	selection_sql_add(q, text);
	add_value(q, CATALOG_INT(v));
}

/* Our patterns have no "[": in SQL's it is a class of characters. */
static const char *
pattern(struct selection_sql *q, const char *before, const char *name)
{
	char *out;
	size_t n;

	if (q->n_patterns == sizeof(q->patterns) / sizeof(q->patterns[0])) {
		q->too_long = true;
		return "";
	}
	out = q->patterns[q->n_patterns++];
	n = (size_t)snprintf(out, SELECTION_PATTERN_BYTES, "%s", before);
	for (; *name != '\0'; name++) {
		if (n + 4 > SELECTION_PATTERN_BYTES) {
			q->too_long = true;
			break;
		}
		if (*name == '[') {
			memcpy(out + n, "[[]", 3);
			n += 3;
		} else {
			out[n++] = *name;
		}
	}
	out[n] = '\0';
	return out;
}

void
selection_sql_name(struct selection_sql *q, const char *column,
    const char *name)
{
	selection_sql_add(q, column);
	if (glob_is_pattern(name)) {
		selection_sql_add(q, " GLOB ?");
		add_value(q, CATALOG_STR(pattern(q, "", name)));
	} else {
		selection_sql_add(q, " = ?");
		add_value(q, CATALOG_STR(name));
	}
}

void
selection_sql_processes(struct selection_sql *q, const struct selection *s)
{
	selection_sql_add(q, " IN (SELECT p.id FROM processes AS p WHERE (");
	selection_sql_name(q, "p.name", s->process);
	selection_sql_add(q, " OR p.name GLOB ?)");
	add_value(q, CATALOG_STR(pattern(q, "*/", s->process)));
	if (s->machine != NULL) {
		selection_sql_add(q, " AND ");
		selection_sql_name(q, "p.machine", s->machine);
	}
	selection_sql_add(q, ")");
}

/*
 * The machine's own packets are to be of the time, where it says theirs.  "+":
 * by the segment and not by an index of names, which has as many rows as a name
 * is common.
 */
static void
add_machine(struct selection_sql *q, const struct selection *s)
{
	selection_sql_add(q, " AND EXISTS (SELECT 1 FROM machines AS m "
	    "WHERE m.segment = s.id AND ");
	selection_sql_name(q, "+m.name", s->machine);
	if (s->has_time) {
		selection_sql_integer(q, " AND (m.class IS NULL OR "
		    "(m.first_ns <= ?", s->to_ns);
		selection_sql_integer(q, " AND m.last_ns >= ?))", s->from_ns);
	}
	selection_sql_add(q, ")");
}

void
selection_sql_conditions(struct selection_sql *q, const struct selection *s)
{
	if (s->machine != NULL)
		add_machine(q, s);
	if (s->recording != NULL) {
		selection_sql_add(q, " AND ");
		selection_sql_name(q, "s.recording", s->recording);
	}
	if (s->lost)
		selection_sql_add(q, " AND s.lost > 0");
	if (s->trigger != NULL) {
		selection_sql_add(q, " AND EXISTS (SELECT 1 FROM triggers AS t "
		    "WHERE t.segment = s.id AND ");
		selection_sql_name(q, "+t.name", s->trigger);
		selection_sql_add(q, ")");
	}
	if (s->process != NULL) {
		selection_sql_add(q, " AND EXISTS (SELECT 1 FROM seen AS x "
		    "WHERE x.segment = s.id AND x.process");
		selection_sql_processes(q, s);
		selection_sql_add(q, ")");
	}
}
