/*
 * web_html: text and tables of pages.  Everything that is not a literal of ours
 * is escaped.  Pure, but for the file that it prints to.
 */
#ifndef CLIENT_WEB_WEB_HTML_H
#define CLIENT_WEB_WEB_HTML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Text as HTML has it, for contents and quoted values alike. */
void web_html_text(FILE *out, const char *text);
/* Text as a value in a query. */
void web_html_query_value(FILE *out, const char *text);

/*
 * Roles are said in so many words, as a narrow screen shows rows as blocks, and
 * browsers then forget that it is a table.
 */
struct web_column {
	const char *head;
	bool number;
};

void web_html_begin_table(FILE *out, const char *caption,
    const struct web_column *columns, size_t n);
void web_html_end_table(FILE *out);
void web_html_begin_row(FILE *out, const char *head);
void web_html_end_row(FILE *out);
void web_html_cell(FILE *out, const struct web_column *c, const char *text);
/* A cell that wants attention; a sign says so, beside the colour. */
void web_html_warning(FILE *out, const struct web_column *c, const char *text);

/* The head of a page up to <main>. */
void web_html_begin_page(FILE *out, const char *title, const char *about,
    unsigned refresh_s);

#endif /* CLIENT_WEB_WEB_HTML_H */
