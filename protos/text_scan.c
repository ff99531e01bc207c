#include "protos/text_scan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "protos/text_error.h"
#include "protos/utf8.h"

void
text_scan_init(struct text_scan *s, const char *text, size_t len,
    struct text_error *err)
{
	text_lex_init(&s->lex, text, len);
	s->t = text_lex_next(&s->lex);
	s->err = err;
}

void
text_scan_next(struct text_scan *s)
{
	if (s->t.type != TEXT_TOKEN_END && s->t.type != TEXT_TOKEN_BAD)
		s->t = text_lex_next(&s->lex);
}

bool
text_scan_is(const struct text_scan *s, char symbol)
{
	return s->t.type == TEXT_TOKEN_SYMBOL && *s->t.start == symbol;
}

bool
text_scan_accept(struct text_scan *s, char symbol)
{
	if (!text_scan_is(s, symbol))
		return false;
	text_scan_next(s);
	return true;
}

/* Appends to the message, cut to its size. */
static void
append(struct text_error *e, const char *fmt, ...)
{
	size_t n = strlen(e->message);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e->message + n, sizeof(e->message) - n, fmt, ap);
	va_end(ap);
}

/* Fills in the error.  false: the caller of the scan wants none. */
static bool
report(struct text_error *e, const struct text_token *t, const char *fmt,
    va_list ap)
{
	if (e == NULL)
		return false;
	e->line = t->line;
	e->column = t->column;
	utf8_escape(e->word, sizeof(e->word), t->start, t->len, "");
	vsnprintf(e->message, sizeof(e->message), fmt, ap);
	return true;
}

bool
text_scan_fail(struct text_scan *s, const struct text_token *t,
    const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)report(s->err, t, fmt, ap);
	va_end(ap);
	return false;
}

bool
text_scan_unexpected(struct text_scan *s, const struct text_token *t,
    const char *fmt, ...)
{
	struct text_error *e = s->err;
	bool wanted;
	va_list ap;

	va_start(ap, fmt);
	wanted = report(e, t, fmt, ap);
	va_end(ap);
	if (!wanted)
		return false;
	if (t->type == TEXT_TOKEN_END)
		append(e, ", but the text ends here");
	else if (t->type == TEXT_TOKEN_BAD)
		append(e, "; '%s' %s", e->word, t->problem);
	else
		append(e, ", not '%s'", e->word);
	return false;
}

const char *
text_scan_type_name(const char *name, const char *package)
{
	size_t n = strlen(package);

	if (n > 0 && strncmp(name, package, n) == 0 && name[n] == '.')
		return name + n + 1;
	return name;
}
