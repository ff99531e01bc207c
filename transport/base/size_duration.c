#include "transport/base/size_duration.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "transport/base/failure.h"

struct unit {
	const char *suffix;
	uint64_t factor;
};

static const struct unit time_units[] = {
	{ "ms", 1 },
	{ "s", 1000 },
	{ "m", 60 * 1000 },
	{ "h", 60 * 60 * 1000 },
	{ NULL, 0 },
};

static const struct unit long_time_units[] = {
	{ "ms", 1 },
	{ "s", 1000 },
	{ "m", 60 * 1000 },
	{ "min", 60 * 1000 },
	{ "h", 60 * 60 * 1000 },
	{ "d", 24 * 60 * 60 * 1000 },
	{ NULL, 0 },
};
#define LONG_TIME_MAX (3650ull * 24 * 60 * 60 * 1000)

static const struct unit size_units[] = {
	{ "k", 1ull << 10 },
	{ "kb", 1ull << 10 },
	{ "m", 1ull << 20 },
	{ "mb", 1ull << 20 },
	{ "g", 1ull << 30 },
	{ "gb", 1ull << 30 },
	{ NULL, 0 },
};

/* Larger than any buffer or file; keeps sums of a few of them in 64 bits. */
#define MAX_BYTES (1ull << 50)

enum verdict { GOOD, NOT_A_NUMBER, BAD_UNIT, TOO_LARGE };

static enum verdict
parse(const char *text, const struct unit *units, uint64_t max, uint64_t *out)
{
	const char *p = text;
	uint64_t v = 0;

	if (!isdigit((unsigned char)*p))
		return NOT_A_NUMBER;
	for (; isdigit((unsigned char)*p); p++) {
		v = v * 10 + (uint64_t)(*p - '0');
		if (v > max)
			return TOO_LARGE;
	}
	if (v == 0 && *p == '\0') {
		*out = 0;
		return GOOD;
	}
	for (; units->suffix != NULL; units++) {
		if (strcasecmp(p, units->suffix) != 0)
			continue;
		if (v > max / units->factor)
			return TOO_LARGE;
		*out = v * units->factor;
		return GOOD;
	}
	return BAD_UNIT;
}

int
size_duration_parse_ms(const char *text, uint32_t *ms, char *err,
    size_t err_size)
{
	uint64_t v;

	switch (parse(text, time_units, UINT32_MAX, &v)) {
	case GOOD:
		*ms = (uint32_t)v;
		return 0;
	case NOT_A_NUMBER:
		return FAILURE(err, err_size, "\"%.40s\" is not a time; write "
		    "it like 500ms, 10s, 5m or 1h", text);
	case BAD_UNIT:
		return FAILURE(err, err_size, "\"%.40s\" has no unit of time; "
		    "write it like 500ms, 10s, 5m or 1h", text);
	case TOO_LARGE:
		return FAILURE(err, err_size, "\"%.40s\" is too long; at most "
		    "1193h fits into a trace config", text);
	}
	return -1;
}

int
size_duration_parse_long_ms(const char *text, uint64_t *ms, char *err,
    size_t err_size)
{
	switch (parse(text, long_time_units, LONG_TIME_MAX, ms)) {
	case GOOD:
		return 0;
	case NOT_A_NUMBER:
		return FAILURE(err, err_size, "\"%.40s\" is not a time; write "
		    "it like 30s, 5min, 12h or 14d", text);
	case BAD_UNIT:
		return FAILURE(err, err_size, "\"%.40s\" has no unit of time; "
		    "write it like 30s, 5min, 12h or 14d", text);
	case TOO_LARGE:
		return FAILURE(err, err_size, "\"%.40s\" is too long; at most "
		    "3650d", text);
	}
	return -1;
}

int
size_duration_parse_bytes(const char *text, uint64_t *bytes, char *err,
    size_t err_size)
{
	switch (parse(text, size_units, MAX_BYTES, bytes)) {
	case GOOD:
		return 0;
	case NOT_A_NUMBER:
		return FAILURE(err, err_size, "\"%.40s\" is not a size; write "
		    "it like 64kb, 32mb or 1gb", text);
	case BAD_UNIT:
		return FAILURE(err, err_size, "\"%.40s\" has no unit of size; "
		    "write it like 64kb, 32mb or 1gb", text);
	case TOO_LARGE:
		return FAILURE(err, err_size, "\"%.40s\" is larger than the 1 "
		    "PiB that is accepted", text);
	}
	return -1;
}
