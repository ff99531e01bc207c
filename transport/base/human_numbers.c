#include "transport/base/human_numbers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

char *
human_bytes(char out[HUMAN_TEXT_MAX], uint64_t bytes)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB",
	    "EiB" };
	double v = (double)bytes / 1024;
	size_t u = 0;

	if (bytes < 1024) {
		snprintf(out, HUMAN_TEXT_MAX, "%" PRIu64 " byte%s", bytes,
		    human_s(bytes));
		return out;
	}
	/* 1023.95 would be printed as 1024.0 of the smaller unit */
	while (v >= 1023.95) {
		v /= 1024;
		u++;
	}
	snprintf(out, HUMAN_TEXT_MAX, "%.1f %s", v, units[u]);
	return out;
}

uint64_t
human_whole(double v)
{
	return v < 0x1p64 ? (uint64_t)v : UINT64_MAX;
}

char *
human_count(char out[HUMAN_TEXT_MAX], uint64_t n)
{
	char digits[24];
	size_t len, i, o = 0;

	len = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, n);
	for (i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			out[o++] = ',';
		out[o++] = digits[i];
	}
	out[o] = '\0';
	return out;
}

char *
human_ms(char out[HUMAN_TEXT_MAX], uint64_t ms)
{
	uint64_t s = ms / 1000;

	if (s < 60)
		snprintf(out, HUMAN_TEXT_MAX, "%" PRIu64 ".%u s", s,
		    (unsigned)(ms % 1000 / 100));
	else if (s < 3600)
		snprintf(out, HUMAN_TEXT_MAX, "%" PRIu64 " min %02u s", s / 60,
		    (unsigned)(s % 60));
	else
		snprintf(out, HUMAN_TEXT_MAX, "%" PRIu64 " h %02u min", s / 3600,
		    (unsigned)(s % 3600 / 60));
	return out;
}

const char *
human_s(uint64_t n)
{
	return n == 1 ? "" : "s";
}

const char *
human_plural(const char *word, uint64_t n)
{
	size_t len = strlen(word);

	return n != 1 && len > 1 && word[len - 1] == 'h' &&
	    strchr("cs", word[len - 2]) != NULL ? "es" : human_s(n);
}
