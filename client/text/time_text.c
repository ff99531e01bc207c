#include "client/text/time_text.h"

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
