#include "client/text/time_point.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "transport/base/failure.h"
#include "transport/base/log.h"

#define SECOND_NS   1000000000
#define MAX_YEAR    2200
#define WORD_BYTES  64
#define MAX_SPAN_NS (INT64_MAX / 4)

/* Text on its way through the parser. */
struct scan {
	const char *p;
};

static void
skip_blanks(struct scan *s)
{
	while (*s->p == ' ' || *s->p == '\t')
		s->p++;
}

/* Takes a word that ends where letters end; without case. */
static bool
take_word(struct scan *s, const char *word)
{
	size_t n = strlen(word);

	if (strncasecmp(s->p, word, n) != 0 || isalpha((unsigned char)s->p[n]))
		return false;
	s->p += n;
	skip_blanks(s);
	return true;
}

/* Takes from min to max digits. */
static bool
take_digits(struct scan *s, size_t min, size_t max, int *out)
{
	size_t n = 0;
	int v = 0;

	while (n < max && isdigit((unsigned char)s->p[n]))
		v = v * 10 + (s->p[n++] - '0');
	if (n < min)
		return false;
	s->p += n;
	*out = v;
	return true;
}

static bool
take_char(struct scan *s, char c)
{
	if (*s->p != c)
		return false;
	s->p++;
	return true;
}

/* ".5" as nanoseconds; nothing is 0. */
static bool
take_fraction(struct scan *s, int64_t *ns)
{
	int64_t unit = SECOND_NS;

	*ns = 0;
	if (!take_char(s, '.'))
		return true;
	if (!isdigit((unsigned char)*s->p))
		return false;
	for (; isdigit((unsigned char)*s->p); s->p++) {
		unit /= 10;
		*ns += (*s->p - '0') * unit;
	}
	return true;
}

/* "14:32", "14:32:10.5" */
static bool
take_clock(struct scan *s, struct tm *tm, int64_t *ns)
{
	*ns = 0;
	tm->tm_sec = 0;
	if (!take_digits(s, 1, 2, &tm->tm_hour) || !take_char(s, ':') ||
	    !take_digits(s, 2, 2, &tm->tm_min))
		return false;
	if (take_char(s, ':') && (!take_digits(s, 2, 2, &tm->tm_sec) ||
	    !take_fraction(s, ns)))
		return false;
	return tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec < 60;
}

/* "2026-11-23" */
static bool
take_date(struct scan *s, struct tm *tm)
{
	struct tm same;
	int year, month;

	if (!take_digits(s, 4, 4, &year) || !take_char(s, '-') ||
	    !take_digits(s, 1, 2, &month) || !take_char(s, '-') ||
	    !take_digits(s, 1, 2, &tm->tm_mday))
		return false;
	tm->tm_year = year - 1900;
	tm->tm_mon = month - 1;
	if (year < 1970 || year > MAX_YEAR)
		return false;
	/* There is no 31 November: it would become another day. */
	same = *tm;
	return timegm(&same) >= 0 && same.tm_mday == tm->tm_mday &&
	    same.tm_mon == tm->tm_mon;
}

/* "Z", "UTC", "+02:00", "-0330"; *east in seconds.  false: none, or wrong. */
static bool
take_zone(struct scan *s, int *east)
{
	int sign = *s->p == '-' ? -1 : 1, hours, minutes = 0;

	*east = 0;
	if (take_word(s, "Z") || take_word(s, "UTC") || take_word(s, "GMT"))
		return true;
	if (!take_char(s, '+') && !take_char(s, '-'))
		return false;
	if (!take_digits(s, 2, 2, &hours))
		return false;
	take_char(s, ':');
	if (isdigit((unsigned char)*s->p) && !take_digits(s, 2, 2, &minutes))
		return false;
	*east = sign * (hours * 3600 + minutes * 60);
	return hours < 15 && minutes < 60;
}

static int64_t
local_ns(const struct tm *tm, int64_t ns)
{
	struct tm copy = *tm;

	copy.tm_isdst = -1; /* to be found out */
	return (int64_t)mktime(&copy) * SECOND_NS + ns;
}

/* The day, counted from today, at the time of day in tm. */
static int64_t
on_day(const struct tm *tm, int days, int64_t ns)
{
	struct tm day = *tm;

	day.tm_mday += days;
	return local_ns(&day, ns);
}

/* A date, with or without a time and a zone. */
static bool
parse_date(struct scan *s, struct tm *tm, int64_t *out)
{
	struct tm utc;
	int64_t ns = 0;
	int east;

	tm->tm_hour = tm->tm_min = tm->tm_sec = 0;
	if (!take_date(s, tm))
		return false;
	if (take_char(s, 'T') || take_char(s, 't')) {
		if (!take_clock(s, tm, &ns))
			return false;
	} else if (*s->p == ' ') {
		skip_blanks(s);
		if (*s->p != '\0' && !take_clock(s, tm, &ns))
			return false;
	}
	skip_blanks(s);
	*out = local_ns(tm, ns);
	if (*s->p == '\0')
		return true;
	if (!take_zone(s, &east))
		return false;
	utc = *tm;
	*out = ((int64_t)timegm(&utc) - east) * SECOND_NS + ns;
	return true;
}

