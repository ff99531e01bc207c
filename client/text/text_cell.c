#include "client/text/text_cell.h"

#include <string.h>

#include "protos/utf8.h"
#include "transport/base/human_numbers.h"

const char *
text_cell_plain(const char *text, char out[TEXT_CELL_MAX])
{
	if (text == NULL || text[0] == '\0')
		return "-";
	return utf8_escape(out, TEXT_CELL_MAX, text, strlen(text), "");
}

void
text_cell_put(FILE *out, const char *text, int width)
{
	int w = human_width(text);

	fprintf(out, "%s%*s  ", text, width > w ? width - w : 0, "");
}

int
text_cell_widen(int width, const char *text)
{
	int w = human_width(text);

	return w > width ? w : width;
}
