#include "client/text/time_text.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

const char *
time_text_ago(char out[HUMAN_TEXT_MAX], uint64_t then_ns, uint64_t now_ns)
{
	if (then_ns == 0 || now_ns == 0)
		return "-";
	return human_ms(out, now_ns > then_ns ? (now_ns - then_ns) / 1000000
	    : 0);
}

const char *
time_text_at(char out[HUMAN_TEXT_MAX], uint64_t ns)
{
	time_t t = (time_t)(ns / 1000000000u);
	struct tm tm;

	if (ns == 0 || localtime_r(&t, &tm) == NULL ||
	    strftime(out, HUMAN_TEXT_MAX, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		return "-";
	return out;
}

const char *
time_text_span(char out[TIME_TEXT_SPAN_MAX], uint64_t first_ns,
    uint64_t last_ns)
{
	char first[HUMAN_TEXT_MAX], last[HUMAN_TEXT_MAX];
	const char *begin = time_text_at(first, first_ns);
	const char *end = time_text_at(last, last_ns);
	size_t day = strlen("2026-11-23 ");

	if (strlen(end) > day && strncmp(begin, end, day) == 0)
		end += day;
	snprintf(out, TIME_TEXT_SPAN_MAX, "%s - %s", begin, end);
	return out;
}