/* "14:32": the last one, or the first one behind after_ns. */
static bool
parse_clock(struct scan *s, struct tm *tm, int64_t now_ns, int64_t after_ns,
    int64_t *out)
{
	int64_t ns;
	int day = 0;

	if (!take_clock(s, tm, &ns))
		return false;
	if (after_ns == 0) {
		if ((*out = on_day(tm, 0, ns)) > now_ns)
			*out = on_day(tm, -1, ns);
		return true;
	}
	/* tm is the day of after_ns. */
	while ((*out = on_day(tm, day, ns)) < after_ns && day < 2)
		day++;
	return true;
}

/* "today", "yesterday", with or without a time. */
static bool
parse_day(struct scan *s, struct tm *tm, int days, int64_t *out)
{
	int64_t ns = 0;

	tm->tm_hour = tm->tm_min = tm->tm_sec = 0;
	if (*s->p != '\0' && !take_clock(s, tm, &ns))
		return false;
	*out = on_day(tm, days, ns);
	return true;
}

static const struct unit {
	const char *name;
	int64_t ns;
} units[] = {
	{ "ms", 1000000 },
	{ "sec", SECOND_NS },
	{ "s", SECOND_NS },
	{ "min", 60ll * SECOND_NS },
	{ "m", 60ll * SECOND_NS },
	{ "h", 3600ll * SECOND_NS },
	{ "d", 86400ll * SECOND_NS },
	{ "w", 7 * 86400ll * SECOND_NS },
};

static bool
take_unit(struct scan *s, int64_t *ns)
{
	size_t i, n;

	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		n = strlen(units[i].name);
		if (strncmp(s->p, units[i].name, n) == 0 &&
		    !isalpha((unsigned char)s->p[n])) {
			s->p += n;
			*ns = units[i].ns;
			return true;
		}
	}
	return false;
}

/* "1h30m" */
static bool
take_span(struct scan *s, int64_t *out)
{
	int64_t unit, sum = 0;
	int n;

	do {
		if (!take_digits(s, 1, 9, &n))
			return false;
		skip_blanks(s);
		if (!take_unit(s, &unit) || n > (MAX_SPAN_NS - sum) / unit)
			return false;
		sum += n * unit;
	} while (isdigit((unsigned char)*s->p));
	*out = sum;
	return true;
}

static bool
parse_epoch(struct scan *s, int64_t *out)
{
	int64_t seconds, ns;
	char *end;

	if (!isdigit((unsigned char)*s->p))
		return false;
	seconds = strtoll(s->p, &end, 10);
	s->p = end;
	if (seconds > INT64_MAX / SECOND_NS - 1 || !take_fraction(s, &ns))
		return false;
	*out = seconds * SECOND_NS + ns;
	return true;
}

static bool
parse_any(struct scan *s, int64_t now_ns, int64_t after_ns, int64_t *out)
{
	time_t day = (time_t)((after_ns != 0 ? after_ns : now_ns) / SECOND_NS);
	time_t today = (time_t)(now_ns / SECOND_NS);
	struct scan whole = *s;
	struct tm tm, now;
	int64_t span;

	localtime_r(&day, &tm);
	localtime_r(&today, &now);
	if (take_char(s, '@'))
		return parse_epoch(s, out);
	if (take_word(s, "now")) {
		*out = now_ns;
		return true;
	}
	if (take_word(s, "today"))
		return parse_day(s, &now, 0, out);
	if (take_word(s, "yesterday"))
		return parse_day(s, &now, -1, out);
	if (take_char(s, '-')) {
		*out = take_span(s, &span) ? now_ns - span : 0;
		return *out > 0;
	}
	if (take_span(s, &span)) {
		skip_blanks(s);
		*out = now_ns - span;
		return take_word(s, "ago") && *out > 0;
	}
	*s = whole;
	if (strlen(s->p) >= 5 && s->p[4] == '-')
		return parse_date(s, &now, out);
	return parse_clock(s, &tm, now_ns, after_ns, out);
}

int
time_point_parse(const char *text, int64_t now_ns, int64_t after_ns,
    int64_t *ns, char *err, size_t err_size)
{
	struct scan s = { text };
	char word[WORD_BYTES];
	int64_t out = 0;

	skip_blanks(&s);
	if (parse_any(&s, now_ns, after_ns, &out)) {
		skip_blanks(&s);
		if (*s.p == '\0') {
			*ns = out;
			return 0;
		}
	}
	return FAILURE(err, err_size, "\"%s\" is no time; write it as 14:32, "
	    "\"yesterday 14:32\", \"2026-11-23 14:32:10\", "
	    "2026-11-23T14:32:10Z or -2h", log_escape(word, sizeof(word), text,
	    strlen(text)));
}

int
time_span_parse(const char *text, int64_t *ns, char *err, size_t err_size)
{
	struct scan s = { text };
	char word[WORD_BYTES];
	int64_t out;

	if (take_span(&s, &out) && *s.p == '\0') {
		*ns = out;
		return 0;
	}
	return FAILURE(err, err_size, "\"%s\" is no span of time, as 30s, 5m "
	    "or 2h are", log_escape(word, sizeof(word), text, strlen(text)));
}
