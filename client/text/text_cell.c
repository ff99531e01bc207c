#include "client/text/text_cell.h"

#include <string.h>

#include "client/text/text_width.h"
#include "protos/utf8.h"

const char *
text_cell_cut(const char *text, char *out, size_t size)
{
	if (text == NULL || text[0] == '\0')
		return "-";
	return utf8_escape(out, size, text, strlen(text), "");
}

const char *
text_cell_plain(const char *text, char out[TEXT_CELL_MAX])
{
	return text_cell_cut(text, out, TEXT_CELL_MAX);
}

void
text_cell_put(FILE *out, const char *text, int width)
{
	text_cell_put_in(out, text, width, false, COLOUR_NONE);
}

void
text_cell_put_in(FILE *out, const char *text, int width, bool coloured,
    enum colour c)
{
	int w = text_width(text);

	colour_put(out, coloured, c, text);
	fprintf(out, "%*s  ", width > w ? width - w : 0, "");
}

int
text_cell_widen(int width, const char *text)
{
	int w = text_width(text);

	return w > width ? w : width;
}
