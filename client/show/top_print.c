#include "client/show/top_print.h"

#include <stdint.h>
#include <string.h>

#include "client/show/top_model.h"
#include "client/show/top_table.h"

#define N_TABLES 3u

/*
 * How many lines each table gets of `left`, titles included: what one does not
 * need, others have.
 */
static void
share(const struct top_table *const *tables, size_t *lines, size_t n,
    size_t left)
{
	size_t i, want, rest = n;

	for (i = 0; i < n; i++, rest--) {
		want = tables[i]->all + 1;
		lines[i] = left / rest;
		/* The last ones have what is left over by the first. */
		if (want < lines[i])
			lines[i] = want;
		left -= lines[i];
	}
	for (i = 0; i < n && left > 0; i++) {
		want = tables[i]->all + 1 - lines[i];
		if (want > left)
			want = left;
		lines[i] += want;
		left -= want;
	}
	/* A title without a row says nothing. */
	for (i = 0; i < n; i++)
		if (lines[i] == 1 && tables[i]->all > 0)
			lines[i] = 0;
}

/* ---- tables of several collectors ---- */

/* The first column names the collector of each row. */
struct merged {
	struct top_table table;
	struct top_column columns[TOP_MAX_COLUMNS];
};

static void
add_rows(struct merged *all, const struct top_model *m,
    const struct top_table *from)
{
	struct top_row *row;
	size_t i;

	for (i = 0; i < from->n_rows; i++) {
		row = top_table_add(&all->table, from->rows[i].weight);
		if (row == NULL)
			continue;
		memcpy(row->cells[0], top_model_collector(m), TOP_CELL);
		memcpy(row->cells[1], from->rows[i].cells,
		    (TOP_MAX_COLUMNS - 1) * TOP_CELL);
		memcpy(&row->colours[1], from->rows[i].colours,
		    (TOP_MAX_COLUMNS - 1) * sizeof(row->colours[0]));
	}
	/* Rows that the collector's own table had no room for. */
	all->table.all += from->all - from->n_rows;
}

static void
merge(struct merged *all, struct top_model *const *models, size_t n,
    enum top_model_table which)
{
	const struct top_table *t;
	size_t i;

	*all = (struct merged){ .columns = { { "COLLECTOR", 0, false } } };
	all->table.columns = all->columns;
	for (i = 0; i < n; i++) {
		t = top_model_table(models[i], which);
		if (t->n_columns + 1 > all->table.n_columns)
			all->table.n_columns = t->n_columns + 1;
		all->table.coloured = t->coloured;
		add_rows(all, models[i], t);
	}
	t = top_model_table(models[0], which);
	memcpy(&all->columns[1], t->columns,
	    (all->table.n_columns - 1) * sizeof(*t->columns));
	top_table_sort(&all->table);
}

/* ---- the screen ---- */

/* left: lines behind those of the collectors. */
static void
print_tables(FILE *out, const struct top_table *const *tables,
    const struct top_size *size, size_t left)
{
	size_t lines[N_TABLES], i;

	/* An empty line before each table, and the last line is left free. */
	share(tables, lines, N_TABLES, left < 4 ? 0 : left - 4);
	for (i = 0; i < N_TABLES; i++) {
		if (lines[i] < 2)
			continue;
		fputs(size->end, out);
		(void)top_table_print(out, tables[i], size->width,
		    lines[i] - 1, size->end);
	}
}

void
top_print(FILE *out, struct top_model *const *models, size_t n,
    const struct top_size *size)
{
	size_t left = size->height == 0 ? SIZE_MAX / 2 : size->height, i;
	const struct top_table *tables[N_TABLES];
	struct merged merged[N_TABLES];

	for (i = 0; i < n && left > 0; i++) {
		top_model_first_line(out, models[i], size->width);
		if (--left > 0)
			fputs(size->end, out);
	}
	for (i = 0; i < N_TABLES; i++) {
		tables[i] = top_model_table(models[0],
		    (enum top_model_table)i);
		if (n == 1)
			continue;
		merge(&merged[i], models, n, (enum top_model_table)i);
		tables[i] = &merged[i].table;
	}
	print_tables(out, tables, size, left);
	for (i = 0; n > 1 && i < N_TABLES; i++)
		top_table_done(&merged[i].table);
}
