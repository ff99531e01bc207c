#include "transport/segment/segment_path.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "protos/utf8.h"
#include "transport/base/failure.h"
#include "transport/base/machine_word.h"

/* Most bytes of a name of a recording or machine, escaped. */
#define NAME_BYTES 100u
/* NAME_MAX, less ".part" and "-99999". */
#define PART_BYTES (255u - 11u)
#define PATH_BYTES (SEGMENT_PATH_MAX - 12u)

enum word {
	WORD_RECORDING,
	WORD_MACHINE,
	WORD_NUMBER,
	WORD_YEAR,
	WORD_MONTH,
	WORD_DAY,
	WORD_HOUR,
	WORD_MINUTE,
	WORD_SECOND,
	WORD_PERCENT,
	WORD_NONE,
};

/* Longer names first: "%machine" before "%m". */
static const struct {
	const char *name;
	size_t most; /* bytes that it expands to */
} words[] = {
	[WORD_RECORDING] = { "recording", NAME_BYTES },
	[WORD_MACHINE] = { "machine", NAME_BYTES },
	[WORD_NUMBER] = { "n", 10 },
	[WORD_YEAR] = { "Y", 4 },
	[WORD_MONTH] = { "m", 2 },
	[WORD_DAY] = { "d", 2 },
	[WORD_HOUR] = { "H", 2 },
	[WORD_MINUTE] = { "M", 2 },
	[WORD_SECOND] = { "S", 2 },
	[WORD_PERCENT] = { "%", 1 },
};

/* The word at p, behind its '%'. */
static enum word
word_at(const char *p)
{
	unsigned i;

	for (i = 0; i < WORD_NONE; i++)
		if (strncmp(p, words[i].name, strlen(words[i].name)) == 0)
			break;
	return (enum word)i;
}

const char *
segment_path_default(bool by_machine)
{
	return by_machine ?
	    "%recording/%machine/%Y-%m-%d/%H%M%S-%n" SEGMENT_SUFFIX :
	    "%recording/%Y-%m-%d/%H%M%S-%n" SEGMENT_SUFFIX;
}

