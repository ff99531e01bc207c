#include "protos/text_lex.h"

#include <string.h>

#define BYTE_ORDER_MARK "\xef\xbb\xbf"
#define MAX_CODE_POINT 0x10ffff

/* ctype.h asks the locale; the format does not. */
static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_octal(char c)
{
	return c >= '0' && c <= '7';
}

static bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int
hex_value(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static bool
is_ascii(char c)
{
	return ((unsigned char)c & 0x80) == 0;
}

static bool
is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/*
 * Moves on by one byte.  A character counts at its last; so does a run of
 * bytes that belong to none.
 */
static void
advance(struct text_lex *l)
{
	char c = *l->p++;

	if (c == '\n') {
		l->line++;
		l->column = 1;
	} else if (is_ascii(c) || l->p == l->end || !is_continuation(*l->p)) {
		l->column++;
	}
}

static void
skip_space_and_comments(struct text_lex *l)
{
	for (; l->p < l->end; advance(l)) {
		if (*l->p == '#') {
			while (l->p < l->end && *l->p != '\n')
				advance(l);
			if (l->p == l->end)
				return;
		}
		if (memchr(" \t\n\r\v\f", *l->p, 6) == NULL)
			return;
	}
}

static struct text_token
bad(struct text_token t, const char *end, const char *problem)
{
	t.type = TEXT_TOKEN_BAD;
	t.len = (size_t)(end - t.start);
	t.problem = problem;
	return t;
}

/* Ends t before the lexer's position. */
static struct text_token
ended(const struct text_lex *l, struct text_token t, enum text_token_type type)
{
	t.type = type;
	t.len = (size_t)(l->p - t.start);
	return t;
}

static struct text_token
lex_word(struct text_lex *l, struct text_token t)
{
	while (l->p < l->end && (is_letter(*l->p) || is_digit(*l->p)))
		advance(l);
	return ended(l, t, TEXT_TOKEN_WORD);
}

static void
skip_digits(struct text_lex *l)
{
	while (l->p < l->end && is_digit(*l->p))
		advance(l);
}

static bool
next_is(const struct text_lex *l, const char *set)
{
	return l->p < l->end && *l->p != '\0' && strchr(set, *l->p) != NULL;
}

/*
 * Whether t, which begins with 0, has digits of its base: octal ones, or at
 * least one after an 0x (the lexer took no others).
 */
static bool
based_digits_are_valid(const struct text_token *t, bool hex)
{
	size_t i;

	if (hex)
		return t->len > 2;
	for (i = 1; i < t->len; i++) {
		if (!is_octal(t->start[i]))
			return false;
	}
	return true;
}

/* Reads the rest of a number after its integer part; returns its type. */
static enum text_token_type
lex_fraction(struct text_lex *l)
{
	enum text_token_type type = TEXT_TOKEN_INT;

	if (next_is(l, ".")) {
		type = TEXT_TOKEN_FLOAT;
		advance(l);
		skip_digits(l);
	}
	if (next_is(l, "eE")) {
		type = TEXT_TOKEN_FLOAT;
		advance(l);
		if (next_is(l, "+-"))
			advance(l);
		if (l->p == l->end || !is_digit(*l->p))
			return TEXT_TOKEN_BAD;
		skip_digits(l);
	}
	if (next_is(l, "fF")) {
		type = TEXT_TOKEN_FLOAT;
		advance(l);
	}
	return type;
}

static struct text_token
lex_number(struct text_lex *l, struct text_token t)
{
	enum text_token_type type;
	bool run_on = false;
	bool hex = *l->p == '0' && l->end - l->p > 1 &&
	    (l->p[1] == 'x' || l->p[1] == 'X');

	if (hex) {
		type = TEXT_TOKEN_INT;
		advance(l);
		advance(l);
		while (l->p < l->end && hex_value(*l->p) >= 0)
			advance(l);
	} else {
		skip_digits(l);
		type = lex_fraction(l);
	}
	/* "10s", "1.2.3": all of it is the offending word. */
	while (l->p < l->end &&
	    (is_letter(*l->p) || is_digit(*l->p) || *l->p == '.')) {
		run_on = true;
		advance(l);
	}
	t = ended(l, t, type);
	if (run_on || type == TEXT_TOKEN_BAD)
		return bad(t, l->p, "is not a number");
	if (type == TEXT_TOKEN_INT && *t.start == '0' &&
	    !based_digits_are_valid(&t, hex))
		return bad(t, l->p, hex ?
		    "is a hexadecimal number without digits" :
		    "begins with 0 and so is octal, digits 0 to 7");
	return t;
}

static size_t
put_utf8(uint32_t c, uint8_t *out)
{
	if (c < 0x80) {
		out[0] = (uint8_t)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (uint8_t)(0xc0 | c >> 6);
		out[1] = (uint8_t)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (uint8_t)(0xe0 | c >> 12);
		out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
		out[2] = (uint8_t)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (uint8_t)(0xf0 | c >> 18);
	out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
	out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
	out[3] = (uint8_t)(0x80 | (c & 0x3f));
	return 4;
}

/* Exactly n hex digits at p; NULL if they are not there. */
static const char *
hex_digits(const char *p, const char *end, unsigned n, uint32_t *out)
{
	*out = 0;
	for (; n > 0; n--, p++) {
		if (p >= end || hex_value(*p) < 0)
			return NULL;
		*out = *out << 4 | (uint32_t)hex_value(*p);
	}
	return p;
}

/* \uXXXX or \UXXXXXXXX, p at the u; two \u may form a surrogate pair. */
static const char *
unicode_escape(const char *p, const char *end, uint8_t *out, size_t *n)
{
	uint32_t c, low;

	if ((p = hex_digits(p + 1, end, *p == 'u' ? 4 : 8, &c)) == NULL)
		return NULL;
	if (c >= 0xd800 && c < 0xdc00) {
		if (end - p < 2 || p[0] != '\\' || p[1] != 'u' ||
		    (p = hex_digits(p + 2, end, 4, &low)) == NULL ||
		    low < 0xdc00 || low > 0xdfff)
			return NULL;
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	} else if ((c >= 0xdc00 && c < 0xe000) || c > MAX_CODE_POINT) {
		return NULL;
	}
	*n = put_utf8(c, out);
	return p;
}

/* Up to 3 octal digits at p, of which there is one. */
static const char *
octal_escape(const char *p, const char *end, uint8_t *out)
{
	unsigned v = 0, i;

	for (i = 0; i < 3 && p < end && is_octal(*p); i++, p++)
		v = v * 8 + (unsigned)(*p - '0');
	if (v > 0xff)
		return NULL;
	*out = (uint8_t)v;
	return p;
}

/* One or 2 hex digits, p at the x before them. */
static const char *
hex_escape(const char *p, const char *end, uint8_t *out)
{
	unsigned v = 0, i;

	for (i = 0, p++; i < 2 && p < end && hex_value(*p) >= 0; i++, p++)
		v = v * 16 + (unsigned)hex_value(*p);
	*out = (uint8_t)v;
	return i > 0 ? p : NULL;
}

/*
 * The escape whose backslash is before p: its bytes (at most 4, and fewer
 * than the escape has) to out.  Returns what follows it, NULL if it is none.
 */
static const char *
escape(const char *p, const char *end, uint8_t *out, size_t *n)
{
	static const char letters[] = "abfnrtv\\?'\"";
	static const char meant[] = "\a\b\f\n\r\t\v\\?'\"";
	const char *at;

	if (p >= end || *p == '\0')
		return NULL;
	*n = 1;
	if (is_octal(*p))
		return octal_escape(p, end, out);
	if (*p == 'x' || *p == 'X')
		return hex_escape(p, end, out);
	if (*p == 'u' || *p == 'U')
		return unicode_escape(p, end, out, n);
	if ((at = strchr(letters, *p)) == NULL)
		return NULL;
	*out = (uint8_t)meant[at - letters];
	return p + 1;
}

/* The token of a wrong escape: its backslash and the character after. */
static struct text_token
bad_escape(struct text_lex *l, struct text_token t)
{
	t.start = l->p;
	t.line = l->line;
	t.column = l->column;
	advance(l);
	if (l->p < l->end && *l->p != '\n') {
		advance(l);
		while (l->p < l->end && is_continuation(*l->p))
			advance(l);
	}
	return bad(t, l->p, "is not an escape that strings know");
}

static struct text_token
lex_string(struct text_lex *l, struct text_token t)
{
	char quote = *l->p;
	uint8_t out[4];
	const char *after;
	size_t n;

	advance(l);
	while (l->p < l->end && *l->p != quote) {
		if (*l->p == '\n')
			break;
		if (*l->p == '\0')
			return bad(t, l->p, "is a string that holds a NUL byte");
		if (*l->p != '\\') {
			advance(l);
			continue;
		}
		if ((after = escape(l->p + 1, l->end, out, &n)) == NULL)
			return bad_escape(l, t);
		while (l->p < after)
			advance(l);
	}
	if (l->p == l->end || *l->p != quote)
		return bad(t, l->p,
		    "is a string that its line does not close");
	advance(l);
	return ended(l, t, TEXT_TOKEN_STRING);
}

static struct text_token
lex_other(struct text_lex *l, struct text_token t)
{
	char c = *l->p;

	advance(l);
	if (c == '/' && next_is(l, "/*"))
		return bad(t, l->p + 1, "begins no comment: '#' does");
	if (c != '\0' && strchr(":{}<>[],;-./", c) != NULL)
		return ended(l, t, TEXT_TOKEN_SYMBOL);
	while (l->p < l->end && is_continuation(*l->p))
		advance(l);
	return bad(t, l->p, "has no meaning here");
}

void
text_lex_init(struct text_lex *l, const char *text, size_t len)
{
	l->p = text;
	l->end = text + len;
	l->line = 1;
	l->column = 1;
	if (len >= 3 && memcmp(text, BYTE_ORDER_MARK, 3) == 0)
		l->p += 3;
}

struct text_token
text_lex_next(struct text_lex *l)
{
	struct text_token t = { .type = TEXT_TOKEN_END };

	skip_space_and_comments(l);
	t.start = l->p;
	t.line = l->line;
	t.column = l->column;
	if (l->p == l->end)
		return t;
	if (is_letter(*l->p))
		return lex_word(l, t);
	if (is_digit(*l->p) ||
	    (*l->p == '.' && l->end - l->p > 1 && is_digit(l->p[1])))
		return lex_number(l, t);
	if (*l->p == '"' || *l->p == '\'')
		return lex_string(l, t);
	return lex_other(l, t);
}

size_t
text_lex_string(const struct text_token *t, uint8_t *out)
{
	const char *p = t->start + 1;
	const char *end = t->start + t->len - 1;
	size_t len = 0, n = 0;

	while (p < end) {
		if (*p != '\\') {
			out[len++] = (uint8_t)*p++;
			continue;
		}
		/* Known to be valid: lex_string() has been over it. */
		p = escape(p + 1, end, out + len, &n);
		len += n;
	}
	return len;
}

bool
text_lex_int(const struct text_token *t, uint64_t *out)
{
	unsigned base = 10, digit;
	uint64_t v = 0;
	size_t i = 0;

	if (t->len > 1 && t->start[0] == '0') {
		base = t->start[1] == 'x' || t->start[1] == 'X' ? 16 : 8;
		i = base == 16 ? 2 : 1;
	}
	for (; i < t->len; i++) {
		digit = (unsigned)hex_value(t->start[i]);
		if (v > (UINT64_MAX - digit) / base)
			return false;
		v = v * base + digit;
	}
	*out = v;
	return true;
}
