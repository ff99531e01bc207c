#include "protos/text_float.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the longest decimal point of any locale, with its NUL. */
#define MAX_POINT 16

/* The largest float and half of its last bit: from here on it is infinity. */
#define FLOAT_OVERFLOW 0x1.ffffffp127

/*
 * The point of this thread's locale, of which printf and strtod make use;
 * usually ".", at times ",", and some bytes of UTF-8 in a few languages.
 */
static const char *
locale_point(void)
{
	const char *point = localeconv()->decimal_point;

	return *point == '\0' ? "." : point;
}

bool
text_float_parse(const char *s, size_t len, double *out)
{
	char buf[TEXT_FLOAT_MAX_INPUT + MAX_POINT];
	const char *point = locale_point();
	const char *dot;
	size_t n = 0;
	double v;
	char *end;

	if (len > 0 && (s[len - 1] == 'f' || s[len - 1] == 'F'))
		len--;
	if (len == 0 || len > TEXT_FLOAT_MAX_INPUT ||
	    strlen(point) >= MAX_POINT)
		return false;
	if ((dot = memchr(s, '.', len)) != NULL) {
		n = (size_t)(dot - s);
		memcpy(buf, s, n);
		memcpy(buf + n, point, strlen(point));
		n += strlen(point);
		len -= (size_t)(dot - s) + 1;
		s = dot + 1;
	}
	memcpy(buf + n, s, len);
	buf[n + len] = '\0';
	v = strtod(buf, &end);
	if (end != buf + n + len)
		return false;
	*out = v;
	return true;
}

float
text_float_narrow(double v)
{
	double size = fabs(v);

	/* C leaves conversions out of range undefined: decide them here. */
	if (size >= FLOAT_OVERFLOW)
		return v < 0 ? -INFINITY : INFINITY;
	if (size > FLT_MAX)
		return v < 0 ? -FLT_MAX : FLT_MAX;
	return (float)v;
}

/* Puts "." where the locale has its own point. */
static void
plain_point(char *s)
{
	const char *point = locale_point();
	size_t len = strlen(point);
	char *at;

	if (strcmp(point, ".") == 0 || (at = strstr(s, point)) == NULL)
		return;
	*at = '.';
	memmove(at + 1, at + len, strlen(at + len) + 1);
}

void
text_float_print(double v, bool single, char out[TEXT_FLOAT_MAX])
{
	int digits = single ? FLT_DIG : DBL_DIG;
	int most = single ? FLT_DECIMAL_DIG : DBL_DECIMAL_DIG;

	if (isnan(v)) {
		strcpy(out, "nan");
		return;
	}
	if (isinf(v)) {
		strcpy(out, v < 0 ? "-inf" : "inf");
		return;
	}
	for (; digits <= most; digits++) {
		snprintf(out, TEXT_FLOAT_MAX, "%.*g", digits, v);
		if (single ? strtof(out, NULL) == (float)v :
		    strtod(out, NULL) == v)
			break;
	}
	plain_point(out);
}
