#include "protos/text_error.h"

#include <stdio.h>
#include <string.h>

#include "protos/utf8.h"

/* The byte order mark that some editors put first. */
#define BOM     "\xef\xbb\xbf"
#define BOM_LEN 3

/*
 * Characters of a long line that are shown before and after the error; of a
 * line that goes wrong early, as many in all.
 */
#define SHOW_BEFORE 60
#define SHOW_AFTER  20

/* Room for those, at 4 bytes each. */
#define SHOW_SIZE ((SHOW_BEFORE + SHOW_AFTER) * 4 + 1)

/* The line with this number, without its end; NULL if there is none. */
static const char *
find_line(const char *text, size_t len, unsigned number, size_t *line_len)
{
	const char *end = text + len;
	const char *p = text;
	const char *eol;

	while (--number > 0) {
		if (p == end || (p = memchr(p, '\n', (size_t)(end - p))) == NULL)
			return NULL;
		p++;
	}
	eol = p == end ? NULL : memchr(p, '\n', (size_t)(end - p));
	if (eol == NULL)
		eol = end;
	if (eol > p && eol[-1] == '\r')
		eol--;
	*line_len = (size_t)(eol - p);
	return p;
}

/* Bytes up to the next character, as text_lex counts them. */
static size_t
step(const char *s, size_t len)
{
	size_t n = 1;

	if (((unsigned char)*s & 0x80) == 0)
		return 1;
	while (n < len && ((unsigned char)s[n] & 0xc0) == 0x80)
		n++;
	return n;
}

/*
 * The characters of a line around column (1 is the first) to show, and as
 * much space to caret as stands before it.  Tabs stay tabs in both.
 */
static void
show_line(const char *line, size_t len, unsigned column, char *show,
    char *caret)
{
	unsigned i;
	size_t n, k = 0;

	for (i = 1; len > 0 && (i < column + SHOW_AFTER ||
	    i <= SHOW_BEFORE + SHOW_AFTER); i++) {
		n = step(line, len);
		if (i + SHOW_BEFORE >= column) {
			if (n <= 4 && (*line == '\t' ||
			    utf8_printable(line, len) == n)) {
				memcpy(show + k, line, n);
				k += n;
			} else {
				show[k++] = '?';
			}
			if (i < column)
				*caret++ = *line == '\t' ? '\t' : ' ';
		}
		line += n;
		len -= n;
	}
	show[k] = '\0';
	strcpy(caret, "^");
}

void
text_error_format(const struct text_error *err, const char *file,
    const char *text, size_t len, char *out, size_t size)
{
	char show[SHOW_SIZE], caret[SHOW_BEFORE + 2];
	const char *line;
	size_t line_len;

	if (err->line == 0) {
		snprintf(out, size, "%s: error: %s", file, err->message);
		return;
	}
	/* The lexer does not count it either. */
	if (len >= BOM_LEN && memcmp(text, BOM, BOM_LEN) == 0) {
		text += BOM_LEN;
		len -= BOM_LEN;
	}
	line = find_line(text, len, err->line, &line_len);
	if (line == NULL || line_len == 0) {
		snprintf(out, size, "%s:%u:%u: error: %s", file, err->line,
		    err->column, err->message);
		return;
	}
	show_line(line, line_len, err->column, show, caret);
	snprintf(out, size, "%s:%u:%u: error: %s\n%s\n%s", file, err->line,
	    err->column, err->message, show, caret);
}