/* Why a pattern is wrong as text; NULL: it is not. */
static const char *
text_error(const char *p)
{
	size_t n = strlen(p), suffix = strlen(SEGMENT_SUFFIX);
	const char *s;

	if (*p == '/')
		return "it must be relative to output_path, without a '/' at "
		    "its beginning";
	for (s = p; *s != '\0'; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return "it has a control character";
	if (n < suffix || strcmp(p + n - suffix, SEGMENT_SUFFIX) != 0)
		return "it must end in " SEGMENT_SUFFIX;
	for (s = p; s != NULL; s = strchr(s, '/')) {
		s += *s == '/';
		if (*s == '/')
			return "it has two slashes in a row";
		if (*s == '.')
			return "no name in it may begin with a dot";
	}
	return NULL;
}

/* Most bytes of the path, and whether each name in it is short enough. */
static bool
is_short(const char *p)
{
	size_t part = 0, all = 0, n;
	enum word w;

	while (*p != '\0') {
		n = 1;
		w = WORD_NONE;
		if (*p == '/')
			part = 0;
		if (*p++ == '%' && (w = word_at(p)) != WORD_NONE) {
			p += strlen(words[w].name);
			n = words[w].most;
		}
		all += n;
		part += n;
		if (part > PART_BYTES || all > PATH_BYTES)
			return false;
	}
	return true;
}

int
segment_path_check(const char *pattern, bool by_machine, char *err,
    size_t err_size)
{
	const unsigned times = 1u << WORD_YEAR | 1u << WORD_MONTH |
	    1u << WORD_DAY | 1u << WORD_HOUR | 1u << WORD_MINUTE |
	    1u << WORD_SECOND;
	const char *why = text_error(pattern), *p;
	unsigned has = 0;
	enum word w;

	if (why != NULL)
		return FAILURE(err, err_size, "file_pattern '%.60s': %s",
		    pattern, why);
	for (p = strchr(pattern, '%'); p != NULL; p = strchr(p, '%')) {
		if ((w = word_at(++p)) == WORD_NONE)
			return FAILURE(err, err_size, "file_pattern '%.60s': "
			    "there is no %%%.1s; it may have %%recording "
			    "%%machine %%n %%Y %%m %%d %%H %%M %%S and %%%%",
			    pattern, p);
		has |= 1u << w;
		p += strlen(words[w].name);
	}
	if ((has & 1u << WORD_NUMBER) == 0 && (has & times) != times)
		return FAILURE(err, err_size, "file_pattern '%.60s': it needs "
		    "%%n, or all of %%Y %%m %%d %%H %%M %%S, so that the names "
		    "of segments differ", pattern);
	if (by_machine && (has & 1u << WORD_MACHINE) == 0)
		return FAILURE(err, err_size, "file_pattern '%.60s': split by "
		    "machine it needs %%machine", pattern);
	if (!is_short(pattern))
		return FAILURE(err, err_size, "file_pattern '%.60s': the "
		    "names that it makes may become too long", pattern);
	return 0;
}

/*
 * Appends a name that others chose: what is not plain text becomes %XX.  `%`
 * does, too, so that two names stay two.
 */
static char *
put_name(char *out, const char *s)
{
	size_t left = NAME_BYTES, n, len = strlen(s), take;
	bool first = true, plain;

	for (; len > 0; s += take, len -= take, first = false) {
		take = utf8_printable(s, len);
		plain = take > 0 && *s != '/' && *s != '%' && *s != '\\' &&
		    !(first && *s == '.');
		if (!plain)
			take = 1;
		n = plain ? take : 3;
		if (n > left)
			break;
		left -= n;
		if (plain) {
			memcpy(out, s, n);
			out[n] = '\0';
		} else {
			snprintf(out, 4, "%%%02X", (unsigned char)*s);
		}
		out += n;
	}
	return out;
}

static char *
put_machine(char *out, const struct segment_name *of)
{
	if (of->machine != NULL && of->machine[0] != '\0')
		return put_name(out, of->machine);
	if (of->machine_id == 0)
		return put_name(out, MACHINE_WORD_HOST);
	return out + sprintf(out, "machine-%u", (unsigned)of->machine_id);
}

/* A year beyond 9999 would not have its 4 bytes. */
static char *
put_number(char *out, enum word w, const struct segment_name *of)
{
	time_t seconds = (time_t)(of->realtime_ns / 1000000000u);
	struct tm t;
	int v = 0;

	if (w == WORD_NUMBER)
		return out + sprintf(out, "%06u", (unsigned)of->number);
	memset(&t, 0, sizeof(t));
	gmtime_r(&seconds, &t);
	switch (w) {
	case WORD_YEAR:
		return out + sprintf(out, "%04u",
		    (unsigned)(t.tm_year + 1900) % 10000);
	case WORD_MONTH:
		v = t.tm_mon + 1;
		break;
	case WORD_DAY:
		v = t.tm_mday;
		break;
	case WORD_HOUR:
		v = t.tm_hour;
		break;
	case WORD_MINUTE:
		v = t.tm_min;
		break;
	default:
		v = t.tm_sec;
		break;
	}
	return out + sprintf(out, "%02u", (unsigned)v % 100);
}

void
segment_path_expand(char out[SEGMENT_PATH_MAX], const char *pattern,
    const struct segment_name *of)
{
	const char *p = pattern;
	enum word w;

	while (*p != '\0') {
		if (*p != '%') {
			*out++ = *p++;
			continue;
		}
		w = word_at(++p);
		p += strlen(words[w].name);
		if (w == WORD_PERCENT)
			*out++ = '%';
		else if (w == WORD_MACHINE)
			out = put_machine(out, of);
		else if (w == WORD_RECORDING)
			out = put_name(out, of->recording != NULL &&
			    of->recording[0] != '\0' ? of->recording :
			    "recording");
		else
			out = put_number(out, w, of);
	}
	*out = '\0';
}

void
segment_path_alternative(char out[SEGMENT_PATH_MAX], const char *path,
    unsigned n)
{
	size_t stem = strlen(path) - strlen(SEGMENT_SUFFIX);

	snprintf(out, SEGMENT_PATH_MAX, "%.*s-%u" SEGMENT_SUFFIX, (int)stem,
	    path, n % 100000);
}
