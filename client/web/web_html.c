#include "client/web/web_html.h"

#include <string.h>

#include "protos/utf8.h"

void
web_html_text(FILE *out, const char *text)
{
	size_t len = strlen(text), used;
	char shown[UTF8_SHOWN];

	for (; len > 0; text += used, len -= used) {
		used = utf8_show(text, len, "", shown);
		if (strcmp(shown, "&") == 0)
			fputs("&amp;", out);
		else if (strcmp(shown, "<") == 0)
			fputs("&lt;", out);
		else if (strcmp(shown, ">") == 0)
			fputs("&gt;", out);
		else if (strcmp(shown, "\"") == 0)
			fputs("&quot;", out);
		else if (strcmp(shown, "'") == 0)
			fputs("&#39;", out);
		else
			fputs(shown, out);
	}
}

void
web_html_query_value(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if ((*text >= 'a' && *text <= 'z') ||
		    (*text >= 'A' && *text <= 'Z') ||
		    (*text >= '0' && *text <= '9') || *text == '-')
			fputc(*text, out);
		else
			fprintf(out, "%%%02X", (unsigned char)*text);
	}
}

/* ---- tables ---- */

void
web_html_begin_table(FILE *out, const char *caption,
    const struct web_column *columns, size_t n)
{
	size_t i;

	fprintf(out, "<div class=\"wide\"><table class=\"cards\" role=\"table\" "
	    "aria-label=\"%s\"><thead role=\"rowgroup\"><tr role=\"row\">",
	    caption);
	for (i = 0; i < n; i++)
		fprintf(out, "<th scope=\"col\" role=\"columnheader\"%s>%s</th>",
		    columns[i].number ? " class=\"n\"" : "", columns[i].head);
	fputs("</tr></thead><tbody role=\"rowgroup\">\n", out);
}

void
web_html_end_table(FILE *out)
{
	fputs("</tbody></table></div>\n", out);
}

void
web_html_begin_row(FILE *out, const char *head)
{
	fputs("<tr role=\"row\"><th scope=\"row\" role=\"rowheader\">", out);
	web_html_text(out, head);
	fputs("</th>", out);
}

void
web_html_end_row(FILE *out)
{
	fputs("</tr>\n", out);
}

void
web_html_cell(FILE *out, const struct web_column *c, const char *text)
{
	fprintf(out, "<td role=\"cell\" data-head=\"%s\"%s>", c->head,
	    c->number ? " class=\"n\"" : "");
	web_html_text(out, text);
	fputs("</td>", out);
}

void
web_html_warning(FILE *out, const struct web_column *c, const char *text)
{
	fprintf(out, "<td role=\"cell\" data-head=\"%s\" class=\"warn%s\">"
	    "<span>\xe2\x9a\xa0 ", c->head, c->number ? " n" : "");
	web_html_text(out, text);
	fputs("</span></td>", out);
}

void
web_html_begin_page(FILE *out, const char *title, const char *about,
    unsigned refresh_s)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
	    "<meta name=\"viewport\" content=\"width=device-width,"
	    "initial-scale=1\">", out);
	if (refresh_s > 0)
		fprintf(out, "<meta http-equiv=\"refresh\" content=\"%u\">",
		    refresh_s);
	fputs("<title>Tributary: ", out);
	web_html_text(out, title);
	fputs("</title><link rel=\"stylesheet\" href=\"/style.css\"></head>"
	    "<body>\n<header><h1>Tributary</h1><p>", out);
	web_html_text(out, about);
	fputs("</p></header>\n<main>\n", out);
}
