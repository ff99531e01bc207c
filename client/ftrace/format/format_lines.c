#include "client/ftrace/format/format_lines.h"

#include <string.h>

/* A record, or a page's header, is no larger: offsets have 16 bits. */
#define PLACE_MAX UINT16_MAX

static void
skip_blanks(struct format_words *w)
{
	while (w->len > 0 && (*w->at == ' ' || *w->at == '\t')) {
		w->at++;
		w->len--;
	}
	while (w->len > 0 && (w->at[w->len - 1] == ' ' ||
	    w->at[w->len - 1] == '\t' || w->at[w->len - 1] == '\r'))
		w->len--;
}

static bool
skip_key(struct format_words *w, const char *key)
{
	size_t n = strlen(key);

	if (w->len <= n || memcmp(w->at, key, n) != 0 || w->at[n] != ':')
		return false;
	w->at += n + 1;
	w->len -= n + 1;
	skip_blanks(w);
	return true;
}

static bool
number(const struct format_words *w, uint32_t most, uint32_t *out)
{
	uint64_t v = 0;
	size_t i;

	if (w->len == 0)
		return false;
	for (i = 0; i < w->len; i++) {
		if (w->at[i] < '0' || w->at[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(w->at[i] - '0');
		if (v > most)
			return false;
	}
	*out = (uint32_t)v;
	return true;
}

bool
format_lines_number(const struct format_words *line, const char *key,
    uint32_t most, uint32_t *out)
{
	struct format_words w = *line;

	skip_blanks(&w);
	return skip_key(&w, key) && number(&w, most, out);
}

static bool
take_line(const char **at, const char *end, struct format_words *out)
{
	const char *nl;

	if (*at == end)
		return false;
	nl = memchr(*at, '\n', (size_t)(end - *at));
	out->at = *at;
	out->len = (size_t)((nl != NULL ? nl : end) - *at);
	*at = nl != NULL ? nl + 1 : end;
	skip_blanks(out);
	return true;
}

/* The words up to the next semicolon, which the kernel puts behind each part. */
static bool
take_part(struct format_words *rest, struct format_words *out)
{
	const char *semicolon = memchr(rest->at, ';', rest->len);

	if (semicolon == NULL)
		return false;
	out->at = rest->at;
	out->len = (size_t)(semicolon - rest->at);
	rest->len -= out->len + 1;
	rest->at = semicolon + 1;
	skip_blanks(rest);
	skip_blanks(out);
	return true;
}

static bool
is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	    (c >= '0' && c <= '9') || c == '_';
}

/*
 * Splits "unsigned long args[6]" and "const char *s".  A kernel's bit field is
 * "type name:3"; such a name has a colon, and is kept as it is.
 */
static void
split_name(struct format_words decl, struct format_line *line)
{
	size_t n;

	/* "__data_loc char[] name" has its brackets in the type. */
	line->is_array = decl.len > 0 && decl.at[decl.len - 1] == ']';
	while (line->is_array && decl.len > 0 && decl.at[decl.len - 1] != '[')
		decl.len--;
	if (line->is_array && decl.len > 0)
		decl.len--;
	skip_blanks(&decl);
	for (n = decl.len; n > 0 && (is_name_char(decl.at[n - 1]) ||
	    decl.at[n - 1] == ':'); n--)
		;
	line->name = (struct format_words){ decl.at + n, decl.len - n };
	line->type = (struct format_words){ decl.at, n };
	skip_blanks(&line->type);
}

static bool
take_field(struct format_words rest, struct format_line *line)
{
	struct format_words decl, part;
	uint32_t is_signed = 0;

	if (!take_part(&rest, &decl) ||
	    !take_part(&rest, &part) ||
	    !format_lines_number(&part, "offset", PLACE_MAX, &line->offset) ||
	    !take_part(&rest, &part) ||
	    !format_lines_number(&part, "size", PLACE_MAX, &line->size))
		return false;
	/* Kernels before 2.6.35 do not say. */
	if (take_part(&rest, &part) &&
	    !format_lines_number(&part, "signed", 1, &is_signed))
		return false;
	line->is_signed = is_signed != 0;
	split_name(decl, line);
	return line->offset + line->size <= PLACE_MAX;
}

enum format_lines_verdict
format_lines_next(const char **at, const char *end, struct format_line *line,
    struct format_words *other)
{
	struct format_words words;

	if (!take_line(at, end, &words))
		return FORMAT_THE_END;
	*other = words;
	if (!skip_key(&words, "field"))
		return FORMAT_OTHER;
	return take_field(words, line) ? FORMAT_LINE : FORMAT_BROKEN;
}
