/*
 * scan: lines, words and numbers of a text in memory.  All inline, pure, and
 * never beyond the end; the text needs no terminator.
 */
#ifndef CLIENT_PROBES_SCAN_H
#define CLIENT_PROBES_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A text that is being scanned, or a piece of it: [p, end), borrowed. */
struct scan {
	const char *p;
	const char *end;
};

static inline struct scan
scan_text(const char *text, size_t len)
{
	return (struct scan){ text, text + len };
}

static inline size_t
scan_len(const struct scan *s)
{
	return (size_t)(s->end - s->p);
}

static inline bool
scan_is(const struct scan *s, const char *word)
{
	size_t n = strlen(word);

	return scan_len(s) == n && memcmp(s->p, word, n) == 0;
}

static inline bool
scan_begins(const struct scan *s, const char *word)
{
	size_t n = strlen(word);

	return scan_len(s) >= n && memcmp(s->p, word, n) == 0;
}

/* The next line, without its newline; false at the end. */
static inline bool
scan_line(struct scan *s, struct scan *line)
{
	const char *nl;

	if (s->p >= s->end)
		return false;
	nl = memchr(s->p, '\n', scan_len(s));
	line->p = s->p;
	line->end = nl != NULL ? nl : s->end;
	s->p = nl != NULL ? nl + 1 : s->end;
	return true;
}

/* The next word between blanks and tabs; false when there is none. */
static inline bool
scan_word(struct scan *s, struct scan *word)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t'))
		s->p++;
	if (s->p >= s->end)
		return false;
	word->p = s->p;
	while (s->p < s->end && *s->p != ' ' && *s->p != '\t')
		s->p++;
	word->end = s->p;
	return true;
}

/*
 * The decimal number that s begins with (blanks before it are skipped); s
 * moves behind it.  false when there is no digit.  Too large: UINT64_MAX.
 */
static inline bool
scan_u64(struct scan *s, uint64_t *out)
{
	uint64_t v = 0;
	bool any = false, over = false;

	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t'))
		s->p++;
	for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++) {
		any = true;
		over |= __builtin_mul_overflow(v, 10, &v);
		over |= __builtin_add_overflow(v, (uint64_t)(*s->p - '0'), &v);
	}
	if (any)
		*out = over ? UINT64_MAX : v;
	return any;
}

/* Scans a number with a sign; out of range: false. */
static inline bool
scan_i32(struct scan *s, int32_t *out)
{
	struct scan t = *s;
	uint64_t v;
	bool minus;

	while (t.p < t.end && (*t.p == ' ' || *t.p == '\t'))
		t.p++;
	minus = t.p < t.end && *t.p == '-';
	if (minus)
		t.p++;
	if (!scan_u64(&t, &v) || v > (uint64_t)INT32_MAX + minus)
		return false;
	*out = (int32_t)(minus ? -(int64_t)v : (int64_t)v);
	*s = t;
	return true;
}

/* Splits "key:   value" at the first colon; false without one. */
static inline bool
scan_key(const struct scan *line, struct scan *key, struct scan *value)
{
	const char *colon = memchr(line->p, ':', scan_len(line));

	if (colon == NULL)
		return false;
	*key = (struct scan){ line->p, colon };
	*value = (struct scan){ colon + 1, line->end };
	while (value->p < value->end && (*value->p == ' ' ||
	    *value->p == '\t'))
		value->p++;
	return true;
}

#endif /* CLIENT_PROBES_SCAN_H */
